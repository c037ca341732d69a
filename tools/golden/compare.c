/* Compares outputs, losses and gradients with transformers'. */
#include "compare.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double OUTPUT_LIMIT = 2e-5; /* times max(1, largest magnitude) */
/* relative to the gradient's norm, or to a thousandth of the total norm */
static const double GRAD_LIMIT = 1e-4;
static const double LOSS_LIMIT = 1e-4; /* relative */
static const double QUANTIZED_LOSS_LIMIT = 2e-2;

static void record(golden_result *r, golden_score *s, const char *name, double error, double limit)
{
    if (r->slack > 0) limit *= r->slack;
    double fraction = limit > 0 ? error / limit : error > 0 ? INFINITY : 0;
    if (isnan(fraction)) fraction = INFINITY;
    if (r->verbose) printf("  %-60s error %.3e limit %.3e fraction %.3f\n", name, error, limit, fraction);
    if (!s->any || fraction > s->fraction) {
        s->fraction = fraction;
        snprintf(s->name, sizeof s->name, "%s", name);
    }
    s->any = true;
}

/* FNV-1a over the bytes. */
static void hash_bytes(golden_result *r, const void *data, size_t n)
{
    const unsigned char *p = data;
    uint64_t h = r->bits ? r->bits : 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 0x100000001b3u;
    r->bits = h;
}

/* ---- outputs ---- */

/* Compares the positions that both sides have: ours is dense, theirs padded. */
typedef struct comparison {
    const double *theirs;
    const ses_real *ours;
    double worst, largest;
    double squared_error, norm; /* sums of squares */
} comparison;

static void compare_range(comparison *w, int64_t theirs, int64_t ours, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double a = w->theirs[theirs + i], d = fabs(a - (double)w->ours[ours + i]);
        if (!(d <= w->worst)) w->worst = d; /* NaN sticks */
        if (fabs(a) > w->largest) w->largest = fabs(a);
        w->squared_error += d * d;
        w->norm += a * a;
    }
}

/* The rows of one side: indices of its tokens in ours and in theirs. */
typedef struct grid {
    int64_t width;
    const int32_t *cu;
    const int32_t *index; /* NULL: tokens are a prefix of each row */
} grid;

static int64_t column(const grid *g, int64_t s, int64_t t)
{
    return g->index ? g->index[t] % g->width : t - g->cu[s];
}

static void compare_tokens(comparison *w, const golden_case *c, const grid *g, const ses_output *o,
                           int64_t width)
{
    int64_t cols = o->cols ? o->cols : width;
    for (int64_t s = 0; s < c->rows; s++)
        for (int64_t t = g->cu[s]; t < g->cu[s + 1]; t++)
            compare_range(w, (s * g->width + column(g, s, t)) * cols, t * width + o->col, cols);
}

/* [rows, heads, queries, keys] against [heads, queries, keys] of each sequence; keys of mems come first. */
static void compare_attention(comparison *w, const golden_case *c, const grid *q, const grid *k,
                              int64_t heads)
{
    int64_t at = 0, keys = c->mem_len + k->width;
    for (int64_t s = 0; s < c->rows; s++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = q->cu[s]; i < q->cu[s + 1]; i++) {
                int64_t row = ((s * heads + h) * q->width + column(q, s, i)) * keys;
                compare_range(w, row, at, c->mem_len);
                at += c->mem_len;
                for (int64_t j = k->cu[s]; j < k->cu[s + 1]; j++)
                    compare_range(w, row + c->mem_len + column(k, s, j), at++, 1);
            }
}

/* [M, rows, C] against the mems of each sequence: the last M of its old mems and its tokens. Theirs include
 * padding, so only real tokens are compared. */
static bool compare_mems(comparison *w, const golden_case *c, const ses_tensor_entry *x, int64_t n)
{
    int64_t at = 0, M = x->dim[0], C = x->rank == 3 ? x->dim[2] : 0, first = c->mem_len + c->width - M;
    if (x->rank != 3 || x->dim[1] != c->rows || first < 0) return false;
    for (int64_t s = 0; s < c->rows; s++) {
        int64_t len = c->batch.cu_seqlens[s + 1] - c->batch.cu_seqlens[s],
                n_mems = c->mem_len + len < M ? c->mem_len + len : M;
        for (int64_t j = c->mem_len + len - n_mems; j < c->mem_len + len; j++, at++) {
            int64_t col = j < c->mem_len
                              ? j
                              : c->mem_len + c->index[c->batch.cu_seqlens[s] + j - c->mem_len] % c->width;
            if ((at + 1) * C > n) return false;
            if (col >= first) compare_range(w, ((col - first) * c->rows + s) * C, at * C, C);
        }
    }
    return at * C == n;
}

