/* Queue of exchanges. */
#include "comm_queue.h"

#include "base/alloc.h"

#include <pthread.h>
#include <string.h>

typedef struct job {
    struct job *next;
    ses_comm_block block[]; /* [2 * size]: send, recv */
} job;

struct ses_comm_queue {
    pthread_t thread;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t change;
    job *first, **end;
    bool is_running, stop;
    bool failed;
    ses_err err;
    int size;
    ses_comm_queue_fn *fn;
    void *ctx;
};

/* Runs the first job, without the lock. */
static void run_first(ses_comm_queue *q)
{
    ses_err e = { 0 };
    job *j = q->first;
    q->is_running = true;
    pthread_mutex_unlock(&q->lock);
    bool ok = q->fn(q->ctx, j->block, j->block + q->size, &e);
    pthread_mutex_lock(&q->lock);
    q->is_running = false;
    q->first = j->next;
    if (!q->first) q->end = &q->first;
    ses_free(j);
    if (!ok && !q->failed) {
        q->failed = true;
        q->err = e;
    }
}

static void drop_jobs(ses_comm_queue *q)
{
    while (q->first) {
        job *j = q->first;
        q->first = j->next;
        ses_free(j);
    }
    q->end = &q->first;
}

static void *work(void *arg)
{
    ses_comm_queue *q = arg;
    pthread_mutex_lock(&q->lock);
    while (!q->stop) {
        if (q->failed) drop_jobs(q);
        if (q->first)
            run_first(q);
        else
            pthread_cond_wait(&q->change, &q->lock);
        if (!q->first || q->failed) pthread_cond_broadcast(&q->change);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

ses_comm_queue *ses_comm_queue_new(int size, ses_comm_queue_fn *fn, void *ctx, ses_err *e)
{
    ses_comm_queue *q = ses_alloc(sizeof *q, e);
    if (!q) return NULL;
    q->size = size;
    q->fn = fn;
    q->ctx = ctx;
    q->end = &q->first;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->change, NULL);
    if (!pthread_create(&q->thread, NULL, work, q)) return q;
    ses_fail(e, SES_ENOMEM, "cannot start a thread");
    pthread_cond_destroy(&q->change);
    pthread_mutex_destroy(&q->lock);
    ses_free(q);
    return NULL;
}

void ses_comm_queue_free(ses_comm_queue *q)
{
    if (!q) return;
    pthread_mutex_lock(&q->lock);
    q->stop = true;
    pthread_cond_broadcast(&q->change);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
    drop_jobs(q);
    pthread_cond_destroy(&q->change);
    pthread_mutex_destroy(&q->lock);
    ses_free(q);
}

/* The caller holds the lock. */
static bool check(const ses_comm_queue *q, ses_err *e)
{
    return !q->failed || ses_fail(e, q->err.code, "%s", q->err.msg);
}

bool ses_comm_queue_add(ses_comm_queue *q, const ses_comm_block *send, const ses_comm_block *recv, ses_err *e)
{
    size_t n = (size_t)q->size;
    job *j = ses_alloc(sizeof *j + 2 * n * sizeof *j->block, e);
    if (!j) return false;
    memcpy(j->block, send, n * sizeof *send);
    memcpy(j->block + n, recv, n * sizeof *recv);
    pthread_mutex_lock(&q->lock);
    bool ok = check(q, e);
    if (ok) {
        *q->end = j;
        q->end = &j->next;
        pthread_cond_broadcast(&q->change);
    }
    pthread_mutex_unlock(&q->lock);
    if (!ok) ses_free(j);
    return ok;
}

bool ses_comm_queue_wait(ses_comm_queue *q, ses_err *e)
{
    pthread_mutex_lock(&q->lock);
    while (q->is_running || (q->first && !q->failed)) pthread_cond_wait(&q->change, &q->lock);
    bool ok = check(q, e);
    pthread_mutex_unlock(&q->lock);
    return ok;
}
