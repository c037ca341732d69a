/* Shared by the routes that generate text: limits, stop strings, and texts as Server-Sent Events. */
#ifndef SES_SERVE_GENERATE_REPLY_H
#define SES_SERVE_GENERATE_REPLY_H

#include "serve/body.h"
#include "serve/route.h"
#include "task/generation_task.h"

enum { SES_MAX_STOPS = 16, SES_MAX_STOP_LENGTH = 256 };

/* Stop strings of a request; borrowed from its body. */
typedef struct ses_stops {
    ses_string at[SES_MAX_STOPS];
    size_t n;
} ses_stops;

/* A string or a list of strings; v may be NULL. */
bool ses_stops_read(ses_job *j, const ses_json *v, ses_stops *s);
/* Gives them to all items of the job: texts end before the first stop string. */
bool ses_stops_apply(ses_job *j, const ses_stops *s);

/* Reads limits, stop strings and defaults of huggingface_hub's text generation. p: its parameters, may be
 * NULL. */
bool ses_generate_read(ses_job *j, ses_body_settings *s, const ses_task *t, const ses_json *p);
/* Submits the job; stream: its text is sent as events, else done answers. */
bool ses_generate_submit(ses_worker *w, ses_job *j, bool stream, ses_job_fn *done);
/* Tokens of all texts of a finished job. */
int64_t ses_generate_new_tokens(const ses_job *j);
/* Writes the result of an item, with "details" if the request asks for them. */
void ses_generate_put(ses_json_writer *json, const ses_job *j, size_t item);

/* Begins the stream if it has not begun, and sends one event. False: the client is gone. */
bool ses_event_send(ses_job *j, ses_json_writer *json);
bool ses_event_send_text(ses_job *j, const char *text);

/* A member of a request, and its setting of the task. */
typedef struct ses_generate_name {
    const char *key, *setting;
} ses_generate_name;

/* "temperature" of an object: 0 is greedy, above 0 samples; *temperature stays if it is absent. */
bool ses_generate_add_temperature(ses_job *j, ses_body_settings *s, const ses_task *t, const ses_json *object,
                                  double *temperature);
/* The members of an object that are named, until { 0 }. Penalties are from -2 to 2. */
bool ses_generate_add_named(ses_job *j, ses_body_settings *s, const ses_task *t, const ses_json *object,
                            const ses_generate_name *names);
/* The number of new tokens, at most the server's limit. */
bool ses_generate_add_max_tokens(ses_worker *w, ses_job *j, ses_body_settings *s, const ses_task *t,
                                 int64_t tokens);

#endif
