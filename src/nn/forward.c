/* A batch on its way to the device, and what a pass gives. */
#include "cache_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Does this go on from a cache: what a lone decoder reads, or the decoder of a pair? */
static bool continues(const ses_forward_ctx *p, const ses_seqs *q)
{
    return p->batch->cache && (q == &p->target || !p->batch->target_cu_seqlens);
}

/* Places counted in each sequence from the table's first usable row. Where pads are not counted, a token
 * with the pad's id stands at the pad's own row. */
static int32_t *count_up(ses_forward_ctx *p, const ses_seqs *q)
{
    const ses_config *c = p->c;
    bool goes_on = continues(p, q);
    int32_t *place = ses_tape_host_alloc(p->tape, (size_t)q->tokens, sizeof *place);
    for (int64_t s = 0; place && s < q->seqs; s++) {
        int32_t next = (int32_t)(c->position.offset +
                                 (goes_on ? ses_cache_len(p->batch->cache, p->batch->slots[s]) : 0));
        for (int32_t t = q->host_cu_seqlens[s]; t < q->host_cu_seqlens[s + 1]; t++) {
            bool skip = c->position.skips_pad && q->host_ids[t] == c->pad_id;
            place[t] = skip ? (int32_t)c->pad_id : next++;
        }
    }
    return place;
}

static ses_tensor *positions(ses_forward_ctx *p, const ses_seqs *q, const int32_t *given)
{
    int32_t *place = given ? ses_tape_host_alloc(p->tape, (size_t)q->tokens, sizeof *place) : count_up(p, q);
    for (int64_t t = 0; given && place && t < q->tokens; t++)
        place[t] = given[t] + (int32_t)p->c->position.offset;
    return place ? ses_tape_ints(p->tape, place, q->tokens) : NULL;
}

static ses_tensor *zeros(ses_forward_ctx *p, int64_t n)
{
    const int32_t *z = ses_tape_host_alloc(p->tape, (size_t)n, sizeof *z);
    return z ? ses_tape_ints(p->tape, z, n) : NULL;
}

static void measure(ses_seqs *q)
{
    for (int64_t s = 0; s < q->seqs; s++) {
        int64_t len = q->host_cu_seqlens[s + 1] - q->host_cu_seqlens[s];
        if (len > q->max_seqlen) q->max_seqlen = len;
        q->token_pairs += len * len;
    }
}

static void upload(ses_forward_ctx *p, ses_seqs *q, const int32_t *segments, const int32_t *given)
{
    measure(q);
    q->cu_seqlens = ses_tape_ints(p->tape, q->host_cu_seqlens, q->seqs + 1);
    q->ids = ses_tape_ints(p->tape, q->host_ids, q->tokens);
    q->segments = segments ? ses_tape_ints(p->tape, segments, q->tokens) : zeros(p, q->tokens);
    q->positions = positions(p, q, given);
}

/* The decoder's input: given, or the labels shifted right behind the start token (or the row's own last
 * label). */
static const int32_t *shifted(ses_forward_ctx *p, const ses_batch *b, int64_t tokens)
{
    const ses_config *c = p->c;
    if (b->target_ids) return b->target_ids;
    int32_t *ids = ses_tape_host_alloc(p->tape, (size_t)tokens, sizeof *ids);
    for (int64_t s = 0; ids && s < b->seqs; s++)
        for (int32_t t = b->target_cu_seqlens[s]; t < b->target_cu_seqlens[s + 1]; t++) {
            bool first = t == b->target_cu_seqlens[s];
            int32_t last = b->labels[b->target_cu_seqlens[s + 1] - 1];
            int32_t id = !first                                          ? b->labels[t - 1]
                         : c->decoder.label_shift == SES_SHIFT_WRAP_LAST ? last
                                                                         : (int32_t)c->decoder.start_id;
            ids[t] = id == SES_IGNORE_INDEX ? (int32_t)c->pad_id : id;
        }
    return ids;
}

