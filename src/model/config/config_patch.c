/* Copies a config.json with settings changed; each model type has its own keys for them. */
#include "base/json/json_helpers.h"
#include "base/str.h"
#include "model/model_desc.h"

#include <string.h>

/* A setting: its name in messages, and the config fields it sets. */
typedef struct change {
    const char *name;
    double value; /* below 0: unchanged */
    size_t field[3];
    size_t n;
} change;

const ses_config_key *ses_config_key_of(const ses_model_desc *d, const ses_json *config, size_t field,
                                        ses_key_type type)
{
    const ses_config_key *first = NULL;
    for (size_t i = 0; i < SES_LEN(d->keys); i++)
        for (size_t j = 0; j < d->keys[i].n; j++) {
            const ses_config_key *k = &d->keys[i].key[j];
            if (k->offset != field || k->type != type) continue;
            if (ses_json_get(config, k->key)) return k;
            if (!first) first = k;
        }
    return first;
}

typedef struct edit {
    const ses_config_key *key[12];
    double value[12];
    size_t n;
} edit;

static bool plan(edit *x, const ses_model_desc *d, const ses_json *config, const change *c, ses_err *e)
{
    bool any = false;
    for (size_t i = 0; i < c->n; i++) {
        const ses_config_key *k = ses_config_key_of(d, config, c->field[i], SES_KEY_TYPE_REAL);
        if (!k) continue;
        any = true;
        x->key[x->n] = k;
        x->value[x->n++] = c->value;
        if (!(c->value <= k->max))
            return ses_fail(e, SES_EARG, "%s %g exceeds the maximum of %g (\"%s\")", c->name, c->value,
                            k->max, k->key);
    }
    return any || ses_fail(e, SES_EUNSUPPORTED, "%s models have no setting for %s", d->name, c->name);
}

static bool planned(const edit *x, const char *key)
{
    for (size_t i = 0; i < x->n; i++)
        if (!strcmp(x->key[i]->key, key)) return true;
    return false;
}

static void put_head(ses_json_writer *w, const ses_config_patch *c)
{
    ses_json_member_object(w, "sesame_head");
    if (c->head) ses_json_member_string(w, "kind", c->head);
    if (c->head) {
        ses_json_member_array(w, "sizes");
        for (size_t i = 0; i < c->n_sizes; i++) ses_json_put_int(w, c->sizes[i]);
        ses_json_end_array(w);
        /* states of frozen models have a large common part, from which recurrent layers learn slowly */
        bool recurrent = !strcmp(c->head, "lstm") || !strcmp(c->head, "gru");
        if (recurrent) ses_json_member_bool(w, "norm", true);
    }
    ses_json_member_bool(w, "mix_layers", c->scalar_mix);
    if (c->n_layers) {
        ses_json_member_array(w, "layers");
        for (size_t i = 0; i < c->n_layers; i++) ses_json_put_int(w, c->layers[i]);
        ses_json_end_array(w);
        ses_json_member_string(w, "combine", c->combine ? c->combine : "mean");
    }
    ses_json_end_object(w);
}

ses_json_doc *ses_model_config_patch(const ses_json *config, const ses_config_patch *c, ses_err *e)
{
    const change all[] = {
        { "dropout",
          c->dropout,
          { offsetof(ses_config, dropout.hidden), offsetof(ses_config, dropout.embed),
            offsetof(ses_config, dropout.ffn) },
          3 },
        { "attention dropout", c->attention_dropout, { offsetof(ses_config, dropout.attention) }, 1 },
        { "dropout of the classifier",
          c->head_dropout,
          { offsetof(ses_config, dropout.head), offsetof(ses_config, dropout.summary_first),
            offsetof(ses_config, dropout.span) },
          3 },
    };
    const ses_model_desc *d = ses_config_find_model(config, e);
    edit x = { 0 };
    if (!d) return NULL;
    for (size_t i = 0; i < SES_LEN(all); i++)
        if (all[i].value >= 0 && !plan(&x, d, config, &all[i], e)) return NULL;
    ses_json_writer *w = ses_json_writer_new(0, e);
    bool head = c->head || c->scalar_mix || c->n_layers;
    const ses_config_key *causal =
        c->causal ? ses_config_key_of(d, config, offsetof(ses_config, attention.causal), SES_KEY_TYPE_BOOL)
                  : NULL;
    ses_json_begin_object(w);
    for (size_t i = 0; i < ses_json_len(config); i++) {
        const char *key = ses_json_key(config, i, NULL);
        if (planned(&x, key) || (head && !strcmp(key, "sesame_head")) ||
            (causal && !strcmp(key, causal->key)))
            continue;
        ses_json_put_key(w, key);
        ses_json_put_value(w, ses_json_at(config, i));
    }
    for (size_t i = 0; i < x.n; i++) ses_json_member_real(w, x.key[i]->key, x.value[i]);
    if (causal) ses_json_member_bool(w, causal->key, true);
    if (head) put_head(w, c);
    ses_json_end_object(w);
    return ses_json_writer_parse(w, e);
}
