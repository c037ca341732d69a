/* Logistic regression on the kernels of a device: the loss, its gradient and the preconditioner. */
#include "base/alloc.h"
#include "logreg_impl.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <string.h>

enum {
    BLOCK = 2048, /* rows of a block: its products are in f32, sums over blocks in double */
    SAMPLE = 4096 /* rows that the preconditioner is estimated from */
};

struct ses_logreg_device {
    const ses_logreg_problem *p;
    ses_device *dev;
    size_t cols; /* columns of the logits: 2 for one row of weights */
    ses_real *x; /* [n, width] on the device */
    bool owns_x;
    int32_t *y; /* [n] on the device */
    bool owns_y;
    ses_real *w, *bias, *logits, *row_loss, *lse, *scale, *grad; /* on the device */
    ses_real *memory;
    ses_real *host;  /* staging: the largest of them */
    double *inverse; /* [rows * (width + 1)]: the preconditioner */
};

static size_t min_size(size_t a, size_t b) { return a < b ? a : b; }

/* ---- setup ---- */

/* The picked rows as ses_real; NULL without an error: x can be used in place. */
static bool gather_rows(ses_logreg_device *d, ses_real **x, int32_t **y, ses_err *e)
{
    const ses_logreg_problem *p = d->p;
    if (!p->pick && sizeof(ses_real) == sizeof(float)) return true;
    *x = ses_alloc_array(p->n * p->width, sizeof **x, e);
    *y = ses_alloc_array(p->n, sizeof **y, e);
    for (size_t i = 0; *x && *y && i < p->n; i++) {
        size_t at = p->pick ? p->pick[i] : i;
        for (size_t k = 0; k < p->width; k++) (*x)[i * p->width + k] = (ses_real)p->x[at * p->width + k];
        (*y)[i] = p->y[at];
    }
    return *x && *y;
}

/* Copies n elements to the device, or uses them in place. own: free the host's copy. */
static void *to_device(ses_device *dev, void *host, size_t bytes, bool *owns, ses_err *e)
{
    if (dev->is_host) return host;
    void *to = dev->mem->alloc(dev, bytes, e);
    if (to) dev->mem->upload(dev, to, host, bytes);
    if (*owns) ses_free(host);
    *owns = true;
    return to;
}

static bool place_data(ses_logreg_device *d, ses_err *e)
{
    const ses_logreg_problem *p = d->p;
    ses_real *x = NULL;
    int32_t *y = NULL;
    bool ok = gather_rows(d, &x, &y, e);
    d->owns_x = x != NULL, d->owns_y = y != NULL;
    if (!x) x = (ses_real *)(uintptr_t)p->x;
    if (!y) y = (int32_t *)(uintptr_t)p->y;
    if (!ok) {
        d->x = x, d->y = y;
        return false;
    }
    d->x = to_device(d->dev, x, p->n * p->width * sizeof *x, &d->owns_x, e);
    d->y = to_device(d->dev, y, p->n * sizeof *y, &d->owns_y, e);
    return d->x && d->y;
}

static bool place_buffers(ses_logreg_device *d, ses_err *e)
{
    const ses_logreg_problem *p = d->p;
    size_t block = min_size(BLOCK, p->n), logits = block * d->cols, weights = d->cols * p->width;
    size_t size[] = { weights, d->cols, logits, block, block, 2, weights }, all = 0, at = 0;
    ses_real **part[] = { &d->w, &d->bias, &d->logits, &d->row_loss, &d->lse, &d->scale, &d->grad };
    for (size_t i = 0; i < SES_LEN(size); i++) size[i] = (size[i] + 15) / 16 * 16, all += size[i];
    d->memory = d->dev->mem->alloc(d->dev, all * sizeof *d->memory, e);
    d->host = ses_alloc_array(logits > weights ? logits : weights, sizeof *d->host, e);
    if (!d->memory || !d->host) return false;
    for (size_t i = 0; i < SES_LEN(size); i++) *part[i] = d->memory + at, at += size[i];
    ses_real one[2] = { 1, 1 };
    d->dev->mem->upload(d->dev, d->scale, one, sizeof one);
    return true;
}

ses_logreg_device *ses_logreg_device_new(const ses_logreg_problem *p, ses_device *dev, ses_err *e)
{
    ses_logreg_device *d = ses_alloc(sizeof *d, e);
    if (!d) return NULL;
    d->p = p, d->dev = dev, d->cols = p->rows == 1 ? 2 : p->rows;
    if (place_data(d, e) && place_buffers(d, e)) return d;
    ses_logreg_device_free(d);
    return NULL;
}

void ses_logreg_device_free(ses_logreg_device *d)
{
    if (!d) return;
    if (d->owns_x && d->dev->is_host) ses_free(d->x);
    if (d->owns_y && d->dev->is_host) ses_free(d->y);
    if (!d->dev->is_host && d->x) d->dev->mem->free(d->dev, d->x);
    if (!d->dev->is_host && d->y) d->dev->mem->free(d->dev, d->y);
    if (d->memory) d->dev->mem->free(d->dev, d->memory);
    ses_free(d->host);
    ses_free(d->inverse);
    ses_free(d);
}

bool ses_logreg_device_ok(const ses_logreg_device *d, ses_err *e)
{
    return !d->dev->mem->ok || d->dev->mem->ok(d->dev, e);
}

/* ---- loss ---- */

/* The host's view of n elements on the device. */
static const ses_real *read_back(ses_logreg_device *d, const ses_real *x, size_t n)
{
    if (d->dev->is_host) return x;
    d->dev->mem->download(d->dev, d->host, x, n * sizeof *x);
    return d->host;
}

