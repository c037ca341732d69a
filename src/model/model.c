#include "base/alloc.h"
#include "base/file.h"
#include "desc.h"
#include "tensor/device.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CONFIG_MAX = 16 << 20 };

static const ses_head_use *uses(const ses_model *m, size_t *n)
{
    for (*n = 0; *n < SES_LEN(m->class->head) && m->class->head[*n].head;) ++*n;
    return m->class->head;
}

/* Config read and checked, parameters declared: everything but the numbers. */
static bool declare(ses_model *m, const ses_json *config, const ses_model_options *o, ses_err *e)
{
    m->config = config;
    m->desc = ses_config_model(config, e);
    if (!m->desc || !ses_config_read(m->desc, config, &m->c, e)) return false;
    m->class = ses_config_class(m->desc, config, o->class_name, e);
    if (!m->class) return false;
    m->store = ses_store_new(m->dev, e);
    if (!m->store || !ses_encoder_add(&m->encoder, m->store, &m->c, m->class->pooler, e)) return false;
    size_t n;
    const ses_head_use *use = uses(m, &n);
    for (size_t i = 0; i < n; i++) use[i].head->add(&m->head[i], m->store, &m->c, &m->encoder);
    return ses_store_ok(m->store, e);
}

/* Memory for every parameter, then random numbers. */
static bool begin_random(ses_model *m, const ses_model_options *o, ses_err *e)
{
    if (o->train) {
        if (!ses_store_train(m->store, e)) return false;
    } else {
        for (size_t i = 0; i < ses_store_count(m->store); i++)
            if (!ses_store_own(m->store, i, e)) return false;
    }
    ses_store_init(m->store, m->c.init_range, o->seed);
    m->surplus = ses_strdup("", e);
    return m->surplus && (o->train || ses_store_freeze(m->store, e));
}

ses_model *ses_model_new(const ses_json *config, ses_device *dev, const ses_model_options *options,
                         ses_err *e)
{
    ses_model_options o = options ? *options : (ses_model_options){ 0 };
    ses_model *m = ses_alloc(sizeof *m, e);
    if (!m) return NULL;
    m->dev = dev;
    if (declare(m, config, &o, e) && begin_random(m, &o, e)) return m;
    ses_model_free(m);
    return NULL;
}

static bool open_folder(ses_model *m, const char *dir, const ses_model_options *o, ses_err *e)
{
    char *path = ses_path_join(dir, "config.json", e);
    m->dir = path ? ses_strdup(dir, e) : NULL;
    m->doc = m->dir ? ses_json_load(path, CONFIG_MAX, e) : NULL; /* its errors name the file */
    bool ok = m->doc != NULL;
    if (ok && !declare(m, ses_json_root(m->doc), o, e)) ok = ses_wrap(e, "%s", path);
    ses_free(path);
    if (!ok) return false;
    return o->random ? begin_random(m, o, e) : ses_model_load(m, dir, o, e);
}

ses_model *ses_model_open(const char *dir, ses_device *dev, const ses_model_options *options, ses_err *e)
{
    ses_model_options o = options ? *options : (ses_model_options){ 0 };
    ses_model *m = ses_alloc(sizeof *m, e);
    if (!m) return NULL;
    m->dev = dev;
    if (open_folder(m, dir, &o, e)) return m;
    ses_model_free(m);
    return NULL;
}

void ses_model_free(ses_model *m)
{
    if (!m) return;
    ses_encoder_free(&m->encoder);
    ses_store_free(m->store);
    ses_safetensors_free(m->file);
    ses_json_free(m->doc);
    ses_free(m->surplus);
    ses_free(m->dir);
    ses_free(m);
}

