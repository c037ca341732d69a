/* adapter_config.json in the peft library's format, and the config of a folder that holds only an adapter. */
#define _XOPEN_SOURCE 700
#include "adapter_impl.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "base/str.h"
#include "folder/elmo_folder.h"
#include "folder/file_kind.h"
#include "folder/tf_folder.h"
#include "hub/adapter_folder.h"
#include "hub/hub_cache.h"
#include "hub/hub_name.h"
#include "io/elmo_read.h"
#include "io/tf/tf_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIG_MAX = 16 << 20 };

static ses_json_doc *load(const char *dir, const char *name, ses_err *e)
{
    char *path = ses_path_join(dir, name, e);
    ses_json_doc *d = path ? ses_json_load_object(path, CONFIG_MAX, e) : NULL;
    ses_free(path);
    return d;
}

ses_json_doc *ses_adapter_config_load(const char *dir, ses_err *e)
{
    return load(dir, SES_ADAPTER_CONFIG, e);
}

bool ses_model_is_adapter(const char *dir) { return ses_adapter_folder_is(dir); }

/* ---- reading ---- */

static char *base_of(const ses_json *c, const char *dir, const char *base, ses_err *e)
{
    return base ? ses_strdup(base, e) : ses_adapter_folder_base(dir, c, e);
}

char *ses_model_base_dir(const char *dir, const char *base, ses_err *e)
{
    if (!ses_model_is_adapter(dir)) return ses_strdup(dir, e);
    ses_json_doc *d = load(dir, SES_ADAPTER_CONFIG, e);
    char *to = d ? base_of(ses_json_root(d), dir, base, e) : NULL;
    ses_json_free(d);
    return to;
}

bool ses_adapter_read_config(ses_adapter *a, const char *dir, const char *base, ses_err *e)
{
    ses_json_doc *d = load(dir, SES_ADAPTER_CONFIG, e);
    const ses_json *c = d ? ses_json_root(d) : NULL;
    a->desc = d ? ses_adapter_kind_of(c, e) : NULL;
    bool ok = a->desc && a->desc->read(a, c, e);
    if (d && !ok) ses_wrap(e, "%s/" SES_ADAPTER_CONFIG, dir);
    if (ok) a->base = base_of(c, dir, base, e);
    ses_json_free(d);
    return ok && a->base;
}

/* ---- the config of a folder ---- */

static const struct {
    const char *task, *hub, *head; /* task of peft, type of a head of adapter-hub */
} tasks[] = {
    { "SEQ_CLS", "classification", "classify" },        { "TOKEN_CLS", "tagging", "tag" },
    { "QUESTION_ANS", "question_answering", "span" },   { "CAUSAL_LM", NULL, "causal-lm" },
    { "SEQ_2_SEQ_LM", NULL, "conditional-generation" },
};

static const char *class_of(const ses_json *adapter, const ses_json *head, const ses_json *config)
{
    const char *task = ses_json_string(ses_json_get(adapter, "task_type"), NULL),
               *type = ses_json_string(ses_json_get(ses_json_get(head, "config"), "head_type"), NULL),
               *named = ses_json_string(ses_json_get(head, "model_class"), NULL);
    for (size_t i = 0; task && i < SES_LEN(tasks); i++)
        if (!strcmp(task, tasks[i].task)) return ses_model_class_for_head(config, tasks[i].head, NULL);
    for (size_t i = 0; type && i < SES_LEN(tasks); i++)
        if (tasks[i].hub && !strcmp(type, tasks[i].hub))
            return ses_model_class_for_head(config, tasks[i].head, NULL);
    const ses_model_desc *d = named ? ses_config_find_model(config, NULL) : NULL;
    for (size_t i = 0; d && i < d->n_classes; i++)
        if (!strcmp(named, d->class[i].name)) return d->class[i].name;
    return NULL;
}

/* Number of labels of a head in the file: rows of its smallest matrix. 0: no head; -1: not readable. */
static int64_t count_labels(const char *dir, const ses_json *adapter, ses_err *e)
{
    const ses_adapter_desc *d = ses_adapter_kind_of(adapter, e);
    ses_safetensors *f = d ? ses_adapter_open_files(d, dir, e) : NULL;
    int64_t smallest = f ? 0 : -1;
    for (size_t i = 0; f && i < ses_safetensors_count(f); i++) {
        const ses_tensor_entry *x = ses_safetensors_at(f, i);
        if (x->rank != 2 || !ses_adapter_is_head(x->name)) continue;
        if (!smallest || x->dim[0] < smallest) smallest = x->dim[0];
    }
    ses_safetensors_free(f);
    return smallest;
}

