/* The queue of the server's workers: order, limits, calls, and the end. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include "serve/scheduler.h"
#include "serve/workers.h"

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

enum { JOBS = 64 };

/* The work of the only worker, in order: jobs by index, calls as -1. */
static struct {
    sem_t started, release;
    ses_job job[JOBS];
    int order[2 * JOBS], n;
} state;

static void note(int what) { state.order[state.n++] = what; }

/* Job 0 occupies the worker until the test has filled the queue. */
static void handle(ses_worker *w, ses_job *j)
{
    (void)w;
    note((int)(j - state.job));
    if (j != state.job) return;
    sem_post(&state.started);
    sem_wait(&state.release);
}

static void begin(ses_worker *w, ses_job *j)
{
    (void)w;
    note(2000 + (int)(j - state.job));
    if (j == &state.job[4]) ses_workers_push(w->pool, &state.job[5], false);
}

static void finish(ses_worker *w, ses_job *j)
{
    (void)w;
    note(1000 + (int)(j - state.job));
}

static void call(void *ctx, ses_worker *w)
{
    (void)ctx, (void)w;
    note(-1);
}

static ses_workers *open_pool(size_t max_pending)
{
    ses_err e = { 0 };
    ses_workers_options o = {
        .n = 1, .max_pending = max_pending, .handle = handle, .begin = begin, .finish = finish
    };
    state.n = 0;
    ses_workers *p = ses_workers_new(&o, &e);
    CHECK(p && ses_workers_push(p, &state.job[0], false));
    sem_wait(&state.started);
    return p;
}

/* Frees the pool, which does the queued work first. */
static void close_pool(ses_workers *p)
{
    sem_post(&state.release);
    ses_workers_free(p);
}

static void check_order(void)
{
    ses_workers *p = open_pool(JOBS);
    CHECK(ses_workers_push(p, &state.job[1], true) && ses_workers_push(p, &state.job[2], false));
    ses_workers_push_computed(p, &state.job[3]);
    ses_workers_call(p, call, NULL);
    ses_workers_call(p, call, NULL); /* one call is enough */
    CHECK(ses_workers_pending(p) == 3);
    close_pool(p);
    static const int want[] = { 0, -1, 1003, 2, 1 };
    CHECK_MSG(state.n == 5 && !memcmp(state.order, want, sizeof want), "%d entries", state.n);
}

/* A worker that helps takes computed jobs, then small requests, but no bulk requests or later ones. */
static void check_help(void)
{
    ses_workers *p = open_pool(JOBS);
    ses_worker w = { .pool = p };
    CHECK(!ses_workers_have_idle(p));
    CHECK(ses_workers_push(p, &state.job[1], true) && ses_workers_push(p, &state.job[2], false));
    ses_workers_push_computed(p, &state.job[3]);
    CHECK(ses_workers_push(p, &state.job[4], false));
    ses_workers_help(p, &w);
    CHECK(ses_workers_pending(p) == 2);
    static const int want[] = { 0, 1003, 2002, 2004 };
    CHECK_MSG(state.n == 4 && !memcmp(state.order, want, sizeof want), "%d entries", state.n);
    close_pool(p);
    CHECK(state.n == 6);
}

/* Small requests come first, but bulk requests are taken in between. */
static void check_no_starvation(void)
{
    ses_workers *p = open_pool(JOBS);
    for (int i = 1; i < JOBS; i++) CHECK(ses_workers_push(p, &state.job[i], i < 3));
    close_pool(p);
    int first = 0, second = 0;
    for (int i = 0; i < state.n; i++) {
        if (state.order[i] == 1) first = i;
        if (state.order[i] == 2) second = i;
    }
    CHECK(state.n == JOBS);
    CHECK_MSG(first > 8 && first < 24 && second > first + 8 && second < first + 24, "%d, %d", first, second);
}

static void check_limit(void)
{
    ses_workers *p = open_pool(4);
    for (int i = 1; i < 5; i++) CHECK(ses_workers_push(p, &state.job[i], i % 2));
    CHECK(!ses_workers_push(p, &state.job[5], false) && !ses_workers_push(p, &state.job[5], true));
    close_pool(p);
    CHECK(state.n == 5);
}

/* A thread that enters the scheduler waits for the one that has entered. */
static void *enter(void *s)
{
    ses_scheduler_enter(s);
    note(7);
    ses_scheduler_leave(s);
    return NULL;
}

static void check_enter(void)
{
    ses_err e = { 0 };
    pthread_t other[2];
    struct timespec a_while = { 0, 20000000 };
    ses_scheduler *s = ses_scheduler_new(&(ses_scheduler_options){ .batch_tokens = 1 }, &e);
    if (!CHECK(s != NULL)) return;
    state.n = 0;
    ses_scheduler_enter(s);
    for (int i = 0; i < 2; i++) CHECK(!pthread_create(&other[i], NULL, enter, s));
    nanosleep(&a_while, NULL);
    CHECK(state.n == 0 && !ses_scheduler_run(s, NULL, 0) && !ses_scheduler_is_quick(s, 1, 1));
    ses_scheduler_leave(s);
    for (int i = 0; i < 2; i++) pthread_join(other[i], NULL);
    CHECK(state.n == 2);
    ses_scheduler_free(s);
}

int main(void)
{
    check_enter();
    sem_init(&state.started, 0, 0);
    sem_init(&state.release, 0, 0);
    check_order();
    check_help();
    check_no_starvation();
    check_limit();
    return check_report();
}
