/* Shared by the objectives: sequences with special tokens, masking, rows with labels. */
#include "objective.h"

#include "base/alloc.h"
#include "mask_units.h"
#include "nn/nn.h"
#include "op/op.h"

#include <string.h>

/* ---- settings and random numbers ---- */

double ses_mask_rate_at(const ses_build_ctx *ctx, const ses_objective *o)
{
    double from = ctx->o.mask_rate >= 0 ? ctx->o.mask_rate : o->mask_rate;
    return ctx->o.mask_rate_end < 0 ? from : from + (ctx->o.mask_rate_end - from) * ctx->progress;
}

ses_masking ses_masking_settings(const ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p)
{
    double mean = ctx->o.span_length > 0 ? ctx->o.span_length : o->span_length;
    double keep = ctx->o.keep_rate >= 0 ? ctx->o.keep_rate : o->keep_rate;
    double random = ctx->o.random_rate >= 0 ? ctx->o.random_rate : o->random_rate;
    return (ses_masking){ .unit = p ? ses_mask_unit_of(ctx, o, p) : o->mask_unit,
                          .rate = ses_mask_rate_at(ctx, o),
                          .mask_rate = 1 - (keep + random), /* exactly 0 for 0.9 and 0.1 */
                          .random_rate = random,
                          .geometric_p = mean > 1 ? 1 / mean : 1,
                          .max_words = ctx->o.max_span > 0 ? ctx->o.max_span : o->max_span };
}

ses_rng_stream ses_passage_rng(const ses_build_ctx *ctx, const ses_passage *p, uint32_t purpose)
{
    return ses_rng_stream_of(ctx->seed, p->number, purpose);
}

int32_t ses_control_code_of(const ses_build_ctx *ctx, const ses_passage *p)
{
    return p->corpus >= 0 && p->corpus < ctx->n_control_codes ? ctx->control_code[p->corpus] : -1;
}

/* ---- sequences ---- */

int64_t ses_framed_max_passage(const ses_build_ctx *ctx)
{
    return ctx->length - ctx->special_tokens->before.n - ctx->special_tokens->between.n -
           ctx->special_tokens->after.n;
}

static bool put_part(const ses_template_part *f, bool labels, ses_batch_builder *d, ses_err *e)
{
    for (int64_t i = 0; i < f->n; i++)
        if (!ses_ints_push(&d->ids, f->id[i], e) || !ses_ints_push(&d->segments, f->segment[i], e) ||
            (labels && !ses_ints_push(&d->labels, SES_IGNORE_INDEX, e)))
            return false;
    return true;
}

static bool put_text(const int32_t *id, const int32_t *label, int64_t n, int32_t segment,
                     ses_batch_builder *d, ses_err *e)
{
    if (!ses_ints_append(&d->ids, id, n, e) || (label && !ses_ints_append(&d->labels, label, n, e)))
        return false;
    size_t from = d->segments.n;
    if (!ses_ints_append(&d->segments, NULL, n, e)) return false;
    for (size_t i = from; i < d->segments.n; i++) d->segments.p[i] = segment;
    return true;
}

bool ses_build_framed(const ses_build_ctx *ctx, const ses_passage *p, const int32_t *id, const int32_t *label,
                      ses_batch_builder *d, ses_err *e)
{
    const ses_special_tokens *x = ctx->special_tokens;
    bool has_pair = p->split < p->n, labels = label != NULL;
    ses_template_part last = x->after;
    int64_t total = p->n + x->before.n + (has_pair ? x->between.n : 0) + last.n;
    if (total > ctx->length)
        return ses_fail(e, SES_EARG,
                        "a passage of %lld tokens makes a sequence of %lld; expected at most %lld",
                        (long long)p->n, (long long)total, (long long)ctx->length);
    for (int64_t i = 0; !has_pair && i < last.n; i++)
        if (last.segment[i] == x->segment_b) last.segment[i] = 0;
    if (!put_part(&x->before, labels, d, e) || !put_text(id, label, p->split, 0, d, e)) return false;
    if (has_pair &&
        (!put_part(&x->between, labels, d, e) ||
         !put_text(id + p->split, labels ? label + p->split : NULL, p->n - p->split, x->segment_b, d, e)))
        return false;
    return put_part(&last, labels, d, e) && ses_batch_builder_end_sequence(d, e);
}

bool ses_build_masked(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p, ses_err *e)
{
    ses_masking m = ses_masking_settings(ctx, o, p);
    ses_rng_stream d = ses_passage_rng(ctx, p, SES_RNG_MASK);
    ctx->chosen.n = ctx->text.n = 0;
    if (!ses_ints_resize(&ctx->chosen, p->n, e) || !ses_ints_resize(&ctx->text, p->n, e) ||
        !ses_mask_choose(&m, p, ctx->special_tokens->special, &d, &ctx->words, ctx->chosen.p, e))
        return false;
    ses_mask_apply(&m, p, ctx->special_tokens, ctx->chosen.p, &d, ctx->text.p);
    for (int64_t i = 0; i < p->n; i++) ctx->chosen.p[i] = ctx->chosen.p[i] ? p->id[i] : SES_IGNORE_INDEX;
    return true;
}

/* ---- rows with labels ---- */

int64_t ses_label_rows(ses_tape *t, const ses_batch *b, const char *head, int32_t **rows, int32_t **labels)
{
    const ses_head *h = ses_head_find(head);
    bool next = h && h->shifts_labels, pair = h && h->axis == SES_LABEL_PER_SEQUENCE;
    const int32_t *from = pair ? b->pair_labels : b->labels;
    int64_t n = 0, max = pair ? b->seqs : b->target_cu_seqlens ? b->target_cu_seqlens[b->seqs] : b->tokens;
    *rows = ses_tape_host_alloc(t, (size_t)max, sizeof **rows);
    *labels = ses_tape_host_alloc(t, (size_t)max, sizeof **labels);
    if (!*rows || !*labels || !from) return 0;
    for (int64_t i = 0; i < max && !next; i++)
        if (from[i] != SES_IGNORE_INDEX) (*rows)[n] = (int32_t)i, (*labels)[n++] = from[i];
    for (int64_t s = 0; s < b->seqs && next; s++)
        for (int32_t i = b->cu_seqlens[s]; i + 1 < b->cu_seqlens[s + 1]; i++)
            if (from[i + 1] != SES_IGNORE_INDEX) (*rows)[n] = i, (*labels)[n++] = from[i + 1];
    return n;
}

int64_t ses_count_correct(ses_tape *t, const ses_tensor *x, const int32_t *label, int64_t n, ses_err *e)
{
    int64_t V = ses_cols(x), correct = 0;
    ses_real *y = ses_alloc_array((size_t)ses_count(x), sizeof *y, e);
    if (!y) return -1;
    bool ok = ses_tape_read(t, x, y);
    for (int64_t i = 0; ok && i < n; i++) {
        int64_t best = 0;
        for (int64_t v = 1; v < V; v++)
            if (y[i * V + v] > y[i * V + best]) best = v;
        correct += best == label[i];
    }
    ses_free(y);
    return ok ? correct : (ses_tape_ok(t, e), -1);
}
