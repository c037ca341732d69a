#include "compare.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double OUTPUT_LIMIT = 2e-5; /* x max(1, largest magnitude) */
static const double GRAD_LIMIT = 1e-4;   /* of the gradient's norm, or of a thousandth of the whole one's */
static const double LOSS_LIMIT = 1e-4;   /* relative */
static const double COARSE_LOSS_LIMIT = 2e-2;

static void note(gold_result *r, gold_score *s, const char *name, double error, double limit)
{
    if (r->slack > 0) limit *= r->slack;
    double share = limit > 0 ? error / limit : error > 0 ? INFINITY : 0;
    if (isnan(share)) share = INFINITY;
    if (r->verbose) printf("  %-60s error %.3e limit %.3e share %.3f\n", name, error, limit, share);
    if (!s->any || share > s->share) {
        s->share = share;
        snprintf(s->name, sizeof s->name, "%s", name);
    }
    s->any = true;
}

/* FNV-1a over the bytes. */
static void mix(gold_result *r, const void *data, size_t n)
{
    const unsigned char *p = data;
    uint64_t h = r->bits ? r->bits : 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 0x100000001b3u;
    r->bits = h;
}

/* ---- outputs ---- */

/* Walks the places both sides have: ours is a dense array, theirs a padded one. */
typedef struct walk {
    const double *theirs;
    const ses_real *ours;
    double worst, largest;
    double apart, norm; /* sums of squares */
} walk;

static void span(walk *w, int64_t theirs, int64_t ours, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double a = w->theirs[theirs + i], d = fabs(a - (double)w->ours[ours + i]);
        if (!(d <= w->worst)) w->worst = d; /* NaN sticks */
        if (fabs(a) > w->largest) w->largest = fabs(a);
        w->apart += d * d;
        w->norm += a * a;
    }
}

/* One side's rows: where its tokens are in ours and in theirs. */
typedef struct grid {
    int64_t width;
    const int32_t *cu;
    const int32_t *place; /* NULL: tokens are a prefix of each row */
} grid;

static int64_t column(const grid *g, int64_t s, int64_t t)
{
    return g->place ? g->place[t] % g->width : t - g->cu[s];
}

static void walk_tokens(walk *w, const gold_case *c, const grid *g, const ses_output *o, int64_t width)
{
    int64_t cols = o->cols ? o->cols : width;
    for (int64_t s = 0; s < c->rows; s++)
        for (int64_t t = g->cu[s]; t < g->cu[s + 1]; t++)
            span(w, (s * g->width + column(g, s, t)) * cols, t * width + o->col, cols);
}

/* [rows, heads, queries, keys] against sequence after sequence [heads, queries, keys]; a memory's keys come
 * before the others. */
static void walk_pairs(walk *w, const gold_case *c, const grid *q, const grid *k, int64_t heads)
{
    int64_t at = 0, keys = c->memory + k->width;
    for (int64_t s = 0; s < c->rows; s++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = q->cu[s]; i < q->cu[s + 1]; i++) {
                int64_t row = ((s * heads + h) * q->width + column(q, s, i)) * keys;
                span(w, row, at, c->memory);
                at += c->memory;
                for (int64_t j = k->cu[s]; j < k->cu[s + 1]; j++)
                    span(w, row + c->memory + column(k, s, j), at++, 1);
            }
}

/* [M, rows, C] against what each sequence would remember: the last of its memory and its tokens. Theirs are
 * of the padded row, so they meet where the token is real. */
static bool walk_memory(walk *w, const gold_case *c, const ses_tensor_entry *x, int64_t n)
{
    int64_t at = 0, M = x->dim[0], C = x->rank == 3 ? x->dim[2] : 0, first = c->memory + c->width - M;
    if (x->rank != 3 || x->dim[1] != c->rows || first < 0) return false;
    for (int64_t s = 0; s < c->rows; s++) {
        int64_t len = c->batch.cu_seqlens[s + 1] - c->batch.cu_seqlens[s],
                mine = c->memory + len < M ? c->memory + len : M;
        for (int64_t j = c->memory + len - mine; j < c->memory + len; j++, at++) {
            int64_t col =
                j < c->memory ? j : c->memory + c->place[c->batch.cu_seqlens[s] + j - c->memory] % c->width;
            if ((at + 1) * C > n) return false;
            if (col >= first) span(w, ((col - first) * c->rows + s) * C, at * C, C);
        }
    }
    return at * C == n;
}

