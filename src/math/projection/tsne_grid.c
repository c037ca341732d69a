/* Repulsion by interpolation on a grid. Each point spreads a charge of 1 over the 4 x 4 nearest nodes (cubic
 * Lagrange weights); convolutions with K1 = 1 / (1 + d^2), for z, and with the force K1^2 d give the field at
 * the nodes, which is interpolated back.
 *
 * The kernels of the force in x and y are real and odd, so their transforms are i a(kx, ky) and i a(ky, kx)
 * with a real a, and one complex inverse transform gives both forces. Rows are transformed in pairs, and only
 * columns kx <= size / 2 of the real charges are. z follows from the transform of the charges without an
 * inverse one. Half of the nodes are padding, whose rows are skipped. */
#include "base/alloc.h"
#include "kernel/chunking.h"
#include "math/fft.h"
#include "tsne_repulsion.h"

#include <math.h>
#include <string.h>

enum { L = SES_FFT_LANES, MAX_SIZE = 4096, MIN_CELLS = 128, ROWS = 1024, PANELS = 6 };
static const double max_pitch = 0.5;

_Static_assert(MAX_SIZE *L *PANELS * sizeof(float) <= SES_SCRATCH_BYTES, "panels fit the scratch memory");

struct ses_tsne_grid {
    int64_t size, nodes, cols; /* transform length, nodes in use per side, size / 2 + 1 rounded up to L */
    double pitch;
    ses_fft_plan plan;
    float *block;             /* owns the arrays below */
    float *k1, *ax, *ay;      /* [size][cols] transforms of the kernels */
    float *half_re, *half_im; /* [size][cols] rows of the real transform */
    float *full_re, *full_im; /* [size / 2][size] columns of the inverse transform */
    float *charge;            /* [size / 2][size / 2] */
    float *field;             /* [size / 2][size / 2][2] */
    double *z;                /* [cols / L] */
    double *self;             /* [chunks of ROWS points] */
    /* arguments of the call */
    const ses_math *m;
    const ses_points *a;
    double low_x, low_y, *fx, *fy;
    bool of_kernel; /* the row pass transforms the kernels, not the charges */
};

ses_tsne_grid *ses_tsne_grid_new(int64_t n, ses_err *e)
{
    ses_tsne_grid *g = ses_alloc(sizeof *g, e);
    if (g && (g->self = ses_alloc_array((size_t)ses_chunks(n, ROWS), sizeof *g->self, e))) return g;
    ses_free(g);
    return NULL;
}

static void free_arrays(ses_tsne_grid *g)
{
    ses_free(g->block);
    ses_free(g->z);
    ses_free((void *)(uintptr_t)g->plan.turn);
    g->block = NULL, g->z = NULL, g->plan.turn = NULL;
    g->size = 0;
}

void ses_tsne_grid_free(ses_tsne_grid *g)
{
    if (!g) return;
    free_arrays(g);
    ses_free(g->self);
    ses_free(g);
}

static bool make_arrays(ses_tsne_grid *g, int64_t size, double pitch, ses_err *e)
{
    free_arrays(g);
    g->size = size, g->pitch = pitch;
    g->cols = (size / 2 + L) / L * L;
    size_t half = (size_t)(size * g->cols), full = (size_t)(size / 2 * size), quarter = full / 2;
    g->block = ses_alloc_huge(5 * half + 2 * full + 3 * quarter, sizeof *g->block, e);
    g->z = g->block ? ses_alloc_array((size_t)(g->cols / L), sizeof *g->z, e) : NULL;
    if (!g->z || !ses_fft_plan_make(&g->plan, size, e)) return false;
    g->k1 = g->block, g->ax = g->k1 + half, g->ay = g->ax + half;
    g->half_re = g->ay + half, g->half_im = g->half_re + half;
    g->full_re = g->half_im + half, g->full_im = g->full_re + full;
    g->charge = g->full_im + full, g->field = g->charge + quarter;
    return true;
}

/* ---- transforms ---- */

typedef struct panel {
    float *re, *im;
} panel;

static panel panel_at(const ses_tsne_grid *g, void *scratch, int i)
{
    float *p = scratch;
    return (panel){ p + (2 * i) * g->size * L, p + (2 * i + 1) * g->size * L };
}

/* Transforms p in stencil of p or w: returns where the result is. */
static panel forward(const ses_tsne_grid *g, panel p, panel w)
{
    return g->m->k.fft_lanes(&g->plan, p.re, p.im, w.re, w.im) ? w : p;
}

static panel inverse(const ses_tsne_grid *g, panel p, panel w)
{
    return g->m->k.fft_lanes(&g->plan, p.im, p.re, w.im, w.re) ? w : p;
}

