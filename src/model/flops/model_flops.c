/* Counts of FLOPs: see model_flops.h. */
#include "model_flops.h"

#include "model/model_desc.h"

#include <stdio.h>
#include <string.h>

/* Per number; the recurrent cell: activation of a gate, its product and its sum. */
enum { DROPOUT = 4, NORM = 5, ACTIVATION = 8, SOFTMAX = 5, GATE = 5 };
enum { TARGET_WORD = 2 }; /* per word of the vocabulary: choosing the label's probability */

typedef struct counter {
    const ses_model *m;
    ses_flops_rates *r;
} counter;

static void put(const counter *k, ses_flops_unit unit, ses_flop_kind kind, double flops)
{
    k->r->rate[unit][kind] += flops;
}

static double elements(const ses_tensor *t) { return t ? (double)ses_count(t) : 0; }

/* ---- stacks ---- */

static bool has(const char *name, const char *part) { return strstr(name, part) != NULL; }

static bool is_encoder_decoder(const ses_model *m) { return m->stack[1].c != NULL; }

/* The stack that a parameter belongs to. */
static int stack_of(const ses_model *m, const char *name)
{
    return is_encoder_decoder(m) && !strncmp(name, "decoder.", 8);
}

/* The projection of distances in the attention of a permutation LM. */
static bool is_distance_projection(const ses_stack *k, const char *name)
{
    static const char *const others[] = { ".query", ".key", ".value", ".out", ".norm", "bias", ".segment" };
    if (!k->c->xl.permutation_lm || !has(name, ".attn.")) return false;
    for (size_t i = 0; i < SES_LEN(others); i++)
        if (has(name, others[i])) return false;
    return true;
}

/* How often a token is multiplied with a weight of its stack. */
static double uses_of(const ses_stack *k, const char *name)
{
    const ses_config *c = k->c;
    int filter = 0;
    if (has(name, "chars.table")) return (double)c->chars.per_word;
    if (sscanf(name, "chars.conv.%d", &filter) == 1 && filter >= 0 && filter < c->chars.filters)
        return (double)(c->chars.per_word - c->chars.size[filter] + 1);
    if (is_distance_projection(k, name)) return 2; /* distances to the left and to the right */
    if (has(name, "layer.") && k->n_unique) return (double)k->depth / (double)k->n_unique;
    return 1;
}

/* Tables that are not looked up by token, and weights that are not used. */
static bool is_skipped(const ses_stack *k, const ses_param *p)
{
    bool computed = p->role == SES_PARAM_BUFFER || p->role == SES_PARAM_CONSTANT;
    return (computed && p->tensor != k->position) || (k->cross_unused && has(p->name, ".cross.")) ||
           has(p->name, "rel.table") || has(p->name, "buckets") || has(p->name, ".distance.table") ||
           has(p->name, "embed.mask");
}

static bool is_distance_table(const ses_stack *k, const ses_tensor *t)
{
    for (int64_t i = 0; k->layer && i < k->n_unique; i++)
        if (k->layer[i].distance == t) return true;
    return false;
}

/* The tokens that are multiplied with a parameter. */
static ses_flops_unit unit_of(const ses_model *m, const char *name)
{
    bool memory = has(name, ".cross.key") || has(name, ".cross.value") || has(name, ".cross.kv") ||
                  has(name, "decoder.attn.key");
    if (m->c.disentangled.enabled && has(name, ".rel.")) return SES_UNIT_DISTANCE;
    if (has(name, "char_rnn.") || has(name, "embed.token.byte")) return SES_UNIT_CHAR;
    return stack_of(m, name) && !memory ? SES_UNIT_TARGET : SES_UNIT_TOKEN;
}

/* Parameters of a layer that the query stream of a permutation LM uses, too. */
static bool in_query_stream(const ses_stack *k, const char *name)
{
    return k->c->xl.permutation_lm && has(name, "layer.") && !has(name, ".key") && !has(name, ".value") &&
           !is_distance_projection(k, name);
}

/* A vector: the gain of a norm, whose bias is included, or a bias. */
static double vector_flops(const ses_param *p)
{
    bool norm = has(p->name, "norm") || has(p->name, "Norm"), bias = has(p->name, ".bias");
    return norm ? bias ? 0 : NORM * elements(p->tensor) : elements(p->tensor);
}

