/* The server behind `sesame serve`: models, a queue, worker threads and routes over HTTP.
 *
 *     ses_server *s = ses_server_new(&options, &e);
 *     ses_server_run(s, &e);         until ses_server_drain
 *     ses_server_free(s);
 *
 * Ownership: the caller frees the server; the device must outlive it; strings of the options, too. Threads:
 * ses_server_run uses the calling thread for I/O. ses_server_drain, _stop and _reload may be called from any
 * thread, but not from signal handlers. */
#ifndef SES_SERVE_SERVER_H
#define SES_SERVE_SERVER_H

#include "serve/http/http_server.h"
#include "sesame/base.h"

#include <stdio.h>

typedef struct ses_server ses_server;

typedef enum { SES_LOG_NONE, SES_LOG_TEXT, SES_LOG_JSON } ses_log_format;

typedef struct ses_server_options {
    const char *const *models; /* [n_models]: folder, name of a bundled model, or NAME=FOLDER */
    size_t n_models;
    const char *const *aliases; /* [n_aliases]: NAME=MODEL, other names of loaded models */
    size_t n_aliases;
    bool any_model;           /* a request with an unknown name gets the only model for its task */
    const char *models_file;  /* more of them, one per line; read again by ses_server_reload. NULL: none */
    const char *api_key_file; /* one key per line; NULL: no key is needed */
    ses_device *dev;
    int workers;             /* threads that tokenize, compute and answer, at least 2; 0: 2, on a GPU 4 */
    int64_t batch_tokens;    /* tokens per batch; 0: 2048, on a GPU 16384 */
    int64_t max_inputs;      /* inputs per request; 0: 2048 */
    int64_t queue_inputs;    /* inputs admitted at a time; 0: 4096 */
    int64_t queue_tokens;    /* tokens admitted at a time; 0: 1 Mi */
    int64_t max_new_tokens;  /* upper bound for generation; 0: 1024 */
    double deadline_seconds; /* default deadline of a request; 0: 300 */
    const char *tiktoken;    /* a .tiktoken file: token ids in requests are of its vocabulary. NULL: none */
    bool token_ids;          /* accept token ids as input of /v1/embeddings */
    bool admin;              /* serve /admin routes */
    ses_log_format log_format;
    FILE *log;             /* access log and messages; NULL: none */
    ses_http_options http; /* address and limits; callbacks are the server's own */
    double drain_seconds;  /* 0: 30 */
} ses_server_options;

/* Loads the models and binds the address. */
ses_server *ses_server_new(const ses_server_options *o, ses_err *e);
int ses_server_port(const ses_server *s);
bool ses_server_run(ses_server *s, ses_err *e);
void ses_server_drain(ses_server *s);  /* answers the received requests, then run returns */
void ses_server_stop(ses_server *s);   /* run returns at once */
void ses_server_reload(ses_server *s); /* loads all models anew; requests in progress keep the old ones */
void ses_server_free(ses_server *s);   /* s may be NULL */

#endif
