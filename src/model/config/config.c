/* Reads and validates config.json against a model's key table, before anything is allocated. */
#include "base/json/json_helpers.h"
#include "base/str.h"
#include "base/suggest.h"
#include "model/model_desc.h"

#include <stdio.h>
#include <string.h>

static const ses_model_desc *const table[] = {
#define SES_MODEL(name) &ses_model_##name,
#include "model/models.def"
#undef SES_MODEL
    NULL
};

const ses_model_desc *const *ses_models(void) { return table; }

/* May the config be of this type? False if it names the class of another type: its model_type has no typing
 * error then. */
static bool may_be(const ses_model_desc *d, const ses_json *config)
{
    const char *class = ses_json_string(ses_json_at(ses_json_get(config, "architectures"), 0), NULL);
    for (size_t i = 0; class && i < d->n_classes; i++)
        if (!strcmp(class, d->class[i].name)) return true;
    return !class;
}

/* Error for an unknown model type: suggests the nearest one, mentions auto_map code. */
static void fail_unknown(const char *type, const char *names, const ses_json *config, ses_err *e)
{
    const ses_json *code = ses_json_get(config, "auto_map"), *first = ses_json_at(code, 0);
    const char *name = ses_json_string(first, NULL);
    ses_suggestion nearest = { .word = type };
    for (const ses_model_desc *const *d = table; *d; d++)
        if (may_be(*d, config)) ses_suggest_offer(&nearest, (*d)->name, strlen((*d)->name));
    ses_fail(e, SES_EUNSUPPORTED, "\"model_type\" \"%s\" is not supported%s%s%s (supported: %s)",
             ses_quoted_of(type, strlen(type)).s, name ? ", and \"auto_map\" names code (" : "",
             name ? ses_quoted_of(name, strlen(name)).s : "", name ? "), which is never run" : "", names);
    ses_suggest_add(&nearest, "", e);
}

/* "DebertaV2TokenizerFast" is a tokenizer class of model_type "deberta-v2". */
static bool is_tokenizer_of(const char *class, const char *model_type)
{
    for (; *model_type; model_type++)
        if (*model_type != '-' && *model_type != '_' && (*class ++ | 0x20) != *model_type) return false;
    return !strncmp(class, "Tokenizer", 9);
}

bool ses_model_sets_segments(const char *tokenizer_class, const char *model_type)
{
    for (const ses_model_desc *const *d = ses_models(); *d; d++)
        if (tokenizer_class ? is_tokenizer_of(tokenizer_class, (*d)->name) : !strcmp((*d)->name, model_type))
            return (*d)->tokenizer_sets_segments;
    return false;
}

const ses_model_desc *ses_config_find_model(const ses_json *config, ses_err *e)
{
    const char *type = ses_json_string(ses_json_get(config, "model_type"), NULL);
    char names[1024] = "";
    if (ses_json_type_of(config) != SES_JSON_OBJECT) {
        ses_fail(e, SES_EFORMAT, "%s, expected an object", ses_json_type_name(ses_json_type_of(config)));
        return NULL;
    }
    for (const ses_model_desc *const *d = table; *d; d++) {
        if (type && !strcmp(type, (*d)->name)) return *d;
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", (*d)->name);
    }
    if (type)
        fail_unknown(type, names, config, e);
    else
        ses_fail(e, SES_EFORMAT, "\"model_type\" is missing or not a string (supported: %s)", names);
    return NULL;
}

static bool out_of_range(const ses_config_key *k, double x, ses_err *e)
{
    return ses_fail(e, SES_EARG, "\"%s\" is %.17g, expected %.17g to %.17g", k->key, x, k->min, k->max);
}

static bool read_number(const ses_config_key *k, const ses_json *v, ses_config *c, ses_err *e)
{
    double x;
    int64_t n;
    bool is_integer = ses_json_int(v, &n);
    if (!ses_json_real(v, &x))
        return ses_json_wrong_type(k->key, v, k->type == SES_KEY_TYPE_INT ? "an integer" : "a number", e);
    if (!(x >= k->min && x <= k->max)) return out_of_range(k, x, e);
    if (k->type == SES_KEY_TYPE_REAL)
        memcpy((char *)c + k->offset, &x, sizeof x);
    else if (is_integer)
        memcpy((char *)c + k->offset, &n, sizeof n);
    else
        return ses_json_wrong_type(k->key, v, "an integer", e);
    return true;
}

static bool read_act(const ses_config_key *k, const ses_json *v, ses_config *c, ses_err *e)
{
    const char *name = ses_json_string(v, NULL);
    ses_act act;
    if (!name) return ses_json_wrong_type(k->key, v, "a string", e);
    if (!ses_act_from_name(name, &act))
        return ses_fail(e, SES_EUNSUPPORTED,
                        "\"%s\" is \"%s\", expected gelu, gelu_new, gelu_pytorch_tanh, relu, silu "
                        "or tanh",
                        k->key, name);
    memcpy((char *)c + k->offset, &act, sizeof act);
    return true;
}

