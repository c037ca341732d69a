/* Worker threads and their queue. */
#include "workers.h"

#include "base/alloc.h"

#include <string.h>

enum { MAX_CALLS = 8 };

/* See ses_workers_call. */
typedef struct call {
    void (*fn)(void *ctx, ses_worker *w);
    void *ctx;
} call;

typedef struct queue {
    ses_job *first, *last;
    size_t n;
} queue;

struct ses_workers {
    ses_workers_options o;
    ses_worker *worker;
    int started;
    pthread_mutex_t lock;
    pthread_cond_t work;
    int sleeping;
    bool stopping;
    queue fresh, computed;
    call call[MAX_CALLS];
    size_t n_calls;
};

static void put(queue *q, ses_job *j)
{
    j->next = NULL;
    if (q->last)
        q->last->next = j;
    else
        q->first = j;
    q->last = j;
    q->n++;
}

static ses_job *take(queue *q)
{
    ses_job *j = q->first;
    if (!j) return NULL;
    q->first = j->next;
    if (!q->first) q->last = NULL;
    q->n--;
    j->next = NULL;
    return j;
}

static bool take_call(ses_workers *p, call *c)
{
    if (!p->n_calls) return false;
    *c = p->call[0];
    memmove(p->call, p->call + 1, --p->n_calls * sizeof *p->call);
    return true;
}

/* Runs the next job; the lock is held at the beginning and the end. False: nothing is queued. */
static bool run_next(ses_workers *p, ses_worker *w)
{
    call c = { 0 };
    ses_job *computed = take(&p->computed), *fresh = computed ? NULL : take(&p->fresh);
    bool calls = !computed && !fresh && take_call(p, &c);
    if (!computed && !fresh && !calls) return false;
    pthread_mutex_unlock(&p->lock);
    if (computed) p->o.finish(w, computed);
    if (fresh) p->o.handle(w, fresh);
    if (calls) c.fn(c.ctx, w);
    pthread_mutex_lock(&p->lock);
    return true;
}

static void *run(void *ctx)
{
    ses_worker *w = ctx;
    ses_workers *p = w->pool;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        if (run_next(p, w)) continue;
        if (p->stopping) break;
        p->sleeping++;
        pthread_cond_wait(&p->work, &p->lock);
        p->sleeping--;
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

ses_workers *ses_workers_new(const ses_workers_options *o, ses_err *e)
{
    ses_workers *p = ses_alloc(sizeof *p, e);
    if (!p) return NULL;
    p->o = *o;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    p->worker = ses_alloc_array((size_t)o->n, sizeof *p->worker, e);
    for (; p->worker && p->started < o->n; p->started++) {
        ses_worker *w = &p->worker[p->started];
        *w = (ses_worker){ .server = o->server, .pool = p, .index = p->started };
        if (pthread_create(&w->thread, NULL, run, w)) {
            ses_fail(e, SES_ENOMEM, "cannot start a worker thread");
            break;
        }
    }
    if (p->started == o->n) return p;
    ses_workers_free(p);
    return NULL;
}

void ses_workers_free(ses_workers *p)
{
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->started; i++) {
        pthread_join(p->worker[i].thread, NULL);
        ses_encode_ctx_free(p->worker[i].tokens);
    }
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    ses_free(p->worker);
    ses_free(p);
}

bool ses_workers_push(ses_workers *p, ses_job *j)
{
    pthread_mutex_lock(&p->lock);
    bool ok = p->fresh.n < p->o.max_pending;
    if (ok) put(&p->fresh, j);
    bool wake = ok && p->sleeping;
    pthread_mutex_unlock(&p->lock);
    if (wake) pthread_cond_signal(&p->work);
    return ok;
}

void ses_workers_push_computed(ses_workers *p, ses_job *j)
{
    pthread_mutex_lock(&p->lock);
    put(&p->computed, j);
    bool wake = p->sleeping;
    pthread_mutex_unlock(&p->lock);
    if (wake) pthread_cond_signal(&p->work);
}

bool ses_workers_call(ses_workers *p, void (*fn)(void *ctx, ses_worker *w), void *ctx)
{
    pthread_mutex_lock(&p->lock);
    size_t i = 0;
    while (i < p->n_calls && (p->call[i].fn != fn || p->call[i].ctx != ctx)) i++;
    bool ok = i < MAX_CALLS;
    if (i == p->n_calls && ok) p->call[p->n_calls++] = (call){ fn, ctx };
    pthread_mutex_unlock(&p->lock);
    pthread_cond_signal(&p->work);
    return ok;
}

size_t ses_workers_pending(ses_workers *p)
{
    pthread_mutex_lock(&p->lock);
    size_t n = p->fresh.n + p->computed.n;
    pthread_mutex_unlock(&p->lock);
    return n;
}
