/* Greedy decoding and sampling: each hypothesis takes the most likely token, or one drawn by its
 * probability. */
#include "base/rng.h"
#include "generate_impl.h"

#include <math.h>
#include <string.h>

static int64_t count_hyps(const ses_generate_options *o) { return o->num_return_sequences; }

static bool begin(ses_generator *g, ses_prompt_state *p, ses_err *e)
{
    (void)g, (void)p, (void)e;
    return true;
}

static int32_t most_likely(const float *score, int64_t n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (score[i] > score[best]) best = i;
    return best;
}

/* The random number depends on the seed, the prompt, the hypothesis and the position only. */
static int32_t sample(const ses_generator *g, const ses_prompt_state *p, int64_t hyp, int64_t position)
{
    ses_rng_key key = { .seed = p->o.seed, .step = (uint32_t)position, .site = p->random_site };
    uint32_t x[4];
    ses_philox(x, key, (uint64_t)hyp);
    double u = ((double)(((uint64_t)x[0] << 21) ^ (x[1] >> 11))) * 0x1p-53, sum = 0;
    double lse = ses_log_sum_exp(g->score, g->vocab_size);
    int32_t last = most_likely(g->score, g->vocab_size);
    for (int32_t i = 0; i < g->vocab_size; i++) {
        if (!(g->score[i] > -INFINITY)) continue;
        sum += exp((double)g->score[i] - lse);
        last = i;
        if (u < sum) break;
    }
    return last;
}

/* Calls on_token for the last token of hypothesis i. */
static void report(ses_prompt_state *p, int64_t i)
{
    ses_hypothesis *h = &p->hyp[i];
    int64_t at = h->n - 1 - p->prompt_len;
    ses_token_event event = { .prompt = p->index,
                              .sequence = i,
                              .id = h->t.id,
                              .n = h->n,
                              .prompt_len = p->prompt_len,
                              .logprob = h->t.logprob[at],
                              .last = h->done,
                              .finish = h->finish,
                              .top = p->n_top ? h->t.top + at * p->n_top : NULL,
                              .n_top = p->n_top,
                              .prompt_logprob = p->prompt_logprob,
                              .prompt_top = p->prompt_top };
    if (!p->o.on_token || p->o.on_token(p->o.ctx, &event)) return;
    p->cancelled = true;
}

static bool step(ses_generator *g, ses_prompt_state *p, const ses_real *const *logits, ses_err *e)
{
    bool unfinished = false;
    for (int64_t i = 0; i < p->n_hyps && !p->cancelled; i++) {
        ses_hypothesis *h = &p->hyp[i];
        double lse;
        if (h->done) continue;
        if (!ses_generate_next_scores(g, p, h, logits[i], false, &lse, e)) return false;
        int64_t at = h->n - p->prompt_len;
        int32_t id = p->o.do_sample ? sample(g, p, i, at) : most_likely(g->score, g->vocab_size);
        h->t.logprob[at] = (float)((double)logits[i][id] - lse);
        h->t.id[h->n++] = id;
        if (p->n_top) memcpy(h->t.top + at * p->n_top, g->top, (size_t)p->n_top * sizeof *g->top);
        if (!ses_generate_check_stop(p, h->t.id, h->n, &h->finish, &h->done, e)) return false;
        unfinished |= !h->done;
        report(p, i);
    }
    p->done = !unfinished && !p->cancelled;
    return true;
}

static bool finish(ses_prompt_state *p, ses_generated_sequence *out, ses_err *e)
{
    for (int64_t i = 0; i < p->n_hyps; i++) {
        const ses_hypothesis *h = &p->hyp[i];
        if (!ses_generated_sequence_copy(&out[i], p, &h->t, h->n, e)) return false;
        out[i].finish = h->done ? h->finish : SES_FINISH_CANCELLED;
        for (int64_t t = 0; t < h->n - p->prompt_len; t++) out[i].score += (double)h->t.logprob[t];
    }
    return true;
}

const ses_decoding ses_decoding_sample = { count_hyps, begin, step, finish };
