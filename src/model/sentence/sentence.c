/* Sentence encoders: pooled hidden states of a model, and the modules that follow. */
#include "sentence_impl.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "hub/hub_cache.h"
#include "model/model_desc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CONFIG_MAX = 16 << 20 };

/* ---- opening ---- */

/* Loads dir/path/name; *doc is NULL if the file does not exist. */
static bool load_json(const char *dir, const char *path, const char *name, ses_json_doc **doc, ses_err *e)
{
    char *folder = ses_path_join(dir, path, e), *full = folder ? ses_path_join(folder, name, e) : NULL;
    bool ok = full != NULL;
    *doc = NULL;
    if (ok && ses_path_exists(full)) ok = (*doc = ses_json_load(full, CONFIG_MAX, e)) != NULL;
    ses_free(full);
    ses_free(folder);
    return ok;
}

static bool read_list(ses_sentence *s, const ses_sentence_options *o, ses_err *e)
{
    ses_modules *m = &s->modules;
    ses_json_doc *doc = NULL;
    bool ok = !s->dir || load_json(s->dir, "", "modules.json", &doc, e);
    if (ok && doc && !ses_modules_read(m, ses_json_root(doc), e)) ok = ses_wrap(e, "%s/modules.json", s->dir);
    bool listed = doc != NULL;
    ses_json_free(doc);
    if (!ok) return false;
    if (!listed) m->item[m->n++] = (ses_module){ .kind = ses_module_find("Transformer") };
    if (m->n == 1 && listed && !o->pooling)
        return ses_fail(e, SES_EUNSUPPORTED, "%s/modules.json: no Pooling module: not a sentence encoder",
                        s->dir);
    if (m->n == 1) {
        m->item[m->n] =
            (ses_module){ .kind = ses_module_find("Pooling"), .pool = { SES_SENTENCE_POOL_MEAN } };
        m->item[m->n++].pools = 1;
    }
    return true;
}

/* Reads the configs of the modules. Modules added by options (path NULL) have none. */
static bool read_modules(ses_sentence *s, const ses_sentence_options *o, ses_err *e)
{
    for (size_t i = 1; i < s->modules.n; i++) {
        ses_module *m = &s->modules.item[i];
        ses_json_doc *doc = NULL;
        if (!m->path) continue;
        if (!load_json(s->dir, m->path, "config.json", &doc, e)) return false;
        bool ok = doc || !m->kind->config || ses_fail(e, SES_EFORMAT, "file not found");
        ok = ok && m->kind->read(m, ses_json_root(doc), e);
        ses_json_free(doc);
        if (!ok) return ses_wrap(e, "%s/%s/config.json", s->dir, m->path);
    }
    return !o->pooling || ses_module_pools(&s->modules.item[1], o->pooling, e);
}

static void choose_normalize(ses_sentence *s, ses_normalize choice)
{
    ses_modules *m = &s->modules;
    bool does = ses_sentence_normalizes(s);
    if (choice == SES_NORMALIZE_OFF && does) {
        ses_free(m->item[--m->n].path);
        m->item[m->n] = (ses_module){ 0 };
    }
    if (choice == SES_NORMALIZE_ON && !does)
        m->item[m->n++] = (ses_module){ .kind = ses_module_find("Normalize") };
}

