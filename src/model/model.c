/* A model: opening, stacks, pooler and heads, the forward pass, and queries about the model. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "hub/hub_cache.h"
#include "model_desc.h"
#include "nn/cache_impl.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const ses_head_use *head_uses(const ses_model *m, size_t *n)
{
    for (*n = 0; *n < SES_LEN(m->class->head) && m->class->head[*n].head;) ++*n;
    return m->class->head;
}

/* Encoder-decoder class (and not one of its halves)? */
static bool has_decoder(const ses_model *m)
{
    return m->desc->encoder_decoder && !m->class->encoder_only && !m->class->decoder_only;
}

static bool declare_stacks(ses_model *m, ses_err *e)
{
    const ses_config *c = &m->c, *in = has_decoder(m) ? &m->source : c;
    ses_stack *k = m->stack;
    bool nested = m->part[1].desc != NULL;
    if (m->class->decoder_only) {
        k[0] = (ses_stack){ .prefix = "decoder.", .outputs = "", .causal = true, .cross_unused = true };
        k[0].depth = c->decoder.layers, k[0].heads = c->decoder.heads, k[0].ffn = c->decoder.ffn_width;
        return ses_stack_add(&k[0], m->store, c, e);
    }
    k[0] = (ses_stack){ .prefix = "",
                        .outputs = has_decoder(m) ? "encoder_" : "",
                        .causal = in->attention.causal,
                        .cross_unused = in->attention.cross };
    k[0].vtable = nested ? m->part[0].desc->vtable : m->desc->vtable;
    k[0].depth = in->layers, k[0].heads = in->attention.heads, k[0].ffn = in->ffn.width;
    if (!ses_stack_add(&k[0], m->store, in, e)) return false;
    if (!has_decoder(m)) return true;
    if (in->hidden != c->hidden)
        m->bridge = ses_dense_add(m->store, c->hidden, in->hidden, SES_BIAS, "bridge");
    k[1] = (ses_stack){ .prefix = "decoder.", .outputs = "decoder_", .causal = true, .cross = true };
    k[1].vtable = nested ? NULL : m->desc->decoder_vtable;
    k[1].depth = nested ? c->layers : c->decoder.layers;
    k[1].heads = nested ? c->attention.heads : c->decoder.heads;
    k[1].ffn = nested ? c->ffn.width : c->decoder.ffn_width;
    k[1].token = c->decoder.separate_embeddings ? NULL : k[0].token;
    return ses_stack_add(&k[1], m->store, c, e);
}

ses_reading ses_model_reading(const ses_model *m)
{
    const ses_stack *k = &m->stack[0];
    if (k->causal || k->c->rnn.one_way) return SES_READS_LEFT_TO_RIGHT;
    return k->c->rnn.size ? SES_READS_BOTH_WAYS : SES_READS_ALL;
}

bool ses_model_check_first_token(const ses_model *m, const char *what, ses_err *e)
{
    return ses_model_reading(m) != SES_READS_LEFT_TO_RIGHT ||
           ses_fail(e, SES_EUSAGE,
                    "%s: %s reads from left to right, so its first token sees no other and texts that begin "
                    "alike get the same vector; use the last token or the mean",
                    what, ses_model_class_name(m));
}

/* Reads the configs of both stacks and the class. */
static bool read_config(ses_model *m, const ses_json *config, const ses_model_options *o, ses_err *e)
{
    m->config = config;
    m->desc = ses_config_find_model(config, e);
    if (!m->desc) return false;
    m->class = o->no_head ? ses_config_headless_class(m->desc, e)
                          : ses_config_class(m->desc, config, o->class_name, e);
    if (!m->class) return false;
    if (m->desc->read_parts) {
        if (!ses_config_check_keys(m->desc, config, config, e)) return false;
        if (!m->desc->read_parts(m, config, e)) return false;
        if (m->parts_tied && o->train)
            return ses_fail(e, SES_EUNSUPPORTED,
                            "\"tie_encoder_decoder\" is true: weights shared by encoder and decoder cannot "
                            "be trained");
        if (!has_decoder(m)) m->c = m->source;
        return true;
    }
    if (!ses_config_read(m->desc, config, &m->c, e)) return false;
    m->source = m->c;
    if (m->c.decoder.vocab && !m->class->encoder_only) m->c.vocab = m->c.decoder.vocab;
    return true;
}

