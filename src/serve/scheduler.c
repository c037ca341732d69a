/* Chooses batches from the queues and computes them. */
#include "scheduler.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "generation.h"

#include <math.h>
#include <string.h>

/* After this many interactive batches in a row a bulk batch runs, so that bulk jobs end, too. Bulk batches
 * are shorter by this factor for a while after an interactive job: the next one waits less. */
enum { MAX_STREAK = 16, BULK_DIVISOR = 4 };
static const uint64_t INTERACTIVE_NS = 1000000000;

typedef struct queue {
    ses_job *first, *last;
    int64_t jobs, inputs, tokens;
} queue;

struct ses_scheduler {
    ses_scheduler_options o;
    pthread_mutex_t lock;
    queue queue[SES_PRIORITIES];
    bool computing; /* a thread is in ses_scheduler_run, or has entered */
    int waiting;    /* threads in ses_scheduler_enter */
    pthread_cond_t free;
    int streak;
    bool step_is_next;       /* the last turn was a batch */
    uint64_t interactive_ns; /* time of the last interactive job; 0: none */
    int64_t admitted_inputs, admitted_tokens;
    uint64_t progress_ns;
    double tokens_per_second; /* moving average; 0: unknown */
    double slow_rate;         /* the same of slow batches: models differ */
    size_t last_sequences;
    int64_t last_tokens;
    ses_generations *generations; /* used by the computing thread */

    /* The batch; used by the computing thread. */
    ses_request **request;
    ses_seq **seq;
    ses_job **job;
    size_t n, capacity;
};

ses_scheduler *ses_scheduler_new(const ses_scheduler_options *o, ses_err *e)
{
    ses_scheduler *s = ses_alloc(sizeof *s, e);
    if (!s) return NULL;
    s->o = *o;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->free, NULL);
    s->generations = ses_generations_new(e);
    if (s->generations) return s;
    ses_scheduler_free(s);
    return NULL;
}

void ses_scheduler_free(ses_scheduler *s)
{
    if (!s) return;
    ses_generations_free(s->generations);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->free);
    ses_free(s->request);
    ses_free(s->seq);
    ses_free(s->job);
    ses_free(s);
}

/* ---- admission ---- */

int ses_scheduler_retry_after(ses_scheduler *s)
{
    pthread_mutex_lock(&s->lock);
    double seconds = s->tokens_per_second > 0 ? (double)s->admitted_tokens / s->tokens_per_second : 1;
    pthread_mutex_unlock(&s->lock);
    return seconds < 1 ? 1 : seconds > 60 ? 60 : (int)ceil(seconds);
}

/* The lock is held. A job that is larger than the limit is admitted if nothing else is. */
static bool admits(const ses_scheduler *s, const ses_job *j)
{
    if (!s->admitted_inputs) return true;
    return s->admitted_inputs + (int64_t)j->n <= s->o.queue_inputs &&
           s->admitted_tokens + j->tokens <= s->o.queue_tokens;
}

bool ses_scheduler_submit(ses_scheduler *s, ses_job *j)
{
    pthread_mutex_lock(&s->lock);
    bool ok = admits(s, j);
    if (ok) {
        queue *l = &s->queue[j->priority];
        j->next = NULL;
        if (l->last)
            l->last->next = j;
        else
            l->first = j;
        l->last = j;
        l->jobs++, l->inputs += (int64_t)j->n, l->tokens += j->tokens;
        s->admitted_inputs += (int64_t)j->n, s->admitted_tokens += j->tokens;
        j->queued_ns = ses_clock_ns();
        if (!s->progress_ns) s->progress_ns = j->queued_ns;
        if (j->priority == SES_PRIORITY_INTERACTIVE) s->interactive_ns = j->queued_ns;
    }
    pthread_mutex_unlock(&s->lock);
    return ok || ses_api_fail(&j->error, SES_API_OVERLOADED, NULL,
                              "the queue is full (%lld inputs, %lld tokens); try again later",
                              (long long)s->o.queue_inputs, (long long)s->o.queue_tokens);
}