static bool compare_output(gold_case *c, ses_tape *t, const ses_output *o, const ses_tensor_entry *x,
                           gold_result *r, ses_err *e)
{
    const ses_batch *b = &c->batch;
    int64_t count, want = 0, n = ses_count(o->tensor), cols = ses_cols(o->tensor);
    /* A model that reads its input twice has the same rows. */
    grid in = { c->width, b->cu_seqlens, c->place }, target = in;
    if (b->target_cu_seqlens) target = (grid){ c->target_width, b->target_cu_seqlens, c->target_place };
    bool by_target = o->axis == SES_PER_TARGET || o->axis == SES_PER_TARGET_QUERY_KEY ||
                     o->axis == SES_PER_CROSS_QUERY_KEY;
    bool pair = o->axis == SES_PER_QUERY_KEY || o->axis == SES_PER_TARGET_QUERY_KEY ||
                o->axis == SES_PER_CROSS_QUERY_KEY;
    bool memory = o->axis == SES_PER_MEMORY;
    const grid *q = by_target ? &target : &in, *k = o->axis == SES_PER_TARGET_QUERY_KEY ? &target : &in;
    ses_real *ours = ses_arena_array(&c->mem, (size_t)n, sizeof *ours, e);
    walk w = { .theirs = gold_numbers(c, x->name, &count, e), .ours = ours };
    if (!ours || !w.theirs || !ses_tape_read(t, o->tensor, ours)) return false;
    if (memory)
        want = count;
    else if (pair)
        want = x->rank == 4 ? c->rows * x->dim[1] * q->width * (c->memory + k->width) : -1;
    else
        want = o->axis == SES_PER_SEQUENCE ? n : c->rows * q->width * (o->cols ? o->cols : cols);
    if (count != want || (memory && !walk_memory(&w, c, x, n))) /* walks trust the size */
        return ses_fail(e, SES_EFORMAT, "golden.safetensors: \"%s\" has %lld numbers, expected %lld", x->name,
                        (long long)count, (long long)want);
    mix(r, ours, (size_t)n * sizeof *ours);
    if (pair)
        walk_pairs(&w, c, q, k, x->dim[1]);
    else if (o->axis == SES_PER_SEQUENCE)
        span(&w, 0, 0, n);
    else if (!memory)
        walk_tokens(&w, c, q, o, cols);
    const char *name = x->name + strlen("output.");
    if (!r->coarse)
        note(r, &r->out, name, w.worst, OUTPUT_LIMIT * fmax(1, w.largest));
    else if (strstr(name, "logits") || !strcmp(name, "last_hidden_state"))
        note(r, &r->out, name, sqrt(w.apart), r->farthest * sqrt(w.norm));
    return true;
}

bool gold_compare_outputs(gold_case *c, ses_tape *t, const ses_outputs *out, gold_result *r, ses_err *e)
{
    for (size_t i = 0; i < ses_safetensors_count(c->gold); i++) {
        const ses_tensor_entry *x = ses_safetensors_at(c->gold, i);
        if (strncmp(x->name, "output.", 7) || !strcmp(x->name, "output.loss")) continue;
        const ses_output *found = ses_outputs_find(out, x->name + 7);
        if (!found)
            note(r, &r->out, x->name + 7, INFINITY, 1); /* the reference gives it, we do not */
        else if (!compare_output(c, t, found, x, r, e))
            return false;
    }
    return true;
}

/* ---- numbers ---- */

static bool compare_scalar(gold_case *c, const char *name, int64_t i, double ours, gold_score *s,
                           gold_result *r, const char *shown, ses_err *e)
{
    int64_t count;
    const double *x = gold_numbers(c, name, &count, e);
    if (!x) return !e->code;
    mix(r, &ours, sizeof ours);
    if (i < count)
        note(r, s, shown, fabs(ours - x[i]), (r->coarse ? COARSE_LOSS_LIMIT : LOSS_LIMIT) * fabs(x[i]));
    return true;
}

bool gold_compare_loss(gold_case *c, double loss, gold_result *r, ses_err *e)
{
    int64_t count;
    const double *second = c->one_of_two ? NULL : gold_numbers(c, "output.mc_loss", &count, e);
    if (second) loss -= *second; /* ours is the sum of both */
    return !e->code && compare_scalar(c, "output.loss", 0, loss, &r->out, r, "loss", e);
}

bool gold_compare_adamw(gold_case *c, int64_t step, double loss, gold_result *r, ses_err *e)
{
    char shown[32];
    snprintf(shown, sizeof shown, "adamw.losses[%lld]", (long long)step);
    return compare_scalar(c, "adamw.losses", step, loss, &r->adamw, r, shown, e);
}

/* ---- gradients ---- */

bool gold_compare_grads(gold_case *c, const ses_model *m, gold_result *r, ses_err *e)
{
    const ses_store *s = ses_model_store(m);
    ses_device *dev = ses_store_device(s);
    int64_t one = 0;
    const double *whole = gold_numbers(c, "grad_norm", &one, e);
    if (e->code || !compare_scalar(c, "grad_norm", 0, ses_store_grad_norm(s), &r->norm, r, "grad_norm", e))
        return false;
    for (size_t i = 0; i < ses_safetensors_count(c->gold); i++) {
        const ses_tensor_entry *x = ses_safetensors_at(c->gold, i);
        if (strncmp(x->name, "grad.", 5)) continue;
        int64_t count, p = ses_model_find_tensor(m, x->name + 5);
        const double *g = gold_numbers(c, x->name, &count, e);
        if (!g) return false;
        const ses_tensor *t = p < 0 ? NULL : ses_store_at(s, (size_t)p)->tensor;
        if (!count) continue; /* of a width of 0 */
        if (!t || ses_count(t) != count) {
            note(r, &r->grad, x->name + 5, INFINITY, 1); /* no such parameter here, or of another size */
            continue;
        }
        double norm = 0, apart = 0;
        ses_real *ours = ses_arena_array(&c->mem, (size_t)count, sizeof *ours, e);
        if (!ours) return false;
        dev->mem->download(dev, ours, t->grad, (size_t)count * sizeof *ours);
        mix(r, ours, (size_t)count * sizeof *ours);
        for (int64_t j = 0; j < count; j++) {
            double d = g[j] - (double)ours[j];
            norm += g[j] * g[j];
            apart += d * d;
        }
        note(r, &r->grad, x->name + 5, sqrt(apart),
             GRAD_LIMIT * fmax(sqrt(norm), 1e-3 * (whole ? *whole : 0)));
    }
    return true;
}
