/* Sequence to sequence with recurrent layers (Sutskever et al. 2014) and attention (Bahdanau et al. 2015;
 * Luong et al. 2015). The encoder is an LSTM or GRU, bidirectional (each direction has half of the units) or
 * not; its final states are the decoder's initial ones. The attentional vector tanh(Wo [context; state])
 * predicts the next token; a model with input feeding reads it beside that token in the next step. The state
 * alone predicts in a model that has no attention. CoVe (McCann et al. 2017) is the encoder of such a
 * model. */
#include "recurrent_tables.h"

#include "base/alloc.h"

#include <stdio.h>

static const ses_config_key keys[] = {
    SES_KEY_REQUIRED("vocab_size", vocab, SES_MAX_VOCAB),
    SES_KEY_REQUIRED("hidden_size", hidden, SES_MAX_WIDTH),
    SES_KEY_INTEGER("embedding_size", input.width, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("encoder_layers", layers, 1, SES_MAX_LAYERS),
    SES_KEY_INTEGER("decoder_layers", decoder.layers, 1, SES_MAX_LAYERS),
    SES_KEY_INTEGER("pad_token_id", pad_id, -1, SES_MAX_VOCAB),
    SES_KEY_INTEGER("eos_token_id", eos_id, -1, SES_MAX_VOCAB),
    SES_KEY_INTEGER("decoder_start_token_id", decoder.start_id, -1, SES_MAX_VOCAB),
    SES_KEY_FLAG("bidirectional", rnn.bidirectional),
    SES_KEY_FLAG("input_feeding", rnn.input_feeding),
    SES_KEY_RATE("dropout", dropout.hidden),
    SES_KEY_RATE("embedding_dropout", dropout.embed),
    SES_KEY_NUMBER("init_range", init.uniform, 0, 100),
    SES_KEY_FLAG("tie_word_embeddings", embed.tied),
};

/* Units of a direction. */
static bool set_sizes(ses_config *c, ses_err *e)
{
    if (!c->input.width) c->input.width = c->hidden;
    if (c->rnn.bidirectional && c->hidden % 2)
        return ses_fail(e, SES_EARG, "\"hidden_size\" %lld is odd: both directions have half of it",
                        (long long)c->hidden);
    c->rnn.one_way = !c->rnn.bidirectional;
    c->rnn.size = c->rnn.bidirectional ? c->hidden / 2 : c->hidden;
    c->position.max = SES_MAX_POSITIONS; /* no position table: any length */
    return true;
}

/* One token table, or one each; the decoder may have a vocabulary of its own. */
static bool read_tables(ses_config *c, const ses_json *config, ses_err *e)
{
    bool shared = true;
    int64_t targets = c->vocab;
    if (!ses_config_bool(config, "share_encoder_decoder_embeddings", &shared, e) ||
        !ses_config_int(config, "decoder_vocab_size", &targets, e))
        return false;
    if (targets < 1 || targets > SES_MAX_VOCAB || (shared && targets != c->vocab))
        return ses_fail(e, SES_EARG, "\"decoder_vocab_size\" is %lld, expected %s%lld", (long long)targets,
                        shared ? "as in a shared table, " : "at most ",
                        (long long)(shared ? c->vocab : SES_MAX_VOCAB));
    if (!shared) c->decoder.vocab = targets;
    c->decoder.separate_embeddings = !shared;
    int64_t most = c->pad_id > c->eos_id ? c->pad_id : c->eos_id;
    if (c->decoder.start_id > most) most = c->decoder.start_id;
    if (most >= targets)
        return ses_fail(e, SES_EARG, "token id %lld is outside the decoder's vocabulary of %lld",
                        (long long)most, (long long)targets);
    return !c->embed.tied || c->input.width == c->hidden ||
           ses_fail(e, SES_EARG,
                    "\"tie_word_embeddings\" needs equal \"embedding_size\" and \"hidden_size\", which are "
                    "%lld and %lld",
                    (long long)c->input.width, (long long)c->hidden);
}

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    static const char *const types[] = { "lstm", "gru" };
    static const char *const attentions[] = { [SES_RNN_ATTENTION_GENERAL] = "general",
                                              [SES_RNN_ATTENTION_DOT] = "dot",
                                              [SES_RNN_ATTENTION_ADDITIVE] = "additive",
                                              [SES_RNN_ATTENTION_NONE] = "none" };
    size_t type, attention;
    if (!ses_config_name(config, "rnn_type", types, SES_LEN(types), &type, e) ||
        !ses_config_name(config, "attention", attentions, SES_LEN(attentions), &attention, e))
        return false;
    c->rnn.type = type ? SES_RNN_GRU : SES_RNN_LSTM;
    c->rnn.attention = (ses_rnn_attention_kind)attention;
    if (attention == SES_RNN_ATTENTION_NONE) c->rnn.input_feeding = false; /* there is nothing to feed */
    if (!set_sizes(c, e)) return false;
    if (c->layers != c->decoder.layers)
        return ses_fail(e, SES_EARG,
                        "\"encoder_layers\" %lld and \"decoder_layers\" %lld differ: the decoder's layers "
                        "start from the states of the encoder's",
                        (long long)c->layers, (long long)c->decoder.layers);
    c->rnn.state = c->hidden * (c->layers * (type ? 1 : 2) + c->rnn.input_feeding);
    return read_tables(c, config, e);
}