bool ses_model_declare(ses_model *m, const ses_json *config, const ses_model_options *o, ses_err *e)
{
    if (!read_config(m, config, o, e)) return false;
    m->c.pooler.present = m->class->pooler && !o->no_head && !m->c.custom_head.kind;
    m->c.decoder.input_from_source = m->class->decoder_input_from_source;
    if (m->class->summary) m->c.summary.kind = m->class->summary;
    m->c.summary.kind = ses_custom_head_summary(&m->c);
    if (m->class->uses_sequence_summary_act) m->c.summary.act = m->c.summary.sequence_summary_act;
    if (m->class->includes_token) m->c.input.excludes_token = false;
    if (m->class->no_output_drop) m->c.rnn.output_drop = 0;
    if (m->class->decoder_only) m->c.lm.final_logits_bias = false;
    m->store = ses_store_new(m->dev, e);
    if (m->store && m->adapter) ses_adapter_begin(m->adapter, m);
    if (!m->store || !ses_low_rank_begin(m, e) || !declare_stacks(m, e)) return false;
    if (m->adapter && !ses_adapter_stacks(m->adapter, m, e)) return false;
    m->first_head_param = ses_store_count(m->store);
    if (m->c.pooler.present && !m->c.pooler.no_dense)
        m->pooler = ses_dense_add(m->store, m->c.hidden, m->c.hidden, SES_BIAS, "pooler");
    size_t n;
    const ses_head_use *use = head_uses(m, &n);
    ses_tensor *projection = m->stack[1].token ? m->stack[1].token : m->stack[0].token;
    bool adapter_head = m->adapter && n && !use[0].head->pretrained; /* the head belongs to the adapter */
    if (adapter_head && !ses_adapter_end(m->adapter, m, e)) return false;
    if (n) m->choice = m->c.custom_head.choice;
    if (m->c.custom_head.scalar_mix && n)
        m->scalar_mix = ses_scalar_mix_add(m->store, "own.mix.", m->stack[has_decoder(m)].depth + 1);
    else if (m->choice.n && m->choice.combine == SES_COMBINE_MIX)
        m->scalar_mix = ses_scalar_mix_add(m->store, "own.mix.", m->choice.n);
    if (!ses_layer_choice_check(&m->c, m->stack[has_decoder(m)].depth, e)) return false;
    for (size_t i = 0; i < n; i++) use[i].head->add(&m->head[i], m->store, &m->c, projection);
    if (!ses_model_add_exits(m, e)) return false;
    if (m->adapter && !adapter_head && !ses_adapter_end(m->adapter, m, e)) return false;
    if (!ses_low_rank_end(m, e)) return false;
    ses_store_keep_16bit(m->store, m->first_head_param);
    if (m->adapter && !ses_adapter_check_disjoint(m->adapter, m, e)) return false;
    if (!ses_store_ok(m->store, e)) return false;
    ses_model_flops_init(m);
    return true;
}

/* The generation head: of a decoder (a decoder-only class may use the masked LM head, which is causal there),
 * or the masked LM head of a permutation LM. Models that override the stack lack a KV cache and need mems or
 * a state. */