/* The encoder's input shifted right, for models that read it twice. */
static const int32_t *echoed(ses_forward_ctx *p, const ses_batch *b)
{
    int32_t *ids = ses_tape_host_alloc(p->tape, (size_t)b->tokens, sizeof *ids);
    for (int64_t s = 0; ids && s < b->seqs; s++)
        for (int32_t t = b->cu_seqlens[s]; t < b->cu_seqlens[s + 1]; t++)
            ids[t] = t > b->cu_seqlens[s]                               ? b->ids[t - 1]
                     : p->c->decoder.label_shift == SES_SHIFT_WRAP_LAST ? b->ids[b->cu_seqlens[s + 1] - 1]
                                                                        : (int32_t)p->c->decoder.start_id;
    return ids;
}

static ses_attn_mask sight_of(const ses_batch *b)
{
    bool none = true, all = true;
    if (!b->prefix_len) return SES_ATTN_MASK_DEFAULT;
    for (int64_t s = 0; s < b->seqs; s++) {
        none &= b->prefix_len[s] <= 1; /* a first token sees itself */
        all &= b->prefix_len[s] >= b->cu_seqlens[s + 1] - b->cu_seqlens[s];
    }
    return none ? SES_ATTN_MASK_CAUSAL : all ? SES_ATTN_MASK_FULL : SES_ATTN_MASK_PREFIX;
}

void ses_forward_set_mask(ses_forward_ctx *p, int64_t heads)
{
    static const ses_real hidden = -1e30f;
    const ses_batch *b = p->batch;
    p->attn_mask = sight_of(b);
    if (p->attn_mask != SES_ATTN_MASK_PREFIX) return;
    ses_real *x = ses_tape_host_alloc(p->tape, (size_t)(heads * p->in.token_pairs), sizeof *x), *at = x;
    for (int64_t s = 0; x && s < b->seqs; s++) {
        int64_t len = b->cu_seqlens[s + 1] - b->cu_seqlens[s];
        for (int64_t i = 0; i < heads * len; i++, at += len)
            for (int64_t j = i % len + 1; j < len; j++)
                if (j >= b->prefix_len[s]) at[j] = hidden;
    }
    p->mask_bias = x ? ses_tape_input(p->tape, x, SES_DIM(heads * p->in.token_pairs)) : NULL;
}

void ses_forward_begin(ses_forward_ctx *p, size_t outputs)
{
    const ses_batch *b = p->batch;
    p->cap = outputs;
    p->item = ses_tape_host_alloc(p->tape, p->cap, sizeof *p->item);
    p->in = (ses_seqs){
        .seqs = b->seqs, .tokens = b->tokens, .host_cu_seqlens = b->cu_seqlens, .host_ids = b->ids
    };
    if (b->ids) upload(p, &p->in, b->segments, b->positions);
    if (b->predict_positions) {
        p->target = (ses_seqs){ .seqs = b->seqs,
                                .tokens = b->target_cu_seqlens[b->seqs],
                                .host_cu_seqlens = b->target_cu_seqlens };
        measure(&p->target);
        p->target.cu_seqlens = ses_tape_ints(p->tape, b->target_cu_seqlens, b->seqs + 1);
        return;
    }
    if (b->cache) ses_cache_begin(p);
    if (!b->target_cu_seqlens && !p->c->decoder.input_from_source) return;
    const int32_t *cu = b->target_cu_seqlens ? b->target_cu_seqlens : b->cu_seqlens;
    const int32_t *ids = b->target_cu_seqlens ? shifted(p, b, cu[b->seqs]) : echoed(p, b);
    p->target = (ses_seqs){ .seqs = b->seqs, .tokens = cu[b->seqs], .host_cu_seqlens = cu, .host_ids = ids };
    if (ids) upload(p, &p->target, NULL, b->target_positions);
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

double ses_head_dropout_rate(const ses_config *c)
{
    return c->dropout.head < 0 ? c->dropout.hidden : c->dropout.head;
}