/* ---- parameters ---- */

typedef struct encoder_layer {
    ses_rnn_params rnn[2]; /* forward, backward */
} encoder_layer;

typedef struct decoder {
    ses_rnn_attention attention;
    ses_rnn_params rnn[];
} decoder;

static bool add_table(ses_stack *k, ses_store *s, const ses_config *c, ses_err *e)
{
    char name[64];
    snprintf(name, sizeof name, "%sembed.token", k->prefix);
    k->n_unique = k->depth;
    k->layer = k->priv ? ses_alloc_array((size_t)k->depth, sizeof *k->layer, e) : NULL;
    if (!k->layer) return false;
    if (!k->token) k->token = ses_store_add(s, name, SES_DIM(c->vocab, c->input.width), SES_INIT_NORMAL);
    ses_store_set_embedding(s, k->token);
    return true;
}

static bool add_encoder(ses_stack *k, ses_store *s, const ses_config *c, ses_err *e)
{
    encoder_layer *o = k->priv = ses_alloc_array((size_t)k->depth, sizeof *o, e);
    ses_rnn_shape shape = { .type = c->rnn.type, .size = c->rnn.size, .width = c->input.width };
    if (!add_table(k, s, c, e)) return false;
    for (int i = 0; i < (int)k->depth; i++) {
        o[i].rnn[0] = ses_rnn_add(s, &shape, "rnn.", i, "");
        if (c->rnn.bidirectional) o[i].rnn[1] = ses_rnn_add(s, &shape, "rnn.", i, "_reverse");
        shape.width = c->hidden;
    }
    return ses_store_ok(s, e);
}

static bool add_decoder(ses_stack *k, ses_store *s, const ses_config *c, ses_err *e)
{
    decoder *o = k->priv = ses_alloc(sizeof *o + (size_t)k->depth * sizeof *o->rnn, e);
    ses_rnn_shape shape = { .type = c->rnn.type, .size = c->hidden, .width = c->input.width };
    if (c->rnn.input_feeding) shape.width += c->hidden;
    if (!add_table(k, s, c, e)) return false;
    for (int i = 0; i < (int)k->depth; i++) {
        o->rnn[i] = ses_rnn_add(s, &shape, "decoder.rnn.", i, "");
        shape.width = c->hidden;
    }
    ses_rnn_attention_add(&o->attention, s, c, "decoder.");
    return ses_store_ok(s, e);
}

/* ---- forward ---- */

static ses_tensor *embed(const ses_stack *k, ses_forward_ctx *p, ses_tensor *ids)
{
    const ses_config *c = p->c;
    ses_tensor *x = ses_embed(p->tape, 1, &k->token, &ids, -1);
    return ses_dropout(p->tape, x, c->dropout.embed < 0 ? c->dropout.hidden : c->dropout.embed);
}

static void output_hidden(const ses_stack *k, ses_forward_ctx *p, ses_tensor *x, int i)
{
    if (p->layer) p->layer[i] = x;
    if (p->request->hidden_states)
        ses_forward_output(p, k->cross ? SES_PER_TARGET : SES_PER_TOKEN, x, "%shidden_states.%d", k->outputs,
                           i);
}

/* Number of state vectors of a layer: h, and c of an LSTM. */
static int parts(const ses_config *c) { return c->rnn.type == SES_RNN_LSTM ? 2 : 1; }

