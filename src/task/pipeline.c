/* Opens a pipeline: the model with the head its task needs, and the tokenizer of the same folder.
 * runner.c runs items through it. */
#include "base/alloc.h"
#include "base/elmo/word_chars.h"
#include "base/file.h"
#include "pipeline_impl.h"
#include "tensor/device_impl.h"
#include "text/tokenizer_files.h"

/* NO_LIMIT: models without a position table report at least this many tokens as their maximum. */
enum { HOST_BATCH_TOKENS = 2048, DEVICE_BATCH_TOKENS = 16384, NO_LIMIT = 1 << 20 };

/* ---- the model ---- */

static bool unsupported(const ses_task *t, const ses_model_desc *d, const ses_class *c, ses_err *e)
{
    char supported[512];
    ses_tasks_supported(d, c, supported, sizeof supported);
    return ses_fail(e, SES_EUNSUPPORTED, "%s does not support %s; it supports %s", c->name,
                    ses_task_canonical_name(t), supported);
}

/* A task with a head opens the model as the class config.json names. A task without one needs hidden
 * states only: of the decoder in an encoder-decoder model, unless the task uses the encoder alone. */
static bool choose_class(const ses_task *t, const ses_json *config, ses_model_options *o, ses_err *e)
{
    const ses_model_desc *d = ses_config_find_model(config, e);
    const ses_class *c = d ? ses_config_class(d, config, NULL, e) : NULL;
    if (!c) return false;
    if (t->head) return ses_task_supports(t, d, c) || unsupported(t, d, c, e);
    if (d->encoder_decoder && !c->encoder_only && !t->uses_encoder_only)
        o->class_name = d->class[0].name;
    else
        o->no_head = true;
    return true;
}

static bool load_model(ses_pipeline *p, ses_err *e)
{
    ses_model_options o = { .base = p->base_model, .adapters = p->adapters, .n_adapters = p->n_adapters };
    ses_json_doc *config = ses_model_config_open(p->dir, p->base_model, e);
    if (!config) return false;
    if (!choose_class(p->task, ses_json_root(config), &o, e)) {
        ses_json_free(config);
        return ses_wrap(e, "%s/config.json", p->dir);
    }
    p->model = p->own_model = ses_model_open_config(p->dir, config, p->dev, &o, e); /* takes config */
    return p->model != NULL;
}

/* A model the caller has opened must be of a class the task could have chosen. */
static bool share_model(ses_pipeline *p, const ses_pipeline_options *o, ses_err *e)
{
    const ses_task *t = p->task;
    p->encoder = o->encoder;
    p->model = o->model ? o->model : ses_sentence_model(o->encoder);
    p->dev = p->model->dev;
    if (t->head)
        return ses_task_supports(t, p->model->desc, p->model->class) ||
               unsupported(t, p->model->desc, p->model->class, e);
    if (t->load_model || p->original) return true; /* a sentence encoder makes a view itself */
    p->model = p->own_model = ses_model_hidden_view(p->model, t->uses_encoder_only, e);
    return p->model != NULL;
}

static const ses_head_use *find_head(const ses_task *t, const ses_class *c)
{
    for (const ses_head *const *h = t->head; h && *h; h++)
        for (size_t i = 0; i < SES_LEN(c->head); i++)
            if (c->head[i].head == *h) return &c->head[i];
    return NULL;
}

static bool open_model(ses_pipeline *p, const ses_pipeline_options *o, ses_err *e)
{
    bool shared = o->model || o->encoder;
    if (shared && !share_model(p, o, e)) return false;
    if (p->task->load_model ? !p->task->load_model(p, e) : !shared && !load_model(p, e)) return false;
    p->head = find_head(p->task, p->model->class);
    int64_t chars = p->model->stack[0].c ? p->model->stack[0].c->chars.per_word : 0;
    if (chars) p->stats.max_word_bytes = ses_word_max_bytes(chars);
    return true;
}

/* ---- the tokenizer ---- */

static bool load_tokenizer(ses_pipeline *p, ses_err *e)
{
    char *dir = ses_tokenizer_home(p->dir, p->base_model, e);
    if (!dir) return false;
    ses_free(p->dir);
    p->dir = dir;
    p->own_tokenizer = ses_tokenizer_open_lower(p->dir, p->settings.lowercase, e);
    return p->own_tokenizer != NULL;
}

