/* Shared by the routes that generate text: limits, stop strings, and texts as Server-Sent Events.
 *
 * A stop string ends a text in the server, not in the pipeline: requests with different stop strings share
 * one pipeline. */
#ifndef SES_SERVE_GENERATE_REPLY_H
#define SES_SERVE_GENERATE_REPLY_H

#include "serve/body.h"
#include "serve/route.h"
#include "task/generation_task.h"

enum { SES_MAX_STOPS = 16, SES_MAX_STOP_BYTES = 256 };

typedef struct ses_stops {
    ses_string at[SES_MAX_STOPS];
    size_t n, longest;
} ses_stops;

/* A string or a list of strings; v may be NULL. */
bool ses_stops_read(ses_job *j, const ses_json *v, ses_stops *s);
/* Byte offset of the first stop string in a text; n: none. */
size_t ses_stops_find(const ses_stops *s, const char *text, size_t n);

/* The new text of one sequence while it is generated. */
typedef struct ses_text_stream {
    const ses_stops *stops;
    char tail[2 * SES_MAX_STOP_BYTES]; /* text that may be the beginning of a stop string */
    size_t n_tail;
    size_t sent;  /* bytes before the tail */
    bool stopped; /* a stop string has been found: nothing follows */
} ses_text_stream;

/* Adds a piece. *out: the bytes that can be sent now, in out[0, *n); needs SES_MAX_STOP_BYTES * 2 more than
 * the piece. Returns false if a stop string has ended the text. */
bool ses_text_stream_add(ses_text_stream *t, ses_string piece, ses_buf *out);
/* The text is complete: appends the rest. */
void ses_text_stream_end(ses_text_stream *t, ses_buf *out);

/* Reads limits, stop strings and defaults of huggingface_hub's text generation. p: its parameters, may be
 * NULL. */
bool ses_generate_read(ses_job *j, ses_body_settings *s, const ses_task *t, const ses_json *p);
/* Submits the job; stream: its text is sent as events, else done answers. */
bool ses_generate_submit(ses_worker *w, ses_job *j, bool stream, ses_job_fn *done);

/* Begins the stream if it has not begun, and sends one event. False: the client is gone. */
bool ses_event_send(ses_job *j, ses_json_writer *json);
bool ses_event_send_text(ses_job *j, const char *text);

/* The number of new tokens, at most the server's limit. */
bool ses_generate_add_max_tokens(ses_worker *w, ses_job *j, ses_body_settings *s, const ses_task *t,
                                 int64_t tokens);

#endif