/* Maximum length and case: sentence_bert_config.json (or its other names), tokenizer_config.json. */
static bool read_limits(ses_sentence *s, ses_err *e)
{
    static const char *const names[] = {
        "sentence_bert_config.json",      "sentence_roberta_config.json", "sentence_distilbert_config.json",
        "sentence_camembert_config.json", "sentence_albert_config.json",  "sentence_xlm-roberta_config.json",
        "sentence_xlnet_config.json"
    };
    ses_json_doc *doc = NULL, *tokenizer = NULL;
    for (size_t i = 0; s->model_dir && !doc && i < SES_LEN(names); i++)
        if (!load_json(s->model_dir, "", names[i], &doc, e)) return false;
    if (s->model_dir && !load_json(s->model_dir, "", "tokenizer_config.json", &tokenizer, e)) {
        ses_json_free(doc);
        return false;
    }
    const ses_json *c = ses_json_root(doc), *given = ses_json_get(c, "max_seq_length");
    const char *task = ses_json_string(ses_json_get(c, "transformer_task"), NULL);
    const ses_json *text = ses_json_get(ses_json_get(c, "modality_config"), "text");
    const char *output = ses_json_string(ses_json_get(text, "method_output_name"), NULL);
    int64_t n;
    if (ses_json_type_of(given) == SES_JSON_NULL)
        given = ses_json_get(ses_json_root(tokenizer), "model_max_length");
    s->max_tokens = ses_model_max_tokens(s->model);
    if (ses_json_int(given, &n) && n > 0 && n < s->max_tokens) s->max_tokens = n;
    ses_json_bool(ses_json_get(c, "do_lower_case"), &s->lower_case);
    bool plain =
        (!task || !strcmp(task, "feature-extraction")) && (!output || !strcmp(output, "last_hidden_state"));
    if (!plain)
        ses_fail(
            e, SES_EUNSUPPORTED,
            "%s: the model's \"%s\" is used, only feature-extraction by its last_hidden_state is supported",
            s->model_dir, ses_quoted_of(output ? output : task, strlen(output ? output : task)).s);
    ses_json_free(tokenizer);
    ses_json_free(doc);
    return plain;
}

static bool choose_layer(ses_sentence *s, int64_t layer, ses_err *e)
{
    int64_t depth = s->model->stack[0].depth, i = layer < 0 ? depth + 1 + layer : layer;
    if (i < 0 || i > depth)
        return ses_fail(e, SES_EARG, "layer %lld requested, but the model has %lld", (long long)layer,
                        (long long)depth);
    s->needs_hidden_states = layer && i != depth;
    snprintf(s->layer, sizeof s->layer, "last_hidden_state");
    if (s->needs_hidden_states) snprintf(s->layer, sizeof s->layer, "hidden_states.%d", (int)i);
    return true;
}

static bool open_model(ses_sentence *s, ses_device *dev, const ses_sentence_options *o, ses_err *e)
{
    const char *path = s->modules.item[0].path;
    ses_model_options m = { .no_head = true,
                            .train = o->train,
                            .check_only = o->check_only,
                            .no_packing = o->no_packing,
                            .seed = o->seed,
                            .adapter_options = o->adapter_options,
                            .base = o->base };
    if (s->dir) s->model_dir = path && *path ? ses_path_join(s->dir, path, e) : ses_strdup(s->dir, e);
    if (s->dir && !s->model_dir) return false;
    s->model = o->model ? ses_model_hidden_view(o->model, true, e)
               : s->dir ? ses_model_open(s->model_dir, dev, &m, e)
                        : ses_model_new(o->config, dev, &m, e);
    if (!s->model || !read_limits(s, e)) return false;
    if (o->max_tokens > 0 && o->max_tokens < ses_model_max_tokens(s->model)) s->max_tokens = o->max_tokens;
    const ses_module *pooling = &s->modules.item[1];
    for (int i = 0; o->pooling && i < pooling->pools; i++)
        if (pooling->pool[i] == SES_SENTENCE_POOL_FIRST &&
            !ses_model_check_first_token(s->model, "--pooling cls", e))
            return false;
    return choose_layer(s, o->layer, e);
}

/* ---- weights of the modules ---- */

