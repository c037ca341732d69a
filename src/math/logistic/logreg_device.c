/* Logistic regression on the kernels of a device: the loss, its gradient and the preconditioner. */
#include "base/alloc.h"
#include "logreg_impl.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum {
    BLOCK = 2048,  /* rows of a block: its products are in f32, sums over blocks in double */
    SAMPLE = 4096, /* rows that the preconditioner is estimated from */
    GROUP = 64,    /* blocks in progress at the same time, on a CPU */
    GROUP_BYTES = 16 << 20
};

/* Buffers of a block in progress. */
typedef struct slot {
    ses_exec exec;
    ses_real *logits, *row_loss, *lse; /* on the device */
    ses_real *memory;
} slot;

/* Sums of a block. */
typedef struct block {
    ses_real *grad; /* [cols, width], on the device */
    double loss, *bias;
} block;

struct ses_logreg_device {
    const ses_logreg_problem *p;
    ses_device *dev;
    size_t cols; /* columns of the logits: 2 for one row of weights */
    ses_real *x; /* [n, width] on the device */
    bool owns_x;
    int32_t *y; /* [n] on the device */
    bool owns_y;
    ses_real *w, *bias, *scale, *memory; /* on the device */
    /* A slot for each thread: a block runs in one thread. One slot: a block runs in all threads. */
    slot *slot;
    size_t n_slots;
    block block[GROUP];
    size_t n_blocks, first; /* blocks at the same time; the first one of the present group */
    atomic_size_t next;     /* block of the group to take */
    ses_real *grad;
    double *bias_grad;
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

static bool place_slot(ses_logreg_device *d, slot *s, ses_err *e)
{
    size_t rows = min_size(BLOCK, d->p->n), size[] = { rows * d->cols, rows, rows }, all = 0, at = 0;
    ses_real **part[] = { &s->logits, &s->row_loss, &s->lse };
    for (size_t i = 0; i < SES_LEN(size); i++) size[i] = (size[i] + 15) / 16 * 16, all += size[i];
    s->exec = ses_exec_f32(d->dev);
    if (d->n_slots > 1 && !(s->exec.pool = ses_thread_pool_new(1, e))) return false;
    s->memory = d->dev->mem->alloc(d->dev, all * sizeof *s->memory, e);
    if (!s->memory) return false;
    for (size_t i = 0; i < SES_LEN(size); i++) *part[i] = s->memory + at, at += size[i];
    return true;
}

/* A block for each thread, if gradients of enough blocks fit. The sums are the same either way. */
static void choose_slots(ses_logreg_device *d)
{
    size_t weights = d->cols * d->p->width, blocks = (d->p->n + BLOCK - 1) / BLOCK,
           threads = d->dev->is_host ? (size_t)ses_thread_pool_size(d->dev->exec.pool) : 1,
           fit = min_size(min_size(GROUP, blocks), GROUP_BYTES / (weights * sizeof(ses_real)));
    bool apart = threads > 1 && fit >= 2 * threads;
    d->n_slots = apart ? threads : 1, d->n_blocks = apart ? fit : 1;
}

static bool place_buffers(ses_logreg_device *d, ses_err *e)
{
    const ses_logreg_problem *p = d->p;
    size_t weights = (d->cols * p->width + 15) / 16 * 16, cols = (d->cols + 15) / 16 * 16,
           logits = min_size(BLOCK, p->n) * d->cols;
    choose_slots(d);
    d->slot = ses_alloc_array(d->n_slots, sizeof *d->slot, e);
    d->memory = d->dev->mem->alloc(d->dev, (weights * (1 + d->n_blocks) + cols + 16) * sizeof *d->memory, e);
    d->host = ses_alloc_array(logits > weights ? logits : weights, sizeof *d->host, e);
    d->bias_grad = ses_alloc_array(d->n_blocks * d->cols, sizeof *d->bias_grad, e);
    if (!d->slot || !d->memory || !d->host || !d->bias_grad) return false;
    d->w = d->memory, d->bias = d->w + weights, d->scale = d->bias + cols, d->grad = d->scale + 16;
    for (size_t i = 0; i < d->n_blocks; i++)
        d->block[i].grad = d->grad + i * weights, d->block[i].bias = d->bias_grad + i * d->cols;
    for (size_t i = 0; i < d->n_slots; i++)
        if (!place_slot(d, &d->slot[i], e)) return false;
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
    for (size_t i = 0; d->slot && i < d->n_slots; i++) {
        if (d->slot[i].memory) d->dev->mem->free(d->dev, d->slot[i].memory);
        if (d->n_slots > 1) ses_thread_pool_free(d->slot[i].exec.pool);
    }
    if (d->memory) d->dev->mem->free(d->dev, d->memory);
    ses_free(d->slot);
    ses_free(d->bias_grad);
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

/* The gradient of rows first .. first + n - 1 to b->grad, d loss / d logits to s->logits. */
static void run_kernels(ses_logreg_device *d, slot *s, block *b, size_t first, size_t n)
{
    const ses_kernels *k = &d->dev->k_f32;
    int64_t rows = (int64_t)n, cols = (int64_t)d->cols, width = (int64_t)d->p->width;
    const ses_real *x = d->x + first * d->p->width;
    ses_gemm product = ses_gemm_nt(s->logits, x, d->w, rows, cols, width);
    product.bias = d->bias, product.is_f32 = true;
    k->gemm(&s->exec, &product);
    k->xent_rows(&s->exec, s->row_loss, s->lse, s->logits, d->y + first, rows, cols, cols);
    ses_dst grad = { .data = s->logits, .is_f32 = true }; /* in place */
    k->xent_bwd(&s->exec, grad, d->scale, d->scale, s->lse, s->logits, d->y + first, rows, cols, cols);
    product = ses_gemm_tn(b->grad, s->logits, x, cols, width, rows);
    product.is_f32 = true;
    k->gemm(&s->exec, &product);
}

static void run_block(ses_logreg_device *d, slot *s, size_t i)
{
    block *b = &d->block[i];
    size_t first = (d->first + i) * BLOCK, n = min_size(BLOCK, d->p->n - first);
    run_kernels(d, s, b, first, n);
    b->loss = 0;
    const ses_real *from = read_back(d, s->row_loss, n);
    for (size_t k = 0; k < n; k++) b->loss += (double)from[k];
    memset(b->bias, 0, d->cols * sizeof *b->bias);
    from = d->p->bias ? read_back(d, s->logits, n * d->cols) : NULL;
    for (size_t k = 0; from && k < n; k++)
        for (size_t r = 0; r < d->cols; r++) b->bias[r] += (double)from[k * d->cols + r];
}

static void run_slot(void *ctx, int64_t i, void *scratch)
{
    ses_logreg_device *d = ctx;
    size_t left = min_size(d->n_blocks, (d->p->n + BLOCK - 1) / BLOCK - d->first);
    (void)scratch;
    for (size_t at; (at = atomic_fetch_add(&d->next, 1)) < left;) run_block(d, &d->slot[i], at);
}

/* Adds the sums of the blocks of a group one by one: the size of the group does not matter. */
static void add_group(ses_logreg_device *d, double *loss, double *g)
{
    const ses_logreg_problem *p = d->p;
    size_t skip = d->cols - p->rows, weights = p->rows * p->width,
           n = min_size(d->n_blocks, (p->n + BLOCK - 1) / BLOCK - d->first);
    atomic_store(&d->next, 0);
    if (d->n_slots > 1)
        ses_parallel_for(d->dev->exec.pool, (int64_t)d->n_slots, run_slot, d);
    else
        run_slot(d, 0, NULL);
    for (size_t i = 0; i < n; i++) {
        const ses_real *from = read_back(d, d->block[i].grad, d->cols * p->width) + skip * p->width;
        for (size_t k = 0; k < weights; k++) g[k] += (double)from[k];
        for (size_t r = 0; r < p->rows; r++) g[weights + r] += d->block[i].bias[skip + r];
        *loss += d->block[i].loss;
    }
}

double ses_logreg_device_value(void *ctx, const double *w, double *g)
{
    ses_logreg_device *d = ctx;
    const ses_logreg_problem *p = d->p;
    size_t weights = p->rows * p->width, all = weights + p->rows;
    double loss = 0, square = 0, scale = 1 / p->total;
    memset(g, 0, all * sizeof *g);
    upload_weights(d, w);
    for (d->first = 0; d->first * BLOCK < p->n; d->first += d->n_blocks) add_group(d, &loss, g);
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
        double f = (count[p->rows == 1 ? 1 : r] + 1) / (double)(p->n + p->classes),
               weight = 0.25 * f * (1 - f);
        for (size_t k = 0; k < p->width; k++)
            d->inverse[r * p->width + k] = 1 / (weight * square[k] + p->penalty);
        d->inverse[weights + r] = p->bias ? 1 / weight : 0;
    }
    ses_free(square);
    return ok;
}

void ses_logreg_device_start(const ses_logreg_device *d, double *bias)
{
    const ses_logreg_problem *p = d->p;
    for (size_t r = 0; r < p->rows; r++) bias[r] = 1;
    for (size_t i = 0; i < p->n; i++) {
        size_t y = (size_t)p->y[p->pick ? p->pick[i] : i];
        if (p->rows > 1)
            bias[y]++;
        else
            bias[0] += (double)y;
    }
    for (size_t r = 0; r < p->rows; r++)
        bias[r] = log(p->rows > 1 ? bias[r] : bias[r] / ((double)p->n + 2 - bias[r]));
}

void ses_logreg_device_precondition(void *ctx, double *q)
{
    const ses_logreg_device *d = ctx;
    for (size_t i = 0; i < d->p->rows * (d->p->width + 1); i++) q[i] *= d->inverse[i];
}
