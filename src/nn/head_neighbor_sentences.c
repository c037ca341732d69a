/* Skip-Thought (Kiros et al. 2015): the vector of a sentence predicts the tokens of the sentences before and
 * after it. The sequences of a batch are consecutive sentences: label 1 means that a sequence follows the one
 * before it. Each direction has a GRU over the neighbor's tokens, shifted by one, with the sentence's vector
 * as an additional input of every gate at every step:
 *     gates(t) = W e(t - 1) + C v,  with e = 0 at the start
 * Both directions share the vocabulary projection. */
#include "nn.h"

#include <stdio.h>

enum { BEFORE, AFTER };

static int64_t classes(const ses_config *c)
{
    (void)c;
    return 2;
}

static void add(ses_head_params *h, ses_store *s, const ses_config *c, ses_tensor *token)
{
    int64_t size = c->head.decoder_size ? c->head.decoder_size : c->hidden;
    ses_rnn_shape shape = { .type = SES_RNN_GRU, .size = size, .width = ses_cols(token) };
    h->token = token;
    for (int i = BEFORE; i <= AFTER; i++) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, "neighbor.%d.", i);
        h->rnn[0][i] = ses_rnn_add(s, &shape, prefix, 0, "");
        h->custom[i] = ses_dense_add(s, 3 * size, c->hidden, SES_NO_BIAS, "neighbor.%d.condition", i);
    }
    h->out = ses_dense_add(s, c->vocab, size, SES_BIAS, "neighbor.out");
}

/* The tokens of the neighbors in one direction. Arrays live on the tape. */
typedef struct neighbors {
    int32_t *cu_seqlens;       /* [seqs + 1] */
    int32_t *previous, *label; /* [tokens]: row of the token before, id */
    int32_t *sentence;         /* [tokens]: sequence whose vector is read */
    int64_t seqs, tokens;
} neighbors;

static bool find_neighbors(neighbors *n, ses_forward_ctx *p, const ses_seqs *q, const int32_t *follows,
                           int direction)
{
    ses_tape *t = p->tape;
    size_t size = sizeof(int32_t), tokens = (size_t)q->tokens;
    *n = (neighbors){ .cu_seqlens = ses_tape_host_alloc(t, (size_t)q->seqs + 1, size) };
    n->previous = ses_tape_host_alloc(t, tokens, size), n->label = ses_tape_host_alloc(t, tokens, size);
    n->sentence = ses_tape_host_alloc(t, tokens, size);
    if (!n->cu_seqlens || !n->previous || !n->label || !n->sentence) return false;
    for (int64_t s = 1; s < q->seqs; s++) {
        if (follows[s] != 1) continue;
        int64_t of = direction == AFTER ? s - 1 : s, neighbor = direction == AFTER ? s : s - 1;
        for (int32_t i = q->host_cu_seqlens[neighbor]; i < q->host_cu_seqlens[neighbor + 1]; i++) {
            n->previous[n->tokens] = i > q->host_cu_seqlens[neighbor] ? i - 1 : SES_IGNORE_INDEX;
            n->label[n->tokens] = q->host_ids[i];
            n->sentence[n->tokens++] = (int32_t)of;
        }
        n->cu_seqlens[++n->seqs] = (int32_t)n->tokens;
    }
    return true;
}

/* [tokens, size]: the states that predict the neighbors' tokens. */
static ses_tensor *decode(const ses_head_params *h, ses_forward_ctx *p, const neighbors *n,
                          ses_tensor *vectors, ses_tensor *embedded, int direction)
{
    ses_tape *t = p->tape;
    const ses_rnn_params *r = &h->rnn[0][direction];
    ses_tensor *x = ses_gather(t, embedded, ses_tape_ints(t, n->previous, n->tokens)),
               *condition = ses_gather(t, ses_dense_run(t, h->custom[direction], vectors, SES_ACT_NONE),
                                       ses_tape_ints(t, n->sentence, n->tokens));
    ses_rnn_inputs in = { .x = ses_add(t, ses_dense_run(t, r->in, x, SES_ACT_NONE), condition),
                          .w = r->w,
                          .bias = r->b,
                          .cu_seqlens = ses_tape_ints(t, n->cu_seqlens, n->seqs + 1),
                          .host_cu_seqlens = n->cu_seqlens };
    return ses_rnn(t, &in, &(ses_rnn_options){ .type = SES_RNN_GRU });
}

/* No pair in the batch: one ignored row keeps the loss a number. */
static ses_tensor *no_loss(const ses_head_params *h, ses_tape *t)
{
    static const int32_t ignored = SES_IGNORE_INDEX;
    ses_real *zeros = ses_tape_host_alloc(t, (size_t)ses_cols(h->out.w), sizeof *zeros);
    ses_tensor *x = zeros ? ses_tape_input(t, zeros, SES_DIM(1, ses_cols(h->out.w))) : NULL;
    return x ? ses_linear_cross_entropy(t, x, h->out.w, h->out.b, ses_tape_ints(t, &ignored, 1)) : NULL;
}

static void run(const ses_head_params *h, const ses_head_use *use, ses_forward_ctx *p, const ses_state *at)
{
    ses_tape *t = p->tape;
    const ses_seqs *q = at->seqs;
    const int32_t *follows = ses_head_labels(use, p->batch);
    ses_tensor *vectors = ses_summary_gather(p, at), *embedded, *state[2] = { NULL };
    neighbors n[2];
    ses_forward_output(p, SES_PER_SEQUENCE, vectors, "%s", use->output);
    if (!follows || !find_neighbors(&n[BEFORE], p, q, follows, BEFORE) ||
        !find_neighbors(&n[AFTER], p, q, follows, AFTER))
        return;
    if (!n[AFTER].tokens || !n[BEFORE].tokens) {
        ses_forward_add_loss(p, no_loss(h, t));
        return;
    }
    embedded = ses_embed(t, 1, &h->token, (ses_tensor *const[]){ q->ids }, (int32_t)p->c->pad_id);
    int64_t all = n[BEFORE].tokens + n[AFTER].tokens;
    int32_t *labels = ses_tape_host_alloc(t, (size_t)all, sizeof *labels), *to = labels;
    for (int i = BEFORE; labels && i <= AFTER; i++) {
        state[i] = decode(h, p, &n[i], vectors, embedded, i);
        for (int64_t j = 0; j < n[i].tokens; j++) *to++ = n[i].label[j];
    }
    if (!labels || !state[BEFORE] || !state[AFTER]) return;
    ses_forward_add_loss(p, ses_linear_cross_entropy(t, ses_append_rows(t, state[BEFORE], state[AFTER]),
                                                     h->out.w, h->out.b, ses_tape_ints(t, labels, all)));
}

const ses_head ses_head_neighbor_sentences = { .name = "neighbor-sentences",
                                               .pretrained = true,
                                               .description = "predicts the sentences before and after",
                                               .scores = SES_SCORES_TOKENS_TWICE,
                                               .axis = SES_LABEL_PER_SEQUENCE,
                                               .class_count = classes,
                                               .add = add,
                                               .run = run };
