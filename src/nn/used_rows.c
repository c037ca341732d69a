/* Which rows of the last hidden state anyone reads. Heads that look at a first token, or at masked ones,
 * leave the rest unread, so the last layer asks for those rows alone, of keys and values of all: of BERT-
 * base that saves a fifteenth of a pass, of DistilBERT a seventh. A row's bits stay as they are. */
#include "nn.h"

#include <assert.h>

/* Fewer than all by so much that moving them pays. */
static bool pays(int64_t rows, int64_t tokens) { return rows > 0 && rows < tokens - tokens / 8; }

/* The tokens that are marked: their rows and places, and where each sequence's begin. */
static bool lay_out(ses_kept *k, ses_tape *t, const ses_seqs *q, int32_t *row, int32_t *cu)
{
    int64_t n = 0;
    k->seqs = (ses_seqs){ .seqs = q->seqs, .host_cu = cu };
    for (int64_t s = 0; s < q->seqs; s++) {
        for (int32_t i = q->host_cu[s]; i < q->host_cu[s + 1]; i++)
            if (k->place[i]) row[n] = i, k->place[i] = (int32_t)++n;
        cu[s + 1] = (int32_t)n;
        if (n - cu[s] > k->seqs.longest) k->seqs.longest = n - cu[s];
    }
    if (!pays(n, q->tokens)) return false;
    k->seqs.tokens = n;
    k->seqs.cu = ses_tape_ints(t, cu, q->seqs + 1);
    k->rows = ses_tape_ints(t, row, n);
    return true;
}

void ses_kept_choose(ses_pass *p, const ses_seqs *q, const ses_head_use *use, size_t n)
{
    bool all = p->want->hidden_states || p->layer || p->batch->target_places || (!n && !p->want->rows);
    for (size_t i = 0; i < n; i++) all |= !use[i].head->reads;
    if (all) return;
    ses_kept k = { .target = q == &p->target };
    k.place = ses_tape_host(p->tape, (size_t)q->tokens, sizeof *k.place);
    int32_t *row = ses_tape_host(p->tape, (size_t)q->tokens, sizeof *row);
    int32_t *cu = ses_tape_host(p->tape, (size_t)q->seqs + 1, sizeof *cu);
    if (!k.place || !row || !cu) return;
    if (!n) ses_state_reads(p, q, k.place);
    for (int64_t s = 0; p->c->pooler && s < q->seqs; s++) k.place[q->host_cu[s]] = 1;
    for (size_t i = 0; i < n; i++) use[i].head->reads(&use[i], p, q, k.place);
    if (lay_out(&k, p->tape, q, row, cu)) p->kept = k;
}

bool ses_kept_of(const ses_pass *p, const ses_seqs *q)
{
    return p->kept.seqs.tokens && q == (p->kept.target ? &p->target : &p->in);
}

ses_tensor *ses_kept_rows(ses_pass *p, const ses_seqs *q, ses_tensor *x)
{
    bool more = x && ses_kept_of(p, q) && ses_rows(x) > p->kept.seqs.tokens;
    return more ? ses_take(p->tape, x, p->kept.rows) : x;
}

void ses_state_reads(const ses_pass *p, const ses_seqs *q, int32_t *read)
{
    const ses_want *want = p->want;
    for (int64_t i = 0; i < (want->rows ? want->n_rows : q->tokens); i++) {
        int64_t t = want->rows ? want->rows[i] : i;
        if (t >= 0 && t < q->tokens) read[t] = 1; /* others are refused later */
    }
}

ses_tensor *ses_state_asked(ses_pass *p, const ses_state *at, ses_axis *axis)
{
    const ses_want *want = p->want;
    if (!want->rows) return at->x;
    for (int64_t i = 0; i < want->n_rows; i++)
        if (want->rows[i] < 0 || want->rows[i] >= at->seqs->tokens)
            ses_tape_fail(p->tape, SES_EARG, "row %d of %lld is asked for", (int)want->rows[i],
                          (long long)at->seqs->tokens);
    if (!want->n_rows || !ses_tape_ok(p->tape, NULL)) return NULL;
    *axis = SES_PER_ROW;
    return ses_state_take(p, at, want->rows, want->n_rows);
}

ses_tensor *ses_state_take(ses_pass *p, const ses_state *at, const int32_t *token, int64_t n)
{
    if (!ses_kept_of(p, at->seqs)) return ses_take(p->tape, at->x, ses_tape_ints(p->tape, token, n));
    bool same = n == p->kept.seqs.tokens;
    int32_t *row = ses_tape_host(p->tape, (size_t)n, sizeof *row);
    for (int64_t i = 0; row && i < n; i++) {
        assert(p->kept.place[token[i]]); /* its head said it reads it */
        row[i] = p->kept.place[token[i]] - 1;
        same &= row[i] == i;
    }
    if (!row || same) return row ? at->x : NULL;
    return ses_take(p->tape, at->x, ses_tape_ints(p->tape, row, n));
}
