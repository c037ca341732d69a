/* Shared by the routes that generate text: settings and streams of huggingface_hub's text generation. */
#ifndef SES_SERVE_GENERATE_REPLY_H
#define SES_SERVE_GENERATE_REPLY_H

#include "body.h"
#include "route.h"

/* Settings that a request over HTTP has by default: only the new text is returned. p: the request's
 * parameters; may be NULL. */
void ses_generate_add_defaults(ses_job *j, ses_body_settings *s, const ses_task *t, const ses_json *p);
/* Submits a job with one item; its text is sent as Server-Sent Events while it is generated. */
bool ses_generate_stream(ses_worker *w, ses_job *j);
/* Sends one event. False: the client is gone. */
bool ses_generate_send_event(ses_job *j, ses_json_writer *json);

#endif