/* "label2id" of adapter-hub's head as "id2label". */
static void put_labels(const ses_json *ids, ses_json_writer *w)
{
    char number[24];
    ses_json_member_object(w, "id2label");
    for (size_t i = 0; i < ses_json_len(ids); i++) {
        int64_t id = -1;
        if (!ses_json_int(ses_json_at(ids, i), &id)) continue;
        snprintf(number, sizeof number, "%lld", (long long)id);
        ses_json_member_string(w, number, ses_json_key(ids, i, NULL));
    }
    ses_json_end_object(w);
}

/* The base model's config with the adapter's class and labels. head: head_config.json; NULL: none. */
static ses_json_doc *derive(const char *dir, const ses_json *adapter, const ses_json *head,
                            const ses_json *config, ses_err *e)
{
    const char *class = class_of(adapter, head, config);
    int64_t labels = class ? count_labels(dir, adapter, e) : 0;
    if (labels < 0) return NULL;
    const ses_json *ids = ses_json_get(ses_json_get(head, "config"), "label2id");
    if (!ids) ids = ses_json_get(head, "label2id");
    bool own_names = labels && (int64_t)ses_json_len(ids) == labels;
    bool named = !own_names && (int64_t)ses_json_len(ses_json_get(config, "id2label")) == labels;
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    for (size_t i = 0; i < ses_json_len(config); i++) {
        const char *key = ses_json_key(config, i, NULL);
        if (class && !strcmp(key, "architectures")) continue;
        if (labels && !named &&
            (!strcmp(key, "id2label") || !strcmp(key, "label2id") || !strcmp(key, "num_labels")))
            continue;
        ses_json_put_key(w, key);
        ses_json_put_value(w, ses_json_at(config, i));
    }
    if (class) {
        ses_json_member_array(w, "architectures");
        ses_json_put_string(w, class);
        ses_json_end_array(w);
    }
    if (own_names) put_labels(ids, w);
    if (labels && !named && !own_names) ses_json_member_int(w, "num_labels", labels);
    ses_json_end_object(w);
    return ses_json_writer_parse(w, e);
}

/* config.json, or a config derived from the files of a TensorFlow checkpoint or of ELMo. */
static ses_json_doc *load_folder_config(const char *dir, const char *class, ses_err *e)
{
    char index[4096];
    if (ses_elmo_folder_is(dir)) return ses_elmo_config_open(dir, e);
    if (!ses_folder_has(dir, "config.json") && ses_tf_folder_is(dir))
        return ses_tf_config_open(dir, class, e);
    int n = snprintf(index, sizeof index, "%s.index", dir);
    if (n > 0 && (size_t)n < sizeof index && !ses_path_exists(dir) && ses_path_exists(index)) {
        ses_fail(e, SES_EARG, "%s: the prefix of a TensorFlow checkpoint; name its folder instead", dir);
        return NULL;
    }
    if (ses_path_exists(dir) && !ses_folder_has(dir, "config.json")) {
        ses_fail_not_model_folder(dir, e);
        return NULL;
    }
    return load(dir, "config.json", e);
}

static ses_json_doc *load_config(const char *dir, const char *class, ses_err *e)
{
    ses_json_doc *config = load_folder_config(dir, class, e);
    if (!config) ses_hub_explain(dir, e);
    return config ? ses_config_recognize(config, dir, e) : NULL;
}

ses_json_doc *ses_model_config_open_as(const char *dir, const char *base, const char *class_name, ses_err *e)
{
    if (ses_folder_has(dir, "config.json") || !ses_model_is_adapter(dir))
        return load_config(dir, class_name, e);
    ses_json_doc *adapter = load(dir, SES_ADAPTER_CONFIG, e), *d = NULL, *config = NULL;
    char *from = adapter ? base_of(ses_json_root(adapter), dir, base, e) : NULL;
    config = from ? load_config(from, class_name, e) : NULL;
    ses_json_doc *head =
        config && ses_folder_has(dir, "head_config.json") ? load(dir, "head_config.json", e) : NULL;
    bool readable = head || (config && !ses_folder_has(dir, "head_config.json"));
    if (readable)
        d = derive(dir, ses_json_root(adapter), head ? ses_json_root(head) : NULL, ses_json_root(config), e);
    ses_json_free(head);
    ses_json_free(config);
    ses_json_free(adapter);
    ses_free(from);
    return d;
}