/* A matrix that only the tokens of one expert read. */
static bool is_expert(const char *name)
{
    const char *after = strstr(name, ".ffn.up.");
    if (!after) after = strstr(name, ".ffn.down.");
    return after && strspn(strchr(after + 5, '.') + 1, "0123456789");
}

static void add_param(const counter *k, const ses_param *p)
{
    const ses_stack *s = &k->m->stack[stack_of(k->m, p->name)];
    const ses_tensor *t = p->tensor;
    ses_flops_unit unit = unit_of(k->m, p->name);
    bool embed = has(p->name, "embed.") || has(p->name, "chars.");
    ses_flop_kind kind = embed ? SES_FLOP_EMBED : SES_FLOP_WEIGHT;
    if (!t || is_skipped(s, p) || is_distance_table(s, t)) return;
    if (t == s->position) {
        put(k, unit == SES_UNIT_TARGET ? SES_UNIT_TARGET_PAIR : SES_UNIT_PAIR, SES_FLOP_LOOKUP,
            2 * (double)ses_cols(t));
        put(k, unit, SES_FLOP_EMBED, (double)ses_cols(t)); /* added to the token's vector */
        return;
    }
    double uses = uses_of(s, p->name);
    if (is_expert(p->name)) uses *= (double)s->c->ffn.expert_top / (double)s->c->ffn.experts;
    if (p->embedding) {
        put(k, unit, SES_FLOP_LOOKUP, 2 * elements(t) * uses);
        if (t == s->segment) put(k, unit, SES_FLOP_EMBED, (double)ses_cols(t));
        return;
    }
    bool matrix = ses_rows(t) > 1 && ses_cols(t) > 1;
    double flops = uses * (matrix ? 2 * elements(t) : vector_flops(p));
    if (!matrix && !embed) kind = SES_FLOP_OTHER;
    put(k, unit, kind, flops);
    if (has(p->name, "weight_hh")) put(k, unit, SES_FLOP_OTHER, GATE * (double)ses_rows(t));
    if (in_query_stream(s, p->name)) put(k, SES_UNIT_PREDICTED, kind, flops);
}

/* Products of a (query, key) pair, for each column of the heads: scores, weighted values, scores by distance.
 */
static double pair_products(const ses_config *c)
{
    double n = 4;
    if (c->position.kind == SES_POS_RELATIVE_KEY) n += 2;
    if (c->position.kind == SES_POS_RELATIVE_KEY_QUERY) n += 4;
    if (c->disentangled.enabled) n += 2 * c->disentangled.c2p + 2 * c->disentangled.p2c;
    if (c->xl.permutation_lm) n += 4; /* distances to the left and to the right */
    if (c->xl.segment_recurrence && !c->xl.permutation_lm) n += 2;
    return n;
}

/* Elementwise operations on the score of a pair in one head. */
static double score_flops(const ses_config *c)
{
    bool biased = c->rel_bias.buckets || c->position.kind == SES_POS_ALIBI;
    return SOFTMAX + 1 /* scale */ + (c->dropout.attention > 0 ? DROPOUT : 0) + biased;
}

static double head_size(const ses_stack *k)
{
    const ses_config *c = k->c;
    if (c->bottleneck.width) return (double)c->bottleneck.width / (double)k->heads;
    return c->attention.head_size ? (double)c->attention.head_size : (double)c->hidden / (double)k->heads;
}

/* Projections of the table of distances by the layer's own weights (DeBERTa-v2). */
static void add_shared_projections(const counter *k, const ses_config *c, const ses_layer *l)
{
    if (!c->disentangled.enabled || !c->disentangled.share_att_key) return;
    if (c->disentangled.c2p) put(k, SES_UNIT_DISTANCE, SES_FLOP_WEIGHT, 2 * elements(l->self.key.w));
    if (c->disentangled.p2c) put(k, SES_UNIT_DISTANCE, SES_FLOP_WEIGHT, 2 * elements(l->self.query.w));
}

