/* Rows of the last hidden state that heads read. Heads that read the first token, or masked tokens only, need
 * few rows: the last layer then computes queries and feed-forward for these rows only (keys and values for
 * all tokens). This saves 7 % of a pass of BERT-base and 14 % of DistilBERT. The bits of each row are
 * unchanged. */
#include "nn.h"

#include <assert.h>

/* Few enough rows to be worth gathering. */
static bool worthwhile(int64_t rows, int64_t tokens) { return rows > 0 && rows < tokens - tokens / 8; }

/* Rows of the marked tokens, in order, and the offsets of each sequence. */
static bool select_rows(ses_used_rows *k, ses_tape *t, const ses_seqs *q, int32_t *row, int32_t *cu)
{
    int64_t n = 0;
    k->seqs = (ses_seqs){ .seqs = q->seqs, .host_cu_seqlens = cu };
    for (int64_t s = 0; s < q->seqs; s++) {
        for (int32_t i = q->host_cu_seqlens[s]; i < q->host_cu_seqlens[s + 1]; i++)
            if (k->row_plus_1[i]) row[n] = i, k->row_plus_1[i] = (int32_t)++n;
        cu[s + 1] = (int32_t)n;
        if (n - cu[s] > k->seqs.max_seqlen) k->seqs.max_seqlen = n - cu[s];
    }
    if (!worthwhile(n, q->tokens)) return false;
    k->seqs.tokens = n;
    k->seqs.cu_seqlens = ses_tape_ints(t, cu, q->seqs + 1);
    k->rows = ses_tape_ints(t, row, n);
    return true;
}

void ses_used_rows_select(ses_forward_ctx *p, const ses_seqs *q, const ses_head_use *use, size_t n)
{
    bool all = p->hooked || p->request->hidden_states || p->layer || p->batch->predict_positions ||
               (!n && !p->request->rows);
    for (size_t i = 0; i < n; i++) all |= !use[i].head->mark_used;
    if (all) return;
    ses_used_rows k = { .of_target = q == &p->target };
    k.row_plus_1 = ses_tape_host_alloc(p->tape, (size_t)q->tokens, sizeof *k.row_plus_1);
    int32_t *row = ses_tape_host_alloc(p->tape, (size_t)q->tokens, sizeof *row);
    int32_t *cu = ses_tape_host_alloc(p->tape, (size_t)q->seqs + 1, sizeof *cu);
    if (!k.row_plus_1 || !row || !cu) return;
    if (!n) ses_state_mark_used(p, q, k.row_plus_1);
    for (int64_t s = 0; p->c->pooler.present && s < q->seqs; s++) k.row_plus_1[q->host_cu_seqlens[s]] = 1;
    for (size_t i = 0; i < n; i++) use[i].head->mark_used(&use[i], p, q, k.row_plus_1);
    if (select_rows(&k, p->tape, q, row, cu)) p->used = k;
}

bool ses_used_rows_active(const ses_forward_ctx *p, const ses_seqs *q)
{
    return p->used.seqs.tokens && q == (p->used.of_target ? &p->target : &p->in);
}

ses_tensor *ses_used_rows_gather(ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x)
{
    bool has_unused = x && ses_used_rows_active(p, q) && ses_rows(x) > p->used.seqs.tokens;
    return has_unused ? ses_gather(p->tape, x, p->used.rows) : x;
}

void ses_state_mark_used(const ses_forward_ctx *p, const ses_seqs *q, int32_t *used)
{
    const ses_output_request *request = p->request;
    for (int64_t i = 0; i < (request->rows ? request->n_rows : q->tokens); i++) {
        int64_t t = request->rows ? request->rows[i] : i;
        if (t >= 0 && t < q->tokens) used[t] = 1; /* ses_state_requested reports invalid rows */
    }
}

ses_tensor *ses_state_requested(ses_forward_ctx *p, const ses_state *at, ses_axis *axis)
{
    const ses_output_request *request = p->request;
    if (!request->rows) return at->x;
    for (int64_t i = 0; i < request->n_rows; i++)
        if (request->rows[i] < 0 || request->rows[i] >= at->seqs->tokens)
            ses_tape_fail(p->tape, SES_EARG, "requested row %d, but there are %lld", (int)request->rows[i],
                          (long long)at->seqs->tokens);
    if (!request->n_rows || !ses_tape_ok(p->tape, NULL)) return NULL;
    *axis = SES_PER_ROW;
    return ses_state_gather(p, at, request->rows, request->n_rows);
}

ses_tensor *ses_state_gather(ses_forward_ctx *p, const ses_state *at, const int32_t *token, int64_t n)
{
    if (!ses_used_rows_active(p, at->seqs))
        return ses_gather(p->tape, at->x, ses_tape_ints(p->tape, token, n));
    bool same = n == p->used.seqs.tokens;
    int32_t *row = ses_tape_host_alloc(p->tape, (size_t)n, sizeof *row);
    for (int64_t i = 0; row && i < n; i++) {
        assert(p->used.row_plus_1[token[i]]); /* mark_used of the head has marked it */
        row[i] = p->used.row_plus_1[token[i]] - 1;
        same &= row[i] == i;
    }
    if (!row || same) return row ? at->x : NULL;
    return ses_gather(p->tape, at->x, ses_tape_ints(p->tape, row, n));
}