/* K1 + the force in x at the offsets of a row of nodes: their transforms are the real and imaginary part. */
static void kernel_row(const ses_tsne_grid *g, int64_t y, float *out)
{
    int64_t n = g->size;
    double dy = (double)(y <= n / 2 ? y : y - n) * g->pitch;
    for (int64_t x = 0; x < n; x++) {
        double dx = (double)(x <= n / 2 ? x : x - n) * g->pitch, k1 = 1 / (1 + dx * dx + dy * dy);
        out[x * L] = (float)(k1 + (2 * x == n ? 0 : k1 * k1 * dx));
    }
}

static void charge_row(const ses_tsne_grid *g, int64_t y, float *out)
{
    for (int64_t x = 0; x < g->nodes; x++) out[x * L] = g->charge[y * g->nodes + x];
}

/* Real rows 2 L chunk .. 2 L chunk + 2 L - 1, two per lane; writes the columns up to size / 2. */
static void transform_rows(void *ctx, int64_t chunk, void *scratch)
{
    const ses_tsne_grid *g = ctx;
    int64_t n = g->size, rows = g->of_kernel ? n : g->nodes;
    panel p = panel_at(g, scratch, 0);
    memset(p.re, 0, (size_t)(2 * n * L) * sizeof *p.re);
    for (int64_t i = 0; i < 2 * L && 2 * L * chunk + i < rows; i++)
        (g->of_kernel ? kernel_row : charge_row)(g, 2 * L * chunk + i, (i & 1 ? p.im : p.re) + i / 2);
    p = forward(g, p, panel_at(g, scratch, 1));
    for (int64_t l = 0; l < L && 2 * (L * chunk + l) < rows; l++) {
        int64_t row = 2 * (L * chunk + l);
        float *re = g->half_re + row * g->cols, *im = g->half_im + row * g->cols;
        for (int64_t k = 0; k <= n / 2; k++) {
            int64_t at = k * L + l, mirror = (k ? n - k : 0) * L + l;
            float zr = 0.5f * p.re[at], zi = 0.5f * p.im[at], yr = 0.5f * p.re[mirror],
                  yi = 0.5f * p.im[mirror];
            re[k] = zr + yr, im[k] = zi - yi;
            if (row + 1 < rows) re[g->cols + k] = zi + yi, im[g->cols + k] = yr - zr;
        }
    }
}

static panel column_panel(const ses_tsne_grid *g, int64_t chunk, int64_t rows, void *scratch)
{
    panel p = panel_at(g, scratch, 0);
    for (int64_t y = 0; y < rows; y++) {
        memcpy(p.re + y * L, g->half_re + y * g->cols + chunk * L, L * sizeof *p.re);
        memcpy(p.im + y * L, g->half_im + y * g->cols + chunk * L, L * sizeof *p.im);
    }
    size_t rest = (size_t)((g->size - rows) * L) * sizeof *p.re;
    memset(p.re + rows * L, 0, rest);
    memset(p.im + rows * L, 0, rest);
    return forward(g, p, panel_at(g, scratch, 1));
}

static void transform_kernel_columns(void *ctx, int64_t chunk, void *scratch)
{
    const ses_tsne_grid *g = ctx;
    panel p = column_panel(g, chunk, g->size, scratch);
    for (int64_t k = 0; k < g->size; k++) {
        memcpy(g->k1 + k * g->cols + chunk * L, p.re + k * L, L * sizeof *p.re);
        memcpy(g->ax + k * g->cols + chunk * L, p.im + k * L, L * sizeof *p.im);
    }
}

/* ay(ky, kx) = ax(kx, ky), which is odd in its second argument */
static void exchange_axes(ses_tsne_grid *g)
{
    int64_t n = g->size;
    for (int64_t ky = 0; ky < n; ky++)
        for (int64_t kx = 0; kx <= n / 2; kx++)
            g->ay[ky * g->cols + kx] = ky <= n / 2 ? g->ax[kx * g->cols + ky] : -g->ax[kx * g->cols + n - ky];
}

static void make_kernels(ses_tsne_grid *g)
{
    g->of_kernel = true;
    ses_parallel_for(g->m->exec.pool, ses_chunks(g->size, 2 * L), transform_rows, g);
    ses_parallel_for(g->m->exec.pool, g->cols / L, transform_kernel_columns, g);
    exchange_axes(g);
    g->of_kernel = false;
}

