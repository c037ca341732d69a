/* Early exits of a model: the config key, which models can have them, the policies, a pass in which texts
 * leave. */
#include "base/json/json_helpers.h"
#include "base/str.h"
#include "model_desc.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- config.json ---- */

static bool read_layers(const ses_json *list, ses_config *c, ses_err *e)
{
    if (ses_json_type_of(list) != SES_JSON_ARRAY || !ses_json_len(list))
        return ses_fail(e, SES_EFORMAT, "\"layers\": expected a list of layers, 1 to %" PRId64,
                        c->layers - 1);
    int64_t before = 0;
    for (size_t i = 0; i < ses_json_len(list); i++) {
        int64_t layer;
        if (!ses_json_int(ses_json_at(list, i), &layer) || layer <= before || layer >= c->layers)
            return ses_fail(e, SES_EFORMAT,
                            "\"layers\": entry %zu is not a layer from %" PRId64 " to %" PRId64
                            " (ascending; the last layer has the model's own classifier)",
                            i, before + 1, c->layers - 1);
        c->exits.layers[layer / 64] |= (uint64_t)1 << layer % 64;
        c->exits.n++;
        before = layer;
    }
    return true;
}

/* "rule": as of ses_exit_policy_parse; absent or null: none. */
static bool read_rule(const ses_json *x, ses_config *c, ses_err *e)
{
    const char *rule = ses_json_string(x, NULL);
    if (ses_json_type_of(x) == SES_JSON_NULL) return true;
    if (!rule) return ses_json_wrong_type("rule", x, "a string", e);
    c->exits.has_rule = true;
    return ses_exit_policy_parse(rule, &c->exits.rule, e);
}

static bool fail_no_exits(const char *name, ses_err *e)
{
    return ses_fail(e, SES_EUNSUPPORTED,
                    "exit: the model (%s) has no classifiers after inner layers: train them with "
                    "'sesame finetune --exits joint' or '--exits frozen'",
                    name);
}

/* The object of the exits with another rule; NULL: without one. */
static void put_with_rule(const ses_json *exits, const char *rule, ses_json_writer *w)
{
    ses_json_begin_object(w);
    for (size_t i = 0; i < ses_json_len(exits); i++) {
        const char *key = ses_json_key(exits, i, NULL);
        if (!strcmp(key, "rule")) continue;
        ses_json_put_key(w, key);
        ses_json_put_value(w, ses_json_at(exits, i));
    }
    if (rule) ses_json_member_string(w, "rule", rule);
    ses_json_end_object(w);
}

static void put_config(const ses_json *config, const char *rule, ses_json_writer *w)
{
    ses_json_begin_object(w);
    for (size_t i = 0; i < ses_json_len(config); i++) {
        const char *key = ses_json_key(config, i, NULL);
        ses_json_put_key(w, key);
        if (strcmp(key, SES_EXITS_KEY) != 0)
            ses_json_put_value(w, ses_json_at(config, i));
        else
            put_with_rule(ses_json_at(config, i), rule, w);
    }
    ses_json_end_object(w);
}

bool ses_exits_read(const ses_json *config, ses_config *c, ses_err *e)
{
    static const char *const heads[] = { "pooled", "linear" };
    const ses_json *x = ses_json_get(config, SES_EXITS_KEY);
    size_t head;
    if (ses_json_type_of(x) == SES_JSON_NULL) return true;
    if (ses_json_type_of(x) != SES_JSON_OBJECT) return ses_json_wrong_type(SES_EXITS_KEY, x, "an object", e);
    if (!ses_config_name(x, "head", heads, SES_LEN(heads), &head, e) ||
        !read_layers(ses_json_get(x, "layers"), c, e))
        return ses_wrap(e, "\"" SES_EXITS_KEY "\"");
    c->exits.linear = head == 1;
    return read_rule(ses_json_get(x, "rule"), c, e) || ses_wrap(e, "\"" SES_EXITS_KEY "\"");
}