/* One row of weights becomes the second of two classes; the first one has score 0. */
static void upload_weights(ses_logreg_device *d, const double *w)
{
    const ses_logreg_problem *p = d->p;
    size_t skip = d->cols - p->rows, weights = p->rows * p->width;
    memset(d->host, 0, d->cols * p->width * sizeof *d->host);
    for (size_t i = 0; i < weights; i++) d->host[skip * p->width + i] = (ses_real)w[i];
    d->dev->mem->upload(d->dev, d->w, d->host, d->cols * p->width * sizeof *d->w);
    memset(d->host, 0, d->cols * sizeof *d->host);
    for (size_t i = 0; i < p->rows; i++) d->host[skip + i] = (ses_real)w[weights + i];
    d->dev->mem->upload(d->dev, d->bias, d->host, d->cols * sizeof *d->bias);
}

/* Adds the loss of n rows from `first` on, and its gradient. */
static double add_block(ses_logreg_device *d, size_t first, size_t n, double *g)
{
    const ses_logreg_problem *p = d->p;
    ses_device *dev = d->dev;
    const ses_kernels *k = &dev->k_f32;
    int64_t rows = (int64_t)n, cols = (int64_t)d->cols, width = (int64_t)p->width;
    size_t skip = d->cols - p->rows, weights = p->rows * p->width;
    const ses_real *x = d->x + first * p->width;
    ses_gemm product = ses_gemm_nt(d->logits, x, d->w, rows, cols, width);
    product.bias = d->bias, product.is_f32 = true;
    k->gemm(&dev->exec, &product);
    k->xent_rows(&dev->exec, d->row_loss, d->lse, d->logits, d->y + first, rows, cols, cols);
    ses_dst grad = { .data = d->logits, .is_f32 = true }; /* in place */
    k->xent_bwd(&dev->exec, grad, d->scale, d->scale, d->lse, d->logits, d->y + first, rows, cols, cols);
    product = ses_gemm_tn(d->grad, d->logits, x, cols, width, rows);
    product.is_f32 = true;
    k->gemm(&dev->exec, &product);
    double loss = 0;
    const ses_real *from = read_back(d, d->row_loss, n);
    for (size_t i = 0; i < n; i++) loss += (double)from[i];
    from = read_back(d, d->grad, d->cols * p->width) + skip * p->width;
    for (size_t i = 0; i < weights; i++) g[i] += (double)from[i];
    from = p->bias ? read_back(d, d->logits, n * d->cols) + skip : NULL;
    for (size_t i = 0; from && i < n; i++)
        for (size_t r = 0; r < p->rows; r++) g[weights + r] += (double)from[i * d->cols + r];
    return loss;
}

double ses_logreg_device_value(void *ctx, const double *w, double *g)
{
    ses_logreg_device *d = ctx;
    const ses_logreg_problem *p = d->p;
    size_t weights = p->rows * p->width, all = weights + p->rows;
    double loss = 0, square = 0, scale = 1 / p->total;
    memset(g, 0, all * sizeof *g);
    upload_weights(d, w);
    for (size_t first = 0; first < p->n; first += BLOCK)
        loss += add_block(d, first, min_size(BLOCK, p->n - first), g);
    for (size_t i = 0; i < all; i++) g[i] *= scale;
    for (size_t i = 0; i < weights; i++) {
        square += w[i] * w[i];
        g[i] += p->penalty * w[i];
    }
    return loss * scale + 0.5 * p->penalty * square;
}

/* ---- preconditioner ---- */

/* Mean squares of the columns, of at most SAMPLE rows spread over the data. */
static bool mean_squares(ses_logreg_device *d, double *square, ses_err *e)
{
    const ses_logreg_problem *p = d->p;
    size_t step = (p->n + SAMPLE - 1) / SAMPLE, used = 0;
    ses_real *row = ses_alloc_array(p->width, sizeof *row, e);
    for (size_t i = 0; row && i < p->n; i += step, used++) {
        const ses_real *x = d->x + i * p->width;
        if (!d->dev->is_host) d->dev->mem->download(d->dev, row, x, p->width * sizeof *row), x = row;
        for (size_t k = 0; k < p->width; k++) square[k] += (double)x[k] * (double)x[k];
    }
    for (size_t k = 0; k < p->width; k++) square[k] /= (double)used;
    ses_free(row);
    return row != NULL;
}

bool ses_logreg_device_prepare(ses_logreg_device *d, ses_err *e)
{
    const ses_logreg_problem *p = d->p;
    size_t weights = p->rows * p->width;
    d->inverse = ses_alloc_array(weights + p->rows, sizeof *d->inverse, e);
    double *square = ses_alloc_array(p->width + p->classes, sizeof *square, e), *count = square + p->width;
    bool ok = d->inverse && square && mean_squares(d, square, e);
    for (size_t i = 0; ok && i < p->n; i++) count[p->y[p->pick ? p->pick[i] : i]]++;
    for (size_t r = 0; ok && r < p->rows; r++) {
        double f = count[p->rows == 1 ? 1 : r] / (double)p->n, weight = fmax(0.25 * f * (1 - f), 1e-9);
        for (size_t k = 0; k < p->width; k++)
            d->inverse[r * p->width + k] = 1 / (weight * square[k] + p->penalty);
        d->inverse[weights + r] = p->bias ? 1 / weight : 0;
    }
    ses_free(square);
    return ok;
}

void ses_logreg_device_precondition(void *ctx, double *q)
{
    const ses_logreg_device *d = ctx;
    for (size_t i = 0; i < d->p->rows * (d->p->width + 1); i++) q[i] *= d->inverse[i];
}
