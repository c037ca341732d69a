/* Thread pool with work stealing between the parts of a loop. */
#define _GNU_SOURCE
#include "thread_pool.h"

#include "alloc.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

/* A job is one parallel loop. Its chunks are divided into parts, one per thread, so that each thread runs
 * consecutive chunks: the prefetcher then loads data of the next chunk, and jobs of the same shape find their
 * data in the cache of the core that wrote it. A thread that has finished its part takes chunks from the
 * other parts.
 *
 * The caller publishes a job by setting the number of chunks `left` in each part. A thread that decrements
 * this number runs a chunk. The job is finished when no chunk is `pending`. The caller therefore never waits
 * for a worker that has not started (another process may use its core). A late worker finds either no chunk,
 * or a chunk of the job that runs then, whose fn, ctx and parts are valid while a chunk is pending. Workers
 * spin briefly, then sleep. */
enum { SPINS = 20000, JOIN_SPINS = 2000, PARTS = 16, LINE = 64 };

typedef struct worker {
    ses_thread_pool *pool;
    pthread_t thread;
    void *scratch;
    int part; /* the part it starts with */
} worker;

typedef struct part {
    atomic_llong left;       /* chunks not started */
    int64_t end;             /* its last chunk + 1 */
    char padding[LINE - 16]; /* parts are on separate cache lines */
} part;

struct ses_thread_pool {
    int threads, started;     /* workers started: threads - 1 of them */
    pthread_mutex_t job_lock; /* held by the caller while its job runs */
    pthread_mutex_t lock;     /* guards sleeping on `wake` */
    pthread_cond_t wake;
    atomic_int sleepers;
    atomic_bool stop;
    ses_chunk_fn *fn;
    void *ctx;
    worker *w;
    int parts;
    char padding[LINE];
    atomic_llong pending; /* chunks not finished */
    part part[PARTS];
};

static void relax(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#else
    sched_yield();
#endif
}

static void run_part(ses_thread_pool *p, part *from, void *scratch)
{
    long long left = atomic_load_explicit(&from->left, memory_order_relaxed);
    while (left > 0) {
        if (!atomic_compare_exchange_weak_explicit(&from->left, &left, left - 1, memory_order_acquire,
                                                   memory_order_relaxed))
            continue;
        p->fn(p->ctx, from->end - left, scratch);
        atomic_fetch_sub_explicit(&p->pending, 1, memory_order_release);
        left = atomic_load_explicit(&from->left, memory_order_relaxed);
    }
}

static void run_chunks(ses_thread_pool *p, const worker *w)
{
    for (int i = 0; i < p->parts; i++) run_part(p, &p->part[(w->part + i) % p->parts], w->scratch);
}

static bool idle(ses_thread_pool *p)
{
    for (int i = 0; i < p->parts; i++)
        if (atomic_load(&p->part[i].left) > 0) return false;
    return !atomic_load(&p->stop);
}

static void await_job(ses_thread_pool *p)
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
        run_chunks(w->pool, w);
    }
}

/* Call after the condition that workers wait for has changed, with sequential consistency: a worker either
 * observes the change or is counted in `sleepers`. */
static void wake_up(ses_thread_pool *p)
{
    if (!atomic_load(&p->sleepers)) return;
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

/* Waits until every chunk is finished. If threads outnumber cores, a worker in a chunk may be descheduled:
 * yield the core to it instead of spinning for a whole time slice. */
static void join(ses_thread_pool *p)
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

ses_thread_pool *ses_thread_pool_new(int threads, ses_err *e)
{
    ses_thread_pool *p = ses_alloc(sizeof *p, e);
    if (!p) return NULL;
    pthread_mutex_init(&p->job_lock, NULL);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    if (threads < 1 || threads > 1024) {
        ses_fail(e, SES_EARG, "%d threads, expected 1 to 1024", threads);
        goto fail;
    }
    p->threads = threads;
    p->parts = threads < PARTS ? threads : PARTS;
    p->w = ses_alloc_array((size_t)threads, sizeof *p->w, e);
    if (!p->w) goto fail;
    for (int i = 0; i < threads; i++) {
        p->w[i].pool = p;
        p->w[i].part = i % p->parts;
        p->w[i].scratch = ses_alloc_aligned(SES_SCRATCH_BYTES, e);
        if (!p->w[i].scratch) goto fail;
    }
    for (int i = 1; i < threads; i++, p->started++)
        if (pthread_create(&p->w[i].thread, NULL, work, &p->w[i])) {
            ses_fail(e, SES_ENOMEM, "cannot start thread %d of %d", i + 1, threads);
            goto fail;
        }
    return p;
fail:
    ses_thread_pool_free(p);
    return NULL;
}

void ses_thread_pool_free(ses_thread_pool *p)
{
    if (!p) return;
    atomic_store(&p->stop, true);
    wake_up(p);
    for (int i = 1; i <= p->started; i++) pthread_join(p->w[i].thread, NULL);
    for (int i = 0; p->w && i < p->threads; i++) ses_free(p->w[i].scratch);
    ses_free(p->w);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    pthread_mutex_destroy(&p->job_lock);
    ses_free(p);
}

int ses_thread_pool_size(const ses_thread_pool *p) { return p->threads; }

/* Publishes the caller's own part last: workers start as soon as they see theirs. */
static void publish(ses_thread_pool *p, int64_t chunks)
{
    int64_t base = chunks / p->parts, rest = chunks % p->parts, end = chunks;
    for (int i = p->parts; i-- > 0;) {
        int64_t n = base + (i < rest);
        p->part[i].end = end;
        atomic_store(&p->part[i].left, n);
        end -= n;
    }
}

void ses_parallel_for(ses_thread_pool *p, int64_t chunks, ses_chunk_fn *fn, void *ctx)
{
    if (chunks <= 0) return;
    if (!p) {
        for (int64_t i = 0; i < chunks; i++) fn(ctx, i, NULL);
        return;
    }
    pthread_mutex_lock(&p->job_lock);
    if (chunks == 1 || p->started == 0) {
        for (int64_t i = 0; i < chunks; i++) fn(ctx, i, p->w[0].scratch);
    } else {
        p->fn = fn;
        p->ctx = ctx;
        atomic_store_explicit(&p->pending, chunks, memory_order_relaxed);
        publish(p, chunks);
        wake_up(p);
        run_chunks(p, &p->w[0]);
        join(p);
    }
    pthread_mutex_unlock(&p->job_lock);
}

int ses_cpu_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}
