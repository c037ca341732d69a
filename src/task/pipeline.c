/* A pipeline: a task, a model with the head it needs, the tokenizer beside it. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/json_list.h"
#include "base/str.h"
#include "base/suggest.h"
#include "task.h"
#include "tensor/device_impl.h"

#include <limits.h>
#include <stdio.h>

enum { HOST_BUDGET = 2048, DEVICE_BUDGET = 16384, UNLIMITED = 1 << 20 };

/* ---- the model ---- */

static bool no_fit(const ses_pipeline *p, const ses_model_desc *d, const ses_class *c, ses_err *e)
{
    char can[512];
    ses_tasks_supported(d, c, can, sizeof can);
    return ses_fail(e, SES_EUNSUPPORTED, "a %s does not serve %s; it serves %s", c->name,
                    ses_task_canonical_name(p->task), can);
}

/* How to open the model: as its own class when that has a head for the task; else for its hidden states
 * alone, of an encoder and decoder the latter's. */
static bool pick_class(const ses_pipeline *p, const ses_json *config, ses_model_options *o, ses_err *e)
{
    const ses_model_desc *d = ses_config_find_model(config, e);
    const ses_class *c = d ? ses_config_class(d, config, NULL, e) : NULL;
    if (!c) return false;
    if (p->task->head) return ses_task_supports(p->task, d, c) || no_fit(p, d, c, e);
    if (d->encoder_decoder && !c->encoder_only && !p->task->encoder_alone)
        o->class_name = d->class[0].name;
    else
        o->no_head = true;
    return true;
}

static const ses_head_use *find_use(const ses_task *t, const ses_class *c)
{
    for (const ses_head *const *h = t->head; h && *h; h++)
        for (size_t i = 0; i < SES_LEN(c->head); i++)
            if (c->head[i].head == *h) return &c->head[i];
    return NULL;
}

static bool open_model(ses_pipeline *p, ses_err *e)
{
    ses_json_doc *doc = ses_model_config_open(p->dir, p->base, e);
    ses_model_options o = { .base = p->base };
    if (!doc) return false;
    if (!pick_class(p, ses_json_root(doc), &o, e)) {
        ses_json_free(doc);
        return ses_wrap(e, "%s/config.json", p->dir);
    }
    p->model = ses_model_open_config(p->dir, doc, p->dev, &o, e);
    if (p->model) p->use = find_use(p->task, p->model->class);
    return p->model != NULL;
}

/* The folder's own, or, where an adapter came without one, its model's. */
static bool open_tokenizer(ses_pipeline *p, ses_err *e)
{
    bool adapter = ses_model_is_adapter(p->dir);
    p->tokenizer = ses_tokenizer_open_lower(p->dir, p->lower, adapter ? NULL : e);
    if (p->tokenizer || !adapter) return p->tokenizer != NULL;
    char *dir = ses_model_base_dir(p->dir, p->base, e);
    if (!dir) return false;
    ses_free(p->dir);
    p->dir = dir;
    p->tokenizer = ses_tokenizer_open_lower(p->dir, p->lower, e);
    return p->tokenizer != NULL;
}

static bool check_fit(const ses_pipeline *p, ses_err *e)
{
    int64_t has = ses_tokenizer_vocab_size(p->tokenizer), takes = ses_model_vocab_size(p->model);
    return has <= takes || ses_fail(e, SES_EARG,
                                    "%s: the tokenizer has ids up to %lld, the model's embedding table has "
                                    "%lld rows: they do not belong together",
                                    p->dir, (long long)has - 1, (long long)takes);
}

static void set_limit(ses_pipeline *p)
{
    int64_t model = ses_model_max_tokens(p->model);
    const ses_tokenizer_config *f = &p->facts;
    p->most = p->limit = model;
    if (f->truncation_max_length && f->truncation_max_length < p->limit) p->limit = f->truncation_max_length;
    if (f->model_max_length && f->model_max_length < p->limit &&
        (p->task->tokenizer_limit || model >= UNLIMITED))
        p->limit = f->model_max_length;
}