/* ---- choosing a batch; the lock is held ---- */

/* The next sequence of a job that has not been dispatched; NULL: none. */
static ses_seq *next_sequence(ses_job *j, ses_request **r)
{
    for (; j->next_item < j->n; j->next_item++, j->next_seq = 0) {
        *r = j->item[j->next_item].request;
        if (*r && j->next_seq < (*r)->n_seqs) return &(*r)->seq[j->next_seq];
    }
    return NULL;
}

bool ses_job_is_dropped(ses_job *j, uint64_t now)
{
    if (j->error.code) return true;
    if (ses_http_is_cancelled(j->x))
        return !ses_api_fail(&j->error, SES_API_CANCELLED, NULL, "the client has disconnected");
    return now > j->deadline_ns &&
           !ses_api_fail(&j->error, SES_API_DEADLINE, NULL, "the deadline of the request has passed");
}

static bool add_sequence(ses_scheduler *s, ses_job *j, ses_request *r, ses_seq *q)
{
    if (s->n == s->capacity) {
        size_t more = s->capacity ? 2 * s->capacity : 256, c1 = s->capacity, c2 = c1, c3 = c1;
        if (!ses_array_reserve(&s->request, &c1, more, sizeof *s->request, NULL) ||
            !ses_array_reserve(&s->seq, &c2, more, sizeof *s->seq, NULL) ||
            !ses_array_reserve(&s->job, &c3, more, sizeof *s->job, NULL))
            return false; /* the batch starts with the sequences it has */
        s->capacity = more;
    }
    s->request[s->n] = r, s->seq[s->n] = q, s->job[s->n++] = j;
    return true;
}

/* Removes a job from its queue; before: the one in front of it. */
static void unlink_job(queue *l, ses_job *before, ses_job *j)
{
    *(before ? &before->next : &l->first) = j->next;
    if (l->last == j) l->last = before;
    l->jobs--, l->inputs -= (int64_t)j->n, l->tokens -= j->tokens;
    j->next = NULL;
}

/* Adds sequences of the job to the batch. Returns false if the batch is full. */
static bool take_sequences(ses_scheduler *s, ses_job *j, int64_t most, int64_t *tokens)
{
    ses_request *r;
    for (ses_seq *q; (q = next_sequence(j, &r));) {
        if (s->n && *tokens + (int64_t)q->n > most) return false;
        if (!add_sequence(s, j, r, q)) {
            if (!s->n) ses_api_fail(&j->error, SES_API_BACKEND, NULL, "out of memory");
            return false;
        }
        *tokens += (int64_t)q->n;
        j->next_seq++;
        j->in_flight++;
    }
    j->dispatched = true;
    return true;
}

/* Tokens of a batch of this queue. */
static int64_t batch_limit(const ses_scheduler *s, const queue *l, uint64_t now)
{
    bool shorter =
        l == &s->queue[SES_PRIORITY_BULK] && s->interactive_ns && now - s->interactive_ns < INTERACTIVE_NS;
    return shorter ? s->o.batch_tokens / BULK_DIVISOR : s->o.batch_tokens;
}

/* Fills the batch with sequences of one pipeline: that of the queue's oldest job. Jobs that are complete
 * without computation or dropped are moved to *ended. */
