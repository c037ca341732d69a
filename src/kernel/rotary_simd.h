/* Rotary positions over the vector vocabulary; rotary_ref.c says what they compute. */
#include "vec_loop.h"

#include <math.h>

enum { ANGLES = 128 }; /* taken together: all of a head of size 256 */

typedef struct rotary {
    ses_sink y;
    const float *a;
    const int32_t *place;
    int64_t rows, cols, turned, dim;
    double theta, sign;
} rotary;

/* n angles of one token, from column d on, for all heads. */
static void turn(const rotary *c, int64_t at, int64_t d, int64_t n, const float *cosine, const float *sine)
{
    int64_t half = c->dim / 2;
    for (int64_t h = 0; h < c->turned; h += c->dim)
        for (int64_t k = 0; k < n; k += VF_LANES) {
            int64_t i = at + h + d + k, j = i + half, left = n - k;
            vf a = vf_get(c->a + i, left), b = vf_get(c->a + j, left);
            vf co = vf_load(cosine + k), si = vf_load(sine + k);
            vf_put_sink(c->y, i, vf_fnma(b, si, vf_mul(a, co)), left);
            vf_put_sink(c->y, j, vf_fma(a, si, vf_mul(b, co)), left);
        }
}

static void chunk(void *ctx, int64_t number, void *scratch)
{
    (void)scratch;
    const rotary *c = ctx;
    ses_range r = ses_chunk(c->rows, ses_chunk_rows(c->cols), number);
    for (int64_t d = 0; d < c->dim / 2; d += ANGLES) {
        int64_t n = c->dim / 2 - d < ANGLES ? c->dim / 2 - d : ANGLES;
        double rate[ANGLES];
        float cosine[ANGLES] = { 0 }, sine[ANGLES] = { 0 };
        for (int64_t k = 0; k < n; k++)
            rate[k] = c->sign * pow(c->theta, -2.0 * (double)(d + k) / (double)c->dim);
        for (int64_t t = r.begin; t < r.end; t++) {
            for (int64_t k = 0; k < n; k++) {
                cosine[k] = (float)cos(c->place[t] * rate[k]);
                sine[k] = (float)sin(c->place[t] * rate[k]);
            }
            turn(c, t * c->cols, d, n, cosine, sine);
        }
    }
    bool in_place = c->y.data == c->a && !c->y.add;
    for (int64_t t = r.begin; t < r.end && !in_place; t++)
        for (int64_t j = c->turned; j < c->cols; j += VF_LANES)
            vf_put_sink(c->y, t * c->cols + j, vf_get(c->a + t * c->cols + j, c->cols - j), c->cols - j);
}

void VF_NAME(ses_k_rotary)(ses_exec *x, ses_sink y, const float *a, const int32_t *place, int64_t rows,
                           int64_t cols, int64_t turned, int64_t dim, double theta, double sign)
{
    rotary c = { y, a, place, rows, cols, turned, dim, theta, sign };
    ses_parallel(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), chunk, &c);
}
