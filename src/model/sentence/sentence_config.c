/* modules.json and the modules' config.json, in the formats of all versions of sentence-transformers. */
#include "base/alloc.h"
#include "base/json/json_helpers.h"
#include "base/str.h"
#include "model/model_desc.h"
#include "sentence_impl.h"

#include <string.h>

/* ---- values ---- */

static bool read_size(const ses_json *config, const char *key, int64_t *out, ses_err *e)
{
    const ses_json *v = ses_json_get(config, key);
    if (!ses_json_int(v, out)) return ses_json_wrong_type(key, v, "an integer", e);
    if (*out >= 1 && *out <= SES_MAX_FFN) return true;
    return ses_fail(e, SES_EARG, "\"%s\" is %lld, expected 1 to %d", key, (long long)*out, SES_MAX_FFN);
}

static bool read_switch(const ses_json *config, const char *key, bool *out, ses_err *e)
{
    const ses_json *v = ses_json_get(config, key);
    return ses_json_type_of(v) == SES_JSON_NULL || ses_json_bool(v, out) ||
           ses_json_wrong_type(key, v, "true or false", e);
}

/* Modules may name their input and output; only "sentence_embedding" is supported. */
static bool check_input_output(const ses_json *config, ses_err *e)
{
    static const char *const keys[] = { "module_input_name", "module_output_name" };
    for (size_t i = 0; i < SES_LEN(keys); i++) {
        const char *name = ses_json_string(ses_json_get(config, keys[i]), NULL);
        if (name && strcmp(name, "sentence_embedding") != 0)
            return ses_fail(e, SES_EUNSUPPORTED, "\"%s\" is \"%s\", only \"sentence_embedding\" is supported",
                            keys[i], ses_quoted_of(name, strlen(name)).s);
    }
    return true;
}

static const struct {
    const char *path;
    ses_act act;
} acts[] = { { "torch.nn.modules.linear.Identity", SES_ACT_NONE },
             { "torch.nn.modules.activation.Tanh", SES_ACT_TANH },
             { "torch.nn.modules.activation.Sigmoid", SES_ACT_SIGMOID },
             { "torch.nn.modules.activation.ReLU", SES_ACT_RELU },
             { "torch.nn.modules.activation.GELU", SES_ACT_GELU },
             { "torch.nn.modules.activation.SiLU", SES_ACT_SILU } };

const char *ses_act_path(ses_act act)
{
    size_t i = 0;
    while (i + 1 < SES_LEN(acts) && acts[i].act != act) i++;
    return acts[i].path;
}

/* Finds an activation by the last part of the path, which must be below torch.nn. */
bool ses_act_from_path(const char *path, ses_act *out, ses_err *e)
{
    const char *name = strrchr(path, '.');
    for (size_t i = 0; name && !strncmp(path, "torch.", 6) && i < SES_LEN(acts); i++)
        if (!strcmp(name, strrchr(acts[i].path, '.'))) return *out = acts[i].act, true;
    return ses_fail(
        e, SES_EUNSUPPORTED,
        "activation \"%s\" is not supported (supported: torch.nn's Identity, Tanh, Sigmoid, ReLU, "
        "GELU, SiLU)",
        ses_quoted_of(path, strlen(path)).s);
}

/* ---- pooling ---- */

static const struct {
    const char *name, *legacy_key; /* current name; boolean key in older folders */
} pools[SES_SENTENCE_POOL_COUNT] = {
#define SES_SENTENCE_POOL(id, function, name_, legacy_key_) { name_, legacy_key_ },
#include "sentence_pools.def"
#undef SES_SENTENCE_POOL
};

const char *ses_sentence_pool_name(ses_sentence_pool p) { return pools[p].name; }
const char *ses_sentence_pool_legacy_key(ses_sentence_pool p) { return pools[p].legacy_key; }