const ses_head_use *ses_class_lm_head(const ses_model_desc *d, const ses_class *c)
{
    bool has_mems = d->defaults.xl.permutation_lm || d->defaults.xl.segment_recurrence;
    if (d->vtable && !has_mems && !d->carries_state) return NULL;
    for (size_t i = 0; i < SES_LEN(c->head); i++) {
        const ses_head *h = c->head[i].head;
        if (h == &ses_head_causal_lm || h == &ses_head_seq2seq_lm ||
            (h == &ses_head_masked_lm && (d->defaults.xl.permutation_lm || c->decoder_only)))
            return &c->head[i];
    }
    return NULL;
}

/* Initializes parameter i with scale init.range. T5 (init.by_fan_in): range / sqrt(inputs);
 * queries also / sqrt(head size), because T5 does not scale its attention scores. */
void ses_model_init_param(ses_model *m, size_t i, uint64_t seed)
{
    const ses_config *c = &m->c;
    const ses_param *p = ses_store_at(m->store, i);
    double inputs = strstr(p->name, "buckets") ? (double)c->hidden : (double)ses_cols(p->tensor);
    bool plain = !c->init.by_fan_in || strstr(p->name, "embed.token") || strstr(p->name, "lm.out");
    if (strstr(p->name, ".query"))
        inputs *= (double)(c->attention.head_size ? c->attention.head_size : c->hidden / c->attention.heads);
    if (c->init.uniform > 0 && p->init != SES_INIT_ONE)
        ses_store_init_uniform(m->store, i, c->init.uniform, seed);
    else
        ses_store_init_one(m->store, i, plain ? c->init.range : c->init.range / sqrt(inputs), seed);
}

bool ses_model_loaded(ses_model *m, bool random, ses_err *e)
{
    for (size_t k = 0; k < SES_LEN(m->stack); k++)
        if (!ses_stack_loaded(&m->stack[k], m->store, random, e)) return false;
    return true;
}

/* Allocates every parameter and initializes it. */
static bool init_random(ses_model *m, const ses_model_options *o, ses_err *e)
{
    if (!ses_model_check_names(m, e)) return false;
    m->unexpected_keys = ses_strdup("", e);
    if (!m->unexpected_keys || o->check_only) return m->unexpected_keys != NULL;
    if (o->train) {
        if (!ses_store_alloc_trainable(m->store, e)) return false;
    } else {
        for (size_t i = 0; i < ses_store_count(m->store); i++)
            if (!ses_store_alloc_one(m->store, i, e)) return false;
    }
    for (size_t i = 0; i < ses_store_count(m->store); i++) ses_model_init_param(m, i, o->seed);
    for (size_t i = 0; i < ses_store_count(m->store); i++)
        if (ses_store_at(m->store, i)->role == SES_PARAM_BUFFER && !ses_model_compute_buffer(m, i, e))
            return false;
    if (!ses_model_loaded(m, true, e)) return false;
    ses_store_sync_bf16(m->store);
    return o->train || o->no_packing || ses_store_finalize(m->store, e);
}

ses_model *ses_model_new(const ses_json *config, ses_device *dev, const ses_model_options *options,
                         ses_err *e)
{
    ses_model_options o = options ? *options : (ses_model_options){ 0 };
    ses_model *m = ses_alloc(sizeof *m, e);
    if (!m) return NULL;
    m->dev = dev;
    if (o.adapter_options) ses_fail(e, SES_EARG, "an adapter needs pretrained weights");
    if (!o.adapter_options && ses_model_declare(m, config, &o, e) && init_random(m, &o, e)) return m;
    ses_model_free(m);
    return NULL;
}

/* Further adapters, after the folder's own. */
static bool add_adapters(ses_model *m, const ses_model_options *o, ses_err *e)
{
    if (o->n_adapters && o->adapter_options)
        return ses_fail(e, SES_EARG, "%s: one adapter can be trained, not %zu", m->dir, o->n_adapters + 1);
    for (size_t i = 0; i < o->n_adapters; i++) {
        char *dir = ses_model_resolve(o->adapters[i], NULL, e);
        bool ok =
            dir && ses_adapter_add(&m->adapter, dir, m->adapter ? ses_adapter_base(m->adapter) : m->dir, e);
        ses_free(dir);
        if (!ok) return false;
    }
    return true;
}

