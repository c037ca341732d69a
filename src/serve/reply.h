/* Responses: JSON, errors in the style of the route, timing headers. Each function that answers frees the
 * job. */
#ifndef SES_SERVE_REPLY_H
#define SES_SERVE_REPLY_H

#include "job.h"

/* Format of error bodies, and the status of each ses_api_code. */
typedef enum {
    SES_STYLE_OPENAI, /* {"error": {"message", "type", "param", "code"}} */
    SES_STYLE_TEI,    /* {"error", "error_type"} */
    SES_STYLE_COHERE, /* {"message"} */
    SES_STYLE_PLAIN   /* {"error": "..."} */
} ses_error_style;

int ses_api_status(ses_error_style style, ses_api_code code);
const char *ses_api_error_type(ses_error_style style, ses_api_code code);

/* Answers with j->error. */
void ses_reply_error(ses_worker *w, ses_job *j);
/* Answers with the writer's text, status 200, and frees the writer; with an error if the writer has failed or
 * j->error is set. */
void ses_reply_json(ses_worker *w, ses_job *j, ses_json_writer *json);
/* Answers with bytes, which the server frees with ses_free. */
void ses_reply_bytes(ses_worker *w, ses_job *j, const char *content_type, char *bytes, size_t n);
/* Answers with a static or copied text. */
void ses_reply_text(ses_worker *w, ses_job *j, int status, const char *content_type, const char *text,
                    size_t n);

/* Adds the timing headers of a computed job: x-total-time and others, in milliseconds, and
 * x-truncated-tokens. */
void ses_reply_add_timings(ses_job *j);

/* A new writer without whitespace; NULL and j->error: no memory. */
ses_json_writer *ses_reply_writer(ses_job *j);
/* The writer for the response of a computed job; NULL: the job has been answered with an error. item_errors:
 * the response has a field for errors of items; false: the first of them is the error of the job. */
ses_json_writer *ses_reply_begin(ses_worker *w, ses_job *j, bool item_errors);
/* "id": "PREFIX-...", the same for all parts of a response, and unique among requests. */
void ses_reply_put_id(ses_json_writer *w, const ses_job *j, const char *prefix);
/* Cohere's "meta": the version of the route (0: left out), the tokens, and a warning (NULL: none). */
void ses_reply_put_meta(ses_json_writer *w, const ses_job *j, int version, const char *warning);
/* "usage": {"prompt_tokens": N, "total_tokens": N} */
void ses_reply_put_usage(ses_json_writer *w, const ses_job *j, int64_t completion_tokens);

#endif
