/* A thread that lives while models are loaded. */
#include "reloader.h"

#include "base/alloc.h"

struct ses_reloader {
    ses_worker worker; /* the thread as a worker, for answers */
    ses_model_list *models;
    ses_registry *registry;
    FILE *log;
    pthread_mutex_t lock; /* guards the fields below */
    pthread_t thread;
    bool started, running; /* started: the thread has to be joined */
    bool all;              /* all models are to be loaded */
    ses_job *first;        /* jobs that wait for a model, newest first */
};

ses_reloader *ses_reloader_new(struct ses_server *server, ses_model_list *models, ses_registry *registry,
                               FILE *log, ses_err *e)
{
    ses_reloader *r = ses_alloc(sizeof *r, e);
    if (!r) return NULL;
    *r = (ses_reloader){ .models = models, .registry = registry, .log = log };
    r->worker.server = server;
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

void ses_reloader_free(ses_reloader *r)
{
    if (!r) return;
    pthread_mutex_lock(&r->lock);
    r->all = false;
    pthread_mutex_unlock(&r->lock);
    if (r->started) pthread_join(r->thread, NULL);
    pthread_mutex_destroy(&r->lock);
    ses_free(r);
}

static void load_all(ses_reloader *r)
{
    ses_err e = { 0 };
    bool ok = ses_model_list_apply(r->models, r->registry, true, &e);
    if (!r->log) return;
    if (ok)
        fprintf(r->log, "sesame serve: models reloaded\n");
    else
        fprintf(r->log, "sesame serve: reload: %s; the loaded models stay\n", e.msg);
    fflush(r->log);
}

static void load_one(ses_reloader *r, ses_job *j)
{
    ses_err e = { 0 };
    if (!ses_registry_reload(r->registry, j->model->name, &e))
        ses_api_fail_with(&j->error, SES_API_BACKEND, NULL, &e);
    j->done(&r->worker, j);
}

static void *run(void *ctx)
{
    ses_reloader *r = ctx;
    pthread_mutex_lock(&r->lock);
    while (r->all || r->first) {
        bool all = r->all;
        ses_job *j = all ? NULL : r->first;
        if (j) r->first = j->next, j->next = NULL;
        r->all = false;
        pthread_mutex_unlock(&r->lock);
        if (all)
            load_all(r);
        else
            load_one(r, j);
        pthread_mutex_lock(&r->lock);
    }
    r->running = false;
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* The lock is held. */
static bool start(ses_reloader *r)
{
    if (r->running) return true;
    if (r->started) pthread_join(r->thread, NULL); /* it has ended, or ends now */
    r->running = r->started = !pthread_create(&r->thread, NULL, run, r);
    return r->running;
}

void ses_reloader_load_all(ses_reloader *r)
{
    pthread_mutex_lock(&r->lock);
    r->all = true;
    if (!start(r) && r->log) fprintf(r->log, "sesame serve: reload: cannot start a thread\n");
    pthread_mutex_unlock(&r->lock);
}

bool ses_reloader_load(ses_reloader *r, ses_job *j, ses_job_fn *done)
{
    j->done = done;
    pthread_mutex_lock(&r->lock);
    bool ok = start(r); /* it waits for the lock */
    if (ok) j->next = r->first, r->first = j;
    pthread_mutex_unlock(&r->lock);
    return ok || ses_api_fail(&j->error, SES_API_UNAVAILABLE, NULL, "cannot start a thread; try again later");
}