ses_json_doc *ses_model_config_open(const char *dir, const char *base, ses_err *e)
{
    return ses_model_config_open_as(dir, base, NULL, e);
}

/* ---- writing ---- */

/* A module that is trained and saved as a whole; for a head its outermost module. */
static bool saved_module(const ses_model *m, size_t i, char *buf, size_t n)
{
    const ses_param *p = ses_store_at(m->store, i);
    const char *prefix = ses_class_prefix(m);
    if (p->role != SES_PARAM_TRAINED || ses_adapter_owns(p->name) || !ses_model_tensor_name(m, i, buf, n))
        return false;
    char *end = strncmp(buf, prefix, strlen(prefix)) ? strchr(buf, '.') : strrchr(buf, '.');
    if (end) *end = 0;
    return true;
}

static void put_saved(const ses_model *m, ses_json_writer *w)
{
    size_t n = ses_store_count(m->store), put = 0;
    char name[256], earlier[256];
    ses_json_put_key(w, "modules_to_save");
    for (size_t i = 0; i < n; i++) {
        if (!saved_module(m, i, name, sizeof name)) continue;
        bool listed = false;
        for (size_t j = 0; j < i && !listed; j++)
            listed = saved_module(m, j, earlier, sizeof earlier) && !strcmp(name, earlier);
        if (!listed && !put++) ses_json_begin_array(w);
        if (!listed) ses_json_put_string(w, name);
    }
    if (put)
        ses_json_end_array(w);
    else
        ses_json_put_null(w);
}

char *ses_adapter_base_name(const char *base, const char *dir)
{
    char *absolute = realpath(base, NULL), *adapter_dir = absolute ? realpath(dir, NULL) : NULL;
    const char *last = adapter_dir ? ses_path_basename(adapter_dir) : NULL,
               *name = adapter_dir ? ses_path_basename(absolute) : NULL;
    size_t n = adapter_dir ? (size_t)(name - absolute) : 0;
    if (n >= 3 && n == (size_t)(last - adapter_dir) && !strncmp(adapter_dir, absolute, n) &&
        strcmp(name, last)) {
        memmove(absolute + 3, name, strlen(name) + 1); /* "/x/NAME" to "../NAME" */
        memcpy(absolute, "../", 3);
    }
    ses_free(adapter_dir);
    return absolute;
}

static void put_config(const ses_model *m, ses_json_writer *w)
{
    const ses_adapter *a = m->adapter;
    const ses_head *head = m->class->head[0].head;
    char *absolute = realpath(a->base, NULL); /* absolute: valid from any folder */
    ses_hub_name hub;
    bool is_hub = ses_hub_name_of_snapshot(absolute ? absolute : a->base, &hub);
    ses_json_begin_object(w);
    if (a->desc->whole) {
        a->desc->put(m, a, w);
        ses_json_end_object(w);
        ses_free(absolute);
        return;
    }
    ses_json_member_string(w, "peft_type", a->desc->peft_type);
    ses_json_member_string(w, "task_type", head ? head->peft_task : "FEATURE_EXTRACTION");
    ses_json_member_string(w, "base_model_name_or_path", is_hub ? hub.id : absolute ? absolute : a->base);
    ses_json_member_string(w, "revision", is_hub ? hub.revision : NULL);
    ses_json_member_string(w, "auto_mapping", NULL);
    ses_json_member_bool(w, "inference_mode", true);
    put_saved(m, w);
    a->desc->put(m, a, w);
    ses_json_end_object(w);
    ses_free(absolute);
}

bool ses_adapter_save_config(const ses_model *m, const char *dir, bool overwrite, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(2, e);
    if (w) put_config(m, w);
    if (!ses_json_writer_save(w, dir, SES_ADAPTER_CONFIG, overwrite, e)) return false;
    const ses_adapter_desc *d = m->adapter->desc;
    return !d->save_files || d->save_files(m, m->adapter, dir, overwrite, e);
}
