/* Reference rotary position embedding. */
#include "kernel/chunking.h"

#include <math.h>

typedef struct rotary {
    ses_dst y;
    const ses_real *a;
    const int32_t *pos;
    int64_t rows, cols;
    const ses_rotary_spec *o;
} rotary;

/* Rotates pair d of every head by one angle. */
static void rotate(const rotary *c, int64_t at, int64_t d, double angle)
{
    const ses_rotary_spec *o = c->o;
    double cosine = o->factor * cos(angle), sine = o->factor * sin(angle);
    for (int64_t h = 0; h < o->cols; h += o->dim) {
        int64_t i = at + h + (o->adjacent ? 2 * d : d), j = i + (o->adjacent ? 1 : o->pairs);
        double a = c->a[i], b = c->a[j];
        ses_dst_put(c->y, i, a * cosine - b * sine);
        ses_dst_put(c->y, j, b * cosine + a * sine);
    }
}

static void chunk(void *ctx, int64_t n, void *scratch)
{
    (void)scratch;
    const rotary *c = ctx;
    const ses_rotary_spec *o = c->o;
    ses_range r = ses_chunk(c->rows, ses_chunk_rows(c->cols), n);
    for (int64_t t = r.begin; t < r.end; t++) {
        for (int64_t d = 0; d < o->pairs; d++) rotate(c, t * c->cols, d, o->sign * c->pos[t] * o->rate[d]);
        for (int64_t j = 0; j < c->cols; j++)
            if (j >= o->cols || j % o->dim >= 2 * o->pairs)
                ses_dst_put(c->y, t * c->cols + j, c->a[t * c->cols + j]);
    }
}

void ses_k_rotary_ref(ses_exec *x, ses_dst y, const ses_real *a, const int32_t *pos, int64_t rows,
                      int64_t cols, const ses_rotary_spec *o)
{
    rotary c = { y, a, pos, rows, cols, o };
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), chunk, &c);
}
