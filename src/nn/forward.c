/* Uploads a batch, derives positions, decoder inputs and masks, and collects the outputs of a forward
 * pass. */
#include "cache_impl.h"
#include "decoder_input.h"
#include "layer_hooks.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Does q continue cached sequences (a decoder-only model, or the decoder of an encoder-decoder)? */
static bool continues(const ses_forward_ctx *p, const ses_seqs *q)
{
    return p->batch->cache && (q == &p->target || !p->batch->target_cu_seqlens);
}

/* Positions of each sequence from the first usable row of the table. If skips_pad, tokens with the padding
 * id get the padding row and are not counted. */
static int32_t *count_positions(ses_forward_ctx *p, const ses_config *c, const ses_seqs *q)
{
    bool cached = continues(p, q);
    int64_t shift = q == &p->target ? p->target_shift : p->in_shift;
    int32_t *position = ses_tape_host_alloc(p->tape, (size_t)q->tokens, sizeof *position);
    for (int64_t s = 0; position && s < q->seqs; s++) {
        int32_t next = (int32_t)(c->position.offset + (cached ? ses_cache_position(p, s, shift) : shift));
        for (int32_t t = q->host_cu_seqlens[s]; t < q->host_cu_seqlens[s + 1]; t++) {
            bool skip = c->position.skips_pad && q->host_ids[t] == c->pad_id;
            position[t] = skip ? (int32_t)c->pad_id : next++;
        }
    }
    return position;
}

static ses_tensor *positions(ses_forward_ctx *p, const ses_config *c, ses_seqs *q, const int32_t *given)
{
    int64_t shift = q == &p->target ? p->target_shift : p->in_shift;
    int32_t *position =
        given ? ses_tape_host_alloc(p->tape, (size_t)q->tokens, sizeof *position) : count_positions(p, c, q);
    for (int64_t t = 0; given && position && t < q->tokens; t++)
        position[t] = given[t] + (int32_t)(c->position.offset + shift);
    q->host_positions = position;
    return position ? ses_tape_ints(p->tape, position, q->tokens) : NULL;
}

static ses_tensor *zeros(ses_forward_ctx *p, int64_t n)
{
    const int32_t *z = ses_tape_host_alloc(p->tape, (size_t)n, sizeof *z);
    return z ? ses_tape_ints(p->tape, z, n) : NULL;
}

static void set_lengths(ses_seqs *q)
{
    for (int64_t s = 0; s < q->seqs; s++) {
        int64_t len = q->host_cu_seqlens[s + 1] - q->host_cu_seqlens[s];
        if (len > q->max_seqlen) q->max_seqlen = len;
        q->token_pairs += len * len;
    }
}

static void upload(ses_forward_ctx *p, const ses_config *c, ses_seqs *q, const int32_t *segments,
                   const int32_t *given)
{
    set_lengths(q);
    q->cu_seqlens = ses_tape_ints(p->tape, q->host_cu_seqlens, q->seqs + 1);
    q->ids = ses_tape_ints(p->tape, q->host_ids, q->tokens);
    q->segments = segments ? ses_tape_ints(p->tape, segments, q->tokens) : zeros(p, q->tokens);
    q->positions = positions(p, c, q, given);
}

/* Labels shifted right, or the encoder's input (BART without decoder ids). cu: ends of the sequences. */
static const int32_t *shift(ses_forward_ctx *p, const int32_t *label, const int32_t *cu)
{
    int64_t seqs = p->batch->seqs;
    int32_t *ids = ses_tape_host_alloc(p->tape, (size_t)cu[seqs], sizeof *ids);
    ses_err e = { 0 };
    for (int64_t s = 0; ids && s < seqs; s++)
        if (!ses_decoder_shift(p->c, label + cu[s], (size_t)(cu[s + 1] - cu[s]), ids + cu[s], &e)) {
            ses_tape_fail(p->tape, e.code, "%s", e.msg);
            return NULL;
        }
    for (int32_t t = 0; ids && t < cu[seqs]; t++)
        if (ids[t] == SES_IGNORE_INDEX) ids[t] = (int32_t)p->c->pad_id;
    return ids;
}