static void add_layer(const counter *k, const ses_stack *s, int which, int64_t i)
{
    const ses_config *c = s->c;
    const ses_layer *l = &s->layer[i % s->n_unique];
    double heads = (double)ses_stack_heads(s, i), size = head_size(s), hidden = (double)c->hidden,
           ffn = (double)ses_stack_ffn(s, i) * (double)(c->bottleneck.ffns > 1 ? c->bottleneck.ffns : 1),
           dropout = c->dropout.hidden > 0 ? DROPOUT : 0;
    ses_flops_unit token = which ? SES_UNIT_TARGET : SES_UNIT_TOKEN, pair = which       ? SES_UNIT_TARGET_PAIR
                                                                            : l->window ? SES_UNIT_WINDOW_PAIR
                                                                                        : SES_UNIT_PAIR;
    if (l->window) k->r->window = l->window;
    add_shared_projections(k, c, l);
    double other = 2 * hidden * (1 + dropout) + (ACTIVATION + (c->ffn.gated || c->ffn.fused_gate)) * ffn;
    put(k, pair, SES_FLOP_ATTENTION, pair_products(c) * heads * size);
    put(k, pair, SES_FLOP_OTHER, score_flops(c) * heads);
    put(k, token, SES_FLOP_OTHER, other);
    if (c->xl.permutation_lm) {
        put(k, SES_UNIT_PREDICTED, SES_FLOP_OTHER, other);
        put(k, SES_UNIT_PREDICTED_PAIR, SES_FLOP_ATTENTION, pair_products(c) * heads * size);
        put(k, SES_UNIT_PREDICTED_PAIR, SES_FLOP_OTHER, score_flops(c) * heads);
    }
    if (!s->cross) return;
    heads = (double)ses_stack_cross_heads(s, i);
    put(k, SES_UNIT_CROSS_PAIR, SES_FLOP_ATTENTION, 4 * heads * size);
    put(k, SES_UNIT_CROSS_PAIR, SES_FLOP_OTHER, score_flops(c) * heads);
    put(k, token, SES_FLOP_OTHER, hidden * (1 + dropout));
}

static void add_stack(const counter *k, int which)
{
    const ses_stack *s = &k->m->stack[which];
    const ses_config *c = s->c;
    ses_flops_unit token = which ? SES_UNIT_TARGET : SES_UNIT_TOKEN;
    if (c->disentangled.enabled)
        k->r->distances = 2 * (c->disentangled.buckets > 0 ? c->disentangled.buckets
                                                           : c->disentangled.max_relative_positions);
    double rate = c->dropout.embed < 0 ? c->dropout.hidden : c->dropout.embed,
           width = s->embed_norm.gain ? elements(s->embed_norm.gain) : (double)c->hidden;
    if (rate > 0) put(k, token, SES_FLOP_EMBED, DROPOUT * width);
    if (which && s->token && s->token == k->m->stack[0].token) /* declared by the encoder */
        put(k, token, SES_FLOP_LOOKUP, 2 * elements(s->token));
    for (int64_t i = 0; s->layer && i < s->depth; i++) add_layer(k, s, which, i);
    if (which && !s->layer && c->rnn.attention != SES_RNN_ATTENTION_NONE) {
        put(k, SES_UNIT_CROSS_PAIR, SES_FLOP_ATTENTION, 4 * (double)c->hidden);
        put(k, SES_UNIT_CROSS_PAIR, SES_FLOP_OTHER, SOFTMAX);
    }
}

/* ---- heads ---- */

static double dense_flops(const ses_dense *d)
{
    return 2 * (elements(d->w) + elements(d->first) + elements(d->lora_a) + elements(d->lora_b)) +
           elements(d->b);
}

static double outputs_of(const ses_dense *d)
{
    if (!d->w) return 0;
    return d->b ? elements(d->b) : (double)(d->layout == SES_IN_OUT ? ses_cols(d->w) : ses_rows(d->w));
}

/* A dense layer and its activation. */
static double active_flops(const ses_dense *d) { return dense_flops(d) + ACTIVATION * outputs_of(d); }

static double recurrent_flops(const ses_rnn_params *r)
{
    double gates = r->w ? (double)ses_rows(r->w) : 0;
    return dense_flops(&r->in) + 2 * (elements(r->w) + elements(r->proj)) + elements(r->b) + GATE * gates;
}

/* Layers before the scores. */
static double transform_flops(const ses_head_params *h)
{
    double sum = active_flops(&h->dense) + active_flops(&h->dense2) + dense_flops(&h->label_scores) +
                 NORM * (elements(h->norm.gain) + elements(h->norm2.gain)) +
                 2 * elements(h->boundary_position);
    for (size_t i = 0; i < SES_LEN(h->custom); i++) sum += active_flops(&h->custom[i]);
    return sum;
}

