/* The loops of family `map` (kernels.def), written once over groups of MAP_LANES numbers that every level
 * compiles to its own vectors. Included by map_ref.c and map_simd.c, which name the functions. */
#ifndef SES_KERNEL_MAP_LANES_H
#define SES_KERNEL_MAP_LANES_H

#include "kernel.h"

#include <string.h>

/* Vectors of eight doubles and sixteen floats; a level with shorter registers uses several. */
enum { MAP_LANES = 8 };
#pragma GCC diagnostic ignored "-Wpsabi" /* all functions are inline: no calling convention is concerned */
typedef double double8 __attribute__((vector_size(64)));
typedef float float16 __attribute__((vector_size(64)));

static inline double8 load8(const double *p)
{
    double8 v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline double8 same8(double v) { return (double8){ v, v, v, v, v, v, v, v }; }

static inline double lane_sum(double8 s)
{
    return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
}

/* ---- one stage of a Fourier transform: a column of SES_FFT_LANES numbers is one element ---- */

_Static_assert(sizeof(float16) == SES_FFT_LANES * sizeof(float), "one vector per element");

typedef struct complex16 {
    float16 re, im;
} complex16;

typedef struct fft_stage {
    int64_t m, stride; /* butterflies: m groups of `stride` */
    const float *turn; /* [m][radix - 1][2]: cos, sin */
    const float *re, *im;
    float *out_re, *out_im;
} fft_stage;

/* Butterfly (p, q): element j of its input. */
static inline complex16 fft_get(const fft_stage *s, int64_t p, int64_t q, int64_t j)
{
    int64_t at = (q + s->stride * (p + s->m * j)) * SES_FFT_LANES;
    complex16 v;
    memcpy(&v.re, s->re + at, sizeof v.re);
    memcpy(&v.im, s->im + at, sizeof v.im);
    return v;
}

/* Stores v (cos + i sin) at element `at`; turn NULL: v. */
static inline void fft_put(const fft_stage *s, int64_t at, complex16 v, const float *turn)
{
    complex16 t = v;
    if (turn) t.re = v.re * turn[0] - v.im * turn[1], t.im = v.re * turn[1] + v.im * turn[0];
    memcpy(s->out_re + at * SES_FFT_LANES, &t.re, sizeof t.re);
    memcpy(s->out_im + at * SES_FFT_LANES, &t.im, sizeof t.im);
}

static inline void fft_radix2(const fft_stage *s)
{
    for (int64_t p = 0; p < s->m; p++)
        for (int64_t q = 0; q < s->stride; q++) {
            int64_t o = q + s->stride * 2 * p;
            complex16 a = fft_get(s, p, q, 0), b = fft_get(s, p, q, 1);
            fft_put(s, o, (complex16){ a.re + b.re, a.im + b.im }, NULL);
            fft_put(s, o + s->stride, (complex16){ a.re - b.re, a.im - b.im }, s->turn + 2 * p);
        }
}

static inline void fft_radix3(const fft_stage *s)
{
    const float half = 0.5f, sin60 = 0.86602540378443864676f;
    for (int64_t p = 0; p < s->m; p++)
        for (int64_t q = 0; q < s->stride; q++) {
            int64_t o = q + s->stride * 3 * p;
            complex16 a = fft_get(s, p, q, 0), b = fft_get(s, p, q, 1), c = fft_get(s, p, q, 2);
            float16 sr = b.re + c.re, si = b.im + c.im, dr = sin60 * (b.re - c.re),
                    di = sin60 * (b.im - c.im);
            float16 mr = a.re - half * sr, mi = a.im - half * si;
            fft_put(s, o, (complex16){ a.re + sr, a.im + si }, NULL);
            fft_put(s, o + s->stride, (complex16){ mr + di, mi - dr }, s->turn + 4 * p);
            fft_put(s, o + 2 * s->stride, (complex16){ mr - di, mi + dr }, s->turn + 4 * p + 2);
        }
}

static inline void fft_radix4(const fft_stage *s)
{
    for (int64_t p = 0; p < s->m; p++)
        for (int64_t q = 0; q < s->stride; q++) {
            int64_t o = q + s->stride * 4 * p;
            const float *t = s->turn + 6 * p;
            complex16 a = fft_get(s, p, q, 0), b = fft_get(s, p, q, 1), c = fft_get(s, p, q, 2),
                      d = fft_get(s, p, q, 3);
            float16 er = a.re + c.re, ei = a.im + c.im, fr = a.re - c.re, fi = a.im - c.im;
            float16 gr = b.re + d.re, gi = b.im + d.im, hr = b.re - d.re, hi = b.im - d.im;
            fft_put(s, o, (complex16){ er + gr, ei + gi }, NULL);
            fft_put(s, o + s->stride, (complex16){ fr + hi, fi - hr }, t);
            fft_put(s, o + 2 * s->stride, (complex16){ er - gr, ei - gi }, t + 2);
            fft_put(s, o + 3 * s->stride, (complex16){ fr - hi, fi + hr }, t + 4);
        }
}

static inline void fft_radix5(const fft_stage *s)
{
    const float c1 = 0.30901699437494742410f, c2 = -0.80901699437494742410f, s1 = 0.95105651629515357212f,
                s2 = 0.58778525229247312917f;
    for (int64_t p = 0; p < s->m; p++)
        for (int64_t q = 0; q < s->stride; q++) {
            int64_t o = q + s->stride * 5 * p, step = s->stride;
            const float *t = s->turn + 8 * p;
            complex16 x = fft_get(s, p, q, 0), x1 = fft_get(s, p, q, 1), x2 = fft_get(s, p, q, 2),
                      x3 = fft_get(s, p, q, 3), x4 = fft_get(s, p, q, 4);
            float16 ar = x1.re + x4.re, ai = x1.im + x4.im, br = x1.re - x4.re, bi = x1.im - x4.im;
            float16 cr = x2.re + x3.re, ci = x2.im + x3.im, dr = x2.re - x3.re, di = x2.im - x3.im;
            float16 mr = x.re + c1 * ar + c2 * cr, mi = x.im + c1 * ai + c2 * ci;
            float16 nr = x.re + c2 * ar + c1 * cr, ni = x.im + c2 * ai + c1 * ci;
            float16 er = s1 * br + s2 * dr, ei = s1 * bi + s2 * di;
            float16 fr = s2 * br - s1 * dr, fi = s2 * bi - s1 * di;
            fft_put(s, o, (complex16){ x.re + ar + cr, x.im + ai + ci }, NULL);
            fft_put(s, o + step, (complex16){ mr + ei, mi - er }, t);
            fft_put(s, o + 2 * step, (complex16){ nr + fi, ni - fr }, t + 2);
            fft_put(s, o + 3 * step, (complex16){ nr - fi, ni + fr }, t + 4);
            fft_put(s, o + 4 * step, (complex16){ mr - ei, mi + er }, t + 6);
        }
}

static inline bool fft_lanes(const ses_fft_plan *plan, float *re, float *im, float *work_re, float *work_im)
{
    fft_stage s = { .m = plan->n, .stride = 1, .turn = plan->turn };
    for (int i = 0; i < plan->stages; i++) {
        bool odd = i & 1;
        int radix = plan->radix[i];
        s.m /= radix;
        s.re = odd ? work_re : re, s.im = odd ? work_im : im;
        s.out_re = odd ? re : work_re, s.out_im = odd ? im : work_im;
        if (radix == 2) fft_radix2(&s);
        if (radix == 3) fft_radix3(&s);
        if (radix == 4) fft_radix4(&s);
        if (radix == 5) fft_radix5(&s);
        s.turn += s.m * (radix - 1) * 2;
        s.stride *= radix;
    }
    return plan->stages & 1;
}

/* ---- pair forces ---- */

typedef struct pair_sums {
    double8 x, y, q;
} pair_sums;

/* Adds the forces of MAP_LANES points at (x, y) on the point at (px, py). */
static inline pair_sums add_repulsion(pair_sums s, double8 px, double8 py, double8 x, double8 y)
{
    double8 dx = px - x, dy = py - y, q = same8(1) / (same8(1) + dx * dx + dy * dy), q2 = q * q;
    return (pair_sums){ s.x + q2 * dx, s.y + q2 * dy, s.q + q };
}

/* The last group of a row has fewer than MAP_LANES points; the others are placed infinitely far. */
static inline double pair_repulsion(const ses_points *a, int64_t begin, int64_t end, double *fx, double *fy)
{
    int64_t whole = a->n / MAP_LANES * MAP_LANES;
    double8 rest_x = same8(1e100), rest_y = rest_x;
    double total = 0;
    memcpy(&rest_x, a->x + whole, (size_t)(a->n - whole) * sizeof *a->x);
    memcpy(&rest_y, a->y + whole, (size_t)(a->n - whole) * sizeof *a->y);
    for (int64_t i = begin; i < end; i++) {
        double8 x = same8(a->x[i]), y = same8(a->y[i]);
        pair_sums s = { same8(0), same8(0), same8(0) };
        for (int64_t j = 0; j < whole; j += MAP_LANES)
            s = add_repulsion(s, x, y, load8(a->x + j), load8(a->y + j));
        s = add_repulsion(s, x, y, rest_x, rest_y);
        total += lane_sum(s.q) - 1; /* without the point itself */
        fx[i] = lane_sum(s.x), fy[i] = lane_sum(s.y);
    }
    return total;
}

/* Adds the forces of the first n <= MAP_LANES columns. */
static inline pair_sums add_attraction(pair_sums s, const ses_points *a, double8 px, double8 py,
                                       const int32_t *col, const float *value, int n)
{
    double8 x = px, y = py, p = same8(0);
    for (int l = 0; l < n; l++) x[l] = a->x[col[l]], y[l] = a->y[col[l]], p[l] = (double)value[l];
    double8 dx = px - x, dy = py - y, f = p / (same8(1) + dx * dx + dy * dy);
    return (pair_sums){ s.x + f * dx, s.y + f * dy, s.q };
}

static inline void pair_attraction(const ses_points *a, const ses_sparse *p, int64_t begin, int64_t end,
                                   double *fx, double *fy)
{
    for (int64_t i = begin; i < end; i++) {
        double8 x = same8(a->x[i]), y = same8(a->y[i]);
        pair_sums s = { same8(0), same8(0), same8(0) };
        int64_t j = p->row[i], stop = p->row[i + 1];
        for (; j + MAP_LANES <= stop; j += MAP_LANES)
            s = add_attraction(s, a, x, y, p->col + j, p->value + j, MAP_LANES);
        s = add_attraction(s, a, x, y, p->col + j, p->value + j, (int)(stop - j));
        fx[i] = lane_sum(s.x), fy[i] = lane_sum(s.y);
    }
}

/* ---- rows ---- */

/* Most groups have no number above the limit: one test per group of 32. */
static inline int64_t scan_above(const ses_real *v, int64_t n, ses_real limit, int64_t *out)
{
    enum { GROUP = 32 };
    int64_t found = 0, j = 0;
    for (; j + GROUP <= n; j += GROUP) {
        int32_t any = 0;
        for (int l = 0; l < GROUP; l++) any |= v[j + l] > limit;
        for (int l = 0; any && l < GROUP; l++)
            if (v[j + l] > limit) out[found++] = j + l;
    }
    for (; j < n; j++)
        if (v[j] > limit) out[found++] = j;
    return found;
}

static inline int64_t rank_of(const ses_real *v, int64_t n, ses_real limit)
{
    int64_t count = 0;
    for (int64_t j = 0; j < n;) {
        int64_t stop = n - j > 4096 ? j + 4096 : n;
        int32_t part = 0;
        for (; j < stop; j++) part += v[j] > limit;
        count += part;
    }
    return count;
}

static inline double lane_dot(const double *a, const double *b, int64_t n)
{
    double8 s = same8(0);
    int64_t j = 0;
    for (; j + MAP_LANES <= n; j += MAP_LANES) s += load8(a + j) * load8(b + j);
    for (int l = 0; j < n; j++, l++) s[l] += a[j] * b[j];
    return lane_sum(s);
}

static inline void lane_rank2(double *restrict a, const double *restrict v, const double *restrict w,
                              double by_v, double by_w, int64_t n)
{
    for (int64_t j = 0; j < n; j++) a[j] -= by_w * v[j] + by_v * w[j];
}

static inline void lane_rotate(double *restrict a, double *restrict b, double c, double s, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        double x = a[j], y = b[j];
        b[j] = s * x + c * y;
        a[j] = c * x - s * y;
    }
}

#endif
