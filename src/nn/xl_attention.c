/* Transformer-XL attention: keys and values over mems and batch, relative position scores. */
#include "xl_attention.h"

#include "layer_hooks.h"

#include <math.h>

static int64_t mem_count(const ses_batch *b, int64_t s)
{
    return b->mem_cu_seqlens[s + 1] - b->mem_cu_seqlens[s];
}

int64_t ses_xl_mem_len(const ses_xl_keys *r, int64_t s)
{
    return r->p->batch->mem_cu_seqlens ? mem_count(r->p->batch, s) : r->zero_mem_len;
}

/* Offsets, source rows and segments of the keys. */
static bool set_keys(ses_xl_keys *r)
{
    const ses_batch *b = r->p->batch;
    ses_tape *t = r->p->tape;
    int64_t M = b->mem_cu_seqlens ? b->mem_cu_seqlens[b->seqs] : 0, n = 0;
    r->tokens = b->tokens + (b->mem_cu_seqlens ? M : r->zero_mem_len * b->seqs);
    int32_t *cu = ses_tape_host_alloc(t, (size_t)b->seqs + 1, sizeof *cu);
    int32_t *row[3]; /* row in the mems, row in the batch, segment */
    for (int i = 0; i < 3; i++) row[i] = ses_tape_host_alloc(t, (size_t)r->tokens, sizeof **row);
    if (!cu || !row[0] || !row[1] || !row[2]) return false;
    for (int64_t s = 0; s < b->seqs; s++) {
        int64_t mem = ses_xl_mem_len(r, s), len = b->cu_seqlens[s + 1] - b->cu_seqlens[s];
        cu[s] = (int32_t)n;
        if (mem + len > r->max_seqlen) r->max_seqlen = mem + len;
        for (int64_t j = 0; j < mem + len; j++, n++) {
            row[0][n] = j < mem && b->mem_cu_seqlens ? (int32_t)(b->mem_cu_seqlens[s] + j) : SES_IGNORE_INDEX;
            row[1][n] = j < mem ? SES_IGNORE_INDEX : (int32_t)(b->cu_seqlens[s] + j - mem);
            row[2][n] = b->segments && j >= mem ? b->segments[b->cu_seqlens[s] + j - mem] : 0;
        }
    }
    cu[b->seqs] = (int32_t)n;
    r->host_cu_seqlens = cu;
    r->cu_seqlens = ses_tape_ints(t, cu, b->seqs + 1);
    if (b->segments) r->label = ses_tape_ints(t, row[2], n);
    r->batch_rows = ses_tape_ints(t, row[1], n);
    if (M) r->mem_rows = ses_tape_ints(t, row[0], n);
    return true;
}

/* Sinusoidal embedding of every distance, in float as transformers computes it. The row of distance d = query
 * - key is d + back; back is the largest distance of a key after its query. */
static bool set_sines(ses_xl_keys *r, bool bidirectional)
{
    const ses_config *c = r->p->c;
    ses_tape *t = r->p->tape;
    int64_t max_len = r->max_seqlen, far = max_len - 1, half = c->hidden / 2;
    if (c->xl.clamp_len && c->xl.clamp_len < far) far = c->xl.clamp_len;
    int64_t back = bidirectional ? far : 0, rows = far + back + 1;
    ses_real *x = ses_tape_host_alloc(t, (size_t)(rows * c->hidden), sizeof *x);
    int32_t *at = ses_tape_host_alloc(t, (size_t)(2 * max_len - 1), sizeof *at);
    if (!x || !at) return false;
    for (int64_t j = 0; j < half; j++) {
        float rate = 1 / powf(10000, (float)(2 * j) / (float)c->hidden);
        for (int64_t d = -back; d <= far; d++) {
            double angle = (double)((float)d * rate);
            x[(back + d) * c->hidden + j] = (ses_real)sin(angle);
            x[(back + d) * c->hidden + j + half] = (ses_real)cos(angle);
        }
    }
    for (int64_t i = 0; i < 2 * max_len - 1; i++) {
        int64_t d = max_len - 1 - i;
        at[i] = (int32_t)((d > far ? far : d < -back ? -back : d) + back);
    }
    r->sines = ses_dropout(t, ses_tape_input(t, x, SES_DIM(rows, c->hidden)), c->dropout.hidden);
    r->dist_to_row = ses_tape_ints(t, at, 2 * max_len - 1);
    return true;
}

bool ses_xl_keys_begin(ses_xl_keys *r, bool bidirectional)
{
    return set_keys(r) && set_sines(r, bidirectional);
}