static void fill_batch(ses_scheduler *s, queue *l, ses_job **ended)
{
    uint64_t now = ses_clock_ns();
    int64_t tokens = 0, most = batch_limit(s, l, now);
    const ses_served_pipeline *pipeline = NULL;
    s->n = 0;
    bool more = true;
    for (ses_job *j = l->first, *before = NULL, *next; j && more; j = next) {
        next = j->next;
        bool dropped = ses_job_is_dropped(j, now);
        if (!dropped) {
            if (!pipeline) pipeline = j->pipeline;
            if (j->pipeline != pipeline) {
                before = j;
                continue;
            }
            if (!j->started_ns) j->started_ns = now;
            more = take_sequences(s, j, most, &tokens);
        }
        if (!dropped && !j->dispatched) {
            before = j;
            continue;
        }
        unlink_job(l, before, j);
        j->dispatched = true;
        if (!j->in_flight) j->next = *ended, *ended = j;
    }
    s->last_sequences = s->n ? s->n : s->last_sequences;
    s->last_tokens = s->n ? tokens : s->last_tokens;
}

static queue *choose_queue(ses_scheduler *s)
{
    queue *interactive = &s->queue[SES_PRIORITY_INTERACTIVE], *bulk = &s->queue[SES_PRIORITY_BULK];
    bool take_bulk = bulk->first && (!interactive->first || s->streak >= MAX_STREAK);
    s->streak = take_bulk ? 0 : s->streak + 1;
    return take_bulk ? bulk : interactive;
}

/* ---- computing ---- */

/* Called without the lock. A failure of the whole batch fails its jobs. */
static void compute(ses_scheduler *s)
{
    ses_err e = { 0 };
    uint64_t begin = ses_clock_ns();
    int64_t tokens = s->last_tokens;
    ses_pipeline *p = s->job[0]->pipeline->compute;
    if (!ses_pipeline_run_sequences(p, s->request, s->seq, s->n, &e))
        for (size_t i = 0; i < s->n; i++) ses_api_fail_with(&s->job[i]->error, SES_API_BACKEND, NULL, &e);
    uint64_t ns = ses_clock_ns() - begin;
    double rate = ns ? 1e9 * (double)tokens / (double)ns : 0;
    pthread_mutex_lock(&s->lock);
    s->tokens_per_second = s->tokens_per_second > 0 ? 0.9 * s->tokens_per_second + 0.1 * rate : rate;
    s->slow_rate = s->slow_rate > 0 && rate > s->slow_rate ? 0.95 * s->slow_rate + 0.05 * rate : rate;
    pthread_mutex_unlock(&s->lock);
    s->o.on_batch(s->o.ctx, s->n, tokens, ns);
}

/* Called without the lock. Prompts that have started end later, and leave the batch. */
static void start_prompts(ses_scheduler *s)
{
    size_t left = 0;
    for (size_t i = 0; i < s->n; i++)
        if (!ses_generations_start(s->generations, s->job[i], s->request[i])) s->job[left++] = s->job[i];
    s->n = left;
}

/* One sequence of a job has been collected; adds the job to *ended if it was the last. The lock is held. */
static void end_sequence(ses_job *j, ses_job **ended)
{
    if (--j->in_flight || !j->dispatched) return;
    j->next = *ended;
    *ended = j;
}

static void end_batch(ses_scheduler *s, ses_job **ended)
{
    for (size_t i = 0; i < s->n; i++) end_sequence(s->job[i], ended);
    s->n = 0;
}

static bool has_jobs(const ses_scheduler *s) { return s->queue[0].first || s->queue[1].first; }
static bool has_work(const ses_scheduler *s) { return has_jobs(s) || ses_generations_active(s->generations); }

/* Reports finished jobs, oldest first, without the lock. */
static void report(ses_scheduler *s, ses_worker *w, ses_job *ended, bool more)
{
    ses_job *list = NULL;
    for (ses_job *j = ended, *next; j; j = next) next = j->next, j->next = list, list = j;
    for (ses_job *j = list, *next; j; j = next) {
        next = j->next;
        j->next = NULL;
        j->finished_ns = ses_clock_ns();
        pthread_mutex_lock(&s->lock);
        s->admitted_inputs -= (int64_t)j->n, s->admitted_tokens -= j->tokens;
        pthread_mutex_unlock(&s->lock);
        s->o.finished(s->o.ctx, w, j, more);
    }
}

