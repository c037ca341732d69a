/* Truncated backpropagation through time: the state is carried over windows of a sequence, but gradients do
 * not pass from a window to the previous one. A window continues the sequences that are longer than all
 * windows before it. Its values equal the values of one long pass. */
#include "nn/nn.h"

#include <string.h>

/* The same values without gradient. */
static ses_tensor *detach(ses_forward_ctx *p, ses_tensor *x)
{
    ses_tensor *y = x ? ses_reshape(p->tape, x, x->dim) : NULL;
    if (y) y->requires_grad = false;
    return y;
}

/* The part of the sequences in window w. */
typedef struct window {
    ses_seqs seqs;      /* longer sequences only */
    int32_t *token;     /* [tokens]: row of the batch */
    int32_t *from_last; /* [seqs]: its number among the sequences of the window before */
} window;

static bool window_split(ses_forward_ctx *p, const ses_seqs *q, int64_t w, int64_t length, window *out)
{
    size_t size = sizeof(int32_t);
    int32_t *cu = ses_tape_host_alloc(p->tape, (size_t)q->seqs + 1, size), n = 0, before = 0;
    out->token = ses_tape_host_alloc(p->tape, (size_t)(q->seqs * length), size);
    out->from_last = ses_tape_host_alloc(p->tape, (size_t)q->seqs, size);
    out->seqs = (ses_seqs){ .host_cu_seqlens = cu };
    if (!cu || !out->token || !out->from_last) return false;
    for (int64_t s = 0; s < q->seqs; s++) {
        int64_t begin = q->host_cu_seqlens[s] + w * length, end = q->host_cu_seqlens[s + 1];
        bool was_there = w == 0 || begin - length < end;
        if (begin < end || w == 0) {
            out->from_last[out->seqs.seqs++] = before;
            for (int64_t t = begin; t < end && t < begin + length; t++) out->token[n++] = (int32_t)t;
            cu[out->seqs.seqs] = n;
        }
        before += was_there;
    }
    out->seqs.tokens = n;
    out->seqs.cu_seqlens = ses_tape_ints(p->tape, cu, out->seqs.seqs + 1);
    return out->seqs.cu_seqlens != NULL;
}

/* Runs a window from the states of the one before it; *h and *c become its last states, without gradient. */
static ses_tensor *run_window(ses_forward_ctx *p, const ses_rnn_params *r, ses_tensor *x, const window *v,
                              const ses_rnn_run *run, ses_tensor **h, ses_tensor **c)
{
    ses_tape *t = p->tape;
    ses_rnn_run part = *run;
    ses_tensor *from = ses_tape_ints(t, v->from_last, v->seqs.seqs);
    bool lstm = run->o.type == SES_RNN_LSTM;
    part.h0 = *h ? ses_gather(t, *h, from) : NULL;
    part.c0 = *c ? ses_gather(t, *c, from) : NULL;
    part.o.cells = lstm;
    ses_tensor *in = ses_gather(t, x, ses_tape_ints(t, v->token, v->seqs.tokens)),
               *y = ses_rnn_layer(p, r, in, &v->seqs, &part), *last = ses_rnn_last(p, &v->seqs, y, false);
    if (!last) return NULL;
    int64_t outputs = ses_cols(r->w);
    *h = detach(p, lstm ? ses_columns(t, last, 0, outputs) : last);
    *c = lstm ? detach(p, ses_columns(t, last, outputs, ses_cols(last) - outputs)) : NULL;
    return lstm && !run->o.cells ? ses_columns(t, y, 0, outputs) : y;
}

ses_tensor *ses_rnn_layer_windows(ses_forward_ctx *p, const ses_rnn_params *r, ses_tensor *x,
                                  const ses_seqs *q, const ses_rnn_run *run, int64_t length)
{
    if (length < 1 || length >= q->max_seqlen || run->o.reverse || !ses_tape_recording(p->tape))
        return ses_rnn_layer(p, r, x, q, run);
    int32_t *row = ses_tape_host_alloc(p->tape, (size_t)q->tokens, sizeof *row);
    ses_tensor *h = run->h0, *c = run->c0, *all = NULL;
    int32_t done = 0;
    for (int64_t w = 0; row && w * length < q->max_seqlen; w++) {
        window v;
        if (!window_split(p, q, w, length, &v)) return NULL;
        ses_tensor *y = run_window(p, r, x, &v, run, &h, &c);
        if (!y) return NULL;
        for (int64_t i = 0; i < v.seqs.tokens; i++) row[v.token[i]] = done++;
        all = all ? ses_append_rows(p->tape, all, y) : y;
    }
    return row && all ? ses_gather(p->tape, all, ses_tape_ints(p->tape, row, q->tokens)) : NULL;
}