/* The folder's own adapter, merged or trained further, or a new one for its model. */
static bool open_adapter(ses_model *m, const char *dir, const ses_model_options *o, ses_err *e)
{
    bool has_adapter = ses_model_is_adapter(dir);
    if (!has_adapter && !o->adapter_options) return add_adapters(m, o, e);
    if (o->adapter_options && (!o->train || o->random_init))
        return ses_fail(e, SES_EARG,
                        "%s: an adapter is trained for pretrained weights: set train, and not random_init",
                        dir);
    if (o->adapter_options && has_adapter)
        m->adapter = ses_adapter_continue(dir, o->base, o->adapter_options->dropout, e);
    else
        m->adapter = o->adapter_options ? ses_adapter_new(o->adapter_options, dir, e)
                                        : ses_adapter_open(dir, o->base, e);
    if (!m->adapter) return false;
    if (!add_adapters(m, o, e)) return false;
    const char *unmerged = o->train && !o->adapter_options ? ses_adapter_unmerged(m->adapter) : NULL;
    if (unmerged)
        return ses_fail(
            e, SES_EUNSUPPORTED,
            "%s: %s cannot be merged into the weights: train the adapter further, or its base model", dir,
            unmerged);
    return true;
}

/* The weights of both models must come from the same folder. */
static bool check_shared(const ses_model *m, const ses_model_options *o, ses_err *e)
{
    const ses_model *with = o->shared;
    if (!with) return true;
    const char *dir = m->adapter ? ses_adapter_base(m->adapter) : m->dir;
    bool fits =
        with->dir && ses_path_same(dir, with->dir) && with->dev == m->dev && !with->adapter && !o->train;
    return fits || ses_fail(e, SES_EARG,
                            "%s cannot share weights with %s: expected a model of %s without adapter, on "
                            "the same device, and no training",
                            m->dir, with->dir ? with->dir : "a model without folder", dir);
}

static bool open_folder(ses_model *m, const ses_model_options *o, ses_err *e)
{
    const char *dir = m->dir;
    if (!dir || !open_adapter(m, dir, o, e) || !check_shared(m, o, e)) return false;
    if (!o->config && !m->doc) /* errors name the file */
        m->doc = ses_model_config_open_as(dir, o->base, o->class_name, e);
    if (!o->config && !m->doc) return false;
    if (!ses_model_declare(m, o->config ? o->config : ses_json_root(m->doc), o, e))
        return ses_wrap(e, "%s/config.json", dir);
    if (o->random_init) return init_random(m, o, e);
    return ses_model_load(m, m->adapter ? ses_adapter_base(m->adapter) : dir, o, e);
}

ses_model *ses_model_open_config(const char *name, ses_json_doc *config, ses_device *dev,
                                 const ses_model_options *options, ses_err *e)
{
    ses_model_options o = options ? *options : (ses_model_options){ 0 };
    ses_model *m = ses_alloc(sizeof *m, e);
    if (!m) {
        ses_json_free(config);
        return NULL;
    }
    m->dev = dev;
    m->doc = config;
    m->dir = ses_model_resolve(name, NULL, e);
    if (open_folder(m, &o, e)) return m;
    ses_hub_explain(m->dir, e);
    ses_model_free(m);
    return NULL;
}

ses_model *ses_model_open(const char *name, ses_device *dev, const ses_model_options *options, ses_err *e)
{
    return ses_model_open_config(name, NULL, dev, options, e);
}

