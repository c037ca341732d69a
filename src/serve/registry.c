/* Loads models once and opens pipelines on them as requests need them. */
#define _XOPEN_SOURCE 700
#include "registry.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "hub/hub_name.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_KEY = 65536 }; /* bytes of a pipeline's settings: they stay in memory after the request */

struct ses_registry {
    ses_device *dev;
    pthread_mutex_t lock;
    ses_served_model **model; /* [n], in the order they were loaded */
    size_t n, capacity;
    char **alias; /* [n_aliases] "NAME\0MODEL"; they do not change while the server runs */
    size_t n_aliases, alias_capacity;
};

/* ---- a model ---- */

static void pipeline_free(ses_served_pipeline *p)
{
    for (size_t i = 0; i < SES_LEN(p->encoder); i++) ses_pipeline_free(atomic_load(&p->encoder[i]));
    ses_pipeline_free(p->compute);
    ses_free(p->key);
    ses_free(p);
}

static void model_free(ses_served_model *m)
{
    if (!m) return;
    /* newest first: later pipelines share the tokenizer of the first */
    for (ses_served_pipeline *p = m->pipelines, *next; p; p = next) next = p->next, pipeline_free(p);
    ses_generator_free(m->generator);
    ses_chat_folder_close(&m->chat);
    ses_model_free(m->model);
    ses_served_model_release(m->base);
    pthread_mutex_destroy(&m->lock);
    ses_free(m->name);
    ses_free(m->dir);
    ses_free(m);
}

void ses_served_model_retain(ses_served_model *m) { atomic_fetch_add(&m->refs, 1); }

void ses_served_model_release(ses_served_model *m)
{
    if (m && atomic_fetch_sub(&m->refs, 1) == 1) model_free(m);
}

/* The task of the model's head: what "POST /" runs. */
static const ses_task_entry *find_own_task(const ses_served_model *m)
{
    static const char *const first[] = { "rerank", "text-classification", "text-generation",
                                         "summarization" };
    const ses_task_entry *embed = ses_task_find("embed");
    if (m->model && (m->is_sentence_encoder || !m->model->class->head[0].head)) return embed;
    for (size_t i = 0; i < SES_LEN(first); i++) {
        const ses_task_entry *t = ses_task_find(first[i]);
        if (ses_served_model_supports(m, t)) return t;
    }
    for (const ses_task_entry *t = ses_task_entries(); t->name; t++)
        if (t->summary && t->task->head && ses_served_model_supports(m, t)) return t;
    return embed;
}

/* A reference to a loaded model that owns the weights of this folder; NULL: none. */
static ses_served_model *find_owner(ses_registry *r, const ses_folder_state *weights)
{
    ses_served_model *found = NULL;
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < r->n && !found; i++) {
        ses_served_model *m = r->model[i]->base ? r->model[i]->base : r->model[i];
        if (m->model && !m->model->adapter && ses_folder_state_equal(&m->weights, weights)) found = m;
    }
    if (found) ses_served_model_retain(found);
    pthread_mutex_unlock(&r->lock);
    return found;
}

static ses_served_model *model_open(ses_registry *r, const char *name, const char *dir, ses_err *e);

/* Finds the model whose weights m can use. All adapters of a base model share it, also if no request can
 * name it. A base model that cannot be opened by itself is not shared. */
static bool find_base(ses_registry *r, ses_served_model *m, ses_err *e)
{
    char *dir = ses_model_base_dir(m->dir, NULL, e);
    if (!dir) return false;
    m->weights = ses_folder_state_of(dir);
    m->base = find_owner(r, &m->weights);
    if (!m->base && ses_model_is_adapter(m->dir)) m->base = model_open(r, dir, dir, NULL);
    ses_free(dir);
    return true;
}

/* Opens the weights. A classifier of texts has none: its first pipeline opens it. */
static bool open_weights(ses_registry *r, ses_served_model *m, ses_err *e)
{
    if (ses_classifier_is_dir(m->dir)) return true;
    if (!find_base(r, m, e)) return false;
    m->is_sentence_encoder = ses_sentence_is_encoder_dir(m->dir);
    ses_model_options o = { .no_head = m->is_sentence_encoder, .shared = m->base ? m->base->model : NULL };
    m->model = ses_model_open(m->dir, m->dev, &o, e);
    return m->model != NULL;
}

