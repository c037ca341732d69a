/* Reference steps of GloVe. */
#include "kernel/kernel.h"

/* Steps of one row. other: values of the other row before the step. */
static void adapt(ses_real *value, ses_real *squares, const double *other, double f, const ses_real *rate,
                  const ses_glove *g)
{
    for (int64_t i = 0; i < g->width; i++) {
        double step = fmin(fmax(f * other[i], -(double)g->limit), (double)g->limit) * rate[i];
        value[i] = (ses_real)(value[i] - step / sqrt((double)squares[i]));
        squares[i] = (ses_real)(squares[i] + step * step);
    }
}

static void step_both(const ses_glove *g, ses_real *w, ses_real *c, double f)
{
    enum { PART = 64 };
    double old[2][PART];
    for (int64_t i = 0; i < g->width; i += PART) {
        ses_glove part = *g;
        part.width = g->width - i < PART ? g->width - i : PART;
        for (int64_t k = 0; k < part.width; k++) old[0][k] = w[i + k], old[1][k] = c[i + k];
        adapt(w + i, w + g->width + i, old[1], f, g->word_rate + i, &part);
        adapt(c + i, c + g->width + i, old[0], f, g->context_rate + i, &part);
    }
}

double ses_k_glove_steps_ref(const ses_glove *g, const ses_glove_pair *pair, int64_t n)
{
    double loss = 0;
    for (const ses_glove_pair *p = pair; p < pair + n; p++) {
        ses_real *w = g->word + 2 * g->width * p->word, *c = g->context + 2 * g->width * p->context;
        double diff = -(double)p->log_count;
        for (int64_t i = 0; i < g->width; i++) diff += (double)w[i] * (double)c[i];
        double f = (double)p->weight * diff;
        if (!isfinite(f)) continue;
        loss += 0.5 * f * diff;
        step_both(g, w, c, f);
    }
    return loss;
}

void ses_k_glove_tiles_ref(ses_exec *x, const ses_glove *g, const ses_glove_pair *pair, int64_t first,
                           const int64_t *start, const int64_t *count, int64_t tiles, double *loss)
{
    (void)x;
    for (int64_t t = 0; t < tiles; t++)
        loss[t] = ses_k_glove_steps_ref(g, pair + (start[t] - first), count[t]);
}