/* ---- opening ---- */

ses_pipeline *ses_pipeline_new(const ses_task *task, const char *dir, const char *base, ses_device *dev,
                               void *args, ses_err *e)
{
    ses_pipeline *p = ses_alloc(sizeof *p, e);
    if (!p) return NULL;
    p->task = task;
    p->dev = dev;
    p->args = args;
    p->want.logits = true;
    p->budget = dev->is_host ? HOST_BUDGET : DEVICE_BUDGET;
    p->dir = ses_model_resolve(dir, NULL, e);
    if (p->dir && base && !(p->base = ses_strdup(base, e))) goto fail;
    p->self = p->dir ? ses_arena_array(&p->mem, 1, task->self_size, e) : NULL;
    if (!p->self || !(task->load ? task->load(p, e) : open_model(p, e))) goto fail;
    if (!open_tokenizer(p, e) || !check_fit(p, e) ||
        !ses_tokenizer_config_read(&p->facts, p->dir, ses_model_type(p->model), ses_model_sets_segments,
                                   p->tokenizer, e))
        goto fail;
    set_limit(p);
    p->tokens = ses_tokens_new(p->tokenizer, e);
    p->tape = p->tokens ? ses_tape_new(dev, NULL, e) : NULL;
    if (p->tape && (!task->open || task->open(p, e))) return p;
fail:
    ses_pipeline_free(p);
    return NULL;
}

/* "top_k" is --top-k. */
static bool same_name(const char *option, const char *name)
{
    for (; *option && *name; option++, name++)
        if (*option != *name && !(*option == '-' && *name == '_')) return false;
    return *option == *name;
}

static bool apply(const ses_task *t, void *args, const ses_setting *s, ses_err *e)
{
    ses_suggestion near = { .word = s->name };
    for (size_t i = 0; i < t->n_opt; i++) {
        if (same_name(t->opt[i].name, s->name)) return ses_opt_set(&t->opt[i], args, s->name, s->value, e);
        ses_suggest_offer(&near, t->opt[i].name, strlen(t->opt[i].name));
    }
    ses_fail(e, SES_EUSAGE, "%s has no option \"%s\"", ses_task_canonical_name(t), s->name);
    return ses_suggest_add(&near, "", e);
}

/* Texts of options are borrowed; these are to last as long as the pipeline. */
static ses_setting copy_setting(ses_arena *mem, const ses_setting *s, ses_err *e)
{
    return (ses_setting){ s->name, s->value ? ses_arena_strndup(mem, s->value, strlen(s->value), e) : NULL };
}

ses_pipeline *ses_pipeline_open(const char *task, const char *dir, ses_device *dev, const ses_setting *set,
                                ses_err *e)
{
    const ses_task_entry *named = ses_task_require(task, e);
    const ses_task *t = named ? named->task : NULL;
    void *args = t ? ses_alloc(t->args_size, e) : NULL;
    ses_arena mem = { .min_block = 1024 };
    bool ok = args && ses_opt_defaults(t->opt, t->n_opt, args, e);
    for (; ok && set && set->name; set++) {
        ses_setting s = copy_setting(&mem, set, e);
        ok = (s.value || !set->value) && apply(t, args, &s, e);
    }
    const char *called = ok ? ses_arena_strndup(&mem, task, strlen(task), e) : NULL;
    ok = called && ses_task_set_called_name(t, args, called, e);
    ses_pipeline *p = ok ? ses_pipeline_new(t, dir, NULL, dev, args, e) : NULL;
    if (p) {
        p->own_args = true;
        p->args_mem = mem;
    } else if (args) {
        ses_opt_free(t->opt, t->n_opt, args);
        ses_free(args);
        ses_arena_free(&mem);
    }
    return p;
}