/* The sum of |w|^2 k1 over L columns; columns other than 0 and size / 2 represent their mirror images too. */
static double charge_energy(const ses_tsne_grid *g, int64_t chunk, panel w)
{
    double sum[L] = { 0 }, total = 0;
    for (int64_t k = 0; k < g->size; k++) {
        const float *k1 = g->k1 + k * g->cols + chunk * L, *re = w.re + k * L, *im = w.im + k * L;
        for (int l = 0; l < L; l++) sum[l] += (double)((re[l] * re[l] + im[l] * im[l]) * k1[l]);
    }
    for (int l = 0; l < L; l++) {
        int64_t kx = chunk * L + l;
        if (kx <= g->size / 2) total += (kx && kx < g->size / 2 ? 2 : 1) * sum[l];
    }
    return total;
}

/* p = w (i ax - ay); mirrored: -conj(w) (i ax - ay) at the negative frequency */
static void apply_force(const ses_tsne_grid *g, int64_t chunk, panel w, bool mirrored, panel p)
{
    for (int64_t k = 0; k < g->size; k++) {
        const float *ax = g->ax + k * g->cols + chunk * L, *ay = g->ay + k * g->cols + chunk * L;
        const float *wr = w.re + k * L, *wi = w.im + k * L;
        int64_t to = mirrored && k ? g->size - k : k;
        float *re = p.re + to * L, *im = p.im + to * L, sign = mirrored ? -1 : 1;
        for (int l = 0; l < L; l++) re[l] = -sign * wr[l] * ay[l] - wi[l] * ax[l];
        for (int l = 0; l < L; l++) im[l] = sign * wr[l] * ax[l] - wi[l] * ay[l];
    }
}

static void transform_columns(void *ctx, int64_t chunk, void *scratch)
{
    const ses_tsne_grid *g = ctx;
    int64_t n = g->size, first = chunk * L;
    panel w = column_panel(g, chunk, g->nodes, scratch), kept = panel_at(g, scratch, 2);
    memcpy(kept.re, w.re, (size_t)(n * L) * sizeof *w.re);
    memcpy(kept.im, w.im, (size_t)(n * L) * sizeof *w.im);
    g->z[chunk] = charge_energy(g, chunk, kept);
    for (int mirrored = 0; mirrored < 2; mirrored++) {
        panel p = panel_at(g, scratch, 0);
        apply_force(g, chunk, kept, mirrored, p);
        p = inverse(g, p, panel_at(g, scratch, 1));
        for (int64_t y = 0; y < g->nodes; y++)
            for (int l = 0; l < L && first + l <= n / 2; l++) {
                int64_t kx = first + l, to = y * n + (mirrored ? n - kx : kx);
                if (mirrored && (kx == 0 || 2 * kx == n)) continue;
                g->full_re[to] = p.re[y * L + l], g->full_im[to] = p.im[y * L + l];
            }
    }
}

static void invert_rows(void *ctx, int64_t chunk, void *scratch)
{
    const ses_tsne_grid *g = ctx;
    int64_t n = g->size, first = chunk * L;
    panel p = panel_at(g, scratch, 0);
    for (int64_t l = 0; l < L; l++) {
        int64_t row = first + l < g->nodes ? first + l : first;
        for (int64_t k = 0; k < n; k++)
            p.re[k * L + l] = g->full_re[row * n + k], p.im[k * L + l] = g->full_im[row * n + k];
    }
    p = inverse(g, p, panel_at(g, scratch, 1));
    for (int64_t l = 0; l < L && first + l < g->nodes; l++) {
        float *out = g->field + (first + l) * g->nodes * 2;
        for (int64_t x = 0; x < g->nodes; x++) out[2 * x] = p.re[x * L + l], out[2 * x + 1] = p.im[x * L + l];
    }
}

/* ---- points ---- */

typedef struct stencil {
    int64_t node; /* the first of 4 */
    float weight[4];
} stencil;

static stencil stencil_of(double v, double low, double pitch)
{
    double u = (v - low) / pitch;
    stencil p = { .node = (int64_t)u };
    float t = (float)(u - (double)p.node);
    p.weight[0] = -t * (t - 1) * (t - 2) * (1.0f / 6), p.weight[1] = (t + 1) * (t - 1) * (t - 2) * 0.5f;
    p.weight[2] = -(t + 1) * t * (t - 2) * 0.5f, p.weight[3] = (t + 1) * t * (t - 1) * (1.0f / 6);
    return p;
}

static void spread_charges(ses_tsne_grid *g)
{
    memset(g->charge, 0, (size_t)(g->nodes * g->nodes) * sizeof *g->charge);
    for (int64_t i = 0; i < g->a->n; i++) {
        stencil x = stencil_of(g->a->x[i], g->low_x, g->pitch),
                y = stencil_of(g->a->y[i], g->low_y, g->pitch);
        float *to = g->charge + y.node * g->nodes + x.node;
        for (int r = 0; r < 4; r++)
            for (int c = 0; c < 4; c++) to[r * g->nodes + c] += y.weight[r] * x.weight[c];
    }
}