/* One direction of a layer; y gets its outputs, state its output and cell after the last token (NULL: not
 * needed). */
static void run_direction(ses_forward_ctx *p, const ses_rnn_params *r, ses_tensor *x, const ses_seqs *q,
                          bool reverse, ses_tensor *const *initial, ses_tensor **y, ses_tensor **state)
{
    bool lstm = parts(p->c) == 2;
    ses_rnn_run run = { .o = { .type = p->c->rnn.type, .reverse = reverse, .cells = lstm && state } };
    if (initial) run.h0 = initial[0], run.c0 = lstm ? initial[1] : NULL;
    ses_tensor *all = ses_rnn_layer(p, r, x, q, &run);
    *y = all;
    if (!all || !state) return;
    int64_t size = ses_cols(all) / parts(p->c);
    bool one_step = q->max_seqlen == 1 && q->tokens == q->seqs;
    ses_tensor *last = one_step ? all : ses_rnn_last(p, q, all, reverse);
    if (lstm) *y = ses_columns(p->tape, all, 0, size);
    for (int i = 0; i < parts(p->c); i++)
        state[i] = !lstm ? last : one_step && !i ? *y : ses_columns(p->tape, last, i * size, size);
}

static ses_tensor *run_encoder(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q)
{
    const encoder_layer *o = k->priv;
    ses_tape *t = p->tape;
    int n = parts(p->c), directions = p->c->rnn.bidirectional ? 2 : 1;
    bool keeps = p->batch->target_cu_seqlens != NULL; /* a decoder follows */
    ses_tensor *x = embed(k, p, q->ids);
    if (keeps) p->final_states = ses_tape_host_alloc(t, (size_t)(k->depth * n), sizeof(ses_tensor *));
    if (keeps && !p->final_states) return NULL;
    output_hidden(k, p, x, 0);
    for (int i = 0; i < (int)k->depth; i++) {
        ses_tensor *y[2] = { NULL }, *state[2][2] = { { NULL } };
        if (i) x = ses_dropout(t, x, p->c->dropout.hidden);
        for (int d = 0; d < directions; d++)
            run_direction(p, &o[i].rnn[d], x, q, d == 1, NULL, &y[d], keeps ? state[d] : NULL);
        x = directions == 2 ? ses_concat(t, 2, y) : y[0];
        for (int j = 0; keeps && j < n; j++)
            p->final_states[i * n + j] =
                directions == 2 ? ses_concat(t, 2, (ses_tensor *const[]){ state[0][j], state[1][j] })
                                : state[0][j];
        output_hidden(k, p, x, i + 1);
        ses_tape_wrap_error(t, "layer %d", i);
    }
    return x;
}

/* ---- the decoder ---- */

typedef struct decoding {
    const ses_stack *k;
    const decoder *o;
    ses_forward_ctx *p;
    const ses_seqs *q;
    ses_rnn_attention_keys keys;
    int64_t n_states;   /* state vectors: of all layers; the last attentional vector, if it is fed */
    ses_tensor **state; /* [n_states], each [sequences, hidden] */
} decoding;

/* Initial states: given by the batch, or the encoder's final ones and zeros to feed. */
static bool begin_states(decoding *v)
{
    ses_forward_ctx *p = v->p;
    ses_tape *t = p->tape;
    const ses_real *given = p->batch->rnn_state;
    int64_t H = p->c->hidden, B = v->q->seqs, layers = v->k->depth * parts(p->c);
    v->n_states = p->c->rnn.state / H;
    v->state = ses_tape_host_alloc(t, (size_t)v->n_states, sizeof(ses_tensor *));
    if (!v->state) return false;
    if (!given && !p->final_states) {
        ses_tape_fail(t, SES_EARG, "the batch has the encoder's states, but no rnn_state for the decoder");
        return false;
    }
    ses_tensor *all = given ? ses_tape_input(t, given, SES_DIM(B, v->n_states * H)) : NULL;
    const ses_real *zeros = ses_tape_host_alloc(t, (size_t)(B * H), sizeof *zeros);
    for (int64_t i = 0; zeros && i < v->n_states; i++)
        v->state[i] = given        ? ses_columns(t, all, i * H, H)
                      : i < layers ? p->final_states[i]
                                   : ses_tape_input(t, zeros, SES_DIM(B, H));
    return zeros != NULL;
}