static double adaptive_flops(const ses_adaptive_softmax *a)
{
    double sum = dense_flops(&a->cluster);
    for (size_t i = 0; i < SES_LEN(a->table); i++)
        sum += 2 * (elements(a->table[i]) + elements(a->project[i])) + elements(a->bias[i]);
    return sum;
}

static void add_head(const counter *k, size_t i)
{
    const ses_head *head = k->m->class->head[i].head;
    const ses_head_params *h = &k->m->head[i];
    const ses_config *c = &k->m->c;
    bool labeled = head->scores == SES_SCORES_LABELED || head->scores == SES_SCORES_LABELED_TWICE;
    double before = transform_flops(h), out = dense_flops(&h->out) + 2 * elements(h->extra_proj);
    if (h->adaptive.table[0]) out = adaptive_flops(&h->adaptive);
    if (labeled) out += (SOFTMAX + TARGET_WORD) * (double)c->vocab;
    put(k, SES_UNIT_HEAD + i, SES_FLOP_HEAD, before + out);
    if (labeled && c->lm.sampled > 0 && c->lm.sampled < c->vocab)
        k->r->sampled_head[i] = before + out * ((double)c->lm.sampled + 1) / (double)c->vocab;
    ses_flops_unit token = is_encoder_decoder(k->m) ? SES_UNIT_TARGET : SES_UNIT_TOKEN;
    for (size_t l = 0; l < SES_LEN(h->rnn); l++)
        for (size_t d = 0; d < SES_LEN(h->rnn[l]); d++)
            put(k, token, SES_FLOP_HEAD, recurrent_flops(&h->rnn[l][d]));
}

void ses_model_flops_init(ses_model *m)
{
    m->flops = (ses_flops_rates){ 0 };
    counter k = { m, &m->flops };
    for (size_t i = 0; i < m->first_head_param; i++) add_param(&k, ses_store_at(m->store, i));
    add_stack(&k, 0);
    if (is_encoder_decoder(m)) add_stack(&k, 1);
    if (m->pooler.w) put(&k, SES_UNIT_SEQUENCE, SES_FLOP_HEAD, active_flops(&m->pooler));
    for (int64_t i = 0; i < m->exits.n; i++)
        put(&k, SES_UNIT_EXIT, SES_FLOP_HEAD,
            active_flops(&m->exits.head[i].dense) + dense_flops(&m->exits.head[i].out));
    for (size_t i = 0; i < SES_LEN(m->class->head) && m->class->head[i].head; i++) add_head(&k, i);
}

/* ---- numbers of a batch ---- */

static double windowed(const ses_model *m, double length)
{
    double keys = (double)m->flops.window + 1;
    return length * (keys < length ? keys : length);
}

/* Distances between the tokens of texts of at most this length. */
static double distances(const ses_model *m, double length)
{
    double n = 2 * length - 1, most = (double)m->flops.distances;
    return n < most ? n : most;
}

/* Rows that a head scores; labels: number of its labeled tokens. */
static double head_rows(const ses_head_use *use, double seqs, double tokens, double labels)
{
    switch (use->head->scores) {
    case SES_SCORES_LABELED: return labels;
    case SES_SCORES_LABELED_TWICE: return 2 * labels;
    case SES_SCORES_TOKENS: return tokens;
    case SES_SCORES_TOKENS_TWICE: return 2 * tokens;
    case SES_SCORES_BY_AXIS: break;
    }
    bool per_sequence =
        use->head->axis == SES_LABEL_PER_SEQUENCE || use->head->axis == SES_LABEL_PER_QUESTION;
    return per_sequence ? seqs : tokens;
}

ses_flops_units ses_model_flops_units(const ses_model *m, double seqs, double length, double target,
                                      double labeled)
{
    bool decoder = is_encoder_decoder(m), permuted = m->c.xl.permutation_lm;
    double read = decoder ? target : length;
    ses_flops_units u = { .n = { [SES_UNIT_TOKEN] = seqs * length,
                                 [SES_UNIT_PAIR] = seqs * length * length,
                                 [SES_UNIT_WINDOW_PAIR] = seqs * windowed(m, length),
                                 [SES_UNIT_TARGET] = decoder ? seqs * target : 0,
                                 [SES_UNIT_TARGET_PAIR] = decoder ? seqs * target * target : 0,
                                 [SES_UNIT_CROSS_PAIR] = decoder ? seqs * target * length : 0,
                                 [SES_UNIT_PREDICTED] = permuted ? seqs * target : 0,
                                 [SES_UNIT_PREDICTED_PAIR] = permuted ? seqs * target * length : 0,
                                 [SES_UNIT_DISTANCE] = distances(m, length),
                                 [SES_UNIT_SEQUENCE] = seqs } };
    for (size_t i = 0; i < SES_LEN(m->class->head) && m->class->head[i].head; i++)
        u.n[SES_UNIT_HEAD + i] = head_rows(&m->class->head[i], seqs, seqs * read, seqs * labeled);
    return u;
}

