/* Reference kernels of the CRF: forward and backward algorithm. Every step is normalized: sums do not grow
 * with the length of a sequence. */
#include "kernel/chunking.h"

#include <math.h>

/* The next labeled row of a sequence from `row` on, or its end. */
static int64_t next_row(const ses_crf_chain *c, int64_t row, int64_t end)
{
    while (row < end && c->label[row] == SES_IGNORE_INDEX) row++;
    return row;
}

static double log_sum_exp(const double *a, int64_t n)
{
    double max = a[0], sum = 0;
    for (int64_t i = 1; i < n; i++) max = fmax(max, a[i]);
    if (isinf(max)) return max;
    for (int64_t i = 0; i < n; i++) sum += exp(a[i] - max);
    return max + log(sum);
}

/* Stores a [labels] minus its log-sum-exp, which is returned. */
static double normalize(ses_real *to, const double *a, int64_t n)
{
    double sum = log_sum_exp(a, n);
    for (int64_t i = 0; i < n; i++) to[i] = (ses_real)(a[i] - sum);
    return sum;
}

/* The loss of one sequence; fills its rows of alpha. a, terms: [labels]. */
static double sequence_loss(const ses_crf_chain *c, int64_t s, double *a, double *terms)
{
    int64_t L = c->labels, end = c->cu_seqlens[s + 1], row = next_row(c, c->cu_seqlens[s], end), before = -1;
    double loss = 0;
    for (; row < end; before = row, row = next_row(c, row + 1, end)) {
        const ses_real *x = c->x + row * L;
        int32_t y = c->label[row], from = before < 0 ? 0 : c->label[before];
        for (int64_t j = 0; j < L; j++) {
            for (int64_t i = 0; before >= 0 && i < L; i++)
                terms[i] = (double)c->alpha[before * L + i] + (double)c->trans[i * L + j];
            a[j] = (double)x[j] + (before < 0 ? (double)c->start[j] : log_sum_exp(terms, L));
        }
        loss += normalize(c->alpha + row * L, a, L) - (double)x[y];
        loss -= before < 0 ? (double)c->start[y] : (double)c->trans[from * L + y];
    }
    if (before < 0) return 0;
    for (int64_t j = 0; j < L; j++) a[j] = (double)c->alpha[before * L + j] + (double)c->end[j];
    return loss + log_sum_exp(a, L) - (double)c->end[c->label[before]];
}

static void loss_chunk(void *ctx, int64_t s, void *scratch)
{
    const ses_crf_chain *c = ctx;
    double *work = scratch;
    c->loss[2 + s] = (ses_real)sequence_loss(c, s, work, work + c->labels);
}

void ses_k_crf_ref(ses_exec *x, const ses_crf_chain *c)
{
    double sum = 0;
    int64_t count = 0;
    ses_parallel_for(x->pool, c->seqs, loss_chunk, (void *)c);
    for (int64_t s = 0; s < c->seqs; s++)
        if (next_row(c, c->cu_seqlens[s], c->cu_seqlens[s + 1]) < c->cu_seqlens[s + 1])
            sum += (double)c->loss[2 + s], count++;
    c->loss[0] = (ses_real)(count ? sum / (double)count : 0);
    c->loss[1] = (ses_real)(count ? 1.0 / (double)count : 0);
}

typedef struct job {
    const ses_crf_chain *c;
    const ses_crf_grad *g;
    double scale;
} job;

/* Sums of a chunk: dtrans [L, L], dstart, dend [L], then scratch [2 L]. */
static double *chunk_work(const job *b, int64_t chunk)
{
    return b->g->work + chunk * b->c->labels * (b->c->labels + 4);
}

/* Probabilities from log scores a [n], in place. */
static void softmax(double *a, int64_t n)
{
    double sum = log_sum_exp(a, n);
    for (int64_t i = 0; i < n; i++) a[i] = exp(a[i] - sum);
}

/* Adds the probability of each pair of labels at rows `before` and `row`. right [L]: score of what follows
 * row's label, with its emission. */
