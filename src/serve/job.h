/* A job: one HTTP request on its way through the server.
 *
 * on_request (I/O thread) makes it; a worker calls the route's `handle`, which reads the body and either
 * answers at once or prepares items and submits them to the scheduler; when all have been computed, a worker
 * calls `done`, which answers. Either way the answer frees the job.
 *
 * Ownership: the job owns everything it points to, unless stated otherwise. Threads: one at a time; hand-over
 * happens under the locks of the queues. */
#ifndef SES_SERVE_JOB_H
#define SES_SERVE_JOB_H

#include "registry.h"
#include "serve/http/http_server.h"

typedef struct ses_job ses_job;
typedef struct ses_route ses_route;
struct ses_generation_token; /* task/generation_task.h */

typedef struct ses_worker {
    struct ses_server *server;
    struct ses_workers *pool;
    int index;
    pthread_t thread;
} ses_worker;

/* Why a request fails; the status depends on the style of the route's errors. */
typedef enum {
    SES_API_OK,
    SES_API_EMPTY,        /* no input */
    SES_API_VALIDATION,   /* the request is malformed or a value is out of range */
    SES_API_TOKENIZER,    /* the text cannot be encoded for the task */
    SES_API_BACKEND,      /* the computation failed */
    SES_API_NOT_FINITE,   /* the model's output is NaN or infinite */
    SES_API_OVERLOADED,   /* the queue is full */
    SES_API_UNAVAILABLE,  /* starting or stopping */
    SES_API_UNAUTHORIZED, /* no valid key */
    SES_API_FORBIDDEN,    /* a page of another site has sent it */
    SES_API_NOT_FOUND,    /* no such route or model */
    SES_API_METHOD,       /* the route has another method */
    SES_API_TOO_LARGE,    /* more inputs than a request may have */
    SES_API_MEDIA_TYPE,   /* the body is not JSON */
    SES_API_DEADLINE,     /* the request's deadline has passed */
    SES_API_CANCELLED     /* the client has disconnected */
} ses_api_code;

typedef struct ses_api_error {
    ses_api_code code;
    const char *param; /* the key of the request it concerns; NULL: none. Static */
    char message[1024];
} ses_api_error;

/* Fills *e unless it holds an error already. Returns false. */
bool ses_api_fail(ses_api_error *e, ses_api_code code, const char *param, const char *fmt, ...)
    SES_PRINTF(4, 5);
/* Replaces options of the command, --top-k, by JSON fields, "top_k". Texts in quotes stay, and so do
 * commands, 'sesame ...'. */
void ses_api_name_fields(char *message);
/* The same as ses_api_fail from a library error, with the names of JSON fields. */
bool ses_api_fail_with(ses_api_error *e, ses_api_code code, const char *param, const ses_err *why);

typedef enum { SES_PRIORITY_INTERACTIVE, SES_PRIORITY_BULK, SES_PRIORITIES } ses_priority;

/* An input of a request. */
typedef struct ses_job_item {
    ses_request *request; /* NULL: it could not be encoded, see error */
    ses_err *error;       /* in the job's memory; NULL: none */
    ses_result result;    /* filled before `done`, unless the item has failed */
} ses_job_item;

typedef void ses_job_fn(ses_worker *w, ses_job *j);

struct ses_job {
    ses_job *next; /* in a queue */
    ses_http_exchange *x;
    const ses_route *route;
    ses_arena mem; /* for the route */
    ses_json_doc *doc;
    const ses_json *body; /* root of doc: an object */
    ses_string path_rest; /* the part of the path that matches the "*" of the route */
    ses_api_error error;
    bool needs_worker; /* a pipeline has to be opened, which takes too long in the I/O thread */

    /* The computation. */
    ses_served_model *model; /* a reference; NULL: none */
    ses_served_pipeline *pipeline;
    ses_job_item *item; /* [n] */
    size_t n, capacity;
    ses_job_fn *done;
    void *state; /* the route's, in mem */
    int64_t tokens, truncated, characters, sequences;

    /* Generation: called in the computing thread after each token; false ends the text. NULL: none. */
    bool (*on_token)(ses_job *j, size_t item, const struct ses_generation_token *t);
    void *generation; /* state of generate_reply.c */
    bool streaming;   /* ses_http_stream_begin has been called */
    bool lines;       /* the stream has a JSON value in each line, instead of events */

    /* Owned by the scheduler between submit and done. */
    ses_priority priority;
    size_t next_item, next_seq; /* the first sequence that has not been dispatched */
    int64_t in_flight;          /* sequences dispatched and not collected */
    bool dispatched;            /* all sequences are dispatched */
    uint64_t deadline_ns;
    uint64_t encode_ns, queued_ns, started_ns, finished_ns; /* duration; points in time */
};

ses_job *ses_job_new(ses_http_exchange *x, const ses_route *route);
void ses_job_free(ses_job *j);    /* does not answer */
void ses_job_restart(ses_job *j); /* as it was before the route was called */

/* Memory of the job, zeroed; NULL and j->error: none. */
void *ses_job_alloc(ses_job *j, size_t n, size_t size);
ses_string ses_job_copy(ses_job *j, const char *s, size_t n); /* p NULL and j->error: no memory */

/* No page of another site has sent the request: such a page must not unload models of a server on the user's
 * machine. */
bool ses_job_is_same_site(const ses_job *j);
/* Chooses the model, unless the job has one: name NULL or "": the first for the task, or the first of all
 * without a task. An unknown name means the only model for the task if the server has the option
 * any_model. False: j->error. */
bool ses_job_find_model(ses_worker *w, ses_job *j, const char *name, const ses_task_entry *task);
/* Chooses the first model that suits; none stays NULL. False: j->error. */
bool ses_job_find_first(ses_worker *w, ses_job *j, bool (*suits)(const ses_served_model *m));
/* Chooses model and pipeline: name NULL or "": the server's first model for the task. settings: of the whole
 * pipeline, or NULL. False: j->error, or j->needs_worker. */
bool ses_job_open(ses_worker *w, ses_job *j, const char *model, const ses_task_entry *task,
                  const ses_setting *settings);
/* A request may have n inputs. False: j->error. */
bool ses_job_check_count(ses_worker *w, ses_job *j, size_t n);
/* Encodes an input. False: j->error; an input that cannot be encoded is not an error of the job, but of the
 * item. */
bool ses_job_add(ses_worker *w, ses_job *j, const ses_item *item);
/* Queues the job; `done` is called later. False: j->error (overloaded, too large). */
bool ses_job_submit(ses_worker *w, ses_job *j, ses_job_fn *done);
/* Sets the deadline, for routes that compute without submitting: ses_job_is_dropped reads it. */
bool ses_job_read_deadline(const ses_worker *w, ses_job *j);
/* The error of an item, with the names of JSON fields; NULL: none. */
const ses_err *ses_job_item_error(const ses_job_item *x);
/* For requests with "truncate": false. False and j->error: an input was truncated. */
bool ses_job_check_truncation(ses_job *j);
/* The first error of an item, as the job's: for responses that cannot contain errors of items. True: no item
 * has failed. */
bool ses_job_check_items(ses_job *j);
ses_api_code ses_api_code_of(const ses_err *why, bool computing);

#endif