static bool add_pool(ses_module *m, const char *name, size_t len, ses_err *e)
{
    if (m->pools == SES_MAX_POOLS) return ses_fail(e, SES_EARG, "more than %d pooling modes", SES_MAX_POOLS);
    for (int i = 0; i < SES_SENTENCE_POOL_COUNT; i++)
        if (strlen(pools[i].name) == len && !memcmp(pools[i].name, name, len)) {
            m->pool[m->pools++] = (ses_sentence_pool)i;
            return true;
        }
    ses_buf list = { 0 };
    for (int i = 0; i < SES_SENTENCE_POOL_COUNT; i++)
        ses_buf_appendf(&list, "%s%s", i ? ", " : "", pools[i].name);
    if (ses_buf_ok(&list, e))
        ses_fail(e, SES_EUNSUPPORTED, "pooling \"%s\" is not supported (supported: %s)",
                 ses_quoted_of(name, len).s, list.data);
    ses_buf_free(&list);
    return false;
}

bool ses_module_pools(ses_module *m, const char *names, ses_err *e)
{
    m->pools = 0;
    for (size_t len;; names += len + 1) {
        len = strcspn(names, ",");
        if (!add_pool(m, names, len, e)) return false;
        if (!names[len]) return true;
    }
}

static bool read_modes(ses_module *m, const ses_json *mode, ses_err *e)
{
    size_t len;
    const char *name = ses_json_string(mode, &len);
    if (name) return add_pool(m, name, len, e);
    if (ses_json_type_of(mode) != SES_JSON_ARRAY || !ses_json_len(mode))
        return ses_json_wrong_type("pooling_mode", mode, "a string or an array of strings", e);
    for (size_t i = 0; i < ses_json_len(mode); i++) {
        name = ses_json_string(ses_json_at(mode, i), &len);
        if (!name) return ses_json_wrong_type("pooling_mode", ses_json_at(mode, i), "strings", e);
        if (!add_pool(m, name, len, e)) return false;
    }
    return true;
}

static bool read_pooling(ses_module *m, const ses_json *config, ses_err *e)
{
    const ses_json *mode = ses_json_get(config, "pooling_mode");
    bool prompt = true;
    if (!read_switch(config, "include_prompt", &prompt, e)) return false;
    m->skip_prompt = !prompt;
    if (ses_json_type_of(mode) != SES_JSON_NULL) return read_modes(m, mode, e);
    for (int i = 0; i < SES_SENTENCE_POOL_COUNT; i++) {
        bool on = false;
        if (!pools[i].legacy_key) continue;
        if (!read_switch(config, pools[i].legacy_key, &on, e)) return false;
        if (on) m->pool[m->pools++] = (ses_sentence_pool)i;
    }
    if (!m->pools) m->pool[m->pools++] = SES_SENTENCE_POOL_MEAN; /* not specified */
    return true;
}

static bool add_pooling(ses_module *m, ses_store *s, int number, int64_t *width, ses_err *e)
{
    (void)s, (void)number, (void)e;
    m->in = *width;
    *width *= m->pools;
    return true;
}

/* ---- modules after pooling ---- */

static bool check_width(int64_t expected, int64_t width, ses_err *e)
{
    return expected == width ||
           ses_fail(e, SES_EFORMAT, "expects vectors of size %lld, but its input has %lld",
                    (long long)expected, (long long)width);
}

static bool read_dense(ses_module *m, const ses_json *config, ses_err *e)
{
    const ses_json *act = ses_json_get(config, "activation_function");
    bool bias = true;
    if (!read_size(config, "in_features", &m->in, e) || !read_size(config, "out_features", &m->out, e) ||
        !read_switch(config, "bias", &bias, e) || !read_switch(config, "use_residual", &m->residual, e) ||
        !check_input_output(config, e))
        return false;
    m->no_bias = !bias;
    m->act = act ? SES_ACT_NONE : SES_ACT_TANH; /* null: none; absent: the library's default */
    if (ses_json_type_of(act) == SES_JSON_NULL) return true;
    const char *path = ses_json_string(act, NULL);
    return path ? ses_act_from_path(path, &m->act, e)
                : ses_json_wrong_type("activation_function", act, "a string", e);
}