static bool check_vocab_size(const ses_pipeline *p, ses_err *e)
{
    int64_t tokenizer = ses_tokenizer_vocab_size(p->tokenizer), model = ses_model_source_vocab_size(p->model);
    return tokenizer <= model ||
           ses_fail(
               e, SES_EARG,
               "%s: the tokenizer has ids up to %lld, but the model's embedding table has only %lld rows: "
               "they belong to different models",
               p->dir, (long long)tokenizer - 1, (long long)model);
}

bool ses_target_tokenizer_open(const char *dir, const ses_model *m, ses_tokenizer **t,
                               ses_encode_ctx **tokens, ses_err *e)
{
    if (!ses_tokenizer_open_target(dir, t, e)) return false;
    if (!*t) return true;
    if (ses_tokenizer_vocab_size(*t) > ses_model_vocab_size(m))
        return ses_fail(e, SES_EARG,
                        "%s: the tokenizer of the target has ids up to %lld, but the decoder only %lld: they "
                        "belong to different models",
                        dir, (long long)ses_tokenizer_vocab_size(*t) - 1, (long long)ses_model_vocab_size(m));
    *tokens = ses_encode_ctx_new(*t, e);
    return *tokens != NULL;
}

static bool open_target_tokenizer(ses_pipeline *p, ses_err *e)
{
    const ses_tokenizer *t = p->original ? p->original->target_tokenizer : NULL;
    p->target_tokenizer = p->tokenizer, p->target_tokens = p->tokens;
    if (!p->model->stack[1].layer || t == p->tokenizer) return true;
    if (t)
        p->own_target_tokens = ses_encode_ctx_new(t, e);
    else if (!ses_target_tokenizer_open(p->dir, p->model, &p->own_target_tokenizer, &p->own_target_tokens, e))
        return false;
    if (!t) t = p->own_target_tokenizer;
    if (t) p->target_tokenizer = t, p->target_tokens = p->own_target_tokens;
    return !t || p->target_tokens;
}

static bool open_tokenizer(ses_pipeline *p, const ses_tokenizer *shared, ses_err *e)
{
    if (!shared && !load_tokenizer(p, e)) return false;
    p->tokenizer = shared ? shared : p->own_tokenizer;
    p->tokens = ses_encode_ctx_new(p->tokenizer, e);
    if (!p->tokens || !check_vocab_size(p, e) || !open_target_tokenizer(p, e)) return false;
    if (p->original) p->tokenizer_config = p->original->tokenizer_config;
    return p->original || ses_tokenizer_config_read(&p->tokenizer_config, p->dir, ses_model_type(p->model),
                                                    ses_model_sets_segments, p->tokenizer, e);
}

/* The shortest of the limits that apply: the model's, the one stored in tokenizer.json, model_max_length. */
static void set_default_max_seq_len(ses_pipeline *p)
{
    const ses_tokenizer_config *c = &p->tokenizer_config;
    int64_t model = ses_model_max_tokens(p->model), limit = model;
    if (c->truncation_max_length && c->truncation_max_length < limit) limit = c->truncation_max_length;
    bool apply = p->task->uses_tokenizer_max_length || model >= NO_LIMIT;
    if (apply && c->model_max_length && c->model_max_length < limit) limit = c->model_max_length;
    p->settings.model_max_tokens = model;
    p->settings.max_seq_len = limit;
}

/* ---- classifiers that read texts ---- */

static bool is_classifier(const ses_pipeline *p, const ses_pipeline_options *o)
{
    if (p->original) return p->original->classifier != NULL;
    return !o->model && !o->encoder && ses_classifier_is_dir(p->dir); /* other errors: load_model */
}

static bool open_classifier(ses_pipeline *p, ses_err *e)
{
    const ses_pipeline *from = p->original;
    const ses_task *t = from && from->task == p->task ? p->task : p->task->ways[SES_WAY_CLASSIFIER];
    if (!t)
        return ses_fail(e, SES_EUNSUPPORTED, "%s: a classifier of texts does not support %s", p->dir,
                        ses_task_canonical_name(p->task));
    p->task = t;
    p->settings.batch_tokens = HOST_BATCH_TOKENS;
    if (from)
        p->classifier = from->classifier, p->config = from->config;
    else {
        p->config = ses_classifier_config_open(p->dir, e);
        p->classifier = p->config ? ses_classifier_open(p->dir, ses_json_root(p->config), e) : NULL;
    }
    return p->classifier && (!t->open || t->open(p, e));
}

