/* Continuous batching of generated texts: one generator per model, and one token for every text in each
 * step. */
#include "generation.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "task/generation_task.h"

enum { CACHE_TOKENS = 32768, MAX_SEQUENCES = 64, PREFILL_TOKENS = 1024 };

/* A prompt in progress. */
typedef struct text {
    struct text *next;
    ses_job *job;
    ses_request *request;
    size_t item;
    bool finished, leads; /* leads: the first of its model's texts in this step */
} text;

struct ses_generations {
    text *first;
};

ses_generations *ses_generations_new(ses_err *e) { return ses_alloc(sizeof(ses_generations), e); }

void ses_generations_free(ses_generations *g) { ses_free(g); }

static bool on_token(void *ctx, ses_request *r, const ses_generation_token *t)
{
    text *x = ctx;
    (void)r;
    return !x->job->on_token || x->job->on_token(x->job, x->item, t);
}

static void on_finish(void *ctx, ses_request *r)
{
    text *x = ctx;
    (void)r;
    x->finished = true;
}

static size_t find_item(const ses_job *j, const ses_request *r)
{
    size_t i = 0;
    while (i + 1 < j->n && j->item[i].request != r) i++;
    return i;
}

static ses_generator *generator_of(ses_served_model *m, ses_err *e)
{
    if (m->generator) return m->generator;
    m->generator = ses_generator_new(m->model, CACHE_TOKENS, MAX_SEQUENCES, e);
    if (m->generator) ses_generator_set_prefill_tokens(m->generator, PREFILL_TOKENS);
    return m->generator;
}

static bool start(ses_generations *g, ses_job *j, ses_request *r, ses_err *e)
{
    ses_generator *generator = generator_of(j->model, e);
    text *x = generator ? ses_alloc(sizeof *x, e) : NULL;
    if (!x) return false;
    *x = (text){ .job = j, .request = r, .item = find_item(j, r), .next = g->first };
    ses_generation_callbacks c = { .on_token = j->on_token ? on_token : NULL,
                                   .on_finish = on_finish,
                                   .ctx = x };
    if (!ses_generation_task_start(j->pipeline->compute, r, generator, &c, e)) {
        ses_free(x);
        return false;
    }
    g->first = x;
    return true;
}

bool ses_generations_start(ses_generations *g, ses_job *j, ses_request *r)
{
    ses_err e = { 0 };
    if (start(g, j, r, &e)) return true;
    ses_err *why = ses_arena_array(&r->mem, 1, sizeof *why, NULL);
    if (why)
        *why = e, r->error = why;
    else
        ses_api_fail_with(&j->error, SES_API_BACKEND, NULL, &e);
    return false;
}

/* Cancels texts whose client has left or whose deadline has passed. */
static void cancel_dropped(ses_generations *g)
{
    uint64_t now = ses_clock_ns();
    for (text *x = g->first; x; x = x->next)
        if (!x->finished && (ses_http_is_cancelled(x->job->x) || now > x->job->deadline_ns))
            ses_generation_task_cancel(x->request);
}

/* Texts may finish during the step, so the leaders are chosen before it. */
void ses_generations_step(ses_generations *g)
{
    cancel_dropped(g);
    for (text *x = g->first; x; x = x->next) {
        x->leads = !x->finished;
        for (text *before = g->first; before != x && x->leads; before = before->next)
            x->leads = !before->leads || before->job->model != x->job->model;
    }
    for (text *x = g->first; x; x = x->next) /* one step for each generator */
        if (x->leads) ses_generator_step(x->job->model->generator);
}

bool ses_generations_active(const ses_generations *g) { return g->first != NULL; }

ses_job *ses_generations_take_finished(ses_generations *g)
{
    for (text **at = &g->first; *at; at = &(*at)->next) {
        text *x = *at;
        if (!x->finished) continue;
        ses_job *j = x->job;
        *at = x->next;
        ses_free(x);
        return j;
    }
    return NULL;
}