static bool add_dense(ses_module *m, ses_store *s, int number, int64_t *width, ses_err *e)
{
    if (!check_width(m->in, *width, e)) return false;
    m->dense = ses_dense_add(s, m->out, m->in, m->no_bias ? SES_NO_BIAS : SES_BIAS, "%d.linear", number);
    if (m->residual && m->in != m->out)
        m->residual_proj = ses_dense_add(s, m->out, m->in, SES_NO_BIAS, "%d.residual", number);
    *width = m->out;
    return ses_store_ok(s, e);
}

static ses_tensor *run_dense(const ses_module *m, ses_tape *t, ses_tensor *x)
{
    ses_tensor *y = ses_dense_run(t, m->dense, x, m->act);
    if (!m->residual) return y;
    return ses_add(t, y, m->residual_proj.w ? ses_dense_run(t, m->residual_proj, x, SES_ACT_NONE) : x);
}

static bool read_norm(ses_module *m, const ses_json *config, ses_err *e)
{
    return read_size(config, "dimension", &m->in, e) && check_input_output(config, e);
}

static bool add_norm(ses_module *m, ses_store *s, int number, int64_t *width, ses_err *e)
{
    if (!check_width(m->in, *width, e)) return false;
    m->norm = ses_norm_add(s, m->in, SES_NORM_LAYER, "%d.norm", number);
    return ses_store_ok(s, e);
}

static ses_tensor *run_norm(const ses_module *m, ses_tape *t, ses_tensor *x)
{
    return ses_norm_run(t, m->norm, x, NULL, 1e-5);
}

static bool read_normalize(ses_module *m, const ses_json *config, ses_err *e)
{
    (void)m;
    return check_input_output(config, e);
}

static ses_tensor *run_normalize(const ses_module *m, ses_tape *t, ses_tensor *x)
{
    (void)m;
    return ses_l2_normalize(t, x);
}

static bool read_dropout(ses_module *m, const ses_json *config, ses_err *e)
{
    const ses_json *v = ses_json_get(config, "dropout");
    m->dropout = 0.2;
    if (ses_json_type_of(v) == SES_JSON_NULL) return true;
    if (!ses_json_real(v, &m->dropout)) return ses_json_wrong_type("dropout", v, "a number", e);
    if (m->dropout >= 0 && m->dropout < 1) return true;
    return ses_fail(e, SES_EARG, "\"dropout\" is %.17g, expected 0 to 1, 1 excluded", m->dropout);
}

static ses_tensor *run_dropout(const ses_module *m, ses_tape *t, ses_tensor *x)
{
    return ses_dropout(t, x, m->dropout);
}

/* ---- the list ---- */

static const ses_module_kind transformer = { .name = "Transformer" },
                             pooling = { .name = "Pooling",
                                         .read = read_pooling,
                                         .add = add_pooling,
                                         .config = true },
                             dense = { .name = "Dense",
                                       .read = read_dense,
                                       .add = add_dense,
                                       .run = run_dense,
                                       .config = true,
                                       .weights = true },
                             layer_norm = { .name = "LayerNorm",
                                            .read = read_norm,
                                            .add = add_norm,
                                            .run = run_norm,
                                            .config = true,
                                            .weights = true },
                             normalize = { .name = "Normalize",
                                           .read = read_normalize,
                                           .run = run_normalize },
                             dropout = { .name = "Dropout", .read = read_dropout, .run = run_dropout };
static const ses_module_kind *const kinds[] = { &transformer, &pooling, &dense, &layer_norm,
                                                &normalize,   &dropout, NULL };

const ses_module_kind *const *ses_module_kinds(void) { return kinds; }