/* Loads the checkpoint of module i into the store's parameters from `from` on. */
static bool load_module(ses_sentence *s, size_t i, size_t from, size_t to, const ses_model_options *o,
                        ses_err *e)
{
    char *path = ses_path_join(s->dir, s->modules.item[i].path, e);
    if (path && !s->file[i]) s->file[i] = ses_checkpoint_open(path, e);
    bool ok = path && s->file[i];
    for (size_t p = from; ok && p < to; p++) {
        /* after the module's number */
        const char *name = strchr(ses_store_at(s->store, p)->name, '.') + 1;
        const ses_tensor_entry *x = ses_safetensors_find(s->file[i], name);
        ok = x ? ses_param_load(s->store, p, s->file[i], x, o, true, e) ||
                     ses_wrap(e, "%s: tensor \"%s\"", x->file, name)
               : ses_fail(e, SES_EFORMAT, "tensor \"%s\" is missing", name);
        if (!ok) ses_wrap(e, "%s", path);
    }
    ses_free(path);
    return ok;
}

static bool load_modules(ses_sentence *s, const size_t *first, const ses_model_options *o, ses_err *e)
{
    for (size_t i = 1; i < s->modules.n; i++)
        if (s->modules.item[i].kind->weights && !load_module(s, i, first[i], first[i + 1], o, e))
            return false;
    return true;
}

/* Width of the hidden states. */
static int64_t model_width(const ses_model *m)
{
    const ses_tensor *out = m->stack[0].project_out.w;
    return out ? out->dim[0] : m->c.hidden;
}

static bool add_modules(ses_sentence *s, ses_device *dev, const ses_sentence_options *o, ses_err *e)
{
    size_t first[SES_MAX_MODULES + 1] = { 0 };
    ses_model_options check = { .check_only = true }, load = { .train = o->train };
    s->width = model_width(s->model);
    s->store = ses_store_new(dev, e);
    if (!s->store) return false;
    for (size_t i = 1; i < s->modules.n; i++) {
        ses_module *m = &s->modules.item[i];
        if (m->kind->add && !m->kind->add(m, s->store, (int)i, &s->width, e))
            return ses_wrap(e, "%s/%s", s->dir, m->path ? m->path : m->kind->name);
        first[i + 1] = ses_store_count(s->store);
    }
    if (!load_modules(s, first, &check, e)) return false;
    if (o->check_only) return true;
    if (o->train && ses_store_count(s->store) && !ses_store_alloc_trainable(s->store, e)) return false;
    bool ok = load_modules(s, first, &load, e) && (o->train || ses_store_finalize(s->store, e));
    ses_store_sync_bf16(s->store);
    return ok;
}

ses_sentence *ses_sentence_open(const char *name, ses_device *dev, const ses_sentence_options *options,
                                ses_err *e)
{
    ses_sentence_options o = options ? *options : (ses_sentence_options){ 0 };
    ses_sentence *s = ses_alloc(sizeof *s, e);
    if (!s) return NULL;
    if (name && !(s->dir = ses_model_resolve(name, NULL, e))) goto fail;
    if ((s->dir && !load_json(s->dir, "", "config_sentence_transformers.json", &s->st_config, e)) ||
        !read_list(s, &o, e) || !read_modules(s, &o, e))
        goto fail;
    choose_normalize(s, o.normalize);
    if (open_model(s, dev, &o, e) && add_modules(s, dev, &o, e)) return s;
fail:
    if (!s->model_dir) ses_hub_explain(s->dir, e); /* opening the model has explained it */
    ses_sentence_free(s);
    return NULL;
}

void ses_sentence_free(ses_sentence *s)
{
    if (!s) return;
    ses_store_free(s->store);
    for (size_t i = 0; i < SES_LEN(s->file); i++) ses_safetensors_free(s->file[i]);
    ses_model_free(s->model);
    ses_modules_free(&s->modules);
    ses_json_free(s->st_config);
    ses_free(s->model_dir);
    ses_free(s->dir);
    ses_free(s);
}

/* ---- pooling ---- */

