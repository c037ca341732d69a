/* The length of the gradient of the score by each token vector (Simonyan et al. 2014). */
#include "explain.h"

#include <math.h>

static bool run(ses_explain *x, ses_err *e)
{
    ses_explain_pass p = { .n = 1, .score = &x->score };
    double *echo = ses_arena_array(&x->mem, (size_t)x->side[0].n + 1, sizeof *echo, e);
    for (int k = 0; k < ses_explain_vector_sides(x); k++) {
        size_t count = (size_t)(ses_explain_vectors(x, k) * x->width[k]);
        if (!(p.grad[k] = ses_arena_array(&x->mem, count, sizeof(ses_real), e))) return false;
    }
    if (!echo || !ses_explain_run(x, &p, e)) return false;
    for (int k = 0; k < ses_explain_vector_sides(x); k++)
        for (int64_t t = 0; t < ses_explain_vectors(x, k); t++) {
            double sum = 0;
            for (int64_t j = t * x->width[k]; j < (t + 1) * x->width[k]; j++)
                sum += pow((double)p.grad[k][j], 2);
            *(k && x->echo ? &echo[t] : &x->value[k][t]) = sqrt(sum);
        }
    ses_explain_fold_echo(x, echo);
    x->is_unsigned = true;
    return true;
}

const ses_explain_method ses_explain_gradient = {
    .description = "Gradient: how fast the score changes with the vector of a token, without a sign.",
    .run = run,
};