/* All states side by side: [rows, n_states hidden]. */
static ses_tensor *join_states(const decoding *v)
{
    ses_tensor *x = v->state[0];
    for (int64_t i = 1; i < v->n_states; i++)
        x = ses_concat(v->p->tape, 2, (ses_tensor *const[]){ x, v->state[i] });
    return x;
}

/* Layers over all tokens, then attention: for models that feed nothing back. */
static ses_tensor *run_layers(decoding *v, ses_tensor *memory)
{
    ses_forward_ctx *p = v->p;
    ses_tape *t = p->tape;
    int n = parts(p->c);
    ses_tensor *x = embed(v->k, p, v->q->ids), *probs = NULL;
    output_hidden(v->k, p, x, 0);
    for (int i = 0; i < (int)v->k->depth; i++) {
        if (i) x = ses_dropout(t, x, p->c->dropout.hidden);
        run_direction(p, &v->o->rnn[i], x, v->q, false, v->state + i * n, &x, v->state + i * n);
        if (i + 1 < v->k->depth) output_hidden(v->k, p, x, i + 1);
        ses_tape_wrap_error(t, "decoder layer %d", i);
    }
    if (p->c->rnn.attention != SES_RNN_ATTENTION_NONE) {
        ses_rnn_attention_begin(&v->o->attention, t, memory, &v->keys);
        v->keys.cu_seqlens_q = v->q->cu_seqlens, v->keys.cu_seqlens_k = p->in.cu_seqlens;
        v->keys.max_seqlen_q = v->q->max_seqlen, v->keys.max_seqlen_k = p->in.max_seqlen;
        x = ses_rnn_attention_run(&v->o->attention, t, &v->keys, x, p->request->attentions ? &probs : NULL);
        if (probs) ses_forward_output(p, SES_PER_CROSS_QUERY_KEY, probs, "cross_attentions.0");
    }
    if (p->request->rnn_state) ses_forward_output(p, SES_PER_SEQUENCE, join_states(v), "rnn_state");
    return ses_dropout(t, x, p->c->dropout.hidden);
}

/* ---- input feeding: step after step ---- */

/* The order of steps. Sequences are sorted by length, so that the unfinished ones of each step come first. */
typedef struct steps {
    int64_t n;
    int32_t *order;  /* [seqs]: longest first */
    int32_t *active; /* [n + 1]: unfinished sequences of each step; 0 after the last */
    int32_t *first;  /* [n]: number of tokens before each step */
    int32_t *row;    /* [tokens]: row of a token of the batch, counted over all steps */
    int32_t *id;     /* [tokens], in the order of steps */
    int32_t *count;  /* 0, 1, 2, ... up to tokens and sequences */
    int32_t *source; /* [source tokens]: their rows in this order */
    int32_t *cu_seqlens_k, *len_k;
} steps;

static bool steps_alloc(steps *x, const decoding *v)
{
    ses_tape *t = v->p->tape;
    size_t B = (size_t)v->q->seqs, T = (size_t)v->q->tokens, n = (size_t)v->q->max_seqlen;
    *x = (steps){ .n = (int64_t)n };
    int32_t *all = ses_tape_host_alloc(
        t, 3 * B + 1 + 2 * n + 1 + 2 * T + (T + B + 1) + (size_t)v->p->in.tokens, sizeof *all);
    if (!all) return false;
    x->order = all, x->active = x->order + B, x->first = x->active + n + 1;
    x->row = x->first + n, x->id = x->row + T, x->count = x->id + T;
    x->len_k = x->count + T + B + 1, x->cu_seqlens_k = x->len_k + B, x->source = x->cu_seqlens_k + B + 1;
    for (size_t i = 0; i < T + B + 1; i++) x->count[i] = (int32_t)i;
    return true;
}

