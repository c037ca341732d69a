/* Representation erasure (Li et al. 2016): the relative change of the label's log-likelihood when the vectors
 * of a piece, a word or an n-gram are zero. A foil compares the difference of the logits. */
#include "explain.h"

#include "nn/decoder_input.h"

#include <math.h>
#include <string.h>

static bool run(ses_explain *x, ses_err *e)
{
    size_t n;
    const ses_explain_unit *u = ses_explain_units(x, &n, e);
    ses_real *original[SES_EXPLAIN_SIDES] = { NULL };
    double *score = u ? ses_arena_array(&x->mem, n + 1, sizeof *score, e) : NULL;
    if (!score || !ses_explain_embed(x, NULL, original, e)) return false;
    bool contrast = x->target.foil >= 0;
    ses_explain_pass p = { .n = (int64_t)n + 1, .label = "erasing" };
    *(contrast ? &p.score : &p.log_likelihood) = score;
    for (int k = 0; k < ses_explain_vector_sides(x); k++) {
        size_t count = (size_t)(ses_explain_vectors(x, k) * x->width[k]);
        ses_real *at = ses_arena_array(&x->mem, (n + 1) * count, sizeof *at, e);
        if (!at) return false;
        for (size_t i = 0; i <= n; i++) {
            memcpy(at + i * count, original[k], count * sizeof *at);
            if (!i || (u[i - 1].side != k && !x->echo)) continue;
            for (int64_t t = u[i - 1].begin; t < u[i - 1].end; t++) {
                int64_t row = k && x->echo ? ses_decoder_position(&x->m->c, t, ses_explain_vectors(x, k)) : t;
                if (row >= 0)
                    memset(at + i * count + (size_t)(row * x->width[k]), 0, (size_t)x->width[k] * sizeof *at);
            }
        }
        p.embeds[k] = at;
    }
    if (!ses_explain_run(x, &p, e)) return false;
    x->score = score[0];
    double scale = score[0] ? fabs(score[0]) : 1;
    for (size_t i = 0; i < n; i++) score[i + 1] = (score[0] - score[i + 1]) / scale;
    ses_explain_spread(x, u, score + 1, n);
    x->scale = contrast ? "relative change of the logit difference" : "relative change of the log-likelihood";
    x->unit = contrast ? "logit difference" : "log-likelihood";
    return true;
}

const ses_explain_method ses_explain_erase = {
    .description = "Erasure: how much the log-likelihood falls if a token's vector is zero.",
    .run = run,
};
