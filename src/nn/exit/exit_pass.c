/* Texts that leave a pass before the last layer. Their rows are removed from the hidden state, so that the
 * remaining layers run on a smaller batch of whole sequences. The bits of a row do not depend on the batch,
 * so that each text gets the scores it would get alone. */
#include "exit_heads.h"

#include <math.h>

double ses_exit_entropy(const ses_real *x, int64_t n)
{
    double max = -INFINITY, sum = 0, weighted = 0;
    for (int64_t i = 0; i < n; i++) max = fmax(max, (double)x[i]);
    for (int64_t i = 0; i < n; i++) {
        double d = (double)x[i] - max, w = exp(d);
        sum += w, weighted += w * d;
    }
    return n > 1 ? (log(sum) - weighted / sum) / log((double)n) : 0;
}

void ses_exits_begin(ses_forward_ctx *p, const ses_exits *x, const ses_exit_policy *policy,
                     const ses_head_use *use, size_t n_uses)
{
    ses_tape *t = p->tape;
    size_t n = (size_t)p->in.seqs, labels = (size_t)p->c->labels;
    ses_leaving *s = ses_tape_host_alloc(t, 1, sizeof *s);
    int32_t *each = ses_tape_host_alloc(t, 4 * n, sizeof *each);
    ses_real *scores = ses_tape_host_alloc(t, n * labels, sizeof *scores);
    if (!s || !each || !scores) return;
    *s = (ses_leaving){ .exits = x, .policy = policy, .use = use, .n_uses = n_uses };
    s->texts = p->in.seqs, s->labels = p->c->labels, s->scores = scores;
    s->text = each, s->layer = each + n, s->best = each + 2 * n, s->same = each + 3 * n;
    for (size_t i = 0; i < n; i++) s->text[i] = (int32_t)i, s->layer[i] = 0, s->best[i] = -1, s->same[i] = 0;
    p->leaving = s;
}

/* Does this text leave, with the scores y of an exit after `layer` layers? */
static bool leaves(ses_leaving *s, int32_t text, const ses_real *y, int64_t layer)
{
    int64_t best = 0;
    switch (s->policy->rule) {
    case SES_EXIT_ENTROPY: return ses_exit_entropy(y, s->labels) < s->policy->threshold;
    case SES_EXIT_LAYER: return layer >= s->policy->count;
    case SES_EXIT_PATIENCE:
        for (int64_t i = 1; i < s->labels; i++)
            if (y[i] > y[best]) best = i;
        s->same[text] = s->best[text] == best ? s->same[text] + 1 : 0;
        s->best[text] = (int32_t)best;
        return s->same[text] >= s->policy->count;
    default: return false;
    }
}

/* Decides for each text: keep[i] is 1 if text i of the pass stays. Returns the number of texts that stay. */
static int64_t decide(ses_leaving *s, const ses_seqs *q, const ses_real *y, int64_t layer, int32_t *keep)
{
    int64_t stay = 0;
    for (int64_t i = 0; i < q->seqs; i++) {
        int32_t text = s->text[i];
        keep[i] = !leaves(s, text, y + i * s->labels, layer);
        stay += keep[i];
        if (keep[i]) continue;
        s->layer[text] = (int32_t)layer;
        for (int64_t k = 0; k < s->labels; k++) s->scores[text * s->labels + k] = y[i * s->labels + k];
    }
    return stay;
}

/* The sequences of q that stay, and their rows of q; false: out of memory. */
static bool select_texts(ses_forward_ctx *p, const int32_t *keep, int64_t stay, ses_seqs *out,
                         ses_tensor **rows)
{
    ses_tape *t = p->tape;
    const ses_seqs *q = &p->in;
    ses_leaving *s = p->leaving;
    int32_t *cu = ses_tape_host_alloc(t, (size_t)stay + 1, sizeof *cu), n = 0;
    int32_t *row = ses_tape_host_alloc(t, (size_t)q->tokens, sizeof *row);
    int32_t *position = ses_tape_host_alloc(t, (size_t)q->tokens, sizeof *position);
    if (!cu || !row || !position) return false;
    *out = (ses_seqs){ .host_cu_seqlens = cu, .host_positions = q->host_positions ? position : NULL };
    for (int64_t i = 0; i < q->seqs; i++) {
        int64_t from = q->host_cu_seqlens[i], len = q->host_cu_seqlens[i + 1] - from;
        if (!keep[i]) continue;
        for (int64_t k = from; k < from + len; k++, n++) {
            row[n] = (int32_t)k;
            position[n] = q->host_positions ? q->host_positions[k] : 0;
        }
        s->text[out->seqs++] = s->text[i];
        cu[out->seqs] = n;
        out->token_pairs += len * len;
        if (len > out->max_seqlen) out->max_seqlen = len;
    }
    out->tokens = n;
    out->cu_seqlens = ses_tape_ints(t, cu, stay + 1);
    if (q->positions && out->host_positions) out->positions = ses_tape_ints(t, position, n);
    *rows = ses_tape_ints(t, row, n);
    return ses_tape_ok(t, NULL);
}