ses_model *ses_model_hidden_view(const ses_model *m, bool encoder_only, ses_err *e)
{
    bool whole = has_decoder(m) && !encoder_only;
    const ses_class *class = whole ? &m->desc->class[0] : ses_config_headless_class(m->desc, e);
    ses_model *v = class ? ses_alloc(sizeof *v, e) : NULL;
    if (!v) return NULL;
    *v = *m;
    v->class = class;
    v->is_view = true;
    v->c.pooler.present = false;
    v->scalar_mix = (ses_scalar_mix){ 0 };
    v->choice.n = 0;
    v->exits.n = 0;
    if (has_decoder(m) && !whole) {
        v->c = *m->stack[0].c;
        v->stack[0].outputs = "";
        v->stack[1] = (ses_stack){ 0 };
    }
    return v;
}

void ses_model_free(ses_model *m)
{
    if (!m) return;
    if (m->is_view) {
        ses_free(m);
        return;
    }
    for (size_t i = 0; i < SES_LEN(m->stack); i++) ses_stack_free(&m->stack[i]);
    ses_exits_free(&m->exits);
    ses_store_free(m->store);
    ses_safetensors_free(m->file);
    ses_adapter_free(m->adapter);
    ses_json_free(m->doc);
    ses_free(m->unexpected_keys);
    ses_free(m->missing_keys);
    ses_free(m->dir);
    ses_free(m);
}

/* May texts leave this pass? */
static bool exits_are_used(const ses_model *m, const ses_output_request *r) { return r->exit && m->exits.n; }

/* Do the exits contribute to the loss of this pass? */
static bool trains_exits(const ses_model *m, const ses_forward_ctx *p)
{
    bool records = ses_tape_recording(p->tape) || m->exits.loss == SES_EXITS_FROZEN;
    return m->exits.n && m->exits.loss != SES_EXITS_KEEP && records && p->batch->labels;
}

/* Runs the stacks and the pooler: the input of the heads. */
static ses_state run_stacks(const ses_model *m, ses_forward_ctx *p)
{
    ses_state at = { .seqs = &p->in };
    int64_t depth = m->stack[has_decoder(m)].depth;
    size_t n;
    const ses_head_use *use = head_uses(m, &n);
    if (m->scalar_mix.weight || m->choice.n || trains_exits(m, p))
        p->layer = ses_tape_host_alloc(p->tape, (size_t)(m->stack[0].depth + m->stack[1].depth) + 1,
                                       sizeof *p->layer);
    if (exits_are_used(m, p->request))
        ses_exits_begin(p, &m->exits, p->request->exit, use, n); /* selects rows before the last layer */
    else
        ses_used_rows_select(p, has_decoder(m) ? &p->target : &p->in, use, n);
    if (p->batch->ids) /* otherwise a cache holds the encoder's keys and values */
        at.x = ses_stack_run(&m->stack[0], p, &p->in, NULL);
    else if (p->batch->encoder_states)
        at.x = ses_tape_input(p->tape, p->batch->encoder_states, SES_DIM(p->in.tokens, m->source.hidden));
    if (p->batch->predict_positions) at.seqs = &p->target;
    if (has_decoder(m)) {
        if (at.x) ses_forward_output(p, SES_PER_TOKEN, at.x, "encoder_last_hidden_state");
        if (at.x && m->bridge.w) at.x = ses_dense_run(p->tape, m->bridge, at.x, SES_ACT_NONE);
        p->memory = at.x;
        at = (ses_state){ .x = ses_stack_run(&m->stack[1], p, &p->target, at.x), .seqs = &p->target };
    }
    if (m->choice.n && p->layer)
        at.x = ses_layer_choice_run(&m->choice, &m->scalar_mix, p->tape, p->layer, depth);
    else if (m->scalar_mix.weight && p->layer)
        at.x = ses_scalar_mix_run(&m->scalar_mix, p->tape, p->layer, depth + 1);
    if (m->c.pooler.present && at.seqs->seqs) { /* 0: all texts have left */
        ses_tensor *first = ses_summary_first(p, &at);
        at.pooled = m->pooler.w ? ses_dense_run(p->tape, m->pooler, first, m->c.pooler.act) : first;
    }
    return at;
}

