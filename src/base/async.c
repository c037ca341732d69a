/* Async worker: one thread that waits for a function to run. */
#include "async.h"

#include "alloc.h"

#include <pthread.h>

struct ses_async {
    pthread_t thread;
    pthread_mutex_t lock; /* guards `state`; while it is RUNNING, the fields after it belong to the thread */
    pthread_cond_t change;
    enum { IDLE, RUNNING, STOP } state;
    ses_async_fn *fn;
    void *ctx;
    bool ok;
    ses_err err;
};

static void change_to(ses_async *a, int state)
{
    a->state = state;
    pthread_cond_broadcast(&a->change);
}

static void *work(void *arg)
{
    ses_async *a = arg;
    pthread_mutex_lock(&a->lock);
    for (;;) {
        while (a->state == IDLE) pthread_cond_wait(&a->change, &a->lock);
        if (a->state == STOP) break;
        pthread_mutex_unlock(&a->lock);
        a->err = (ses_err){ 0 };
        a->ok = a->fn(a->ctx, &a->err);
        pthread_mutex_lock(&a->lock);
        change_to(a, IDLE);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

ses_async *ses_async_new(ses_err *e)
{
    ses_async *a = ses_alloc(sizeof *a, e);
    if (!a) return NULL;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->change, NULL);
    if (!pthread_create(&a->thread, NULL, work, a)) return a;
    ses_fail(e, SES_ENOMEM, "cannot start a thread");
    pthread_cond_destroy(&a->change);
    pthread_mutex_destroy(&a->lock);
    ses_free(a);
    return NULL;
}

static void wait_until_idle(ses_async *a)
{
    while (a->state == RUNNING) pthread_cond_wait(&a->change, &a->lock);
}

void ses_async_free(ses_async *a)
{
    if (!a) return;
    pthread_mutex_lock(&a->lock);
    wait_until_idle(a);
    change_to(a, STOP);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    pthread_cond_destroy(&a->change);
    pthread_mutex_destroy(&a->lock);
    ses_free(a);
}

void ses_async_start(ses_async *a, ses_async_fn *fn, void *ctx)
{
    pthread_mutex_lock(&a->lock);
    a->fn = fn;
    a->ctx = ctx;
    change_to(a, RUNNING);
    pthread_mutex_unlock(&a->lock);
}

bool ses_async_wait(ses_async *a, ses_err *e)
{
    pthread_mutex_lock(&a->lock);
    wait_until_idle(a);
    bool ok = a->ok;
    if (!ok && e) *e = a->err;
    pthread_mutex_unlock(&a->lock);
    return ok;
}
