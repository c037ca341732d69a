/* Which rows of the last hidden state anyone reads. Heads that look at a first token, or at masked ones,
 * leave the rest unread, so the last layer asks for those rows alone, of keys and values of all: of BERT-
 * base that saves a fifteenth of a pass, of DistilBERT a seventh. A row's bits stay as they are. */
#include "nn.h"

#include <assert.h>

/* Fewer than all by so much that moving them pays. */
static bool pays(int64_t rows, int64_t tokens) { return rows > 0 && rows < tokens - tokens / 8; }

/* The tokens that are marked: their rows and places, and where each sequence's begin. */
static bool lay_out(ses_used_rows *k, ses_tape *t, const ses_seqs *q, int32_t *row, int32_t *cu)
{
    int64_t n = 0;
    k->seqs = (ses_seqs){ .seqs = q->seqs, .host_cu_seqlens = cu };
    for (int64_t s = 0; s < q->seqs; s++) {
        for (int32_t i = q->host_cu_seqlens[s]; i < q->host_cu_seqlens[s + 1]; i++)
            if (k->row_plus_1[i]) row[n] = i, k->row_plus_1[i] = (int32_t)++n;
        cu[s + 1] = (int32_t)n;
        if (n - cu[s] > k->seqs.max_seqlen) k->seqs.max_seqlen = n - cu[s];
    }
    if (!pays(n, q->tokens)) return false;
    k->seqs.tokens = n;
    k->seqs.cu_seqlens = ses_tape_ints(t, cu, q->seqs + 1);
    k->rows = ses_tape_ints(t, row, n);
    return true;
}

void ses_used_rows_select(ses_forward_ctx *p, const ses_seqs *q, const ses_head_use *use, size_t n)
{
    bool all =
        p->request->hidden_states || p->layer || p->batch->predict_positions || (!n && !p->request->rows);
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
    if (lay_out(&k, p->tape, q, row, cu)) p->used = k;
}

bool ses_used_rows_active(const ses_forward_ctx *p, const ses_seqs *q)
{
    return p->used.seqs.tokens && q == (p->used.of_target ? &p->target : &p->in);
}

ses_tensor *ses_used_rows_gather(ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x)
{
    bool more = x && ses_used_rows_active(p, q) && ses_rows(x) > p->used.seqs.tokens;
    return more ? ses_gather(p->tape, x, p->used.rows) : x;
}

void ses_state_mark_used(const ses_forward_ctx *p, const ses_seqs *q, int32_t *read)
{
    const ses_output_request *want = p->request;
    for (int64_t i = 0; i < (want->rows ? want->n_rows : q->tokens); i++) {
        int64_t t = want->rows ? want->rows[i] : i;
        if (t >= 0 && t < q->tokens) read[t] = 1; /* others are refused later */
    }
}

ses_tensor *ses_state_requested(ses_forward_ctx *p, const ses_state *at, ses_axis *axis)
{
    const ses_output_request *want = p->request;
    if (!want->rows) return at->x;
    for (int64_t i = 0; i < want->n_rows; i++)
        if (want->rows[i] < 0 || want->rows[i] >= at->seqs->tokens)
            ses_tape_fail(p->tape, SES_EARG, "row %d of %lld is asked for", (int)want->rows[i],
                          (long long)at->seqs->tokens);
    if (!want->n_rows || !ses_tape_ok(p->tape, NULL)) return NULL;
    *axis = SES_PER_ROW;
    return ses_state_gather(p, at, want->rows, want->n_rows);
}

ses_tensor *ses_state_gather(ses_forward_ctx *p, const ses_state *at, const int32_t *token, int64_t n)
{
    if (!ses_used_rows_active(p, at->seqs))
        return ses_gather(p->tape, at->x, ses_tape_ints(p->tape, token, n));
    bool same = n == p->used.seqs.tokens;
    int32_t *row = ses_tape_host_alloc(p->tape, (size_t)n, sizeof *row);
    for (int64_t i = 0; row && i < n; i++) {
        assert(p->used.row_plus_1[token[i]]); /* its head said it reads it */
        row[i] = p->used.row_plus_1[token[i]] - 1;
        same &= row[i] == i;
    }
    if (!row || same) return row ? at->x : NULL;
    return ses_gather(p->tape, at->x, ses_tape_ints(p->tape, row, n));
}
