/* Runs prompts one after another. */
#include "generation.h"

#include "base/alloc.h"

struct ses_generations {
    ses_job **finished;
    size_t n, capacity;
};

ses_generations *ses_generations_new(ses_err *e) { return ses_alloc(sizeof(ses_generations), e); }

void ses_generations_free(ses_generations *g)
{
    if (!g) return;
    ses_free(g->finished);
    ses_free(g);
}

typedef struct stream {
    ses_job *job;
    size_t item;
} stream;

static bool send_text(void *ctx, const char *piece, size_t n)
{
    stream *s = ctx;
    return !ses_http_is_cancelled(s->job->x) && s->job->on_text(s->job, s->item, piece, n);
}

void ses_generations_start(ses_generations *g, ses_job *const *job, ses_request **request, ses_seq **seq,
                           size_t n)
{
    if (!ses_array_reserve(&g->finished, &g->capacity, n, sizeof *g->finished, NULL)) return;
    for (size_t i = 0; i < n; i++) {
        ses_err e = { 0 };
        stream s = { .job = job[i] };
        for (size_t k = 0; k < job[i]->n; k++)
            if (job[i]->item[k].request == request[i]) s.item = k;
        ses_pipeline *p = job[i]->pipeline->compute;
        ses_pipeline_set_stream(p, job[i]->on_text ? send_text : NULL, &s);
        if (!ses_pipeline_run_sequences(p, request + i, seq + i, 1, &e))
            ses_api_fail_with(&job[i]->error, SES_API_BACKEND, NULL, &e);
        g->finished[g->n++] = job[i];
    }
}

void ses_generations_step(ses_generations *g) { (void)g; }
bool ses_generations_active(const ses_generations *g) { return g->n > 0; }
ses_job *ses_generations_take_finished(ses_generations *g) { return g->n ? g->finished[--g->n] : NULL; }
