/* adapter_config.json in the peft library's format, and the config of a folder that holds only an adapter. */
#define _XOPEN_SOURCE 700
#include "adapter_impl.h"

#include "base/alloc.h"
#include "base/elmo/elmo_folder.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "base/str.h"
#include "base/tf_folder.h"
#include "hub/hub_name.h"
#include "io/elmo_read.h"
#include "io/tf/tf_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIG_MAX = 16 << 20 };

static bool has_file(const char *dir, const char *name)
{
    char path[4096]; /* on the stack: a failed allocation must not look like a missing file */
    int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    return n > 0 && (size_t)n < sizeof path && ses_path_exists(path);
}

static ses_json_doc *load(const char *dir, const char *name, ses_err *e)
{
    char *path = ses_path_join(dir, name, e);
    ses_json_doc *d = path ? ses_json_load_object(path, CONFIG_MAX, e) : NULL;
    ses_free(path);
    return d;
}

bool ses_model_is_adapter(const char *dir) { return ses_adapter_folder_is(dir); }

/* ---- reading ---- */

/* Rejects peft options that change the computation and are not implemented. */
static bool check_supported(const ses_json *c, ses_err *e)
{
    static const char *const off[] = { "use_dora", "use_qalora", "use_bdlora", "lora_bias" };
    static const char *const empty[] = { "alpha_pattern", "layer_replication", "target_parameters",
                                         "trainable_token_indices", "alora_invocation_tokens" };
    const char *type = ses_json_string(ses_json_get(c, "peft_type"), NULL);
    const ses_json *init = ses_json_get(c, "init_lora_weights");
    const char *how = ses_json_string(init, NULL);
    bool on = false;
    if (!type || strcmp(type, "LORA"))
        return ses_fail(e, SES_EUNSUPPORTED, "\"peft_type\" is %s%s%s, expected \"LORA\"", type ? "\"" : "",
                        type ? ses_quoted_of(type, strlen(type)).s : "missing or not a string",
                        type ? "\"" : "");
    for (size_t i = 0; i < SES_LEN(off); i++)
        if (ses_json_bool(ses_json_get(c, off[i]), &on) && on)
            return ses_fail(e, SES_EUNSUPPORTED, "\"%s\" is true: only plain LoRA is supported", off[i]);
    for (size_t i = 0; i < SES_LEN(empty); i++)
        if (ses_json_len(ses_json_get(c, empty[i])))
            return ses_fail(e, SES_EUNSUPPORTED, "\"%s\" is not empty: only plain LoRA is supported",
                            empty[i]);
    if (how && strcmp(how, "gaussian"))
        return ses_fail(
            e, SES_EUNSUPPORTED,
            "\"init_lora_weights\" is \"%s\", which changes the base model's weights: not supported",
            ses_quoted_of(how, strlen(how)).s);
    return true;
}

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
    bool ok = d != NULL;
    if (ok && !check_supported(c, e)) ok = ses_wrap(e, "%s/" SES_ADAPTER_CONFIG, dir);
    if (ok && !ses_json_real(ses_json_get(c, "lora_alpha"), &a->lora.alpha))
        ok = ses_fail(e, SES_EFORMAT, "%s/" SES_ADAPTER_CONFIG ": \"lora_alpha\" is missing or not a number",
                      dir);
    if (ok) {
        ses_json_bool(ses_json_get(c, "use_rslora"), &a->use_rslora);
        a->lora.rank = 1; /* each layer's rank follows from its tensors */
        a->base = base_of(c, dir, base, e);
        ok = a->base != NULL;
    }
    ses_json_free(d);
    return ok;
}

/* ---- the config of a folder ---- */

static const struct {
    const char *task, *head;
} tasks[] = {
    { "SEQ_CLS", "classify" },
    { "TOKEN_CLS", "tag" },
    { "QUESTION_ANS", "span" },
    { "CAUSAL_LM", "causal-lm" },
    { "SEQ_2_SEQ_LM", "conditional-generation" },
};

static const char *class_of(const ses_json *adapter, const ses_json *config)
{
    const char *task = ses_json_string(ses_json_get(adapter, "task_type"), NULL);
    for (size_t i = 0; task && i < SES_LEN(tasks); i++)
        if (!strcmp(task, tasks[i].task)) return ses_model_class_for_head(config, tasks[i].head, NULL);
    return NULL;
}

/* Number of labels of a head in the file: rows of its smallest matrix. 0: no head. */
static int64_t count_labels(const char *dir)
{
    char *path = ses_path_join(dir, SES_ADAPTER_FILE, NULL);
    ses_safetensors *f = path ? ses_safetensors_open(path, NULL) : NULL;
    int64_t smallest = 0;
    for (size_t i = 0; f && i < ses_safetensors_count(f); i++) {
        const ses_tensor_entry *x = ses_safetensors_at(f, i);
        if (x->rank != 2 || strstr(x->name, ".lora_")) continue;
        if (!smallest || x->dim[0] < smallest) smallest = x->dim[0];
    }
    ses_safetensors_free(f);
    ses_free(path);
    return smallest;
}

/* The base model's config with the adapter's class and number of labels. */
static ses_json_doc *derive(const char *dir, const ses_json *adapter, const ses_json *config, ses_err *e)
{
    const char *class = class_of(adapter, config);
    int64_t labels = class ? count_labels(dir) : 0;
    bool named = (int64_t)ses_json_len(ses_json_get(config, "id2label")) == labels;
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (!w) return NULL;
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
    if (labels && !named) ses_json_member_int(w, "num_labels", labels);
    ses_json_end_object(w);
    return ses_json_writer_parse(w, e);
}