/* Runs the heads; the sum of their losses, NULL: none. */
static ses_tensor *run_heads(const ses_model *m, ses_forward_ctx *p, const ses_state *at, ses_outputs *out)
{
    ses_tape *t = p->tape;
    ses_tensor *loss = NULL;
    size_t n;
    const ses_head_use *use = head_uses(m, &n);
    for (size_t i = 0; i < n && (!p->leaving || p->in.seqs); i++) { /* or all texts have left */
        p->loss = NULL;
        use[i].head->run(&m->head[i], &use[i], p, at);
        ses_tape_wrap_error(t, "%s head", use[i].head->name);
        if (!i && p->penalty && p->loss) p->loss = ses_add(t, p->loss, p->penalty);
        const ses_output *y =
            i ? NULL : ses_outputs_find(&(ses_outputs){ .item = p->item, .n = p->n }, use[i].output);
        if (y && p->loss && trains_exits(m, p))
            p->loss = ses_exits_train(&m->exits, &m->stack[0], p, y->tensor, p->loss, p->batch->labels);
        out->head[i] = (ses_head_output){ use[i].head->name, use[i].output, p->loss };
        loss = loss && p->loss ? ses_add(t, loss, p->loss) : loss ? loss : p->loss;
    }
    return loss;
}

/* Counts the FLOPs of the pass, and of its backward pass if there will be one: not of a frozen model. */
static void count_flops(const ses_model *m, const ses_forward_ctx *p)
{
    bool train = ses_tape_recording(p->tape), backward = train && ses_store_trainable_count(m->store) > 0;
    ses_flops_units units = ses_model_flops_pass(m, p);
    ses_flops f = ses_model_flops(m, &units, train);
    ses_tape_add_flops(p->tape,
                       ses_flops_sum(&f) * (backward ? ses_train_passes(ses_tape_recomputing(p->tape)) : 1));
}

bool ses_model_forward(const ses_model *m, ses_tape *t, const ses_batch *b, const ses_output_request *request,
                       ses_outputs *out, ses_err *e)
{
    static const ses_output_request loss_only = { 0 };
    if (!request) request = &loss_only;
    if (!ses_model_check_batch(m, b, e)) return false;
    if (!ses_model_check_hooks(m, b, request, e)) return false;
    if (!ses_exits_check_request(m, t, b, request, e)) return false;
    if (b->cache && ses_tape_recording(t))
        return ses_fail(e, SES_EARG, "a recording tape cannot use a KV cache: it has no gradients");
    ses_virtual_batch v = { 0 };
    if (!ses_virtual_batch_make(m, t, &b, &request, &v, e)) return false;
    ses_forward_ctx p = { .tape = t, .c = &m->c, .input_c = m->stack[0].c, .batch = b, .request = request };
    const int32_t *labels = b->labels;
    ses_batch unlabeled = *b;
    unlabeled.labels = NULL, unlabeled.targets = NULL;
    if (exits_are_used(m, request)) p.batch = &unlabeled; /* the loss is computed when all texts have left */
    p.virtual_rows = v.virtual_rows;
    p.in_shift = m->stack[0].virt.keys ? m->stack[0].virt.tokens : 0;
    p.target_shift = m->stack[1].virt.keys ? m->stack[1].virt.tokens : 0;
    ses_forward_begin(&p, 14 * (size_t)m->stack[0].depth + 13 * (size_t)m->stack[1].depth + 16);
    ses_state at = run_stacks(m, &p);
    size_t n;
    head_uses(m, &n);
    ses_axis axis = at.seqs == &p.in ? SES_PER_TOKEN : SES_PER_TARGET;
    ses_tensor *last = n ? NULL : ses_state_requested(&p, &at, &axis);
    if (last) ses_forward_output(&p, axis, last, "last_hidden_state");
    if (!n && at.pooled) ses_forward_output(&p, SES_PER_SEQUENCE, at.pooled, "pooler_output");
    *out = (ses_outputs){ .heads = n };
    ses_tensor *loss = run_heads(m, &p, &at, out);
    if (p.leaving) ses_exits_finish(m, &p, out, labels), loss = out->head[0].loss;
    if (v.tokens) ses_virtual_batch_shrink(&v, t, p.item, p.n);
    out->loss = loss, out->item = p.item, out->n = p.n, out->mem_cu_seqlens = p.mem_cu_seqlens;
    bool ok = ses_tape_ok(t, e);
    if (ok) count_flops(m, &p);
    if (b->cache) ses_cache_end(&p, ok);
    return ok;
}

