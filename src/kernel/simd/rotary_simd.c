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
    int64_t rows, cols;
    const ses_rotary_spec *o;
    int64_t first, n; /* pairs of a head in this pass: first, count */
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
    for (int64_t h = 0; h < c->o->cols; h += c->o->dim)
        for (int64_t k = 0; k < c->n; k += VF_LANES) {
            int64_t i = at + h + c->first + k, j = i + c->o->pairs, left = c->n - k;
            vf a = vf_get(c->a + i, left), b = vf_get(c->a + j, left);
            vf co = vf_load(cosine + k), si = vf_load(sine + k);
            vf_put_dst(c->y, i, vf_fnma(b, si, vf_mul(a, co)), left);
            vf_put_dst(c->y, j, vf_fma(a, si, vf_mul(b, co)), left);
        }
}

/* The same for pairs of adjacent columns. */
static void rotate_adjacent(const rotary *c, int64_t at, const float *cosine, const float *sine)
{
    for (int64_t h = 0; h < c->o->cols; h += c->o->dim)
        for (int64_t k = 0; k < c->n; k++) {
            int64_t i = at + h + 2 * (c->first + k);
            float a = c->a[i], b = c->a[i + 1];
            float y[] = { a * cosine[k] - b * sine[k], b * cosine[k] + a * sine[k] };
            for (int p = 0; p < 2; p++) c->y.data[i + p] = c->y.accumulate ? c->y.data[i + p] + y[p] : y[p];
        }
}

static void copy(const rotary *c, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i += VF_LANES) vf_put_dst(c->y, i, vf_get(c->a + i, to - i), to - i);
}

/* Columns of a token that are not rotated. */
static void copy_rest(const rotary *c, int64_t at)
{
    const ses_rotary_spec *o = c->o;
    for (int64_t h = 0; h < o->cols && 2 * o->pairs < o->dim; h += o->dim)
        copy(c, at + h + 2 * o->pairs, at + h + o->dim);
    copy(c, at + o->cols, at + c->cols);
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
        for (int64_t k = 0; k < c->n; k++) {
            cosine[k] = (float)(c->o->factor * at.cosine[k]);
            sine[k] = (float)(c->o->factor * at.sine[k]);
        }
        if (c->o->adjacent)
            rotate_adjacent(c, t * c->cols, cosine, sine);
        else
            rotate(c, t * c->cols, cosine, sine);
    }
    bool in_place = c->y.data == c->a && !c->y.accumulate;
    for (int64_t t = r.begin; t < r.end && !c->first && !in_place; t++) copy_rest(c, t * c->cols);
}

void VF_NAME(ses_k_rotary)(ses_exec *x, ses_dst y, const float *a, const int32_t *pos, int64_t rows,
                           int64_t cols, const ses_rotary_spec *o)
{
    rotary c = { .y = y, .a = a, .pos = pos, .rows = rows, .cols = cols, .o = o };
    for (; c.first < o->pairs; c.first += ANGLES) {
        c.n = o->pairs - c.first < ANGLES ? o->pairs - c.first : ANGLES;
        for (int64_t k = 0; k < c.n; k++) c.rate[k] = o->sign * o->rate[c.first + k];
        set_angles(&c, &c.step, 1);
        ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), chunk, &c);
    }
}