static ses_attn_mask mask_of(const ses_batch *b)
{
    bool none = true, all = true, right = true;
    if (!b->prefix_len) return SES_ATTN_MASK_DEFAULT;
    for (int64_t s = 0; s < b->seqs; s++) {
        right &= b->prefix_len[s] == SES_RIGHT_TO_LEFT;
        none &= b->prefix_len[s] == 0 || b->prefix_len[s] == 1; /* a token attends to itself in any case */
        all &= b->prefix_len[s] >= b->cu_seqlens[s + 1] - b->cu_seqlens[s];
    }
    if (right) return SES_ATTN_MASK_RIGHT_TO_LEFT;
    return none ? SES_ATTN_MASK_CAUSAL : all ? SES_ATTN_MASK_FULL : SES_ATTN_MASK_PREFIX;
}

void ses_forward_set_mask(ses_forward_ctx *p, int64_t heads)
{
    static const ses_real masked = -1e30f;
    const ses_batch *b = p->batch;
    p->attn_mask = mask_of(b);
    if (p->attn_mask != SES_ATTN_MASK_PREFIX) return;
    ses_real *x = ses_tape_host_alloc(p->tape, (size_t)(heads * p->in.token_pairs), sizeof *x), *at = x;
    for (int64_t s = 0; x && s < b->seqs; s++) {
        int64_t len = b->cu_seqlens[s + 1] - b->cu_seqlens[s];
        bool right = b->prefix_len[s] == SES_RIGHT_TO_LEFT;
        for (int64_t i = 0; i < heads * len; i++, at += len)
            for (int64_t j = 0; j < len; j++)
                if (right ? j < i % len : j > i % len && j >= b->prefix_len[s]) at[j] = masked;
    }
    p->mask_bias = x ? ses_tape_input(p->tape, x, SES_DIM(heads * p->in.token_pairs)) : NULL;
}

void ses_forward_begin(ses_forward_ctx *p, size_t outputs)
{
    const ses_batch *b = p->batch;
    ses_hooks_begin(p);
    p->cap = outputs;
    p->item = ses_tape_host_alloc(p->tape, p->cap, sizeof *p->item);
    p->in = (ses_seqs){
        .seqs = b->seqs, .tokens = b->tokens, .host_cu_seqlens = b->cu_seqlens, .host_ids = b->ids
    };
    if (b->ids) upload(p, p->input_c, &p->in, b->segments, b->positions);
    if (b->encoder_states) {
        set_lengths(&p->in);
        p->in.cu_seqlens = ses_tape_ints(p->tape, b->cu_seqlens, b->seqs + 1);
    }
    if (b->predict_positions) {
        p->target = (ses_seqs){ .seqs = b->seqs,
                                .tokens = b->target_cu_seqlens[b->seqs],
                                .host_cu_seqlens = b->target_cu_seqlens };
        set_lengths(&p->target);
        p->target.cu_seqlens = ses_tape_ints(p->tape, b->target_cu_seqlens, b->seqs + 1);
        return;
    }
    if (b->cache) ses_cache_begin(p);
    if (!b->target_cu_seqlens && !p->c->decoder.input_from_source) return;
    const int32_t *cu = b->target_cu_seqlens ? b->target_cu_seqlens : b->cu_seqlens;
    const int32_t *ids = b->target_cu_seqlens && b->target_ids ? b->target_ids
                         : b->target_cu_seqlens                ? shift(p, b->labels, cu)
                                                               : shift(p, b->ids, cu);
    p->target = (ses_seqs){ .seqs = b->seqs, .tokens = cu[b->seqs], .host_cu_seqlens = cu, .host_ids = ids };
    if (ids) upload(p, p->c, &p->target, NULL, b->target_positions);
}