static bool pooled_tokens_of(ses_pooled_tokens *f, ses_tape *t, const ses_batch *b, const int32_t *prompt)
{
    *f = (ses_pooled_tokens){ .b = b, .host_cu = b->cu_seqlens };
    f->skipped = ses_tape_host_alloc(t, (size_t)b->seqs, sizeof *f->skipped);
    int32_t *cu = ses_tape_host_alloc(t, (size_t)b->seqs + 1, sizeof *cu);
    if (!f->skipped || !cu) return false;
    for (int64_t s = 0; prompt && s < b->seqs; s++) {
        int32_t len = b->cu_seqlens[s + 1] - b->cu_seqlens[s], skip = prompt[s] < 0 ? 0 : prompt[s];
        f->skipped[s] = skip < len ? skip : len;
        cu[s + 1] = cu[s] + len - f->skipped[s];
    }
    if (prompt) f->host_cu = cu;
    return true;
}

/* x: rows of all tokens. */
static bool pooled_fill(ses_pooled_tokens *f, ses_tape *t, ses_tensor *x)
{
    const ses_batch *b = f->b;
    int64_t n = 0;
    f->x = f->all = x;
    f->cu = ses_tape_ints(t, f->host_cu, b->seqs + 1);
    if (f->host_cu == b->cu_seqlens) return true;
    int32_t *row = ses_tape_host_alloc(t, (size_t)b->tokens, sizeof *row);
    if (!row) return false;
    for (int64_t s = 0; s < b->seqs; s++)
        for (int32_t i = b->cu_seqlens[s] + f->skipped[s]; i < b->cu_seqlens[s + 1]; i++) row[n++] = i;
    /* a tensor has at least one row, even if unused */
    f->x = ses_gather(t, x, ses_tape_ints(t, row, n ? n : 1));
    return true;
}

static ses_tensor *pool_one(const ses_pooled_tokens *f, ses_tape *t, ses_sentence_pool mode)
{
    static ses_tensor *(*const run[])(const ses_pooled_tokens *, ses_tape *) = {
#define SES_SENTENCE_POOL(id, function, name, legacy_key) ses_sentence_pool_##function,
#include "sentence_pools.def"
#undef SES_SENTENCE_POOL
    };
    return run[mode](f, t);
}

/* All pooling modes, concatenated. */
static ses_tensor *pool(const ses_module *m, ses_tape *t, ses_pooled_tokens *f, ses_tensor *x)
{
    if (!x || !pooled_fill(f, t, x)) return NULL;
    ses_tensor *y = pool_one(f, t, m->pool[0]);
    for (int i = 1; y && i < m->pools; i++) {
        ses_tensor *const pair[] = { y, pool_one(f, t, m->pool[i]) };
        y = ses_concat(t, 2, pair);
    }
    return y;
}

/* The rows to request from the model if one token per sequence is pooled; NULL: all are needed. */
static const int32_t *requested_rows(const ses_sentence *s, ses_tape *t, const ses_pooled_tokens *f)
{
    const ses_module *m = &s->modules.item[1];
    bool one =
        m->pools == 1 && (m->pool[0] == SES_SENTENCE_POOL_FIRST || m->pool[0] == SES_SENTENCE_POOL_LAST);
    const int32_t *row = one && !s->needs_hidden_states ? ses_sentence_single_token(f, t, m->pool[0]) : NULL;
    for (int64_t i = 0; row && i < f->b->seqs; i++)
        if (row[i] == SES_IGNORE_INDEX) return NULL;
    return row;
}

ses_tensor *ses_sentence_embed(const ses_sentence *s, ses_tape *t, const ses_batch *b, const int32_t *prompt,
                               ses_err *e)
{
    const ses_module *m = &s->modules.item[1];
    ses_outputs out;
    ses_tensor *x = NULL;
    ses_pooled_tokens f;
    if (!pooled_tokens_of(&f, t, b, m->skip_prompt ? prompt : NULL)) {
        ses_tape_ok(t, e); /* sets the error */
        return NULL;
    }
    ses_output_request request = { .hidden_states = s->needs_hidden_states,
                                   .rows = requested_rows(s, t, &f),
                                   .n_rows = b->seqs };
    if (!ses_model_forward(s->model, t, b, &request, &out, e)) return NULL;
    const ses_output *states = ses_outputs_find(&out, s->layer);
    if (states) x = states->tensor;
    if (!request.rows) x = pool(m, t, &f, x);
    for (size_t i = 2; i < s->modules.n; i++) {
        x = s->modules.item[i].kind->run(&s->modules.item[i], t, x);
        ses_tape_wrap_error(t, "module %zu (%s)", i, s->modules.item[i].kind->name);
    }
    return ses_tape_ok(t, e) ? x : NULL;
}