static ses_served_model *model_open(ses_registry *r, const char *name, const char *dir, ses_err *e)
{
    ses_served_model *m = ses_alloc(sizeof *m, e);
    if (!m) return NULL;
    pthread_mutex_init(&m->lock, NULL);
    atomic_init(&m->refs, 1);
    m->dev = r->dev;
    m->created = (int64_t)time(NULL);
    m->name = ses_strdup(name, e);
    m->dir = m->name ? ses_model_resolve(dir, NULL, e) : NULL;
    if (m->dir && open_weights(r, m, e)) {
        m->own_task = find_own_task(m);
        if (m->model && ses_served_model_supports(m, ses_task_find("text-generation")))
            ses_chat_folder_read(&m->chat, m->dir);
        return m;
    }
    model_free(m);
    return NULL;
}

/* ---- pipelines of a model ---- */

/* Task and settings as text: equal texts, equal pipelines. */
static char *key_of(const ses_task_entry *task, const ses_setting *s, ses_err *e)
{
    ses_buf b = { 0 };
    ses_buf_puts(&b, task->name);
    for (; s && s->name; s++) {
        const char *value = s->value ? s->value : "";
        ses_buf_appendf(&b, "\n%s=%zu:%s", s->name, strlen(value), value); /* a value may contain lines */
    }
    bool small =
        b.len <= MAX_KEY || ses_fail(e, SES_EUSAGE, "the settings are longer than %d bytes", MAX_KEY);
    if (small && ses_buf_ok(&b, e)) return b.data;
    ses_buf_free(&b);
    return NULL;
}

/* A failed item is stored in its request; the others of its batch continue. */
static bool keep_going(void *ctx, const ses_item *item, const ses_err *why, ses_err *e)
{
    (void)ctx, (void)item, (void)why, (void)e;
    return true;
}

/* A sentence encoder's tokenizer may lowercase, so that its tasks do not share with the others. */
static const ses_tokenizer *shared_tokenizer(const ses_served_model *m, const ses_task *t)
{
    for (const ses_served_pipeline *p = m->pipelines; p; p = p->next)
        if (!m->is_sentence_encoder || !p->task->task->load_model == !t->load_model)
            return ses_pipeline_tokenizer(p->compute);
    return NULL;
}

/* The pipeline that was opened with the model; NULL: none yet. The lock is held. */
static ses_served_pipeline *first_pipeline(const ses_served_model *m)
{
    ses_served_pipeline *p = m->pipelines;
    while (p && p->next) p = p->next;
    return p;
}

/* All pipelines of a classifier share the one of the first. */
static ses_pipeline *open_compute(ses_served_model *m, const ses_task_entry *task,
                                  const ses_setting *settings, ses_err *e)
{
    const ses_served_pipeline *first = m->model ? NULL : first_pipeline(m);
    ses_pipeline_options o = { .settings = settings,
                               .model = m->model,
                               .tokenizer = m->model ? shared_tokenizer(m, task->task) : NULL };
    return first ? ses_pipeline_open_classifier_of(first->compute, task->name, settings, e)
                 : ses_pipeline_open_with(task->name, m->dir, m->dev, &o, e);
}

static ses_served_pipeline *pipeline_open(ses_served_model *m, const ses_task_entry *task,
                                          const ses_setting *settings, char *key, ses_err *e)
{
    ses_served_pipeline *p = ses_alloc(sizeof *p, e);
    if (!p) {
        ses_free(key);
        return NULL;
    }
    p->model = m, p->task = task, p->key = key;
    p->compute = open_compute(m, task, settings, e);
    if (!p->compute) {
        pipeline_free(p);
        return NULL;
    }
    ses_pipeline_set_error_callback(p->compute, keep_going, NULL);
    p->compute->settings.max_request_tokens = SES_MAX_JOB_TOKENS;
    p->next = m->pipelines;
    m->pipelines = p;
    m->n_pipelines++;
    if (!m->tokenizer) m->tokenizer = ses_pipeline_tokenizer(p->compute);
    return p;
}