/* Why the model cannot have a KV cache; NULL: it can. */
static const char *no_cache_reason(const ses_model *m)
{
    const ses_stack *k = &m->stack[has_decoder(m)];
    if (m->desc->vtable && m->desc->vtable->run) return "it keeps other states of earlier tokens instead";
    if (!k->causal) return "it is an encoder, not a causal decoder";
    if (k->vtable) return "its attention is not implemented for cached keys and values";
    if (ses_config_scores_distances(&m->c)) return "its scores by distance need the keys of all tokens";
    if (m->c.decoder.input_from_source) return "its decoder reads the source text, it does not generate";
    return NULL;
}

/* length -1: a cache whose slots have rooms of different sizes. */
static ses_cache *new_cache(const ses_model *m, int64_t slots, int64_t length, ses_err *e)
{
    const ses_stack *k = &m->stack[has_decoder(m)];
    const char *reason = no_cache_reason(m);
    if (reason) {
        ses_fail(e, SES_EUNSUPPORTED, "%s (%s) does not support a KV cache: %s", m->class->name,
                 m->desc->name, reason);
        return NULL;
    }
    int64_t width = m->c.attention.head_size ? m->c.attention.head_size * k->heads : m->c.hidden;
    ses_cache *c = ses_cache_create(m->dev, k, width, slots, length, e);
    if (c) c->model = m;
    return c;
}

ses_cache *ses_cache_new(const ses_model *m, int64_t slots, int64_t length, ses_err *e)
{
    return new_cache(m, slots, length < 0 ? 0 : length, e);
}

ses_cache *ses_cache_new_shared(const ses_model *m, int64_t slots, ses_err *e)
{
    return new_cache(m, slots, -1, e);
}

const ses_output *ses_outputs_find(const ses_outputs *out, const char *name)
{
    for (size_t i = 0; name && i < out->n; i++)
        if (!strcmp(out->item[i].name, name)) return &out->item[i];
    return NULL;
}

ses_store *ses_model_store(const ses_model *m) { return m->store; }
const char *ses_model_type(const ses_model *m) { return m->desc->name; }
const char *ses_model_class_name(const ses_model *m) { return m->class->name; }

const char *ses_model_head_name(const ses_model *m)
{
    const ses_head *head = m->class->head[0].head;
    return head ? head->name : NULL;
}

const ses_json *ses_model_config(const ses_model *m) { return m->config; }
static int64_t max_tokens(const ses_config *c)
{
    return c->position.max + c->position.extra_rows - c->position.offset;
}

int64_t ses_model_max_tokens(const ses_model *m)
{
    return max_tokens(m->stack[0].c) - m->stack[0].virt.tokens;
}

int64_t ses_model_max_target_tokens(const ses_model *m)
{
    return max_tokens(&m->c) - m->stack[has_decoder(m)].virt.tokens;
}

int64_t ses_model_vocab_size(const ses_model *m) { return m->c.vocab; }
int64_t ses_model_source_vocab_size(const ses_model *m) { return m->stack[0].c->vocab; }
int64_t ses_model_state_size(const ses_model *m) { return m->c.rnn.state; }
int64_t ses_model_layer_count(const ses_model *m) { return m->stack[0].depth; }
int64_t ses_model_label_count(const ses_model *m) { return m->c.labels; }
ses_dtype ses_model_dtype(const ses_model *m) { return m->dtype; }
const char *ses_model_unexpected_keys(const ses_model *m) { return m->unexpected_keys; }
const char *ses_model_missing_keys(const ses_model *m) { return m->missing_keys ? m->missing_keys : ""; }

