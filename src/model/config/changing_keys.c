/* Refuses keys of config.json that change the results and that the model does not read. A folder of another
 * architecture under a known model type would run otherwise, and give wrong results in silence. */
#include "base/json/json_helpers.h"
#include "base/number.h"
#include "base/str.h"
#include "model/model_desc.h"

#include <string.h>

typedef struct changing_key {
    const char *key, *harmless;
} changing_key;

static const changing_key list[] = {
#define SES_CHANGING_KEY(key, harmless) { key, harmless },
#include "changing_keys.def"
#undef SES_CHANGING_KEY
};

const char *ses_changing_key_at(size_t i) { return i < SES_LEN(list) ? list[i].key : NULL; }

static bool reads(const ses_model_desc *d, const char *key)
{
    for (size_t i = 0; i < SES_LEN(d->keys); i++)
        for (size_t j = 0; j < d->keys[i].n; j++)
            if (!strcmp(d->keys[i].key[j].key, key)) return true;
    for (const char *const *k = d->reads; k && *k; k++)
        if (!strcmp(*k, key)) return true;
    return false;
}

/* The model and config of a comparison. */
typedef struct context {
    const ses_model_desc *d;
    const ses_json *config;
} context;

static bool is_heads(const context *c, const ses_json *v)
{
    const ses_config_key *k =
        ses_config_key_of(c->d, c->config, offsetof(ses_config, attention.heads), SES_KEY_TYPE_INT);
    int64_t n, heads;
    return k && ses_json_int(v, &n) && ses_json_int(ses_json_get(c->config, k->key), &heads) && n == heads;
}

/* Is v the scalar that n bytes of the list describe? */
static bool equals(const context *c, const char *word, size_t n, const ses_json *v)
{
    bool yes, causal = c->d->defaults.attention.causal || c->d->encoder_decoder;
    double x, y;
    const char *text = ses_json_string(v, NULL);
    if (text) return ses_equal(word, n, text);
    if (ses_json_real(v, &x) && *word != '@') return ses_parse_number(word, n, &y) && x == y;
    if (ses_equal(word, n, "@heads")) return is_heads(c, v);
    if (ses_equal(word, n, "@off"))
        return ses_json_bool(ses_json_get(c->config, "use_sliding_window"), &yes) && !yes;
    if (!ses_json_bool(v, &yes)) return false;
    if (ses_equal(word, n, "@causal")) return yes == causal;
    if (ses_equal(word, n, "@decoder")) return !yes || causal;
    if (ses_equal(word, n, "@both")) return yes != causal || !causal;
    return ses_equal(word, n, yes ? "true" : "false");
}

static bool is_one_of(const context *c, const char *words, const ses_json *v)
{
    const char *word;
    size_t n;
    for (size_t i = 0; ses_list_at(words, i, &word, &n); i++)
        if (equals(c, word, n, v)) return true;
    return false;
}

static bool is_harmless(const context *c, const changing_key *k, const ses_json *v);

/* The first member of an object that changes the results and is not read; NULL: none. */
static const changing_key *find_member(const context *c, const ses_json *object)
{
    for (size_t i = 0; i < SES_LEN(list); i++) {
        const ses_json *v = ses_json_get(object, list[i].key);
        if (v && !reads(c->d, list[i].key) && !is_harmless(c, &list[i], v)) return &list[i];
    }
    return NULL;
}

static bool is_listed(const char *key)
{
    for (size_t i = 0; i < SES_LEN(list); i++)
        if (!strcmp(list[i].key, key)) return true;
    return false;
}

static bool lists_all_members(const ses_json *object)
{
    size_t len;
    for (size_t i = 0; i < ses_json_len(object); i++)
        if (!is_listed(ses_json_key(object, i, &len))) return false;
    return true;
}

/* An object that names its kind, or has only members of the list. */
static bool is_harmless_object(const context *c, const changing_key *k, const ses_json *v)
{
    static const char *const kinds[] = { "rope_type", "type", "quant_method" };
    const ses_json *kind = NULL;
    for (size_t i = 0; !kind && i < SES_LEN(kinds); i++) kind = ses_json_get(v, kinds[i]);
    return (kind ? is_one_of(c, k->harmless, kind) : lists_all_members(v)) && !find_member(c, v);
}

static bool is_harmless(const context *c, const changing_key *k, const ses_json *v)
{
    ses_json_type type = ses_json_type_of(v);
    size_t n = ses_json_len(v);
    if (type == SES_JSON_NULL) return true;
    if (type != SES_JSON_ARRAY && type != SES_JSON_OBJECT) return is_one_of(c, k->harmless, v);
    if (type == SES_JSON_OBJECT) return !n || is_harmless_object(c, k, v);
    for (size_t i = 0; i < n; i++)
        if (!is_one_of(c, k->harmless, ses_json_at(v, i))) return false;
    return true;
}

/* The values that the error offers: null, and the others as the list has them. */
static void put_accepted(ses_buf *b, const changing_key *k)
{
    const char *word;
    size_t n;
    ses_buf_puts(b, "null");
    for (size_t i = 0; ses_list_at(k->harmless, i, &word, &n); i++)
        if (ses_equal(word, n, "@heads"))
            ses_buf_puts(b, ", the number of attention heads");
        else if (*word != '@')
            ses_buf_appendf(b, ", %.*s", (int)n, word);
}

static bool fail(const context *c, const changing_key *k, const ses_json *v, ses_err *e)
{
    enum { SHOWN = 80 };
    size_t n;
    ses_buf accepted = { 0 };
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (w) ses_json_put_value(w, v);
    const char *text = w ? ses_json_writer_text(w, &n, e) : NULL;
    put_accepted(&accepted, k);
    if (text && ses_buf_ok(&accepted, e))
        ses_fail(e, SES_EUNSUPPORTED,
                 "\"%s\" is %s%s: this changes the results, and Sesame's \"%s\" does not compute it "
                 "(accepted: %s); run the model with the library it was made for",
                 k->key, ses_quoted_of(text, n < SHOWN ? n : SHOWN).s, n < SHOWN ? "" : "...", c->d->name,
                 accepted.data);
    ses_buf_free(&accepted);
    ses_json_writer_free(w);
    return false;
}

bool ses_config_check_keys(const ses_model_desc *d, const ses_json *object, const ses_json *config,
                           ses_err *e)
{
    context c = { d, config };
    const changing_key *k = find_member(&c, object);
    return !k || fail(&c, k, ses_json_get(object, k->key), e);
}
