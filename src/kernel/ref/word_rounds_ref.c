/* Reference rounds of word vectors, see ses_word_rounds. */
#include "kernel/word_draws.h"

#include <string.h>

/* The scratch memory, in this order. */
typedef struct scratch {
    double *sum;              /* [rows][cols]: gradients of the round */
    double *mean, *mean_grad; /* [cols] */
    int32_t *uses, *touched;  /* [rows] */
    int32_t *in, *out;        /* [2 window], [outputs] */
    int64_t n_touched;
} scratch;

static scratch scratch_of(const ses_word_rounds *r)
{
    scratch s = { .sum = r->scratch };
    s.mean = s.sum + r->rows * r->cols, s.mean_grad = s.mean + r->cols;
    s.uses = (int32_t *)(void *)(s.mean_grad + r->cols), s.touched = s.uses + r->rows;
    s.in = s.touched + r->rows, s.out = s.in + 2 * (int64_t)r->window;
    return s;
}

int64_t ses_k_word_rounds_size_ref(ses_exec *x, const ses_word_rounds *r)
{
    (void)x;
    return (r->rows + 2) * r->cols * (int64_t)sizeof(double) +
           (2 * r->rows + 2 * (int64_t)r->window + r->outputs) * (int64_t)sizeof(int32_t);
}

static double log_sigmoid(double z) { return z < 0 ? z - log1p(exp(z)) : -log1p(exp(-z)); }

static double *use(const ses_word_rounds *r, scratch *s, int32_t row)
{
    if (!s->uses[row]++) s->touched[s->n_touched++] = row;
    return s->sum + row * r->cols;
}

/* A pair of an input and an output; adds its gradient to dx. Returns the loss. */
static double train_pair(const ses_word_rounds *r, scratch *s, const double *x, double *dx, int32_t item,
                         double rate)
{
    const float *y = r->weight + (item >> 1) * r->cols;
    double f = 0, *dy = s->sum + (item >> 1) * r->cols;
    int label = item & 1;
    for (int64_t c = 0; c < r->cols; c++) f += x[c] * (double)y[c];
    double g = rate * (label - 1 / (1 + exp(-f)));
    for (int64_t c = 0; c < r->cols; c++) dx[c] += g * (double)y[c], dy[c] += g * x[c];
    return -log_sigmoid(label ? f : -f);
}

/* The mean of n rows. */
static void average(const ses_word_rounds *r, const int32_t *row, int32_t n, double *mean)
{
    for (int64_t c = 0; c < r->cols; c++) {
        double sum = 0;
        for (int32_t i = 0; i < n; i++) sum += (double)r->weight[row[i] * r->cols + c];
        mean[c] = sum / n;
    }
}

static void train_step(const ses_word_rounds *r, scratch *s, int32_t n_in, int32_t n_out, double rate)
{
    int32_t inputs = r->bags ? 1 : n_in;
    for (int32_t j = 0; j < n_out; j++) use(r, s, s->out[j] >> 1);
    for (int32_t i = 0; i < inputs; i++) {
        average(r, s->in + i, r->bags ? n_in : 1, s->mean);
        memset(s->mean_grad, 0, (size_t)r->cols * sizeof *s->mean_grad);
        for (int32_t j = 0; j < n_out; j++)
            r->sums[0] += train_pair(r, s, s->mean, s->mean_grad, s->out[j], rate);
        for (int32_t k = i; k < (r->bags ? n_in : i + 1); k++) {
            double *dx = use(r, s, s->in[k]);
            for (int64_t c = 0; c < r->cols; c++) dx[c] += s->mean_grad[c];
        }
    }
    r->sums[1] += inputs;
}

/* Adds the gradients of the round to the rows. */
static void add_gradients(const ses_word_rounds *r, scratch *s, float rate)
{
    for (int64_t k = 0; k < s->n_touched; k++) {
        int32_t row = s->touched[k];
        double *sum = s->sum + row * r->cols;
        float scale =
            ses_word_scale((row < r->in_rows ? r->in_step : r->out_step) * rate, s->uses[row], s->uses[row]);
        for (int64_t c = 0; c < r->cols; c++) {
            r->weight[row * r->cols + c] += (float)((double)scale * sum[c]);
            sum[c] = 0;
        }
        s->uses[row] = 0;
    }
    s->n_touched = 0;
}

void ses_k_word_rounds_ref(ses_exec *x, const ses_word_rounds *r)
{
    scratch s = scratch_of(r);
    (void)x;
    memset(s.sum, 0, (size_t)(r->rows * r->cols) * sizeof *s.sum);
    memset(s.uses, 0, (size_t)r->rows * sizeof *s.uses);
    for (int64_t k = 0; k < r->count; k++) {
        for (int64_t step = 0; step < r->parts * r->part_words; step++) {
            int32_t n_in, n_out;
            ses_word_step_rows(r, ses_word_position(r, r->first + k, step), s.in, &n_in, s.out, &n_out);
            if (n_in) train_step(r, &s, n_in, n_out, (double)r->rate[k]);
        }
        add_gradients(r, &s, r->rate[k]);
    }
}