bool ses_exit_rule_store(const char *dir, const char *rule, ses_err *e)
{
    ses_exit_policy policy;
    if (!ses_exit_policy_parse(rule, &policy, e)) return false;
    ses_json_doc *doc = ses_model_config_open(dir, NULL, e);
    ses_json_writer *w = doc ? ses_json_writer_new(2, e) : NULL;
    const ses_json *config = doc ? ses_json_root(doc) : NULL, *x = ses_json_get(config, SES_EXITS_KEY);
    bool ok = w && (ses_json_type_of(x) == SES_JSON_OBJECT || fail_no_exits(dir, e));
    if (ok) {
        put_config(config, rule, w);
        ok = ses_json_writer_save(w, dir, "config.json", true, e);
    } else
        ses_json_writer_free(w);
    ses_json_free(doc);
    return ok;
}

ses_json_doc *ses_exit_rule_drop(const ses_json *config, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    put_config(config, NULL, w);
    return ses_json_writer_parse(w, e);
}

/* ---- models ---- */

const char *ses_exits_unsupported(const ses_model_desc *d, const ses_config *c)
{
    if (d->read_parts || d->encoder_decoder) return "its classifier reads a decoder";
    if (d->vtable && d->vtable->run) return "its layers do not run one by one";
    if (c->attention.causal) return "it is a decoder";
    if (c->summary.kind != SES_SUMMARY_FIRST && c->summary.kind != SES_SUMMARY_MEAN &&
        c->summary.kind != SES_SUMMARY_MAX)
        return "its classifier does not read the first token, a mean or a maximum";
    if (c->custom_head.scalar_mix || c->custom_head.choice.n) return "its head reads several layers";
    if (c->embed.project_before_positions) return "its hidden states are projected after the last layer";
    return c->layers < 2 ? "it has a single layer" : NULL;
}

bool ses_model_add_exits(ses_model *m, ses_err *e)
{
    const ses_head *head = m->class->head[0].head; /* NULL: a base model */
    const char *reason = ses_exits_unsupported(m->desc, &m->c);
    if (!head || !head->has_exits) m->c.exits.n = 0; /* the class has none */
    if (!m->c.exits.n) return true;
    if (m->adapter)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "\"" SES_EXITS_KEY "\": an adapter changes the layers that the exits were trained "
                        "on: use a base model without exits (finetune --exits none)");
    if (reason)
        return ses_fail(e, SES_EUNSUPPORTED, "\"" SES_EXITS_KEY "\": %s cannot have exits: %s", m->desc->name,
                        reason);
    return ses_exits_add(&m->exits, m->store, &m->c, e) &&
           (!m->c.exits.has_rule || ses_exit_policy_check(&m->c.exits.rule, m, e) ||
            ses_wrap(e, "\"" SES_EXITS_KEY "\""));
}

const ses_exit_policy *ses_model_exit_policy(const ses_model *m)
{
    return m->exits.n && m->c.exits.has_rule ? &m->c.exits.rule : NULL;
}

int64_t ses_model_exit_count(const ses_model *m) { return m->exits.n; }
int64_t ses_model_exit_layer(const ses_model *m, int64_t i) { return m->exits.head[i].layer; }

void ses_model_train_exits(ses_model *m, ses_exits_loss loss, bool from_last)
{
    m->exits.loss = loss;
    m->exits.from_last = from_last;
    if (loss != SES_EXITS_FROZEN) return;
    m->c.dropout.hidden = m->c.dropout.attention = m->c.dropout.act = m->c.dropout.final = 0;
    m->c.dropout.embed = m->c.dropout.head = m->c.dropout.ffn = m->c.dropout.summary_first = 0;
}

/* ---- policies ---- */

static bool fail_policy(const char *text, ses_err *e)
{
    return ses_fail(e, SES_EUSAGE,
                    "exit: \"%s\" is not a rule: expected entropy:T with T from 0 to 1, patience:N, layer:N "
                    "or never",
                    ses_quoted_of(text, strlen(text)).s);
}