/* ---- open and free ---- */

static const ses_pipeline_options no_options;

static const char *folder_of(const char *dir, const ses_pipeline_options *o)
{
    if (dir) return dir;
    return o->model ? o->model->dir : o->encoder ? ses_sentence_dir(o->encoder) : NULL;
}

static bool open_pipeline(ses_pipeline *p, const char *dir, const ses_pipeline_options *o, ses_err *e)
{
    if (!(dir = folder_of(dir, o)))
        return ses_fail(e, SES_EARG, "no folder: the shared model was not opened from one");
    if (!(p->dir = ses_model_resolve(dir, NULL, e))) return false;
    if (o->base_model && !(p->base_model = ses_strdup(o->base_model, e))) return false;
    p->task = ses_task_of_folder(p->task, p->dir);
    p->adapters = o->adapters, p->n_adapters = o->n_adapters;
    if (!(p->state = ses_arena_array(&p->mem, 1, p->task->state_size, e))) return false;
    if (is_classifier(p, o)) return open_classifier(p, e);
    if (!open_model(p, o, e) || !open_tokenizer(p, o->tokenizer, e)) return false;
    set_default_max_seq_len(p);
    p->settings.batch_tokens = p->dev->is_host ? HOST_BATCH_TOKENS : DEVICE_BATCH_TOKENS;
    p->adapters = NULL, p->n_adapters = 0; /* not used after opening */
    return ses_pass_open(&p->runner.pass, p->model, e) && (!p->task->open || p->task->open(p, e));
}

static ses_pipeline *alloc_pipeline(const ses_task *task, ses_device *dev, void *args, ses_err *e)
{
    ses_pipeline *p = ses_alloc(sizeof *p, e);
    if (!p) return NULL;
    p->task = task;
    p->dev = dev;
    p->settings.args = args;
    p->settings.outputs.logits = true;
    return p;
}

ses_pipeline *ses_pipeline_new(const ses_task *task, const char *dir, ses_device *dev, void *args,
                               const ses_pipeline_options *options, ses_err *e)
{
    ses_pipeline *p = alloc_pipeline(task, dev, args, e);
    if (!p || open_pipeline(p, dir, options ? options : &no_options, e)) return p;
    ses_pipeline_free(p);
    return NULL;
}

ses_pipeline *ses_pipeline_clone(const ses_pipeline *p, ses_err *e)
{
    ses_pipeline_options o = { .tokenizer = p->tokenizer, .base_model = p->base_model };
    if (p->encoder)
        o.encoder = p->encoder;
    else
        o.model = p->model;
    ses_pipeline *c = alloc_pipeline(p->task, p->dev, p->settings.args, e);
    if (!c) return NULL;
    c->original = p;
    if (open_pipeline(c, p->dir, &o, e)) {
        c->settings.max_seq_len = p->settings.max_seq_len;
        c->settings.batch_tokens = p->settings.batch_tokens;
        c->settings.batch_size = p->settings.batch_size;
        c->settings.max_request_tokens = p->settings.max_request_tokens;
        return c;
    }
    ses_pipeline_free(c);
    return NULL;
}

/* Opens a pipeline of a task by name: by the options, or with what `original` has loaded. */
static ses_pipeline *open_named(const char *task, const char *dir, ses_device *dev,
                                const ses_pipeline *original, const ses_pipeline_options *options, ses_err *e)
{
    const ses_task_entry *entry = ses_task_require(task, e);
    if (!entry) return NULL;
    const ses_task *t = entry->task;
    ses_arena mem = { .min_block = 1024 };
    void *args = ses_task_args_new(t, task, options->settings, &mem, e);
    ses_pipeline *p = args ? alloc_pipeline(t, dev, args, e) : NULL;
    if (p) p->original = original;
    if (p && open_pipeline(p, dir, options, e)) {
        p->settings.owns_args = true;
        p->settings.args_mem = mem;
        return p;
    }
    ses_pipeline_free(p);
    ses_task_args_free(t, args);
    ses_arena_free(&mem);
    return NULL;
}

ses_pipeline *ses_pipeline_open_with(const char *task, const char *dir, ses_device *dev,
                                     const ses_pipeline_options *options, ses_err *e)
{
    return open_named(task, dir, dev, NULL, options ? options : &no_options, e);
}

