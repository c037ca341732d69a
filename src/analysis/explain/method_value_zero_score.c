/* Value zeroing of a score: how much it falls if no attention head can read a token,
 * because its value vectors are zero in the chosen layers. */
#include "explain.h"

#include <string.h>

static bool run(ses_explain *x, ses_err *e)
{
    size_t n;
    const ses_explain_unit *u = ses_explain_units(x, &n, e);
    ses_explain_variant *v = u ? ses_arena_array(&x->mem, n + 1, sizeof *v, e) : NULL;
    double *score = v ? ses_arena_array(&x->mem, n + 1, sizeof *score, e) : NULL;
    if (!score) return false;
    for (size_t i = 0; i < n; i++) {
        uint8_t *zero = ses_arena_array(&x->mem, (size_t)x->side[u[i].side].n, 1, e);
        if (!zero) return false;
        memset(zero + u[i].begin, 1, (size_t)(u[i].end - u[i].begin));
        v[i + 1].zero_value[u[i].side] = zero;
    }
    ses_explain_pass p = { .n = (int64_t)n + 1, .variant = v, .label = "zeroing", .score = score };
    if (!ses_explain_run(x, &p, e)) return false;
    x->score = score[0];
    for (size_t i = 0; i < n; i++) score[i + 1] = score[0] - score[i + 1];
    ses_explain_spread(x, u, score + 1, n);
    return true;
}

const ses_explain_method ses_explain_value_zero_score = {
    .description =
        "Value zeroing: how much the score falls if no other token can attend to a token's values.",
    .run = run,
};