void ses_pipeline_free(ses_pipeline *p)
{
    if (!p) return;
    ses_runner_free(p);
    ses_tape_free(p->tape);
    if (p->self && p->task->close) p->task->close(p);
    ses_tokens_free(p->tokens);
    ses_tokenizer_free(p->tokenizer);
    if (!p->borrowed) ses_model_free(p->model);
    ses_arena_free(&p->mem);
    ses_buf_free(&p->remarks);
    ses_free(p->base);
    ses_free(p->dir);
    if (p->own_args) {
        ses_opt_free(p->task->opt, p->task->n_opt, p->args);
        ses_free(p->args);
    }
    ses_arena_free(&p->args_mem);
    ses_free(p);
}

void ses_pipeline_set_stream(ses_pipeline *p, ses_stream_fn *fn, void *ctx)
{
    p->stream = fn;
    p->stream_ctx = ctx;
}

const char *ses_pipeline_warnings(const ses_pipeline *p) { return p->remarks.data ? p->remarks.data : ""; }

bool ses_pipeline_warn(ses_pipeline *p, ses_err *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    ses_buf_vappendf(&p->remarks, fmt, ap);
    va_end(ap);
    ses_buf_put(&p->remarks, '\n');
    return ses_buf_ok(&p->remarks, e);
}

/* ---- items from JSON ---- */

/* The value under one of "a|b|c"; NULL: none of them is there. */
static const ses_json *get_any(const ses_json *v, const char *names)
{
    const char *word;
    size_t n;
    for (size_t i = 0; ses_list_at(names, i, &word, &n); i++) {
        char key[64];
        snprintf(key, sizeof key, "%.*s", (int)n, word);
        const ses_json *found = ses_json_get(v, key);
        if (found && ses_json_type_of(found) != SES_JSON_NULL) return found;
    }
    return NULL;
}

static int first_len(const char *names) { return (int)strcspn(names, "|"); }

static bool read_text(const ses_json *v, const char *names, bool need, ses_string *out, ses_err *e)
{
    const ses_json *s = names ? get_any(v, names) : NULL;
    if (!s)
        return !need || !names ||
               ses_fail(e, SES_EFORMAT, "key \"%.*s\" is missing", first_len(names), names);
    out->p = ses_json_string(s, &out->n);
    return out->p || ses_fail(e, SES_EFORMAT, "key \"%.*s\" must be a string, not %s", first_len(names),
                              names, ses_json_type_name(ses_json_type_of(s)));
}

static bool read_list(const ses_json *v, const char *names, bool need, ses_item *item, ses_string **list,
                      ses_err *e)
{
    const ses_json *a = names ? get_any(v, names) : NULL;
    if (!a)
        return !need || !names ||
               ses_fail(e, SES_EFORMAT, "key \"%.*s\" is missing", first_len(names), names);
    size_t n;
    *list = ses_json_strings(a, &n, e);
    if (!*list) return ses_wrap(e, "key \"%.*s\"", first_len(names), names);
    item->list = *list;
    item->n_list = n;
    return true;
}

bool ses_pipeline_item_from_json(const ses_pipeline *p, const ses_json *v, ses_item *item, ses_string **list,
                                 ses_err *e)
{
    const ses_item_schema *parts = &p->task->item_schema;
    *list = NULL;
    if (ses_json_type_of(v) == SES_JSON_STRING) {
        item->text.p = ses_json_string(v, &item->text.n);
        return true;
    }
    if (ses_json_type_of(v) != SES_JSON_OBJECT)
        return ses_fail(e, SES_EFORMAT, "an object or a string is expected, not %s",
                        ses_json_type_name(ses_json_type_of(v)));
    if (!read_list(v, parts->list, parts->requires_list, item, list, e)) return false;
    bool given = ses_task_has_pair_option(p->task, p->args);
    bool need = !(parts->list_replaces_text && item->list) && !given; /* words stand for the text */
    if (!read_text(v, parts->text, need, &item->text, e) ||
        !read_text(v, parts->pair, parts->requires_pair && !given, &item->pair, e))
        return false;
    return item->text.p || item->pair.p || item->list ||
           ses_fail(e, SES_EFORMAT, "key \"%.*s\" is missing", first_len(parts->text), parts->text);
}
