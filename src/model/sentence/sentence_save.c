/* Saves a sentence encoder as a sentence-transformers folder: the model at the root, one folder per module,
 * in a format that every version of the library reads. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "model/model_desc.h"
#include "sentence_impl.h"

#include <stdio.h>
#include <string.h>

typedef void put_json(ses_json_writer *w, const ses_sentence *s, const ses_module *m);

/* Writes the JSON text that `put` makes to dir/name. */
static bool write_json(const char *dir, const char *name, put_json *put, const ses_sentence *s,
                       const ses_module *m, bool overwrite, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(2, e);
    if (w) put(w, s, m);
    return ses_json_writer_save(w, dir, name, overwrite, e);
}

/* "1_Pooling"; the Transformer module has no folder. */
static void folder_of(char buf[64], const ses_sentence *s, const ses_module *m)
{
    int i = (int)(m - s->modules.item);
    buf[0] = 0;
    if (i) snprintf(buf, 64, "%d_%s", i, m->kind->name);
}

static void put_list(ses_json_writer *w, const ses_sentence *s, const ses_module *m)
{
    (void)m;
    ses_json_begin_array(w);
    for (size_t i = 0; i < s->modules.n; i++) {
        char number[24], folder[64], type[96];
        snprintf(number, sizeof number, "%zu", i);
        folder_of(folder, s, &s->modules.item[i]);
        snprintf(type, sizeof type, "sentence_transformers.models.%s", s->modules.item[i].kind->name);
        ses_json_begin_object(w);
        ses_json_member_int(w, "idx", (int64_t)i);
        ses_json_member_string(w, "name", number);
        ses_json_member_string(w, "path", folder);
        ses_json_member_string(w, "type", type);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
}

static void put_limits(ses_json_writer *w, const ses_sentence *s, const ses_module *m)
{
    (void)m;
    ses_json_begin_object(w);
    ses_json_member_int(w, "max_seq_length", s->max_tokens);
    ses_json_member_bool(w, "do_lower_case", s->lower_case);
    ses_json_end_object(w);
}

static void put_about(ses_json_writer *w, const ses_sentence *s, const ses_module *m)
{
    (void)m;
    ses_json_put_value(w, ses_json_root(s->st_config));
}

/* A module's config.json. Pooling modes in the default order are written as boolean keys, which every version
 * reads. */
static void put_config(ses_json_writer *w, const ses_sentence *s, const ses_module *m)
{
    (void)s;
    bool rising = true;
    for (int i = 1; i < m->pools; i++) rising &= m->pool[i] > m->pool[i - 1];
    ses_json_begin_object(w);
    if (m->pools) ses_json_member_int(w, "word_embedding_dimension", m->in);
    if (m->pools && !rising) {
        ses_json_member_array(w, "pooling_mode");
        for (int i = 0; i < m->pools; i++) ses_json_put_string(w, ses_sentence_pool_name(m->pool[i]));
        ses_json_end_array(w);
    }
    for (int p = 0; m->pools && rising && p < SES_SENTENCE_POOL_COUNT; p++) {
        const char *key = ses_sentence_pool_legacy_key((ses_sentence_pool)p);
        bool on = false;
        for (int i = 0; i < m->pools; i++) on |= (int)m->pool[i] == p;
        if (key) ses_json_member_bool(w, key, on);
    }
    if (m->pools) ses_json_member_bool(w, "include_prompt", !m->skip_prompt);
    if (m->dense.w) {
        ses_json_member_int(w, "in_features", m->in);
        ses_json_member_int(w, "out_features", m->out);
        ses_json_member_bool(w, "bias", !m->no_bias);
        ses_json_member_string(w, "activation_function", ses_act_path(m->act));
    }
    if (m->residual) ses_json_member_bool(w, "use_residual", true);
    if (m->norm.gain) ses_json_member_int(w, "dimension", m->in);
    if (m->kind == ses_module_find("Dropout")) ses_json_member_real(w, "dropout", m->dropout);
    ses_json_end_object(w);
}

/* Saves the parameters whose names begin with the module's number. */
static bool save_weights(const ses_sentence *s, const ses_module *m, const char *dir,
                         const ses_save_options *o, ses_err *e)
{
    char prefix[24];
    ses_dtype dtype = o->dtype == SES_I8 ? SES_F16 : o->dtype; /* modules are small */
    size_t n = ses_store_count(s->store), len;
    snprintf(prefix, sizeof prefix, "%d.", (int)(m - s->modules.item));
    len = strlen(prefix);
    ses_param_source *from = ses_alloc_array(n, sizeof *from, e);
    ses_safetensors_writer *w = from ? ses_safetensors_writer_new(e) : NULL;
    bool ok = w && ses_safetensors_writer_add_meta(w, "format", "pt", e);
    for (size_t i = 0; ok && i < n; i++) {
        const ses_param *p = ses_store_at(s->store, i);
        if (strncmp(p->name, prefix, len) != 0) continue;
        from[i] = (ses_param_source){ .dev = ses_store_device(s->store), .t = p->tensor, .dtype = dtype };
        ok = ses_safetensors_writer_add_source(w, p->name + len, dtype, ses_rank(p->tensor), p->tensor->dim,
                                               ses_param_read, &from[i], e);
    }
    ok = ok && ses_checkpoint_save(w, dir, 0, o->overwrite, e);
    ses_safetensors_writer_free(w);
    ses_free(from);
    return ok;
}

static bool save_module(const ses_sentence *s, const ses_module *m, const char *dir,
                        const ses_save_options *o, ses_err *e)
{
    char folder[64];
    folder_of(folder, s, m);
    char *path = ses_path_join(dir, folder, e);
    bool ok = path && ses_dir_make(path, e) &&
              write_json(path, "config.json", put_config, s, m, o->overwrite, e) &&
              (!m->kind->weights || save_weights(s, m, path, o, e));
    ses_free(path);
    return ok;
}

bool ses_sentence_save(const ses_sentence *s, const char *dir, const ses_save_options *options, ses_err *e)
{
    ses_save_options o = options ? *options : (ses_save_options){ .dtype = SES_F32 };
    if (!ses_model_save(s->model, dir, &o, e)) return false;
    for (size_t i = 1; i < s->modules.n; i++)
        if (!save_module(s, &s->modules.item[i], dir, &o, e)) return false;
    return write_json(dir, "sentence_bert_config.json", put_limits, s, NULL, o.overwrite, e) &&
           (!s->st_config ||
            write_json(dir, "config_sentence_transformers.json", put_about, s, NULL, o.overwrite, e)) &&
           write_json(dir, "modules.json", put_list, s, NULL, o.overwrite,
                      e); /* last: this file makes the folder a sentence encoder */
}