static bool read_key(const ses_config_key *k, const ses_json *config, ses_config *c, ses_err *e)
{
    const ses_json *v = ses_json_get(config, k->key);
    bool yes;
    if (ses_json_type_of(v) == SES_JSON_NULL) /* keeps the default */
        return !k->required || ses_fail(e, SES_EFORMAT, "\"%s\" is missing", k->key);
    if (k->type == SES_KEY_TYPE_ACT) return read_act(k, v, c, e);
    if (k->type != SES_KEY_TYPE_BOOL) return read_number(k, v, c, e);
    if (!ses_json_bool(v, &yes)) return ses_json_wrong_type(k->key, v, "true or false", e);
    memcpy((char *)c + k->offset, &yes, sizeof yes);
    return true;
}

bool ses_config_bool(const ses_json *config, const char *key, bool *value, ses_err *e)
{
    const ses_json *v = ses_json_get(config, key);
    return ses_json_type_of(v) == SES_JSON_NULL || ses_json_bool(v, value) ||
           ses_json_wrong_type(key, v, "true or false", e);
}

bool ses_config_int(const ses_json *config, const char *key, int64_t *value, ses_err *e)
{
    const ses_json *v = ses_json_get(config, key);
    return ses_json_type_of(v) == SES_JSON_NULL || ses_json_int(v, value) ||
           ses_json_wrong_type(key, v, "an integer", e);
}

bool ses_config_text(const ses_json *config, const char *key, const char **value, ses_err *e)
{
    const ses_json *v = ses_json_get(config, key);
    if (ses_json_type_of(v) == SES_JSON_NULL) return true;
    *value = ses_json_string(v, NULL);
    return *value || ses_json_wrong_type(key, v, "a string", e);
}

bool ses_config_name(const ses_json *config, const char *key, const char *const names[], size_t n,
                     size_t *out, ses_err *e)
{
    const ses_json *v = ses_json_get(config, key);
    const char *name = ses_json_string(v, NULL);
    ses_buf list = { 0 };
    *out = 0;
    if (ses_json_type_of(v) == SES_JSON_NULL) return true;
    if (!name) return ses_json_wrong_type(key, v, "a string", e);
    for (; *out < n; ++*out)
        if (!strcmp(name, names[*out])) return true;
    for (size_t i = 0; i < n; i++)
        ses_buf_appendf(&list, "%s%s", i ? i + 1 < n ? ", " : " or " : "", names[i]);
    if (ses_buf_ok(&list, e))
        ses_fail(e, SES_EUNSUPPORTED, "\"%s\" is \"%s\", expected %s", key, name, list.data);
    ses_buf_free(&list);
    return false;
}

/* id2label, or num_labels, or transformers' default of two labels. */
static bool read_labels(const ses_json *config, ses_config *c, ses_err *e)
{
    const ses_json *names = ses_json_get(config, "id2label"), *n = ses_json_get(config, "num_labels");
    c->labels = 2;
    if (ses_json_type_of(names) != SES_JSON_NULL) {
        if (ses_json_type_of(names) != SES_JSON_OBJECT)
            return ses_json_wrong_type("id2label", names, "an object", e);
        c->labels = (int64_t)ses_json_len(names);
        for (int64_t i = 0; i < c->labels; i++) {
            char id[24];
            snprintf(id, sizeof id, "%lld", (long long)i);
            if (!ses_json_string(ses_json_get(names, id), NULL))
                return ses_fail(e, SES_EFORMAT, "\"id2label\" has %lld entries but no name for \"%s\"",
                                (long long)c->labels, id);
        }
    } else if (ses_json_type_of(n) != SES_JSON_NULL && !ses_json_int(n, &c->labels)) {
        return ses_json_wrong_type("num_labels", n, "an integer", e);
    }
    if (c->labels < 1 || c->labels > 1 << 20)
        return ses_fail(e, SES_EARG, "%lld labels, expected 1 to %d", (long long)c->labels, 1 << 20);
    return true;
}

static bool read_problem(const ses_json *config, ses_config *c, ses_err *e)
{
    static const char *const names[] = { [SES_PROBLEM_REGRESSION] = "regression",
                                         [SES_PROBLEM_SINGLE] = "single_label_classification",
                                         [SES_PROBLEM_MULTI] = "multi_label_classification" };
    const ses_json *v = ses_json_get(config, "problem_type");
    const char *name = ses_json_string(v, NULL);
    c->head.problem = SES_PROBLEM_UNSET;
    if (ses_json_type_of(v) == SES_JSON_NULL) return true;
    if (!name) return ses_json_wrong_type("problem_type", v, "a string", e);
    for (int i = SES_PROBLEM_REGRESSION; i <= SES_PROBLEM_MULTI; i++)
        if (!strcmp(name, names[i])) c->head.problem = (ses_problem)i;
    if (c->head.problem != SES_PROBLEM_UNSET) return true;
    return ses_fail(e, SES_EFORMAT, "\"problem_type\" is \"%s\", expected %s, %s or %s", name, names[1],
                    names[2], names[3]);
}

