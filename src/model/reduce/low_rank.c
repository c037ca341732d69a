/* Factorized weights: "sesame_low_rank" of config.json,
 *   {"embeddings": R, "weights": {"encoder.layer.0.attention.self.query": r, ...}}
 * A weight NAME.weight [out, in] of these layers is stored as NAME.weight_a [r, in] and NAME.weight_b
 * [out, r]; W = B A. With "embeddings" the token table [V, width] is NAME.weight_b [V, R] times NAME.weight_a
 * [R, width]; a tied LM head reads both. */
#include "base/json/json_helpers.h"
#include "base/str.h"
#include "model/adapter/adapter_impl.h"

#include <stdio.h>
#include <string.h>

static const char object[] = "sesame_low_rank", weights[] = "weights", embeddings[] = "embeddings";

const char *ses_low_rank_unsupported(const ses_model_desc *d, const ses_config *c)
{
    if (d->read_parts) return "its encoder and decoder are models of their own";
    if (d->vtable || d->decoder_vtable) return "its layers have products of their own";
    if (c->layer_groups) return "its layers share their weights";
    return NULL;
}

const char *ses_low_rank_unsupported_table(const ses_model_desc *d, const ses_config *c)
{
    const char *why = ses_low_rank_unsupported(d, c);
    if (why) return why;
    if (d->encoder_decoder) return "encoder and decoder share it";
    if (c->attention.causal) return "the model generates text";
    if (c->adaptive.clusters) return "it is divided into clusters";
    return NULL;
}

static bool read_weights(const ses_json *all, ses_err *e)
{
    const ses_json *list = ses_json_get(all, weights);
    int64_t rank;
    if (ses_json_type_of(list) == SES_JSON_NULL) return true;
    if (ses_json_type_of(list) != SES_JSON_OBJECT) return ses_json_wrong_type(weights, list, "an object", e);
    for (size_t i = 0; i < ses_json_len(list); i++) {
        size_t len;
        const char *key = ses_json_key(list, i, &len);
        if (!ses_json_int(ses_json_at(list, i), &rank) || rank < 1 || rank > SES_MAX_FFN)
            return ses_fail(e, SES_EFORMAT, "\"%s\" of \"%s\" is not a rank of at least 1", weights,
                            ses_quoted_of(key, len).s);
    }
    return true;
}

static bool read(const ses_model_desc *d, const ses_json *all, ses_config *c, ses_err *e)
{
    static const char *const known[] = { weights, embeddings };
    for (size_t i = 0; i < ses_json_len(all); i++) {
        size_t len, k = 0;
        const char *key = ses_json_key(all, i, &len);
        while (k < SES_LEN(known) && strcmp(key, known[k])) k++;
        if (k == SES_LEN(known))
            return ses_fail(e, SES_EFORMAT, "unknown key \"%s\", expected \"%s\" or \"%s\"",
                            ses_quoted_of(key, len).s, weights, embeddings);
    }
    const char *why = ses_low_rank_unsupported(d, c);
    if (why) return ses_fail(e, SES_EUNSUPPORTED, "model_type \"%s\": %s", d->name, why);
    int64_t width = c->embed.width ? c->embed.width : c->hidden, rank = 0;
    if (!ses_config_int(all, embeddings, &rank, e) || !read_weights(all, e)) return false;
    bool absent = ses_json_type_of(ses_json_get(all, embeddings)) == SES_JSON_NULL;
    if (!absent && (rank < 1 || rank > width || rank > c->vocab))
        return ses_fail(e, SES_EARG, "\"%s\" is %lld, expected a rank of 1 to %lld", embeddings,
                        (long long)rank, (long long)(width < c->vocab ? width : c->vocab));
    why = rank ? ses_low_rank_unsupported_table(d, c) : NULL;
    if (why)
        return ses_fail(e, SES_EUNSUPPORTED, "\"%s\" of model_type \"%s\": %s", embeddings, d->name, why);
    c->embed.low_rank = rank;
    c->low_rank = all;
    return true;
}

bool ses_low_rank_read(const ses_model_desc *d, const ses_json *config, ses_config *c, ses_err *e)
{
    const ses_json *all = ses_json_get(config, object);
    if (ses_json_type_of(all) == SES_JSON_NULL) return true;
    if (ses_json_type_of(all) != SES_JSON_OBJECT) return ses_json_wrong_type(object, all, "an object", e);
    return read(d, all, c, e) || ses_wrap(e, "\"%s\"", object);
}