/* The interpolated charge of a point at its own position: about 1. Offsets of nodes count in both signs. */
static double self_energy(const ses_tsne_grid *g, const stencil *x, const stencil *y)
{
    double sum = 0, along_x[4] = { 0 }, along_y[4] = { 0 };
    for (int d = 0; d < 4; d++)
        for (int i = 0; i + d < 4; i++) {
            along_x[d] += (double)(x->weight[i] * x->weight[i + d]);
            along_y[d] += (double)(y->weight[i] * y->weight[i + d]);
        }
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 4; c++)
            sum += (r ? 2 : 1) * (c ? 2 : 1) * along_y[r] * along_x[c] /
                   (1 + (r * r + c * c) * g->pitch * g->pitch);
    return sum;
}

static void read_field(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const ses_tsne_grid *g = ctx;
    ses_range range = ses_chunk(g->a->n, ROWS, chunk);
    double scale = 1 / ((double)g->size * (double)g->size), self = 0;
    for (int64_t i = range.begin; i < range.end; i++) {
        stencil x = stencil_of(g->a->x[i], g->low_x, g->pitch),
                y = stencil_of(g->a->y[i], g->low_y, g->pitch);
        const float *from = g->field + (y.node * g->nodes + x.node) * 2;
        float fx = 0, fy = 0;
        for (int r = 0; r < 4; r++)
            for (int c = 0; c < 4; c++) {
                float w = y.weight[r] * x.weight[c];
                fx += w * from[(r * g->nodes + c) * 2], fy += w * from[(r * g->nodes + c) * 2 + 1];
            }
        g->fx[i] = scale * (double)fx, g->fy[i] = scale * (double)fy;
        self += self_energy(g, &x, &y);
    }
    g->self[chunk] = self;
}

/* Chooses pitch and size for the extent of the points. A larger size than needed is kept, because new kernels
 * cost as much as two evaluations. */
static bool fit_points(ses_tsne_grid *g, ses_err *e)
{
    const ses_points *a = g->a;
    double high_x = a->x[0], high_y = a->y[0];
    g->low_x = high_x, g->low_y = high_y;
    for (int64_t i = 1; i < a->n; i++) {
        g->low_x = fmin(g->low_x, a->x[i]), high_x = fmax(high_x, a->x[i]);
        g->low_y = fmin(g->low_y, a->y[i]), high_y = fmax(high_y, a->y[i]);
    }
    double side = fmax(high_x - g->low_x, high_y - g->low_y), pitch = max_pitch;
    if (!isfinite(side)) return ses_fail(e, SES_EARG, "the map diverges; try a smaller learning rate");
    while (pitch > 1e-9 && side / pitch < MIN_CELLS) pitch /= 2;
    while (side / pitch > MAX_SIZE / 2 - 8) pitch *= 2;
    int64_t nodes = (int64_t)(side / pitch) + 5, need = 2 * nodes;
    if (pitch != g->pitch || need > g->size || 2 * need < g->size) {
        int64_t size = ses_fft_good_size(need + need / 16);
        if (!make_arrays(g, size <= MAX_SIZE ? size : MAX_SIZE, pitch, e)) return false;
        make_kernels(g);
    }
    g->nodes = nodes;
    g->low_x -= pitch, g->low_y -= pitch; /* the node left of the first point */
    return true;
}

bool ses_tsne_grid_repel(ses_tsne_grid *g, const ses_math *m, const ses_points *a, double *fx, double *fy,
                         double *z, ses_err *e)
{
    g->m = m, g->a = a, g->fx = fx, g->fy = fy;
    if (!fit_points(g, e)) return false;
    spread_charges(g);
    ses_parallel_for(m->exec.pool, ses_chunks(g->nodes, 2 * L), transform_rows, g);
    ses_parallel_for(m->exec.pool, g->cols / L, transform_columns, g);
    ses_parallel_for(m->exec.pool, ses_chunks(g->nodes, L), invert_rows, g);
    ses_parallel_for(m->exec.pool, ses_chunks(a->n, ROWS), read_field, g);
    *z = 0;
    for (int64_t i = 0; i < g->cols / L; i++) *z += g->z[i];
    *z /= (double)g->size * (double)g->size;
    for (int64_t i = 0; i < ses_chunks(a->n, ROWS); i++) *z -= g->self[i];
    return true;
}