/* One batch of a queue, or one token for the texts being generated: in turns, so that the responses of a
 * batch do not wait for the token. The lock is held at the beginning and the end. Returns the jobs that
 * have ended. */
static ses_job *run_once(ses_scheduler *s)
{
    ses_job *ended = NULL;
    bool step = ses_generations_active(s->generations) && (s->step_is_next || !has_jobs(s));
    s->step_is_next = !step;
    if (!step) fill_batch(s, choose_queue(s), &ended);
    bool generates = s->n && s->job[0]->pipeline->compute->task->generates;
    pthread_mutex_unlock(&s->lock);
    if (step)
        ses_generations_step(s->generations);
    else if (generates)
        start_prompts(s);
    else if (s->n)
        compute(s);
    pthread_mutex_lock(&s->lock);
    end_batch(s, &ended);
    for (ses_job *j; (j = ses_generations_take_finished(s->generations));) {
        ses_job_is_dropped(j, ses_clock_ns()); /* the text is incomplete then */
        end_sequence(j, &ended);
    }
    s->progress_ns = ses_clock_ns();
    return ended;
}

bool ses_scheduler_run(ses_scheduler *s, ses_worker *w, int max_batches)
{
    pthread_mutex_lock(&s->lock);
    for (int i = 0; !s->computing && has_work(s) && (!max_batches || i < max_batches); i++) {
        s->computing = true;
        ses_job *ended = run_once(s);
        bool more = has_work(s);
        if (!more) s->progress_ns = 0;
        pthread_mutex_unlock(&s->lock);
        report(s, w, ended, more);
        if (more) s->o.between(s->o.ctx, w);
        pthread_mutex_lock(&s->lock);
        s->computing = false;
        if (!s->waiting) continue;
        pthread_cond_signal(&s->free); /* the thread that enters runs the rest */
        break;
    }
    bool left = !s->computing && !s->waiting && has_work(s);
    pthread_mutex_unlock(&s->lock);
    return left;
}

void ses_scheduler_enter(ses_scheduler *s)
{
    pthread_mutex_lock(&s->lock);
    s->waiting++;
    while (s->computing) pthread_cond_wait(&s->free, &s->lock);
    s->waiting--;
    s->computing = true;
    pthread_mutex_unlock(&s->lock);
}

void ses_scheduler_leave(ses_scheduler *s)
{
    pthread_mutex_lock(&s->lock);
    s->computing = false;
    pthread_cond_signal(&s->free);
    pthread_mutex_unlock(&s->lock);
}

bool ses_scheduler_is_quick(ses_scheduler *s, int64_t tokens, double seconds)
{
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < SES_PRIORITIES; i++) tokens += s->queue[i].tokens;
    bool quick =
        !s->computing && !ses_generations_active(s->generations) && (double)tokens < seconds * s->slow_rate;
    pthread_mutex_unlock(&s->lock);
    return quick;
}

ses_scheduler_stats ses_scheduler_get_stats(ses_scheduler *s)
{
    ses_scheduler_stats out = { .batch_tokens = s->o.batch_tokens };
    uint64_t now = ses_clock_ns();
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < SES_PRIORITIES; i++) {
        const queue *l = &s->queue[i];
        out.priority[i] = (ses_priority_stats){ l->jobs, l->inputs, l->tokens, 0 };
        if (l->first && now > l->first->queued_ns)
            out.priority[i].age = 1e-9 * (double)(now - l->first->queued_ns);
    }
    out.admitted_inputs = s->admitted_inputs, out.admitted_tokens = s->admitted_tokens;
    out.last_sequences = s->last_sequences, out.last_tokens = s->last_tokens;
    if (s->progress_ns && now > s->progress_ns)
        out.seconds_since_progress = 1e-9 * (double)(now - s->progress_ns);
    pthread_mutex_unlock(&s->lock);
    return out;
}