static bool compare_output(golden_case *c, ses_tape *t, const ses_output *o, const ses_tensor_entry *x,
                           golden_result *r, ses_err *e)
{
    const ses_batch *b = &c->batch;
    int64_t count, expected = 0, n = ses_count(o->tensor), cols = ses_cols(o->tensor);
    /* A decoder that reads the encoder's input has the same rows. */
    grid in = { c->width, b->cu_seqlens, c->index }, target = in;
    if (b->target_cu_seqlens) target = (grid){ c->target_width, b->target_cu_seqlens, c->target_index };
    bool by_target = o->axis == SES_PER_TARGET || o->axis == SES_PER_TARGET_QUERY_KEY ||
                     o->axis == SES_PER_CROSS_QUERY_KEY;
    bool pair = o->axis == SES_PER_QUERY_KEY || o->axis == SES_PER_TARGET_QUERY_KEY ||
                o->axis == SES_PER_CROSS_QUERY_KEY;
    bool memory = o->axis == SES_PER_MEMORY;
    const grid *q = by_target ? &target : &in, *k = o->axis == SES_PER_TARGET_QUERY_KEY ? &target : &in;
    ses_real *ours = ses_arena_array(&c->mem, (size_t)n, sizeof *ours, e);
    comparison w = { .theirs = golden_values(c, x->name, &count, e), .ours = ours };
    if (!ours || !w.theirs || !ses_tape_read(t, o->tensor, ours)) return false;
    if (memory)
        expected = count;
    else if (pair)
        expected = x->rank == 4 ? c->rows * x->dim[1] * q->width * (c->mem_len + k->width) : -1;
    else
        expected = o->axis == SES_PER_SEQUENCE ? n : c->rows * q->width * (o->cols ? o->cols : cols);
    if (count != expected || (memory && !compare_mems(&w, c, x, n))) /* the comparisons rely on the size */
        return ses_fail(e, SES_EFORMAT, "golden.safetensors: \"%s\" has %lld numbers, expected %lld", x->name,
                        (long long)count, (long long)expected);
    hash_bytes(r, ours, (size_t)n * sizeof *ours);
    if (pair)
        compare_attention(&w, c, q, k, x->dim[1]);
    else if (o->axis == SES_PER_SEQUENCE)
        compare_range(&w, 0, 0, n);
    else if (!memory)
        compare_tokens(&w, c, q, o, cols);
    const char *name = x->name + strlen("output.");
    if (!r->quantized)
        record(r, &r->out, name, w.worst, OUTPUT_LIMIT * fmax(1, w.largest));
    else if (strstr(name, "logits") || !strcmp(name, "last_hidden_state"))
        record(r, &r->out, name, sqrt(w.squared_error), r->norm_limit * sqrt(w.norm));
    return true;
}

bool golden_compare_outputs(golden_case *c, ses_tape *t, const ses_outputs *out, golden_result *r, ses_err *e)
{
    for (size_t i = 0; i < ses_safetensors_count(c->golden); i++) {
        const ses_tensor_entry *x = ses_safetensors_at(c->golden, i);
        if (strncmp(x->name, "output.", 7) || !strcmp(x->name, "output.loss")) continue;
        const ses_output *found = ses_outputs_find(out, x->name + 7);
        if (!found)
            record(r, &r->out, x->name + 7, INFINITY, 1); /* missing in Sesame */
        else if (!compare_output(c, t, found, x, r, e))
            return false;
    }
    return true;
}

/* ---- scalars ---- */

static bool compare_scalar(golden_case *c, const char *name, int64_t i, double ours, golden_score *s,
                           golden_result *r, const char *shown, ses_err *e)
{
    int64_t count;
    const double *x = golden_values(c, name, &count, e);
    if (!x) return !e->code;
    hash_bytes(r, &ours, sizeof ours);
    if (i < count)
        record(r, s, shown, fabs(ours - x[i]),
               (r->quantized ? QUANTIZED_LOSS_LIMIT : LOSS_LIMIT) * fabs(x[i]));
    return true;
}

bool golden_compare_loss(golden_case *c, double loss, golden_result *r, ses_err *e)
{
    int64_t count;
    const double *second = c->first_loss_only ? NULL : golden_values(c, "output.mc_loss", &count, e);
    if (second) loss -= *second; /* ours is the sum of both */
    return !e->code && compare_scalar(c, "output.loss", 0, loss, &r->out, r, "loss", e);
}

bool golden_compare_adamw(golden_case *c, int64_t step, double loss, golden_result *r, ses_err *e)
{
    char shown[32];
    snprintf(shown, sizeof shown, "adamw.losses[%lld]", (long long)step);
    return compare_scalar(c, "adamw.losses", step, loss, &r->adamw, r, shown, e);
}

/* ---- gradients ---- */

bool golden_compare_grads(golden_case *c, const ses_model *m, golden_result *r, ses_err *e)
{
    const ses_store *s = ses_model_store(m);
    ses_device *dev = ses_store_device(s);
    int64_t one = 0;
    const double *whole = golden_values(c, "grad_norm", &one, e);
    if (e->code || !compare_scalar(c, "grad_norm", 0, ses_store_grad_norm(s), &r->norm, r, "grad_norm", e))
        return false;
    for (size_t i = 0; i < ses_safetensors_count(c->golden); i++) {
        const ses_tensor_entry *x = ses_safetensors_at(c->golden, i);
        if (strncmp(x->name, "grad.", 5)) continue;
        int64_t count, p = ses_model_find_tensor(m, x->name + 5);
        const double *g = golden_values(c, x->name, &count, e);
        if (!g) return false;
        const ses_tensor *t = p < 0 ? NULL : ses_store_at(s, (size_t)p)->tensor;
        if (!count) continue; /* a width of 0 */
        if (!t || ses_count(t) != count) {
            record(r, &r->grad, x->name + 5, INFINITY, 1); /* no such parameter, or another size */
            continue;
        }
        double norm = 0, squared_error = 0;
        ses_real *ours = ses_arena_array(&c->mem, (size_t)count, sizeof *ours, e);
        if (!ours) return false;
        dev->mem->download(dev, ours, t->grad, (size_t)count * sizeof *ours);
        hash_bytes(r, ours, (size_t)count * sizeof *ours);
        for (int64_t j = 0; j < count; j++) {
            double d = g[j] - (double)ours[j];
            norm += g[j] * g[j];
            squared_error += d * d;
        }
        record(r, &r->grad, x->name + 5, sqrt(squared_error),
               GRAD_LIMIT * fmax(sqrt(norm), 1e-3 * (whole ? *whole : 0)));
    }
    return true;
}
