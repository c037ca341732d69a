#include "xl_attention.h"

#include <math.h>

static int64_t given(const ses_batch *b, int64_t s) { return b->mem_cu[s + 1] - b->mem_cu[s]; }

int64_t ses_recall_length(const ses_recall *r, int64_t s)
{
    return r->p->batch->mem_cu ? given(r->p->batch, s) : r->blank;
}

/* Keys: offsets, where each comes from, segments. */
static bool lay_keys(ses_recall *r)
{
    const ses_batch *b = r->p->batch;
    ses_tape *t = r->p->tape;
    int64_t M = b->mem_cu ? b->mem_cu[b->seqs] : 0, n = 0;
    r->tokens = b->tokens + (b->mem_cu ? M : r->blank * b->seqs);
    int32_t *cu = ses_tape_host(t, (size_t)b->seqs + 1, sizeof *cu);
    int32_t *row[3]; /* in the memory, in the batch, segment */
    for (int i = 0; i < 3; i++) row[i] = ses_tape_host(t, (size_t)r->tokens, sizeof **row);
    if (!cu || !row[0] || !row[1] || !row[2]) return false;
    for (int64_t s = 0; s < b->seqs; s++) {
        int64_t mem = ses_recall_length(r, s), len = b->cu[s + 1] - b->cu[s];
        cu[s] = (int32_t)n;
        if (mem + len > r->longest) r->longest = mem + len;
        for (int64_t j = 0; j < mem + len; j++, n++) {
            row[0][n] = j < mem && b->mem_cu ? (int32_t)(b->mem_cu[s] + j) : SES_IGNORE;
            row[1][n] = j < mem ? SES_IGNORE : (int32_t)(b->cu[s] + j - mem);
            row[2][n] = b->segments && j >= mem ? b->segments[b->cu[s] + j - mem] : 0;
        }
    }
    cu[b->seqs] = (int32_t)n;
    r->host_cu = cu;
    r->cu = ses_tape_ints(t, cu, b->seqs + 1);
    if (b->segments) r->label = ses_tape_ints(t, row[2], n);
    r->own_rows = ses_tape_ints(t, row[1], n);
    if (M) r->mem_rows = ses_tape_ints(t, row[0], n);
    return true;
}

/* Sines and cosines of every distance, rounded as the reference rounds. Row of query minus key d: d + back,
 * with back the farthest that a key may stand behind its query. */
static bool lay_sines(ses_recall *r, bool ahead)
{
    const ses_config *c = r->p->c;
    ses_tape *t = r->p->tape;
    int64_t longest = r->longest, far = longest - 1, half = c->hidden / 2;
    if (c->clamp && c->clamp < far) far = c->clamp;
    int64_t back = ahead ? far : 0, rows = far + back + 1;
    ses_real *x = ses_tape_host(t, (size_t)(rows * c->hidden), sizeof *x);
    int32_t *at = ses_tape_host(t, (size_t)(2 * longest - 1), sizeof *at);
    if (!x || !at) return false;
    for (int64_t j = 0; j < half; j++) {
        float rate = 1 / powf(10000, (float)(2 * j) / (float)c->hidden);
        for (int64_t d = -back; d <= far; d++) {
            double angle = (double)((float)d * rate);
            x[(back + d) * c->hidden + j] = (ses_real)sin(angle);
            x[(back + d) * c->hidden + j + half] = (ses_real)cos(angle);
        }
    }
    for (int64_t i = 0; i < 2 * longest - 1; i++) {
        int64_t d = longest - 1 - i;
        at[i] = (int32_t)((d > far ? far : d < -back ? -back : d) + back);
    }
    r->sines = ses_dropout(t, ses_tape_input(t, x, SES_DIM(rows, c->hidden)), c->drop);
    r->at = ses_tape_ints(t, at, 2 * longest - 1);
    return true;
}

bool ses_recall_begin(ses_recall *r, bool ahead) { return lay_keys(r) && lay_sines(r, ahead); }

ses_tensor *ses_recall_with(const ses_recall *r, ses_tensor *h, int i)
{
    const ses_batch *b = r->p->batch;
    ses_tape *t = r->p->tape;
    if (r->tokens == b->tokens) return h;
    ses_tensor *own = ses_take(t, h, r->own_rows);
    if (!r->mem_rows) return own;
    int64_t M = b->mem_cu[b->seqs], C = r->p->c->hidden;
    ses_tensor *mem = ses_tape_input(t, b->mems + i * M * C, SES_DIM(M, C));
    return ses_add(t, ses_take(t, mem, r->mem_rows), own);
}

/* The last mem_len of each sequence's keys, of the batch's own only the first reuse_len. */
void ses_recall_note(const ses_recall *r, ses_tensor *all, int i)
{
    const ses_config *c = r->p->c;
    int64_t n = 0;
    int32_t *row = r->p->want->mems ? ses_tape_host(r->p->tape, (size_t)r->tokens, sizeof *row) : NULL;
    int32_t *cu = row ? ses_tape_host(r->p->tape, (size_t)r->p->batch->seqs + 1, sizeof *cu) : NULL;
    if (!row || !cu) return;
    for (int64_t s = 0; s < r->p->batch->seqs; s++) {
        int64_t begin = r->host_cu[s], end = r->host_cu[s + 1], mem = ses_recall_length(r, s);
        if (c->reuse_len && begin + mem + c->reuse_len < end) end = begin + mem + c->reuse_len;
        if (c->mem_len && end - begin > c->mem_len) begin = end - c->mem_len;
        for (int64_t j = begin; j < end; j++) row[n++] = (int32_t)j;
        cu[s + 1] = (int32_t)n;
    }
    ses_tensor *kept = ses_take(r->p->tape, all, ses_tape_ints(r->p->tape, row, n));
    r->p->mem_cu = cu;
    ses_pass_output(r->p, SES_PER_MEMORY, kept, "mems.%d", i);
}

ses_tensor *ses_recall_run(const ses_recall *r, const ses_recall_attend *a, ses_tensor **probs)
{
    ses_tape *t = r->p->tape;
    const ses_config *c = r->p->c;
    ses_relative_inputs in = { .cu_q = a->seqs->cu, .cu_k = r->cu, .place = a->place, .at = r->at };
    in.mask = a->mask, in.label = a->segment ? r->label : NULL;
    in.term[0] =
        (ses_relative_term){ .x = ses_affine(t, a->query, NULL, a->distance_bias), .r = a->distance };
    if (in.label)
        in.term[1] = (ses_relative_term){ .x = ses_affine(t, a->query, NULL, a->segment_bias),
                                          .r = a->segment,
                                          .rows = SES_ROWS_BY_LABEL };
    ses_relative_options by = {
        .heads = c->heads, .max_k = r->longest, .pairs = a->pairs, .turned = a->turned
    };
    ses_attention_inputs x = { .q = ses_affine(t, a->query, NULL, a->content_bias),
                               .k = a->key,
                               .v = a->value,
                               .cu_q = a->seqs->cu,
                               .cu_k = r->cu,
                               .bias = ses_relative_scores(t, &in, &by) };
    ses_attention_options o = { .heads = c->heads, .max_q = a->seqs->longest, .max_k = r->longest };
    o.drop = c->drop_attention;
    return ses_attention(t, &x, &o, probs);
}