/* ---- properties ---- */

ses_model *ses_sentence_model(const ses_sentence *s) { return s->model; }
ses_store *ses_sentence_store(const ses_sentence *s) { return s->store; }
const char *ses_sentence_dir(const ses_sentence *s) { return s->model_dir; }
int64_t ses_sentence_width(const ses_sentence *s) { return s->width; }
int64_t ses_sentence_max_tokens(const ses_sentence *s) { return s->max_tokens; }
bool ses_sentence_lower_case(const ses_sentence *s) { return s->lower_case; }
bool ses_sentence_pools_prompt(const ses_sentence *s) { return !s->modules.item[1].skip_prompt; }
size_t ses_sentence_module_count(const ses_sentence *s) { return s->modules.n; }

bool ses_sentence_normalizes(const ses_sentence *s)
{
    return s->modules.n && s->modules.item[s->modules.n - 1].kind == ses_module_find("Normalize");
}

const char *ses_sentence_similarity(const ses_sentence *s)
{
    const char *name = ses_json_string(ses_json_get(ses_json_root(s->st_config), "similarity_fn_name"), NULL);
    return name ? name : "cosine";
}

static const ses_json *prompts(const ses_sentence *s)
{
    return ses_json_get(ses_json_root(s->st_config), "prompts");
}

const char *ses_sentence_prompt(const ses_sentence *s, const char *name)
{
    if (!name) name = ses_json_string(ses_json_get(ses_json_root(s->st_config), "default_prompt_name"), NULL);
    return name ? ses_json_string(ses_json_get(prompts(s), name), NULL) : NULL;
}

size_t ses_sentence_prompt_count(const ses_sentence *s)
{
    return ses_json_type_of(prompts(s)) == SES_JSON_OBJECT ? ses_json_len(prompts(s)) : 0;
}

const char *ses_sentence_prompt_name(const ses_sentence *s, size_t i)
{
    return ses_json_key(prompts(s), i, NULL);
}

const char *ses_sentence_describe(const ses_sentence *s, size_t i, char *buf, size_t n)
{
    const ses_module *m = &s->modules.item[i];
    int at = snprintf(buf, n, "%s", m->kind->name);
    if (m->dense.w)
        snprintf(buf + at, n - (size_t)at, " (%lld to %lld, %s)", (long long)m->in, (long long)m->out,
                 m->act ? ses_act_name(m->act) : "linear");
    for (int p = 0; p < m->pools && (size_t)at < n; p++)
        at +=
            snprintf(buf + at, n - (size_t)at, "%s%s%s", p ? ", " : " (", ses_sentence_pool_name(m->pool[p]),
                     p + 1 < m->pools ? ""
                     : m->skip_prompt ? ", without the prompt)"
                                      : ")");
    return buf;
}

bool ses_sentence_is_encoder_dir(const char *dir)
{
    char *path = ses_path_join(dir, "modules.json", NULL);
    bool is = path && ses_path_exists(path);
    ses_free(path);
    return is;
}

ses_model *ses_sentence_open_whole(const ses_sentence *s, ses_device *dev, const ses_model_options *options,
                                   ses_err *e)
{
    ses_model_options o = *options;
    ses_model *m = ses_model_open(ses_sentence_dir(s), dev, &o, NULL);
    o.no_head = true;
    return m ? m : ses_model_open(ses_sentence_dir(s), dev, &o, e);
}
