/* Reference rotary position embedding. */
#include "kernel/chunking.h"

#include <math.h>

typedef struct rotary {
    ses_dst y;
    const ses_real *a;
    const int32_t *pos;
    int64_t rows, cols, rotary_cols, dim;
    double theta, sign;
} rotary;

/* Rotates column pair (d, d + dim/2) of every head by one angle. */
static void rotate(const rotary *c, int64_t at, int64_t d, double angle)
{
    double cosine = cos(angle), sine = sin(angle);
    int64_t half = c->dim / 2;
    for (int64_t h = 0; h < c->rotary_cols; h += c->dim) {
        int64_t i = at + h + d, j = i + half;
        double a = c->a[i], b = c->a[j];
        ses_dst_put(c->y, i, a * cosine - b * sine);
        ses_dst_put(c->y, j, b * cosine + a * sine);
    }
}

static void chunk(void *ctx, int64_t n, void *scratch)
{
    (void)scratch;
    const rotary *c = ctx;
    ses_range r = ses_chunk(c->rows, ses_chunk_rows(c->cols), n);
    for (int64_t t = r.begin; t < r.end; t++) {
        for (int64_t d = 0; d < c->dim / 2; d++)
            rotate(c, t * c->cols, d, c->sign * c->pos[t] * pow(c->theta, -2.0 * (double)d / (double)c->dim));
        for (int64_t j = c->rotary_cols; j < c->cols; j++)
            ses_dst_put(c->y, t * c->cols + j, c->a[t * c->cols + j]);
    }
}

void ses_k_rotary_ref(ses_exec *x, ses_dst y, const ses_real *a, const int32_t *pos, int64_t rows,
                      int64_t cols, int64_t rotary_cols, int64_t dim, double theta, double sign)
{
    rotary c = { y, a, pos, rows, cols, rotary_cols, dim, theta, sign };
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), chunk, &c);
}