/* Does the class have exactly these heads, in any order? */
static bool has_heads(const ses_class *c, const char *const head[], size_t n)
{
    size_t has = 0, found = 0;
    while (has < SES_LEN(c->head) && c->head[has].head) has++;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < has; j++) found += !strcmp(c->head[j].head->name, head[i]);
    return has == n && found == n;
}

const char *ses_model_class_for_heads(const ses_json *config, const char *const head[], size_t n, ses_err *e)
{
    const ses_model_desc *d = ses_config_find_model(config, e);
    ses_buf names = { 0 };
    for (size_t i = 0; d && i < d->n_classes; i++)
        if (has_heads(&d->class[i], head, n)) return d->class[i].name;
    for (size_t i = 0; i < n; i++) ses_buf_appendf(&names, "%s%s", i ? " and " : "", head[i]);
    if (d && ses_buf_ok(&names, e))
        ses_fail(e, SES_EUNSUPPORTED, "model_type \"%s\" has no class with the head %s", d->name, names.data);
    ses_buf_free(&names);
    return NULL;
}

const char *ses_model_class_for_head(const ses_json *config, const char *head, ses_err *e)
{
    return ses_model_class_for_heads(config, &head, 1, e);
}

const char *ses_model_label_name(const ses_model *m, int64_t i)
{
    char id[24];
    snprintf(id, sizeof id, "%lld", (long long)i);
    return ses_json_string(ses_json_get(ses_json_get(m->config, "id2label"), id), NULL);
}

bool ses_model_tensor_name(const ses_model *m, size_t i, char *buf, size_t n)
{
    return ses_name_to_hf(m, ses_store_at(m->store, i)->name, buf, n);
}

int64_t ses_model_find_tensor(const ses_model *m, const char *hf_name)
{
    char name[256];
    bool tied =
        m->c.embed.tied && ses_name_to_hf(m, "lm.out.weight", name, sizeof name) && !strcmp(name, hf_name);
    for (size_t i = 0; i < ses_store_count(m->store); i++) {
        if (tied && ses_store_at(m->store, i)->tensor == ses_model_projection(m)) return (int64_t)i;
        if (ses_model_tensor_name(m, i, name, sizeof name) && !strcmp(name, hf_name)) return (int64_t)i;
    }
    return -1;
}

/* Index of the first NaN or infinity in x; -1: none. */
static int64_t first_bad(const ses_model *m, const ses_tensor *x)
{
    enum { CHUNK = 2048 };
    ses_real chunk[CHUNK];
    int64_t count = ses_count(x);
    for (int64_t at = 0; at < count; at += CHUNK) {
        int64_t n = count - at < CHUNK ? count - at : CHUNK;
        m->dev->mem->download(m->dev, chunk, ses_master_data(x) + at, (size_t)n * sizeof *chunk);
        for (int64_t i = 0; i < n; i++)
            if (!isfinite(chunk[i])) return at + i;
    }
    return -1;
}

bool ses_model_check_finite(const ses_model *m, ses_err *e)
{
    for (size_t i = 0; i < ses_store_count(m->store); i++) {
        char name[256];
        const ses_tensor *t = ses_store_at(m->store, i)->tensor;
        int64_t at = t->f ? first_bad(m, t) : -1; /* the values of quantized weights are gone */
        if (at < 0) continue;
        ses_model_tensor_name(m, i, name, sizeof name);
        return ses_fail(e, SES_EFORMAT, "tensor \"%s\": element %lld is NaN or infinite", name,
                        (long long)at);
    }
    return true;
}