/* Removes the texts that leave from p->in and from everything that was computed from its lengths. */
static ses_tensor *shrink(const ses_stack *k, ses_forward_ctx *p, ses_stack_ctx *ctx, ses_tensor *x,
                          const int32_t *keep, int64_t stay, ses_tape_mark *start)
{
    ses_seqs left;
    ses_tensor *rows;
    if (!select_texts(p, keep, stay, &left, &rows)) return NULL;
    p->in = left;
    ses_attn_begin(k, p, &p->in, ctx);
    if (k->vtable && k->vtable->begin) k->vtable->begin(k, p, ctx);
    if (ses_config_scores_distances(p->c)) ses_relative_key_begin(k, p, ctx);
    *start = ses_tape_get_mark(p->tape);
    return ses_gather(p->tape, x, rows);
}

/* The exit's scores on the host, and the decisions; -1: the tape has failed. */
static int64_t run_exit(const ses_stack *k, ses_forward_ctx *p, const ses_exit_head *h, ses_tensor *x,
                        int32_t *keep)
{
    ses_leaving *s = p->leaving;
    ses_real *y = ses_tape_host_alloc(p->tape, (size_t)(p->in.seqs * s->labels), sizeof *y);
    ses_tensor *scores = ses_exit_head_run(s->exits, h, k, p, x);
    if (!y || !ses_tape_read(p->tape, scores, y)) return -1;
    return decide(s, &p->in, y, h->layer, keep);
}

ses_tensor *ses_exits_after_layer(const ses_stack *k, ses_forward_ctx *p, ses_stack_ctx *ctx, ses_tensor *x,
                                  int64_t layer, ses_tape_mark *start)
{
    ses_leaving *s = p->leaving;
    const ses_exit_head *h = s->next < s->exits->n ? &s->exits->head[s->next] : NULL;
    if (x && h && h->layer == layer) {
        s->next++;
        bool unused = s->policy->rule == SES_EXIT_LAYER && layer < s->policy->count;
        int32_t *keep = unused ? NULL : ses_tape_host_alloc(p->tape, (size_t)p->in.seqs, sizeof *keep);
        int64_t seqs = p->in.seqs, stay = unused ? seqs : keep ? run_exit(k, p, h, x, keep) : -1;
        if (stay < 0) return NULL;
        if (!stay) p->in = (ses_seqs){ 0 };
        if (!stay) return NULL;
        if (stay < seqs) x = shrink(k, p, ctx, x, keep, stay, start);
    }
    if (x && layer + 1 == k->depth) ses_used_rows_select(p, &p->in, s->use, s->n_uses);
    if (x && layer + 1 == k->depth) *start = ses_tape_get_mark(p->tape); /* the rows stay in memory */
    return x;
}

ses_tensor *ses_exits_scores(ses_forward_ctx *p, ses_tensor *last, int64_t depth)
{
    ses_leaving *s = p->leaving;
    int64_t n = p->in.seqs;
    for (int64_t i = 0; i < n; i++) s->layer[s->text[i]] = (int32_t)depth;
    if (n == s->texts) return last;
    ses_real *y = n ? ses_tape_host_alloc(p->tape, (size_t)(n * s->labels), sizeof *y) : NULL;
    if (n && (!y || !ses_tape_read(p->tape, last, y))) return NULL;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < s->labels; k++) s->scores[s->text[i] * s->labels + k] = y[i * s->labels + k];
    return ses_tape_input(p->tape, s->scores, SES_DIM(s->texts, s->labels));
}
