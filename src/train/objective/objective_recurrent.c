/* Objectives of models with segment recurrence. A passage is processed in pieces; each attends to the hidden
 * states (mems) of the pieces before it. Mems carry no gradient and end with their passage, so passages may
 * come in any order and a run may resume anywhere.
 *   xl   causal language modeling (Transformer-XL, Dai et al. 2019)
 *   plm  permutation language modeling (XLNet, Yang et al. 2019): spans of words are predicted in a random
 *        order, each from the context tokens and the targets before it
 * Piece p of passage s is sequence s * pieces + p of a batch. */
#include "objective_mix.h"

#include "op/op.h"

#include <stdio.h>
#include <string.h>

static int64_t pieces_of(const ses_build_ctx *ctx) { return ctx->o.pieces > 0 ? ctx->o.pieces : 2; }

/* Start of a piece. Lengths differ by at most one. */
static int64_t piece_start(int64_t n, int64_t piece, int64_t pieces) { return n * piece / pieces; }

/* Two tokens per piece: one of them is predicted. */
static int64_t min_passage(const ses_build_ctx *ctx, const ses_objective *o)
{
    (void)o;
    return 2 * pieces_of(ctx);
}

/* ---- building batches ---- */

static bool build_xl(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                     ses_err *e)
{
    int64_t pieces = pieces_of(ctx);
    ctx->text.n = 0;
    if (!ses_build_causal(ctx, p, p->id, 0, &ctx->text, e)) return false;
    int64_t n = (int64_t)ctx->text.n;
    if (n > pieces * ctx->length) n = pieces * ctx->length;
    if (n < 2 * pieces)
        return ses_fail(e, SES_EARG,
                        "objective %s: a passage of %lld tokens is too short for %lld pieces of at least 2",
                        o->name, (long long)n, (long long)pieces);
    for (int64_t i = 0; i < pieces; i++) {
        int64_t from = piece_start(n, i, pieces), count = piece_start(n, i + 1, pieces) - from;
        if (!ses_ints_append(&d->ids, ctx->text.p + from, count, e) ||
            !ses_ints_append(&d->labels, ctx->text.p + from, count, e) ||
            !ses_batch_builder_end_sequence(d, e))
            return false;
    }
    return true;
}

static int64_t max_passage_xl(const ses_build_ctx *ctx, const ses_objective *o)
{
    (void)o;
    return pieces_of(ctx) * ctx->length - (ctx->n_control_codes > 0 ? 2 : 1);
}

/* The passage's token at position i of its sequence; -1: a special token. */
static int64_t passage_index(const ses_special_tokens *x, const ses_passage *p, int64_t i)
{
    int64_t k = i - x->before.n;
    if (k >= p->split && p->split < p->n) k = k < p->split + x->between.n ? -1 : k - x->between.n;
    return k < p->n ? k : -1;
}

/* One piece: a sequence, its targets and its permutation mask. */
static bool build_permuted(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p, uint32_t piece,
                           ses_batch_builder *d, ses_err *e)
{
    size_t from = d->ids.n;
    ses_masking m = ses_masking_settings(ctx, o, p);
    ses_rng_stream rng = ses_passage_rng(ctx, p, SES_RNG_PERMUTE + (piece << 8));
    ctx->chosen.n = ctx->text.n = 0;
    if (!ses_ints_resize(&ctx->chosen, p->n, e) ||
        !ses_mask_choose(&m, p, ctx->special_tokens->special, &rng, &ctx->words, ctx->chosen.p, e) ||
        !ses_build_framed(ctx, p, p->id, NULL, d, e))
        return false;
    int64_t n = (int64_t)(d->ids.n - from);
    uint8_t *mask = ses_batch_builder_add_perm(d, n * n, e);
    if (!mask || !ses_ints_resize(&ctx->text, 2 * n, e)) return false;
    uint8_t *role = (uint8_t *)(ctx->text.p + n);
    for (int64_t i = 0; i < n; i++) {
        int64_t k = passage_index(ctx->special_tokens, p, i);
        bool target = k >= 0 && ctx->chosen.p[k];
        role[i] = k < 0 ? SES_PERM_FUNCTIONAL : target ? SES_PERM_TARGET : SES_PERM_CONTEXT;
        if (target &&
            (!ses_ints_push(&d->predict_positions, (int32_t)i, e) || !ses_ints_push(&d->labels, p->id[k], e)))
            return false;
    }
    ses_permutation_mask(role, n, &rng, ctx->text.p, mask);
    return ses_batch_builder_end_target(d, e);
}

