/* Scores of the next token: log-probabilities, top tokens, logits processors. */
#include "generate_impl.h"
#include "logit_scores.h"
#include "sesame/model.h"

#include <math.h>

static bool check_finite(const ses_generator *g, double lse, ses_err *e)
{
    if (isfinite(lse)) return true;
    return ses_model_check_finite(g->model, e) &&
           ses_fail(e, SES_EARG, "the model's logits are NaN or infinite");
}

/* Writes the log-probabilities of the n most likely tokens to top; g->score has the logits. */
static void find_top(ses_generator *g, int64_t n, double lse, ses_top_token *top)
{
    int32_t id[SES_MAX_TOP_LOGPROBS];
    ses_top_k(g->score, g->vocab_size, n, id);
    for (int64_t i = 0; i < n; i++) top[i] = (ses_top_token){ id[i], (float)((double)g->score[id[i]] - lse) };
}

bool ses_generate_next_scores(ses_generator *g, const ses_prompt_state *p, const ses_hypothesis *h,
                              const ses_real *logits, bool log_softmax, double *lse, ses_err *e)
{
    const ses_generate_options *o = &p->o;
    for (int64_t i = 0; i < g->vocab_size; i++) g->score[i] = (float)logits[i];
    *lse = ses_log_sum_exp(g->score, g->vocab_size);
    if (!o->remove_invalid_values && !check_finite(g, *lse, e)) return false;
    if (p->n_top) find_top(g, p->n_top, *lse, g->top);
    for (int64_t i = 0; log_softmax && i < g->vocab_size; i++)
        g->score[i] = (float)((double)g->score[i] - *lse);
    ses_logits_ctx c = { .o = o,
                         .score = g->score,
                         .vocab_size = g->vocab_size,
                         .id = h->t.id,
                         .n = h->n,
                         .prompt_len = p->prompt_len,
                         .max_length = p->max_length,
                         .min_length = p->min_length,
                         .source = p->source,
                         .rank = g->rank };
    c.min_keep = o->num_beams > 1 ? (o->eos.n ? o->eos.n : 1) + 1 : 1;
    if (c.min_keep > g->vocab_size) c.min_keep = g->vocab_size;
    ses_logits_process(&c);
    return true;
}

bool ses_generate_score_prompt(ses_generator *g, ses_prompt_state *p, int64_t at, const ses_real *logits,
                               ses_err *e)
{
    for (int64_t i = 0; i < g->vocab_size; i++) g->score[i] = (float)logits[i];
    double lse = ses_log_sum_exp(g->score, g->vocab_size);
    if (!check_finite(g, lse, e)) return false;
    p->prompt_logprob[at] = (float)((double)g->score[p->first.id[at]] - lse);
    if (p->n_top) find_top(g, p->n_top, lse, p->prompt_top + at * p->n_top);
    return true;
}
