/* Vectorized rotary position embedding; kernels.def has the formula. */
#include "kernel/simd/vec/vec_loop.h"

#include <math.h>

enum {
    ANGLES = 128, /* angles per pass: all angles of a head of size 256 */
    /* sin and cos are evaluated at multiples of STRIDE positions and rotated from there in double. The result
     * depends on the position only, not on the preceding tokens: a token has the same bits anywhere in a
     * batch. */
    STRIDE = 16
};

typedef struct angles {
    double cosine[ANGLES], sine[ANGLES];
} angles;

typedef struct rotary {
    ses_dst y;
    const float *a;
    const int32_t *pos;
    int64_t rows, cols, rotary_cols, dim;
    int64_t first, n; /* columns of a head in this pass: first, count */
    double rate[ANGLES];
    angles step; /* rotation by one position */
} rotary;

static void set_angles(const rotary *c, angles *at, int64_t pos)
{
    for (int64_t k = 0; k < c->n; k++) {
        at->cosine[k] = cos((double)pos * c->rate[k]);
        at->sine[k] = sin((double)pos * c->rate[k]);
    }
}

static void advance(const rotary *c, angles *at)
{
    for (int64_t k = 0; k < c->n; k++) {
        double co = at->cosine[k], si = at->sine[k];
        at->cosine[k] = co * c->step.cosine[k] - si * c->step.sine[k];
        at->sine[k] = si * c->step.cosine[k] + co * c->step.sine[k];
    }
}

/* Rotates one token, which starts at a[at], in all heads. */
static void rotate(const rotary *c, int64_t at, const float *cosine, const float *sine)
{
    int64_t half = c->dim / 2;
    for (int64_t h = 0; h < c->rotary_cols; h += c->dim)
        for (int64_t k = 0; k < c->n; k += VF_LANES) {
            int64_t i = at + h + c->first + k, j = i + half, left = c->n - k;
            vf a = vf_get(c->a + i, left), b = vf_get(c->a + j, left);
            vf co = vf_load(cosine + k), si = vf_load(sine + k);
            vf_put_dst(c->y, i, vf_fnma(b, si, vf_mul(a, co)), left);
            vf_put_dst(c->y, j, vf_fma(a, si, vf_mul(b, co)), left);
        }
}

static void chunk(void *ctx, int64_t number, void *scratch)
{
    (void)scratch;
    const rotary *c = ctx;
    ses_range r = ses_chunk(c->rows, ses_chunk_rows(c->cols), number);
    float cosine[ANGLES] = { 0 }, sine[ANGLES] = { 0 };
    angles at;
    int64_t at_pos = INT64_MIN; /* position of `at`; none yet */
    for (int64_t t = r.begin; t < r.end; t++) {
        int64_t pos = c->pos[t], from = pos & -STRIDE;
        if (at_pos < from || at_pos > pos) set_angles(c, &at, at_pos = from);
        for (; at_pos < pos; at_pos++) advance(c, &at);
        for (int64_t k = 0; k < c->n; k++) cosine[k] = (float)at.cosine[k], sine[k] = (float)at.sine[k];
        rotate(c, t * c->cols, cosine, sine);
    }
    bool in_place = c->y.data == c->a && !c->y.accumulate;
    for (int64_t t = r.begin; t < r.end && !c->first && !in_place; t++)
        for (int64_t j = c->rotary_cols; j < c->cols; j += VF_LANES)
            vf_put_dst(c->y, t * c->cols + j, vf_get(c->a + t * c->cols + j, c->cols - j), c->cols - j);
}

void VF_NAME(ses_k_rotary)(ses_exec *x, ses_dst y, const float *a, const int32_t *pos, int64_t rows,
                           int64_t cols, int64_t rotary_cols, int64_t dim, double theta, double sign)
{
    rotary c = {
        .y = y, .a = a, .pos = pos, .rows = rows, .cols = cols, .rotary_cols = rotary_cols, .dim = dim
    };
    for (; c.first < dim / 2; c.first += ANGLES) {
        c.n = dim / 2 - c.first < ANGLES ? dim / 2 - c.first : ANGLES;
        for (int64_t k = 0; k < c.n; k++)
            c.rate[k] = sign * pow(theta, -2.0 * (double)(c.first + k) / (double)dim);
        set_angles(&c, &c.step, 1);
        ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), chunk, &c);
    }
}