bool ses_exit_policy_parse(const char *text, ses_exit_policy *out, ses_err *e)
{
    static const char *const names[] = { "never", "entropy:", "patience:", "layer:" };
    size_t rule = SES_LEN(names);
    char *end;
    *out = (ses_exit_policy){ 0 };
    if (!strcmp(text, names[0])) return true;
    while (--rule && strncmp(text, names[rule], strlen(names[rule]))) continue;
    const char *value = text + strlen(names[rule]);
    if (!rule || (!*value)) return fail_policy(text, e);
    out->rule = (ses_exit_rule)rule;
    if (rule == SES_EXIT_ENTROPY) {
        out->threshold = strtod(value, &end);
        if (*end) return fail_policy(text, e);
        return (out->threshold >= 0 && out->threshold <= 1) ||
               ses_fail(e, SES_EUSAGE,
                        "exit: entropy:%s: the entropy is divided by that of equal probabilities: expected "
                        "a threshold from 0 to 1",
                        ses_quoted_of(value, strlen(value)).s);
    }
    out->count = strtoll(value, &end, 10);
    if (*end) return fail_policy(text, e);
    return (out->count >= 1 && out->count <= SES_MAX_LAYERS) ||
           ses_fail(e, SES_EUSAGE, "exit: %s: expected a number from 1 to the number of layers",
                    ses_quoted_of(text, strlen(text)).s);
}

bool ses_exit_policy_check(const ses_exit_policy *p, const ses_model *m, ses_err *e)
{
    int64_t depth = m->stack[0].depth;
    if (p->rule == SES_EXIT_NEVER) return true;
    if (!m->exits.n) return fail_no_exits(m->class->name, e);
    if (p->rule != SES_EXIT_LAYER && (m->c.labels < 2 || m->c.head.problem == SES_PROBLEM_MULTI ||
                                      m->c.head.problem == SES_PROBLEM_REGRESSION))
        return ses_fail(e, SES_EUNSUPPORTED,
                        "exit: entropy and patience need a model with one of several labels");
    if (p->rule == SES_EXIT_PATIENCE && p->count > m->exits.n)
        return ses_fail(e, SES_EUSAGE,
                        "exit: patience:%" PRId64 ": the model has %" PRId64
                        " exits before its last layer: expected 1 to %" PRId64,
                        p->count, m->exits.n, m->exits.n);
    if (p->rule == SES_EXIT_LAYER && p->count > depth)
        return ses_fail(e, SES_EUSAGE, "exit: layer:%" PRId64 ": the model has %" PRId64 " layers", p->count,
                        depth);
    return true;
}

/* ---- a pass in which texts leave ---- */

bool ses_exits_check_request(const ses_model *m, const ses_tape *t, const ses_batch *b,
                             const ses_output_request *r, ses_err *e)
{
    if (!r->exit) return true;
    if (ses_tape_recording(t))
        return ses_fail(e, SES_EARG, "exit: a recording tape has gradients of all layers: no text leaves");
    if (r->hidden_states || r->attentions || r->attention_scores || r->qkv || r->head_outputs ||
        r->ffn_activations || r->embeddings || r->head_inputs || r->edits || r->rows)
        return ses_fail(
            e, SES_EARG,
            "exit: hidden states, attentions, captures, edits and rows need all layers of all texts");
    if (b->prefix_len || b->modal_rows || b->choices)
        return ses_fail(e, SES_EARG, "exit: prefixes, images and choices are not supported");
    return ses_exit_policy_check(r->exit, m, e);
}

void ses_exits_finish(const ses_model *m, ses_forward_ctx *p, ses_outputs *out, const int32_t *labels)
{
    const ses_leaving *s = p->leaving;
    ses_tape *t = p->tape;
    ses_output *o = NULL;
    const char *name = s->use[0].output;
    for (size_t i = 0; i < p->n; i++)
        if (!strcmp(p->item[i].name, name)) o = &p->item[i];
    ses_tensor *scores = ses_exits_scores(p, o ? o->tensor : NULL, m->stack[0].depth);
    if (o)
        o->tensor = scores;
    else
        ses_forward_output(p, SES_PER_SEQUENCE, scores, "%s", name);
    ses_real *layer = ses_tape_host_alloc(t, (size_t)s->texts, sizeof *layer);
    for (int64_t i = 0; layer && i < s->texts; i++) layer[i] = (ses_real)s->layer[i];
    if (layer)
        ses_forward_output(p, SES_PER_SEQUENCE, ses_tape_input(t, layer, SES_DIM(s->texts, 1)),
                           "exit_layers");
    bool single = m->c.head.problem == SES_PROBLEM_SINGLE ||
                  (m->c.head.problem == SES_PROBLEM_UNSET && m->c.labels > 1);
    if (labels && single && scores)
        p->loss = ses_cross_entropy(t, scores, ses_tape_ints(t, labels, s->texts));
    out->head[0] = (ses_head_output){ s->use[0].head->name, name, p->loss };
}
