/* Value zeroing (Mohebbi et al. 2023): token j mixes into token i of a layer by the cosine distance between
 * the layer's output at i and its output if the values of j are zero in this layer; the distances of a row
 * are divided by their sum, and the matrices of the layers multiplied. The value of a token is its share in
 * the last hidden state that the head reads. Decoders of encoder-decoders divide by the sum over the
 * tokens of the target and of the source. */
#include "explain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The distances of one layer: column j of rows i. */
typedef struct distances {
    ses_real *copy;
    int64_t rows, cols;
    double *out; /* [rows, n] */
    int64_t n;
} distances;

static double cosine_distance(const ses_real *a, const ses_real *b, int64_t n)
{
    double ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < n; i++) {
        ab += (double)a[i] * (double)b[i];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[i] * (double)b[i];
    }
    double d = aa > 0 && bb > 0 ? 1 - ab / sqrt(aa * bb) : 0;
    return d > 0 ? d : 0;
}

/* Variant 0 is the original; variant j + 1 lacks the values of token j. */
static void take(void *ctx, int64_t first, int64_t n, const ses_real *rows, int64_t cols)
{
    distances *d = ctx;
    for (int64_t v = first; v < first + n; v++, rows += d->rows * cols) {
        if (!v) {
            memcpy(d->copy, rows, (size_t)(d->rows * cols) * sizeof *rows);
            continue;
        }
        for (int64_t i = 0; i < d->rows; i++)
            d->out[i * d->n + v - 1] = cosine_distance(rows + i * cols, d->copy + i * cols, cols);
    }
}

/* Distances of the output of layer `l` of `part` for each token of a side: [rows, side.n]. */
static bool measure_layer(ses_explain *x, const ses_explain_zeroing *at, int side, int64_t rows, double *out,
                          ses_err *e)
{
    bool decoder = ses_model_part_layers(x->m, SES_PART_DECODER) > 0;
    size_t n = (size_t)x->side[side].n, width = (size_t)x->m->stack[at->part != SES_PART_MAIN].c->hidden;
    char name[64];
    snprintf(name, sizeof name, "%shidden_states.%d",
             at->part != SES_PART_MAIN ? "decoder_"
             : decoder                 ? "encoder_"
                                       : "",
             (int)at->layer + 1);
    ses_explain_variant *v = ses_arena_array(&x->mem, n + 1, sizeof *v, e);
    uint8_t *zero = ses_arena_array(&x->mem, n * n, 1, e);
    distances d = { .rows = rows, .out = out, .n = (int64_t)n };
    d.copy = ses_arena_array(&x->mem, (size_t)rows * width, sizeof *d.copy, e);
    if (!v || !zero || !d.copy) return false;
    for (size_t j = 0; j < n; j++) zero[j * n + j] = 1, v[j + 1].zero_value[side] = zero + j * n;
    ses_explain_taker taker = { name, take, &d };
    return ses_explain_run(
        x, &(ses_explain_pass){ .n = (int64_t)n + 1, .variant = v, .zeroing = at, .taker = &taker }, e);
}

/* [n, n] times [n, m] into out. */
static void multiply(const double *a, int64_t stride, int64_t rows, int64_t n, const double *b, int64_t m,
                     double *out)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < n; k++)
            for (int64_t j = 0; j < m; j++) out[i * m + j] += a[i * stride + k] * b[k * m + j];
}

/* Divides rows of several blocks side by side by their sums; a row of zeros reads itself. */
static void normalize(double *own, int64_t n, double *other, int64_t m, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) sum += own[i * n + j];
        for (int64_t j = 0; j < m; j++) sum += other[i * m + j];
        if (!(sum > 0)) own[i * n + (i < n ? i : n - 1)] = sum = 1;
        for (int64_t j = 0; j < n; j++) own[i * n + j] /= sum;
        for (int64_t j = 0; j < m; j++) other[i * m + j] /= sum;
    }
}

/* Shares of the tokens in the states of a stack: [n, sources]. */
typedef struct shares {
    int64_t n, sources;
    double *of;
} shares;

/* Multiplies the layers of a part. encoder: shares of the encoder's states for cross attention, or NULL. The
 * sources of a decoder are the tokens of the encoder, then its own. */
