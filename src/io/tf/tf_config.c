/* config.json of a TensorFlow checkpoint: from the config file beside it and from the shapes of its
 * variables. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "base/str.h"
#include "folder/tf_folder.h"
#include "tf_family.h"
#include "tf_read.h"

#include <stdio.h>
#include <string.h>

enum { MAX_CONFIG = 1 << 24 };

/* The name of a key in config.json. */
static const char *new_key(const ses_tf_family *f, const char *key)
{
    for (size_t i = 0; f->renamed && f->renamed[i][0]; i++)
        if (!strcmp(f->renamed[i][0], key)) return f->renamed[i][1];
    return key;
}

static void put_original(const ses_tf_family *f, const ses_json *original, ses_json_writer *w)
{
    for (size_t i = 0; i < ses_json_len(original); i++) {
        size_t n;
        const char *key = ses_json_key(original, i, &n);
        if (strlen(key) != n || !strcmp(key, "model_type") || !strcmp(key, "architectures")) continue;
        ses_json_put_key(w, new_key(f, key));
        const char *text = ses_json_string(ses_json_at(original, i), NULL);
        if (f->gelu && text && !strcmp(key, "hidden_act") && !strcmp(text, "gelu"))
            ses_json_put_string(w, f->gelu);
        else
            ses_json_put_value(w, ses_json_at(original, i));
    }
}

/* The number of layers: the highest # plus one. */
static int64_t count_layers(const ses_tf_index *x, const char *pattern)
{
    int64_t layers = 0, number[2];
    for (size_t i = 0; i < x->n; i++)
        if (ses_tf_match(pattern, x->tensor[i].name, number) && number[0] >= layers) layers = number[0] + 1;
    return layers;
}

static void put_sizes(const ses_tf_index *x, const ses_tf_family *f, const ses_json *original,
                      ses_json_writer *w)
{
    const char *last = "";
    for (size_t i = 0; i < f->n_sizes; i++) {
        const ses_tf_size *s = &f->size[i];
        const ses_tf_tensor *t = s->axis < 0 ? NULL : ses_tf_find(x, s->variable);
        if (!strcmp(s->key, last) || ses_json_get(original, s->key)) continue;
        if (s->axis >= 0 && (!t || t->rank <= s->axis)) continue;
        ses_json_member_int(w, s->key, t ? t->dim[s->axis] : count_layers(x, s->variable));
        last = s->key;
    }
}

static void put_class(const ses_tf_index *x, const ses_tf_family *f, const ses_json *original,
                      ses_json_writer *w)
{
    const ses_tf_class *c = f->class;
    const ses_tf_tensor *t = NULL;
    for (; c->variable && !t; c++) {
        t = ses_tf_find(x, c->variable);
        if (t) break;
    }
    ses_json_member_array(w, "architectures");
    ses_json_put_string(w, c->name);
    ses_json_end_array(w);
    if (t && c->labels && t->rank && !ses_json_get(original, "num_labels") &&
        !ses_json_get(original, "id2label"))
        ses_json_member_int(w, "num_labels", t->dim[0]);
}

static bool put_constants(const ses_tf_family *f, const ses_json *original, ses_json_writer *w, ses_err *e)
{
    if (!f->constants) return true;
    ses_json_doc *d = ses_json_parse(f->constants, strlen(f->constants), e);
    const ses_json *all = d ? ses_json_root(d) : NULL;
    for (size_t i = 0; i < ses_json_len(all); i++) {
        const char *key = ses_json_key(all, i, NULL);
        if (ses_json_get(original, key)) continue;
        ses_json_put_key(w, key);
        ses_json_put_value(w, ses_json_at(all, i));
    }
    ses_json_free(d);
    return d != NULL;
}

ses_json_doc *ses_tf_config_new(const ses_tf_index *x, const ses_tf_family *f, const ses_json *original,
                                ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(-1, e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "model_type", f->name);
    put_class(x, f, original, w);
    put_original(f, original, w);
    put_sizes(x, f, original, w);
    bool ok = put_constants(f, original, w, e) && (!f->put_config || f->put_config(x, original, w, e));
    ses_json_end_object(w);
    if (ok) return ses_json_writer_parse(w, e);
    ses_json_writer_free(w);
    return NULL;
}

/* *doc stays NULL if the family has no config file, or the folder lacks an optional one. */
static bool load_original(const char *dir, const ses_tf_family *f, ses_json_doc **doc, ses_err *e)
{
    *doc = NULL;
    if (!f->config) return true;
    char *path = ses_path_join(dir, f->config, e);
    bool ok = path != NULL;
    if (path && (!f->config_optional || ses_path_exists(path))) {
        if (ses_path_exists(path))
            *doc = ses_json_load_object(path, MAX_CONFIG, e);
        else
            ses_fail(e, SES_EIO, "%s: not found: a TensorFlow checkpoint of %s needs it (or a config.json)",
                     path, f->name);
        ok = *doc != NULL;
    }
    ses_free(path);
    return ok;
}

ses_json_doc *ses_tf_config_open(const char *dir, const char *class, ses_err *e)
{
    ses_tf_index x;
    ses_json_doc *original = NULL, *config = NULL;
    char *prefix = ses_tf_folder_prefix(dir, e);
    if (prefix && ses_tf_index_open(&x, dir, prefix, e)) {
        const ses_tf_family *f = ses_tf_family_of(&x, class, e);
        if (!f) ses_wrap(e, "%s/%s.index", dir, prefix);
        if (f && load_original(dir, f, &original, e))
            config = ses_tf_config_new(&x, f, original ? ses_json_root(original) : NULL, e);
        ses_json_free(original);
        ses_tf_index_free(&x);
    }
    ses_free(prefix);
    return config;
}