bool ses_model_forward(const ses_model *m, ses_tape *t, const ses_batch *b, const ses_want *want,
                       ses_outputs *out, ses_err *e)
{
    if (!ses_model_check_batch(m, b, e)) return false;
    ses_pass p = { .tape = t, .c = &m->c, .batch = b, .want = want };
    ses_pass_begin(&p);
    ses_tensor *x = ses_encoder_run(&m->encoder, &p), *pooled = NULL;
    if (m->class->pooler) pooled = ses_pooler_run(&m->encoder, &p, x);
    size_t n;
    const ses_head_use *use = uses(m, &n);
    if (!n) {
        ses_pass_output(&p, SES_PER_TOKEN, x, "last_hidden_state");
        ses_pass_output(&p, SES_PER_SEQUENCE, pooled, "pooler_output");
    }
    for (size_t i = 0; i < n; i++) {
        use[i].head->run(&m->head[i], &use[i], &p, use[i].head->pooled ? pooled : x);
        ses_tape_where(t, "%s head", use[i].head->name);
    }
    *out = (ses_outputs){ p.loss, p.item, p.n };
    return ses_tape_ok(t, e);
}

ses_store *ses_model_store(const ses_model *m) { return m->store; }
const char *ses_model_type(const ses_model *m) { return m->desc->name; }
const char *ses_model_class(const ses_model *m) { return m->class->name; }
const ses_json *ses_model_config(const ses_model *m) { return m->config; }
int64_t ses_model_max_tokens(const ses_model *m) { return m->c.positions; }
int64_t ses_model_vocab(const ses_model *m) { return m->c.vocab; }
int64_t ses_model_labels(const ses_model *m) { return m->c.labels; }
ses_dtype ses_model_dtype(const ses_model *m) { return m->dtype; }
const char *ses_model_surplus(const ses_model *m) { return m->surplus; }

const char *ses_model_label(const ses_model *m, int64_t i)
{
    char id[24];
    snprintf(id, sizeof id, "%lld", (long long)i);
    return ses_json_string(ses_json_get(ses_json_get(m->config, "id2label"), id), NULL);
}

bool ses_model_tensor_name(const ses_model *m, size_t i, char *buf, size_t n)
{
    return ses_name_theirs(m->desc, m->class, ses_store_at(m->store, i)->name, buf, n);
}

int64_t ses_model_find_tensor(const ses_model *m, const char *theirs)
{
    char name[256];
    const ses_param *token = ses_store_find(m->store, "embed.token"); /* serves as lm.out.weight where tied */
    bool tied = m->c.tied && ses_name_theirs(m->desc, m->class, "lm.out.weight", name, sizeof name) &&
                !strcmp(name, theirs);
    for (size_t i = 0; i < ses_store_count(m->store); i++) {
        if (tied && ses_store_at(m->store, i) == token) return (int64_t)i;
        if (ses_model_tensor_name(m, i, name, sizeof name) && !strcmp(name, theirs)) return (int64_t)i;
    }
    return -1;
}

/* Where the first NaN or infinity of x stands, or -1. */
static int64_t first_bad(const ses_model *m, const ses_tensor *x)
{
    enum { PIECE = 2048 };
    ses_real piece[PIECE];
    int64_t count = ses_count(x);
    for (int64_t at = 0; at < count; at += PIECE) {
        int64_t n = count - at < PIECE ? count - at : PIECE;
        m->dev->mem->download(m->dev, piece, x->f + at, (size_t)n * sizeof *piece);
        for (int64_t i = 0; i < n; i++)
            if (!isfinite(piece[i])) return at + i;
    }
    return -1;
}

bool ses_model_finite(const ses_model *m, ses_err *e)
{
    for (size_t i = 0; i < ses_store_count(m->store); i++) {
        char name[256];
        int64_t at = first_bad(m, ses_store_at(m->store, i)->tensor);
        if (at < 0) continue;
        ses_model_tensor_name(m, i, name, sizeof name);
        return ses_fail(e, SES_EFORMAT,
                        "tensor \"%s\": number %lld is NaN or infinite, expected finite weights", name,
                        (long long)at);
    }
    return true;
}