bool ses_low_rank_key(const ses_model *m, const char *weight, char *buf, size_t n)
{
    static const char end[] = ".weight";
    char name[256];
    const char *prefix = m->desc->prefix;
    if (!ses_name_to_hf(m, weight, name, sizeof name)) return false;
    size_t len = strlen(name), tail = sizeof end - 1, skip = strlen(prefix);
    if (len <= tail || strcmp(name + len - tail, end)) return false;
    if (strncmp(name, prefix, skip)) skip = 0;
    return (size_t)snprintf(buf, n, "%.*s", (int)(len - tail - skip), name + skip) < n;
}

static int64_t rank_of(void *ctx, const char *name, int64_t out, int64_t in)
{
    ses_model *m = ctx;
    char weight[200], key[256];
    int64_t rank = 0, most = out < in ? out : in;
    snprintf(weight, sizeof weight, "%s.weight", name);
    if (!ses_low_rank_key(m, weight, key, sizeof key)) return 0;
    if (!ses_json_int(ses_json_get(ses_json_get(m->c.low_rank, weights), key), &rank)) return 0;
    m->n_factorized++;
    if (rank <= most) return rank;
    if (!m->low_rank_err.code)
        ses_fail(&m->low_rank_err, SES_EFORMAT,
                 "\"%s\": \"%s\" of \"%s\" is %lld, expected at most %lld for a weight [%lld, %lld]", object,
                 weights, key, (long long)rank, (long long)most, (long long)out, (long long)in);
    return 0;
}

/* Adapters that change dense layers need their weights. */
static bool check_adapters(const ses_model *m, ses_err *e)
{
    for (const ses_adapter *a = m->adapter; a; a = a->next)
        if (a->desc->dense)
            return ses_fail(e, SES_EUNSUPPORTED,
                            "%s needs dense weights, but this model has factorized weights (\"%s\"): "
                            "train all parameters, or merge the adapter before sesame factorize",
                            a->desc->title, object);
    return true;
}

bool ses_low_rank_begin(ses_model *m, ses_err *e)
{
    m->n_factorized = 0;
    if (!m->c.low_rank) return true;
    m->low_rank_hook = (ses_low_rank_hook){ rank_of, m };
    ses_store_set_low_rank_hook(m->store, &m->low_rank_hook);
    return check_adapters(m, e);
}

/* Names a key that no layer has. */
static bool fail_unknown(const ses_model *m, ses_err *e)
{
    const ses_json *list = ses_json_get(m->c.low_rank, weights);
    for (size_t i = 0; i < ses_json_len(list); i++) {
        size_t len, p = 0, n = ses_store_count(m->store);
        const char *key = ses_json_key(list, i, &len);
        for (; p < n; p++) {
            char whole[256], name[256];
            snprintf(whole, sizeof whole, "%s", ses_store_at(m->store, p)->name);
            char *end = strstr(whole, ".weight_b");
            if (!end) continue;
            end[strlen(".weight")] = 0;
            if (ses_low_rank_key(m, whole, name, sizeof name) && !strcmp(name, key)) break;
        }
        if (p == n)
            return ses_fail(e, SES_EFORMAT, "\"%s\": \"%s\" names \"%s\", but a %s has no such dense layer",
                            object, weights, ses_quoted_of(key, len).s, m->class->name);
    }
    return ses_fail(e, SES_EFORMAT, "\"%s\": a name in \"%s\" occurs twice", object, weights);
}

bool ses_low_rank_end(ses_model *m, ses_err *e)
{
    if (!m->c.low_rank) return true;
    ses_store_set_low_rank_hook(m->store, NULL);
    if (m->low_rank_err.code) return ses_fail(e, m->low_rank_err.code, "%s", m->low_rank_err.msg);
    for (size_t i = 0; m->stack[0].token_up && i < SES_LEN(m->head); i++)
        if (m->head[i].out.w == m->stack[0].token) m->head[i].out.first = m->stack[0].token_up;
    bool part = m->class->encoder_only || m->class->decoder_only; /* has not all layers */
    return part || m->n_factorized == ses_json_len(ses_json_get(m->c.low_rank, weights)) ||
           fail_unknown(m, e);
}