static void add_pairs(const job *b, int64_t before, int64_t row, const double *right, double *sum)
{
    const ses_crf_chain *c = b->c;
    int64_t L = c->labels;
    double max = -INFINITY, total = 0;
    for (int64_t k = 0; k < L * L; k++)
        max = fmax(max, (double)c->alpha[before * L + k / L] + (double)c->trans[k] + right[k % L]);
    for (int64_t k = 0; k < L * L; k++)
        total += exp((double)c->alpha[before * L + k / L] + (double)c->trans[k] + right[k % L] - max);
    for (int64_t k = 0; k < L * L; k++)
        sum[k] +=
            exp((double)c->alpha[before * L + k / L] + (double)c->trans[k] + right[k % L] - max) / total;
    sum[c->label[before] * L + c->label[row]] -= 1;
}

/* The labeled row before `row`, or -1. */
static int64_t previous_row(const ses_crf_chain *c, int64_t row, int64_t begin)
{
    do row--;
    while (row >= begin && c->label[row] == SES_IGNORE_INDEX);
    return row >= begin ? row : -1;
}

static void sequence_grad(const job *b, int64_t s, double *work, double *terms)
{
    const ses_crf_chain *c = b->c;
    int64_t L = c->labels, begin = c->cu_seqlens[s], row = previous_row(c, c->cu_seqlens[s + 1], begin);
    double *dstart = work + L * L, *dend = dstart + L, *beta = dend + L, *p = beta + L;
    for (int64_t j = 0; j < L; j++) beta[j] = (double)c->end[j];
    for (bool last = true; row >= 0; last = false) {
        int64_t before = previous_row(c, row, begin);
        for (int64_t j = 0; j < L; j++) p[j] = (double)c->alpha[row * L + j] + beta[j];
        softmax(p, L);
        p[c->label[row]] -= 1;
        for (int64_t j = 0; j < L; j++) {
            if (b->g->dx.data) ses_dst_put(b->g->dx, row * L + j, b->scale * p[j]);
            if (last) dend[j] += p[j];
            if (before < 0) dstart[j] += p[j];
        }
        if (before < 0) return;
        for (int64_t j = 0; j < L; j++) beta[j] += (double)c->x[row * L + j];
        add_pairs(b, before, row, beta, work);
        for (int64_t i = 0; i < L; i++) {
            for (int64_t j = 0; j < L; j++) terms[j] = (double)c->trans[i * L + j] + beta[j];
            p[i] = log_sum_exp(terms, L);
        }
        double all = log_sum_exp(p, L); /* a common term changes no probability */
        for (int64_t i = 0; i < L; i++) beta[i] = p[i] - all;
        row = before;
    }
}

static void grad_chunk(void *ctx, int64_t chunk, void *scratch)
{
    const job *b = ctx;
    const ses_crf_chain *c = b->c;
    int64_t L = c->labels;
    double *work = chunk_work(b, chunk);
    for (int64_t i = 0; i < L * (L + 4); i++) work[i] = 0;
    for (int64_t s = chunk; s < c->seqs; s += SES_CRF_CHUNKS) {
        for (int64_t row = c->cu_seqlens[s]; row < c->cu_seqlens[s + 1] && b->g->dx.data; row++)
            for (int64_t j = 0; j < L && c->label[row] == SES_IGNORE_INDEX; j++)
                ses_dst_put(b->g->dx, row * L + j, 0);
        sequence_grad(b, s, work, scratch);
    }
}

/* Adds `n` numbers from offset `at` of every chunk. */
static void put_sum(const job *b, ses_dst to, int64_t at, int64_t n, int64_t chunks)
{
    for (int64_t i = 0; to.data && i < n; i++) {
        double sum = 0;
        for (int64_t k = 0; k < chunks; k++) sum += chunk_work(b, k)[at + i];
        ses_dst_put(to, i, b->scale * sum);
    }
}

void ses_k_crf_bwd_ref(ses_exec *x, const ses_crf_chain *c, const ses_crf_grad *g)
{
    job b = { c, g, (double)g->dloss[0] * (double)c->loss[1] };
    int64_t L = c->labels, chunks = c->seqs < SES_CRF_CHUNKS ? c->seqs : SES_CRF_CHUNKS;
    ses_parallel_for(x->pool, chunks, grad_chunk, &b);
    put_sum(&b, g->dtrans, 0, L * L, chunks);
    put_sum(&b, g->dstart, L * L, L, chunks);
    put_sum(&b, g->dend, L * L + L, L, chunks);
}