static bool owns_part(const ses_served_pipeline *p)
{
    return p->compute->own_tokenizer || (p->compute->classifier && !p->compute->original);
}

/* Closes the pipeline that has not been used for the longest time. Pipelines that own a tokenizer or a
 * classifier stay: others share it. False: all are in use. The lock is held. */
static bool close_unused(ses_served_model *m)
{
    ses_served_pipeline **oldest = NULL;
    for (ses_served_pipeline **p = &m->pipelines; *p; p = &(*p)->next)
        if (!(*p)->users && !owns_part(*p) && (!oldest || (*p)->last_used < (*oldest)->last_used)) oldest = p;
    if (!oldest) return false;
    ses_served_pipeline *p = *oldest;
    *oldest = p->next;
    m->n_pipelines--;
    pipeline_free(p);
    return true;
}

ses_served_pipeline *ses_served_model_pipeline(ses_served_model *m)
{
    pthread_mutex_lock(&m->lock);
    ses_served_pipeline *p = first_pipeline(m);
    pthread_mutex_unlock(&m->lock);
    return p;
}

void ses_served_pipeline_release(ses_served_pipeline *p)
{
    if (!p) return;
    pthread_mutex_lock(&p->model->lock);
    p->users--;
    p->last_used = ses_clock_ns();
    pthread_mutex_unlock(&p->model->lock);
}

/* The lock is held. */
static ses_served_pipeline *find_key(const ses_served_model *m, const char *key)
{
    ses_served_pipeline *p = m->pipelines;
    while (p && strcmp(p->key, key)) p = p->next;
    return p;
}

ses_served_pipeline *ses_served_pipeline_get(ses_served_model *m, const ses_task_entry *task,
                                             const ses_setting *settings, bool *full, ses_err *e)
{
    char *key = key_of(task, settings, e);
    if (full) *full = false;
    if (!key) return NULL;
    pthread_mutex_lock(&m->lock);
    ses_served_pipeline *p = find_key(m, key);
    if (p)
        ses_free(key);
    else if (m->n_pipelines < SES_MAX_SERVED_PIPELINES || close_unused(m))
        p = pipeline_open(m, task, settings, key, e);
    else {
        ses_free(key);
        if (full) *full = true;
        ses_fail(
            e, SES_ENOMEM,
            "requests in progress use %s with %d combinations of \"parameters\", which is the limit; try "
            "again later",
            m->name, SES_MAX_SERVED_PIPELINES);
    }
    if (p) p->users++;
    pthread_mutex_unlock(&m->lock);
    return p;
}

ses_pipeline *ses_served_pipeline_encoder(ses_served_pipeline *p, int worker, ses_err *e)
{
    ses_pipeline *clone = atomic_load_explicit(&p->encoder[worker], memory_order_acquire);
    if (clone) return clone;
    pthread_mutex_lock(&p->model->lock);
    clone = atomic_load(&p->encoder[worker]);
    if (!clone) clone = ses_pipeline_clone(p->compute, e);
    atomic_store_explicit(&p->encoder[worker], clone, memory_order_release);
    pthread_mutex_unlock(&p->model->lock);
    return clone;
}

ses_served_pipeline *ses_served_pipeline_find(ses_served_model *m, const ses_task_entry *task,
                                              const ses_setting *settings, int worker)
{
    char *key = key_of(task, settings, NULL);
    if (!key) return NULL;
    pthread_mutex_lock(&m->lock);
    ses_served_pipeline *p = find_key(m, key);
    if (p && !atomic_load(&p->encoder[worker])) p = NULL;
    if (p) p->users++;
    pthread_mutex_unlock(&m->lock);
    ses_free(key);
    return p;
}

/* ---- the registry ---- */