static bool build_plm(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                      ses_err *e)
{
    int64_t pieces = pieces_of(ctx);
    const ses_special_tokens *x = ctx->special_tokens;
    ses_special_tokens none = *x; /* only the last piece has special tokens */
    none.before.n = none.between.n = none.after.n = 0;
    if (pieces > 1 && p->split < p->n)
        return ses_fail(e, SES_EARG, "objective %s: passages of two segments need pieces 1", o->name);
    if (p->n < 2 * pieces)
        return ses_fail(e, SES_EARG,
                        "objective %s: a passage of %lld tokens is too short for %lld pieces of at least 2",
                        o->name, (long long)p->n, (long long)pieces);
    bool ok = true;
    for (int64_t i = 0; ok && i < pieces; i++) {
        int64_t from = piece_start(p->n, i, pieces), n = piece_start(p->n, i + 1, pieces) - from;
        ses_passage part = *p;
        part.id += from, part.starts += from, part.n = n;
        part.split = pieces > 1 ? n : p->split;
        ctx->special_tokens = i + 1 < pieces ? &none : x;
        ok = build_permuted(ctx, o, &part, (uint32_t)i, d, e);
    }
    ctx->special_tokens = x;
    return ok;
}

static int64_t max_passage_plm(const ses_build_ctx *ctx, const ses_objective *o)
{
    (void)o;
    return pieces_of(ctx) * ses_framed_max_passage(ctx);
}

/* ---- forward passes ---- */

/* Makes a batch of the p-th piece of every passage; its arrays live on the tape. */
static bool select_piece(ses_tape *t, const ses_batch *b, int64_t p, int64_t pieces, ses_batch *out)
{
    int64_t seqs = b->seqs / pieces, tokens = 0, targets = 0, pairs = 0, before = 0;
    size_t n = (size_t)b->tokens, m = b->target_cu_seqlens ? (size_t)b->target_cu_seqlens[b->seqs] : n,
           size = sizeof(int32_t);
    for (int64_t s = 0; s < b->seqs; s++)
        pairs +=
            (int64_t)(b->cu_seqlens[s + 1] - b->cu_seqlens[s]) * (b->cu_seqlens[s + 1] - b->cu_seqlens[s]);
    int32_t *cu = ses_tape_host_alloc(t, (size_t)seqs + 1, size),
            *target_cu = ses_tape_host_alloc(t, (size_t)seqs + 1, size);
    int32_t *ids = ses_tape_host_alloc(t, n, size), *segments = ses_tape_host_alloc(t, n, size);
    int32_t *labels = ses_tape_host_alloc(t, m, size), *predict = ses_tape_host_alloc(t, m, size);
    uint8_t *perm = ses_tape_host_alloc(t, b->perm_mask ? (size_t)pairs : 1, 1);
    if (!cu || !target_cu || !ids || !segments || !labels || !predict || !perm) return false;
    pairs = 0;
    for (int64_t s = 0; s < b->seqs; s++) {
        int64_t from = b->cu_seqlens[s], len = b->cu_seqlens[s + 1] - from;
        if (s % pieces == p) {
            memcpy(ids + tokens, b->ids + from, (size_t)len * size);
            if (b->segments) memcpy(segments + tokens, b->segments + from, (size_t)len * size);
            if (!b->target_cu_seqlens) memcpy(labels + tokens, b->labels + from, (size_t)len * size);
            for (int64_t i = b->target_cu_seqlens ? b->target_cu_seqlens[s] : 0;
                 b->target_cu_seqlens && i < b->target_cu_seqlens[s + 1]; i++)
                predict[targets] = b->predict_positions[i], labels[targets++] = b->labels[i];
            if (b->perm_mask) memcpy(perm + pairs, b->perm_mask + before, (size_t)(len * len));
            tokens += len, pairs += len * len;
            cu[s / pieces + 1] = (int32_t)tokens, target_cu[s / pieces + 1] = (int32_t)targets;
        }
        before += len * len;
    }
    *out = (ses_batch){ .seqs = seqs, .tokens = tokens, .cu_seqlens = cu, .ids = ids, .labels = labels };
    if (b->segments) out->segments = segments;
    if (b->target_cu_seqlens) out->target_cu_seqlens = target_cu, out->predict_positions = predict;
    if (b->perm_mask) out->perm_mask = perm;
    return true;
}

