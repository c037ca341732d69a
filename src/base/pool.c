#define _GNU_SOURCE
#include "pool.h"

#include "alloc.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

/* A job is one parallel loop. The caller publishes it by setting how many of its chunks are `left`; whoever
 * takes one off that number runs a chunk, and the job is over when none is `pending`. So nobody waits for a
 * worker that has not begun (others may need its core), and a late worker meets either no chunk or one of the
 * job that runs then, whose fn, ctx and chunks stand as long as a chunk is pending. Workers spin a little,
 * then sleep. */
enum { SPINS = 20000, JOIN_SPINS = 2000 };

typedef struct worker {
    ses_pool *pool;
    pthread_t thread;
    void *scratch;
} worker;

struct ses_pool {
    int threads, started; /* workers started: threads - 1 of them */
    pthread_mutex_t turn; /* held by the caller whose job runs */
    pthread_mutex_t lock; /* guards sleeping on `wake` */
    pthread_cond_t wake;
    atomic_int sleepers;
    atomic_bool stop;
    atomic_llong left, pending; /* chunks not drawn, not done */
    int64_t chunks;
    ses_chunk_fn *fn;
    void *ctx;
    worker *w;
};

static void relax(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#else
    sched_yield();
#endif
}

static void draw(ses_pool *p, void *scratch)
{
    long long left = atomic_load_explicit(&p->left, memory_order_relaxed);
    while (left > 0) {
        if (!atomic_compare_exchange_weak_explicit(&p->left, &left, left - 1, memory_order_acquire,
                                                   memory_order_relaxed))
            continue;
        p->fn(p->ctx, p->chunks - left, scratch);
        atomic_fetch_sub_explicit(&p->pending, 1, memory_order_release);
        left = atomic_load_explicit(&p->left, memory_order_relaxed);
    }
}

static bool idle(ses_pool *p) { return atomic_load(&p->left) <= 0 && !atomic_load(&p->stop); }

static void await_job(ses_pool *p)
{
    for (int i = 0; i < SPINS; i++) {
        if (!idle(p)) return;
        relax();
    }
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->sleepers, 1);
    while (idle(p)) pthread_cond_wait(&p->wake, &p->lock);
    atomic_fetch_sub(&p->sleepers, 1);
    pthread_mutex_unlock(&p->lock);
}

static void *work(void *arg)
{
    worker *w = arg;
    for (;;) {
        await_job(w->pool);
        if (atomic_load(&w->pool->stop)) return NULL;
        draw(w->pool, w->scratch);
    }
}

/* After what workers wait for has changed, sequentially consistent: a worker either sees it or is counted
 * asleep. */
static void wake_up(ses_pool *p)
{
    if (!atomic_load(&p->sleepers)) return;
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

/* Wait until every chunk is done. Where threads outnumber cores a worker amid one may not even be running:
 * give it the core rather than spin through a time slice. */
static void join(ses_pool *p)
{
    for (int spins = 0; atomic_load_explicit(&p->pending, memory_order_acquire) > 0;) {
        if (spins < JOIN_SPINS) {
            relax();
            spins++;
        } else {
            sched_yield();
        }
    }
}

ses_pool *ses_pool_new(int threads, ses_err *e)
{
    ses_pool *p = ses_alloc(sizeof *p, e);
    if (!p) return NULL;
    pthread_mutex_init(&p->turn, NULL);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    if (threads < 1 || threads > 1024) {
        ses_fail(e, SES_EARG, "%d threads: from 1 to 1024 are possible", threads);
        goto fail;
    }
    p->threads = threads;
    p->w = ses_alloc_array((size_t)threads, sizeof *p->w, e);
    if (!p->w) goto fail;
    for (int i = 0; i < threads; i++) {
        p->w[i].pool = p;
        p->w[i].scratch = ses_alloc_aligned(SES_SCRATCH, e);
        if (!p->w[i].scratch) goto fail;
    }
    for (int i = 1; i < threads; i++, p->started++)
        if (pthread_create(&p->w[i].thread, NULL, work, &p->w[i])) {
            ses_fail(e, SES_ENOMEM, "cannot start thread %d of %d", i + 1, threads);
            goto fail;
        }
    return p;
fail:
    ses_pool_free(p);
    return NULL;
}

void ses_pool_free(ses_pool *p)
{
    if (!p) return;
    atomic_store(&p->stop, true);
    wake_up(p);
    for (int i = 1; i <= p->started; i++) pthread_join(p->w[i].thread, NULL);
    for (int i = 0; p->w && i < p->threads; i++) ses_free(p->w[i].scratch);
    ses_free(p->w);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    pthread_mutex_destroy(&p->turn);
    ses_free(p);
}

int ses_pool_threads(const ses_pool *p) { return p->threads; }

void ses_parallel(ses_pool *p, int64_t chunks, ses_chunk_fn *fn, void *ctx)
{
    if (chunks <= 0) return;
    pthread_mutex_lock(&p->turn);
    if (chunks == 1 || p->started == 0) {
        for (int64_t i = 0; i < chunks; i++) fn(ctx, i, p->w[0].scratch);
    } else {
        p->fn = fn;
        p->ctx = ctx;
        p->chunks = chunks;
        atomic_store_explicit(&p->pending, chunks, memory_order_relaxed);
        atomic_store(&p->left, chunks);
        wake_up(p);
        draw(p, p->w[0].scratch);
        join(p);
    }
    pthread_mutex_unlock(&p->turn);
}

int ses_cpu_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}