static bool steps_begin(steps *x, const decoding *v)
{
    const ses_seqs *q = v->q, *in = &v->p->in;
    const int32_t *cu = q->host_cu_seqlens;
    int64_t n = 0;
    if (!steps_alloc(x, v)) return false;
    for (int64_t len = x->n; len > 0; len--)
        for (int64_t s = 0; s < q->seqs; s++)
            if (cu[s + 1] - cu[s] == len) x->order[n++] = (int32_t)s;
    n = 0;
    for (int64_t t = 0; t < x->n; t++) {
        x->first[t] = (int32_t)n;
        for (; x->active[t] < q->seqs; x->active[t]++) {
            int32_t s = x->order[x->active[t]];
            if (cu[s + 1] - cu[s] <= t) break;
            x->id[n] = q->host_ids[cu[s] + t];
            x->row[cu[s] + t] = (int32_t)n++;
        }
    }
    n = 0;
    for (int64_t i = 0; i < q->seqs; i++) {
        int32_t s = x->order[i];
        x->len_k[i] = in->host_cu_seqlens[s + 1] - in->host_cu_seqlens[s];
        for (int32_t j = 0; j < x->len_k[i]; j++) x->source[n++] = in->host_cu_seqlens[s] + j;
        x->cu_seqlens_k[i + 1] = (int32_t)n;
    }
    return true;
}

/* Rows of tensors, one after the other. */
static ses_tensor *append_all(ses_tape *t, ses_tensor *const *x, int64_t n)
{
    if (n == 1) return x[0];
    return ses_append_rows(t, append_all(t, x, n / 2), append_all(t, x + n / 2, n - n / 2));
}

static ses_tensor *gather(ses_tape *t, ses_tensor *x, const int32_t *row, int64_t n)
{
    return ses_gather(t, x, ses_tape_ints(t, row, n));
}

/* Tensors of each step. */
typedef struct step_outputs {
    ses_tensor **x;      /* [n]: attentional vectors */
    ses_tensor **hidden; /* [layers - 1, n], if requested */
    ses_tensor **probs;  /* [n], if requested */
    ses_tensor **last;   /* [n_last]: states of sequences that end, if requested */
    int64_t n_last;
} step_outputs;

static bool outputs_alloc(step_outputs *y, const decoding *v, int64_t n)
{
    size_t depth = (size_t)v->k->depth;
    ses_tensor **all = ses_tape_host_alloc(v->p->tape, (size_t)n * (depth + 2), sizeof(ses_tensor *));
    *y = (step_outputs){ .x = all };
    if (!all) return false;
    y->probs = all + n, y->last = y->probs + n, y->hidden = y->last + n;
    return true;
}

/* Advances the first `active` sequences by one token. */
static ses_tensor *step(decoding *v, const steps *k, int64_t at, ses_tensor *x, step_outputs *y)
{
    ses_forward_ctx *p = v->p;
    ses_tape *t = p->tape;
    int64_t active = k->active[at];
    int n = parts(p->c);
    ses_tensor **fed = &v->state[v->n_states - 1];
    ses_seqs q = { .seqs = active,
                   .tokens = active,
                   .max_seqlen = 1,
                   .host_cu_seqlens = k->count,
                   .cu_seqlens = ses_tape_ints(t, k->count, active + 1) };
    x = ses_concat(t, 2, (ses_tensor *const[]){ gather(t, x, k->count + k->first[at], active), *fed });
    for (int i = 0; i < (int)v->k->depth; i++) {
        if (i) x = ses_dropout(t, x, p->c->dropout.hidden);
        run_direction(p, &v->o->rnn[i], x, &q, false, v->state + i * n, &x, v->state + i * n);
        if (i + 1 < v->k->depth) y->hidden[i * k->n + at] = x;
    }
    v->keys.cu_seqlens_q = q.cu_seqlens;
    v->keys.cu_seqlens_k = ses_tape_ints(t, k->cu_seqlens_k, active + 1);
    v->keys.len_k = ses_tape_ints(t, k->len_k, active);
    v->keys.max_seqlen_q = 1, v->keys.max_seqlen_k = p->in.max_seqlen;
    x = ses_rnn_attention_run(&v->o->attention, t, &v->keys, x,
                              p->request->attentions ? &y->probs[at] : NULL);
    return *fed = ses_dropout(t, x, p->c->dropout.hidden);
}

/* Keeps the states of the sequences that end at a step, and drops their rows. */
static void end_sequences(decoding *v, const steps *k, int64_t at, step_outputs *y)
{
    ses_tape *t = v->p->tape;
    int64_t active = k->active[at], next = k->active[at + 1];
    if (next == active) return;
    if (v->p->request->rnn_state)
        y->last[y->n_last++] = gather(t, join_states(v), k->count + next, active - next);
    for (int64_t i = 0; next && i < v->n_states; i++) v->state[i] = gather(t, v->state[i], k->count, next);
}

