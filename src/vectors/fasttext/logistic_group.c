/* Binary logistic regression over rows, with fastText's table of the sigmoid. */
#include "logistic_group.h"

#include <math.h>
#include <string.h>

void ses_logistic_group_init(ses_logistic_group *g, int dim, const float *x, float *gradient)
{
    *g = (ses_logistic_group){ .dim = dim, .x = x, .gradient = gradient };
    for (int i = 0; i <= SES_SIGMOID_STEPS; i++) {
        float at = (float)(i * 2 * SES_SIGMOID_MAX) / SES_SIGMOID_STEPS - SES_SIGMOID_MAX;
        g->sigmoid[i] = (float)(1.0 / (1.0 + expf(-at)));
    }
}

/* Four at once hide the latency of a sum. */
void ses_dot_four(const float *const row[4], const float *x, int dim, float out[4])
{
    const float *a = row[0], *b = row[1], *c = row[2], *d = row[3];
    float s[4] = { 0 };
    for (int i = 0; i < dim; i++) {
        s[0] += a[i] * x[i];
        s[1] += b[i] * x[i];
        s[2] += c[i] * x[i];
        s[3] += d[i] * x[i];
    }
    memcpy(out, s, sizeof s);
}

void ses_logistic_group_end(ses_logistic_group *g)
{
    float dot[SES_LOGISTIC_GROUP] = { 0 };
    for (int k = 0; k < g->n; k += 4) {
        const float *row[4];
        for (int i = 0; i < 4; i++) row[i] = g->row[k + i < g->n ? k + i : k];
        ses_dot_four(row, g->x, g->dim, dot + k);
    }
    for (int k = 0; k < g->n; k++) {
        float f = dot[k], *restrict row = g->row[k], *restrict gradient = g->gradient;
        const float *x = g->x;
        g->diverged |= f != f;
        if (g->diverged) break;
        float score =
            f < -SES_SIGMOID_MAX ? 0
            : f > SES_SIGMOID_MAX
                ? 1
                : g->sigmoid[(int64_t)((f + SES_SIGMOID_MAX) * SES_SIGMOID_STEPS / SES_SIGMOID_MAX / 2)];
        float alpha = g->rate * (g->label[k] - score);
        for (int i = 0; i < g->dim; i++) {
            gradient[i] += alpha * row[i];
            row[i] += alpha * x[i];
        }
    }
    g->n = 0;
}

void ses_logistic_group_add(ses_logistic_group *g, float *row, float label)
{
    bool clash = g->n == SES_LOGISTIC_GROUP;
    for (int k = 0; k < g->n && !clash; k++) clash = g->row[k] == row;
    if (clash) ses_logistic_group_end(g);
    g->row[g->n] = row;
    g->label[g->n++] = label;
}
