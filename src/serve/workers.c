/* Worker threads and their queue. */
#include "workers.h"

#include "base/alloc.h"

/* After this many small requests in a row a bulk request is taken. */
enum { MAX_STREAK = 16 };

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
    queue fresh, fresh_bulk, computed;
    int streak; /* new requests taken since the last bulk request */
    void (*call)(void *ctx, ses_worker *w);
    void *call_ctx;
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

/* The next new request: large ones wait, since their tokens take long, but not for ever. */
static ses_job *take_fresh(ses_workers *p)
{
    bool bulk = p->fresh_bulk.first && (!p->fresh.first || p->streak >= MAX_STREAK);
    p->streak = bulk ? 0 : p->streak + 1;
    return take(bulk ? &p->fresh_bulk : &p->fresh);
}

/* Runs the next job; the lock is held at the beginning and the end. False: nothing is queued. A call comes
 * first: jobs wait for it that no thread computes. */
static bool run_next(ses_workers *p, ses_worker *w)
{
    void (*call)(void *, ses_worker *) = p->call, *ctx = p->call_ctx;
    p->call = NULL;
    ses_job *computed = call ? NULL : take(&p->computed), *fresh = call || computed ? NULL : take_fresh(p);
    if (!computed && !fresh && !call) return false;
    pthread_mutex_unlock(&p->lock);
    if (computed) p->o.finish(w, computed);
    if (fresh) p->o.handle(w, fresh);
    if (call) call(ctx, w);
    pthread_mutex_lock(&p->lock);
    return true;
}

void ses_workers_help(ses_workers *p, ses_worker *w)
{
    pthread_mutex_lock(&p->lock);
    /* requests that arrive meanwhile wait for the next batch */
    for (size_t n = p->computed.n + p->fresh.n; n; n--) {
        ses_job *computed = take(&p->computed), *fresh = computed ? NULL : take(&p->fresh);
        if (!computed && !fresh) break;
        pthread_mutex_unlock(&p->lock);
        if (computed) p->o.finish(w, computed);
        if (fresh) p->o.begin(w, fresh);
        pthread_mutex_lock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);
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
    for (int i = 0; i < p->started; i++) pthread_join(p->worker[i].thread, NULL);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    ses_free(p->worker);
    ses_free(p);
}

bool ses_workers_push(ses_workers *p, ses_job *j, bool bulk)
{
    pthread_mutex_lock(&p->lock);
    bool ok = p->fresh.n + p->fresh_bulk.n < p->o.max_pending;
    if (ok) put(bulk ? &p->fresh_bulk : &p->fresh, j);
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

void ses_workers_call(ses_workers *p, void (*fn)(void *ctx, ses_worker *w), void *ctx)
{
    pthread_mutex_lock(&p->lock);
    p->call = fn, p->call_ctx = ctx;
    pthread_mutex_unlock(&p->lock);
    pthread_cond_signal(&p->work);
}

size_t ses_workers_pending(ses_workers *p)
{
    pthread_mutex_lock(&p->lock);
    size_t n = p->fresh.n + p->fresh_bulk.n + p->computed.n;
    pthread_mutex_unlock(&p->lock);
    return n;
}

bool ses_workers_have_idle(ses_workers *p)
{
    pthread_mutex_lock(&p->lock);
    bool idle = p->sleeping > 0;
    pthread_mutex_unlock(&p->lock);
    return idle;
}
