/* Two towers of Transformer layers (Baevski et al. 2019, "Cloze-driven pretraining of self-attention
 * networks"): the forward tower reads the tokens up to a position, the backward tower the tokens from it on.
 * One more layer combines their last states F and B. Its query for token i is F(i - 1) + B(i + 1), its keys
 * and values are F(j) with j < i and B(j) with j > i, so that the masked LM head predicts each token from all
 * others. All layers are pre-norm; the norm before the last attention is applied to queries and keys. Without
 * the LM head, for fine-tuning, all states F and B are keys: the centre is not masked.
 *
 * Layers 0 .. n - 1 are the forward tower, n .. 2 n - 1 the backward tower, 2 n the combination. */
#include "model_desc.h"
#include "nn/layer_hooks.h"

static const ses_config_key keys[] = {
    SES_KEY_REQUIRED("vocab_size", vocab, SES_MAX_VOCAB),
    SES_KEY_REQUIRED("hidden_size", hidden, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("num_tower_layers", attention.tower_layers, (SES_MAX_LAYERS - 1) / 2),
    SES_KEY_REQUIRED("num_attention_heads", attention.heads, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("intermediate_size", ffn.width, SES_MAX_FFN),
    SES_KEY_REQUIRED("max_position_embeddings", position.max, SES_MAX_POSITIONS),
    SES_KEY_INTEGER("pad_token_id", pad_id, -1, SES_MAX_VOCAB),
    SES_KEY_NUMBER("layer_norm_eps", norm.eps, 0, 1),
    SES_KEY_RATE("dropout", dropout.hidden),
    SES_KEY_RATE("attention_dropout", dropout.attention),
    SES_KEY_RATE("activation_dropout", dropout.act),
    SES_KEY_RATE("classifier_dropout", dropout.head),
    SES_KEY_NUMBER("initializer_range", init.range, 0, 100),
    SES_KEY_ACTIVATION("activation_function", ffn.act),
    SES_KEY_FLAG("scale_embedding", embed.scale_by_sqrt_hidden),
    SES_KEY_FLAG("tie_word_embeddings", embed.tied),
};

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    (void)config, (void)e;
    c->layers = 2 * c->attention.tower_layers + 1;
    return true;
}

/* The states that the tokens attend to, backward before forward, and their sequences. If the centre is
 * masked, a text of n tokens has n - 1 of each: B(0) and F(n - 1) have read all tokens. Token i then attends
 * to n - 1 adjacent rows from row i on: B(i + 1) .. B(n - 1), F(0) .. F(i - 1). NULL: none, only texts of one
 * token. */
static ses_tensor *contexts(ses_forward_ctx *p, const ses_seqs *q, ses_tensor *const state[2], ses_seqs *out)
{
    ses_tape *t = p->tape;
    int32_t masked = p->c->input.excludes_token;
    int32_t *row = ses_tape_host_alloc(t, 2 * (size_t)q->tokens, sizeof *row);
    int32_t *cu = ses_tape_host_alloc(t, (size_t)q->seqs + 1, sizeof *cu), n = 0;
    if (!row || !cu) return NULL;
    for (int64_t s = 0; s < q->seqs; s++) {
        int32_t begin = q->host_cu_seqlens[s], end = q->host_cu_seqlens[s + 1], first = n;
        for (int32_t j = begin + masked; j < end; j++) row[n++] = (int32_t)q->tokens + j;
        for (int32_t j = begin; j < end - masked; j++) row[n++] = j;
        if (n - first > out->max_seqlen) out->max_seqlen = n - first;
        cu[s + 1] = n;
    }
    if (!n) return NULL;
    out->cu_seqlens = ses_tape_ints(t, cu, q->seqs + 1);
    return ses_gather(t, ses_append_rows(t, state[0], state[1]), ses_tape_ints(t, row, n));
}

/* Gives out the attention weights of the states of each token: of F(j) or B(j), or the sum of both. */
static void output_attention(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q, ses_tensor *probs)
{
    ses_tape *t = p->tape;
    int64_t masked = p->c->input.excludes_token, heads = ses_stack_heads(k, k->depth - 1), n = 0, at = 0;
    int64_t total = heads * q->token_pairs;
    if (2 * total > INT32_MAX) {
        ses_tape_fail(t, SES_EARG,
                      "attention weights of %lld pairs of tokens are too many: use smaller batches",
                      (long long)total);
        return;
    }
    int32_t *row = ses_tape_host_alloc(t, 2 * (size_t)total, sizeof *row);
    for (int64_t s = 0; row && s < q->seqs; s++) {
        int64_t len = q->host_cu_seqlens[s + 1] - q->host_cu_seqlens[s], width = 2 * (len - masked);
        for (int64_t i = 0; i < heads * len; i++, at += width)
            for (int64_t j = 0; j < len; j++, n++) {
                int64_t b = j - masked, f = len - masked + j, token = i % len;
                row[n] = (int32_t)(!masked || j > token ? at + b : SES_IGNORE_INDEX);
                row[total + n] = (int32_t)(!masked || j < token ? at + f : SES_IGNORE_INDEX);
            }
    }
    if (!row || !probs) return;
    ses_tensor *x = ses_reshape(t, probs, SES_DIM(ses_count(probs), 1));
    ses_tensor *sum = ses_add(t, ses_gather(t, x, ses_tape_ints(t, row, total)),
                              ses_gather(t, x, ses_tape_ints(t, row + total, total)));
    if (sum)
        ses_forward_output(p, SES_PER_QUERY_KEY, ses_reshape(t, sum, SES_DIM(total)), "%sattentions.%d",
                           k->outputs, (int)k->depth - 1);
}

/* Texts of one token attend to nothing. */
static ses_tensor *no_context(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q, ses_tensor *query)
{
    int64_t n = ses_stack_heads(k, k->depth - 1) * q->token_pairs;
    ses_real *zero = p->request->attentions ? ses_tape_host_alloc(p->tape, (size_t)n, sizeof *zero) : NULL;
    if (zero)
        ses_forward_output(p, SES_PER_QUERY_KEY, ses_tape_input(p->tape, zero, SES_DIM(n)), "%sattentions.%d",
                           k->outputs, (int)k->depth - 1);
    return ses_scale(p->tape, query, 0);
}

/* Attention of x to the contexts; zeros if there are none. */
static ses_tensor *attend(const ses_stack *k, const ses_layer *l, ses_forward_ctx *p, const ses_seqs *q,
                          ses_tensor *x, ses_tensor *const state[2])
{
    ses_tape *t = p->tape;
    const ses_config *c = p->c;
    ses_seqs of_keys = { 0 };
    ses_tensor *from = contexts(p, q, state, &of_keys);
    ses_attention_inputs in = { .q = ses_dense_run(t, l->self.query, x, SES_ACT_NONE) };
    if (!from) return in.q ? no_context(k, p, q, in.q) : NULL;
    from = ses_norm_run(t, l->self_norm, from, NULL, c->norm.eps);
    in.k = ses_dense_run(t, l->self.key, from, SES_ACT_NONE);
    in.v = ses_dense_run(t, l->self.value, from, SES_ACT_NONE);
    in.cu_seqlens_q = q->cu_seqlens, in.cu_seqlens_k = of_keys.cu_seqlens;
    ses_attention_options o = { .heads = ses_stack_heads(k, k->depth - 1),
                                .max_seqlen_q = q->max_seqlen,
                                .max_seqlen_k = of_keys.max_seqlen,
                                .dropout = c->dropout.attention,
                                .causal = c->input.excludes_token,
                                .equal_keys = c->input.excludes_token };
    ses_tensor *probs = NULL, *y = ses_attention(t, &in, &o, p->request->attentions ? &probs : NULL);
    if (p->request->attentions) output_attention(k, p, q, probs);
    return y;
}

static ses_tensor *combine(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q,
                           ses_tensor *const state[2])
{
    ses_tape *t = p->tape;
    const ses_layer *l = &k->layer[k->depth - 1];
    ses_layer_site at = ses_layer_site_of(k, (int)k->depth - 1);
    ses_tensor *x = ses_add(t, ses_seqs_shift(p, q, state[0], -1), ses_seqs_shift(p, q, state[1], 1));
    ses_tensor *y = attend(k, l, p, q, ses_norm_run(t, l->self_norm, x, NULL, p->c->norm.eps), state);
    if (p->hooked && y) y = ses_hook_head_outputs(p, &at, y);
    y = ses_dense_run(t, l->self.out, y, SES_ACT_NONE);
    return ses_layer_ffn(l, p, &at, ses_add(t, x, ses_dropout(t, y, p->c->dropout.hidden)));
}

static ses_tensor *run(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q)
{
    ses_stack_ctx ctx = { .seqs = q };
    const ses_output_request *r = p->request;
    int64_t n = p->c->attention.tower_layers;
    ses_tensor *state[2];
    if (r->attention_scores || r->qkv || (r->edits && r->edits->n_values))
        ses_tape_fail(
            p->tape, SES_EUNSUPPORTED,
            "attention scores, queries, keys and values are not available: the last layer of a model "
            "of two towers has two keys of each token");
    ses_tensor *x = ses_stack_output_hidden(k, p, ses_stack_embed(k, p, q), 0);
    for (int64_t i = 0; i < 2 * n; i++) {
        ses_tensor *from = i % n ? state[i / n] : x;
        ses_tensor *y = ses_layer_run(k, p, &ctx, from, (int)i);
        state[i / n] = ses_stack_output_hidden(k, p, y, i + 1);
        ses_tape_wrap_error(p->tape, "layer %d", (int)i);
    }
    return ses_stack_finish(k, p, combine(k, p, q, state));
}

static const ses_stack_vtable vtable = { .run = run };

static const ses_tensor_name tensors[] = {
    { "embed.token", "embed_tokens.weight" },
    { "embed.position", "embed_positions.weight" },
    { "layer.#.attn.query.*", "layers.#.self_attn.q_proj.*" },
    { "layer.#.attn.key.*", "layers.#.self_attn.k_proj.*" },
    { "layer.#.attn.value.*", "layers.#.self_attn.v_proj.*" },
    { "layer.#.attn.out.*", "layers.#.self_attn.out_proj.*" },
    { "layer.#.attn.norm.*", "layers.#.self_attn_layer_norm.*" },
    { "layer.#.ffn.up.*", "layers.#.fc1.*" },
    { "layer.#.ffn.down.*", "layers.#.fc2.*" },
    { "layer.#.ffn.norm.*", "layers.#.final_layer_norm.*" },
    { "final_norm.*", "layer_norm.*" },
    { "lm.out.weight", "/lm_head.weight" },
    { "classify.out.*", "/classifier.*" },
    { "tag.*", "/classifier.*" },
    { "span.*", "/qa_outputs.*" },
};

/* The centre is masked for the LM head only. */
#define UNMASKED_CLASS(class, ...)                                     \
    {                                                                  \
        .name = class, .includes_token = true, .head = { __VA_ARGS__ } \
    }

static const ses_class classes[] = {
    { .name = "ClozeModel", .includes_token = true },
    SES_CLASS("ClozeForMaskedLM", SES_USE_HEAD(masked_lm, "logits")),
    UNMASKED_CLASS("ClozeForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
    UNMASKED_CLASS("ClozeForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
    UNMASKED_CLASS("ClozeForQuestionAnswering", SES_USE_HEAD(question_answering, "")),
};

const ses_model_desc ses_model_cloze = {
    .name = "cloze",
    .prefix = "model.",
    .vtable = &vtable,
    .defaults = { .pad_id = -1,
                  .eos_id = -1,
                  .decoder.start_id = -1,
                  .norm.eps = 1e-5,
                  .norm.placement = SES_PRE_NORM,
                  .norm.after_last_layer = true,
                  .position.kind = SES_POS_SINUSOID,
                  .dropout.hidden = 0.1,
                  .dropout.embed = -1,
                  .dropout.ffn = -1,
                  .dropout.head = -1,
                  .init.range = 0.02,
                  .ffn.act = SES_ACT_RELU,
                  .embed.scale_by_sqrt_hidden = true,
                  .embed.tied = true,
                  .input.excludes_token = true,
                  .summary.kind = SES_SUMMARY_FIRST,
                  .summary.no_proj = true,
                  .lm.no_transform = true },
    .keys = { SES_TABLE(keys) },
    .post_read = post_read,
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