/* "layers" and "combine" of "sesame_head". */
static bool read_layer_choice(const ses_json *custom, ses_config *c, ses_err *e)
{
    ses_layer_choice *k = &c->custom_head.choice;
    const ses_json *layers = ses_json_get(custom, "layers");
    size_t combine;
    if (ses_json_type_of(layers) == SES_JSON_NULL) return true;
    if (ses_json_type_of(layers) != SES_JSON_ARRAY)
        return ses_json_wrong_type("layers", layers, "an array of numbers", e);
    k->n = (int64_t)ses_json_len(layers);
    if (k->n < 1 || k->n > SES_MAX_LAYER_CHOICE)
        return ses_fail(e, SES_EFORMAT, "\"layers\" has %lld entries, expected 1 to %d", (long long)k->n,
                        SES_MAX_LAYER_CHOICE);
    for (int64_t i = 0; i < k->n; i++)
        if (!ses_json_int(ses_json_at(layers, (size_t)i), &k->layer[i]) || k->layer[i] > SES_MAX_LAYERS ||
            k->layer[i] < -SES_MAX_LAYERS)
            return ses_fail(e, SES_EFORMAT, "\"layers\": an entry is not a number of a layer");
    if (c->custom_head.scalar_mix)
        return ses_fail(e, SES_EFORMAT, "\"layers\" and \"mix_layers\": expected one of them");
    if (!ses_config_name(custom, "combine", ses_combine_names, SES_COMBINES, &combine, e)) return false;
    k->combine = (ses_combine)combine;
    return true;
}

/* "pooling" and "normalize" of "sesame_head": the input of a classifier of sentence vectors (SetFit). */
static bool read_head_pooling(const ses_json *custom, ses_config *c, ses_err *e)
{
    static const char *const names[] = { "default", "cls", "mean", "max", "last" };
    size_t pooling;
    if (!ses_config_name(custom, "pooling", names, SES_LEN(names), &pooling, e)) return false;
    c->custom_head.pooling = (ses_head_pooling)pooling;
    return ses_config_bool(custom, "normalize", &c->custom_head.normalize, e);
}

/* "sesame_head": a custom task head that replaces the model's. */
static bool read_own_head(const ses_json *config, ses_config *c, ses_err *e)
{
    static const char *const kinds[] = { "none", "linear", "mlp", "lstm", "gru" };
    const ses_json *custom = ses_json_get(config, "sesame_head"), *sizes = ses_json_get(custom, "sizes");
    const ses_json *act = ses_json_get(custom, "activation");
    size_t kind;
    c->custom_head.act = SES_ACT_RELU;
    if (ses_json_type_of(custom) == SES_JSON_NULL) return true;
    if (ses_json_type_of(custom) != SES_JSON_OBJECT)
        return ses_json_wrong_type("sesame_head", custom, "an object", e);
    if (!ses_config_name(custom, "kind", kinds, SES_LEN(kinds), &kind, e))
        return ses_wrap(e, "\"sesame_head\"");
    c->custom_head.kind = (ses_custom_head)kind;
    if (!ses_config_bool(custom, "mix_layers", &c->custom_head.scalar_mix, e))
        return ses_wrap(e, "\"sesame_head\"");
    if (!ses_config_bool(custom, "norm", &c->custom_head.norm, e)) return ses_wrap(e, "\"sesame_head\"");
    if (!read_layer_choice(custom, c, e) || !read_head_pooling(custom, c, e))
        return ses_wrap(e, "\"sesame_head\"");
    if (act && !read_act(&(const ses_config_key)SES_KEY_ACTIVATION("activation", custom_head.act), act, c, e))
        return ses_wrap(e, "\"sesame_head\"");
    c->custom_head.layers = (int64_t)ses_json_len(sizes);
    bool hidden = c->custom_head.kind >= SES_CUSTOM_MLP;
    if (c->custom_head.layers > SES_MAX_CUSTOM_LAYERS || hidden != (c->custom_head.layers > 0))
        return ses_fail(e, SES_EFORMAT, "\"sesame_head\": \"sizes\" has %lld entries, expected %s",
                        (long long)c->custom_head.layers, hidden ? "1 to 4" : "none");
    for (int64_t i = 0; i < c->custom_head.layers; i++)
        if (!ses_json_int(ses_json_at(sizes, (size_t)i), &c->custom_head.sizes[i]) ||
            c->custom_head.sizes[i] < 1 || c->custom_head.sizes[i] > SES_MAX_WIDTH)
            return ses_fail(e, SES_EFORMAT, "\"sesame_head\": a size is not from 1 to %d", SES_MAX_WIDTH);
    return true;
}