static bool mix(ses_explain *x, ses_part part, int side, const shares *encoder, shares *s, ses_err *e)
{
    int64_t layers = ses_model_part_layers(x->m, part), n = s->n, m = encoder ? encoder->n : 0;
    for (int64_t l = 0; l < layers; l++) {
        if (x->call->layers.given && !ses_layer_set_has(&x->call->layers, l + 1)) continue;
        ses_mark mark = ses_arena_mark(&x->mem);
        double *own = ses_arena_array(&x->mem, (size_t)(n * n), sizeof *own, e);
        double *cross = ses_arena_array(&x->mem, (size_t)(n * m) + 1, sizeof *cross, e);
        double *next = ses_arena_array(&x->mem, (size_t)(n * s->sources), sizeof *next, e);
        if (!own || !cross || !next) return false;
        if (x->n_columns < 2) ses_analysis_progress(x->call, "zeroing values", l, layers);
        if (!measure_layer(x, &(ses_explain_zeroing){ part, l }, side, n, own, e)) return false;
        if (m &&
            !measure_layer(x, &(ses_explain_zeroing){ SES_PART_CROSS, l }, SES_EXPLAIN_SOURCE, n, cross, e))
            return false;
        normalize(own, n, cross, m, n);
        multiply(own, n, n, n, s->of, s->sources, next);
        if (m) multiply(cross, m, n, m, encoder->of, encoder->sources, next);
        memcpy(s->of, next, (size_t)(n * s->sources) * sizeof *next);
        ses_arena_rewind(&x->mem, mark);
    }
    return true;
}

/* ---- the state that the head reads ---- */

/* weight [n]: of each position of the last hidden states. */
static void weigh_positions(const ses_explain *x, int64_t n, double *weight)
{
    const ses_explain_target *g = &x->target;
    const ses_config *c = &x->m->c;
    const int32_t *id = x->side[SES_EXPLAIN_SOURCE].id;
    int64_t at = n - 1;
    if (g->kind == SES_EXPLAIN_SPAN) {
        weight[g->start] += 0.5, weight[g->end] += 0.5;
        return;
    }
    bool mean =
        !c->pooler.present && (c->summary.kind == SES_SUMMARY_MEAN || ses_custom_head_is_recurrent(c));
    for (int64_t i = 0; i < n && g->kind == SES_EXPLAIN_SEQUENCE && mean; i++) weight[i] = 1 / (double)n;
    if (g->kind == SES_EXPLAIN_SEQUENCE && mean) return;
    if (g->kind != SES_EXPLAIN_SEQUENCE)
        at = g->position;
    else if (c->pooler.present || c->summary.kind == SES_SUMMARY_FIRST)
        at = 0;
    else if (c->summary.kind == SES_SUMMARY_EOS) {
        while (at > 0 && id[at] != c->eos_id) at--;
        if (id[at] != c->eos_id) at = n - 1;
    }
    weight[at] = 1;
}

static bool start_shares(ses_explain *x, shares *s, int64_t n, int64_t sources, int64_t first, ses_err *e)
{
    *s = (shares){ n, sources, ses_arena_array(&x->mem, (size_t)(n * sources), sizeof *s->of, e) };
    for (int64_t i = 0; s->of && i < n; i++) s->of[i * sources + first + i] = 1;
    return s->of != NULL;
}

static bool run(ses_explain *x, ses_err *e)
{
    int64_t n = x->side[SES_EXPLAIN_SOURCE].n, m = x->echo ? n : x->side[SES_EXPLAIN_TARGET].n;
    shares first, second;
    if (x->target.hide_end > x->target.hide_begin)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "--method value-zero: a predicted position has a stream of its own; use "
                        "value-zero-score");
    if (!start_shares(x, &first, n, n, 0, e) || !mix(x, SES_PART_MAIN, SES_EXPLAIN_SOURCE, NULL, &first, e))
        return false;
    const shares *last = &first;
    if (m) {
        int side = x->echo ? SES_EXPLAIN_SOURCE : SES_EXPLAIN_TARGET;
        if (!start_shares(x, &second, m, n + m, n, e)) return false;
        shares wide = { n, n + m, ses_arena_array(&x->mem, (size_t)(n * (n + m)), sizeof(double), e) };
        if (!wide.of) return false;
        for (int64_t i = 0; i < n; i++)
            memcpy(wide.of + i * (n + m), first.of + i * n, (size_t)n * sizeof(double));
        if (!mix(x, SES_PART_DECODER, side, &wide, &second, e)) return false;
        last = &second;
    }
    double *weight = ses_arena_array(&x->mem, (size_t)last->n, sizeof *weight, e);
    double *echo = ses_arena_array(&x->mem, (size_t)n + 1, sizeof *echo, e);
    if (!weight || !echo) return false;
    weigh_positions(x, last->n, weight);
    for (int64_t j = 0; j < last->sources; j++) {
        double sum = 0;
        for (int64_t i = 0; i < last->n; i++) sum += weight[i] * last->of[i * last->sources + j];
        *(j < n ? &x->value[0][j] : x->echo ? &echo[j - n] : &x->value[1][j - n]) = sum;
    }
    ses_explain_fold_echo(x, echo);
    x->is_unsigned = true;
    x->scale = "shares of the tokens in the state that the head reads; they add up to 1";
    return ses_explain_run(x, &(ses_explain_pass){ .n = 1, .score = &x->score }, e);
}

const ses_explain_method ses_explain_value_zero = {
    .description = "Value zeroing: how much a token mixes into the state that the head reads, by the cosine "
                   "distance of hidden states without its values.",
    .run = run,
};