/* Sets the mems of the next piece: copies of every layer's rows, without gradient. */
static bool copy_mems(ses_tape *t, const ses_outputs *out, ses_batch *next)
{
    char name[32];
    int64_t layers = 0, count = 0;
    const ses_output *x;
    for (; snprintf(name, sizeof name, "mems.%d", (int)layers), (x = ses_outputs_find(out, name)); layers++)
        count = ses_count(x->tensor);
    ses_real *mems = ses_tape_host_alloc(t, (size_t)(layers * count), sizeof *mems);
    for (int64_t i = 0; mems && i < layers; i++) {
        snprintf(name, sizeof name, "mems.%d", (int)i);
        if (!ses_tape_read(t, ses_outputs_find(out, name)->tensor, mems + i * count)) return false;
    }
    next->mems = mems;
    next->mem_cu_seqlens = out->mem_cu_seqlens;
    return mems != NULL;
}

/* Runs every piece with the mems of the pieces before it. Returns the mean loss over all labels. */
static ses_tensor *run_pieces(ses_objective_mix *mix, const ses_objective *o, ses_tape *t, const ses_batch *b,
                              ses_metric_sums *sums, ses_err *e)
{
    int64_t pieces = pieces_of(&mix->build), all = 0;
    int32_t *rows, *labels;
    ses_batch memory = { 0 };
    ses_tensor *sum = NULL;
    all = ses_label_rows(t, b, o->head, &rows, &labels);
    for (int64_t p = 0; p < pieces; p++) {
        ses_batch part;
        ses_outputs out;
        if (!select_piece(t, b, p, pieces, &part)) break;
        part.mems = memory.mems, part.mem_cu_seqlens = memory.mem_cu_seqlens;
        int64_t n = ses_label_rows(t, &part, o->head, &rows, &labels);
        ses_output_request want = { .mems = p + 1 < pieces, .logits = sums != NULL };
        if (sums && !part.predict_positions) want.rows = rows, want.n_rows = n;
        if (!ses_model_forward(mix->model, t, &part, &want, &out, e)) return NULL;
        if (p + 1 < pieces && !copy_mems(t, &out, &memory)) break;
        if (sums && !ses_metric_sums_add_head(sums, o->name, t, &out, 0, labels, n, e)) return NULL;
        ses_tensor *l = ses_scale(t, out.loss, all ? (double)n / (double)all : 1);
        sum = sum ? ses_add(t, sum, l) : l;
    }
    return ses_tape_ok(t, e) ? sum : NULL;
}

static ses_tensor *loss(ses_objective_mix *mix, const ses_objective *o, ses_tape *t, const ses_batch *b,
                        ses_err *e)
{
    return run_pieces(mix, o, t, b, NULL, e);
}

static bool measure(ses_objective_mix *mix, const ses_objective *o, ses_tape *t, const ses_batch *b,
                    ses_metric_sums *sums, ses_err *e)
{
    return run_pieces(mix, o, t, b, sums, e) != NULL;
}

const ses_objective ses_objective_xl = { .name = "xl",
                                         .description = "causal with segment recurrence (Transformer-XL)",
                                         .is_causal = true,
                                         .needs = SES_NEEDS_RECURRENCE,
                                         .head = "causal-lm",
                                         .build = build_xl,
                                         .max_passage = max_passage_xl,
                                         .min_passage = min_passage,
                                         .mean_over_labels = true,
                                         .loss = loss,
                                         .measure = measure };
const ses_objective ses_objective_plm = { .name = "plm",
                                          .description = "permutation language modeling (XLNet)",
                                          .needs = SES_NEEDS_PERMUTATION,
                                          .head = "masked-lm",
                                          .mask_rate = 1.0 / 6,
                                          .mask_unit = SES_MASK_NGRAMS,
                                          .span_length = 5,
                                          .max_span = 5,
                                          .build = build_plm,
                                          .max_passage = max_passage_plm,
                                          .min_passage = min_passage,
                                          .mean_over_labels = true,
                                          .loss = loss,
                                          .measure = measure };