/* "sesame_crf": token classification with a CRF; its value is the scheme of the labels. */
static bool read_crf(const ses_json *config, ses_config *c, ses_err *e)
{
    size_t scheme;
    if (ses_json_type_of(ses_json_get(config, "sesame_crf")) == SES_JSON_NULL) return true;
    if (!ses_config_name(config, "sesame_crf", ses_tag_scheme_names, SES_LEN(ses_tag_scheme_names), &scheme,
                         e))
        return false;
    c->crf.enabled = true;
    c->crf.scheme = (ses_tag_scheme)scheme;
    return true;
}

/* Checks that hold for every model. */
static bool check(const ses_config *c, ses_err *e)
{
    if (c->attention.heads && !c->attention.head_size && c->hidden % c->attention.heads)
        return ses_fail(e, SES_EARG, "a width of %lld is not a multiple of %lld heads", (long long)c->hidden,
                        (long long)c->attention.heads);
    if (c->decoder.heads && !c->attention.head_size && c->hidden % c->decoder.heads)
        return ses_fail(e, SES_EARG, "a width of %lld is not a multiple of %lld decoder heads",
                        (long long)c->hidden, (long long)c->decoder.heads);
    if (c->pad_id >= c->vocab)
        return ses_fail(e, SES_EARG, "\"pad_token_id\" %lld is outside the vocabulary of %lld",
                        (long long)c->pad_id, (long long)c->vocab);
    int64_t targets = c->decoder.vocab ? c->decoder.vocab : c->vocab;
    if (c->decoder.start_id >= targets || c->eos_id >= targets)
        return ses_fail(e, SES_EARG,
                        "\"decoder_start_token_id\" or \"eos_token_id\" is outside the vocabulary of %lld",
                        (long long)targets);
    if (c->position.max + c->position.extra_rows <= c->position.offset)
        return ses_fail(e, SES_EARG, "%lld positions are too few for any token", (long long)c->position.max);
    return true;
}

bool ses_config_read(const ses_model_desc *d, const ses_json *config, ses_config *c, ses_err *e)
{
    *c = d->defaults;
    if (!ses_config_check_keys(d, config, config, e)) return false;
    if (!c->dropout.ffn) c->dropout.ffn = -1; /* 0 in a model's defaults means: the hidden dropout */
    for (size_t i = 0; i < SES_LEN(d->keys); i++)
        for (size_t j = 0; j < d->keys[i].n; j++)
            if (!read_key(&d->keys[i].key[j], config, c, e)) return false;
    if (!read_labels(config, c, e) || !read_problem(config, c, e) || !read_own_head(config, c, e) ||
        !read_crf(config, c, e))
        return false;
    return (!d->post_read || d->post_read(c, config, e)) && check(c, e) &&
           ses_pruned_heads_read(d, config, c, e) && ses_ffn_widths_read(d, config, c, e) &&
           ses_low_rank_read(d, config, c, e) && ses_exits_read(config, c, e);
}

const ses_class *ses_config_class(const ses_model_desc *d, const ses_json *config, const char *name,
                                  ses_err *e)
{
    const ses_json *list = ses_json_get(config, "architectures");
    if (!name && ses_json_type_of(list) != SES_JSON_NULL && ses_json_type_of(list) != SES_JSON_ARRAY) {
        ses_json_wrong_type("architectures", list, "an array", e);
        return NULL;
    }
    if (!name && ses_json_len(list)) {
        name = ses_json_string(ses_json_at(list, 0), NULL);
        if (!name) ses_json_wrong_type("architectures[0]", ses_json_at(list, 0), "a string", e);
        if (!name) return NULL;
    }
    if (!name) return &d->class[0]; /* not specified: the base model */
    for (size_t i = 0; i < d->n_classes; i++)
        if (!strcmp(name, d->class[i].name)) return &d->class[i];
    char names[1024] = "";
    for (size_t i = 0; i < d->n_classes; i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", d->class[i].name);
    }
    ses_fail(e, SES_EUNSUPPORTED, "class \"%s\" is not supported for model_type \"%s\" (supported: %s)", name,
             d->name, names);
    return NULL;
}

const ses_class *ses_config_headless_class(const ses_model_desc *d, ses_err *e)
{
    for (size_t i = 0; i < d->n_classes; i++)
        if (d->class[i].encoder_only && !d->class[i].head[0].head) return &d->class[i];
    if (!d->encoder_decoder) return &d->class[0];
    ses_fail(e, SES_EUNSUPPORTED, "\"model_type\" \"%s\" has no encoder-only class", d->name);
    return NULL;
}