/* config.json, or a config derived from the files of a TensorFlow checkpoint or of ELMo. */
static ses_json_doc *load_config(const char *dir, const char *class, ses_err *e)
{
    char index[4096];
    if (ses_elmo_folder_is(dir)) return ses_elmo_config_open(dir, e);
    if (!has_file(dir, "config.json") && ses_tf_folder_is(dir)) return ses_tf_config_open(dir, class, e);
    int n = snprintf(index, sizeof index, "%s.index", dir);
    if (n > 0 && (size_t)n < sizeof index && !ses_path_exists(dir) && ses_path_exists(index)) {
        ses_fail(e, SES_EARG, "%s: the prefix of a TensorFlow checkpoint; name its folder instead", dir);
        return NULL;
    }
    return load(dir, "config.json", e);
}

ses_json_doc *ses_model_config_open_as(const char *dir, const char *base, const char *class_name, ses_err *e)
{
    if (has_file(dir, "config.json") || !ses_model_is_adapter(dir)) return load_config(dir, class_name, e);
    ses_json_doc *adapter = load(dir, SES_ADAPTER_CONFIG, e), *d = NULL, *config = NULL;
    char *from = adapter ? base_of(ses_json_root(adapter), dir, base, e) : NULL;
    config = from ? load_config(from, class_name, e) : NULL;
    if (config) d = derive(dir, ses_json_root(adapter), ses_json_root(config), e);
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

static const char *last_of(const char *module)
{
    const char *dot = strrchr(module, '.');
    return dot ? dot + 1 : module;
}

/* The shortest name that selects this layer and no layer without an adapter; peft matches names by their
 * end. */
static const char *target_name(const ses_adapter *a, const ses_lora_target *d)
{
    for (size_t i = 0; i < a->n; i++)
        if (!a->dense[i].has_lora && !strcmp(last_of(a->dense[i].hf_name), last_of(d->hf_name)))
            return d->hf_name;
    return last_of(d->hf_name);
}

static void put_targets(const ses_adapter *a, ses_json_writer *w)
{
    ses_json_member_array(w, "target_modules");
    for (size_t i = 0; i < a->n; i++) {
        if (!a->dense[i].has_lora) continue;
        const char *name = target_name(a, &a->dense[i]);
        bool listed = false;
        for (size_t j = 0; j < i && !listed; j++)
            listed = a->dense[j].has_lora && !strcmp(target_name(a, &a->dense[j]), name);
        if (!listed) ses_json_put_string(w, name);
    }
    ses_json_end_array(w);
}

/* A module that is trained and saved as a whole; for a head its outermost module. */
static bool saved_module(const ses_model *m, size_t i, char *buf, size_t n)
{
    const ses_param *p = ses_store_at(m->store, i);
    const char *prefix = ses_class_prefix(m);
    if (p->role != SES_PARAM_TRAINED || strstr(p->name, ".lora_") || !ses_model_tensor_name(m, i, buf, n))
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
    static const char *const nothing[] = { "auto_mapping", "layer_replication", "layers_pattern",
                                           "layers_to_transform" };
    static const char *const empty[] = { "alpha_pattern", "loftq_config", "rank_pattern" };
    const ses_adapter *a = m->adapter;
    const ses_head *head = m->class->head[0].head;
    char *absolute = realpath(a->base, NULL); /* absolute: valid from any folder */
    ses_hub_name hub;
    bool is_hub = ses_hub_name_of_snapshot(absolute ? absolute : a->base, &hub);
    ses_json_begin_object(w);
    ses_json_member_string(w, "peft_type", "LORA");
    ses_json_member_string(w, "task_type", head ? head->peft_task : "FEATURE_EXTRACTION");
    ses_json_member_string(w, "base_model_name_or_path", is_hub ? hub.id : absolute ? absolute : a->base);
    ses_json_member_string(w, "revision", is_hub ? hub.revision : NULL);
    ses_json_member_int(w, "r", a->lora.rank);
    ses_json_member_real(w, "lora_alpha", a->lora.alpha);
    ses_json_member_real(w, "lora_dropout", a->lora.dropout);
    put_targets(a, w);
    put_saved(m, w);
    ses_json_member_bool(w, "fan_in_fan_out", m->c.weights_in_out);
    ses_json_member_bool(w, "inference_mode", true);
    ses_json_member_bool(w, "init_lora_weights", true);
    ses_json_member_string(w, "bias", "none");
    ses_json_member_bool(w, "use_dora", false);
    ses_json_member_bool(w, "use_rslora", false);
    for (size_t i = 0; i < SES_LEN(nothing); i++) ses_json_member_string(w, nothing[i], NULL);
    for (size_t i = 0; i < SES_LEN(empty); i++) {
        ses_json_member_object(w, empty[i]);
        ses_json_end_object(w);
    }
    ses_json_end_object(w);
    ses_free(absolute);
}

bool ses_adapter_save_config(const ses_model *m, const char *dir, bool overwrite, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(2, e);
    if (w) put_config(m, w);
    return ses_json_writer_save(w, dir, SES_ADAPTER_CONFIG, overwrite, e);
}