ses_registry *ses_registry_new(ses_device *dev, ses_err *e)
{
    ses_registry *r = ses_alloc(sizeof *r, e);
    if (!r) return NULL;
    r->dev = dev;
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

void ses_registry_free(ses_registry *r)
{
    if (!r) return;
    for (size_t i = 0; i < r->n; i++) ses_served_model_release(r->model[i]);
    for (size_t i = 0; i < r->n_aliases; i++) ses_free(r->alias[i]);
    pthread_mutex_destroy(&r->lock);
    ses_free(r->alias);
    ses_free(r->model);
    ses_free(r);
}

/* Index of a name; n: none. The lock is held. */
static size_t find_index(const ses_registry *r, const char *name)
{
    size_t i = 0;
    while (i < r->n && strcmp(r->model[i]->name, name)) i++;
    return i;
}

/* Takes the caller's reference. */
static bool insert(ses_registry *r, ses_served_model *m, ses_err *e)
{
    pthread_mutex_lock(&r->lock);
    size_t i = find_index(r, m->name);
    ses_served_model *old = i < r->n ? r->model[i] : NULL;
    bool ok = old || ses_array_reserve(&r->model, &r->capacity, r->n + 1, sizeof *r->model, e);
    if (ok) {
        r->model[i] = m;
        r->n += !old;
    }
    pthread_mutex_unlock(&r->lock);
    ses_served_model_release(ok ? old : m);
    return ok;
}

/* The last component of a path; "a/b/" is b. */
static ses_string base_name(const char *path)
{
    size_t n = strlen(path), first;
    while (n > 1 && path[n - 1] == '/') n--;
    for (first = n; first && path[first - 1] != '/'; first--) continue;
    return (ses_string){ path + first, n - first };
}

/* The folder in NAME=FOLDER; NULL: the spec has no name. Names may contain slashes ("org/model"), but do not
 * begin like a path. */
static const char *folder_of(const char *spec)
{
    const char *equals = strchr(spec, '=');
    return equals && equals > spec && *spec != '/' && *spec != '.' ? equals + 1 : NULL;
}

bool ses_registry_spec_name(const char *spec, char *buf, size_t n, ses_err *e)
{
    const char *folder = folder_of(spec);
    ses_string s = folder ? (ses_string){ spec, (size_t)(folder - 1 - spec) } : base_name(spec);
    bool dots = !folder && (ses_equal(s.p, s.n, ".") || ses_equal(s.p, s.n, ".."));
    ses_hub_name hub;
    if (!folder && ses_hub_name_is(spec) && !ses_path_exists(spec) && ses_hub_name_parse(spec, &hub, NULL))
        s = (ses_string){ hub.id, strlen(hub.id) };
    char *real = dots ? realpath(spec, NULL) : NULL;
    if (real) s = base_name(real);
    bool ok = s.n && s.n < n;
    if (ok) memcpy(buf, s.p, s.n), buf[s.n] = 0;
    free(real); /* realpath's, not ses_alloc's */
    return ok || ses_fail(e, SES_EARG, "model \"%s\": its name is empty or too long", spec);
}

static bool load(ses_registry *r, const char *name, const char *dir, ses_err *e)
{
    ses_served_model *m = model_open(r, name, dir, e);
    if (!m) return false;
    /* the first pipeline loads the tokenizer: a broken one is found now, not by a request */
    ses_served_pipeline *p = ses_served_pipeline_get(m, m->own_task, NULL, NULL, e);
    ses_served_pipeline_release(p);
    if (!p) {
        ses_served_model_release(m);
        return false;
    }
    return insert(r, m, e);
}

bool ses_registry_load(ses_registry *r, const char *spec, ses_err *e)
{
    const char *folder = folder_of(spec);
    char name[256];
    return ses_registry_spec_name(spec, name, sizeof name, e) && load(r, name, folder ? folder : spec, e);
}

bool ses_registry_reload(ses_registry *r, const char *name, ses_err *e)
{
    ses_served_model *old = ses_registry_find(r, name, NULL);
    if (!old) return ses_fail(e, SES_EARG, "no model \"%s\" is loaded", name);
    bool ok = load(r, old->name, old->dir, e);
    ses_served_model_release(old);
    return ok;
}

bool ses_registry_unload(ses_registry *r, const char *name, ses_err *e)
{
    pthread_mutex_lock(&r->lock);
    size_t i = find_index(r, name);
    ses_served_model *m = i < r->n ? r->model[i] : NULL;
    if (m) memmove(r->model + i, r->model + i + 1, (--r->n - i) * sizeof *r->model);
    pthread_mutex_unlock(&r->lock);
    ses_served_model_release(m);
    return m || ses_fail(e, SES_EARG, "no model \"%s\" is loaded", name);
}

/* ---- names of requests ---- */

bool ses_registry_alias(ses_registry *r, const char *spec, ses_err *e)
{
    const char *target = folder_of(spec);
    if (!target || !*target) return ses_fail(e, SES_EUSAGE, "--alias %s: write NAME=MODEL", spec);
    char *name = ses_strdup(spec, e);
    if (!name) return false;
    name[target - 1 - spec] = 0;
    pthread_mutex_lock(&r->lock);
    bool taken = find_index(r, name) < r->n, known = find_index(r, target) < r->n;
    for (size_t i = 0; i < r->n_aliases; i++) taken |= !strcmp(r->alias[i], name);
    bool ok = taken ? ses_fail(e, SES_EUSAGE, "--alias %s: the name %s is taken", spec, name)
              : !known
                  ? ses_fail(e, SES_EUSAGE, "--alias %s: no model \"%s\" is loaded", spec, target)
                  : ses_array_reserve(&r->alias, &r->alias_capacity, r->n_aliases + 1, sizeof *r->alias, e);
    pthread_mutex_unlock(&r->lock);
    if (ok)
        r->alias[r->n_aliases++] = name;
    else
        ses_free(name);
    return ok;
}

const char *ses_registry_alias_at(const ses_registry *r, size_t i, const char **model)
{
    if (i >= r->n_aliases) return NULL;
    *model = r->alias[i] + strlen(r->alias[i]) + 1;
    return r->alias[i];
}

/* The name of a model: the alias of one, or the name itself. */
static const char *resolve(const ses_registry *r, const char *name)
{
    const char *alias, *model;
    for (size_t i = 0; name && (alias = ses_registry_alias_at(r, i, &model)); i++)
        if (!strcmp(alias, name)) return model;
    return name;
}

/* The first pass accepts models made for a task, the second all that support it: embed works with every
 * encoder. */
static bool fits(const ses_served_model *m, const ses_task_entry *task, int pass)
{
    if (!task) return true;
    return pass ? ses_served_model_supports(m, task) : m->own_task && m->own_task->task == task->task;
}

ses_served_model *ses_registry_find(ses_registry *r, const char *name, const ses_task_entry *task)
{
    ses_served_model *found = NULL;
    const char *wanted = name && *name ? resolve(r, name) : NULL;
    pthread_mutex_lock(&r->lock);
    for (int pass = 0; pass < 2 && !found; pass++)
        for (size_t i = 0; i < r->n && !found; i++)
            if (wanted ? !strcmp(r->model[i]->name, wanted) : fits(r->model[i], task, pass))
                found = r->model[i];
    if (found) ses_served_model_retain(found);
    pthread_mutex_unlock(&r->lock);
    return found;
}

ses_served_model *ses_registry_only(ses_registry *r, const ses_task_entry *task)
{
    ses_served_model *found = NULL;
    size_t n = 0;
    pthread_mutex_lock(&r->lock);
    for (int pass = 0; pass < 2 && !n; pass++)
        for (size_t i = 0; i < r->n; i++)
            if (fits(r->model[i], task, pass)) found = r->model[i], n++;
    if (n != 1) found = NULL;
    if (found) ses_served_model_retain(found);
    pthread_mutex_unlock(&r->lock);
    return found;
}

ses_served_model **ses_registry_list(ses_registry *r, size_t *n, ses_err *e)
{
    pthread_mutex_lock(&r->lock);
    ses_served_model **list = ses_alloc_array(r->n + 1, sizeof *list, e);
    *n = list ? r->n : 0;
    for (size_t i = 0; i < *n; i++) ses_served_model_retain(list[i] = r->model[i]);
    pthread_mutex_unlock(&r->lock);
    return list;
}