/* [seqs, state size] of the batch: the sequences ended from the last of the order to the first. */
static void output_states(const decoding *v, const steps *k, const step_outputs *y)
{
    ses_tape *t = v->p->tape;
    int32_t *row = ses_tape_host_alloc(t, (size_t)v->q->seqs, sizeof *row), n = 0;
    for (int64_t at = 0; row && at < k->n; at++)
        for (int32_t i = k->active[at + 1]; i < k->active[at]; i++) row[k->order[i]] = n++;
    if (!row || !v->p->request->rnn_state) return;
    ses_forward_output(v->p, SES_PER_SEQUENCE, gather(t, append_all(t, y->last, y->n_last), row, v->q->seqs),
                       "rnn_state");
}

/* [queries, keys] of each sequence, from one row of keys per step and sequence. */
static void output_probs(const decoding *v, const steps *k, const step_outputs *y)
{
    ses_forward_ctx *p = v->p;
    ses_tape *t = p->tape;
    const int32_t *cu = v->q->host_cu_seqlens, *cu_k = p->in.host_cu_seqlens;
    int64_t pairs = 0, n = 0;
    for (int64_t s = 0; s < v->q->seqs; s++) pairs += (int64_t)(cu[s + 1] - cu[s]) * (cu_k[s + 1] - cu_k[s]);
    int32_t *row = ses_tape_host_alloc(t, (size_t)pairs, sizeof *row);
    int32_t *to = ses_tape_host_alloc(t, (size_t)v->q->seqs + 1, sizeof *to);
    if (!row || !to) return;
    for (int64_t s = 0; s < v->q->seqs; s++)
        to[s + 1] = to[s] + (cu[s + 1] - cu[s]) * (cu_k[s + 1] - cu_k[s]);
    for (int64_t at = 0; at < k->n; at++)
        for (int64_t i = 0; i < k->active[at]; i++)
            for (int32_t j = 0; j < k->len_k[i]; j++)
                row[to[k->order[i]] + at * k->len_k[i] + j] = (int32_t)n++;
    for (int64_t at = 0; at < k->n; at++)
        if (y->probs[at]) y->probs[at] = ses_reshape(t, y->probs[at], SES_DIM(ses_count(y->probs[at]), 1));
    ses_tensor *x = gather(t, append_all(t, y->probs, k->n), row, pairs);
    if (x)
        ses_forward_output(p, SES_PER_CROSS_QUERY_KEY, ses_reshape(t, x, SES_DIM(pairs)),
                           "cross_attentions.0");
}

static ses_tensor *run_steps(decoding *v, ses_tensor *memory)
{
    ses_forward_ctx *p = v->p;
    ses_tape *t = p->tape;
    steps k;
    step_outputs y;
    if (!steps_begin(&k, v) || !outputs_alloc(&y, v, k.n)) return NULL;
    ses_tensor *x = embed(v->k, p, ses_tape_ints(t, k.id, v->q->tokens));
    if (p->request->hidden_states) output_hidden(v->k, p, gather(t, x, k.row, v->q->tokens), 0);
    ses_rnn_attention_begin(&v->o->attention, t, gather(t, memory, k.source, p->in.tokens), &v->keys);
    for (int64_t i = 0; i < v->n_states; i++) v->state[i] = gather(t, v->state[i], k.order, v->q->seqs);
    for (int64_t at = 0; at < k.n && ses_tape_ok(t, NULL); at++) {
        y.x[at] = step(v, &k, at, x, &y);
        end_sequences(v, &k, at, &y);
    }
    ses_err e = { 0 };
    if (!ses_tape_ok(t, &e)) return ses_tape_fail(t, e.code, "%s", e.msg), NULL;
    for (int i = 1; p->request->hidden_states && i < (int)v->k->depth; i++)
        output_hidden(v->k, p, gather(t, append_all(t, y.hidden + (i - 1) * k.n, k.n), k.row, v->q->tokens),
                      i);
    output_states(v, &k, &y);
    if (p->request->attentions) output_probs(v, &k, &y);
    return gather(t, append_all(t, y.x, k.n), k.row, v->q->tokens);
}

static ses_tensor *run_decoder(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q)
{
    decoding v = { .k = k, .o = k->priv, .p = p, .q = q };
    if (!begin_states(&v)) return NULL;
    ses_tensor *x = p->c->rnn.input_feeding ? run_steps(&v, p->memory) : run_layers(&v, p->memory);
    output_hidden(k, p, x, (int)k->depth);
    return x;
}