ses_tensor *ses_seqs_shift(ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x, int64_t by)
{
    int32_t *row = ses_tape_host_alloc(p->tape, (size_t)q->tokens, sizeof *row);
    for (int64_t s = 0; row && s < q->seqs; s++)
        for (int64_t t = q->host_cu_seqlens[s]; t < q->host_cu_seqlens[s + 1]; t++) {
            bool inside = t + by >= q->host_cu_seqlens[s] && t + by < q->host_cu_seqlens[s + 1];
            row[t] = inside ? (int32_t)(t + by) : SES_IGNORE_INDEX;
        }
    return row ? ses_gather(p->tape, x, ses_tape_ints(p->tape, row, q->tokens)) : NULL;
}

static ses_output *next(ses_forward_ctx *p)
{
    if (!p->item || p->n == p->cap) return NULL;
    return &p->item[p->n++];
}

void ses_forward_output(ses_forward_ctx *p, ses_axis axis, ses_tensor *x, const char *fmt, ...)
{
    ses_output *o = next(p);
    if (!o) return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(o->name, sizeof o->name, fmt, ap);
    va_end(ap);
    o->tensor = x;
    o->axis = axis;
}

void ses_forward_output_column(ses_forward_ctx *p, ses_axis axis, ses_tensor *x, int64_t col,
                               const char *name)
{
    ses_forward_output(p, axis, x, "%s", name);
    if (p->n) p->item[p->n - 1].col = col, p->item[p->n - 1].cols = 1;
}

void ses_forward_add_loss(ses_forward_ctx *p, ses_tensor *loss)
{
    p->loss = p->loss ? ses_add(p->tape, p->loss, loss) : loss;
}

void ses_forward_add_penalty(ses_forward_ctx *p, ses_tensor *penalty)
{
    p->penalty = p->penalty ? ses_add(p->tape, p->penalty, penalty) : penalty;
}

const ses_head *ses_head_find(const char *name)
{
    static const ses_head *const heads[] = {
#define SES_HEAD(name) &ses_head_##name,
#include "heads.def"
#undef SES_HEAD
    };
    for (size_t i = 0; i < SES_LEN(heads); i++)
        if (!strcmp(heads[i]->name, name)) return heads[i];
    return NULL;
}

const int32_t *ses_head_labels(const ses_head_use *use, const ses_batch *b)
{
    return *(const int32_t *const *)(const void *)((const char *)b + use->labels_offset);
}

/* Labels of sequence tokens; `shift` tokens at the start of a sequence are not predicted. */
static int64_t count_labels(const int32_t *labels, const int32_t *cu, int64_t seqs, int32_t shift)
{
    int64_t n = 0;
    for (int64_t s = 0; s < seqs; s++)
        for (int32_t i = cu[s] + shift; i < cu[s + 1]; i++) n += labels[i] != SES_IGNORE_INDEX;
    return n;
}

int64_t ses_head_predictions(const ses_head_use *use, const ses_batch *b)
{
    const int32_t *labels = ses_head_labels(use, b);
    bool per_token = use->head->axis == SES_LABEL_PER_TOKEN || use->head->axis == SES_LABEL_PER_TARGET;
    if (!labels || use->head->axis == SES_LABEL_SPAN) return b->seqs; /* answers, targets */
    if (per_token && b->target_cu_seqlens) return count_labels(labels, b->target_cu_seqlens, b->seqs, 0);
    if (per_token) return count_labels(labels, b->cu_seqlens, b->seqs, use->head->shifts_labels);
    int64_t n = 0,
            all = use->head->axis == SES_LABEL_PER_QUESTION && b->choices ? b->seqs / b->choices : b->seqs;
    for (int64_t i = 0; i < all; i++) n += labels[i] != SES_IGNORE_INDEX;
    return n;
}

double ses_head_dropout_rate(const ses_config *c)
{
    return c->dropout.head < 0 ? c->dropout.hidden : c->dropout.head;
}