/* Sums over the sequences of a pass. */
static void add_pairs(const ses_model *m, const ses_forward_ctx *p, ses_flops_units *u)
{
    const int32_t *cu = p->in.host_cu_seqlens, *target = p->target.host_cu_seqlens;
    bool permuted = p->batch->predict_positions != NULL;
    for (int64_t s = 0; cu && s < p->in.seqs; s++) {
        double n = cu[s + 1] - cu[s], t = target && s < p->target.seqs ? target[s + 1] - target[s] : 0;
        u->n[SES_UNIT_PAIR] += n * n;
        if (m->flops.window) u->n[SES_UNIT_WINDOW_PAIR] += windowed(m, n);
        if (permuted) u->n[SES_UNIT_PREDICTED_PAIR] += n * t;
        if (!permuted) u->n[SES_UNIT_TARGET_PAIR] += t * t, u->n[SES_UNIT_CROSS_PAIR] += n * t;
    }
    u->n[SES_UNIT_PAIR] += (double)(p->in_shift * p->in.tokens); /* keys of virtual tokens */
    u->n[SES_UNIT_TARGET_PAIR] += (double)(p->target_shift * p->target.tokens);
}

/* Rows of language model scores: labeled tokens, or the rows of the request. */
static double scored_rows(const ses_head_use *use, const ses_forward_ctx *p, double tokens)
{
    if (ses_head_labels(use, p->batch)) return (double)ses_head_predictions(use, p->batch);
    if (!p->request->logits) return 0;
    return p->request->rows ? (double)p->request->n_rows : tokens;
}

ses_flops_units ses_model_flops_pass(const ses_model *m, const ses_forward_ctx *p)
{
    ses_flops_units u = { { 0 } };
    bool permuted = p->batch->predict_positions != NULL;
    double target = (double)p->target.tokens, seqs = (double)p->in.seqs,
           tokens = is_encoder_decoder(m) || permuted ? target : (double)p->in.tokens;
    u.n[SES_UNIT_TOKEN] = (double)p->in.tokens;
    u.n[permuted ? SES_UNIT_PREDICTED : SES_UNIT_TARGET] = target;
    u.n[SES_UNIT_DISTANCE] = distances(m, (double)p->in.max_seqlen);
    add_pairs(m, p, &u);
    if (m->c.pooler.present) u.n[SES_UNIT_SEQUENCE] = seqs;
    if (m->exits.loss != SES_EXITS_KEEP) u.n[SES_UNIT_EXIT] = seqs;
    if (p->batch->word_char_cu) u.n[SES_UNIT_CHAR] = p->batch->word_char_cu[p->batch->tokens];
    for (size_t i = 0; i < SES_LEN(m->class->head) && m->class->head[i].head; i++)
        u.n[SES_UNIT_HEAD + i] =
            head_rows(&m->class->head[i], seqs, tokens, scored_rows(&m->class->head[i], p, tokens));
    return u;
}

/* ---- counts ---- */

ses_flops ses_model_flops(const ses_model *m, const ses_flops_units *u, bool train)
{
    ses_flops f = { { 0 } };
    for (int i = 0; i < SES_UNITS; i++) {
        double sampled = i >= SES_UNIT_HEAD ? m->flops.sampled_head[i - SES_UNIT_HEAD] : 0;
        for (int k = 0; k < SES_FLOP_KINDS; k++) {
            bool use_sampled = train && sampled > 0 && k == SES_FLOP_HEAD;
            f.kind[k] += u->n[i] * (use_sampled ? sampled : m->flops.rate[i][k]);
        }
    }
    return f;
}

double ses_flops_sum(const ses_flops *f)
{
    double sum = 0;
    for (int k = 0; k < SES_FLOP_KINDS; k++) sum += f->kind[k];
    return sum;
}

double ses_train_passes(bool recompute) { return recompute ? 3 : 2; }