ses_pipeline *ses_pipeline_open_classifier_of(const ses_pipeline *p, const char *task,
                                              const ses_setting *settings, ses_err *e)
{
    return open_named(task, p->dir, p->dev, p, &(ses_pipeline_options){ .settings = settings }, e);
}

ses_pipeline *ses_pipeline_open(const char *task, const char *dir, ses_device *dev,
                                const ses_setting *settings, ses_err *e)
{
    return ses_pipeline_open_with(task, dir, dev, &(ses_pipeline_options){ .settings = settings }, e);
}

void ses_pipeline_free(ses_pipeline *p)
{
    if (!p) return;
    ses_pipeline_runner_free(p);
    if (p->state && p->task->close) p->task->close(p);
    ses_encode_ctx_free(p->own_target_tokens);
    ses_tokenizer_free(p->own_target_tokenizer);
    ses_encode_ctx_free(p->tokens);
    ses_tokenizer_free(p->own_tokenizer);
    ses_sentence_free(p->own_encoder);
    ses_model_free(p->own_model);
    if (!p->original) ses_classifier_free(p->classifier);
    if (!p->original) ses_json_free(p->config);
    ses_arena_free(&p->mem);
    ses_buf_free(&p->warnings);
    ses_free(p->base_model);
    ses_free(p->dir);
    if (p->settings.owns_args) ses_task_args_free(p->task, p->settings.args);
    ses_arena_free(&p->settings.args_mem);
    ses_free(p);
}

/* ---- settings and queries ---- */

const ses_model *ses_pipeline_model(const ses_pipeline *p) { return p->model; }
const ses_sentence *ses_pipeline_encoder(const ses_pipeline *p) { return p->encoder; }
const ses_tokenizer *ses_pipeline_tokenizer(const ses_pipeline *p) { return p->tokenizer; }

bool ses_pipeline_set_max_seq_len(ses_pipeline *p, int64_t tokens)
{
    if (p->settings.never_truncates) return false;
    int64_t max = p->settings.model_max_tokens;
    p->settings.max_seq_len = tokens < 1 ? 1 : tokens < max ? tokens : max;
    return true;
}

int64_t ses_pipeline_max_seq_len(const ses_pipeline *p) { return p->settings.max_seq_len; }

void ses_pipeline_set_batch_tokens(ses_pipeline *p, int64_t tokens)
{
    p->settings.batch_tokens = tokens > 0 ? tokens : 1;
}

void ses_pipeline_set_batch_size(ses_pipeline *p, int64_t sequences)
{
    p->settings.batch_size = sequences > 0 ? sequences : 0;
}

void ses_pipeline_set_callback(ses_pipeline *p, ses_result_fn *fn, void *ctx)
{
    p->settings.on_result = fn;
    p->settings.on_result_ctx = ctx;
}

void ses_pipeline_set_error_callback(ses_pipeline *p, ses_item_error_fn *fn, void *ctx)
{
    p->settings.on_item_error = fn;
    p->settings.on_item_error_ctx = ctx;
}

void ses_pipeline_set_stream(ses_pipeline *p, ses_stream_fn *fn, void *ctx)
{
    p->settings.on_stream = fn;
    p->settings.on_stream_ctx = ctx;
}

void ses_pipeline_set_stop(ses_pipeline *p, ses_stop_fn *fn, void *ctx)
{
    p->settings.should_stop = fn;
    p->settings.should_stop_ctx = ctx;
}

bool ses_pipeline_check_stop(ses_pipeline *p, ses_err *e)
{
    const ses_pipeline_settings *s = &p->settings;
    return !s->should_stop || !s->should_stop(s->should_stop_ctx) ||
           ses_fail(e, SES_EIO, "stopped by the caller");
}

bool ses_pipeline_can_stream(const ses_pipeline *p) { return p->task->can_stream; }
bool ses_pipeline_stream_setting(const ses_pipeline *p) { return p->settings.stream; }

ses_pipeline_stats ses_pipeline_get_stats(const ses_pipeline *p) { return p->stats; }

const char *ses_pipeline_warnings(const ses_pipeline *p) { return p->warnings.data ? p->warnings.data : ""; }

bool ses_pipeline_warn(ses_pipeline *p, ses_err *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    ses_buf_vappendf(&p->warnings, fmt, ap);
    va_end(ap);
    ses_buf_put(&p->warnings, '\n');
    return ses_buf_ok(&p->warnings, e);
}