static const ses_stack_vtable encoder_vtable = { .add = add_encoder, .run = run_encoder };
static const ses_stack_vtable decoder_vtable = { .add = add_decoder, .run = run_decoder };

/* ---- tables ---- */

static const ses_tensor_name tensors[] = {
    { "embed.token", "encoder.embed_tokens.weight" },
    { "decoder.embed.token", "decoder.embed_tokens.weight" },
    { "rnn.*", "encoder.rnn.*" },
    { "decoder.rnn.*", "decoder.rnn.*" },
    { "decoder.attn.query.*", "decoder.attention.query.*" },
    { "decoder.attn.key.*", "decoder.attention.key.*" },
    { "decoder.attn.v", "decoder.attention.v" },
    { "decoder.attn.out.*", "decoder.attention.out.*" },
    { "lm.out.*", "/lm_head.*" },
};

static const ses_class classes[] = {
    { .name = "RnnSeq2SeqModel" },
    { .name = "RnnSeq2SeqEncoder", .encoder_only = true },
    SES_CLASS("RnnSeq2SeqForConditionalGeneration", SES_USE_HEAD(seq2seq_lm, "logits")),
};

const ses_model_desc ses_model_rnn_seq2seq = {
    .name = "rnn-seq2seq",
    .prefix = "model.",
    .encoder_decoder = true,
    .vtable = &encoder_vtable,
    .decoder_vtable = &decoder_vtable,
    .carries_state = true,
    .defaults = { SES_RECURRENT_DEFAULTS, .layers = 2, .decoder.layers = 2, .attention.heads = 1,
                  .decoder.heads = 1, .rnn.bidirectional = true, .rnn.input_feeding = true,
                  .dropout.hidden = 0.2, .dropout.embed = -1, .init.range = 0.1, .init.uniform = 0.1,
                  .lm.no_transform = true, .lm.bias = true },
    .keys = { SES_TABLE(keys) },
    .post_read = post_read,
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};

/* ---- CoVe ---- */

static const ses_config_key cove_keys[] = {
    SES_KEY_REQUIRED("vocab_size", vocab, SES_MAX_VOCAB),
    SES_KEY_INTEGER("hidden_size", hidden, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("embedding_size", input.width, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("encoder_layers", layers, 1, SES_MAX_LAYERS),
    SES_KEY_INTEGER("pad_token_id", pad_id, -1, SES_MAX_VOCAB),
    SES_KEY_FLAG("bidirectional", rnn.bidirectional),
    SES_KEY_RATE("dropout", dropout.hidden),
    SES_KEY_RATE("embedding_dropout", dropout.embed),
    SES_KEY_RATE("classifier_dropout", dropout.head),
    SES_KEY_NUMBER("init_range", init.uniform, 0, 100),
};

static bool cove_post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    (void)config;
    return set_sizes(c, e);
}

/* The names of the published state dict, of its LSTM alone, and of the encoder of a rnn-seq2seq model. */
static const ses_tensor_name cove_tensors[] = {
    { "embed.token", "vectors.weight" },
    { "embed.token", "encoder.embed_tokens.weight" },
    { "rnn.*", "rnn1.*" },
    { "rnn.*", "rnn.*" },
    { "rnn.*", "encoder.rnn.*" },
    { "rnn.*", "*" },
};

static const ses_class cove_classes[] = {
    { .name = "CoveModel" },
    SES_CLASS("CoveForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
    SES_CLASS("CoveForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
};

const ses_model_desc ses_model_cove = {
    .name = "cove",
    .prefix = "model.",
    .vtable = &encoder_vtable,
    .defaults = { SES_RECURRENT_DEFAULTS, .hidden = 600, .layers = 2, .attention.heads = 1,
                  .rnn.type = SES_RNN_LSTM, .input.width = 300, .rnn.bidirectional = true,
                  .dropout.embed = -1, .dropout.head = -1, .summary.kind = SES_SUMMARY_MEAN,
                  .summary.no_proj = true, .init.range = 0.1, .init.uniform = 0.1 },
    .keys = { SES_TABLE(cove_keys) },
    .post_read = cove_post_read,
    .tensors = { SES_TABLE(cove_tensors), SES_TABLE(ses_bert_heads) },
    .unread = "model.decoder.",
    .class = cove_classes,
    .n_classes = SES_LEN(cove_classes),
};