const ses_module_kind *ses_module_find(const char *name)
{
    for (const ses_module_kind *const *k = kinds; *k; k++)
        if (!strcmp((*k)->name, name)) return *k;
    return NULL;
}

/* Finds a kind by the last part of the type, which must be below sentence_transformers:
 * "sentence_transformers.models.Pooling". */
static const ses_module_kind *find_kind(const char *type, ses_err *e)
{
    const char *own = "sentence_transformers.", *name = strrchr(type, '.');
    ses_quoted q = ses_quoted_of(type, strlen(type));
    if (strncmp(type, own, strlen(own)) != 0) {
        ses_fail(e, SES_EUNSUPPORTED, "\"type\" is \"%s\": code in the folder is never run", q.s);
        return NULL;
    }
    const ses_module_kind *k = ses_module_find(name + 1);
    if (!k)
        ses_fail(e, SES_EUNSUPPORTED,
                 "\"type\" \"%s\" is not supported (supported: Transformer, Pooling, Dense, LayerNorm, "
                 "Normalize, Dropout)",
                 q.s);
    return k;
}

/* A relative path without "..": below the folder. */
static bool is_inside(const char *path, size_t len)
{
    if (strlen(path) != len || *path == '/' || strchr(path, '\\') || strchr(path, ':')) return false;
    for (;;) {
        size_t part = strcspn(path, "/");
        if (part == 2 && !memcmp(path, "..", 2)) return false;
        if (!path[part]) return true;
        path += part + 1;
    }
}

static bool read_module(ses_module *m, const ses_json *entry, ses_err *e)
{
    size_t len;
    const char *type = ses_json_string(ses_json_get(entry, "type"), NULL);
    const char *path = ses_json_string(ses_json_get(entry, "path"), &len);
    if (!type) return ses_json_wrong_type("type", ses_json_get(entry, "type"), "a string", e);
    if (!path) return ses_json_wrong_type("path", ses_json_get(entry, "path"), "a string", e);
    if (!is_inside(path, len))
        return ses_fail(e, SES_EFORMAT, "\"path\" \"%s\" leaves the folder", ses_quoted_of(path, len).s);
    m->kind = find_kind(type, e);
    m->path = m->kind ? ses_strndup(path, len, e) : NULL;
    return m->path != NULL;
}

bool ses_modules_read(ses_modules *m, const ses_json *list, ses_err *e)
{
    if (ses_json_type_of(list) != SES_JSON_ARRAY)
        return ses_fail(e, SES_EFORMAT, "%s, expected an array", ses_json_type_name(ses_json_type_of(list)));
    if (ses_json_len(list) > SES_MAX_MODULES - 2) /* the caller may add two */
        return ses_fail(e, SES_EARG, "%zu modules, expected at most %d", ses_json_len(list),
                        SES_MAX_MODULES - 2);
    for (size_t i = 0; i < ses_json_len(list); i++)
        if (!read_module(&m->item[m->n++], ses_json_at(list, i), e)) return ses_wrap(e, "module %zu", i);
    if (!m->n || m->item[0].kind != &transformer)
        return ses_fail(e, SES_EUNSUPPORTED, "the first module is not a Transformer");
    bool pooled = false;
    for (size_t i = 1; i < m->n; i++) {
        const ses_module *x = &m->item[i];
        if (x->kind == &transformer)
            return ses_fail(e, SES_EUNSUPPORTED, "module %zu is a second Transformer", i);
        if (pooled && x->kind == &pooling)
            return ses_fail(e, SES_EUNSUPPORTED, "module %zu is a second Pooling", i);
        pooled |= x->kind == &pooling;
        if (!pooled)
            return ses_fail(e, SES_EUNSUPPORTED, "module %zu (%s) precedes the Pooling module", i,
                            x->kind->name);
    }
    return true;
}

void ses_modules_free(ses_modules *m)
{
    for (size_t i = 0; i < m->n; i++) ses_free(m->item[i].path);
    m->n = 0;
}
