/* Reference steps of word vectors, see ses_word_step. */
#include "kernel/kernel.h"

#include <math.h>

static double log_sigmoid(double z) { return z < 0 ? z - log1p(exp(z)) : -log1p(exp(-z)); }

/* g [n][m]; returns the loss. x: [n] rows. */
static double coefficients(const ses_word_step *s, float *const *x, int64_t n, double *g)
{
    double loss = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < s->m; j++) {
            double f = 0;
            for (int64_t c = 0; c < s->cols; c++) f += (double)x[i][c] * (double)s->y[j][c];
            g[i * s->m + j] = (double)s->rate * ((double)s->label[j] - 1 / (1 + exp(-f)));
            loss -= log_sigmoid(s->label[j] > 0 ? f : -f);
        }
    return loss;
}

/* Updates one column: outputs in place; dx [n] receives the changes of the inputs. */
static void update_column(const ses_word_step *s, float *const *x, int64_t n, const double *g, int64_t c,
                          double *dx)
{
    double dy[SES_WORD_STEP_MAX] = { 0 };
    for (int64_t i = 0; i < n; i++) {
        dx[i] = 0;
        for (int64_t j = 0; j < s->m; j++) {
            dy[j] += g[i * s->m + j] * (double)x[i][c];
            dx[i] += g[i * s->m + j] * (double)s->y[j][c];
        }
    }
    for (int64_t j = 0; j < s->m; j++) s->y[j][c] += (float)dy[j];
}

double ses_k_word_step_ref(const ses_word_step *s)
{
    double g[SES_WORD_STEP_MAX * SES_WORD_STEP_MAX], dx[SES_WORD_STEP_MAX];
    double loss = coefficients(s, s->x, s->n, g);
    for (int64_t c = 0; c < s->cols; c++) {
        update_column(s, s->x, s->n, g, c, dx);
        for (int64_t i = 0; i < s->n; i++) s->x[i][c] += (float)dx[i];
    }
    return loss;
}

double ses_k_bag_step_ref(const ses_word_step *s, float *scratch)
{
    double g[SES_WORD_STEP_MAX], dx;
    for (int64_t c = 0; c < s->cols; c++) {
        double sum = 0;
        for (int64_t i = 0; i < s->n; i++) sum += (double)s->x[i][c];
        scratch[c] = (float)(sum / (double)s->n);
    }
    double loss = coefficients(s, &scratch, 1, g);
    for (int64_t c = 0; c < s->cols; c++) {
        update_column(s, &scratch, 1, g, c, &dx);
        for (int64_t i = 0; i < s->n; i++) s->x[i][c] += (float)dx;
    }
    return loss;
}

void ses_k_merge_rows_ref(float *row, const float *const *copy, int64_t n, float scale, int64_t cols)
{
    for (int64_t c = 0; c < cols; c++) {
        double sum = 0;
        for (int64_t k = 0; k < n; k++) sum += (double)copy[k][c] - (double)row[c];
        row[c] += (float)((double)scale * sum);
    }
}