ses_tensor *ses_xl_concat_mems(const ses_xl_keys *r, ses_tensor *h, int i)
{
    const ses_batch *b = r->p->batch;
    ses_tape *t = r->p->tape;
    if (r->tokens == b->tokens) return h;
    ses_tensor *tokens = ses_gather(t, h, r->batch_rows);
    if (!r->mem_rows) return tokens;
    int64_t M = b->mem_cu_seqlens[b->seqs], C = r->p->c->hidden;
    ses_tensor *mem = ses_tape_input(t, b->mems + i * M * C, SES_DIM(M, C));
    return ses_add(t, ses_gather(t, mem, r->mem_rows), tokens);
}

/* The last mem_len keys of each sequence; of the batch's own tokens only the first reuse_len. */
void ses_xl_output_mems(const ses_xl_keys *r, ses_tensor *keys, int i)
{
    const ses_config *c = r->p->c;
    int64_t n = 0;
    int32_t *row =
        r->p->request->mems ? ses_tape_host_alloc(r->p->tape, (size_t)r->tokens, sizeof *row) : NULL;
    int32_t *cu = row ? ses_tape_host_alloc(r->p->tape, (size_t)r->p->batch->seqs + 1, sizeof *cu) : NULL;
    if (!row || !cu) return;
    for (int64_t s = 0; s < r->p->batch->seqs; s++) {
        int64_t begin = r->host_cu_seqlens[s], end = r->host_cu_seqlens[s + 1], mem = ses_xl_mem_len(r, s);
        if (c->xl.reuse_len && begin + mem + c->xl.reuse_len < end) end = begin + mem + c->xl.reuse_len;
        if (c->xl.mem_len && end - begin > c->xl.mem_len) begin = end - c->xl.mem_len;
        for (int64_t j = begin; j < end; j++) row[n++] = (int32_t)j;
        cu[s + 1] = (int32_t)n;
    }
    ses_tensor *mems = ses_gather(r->p->tape, keys, ses_tape_ints(r->p->tape, row, n));
    r->p->mem_cu_seqlens = cu;
    ses_forward_output(r->p, SES_PER_MEMORY, mems, "mems.%d", i);
}

/* The row of each token of the batch among the keys. */
static const int32_t *key_of_token(const ses_xl_keys *r)
{
    const ses_batch *b = r->p->batch;
    int32_t *row = ses_tape_host_alloc(r->p->tape, (size_t)b->tokens, sizeof *row);
    for (int64_t s = 0; row && s < b->seqs; s++)
        for (int32_t i = b->cu_seqlens[s]; i < b->cu_seqlens[s + 1]; i++)
            row[i] = r->host_cu_seqlens[s] + (int32_t)ses_xl_mem_len(r, s) + i - b->cu_seqlens[s];
    return row;
}

ses_tensor *ses_xl_attention(const ses_xl_keys *r, const ses_xl_attention_inputs *a, ses_tensor **probs)
{
    ses_tape *t = r->p->tape;
    const ses_config *c = r->p->c;
    ses_relative_inputs in = { .cu_seqlens_q = a->seqs->cu_seqlens,
                               .cu_seqlens_k = r->cu_seqlens,
                               .q_pos = a->q_pos,
                               .dist_to_row = r->dist_to_row };
    in.mask = a->mask, in.label = a->segment ? r->label : NULL;
    in.term[0] =
        (ses_relative_term){ .x = ses_affine(t, a->query, NULL, a->distance_bias), .r = a->distance };
    if (in.label)
        in.term[1] = (ses_relative_term){ .x = ses_affine(t, a->query, NULL, a->segment_bias),
                                          .r = a->segment,
                                          .rows = SES_ROWS_BY_LABEL };
    ses_relative_options by = { .heads = c->attention.heads,
                                .max_seqlen_k = r->max_seqlen,
                                .pairs = a->pairs,
                                .reversed_from = a->reversed_from,
                                .for_attention = !r->p->hooked };
    ses_attention_inputs x = { .q = ses_affine(t, a->query, NULL, a->content_bias),
                               .k = a->key,
                               .v = a->value,
                               .cu_seqlens_q = a->seqs->cu_seqlens,
                               .cu_seqlens_k = r->cu_seqlens,
                               .bias = ses_relative_scores(t, &in, &by) };
    ses_attention_options o = { .heads = c->attention.heads,
                                .max_seqlen_q = a->seqs->max_seqlen,
                                .max_seqlen_k = r->max_seqlen };
    o.dropout = c->dropout.attention;
    if (!r->p->hooked) return ses_attention(t, &x, &o, probs);
    ses_layer_site site = a->site;
    bool own_keys = r->tokens == r->p->batch->tokens;
    site.keys = own_keys ? SES_PER_TOKEN : SES_PER_KEY;
    if (!own_keys) site.key_of_token = key_of_token(r);
    ses_hook_qkv(r->p, &site, &x, &o.layout);
    ses_tensor *y = ses_attention(t, &x, &o, probs);
    return y ? ses_hook_head_outputs(r->p, &site, y) : NULL;
}
