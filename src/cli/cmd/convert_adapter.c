/* convert --keep-adapter: converts the weights of an adapter; its base model gets a relative path. */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "cli/ui/show_values.h"
#include "convert_model.h"
#include "folder/model_folder.h"
#include "sesame/model.h"
#include "sesame/safetensors.h"
#include "text/tokenizer_files.h"

#include <math.h>
#include <string.h>

enum { MAX_CONFIG = 16 << 20, MAX_COMPARED = 1 << 28 };

typedef struct adapter_job {
    const char *from;
    ses_convert_output out;
    char *base;
    ses_dtype dtype;
    bool overwrite;
    ses_arena mem;
    ses_buf copied;
    size_t tensors, bytes;
} adapter_job;

/* ---- weights ---- */

static bool add_tensor(adapter_job *j, const ses_tensor_entry *x, ses_safetensors_writer *w, ses_err *e)
{
    size_t n = (size_t)x->count, bytes = n * ses_dtype_size(j->dtype);
    void *data = ses_arena_array(&j->mem, n, ses_dtype_size(j->dtype), e);
    float *wide = data ? ses_arena_array(&j->mem, n, sizeof *wide, e) : NULL;
    if (!wide || !ses_convert(data, j->dtype, x->data, x->dtype, n, e) ||
        !ses_convert(wide, SES_F32, data, j->dtype, n, e))
        return ses_wrap(e, "%s: tensor \"%s\"", j->from, x->name);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(wide[i]))
            return ses_fail(e, SES_EARG, "%s: tensor \"%s\": a value exceeds the range of %s", j->from,
                            x->name, ses_dtype_name(j->dtype));
    j->tensors++, j->bytes += bytes;
    return ses_safetensors_writer_add(w, x->name, j->dtype, x->rank, x->dim, data, e);
}

static bool write_weights(adapter_job *j, ses_err *e)
{
    char *from = ses_path_join(j->from, "adapter_model.safetensors", e),
         *to = from ? ses_path_join(j->out.dir, "adapter_model.safetensors", e) : NULL;
    ses_safetensors *file = to ? ses_safetensors_open(from, e) : NULL;
    ses_safetensors_writer *w = file ? ses_safetensors_writer_new(e) : NULL;
    bool ok = w && ses_safetensors_writer_add_meta(w, "format", "pt", e);
    for (size_t i = 0; ok && i < ses_safetensors_count(file); i++)
        ok = add_tensor(j, ses_safetensors_at(file, i), w, e);
    ok = ok && ses_safetensors_save(w, to, j->overwrite, e);
    ses_safetensors_writer_free(w);
    ses_safetensors_free(file);
    ses_free(from);
    ses_free(to);
    return ok;
}

/* ---- other files ---- */

/* Writes adapter_config.json with the base model path relative to the new folder. */
static bool write_config(adapter_job *j, ses_err *e)
{
    static const char key[] = "base_model_name_or_path";
    char *from = ses_path_join(j->from, SES_ADAPTER_CONFIG, e);
    ses_json_doc *doc = from ? ses_json_load_object(from, MAX_CONFIG, e) : NULL;
    ses_json_writer *w = doc ? ses_json_writer_new(2, e) : NULL;
    const ses_json *root = doc ? ses_json_root(doc) : NULL;
    char *name = w ? ses_adapter_base_name(j->base, j->out.dir) : NULL;
    if (w) ses_json_begin_object(w);
    for (size_t i = 0; w && i < ses_json_len(root); i++) {
        const char *at = ses_json_key(root, i, NULL);
        ses_json_put_key(w, at);
        if (!strcmp(at, key))
            ses_json_put_string(w, name ? name : j->base);
        else
            ses_json_put_value(w, ses_json_at(root, i));
    }
    if (w) ses_json_end_object(w);
    ses_json_free(doc);
    ses_free(name);
    ses_free(from);
    return ses_json_writer_save(w, j->out.dir, SES_ADAPTER_CONFIG, j->overwrite, e);
}

/* Whether the base model has an identical file. */
static bool base_has_same(const adapter_job *j, const char *name)
{
    size_t n = 0, m = 0;
    char *a = ses_path_join(j->from, name, NULL), *b = ses_path_join(j->base, name, NULL);
    char *adapter_data = a ? ses_file_read(a, MAX_COMPARED, &n, NULL) : NULL,
         *base_data = adapter_data && b ? ses_file_read(b, MAX_COMPARED, &m, NULL) : NULL;
    bool same = base_data && n == m && !memcmp(adapter_data, base_data, n);
    ses_free(adapter_data);
    ses_free(base_data);
    ses_free(a);
    ses_free(b);
    return same;
}

static bool copy(adapter_job *j, const char *name, ses_err *e)
{
    return ses_convert_copy(j->from, j->out.dir, name, j->overwrite, &j->copied, e);
}

static bool copy_module(adapter_job *j, const char *folder, ses_err *e)
{
    static const char *const files[] = { "config.json", "model.safetensors", "pytorch_model.bin" };
    char *to = strstr(folder, "..") || *folder == '/' ? NULL : ses_path_join(j->out.dir, folder, e);
    if (!to) return !e->code && ses_fail(e, SES_EFORMAT, "%s/modules.json: path \"%s\"", j->from, folder);
    bool ok = ses_dir_make(to, e);
    for (size_t i = 0; ok && i < SES_LEN(files); i++) {
        char *name = ses_path_join(folder, files[i], e);
        ok = name && copy(j, name, e);
        ses_free(name);
    }
    ses_free(to);
    return ok;
}

/* Copies the modules of a sentence encoder. */
static bool copy_modules(adapter_job *j, ses_err *e)
{
    char *path = ses_path_join(j->from, "modules.json", e);
    if (!path || !ses_path_exists(path)) {
        ses_free(path);
        return path != NULL;
    }
    ses_json_doc *doc = ses_json_load(path, MAX_CONFIG, e);
    const ses_json *list = doc ? ses_json_root(doc) : NULL;
    bool ok = doc && copy(j, "sentence_bert_config.json", e) &&
              copy(j, "config_sentence_transformers.json", e) && copy(j, "modules.json", e);
    for (size_t i = 0; ok && i < ses_json_len(list); i++) {
        const char *folder = ses_json_string(ses_json_get(ses_json_at(list, i), "path"), NULL);
        if (folder && *folder) ok = copy_module(j, folder, e);
    }
    ses_json_free(doc);
    ses_free(path);
    return ok;
}

static bool convert(adapter_job *j, ses_err *e)
{
    if (!ses_model_is_adapter(j->from))
        return ses_fail(e, SES_EARG, "%s: not an adapter: adapter_config.json not found", j->from);
    if (j->dtype == SES_I8)
        return ses_fail(e, SES_EUSAGE, "--keep-adapter supports --dtype f32, f16 and bf16, not int8");
    j->base = ses_model_base_dir(j->from, NULL, e);
    if (!j->base || !ses_dir_make(j->out.dir, e)) return false;
    if (!j->overwrite && ses_model_is_adapter(j->out.dir))
        return ses_fail(e, SES_EIO, "%s: already contains a model; use --overwrite to replace it", j->out.to);
    if (!copy(j, "config.json", e) || !copy(j, "generation_config.json", e) || !copy_modules(j, e))
        return false;
    for (size_t i = 0; i < SES_TOKENIZER_FILES; i++)
        if (!base_has_same(j, ses_tokenizer_file_names[i]) && !copy(j, ses_tokenizer_file_names[i], e))
            return false;
    return write_weights(j, e) && write_config(j, e) && ses_buf_ok(&j->copied, e);
}

static bool print_json(const adapter_job *j, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "from", j->from);
    ses_json_member_string(w, "to", j->out.to);
    ses_json_member_string(w, "base", j->base);
    ses_json_member_string(w, "dtype", ses_dtype_name(j->dtype));
    ses_json_member_int(w, "bytes", (int64_t)j->bytes);
    ses_json_member_list(w, "copied", j->copied.len ? j->copied.data : "");
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

bool ses_convert_adapter(const ses_call *c, const char *from, const char *to, ses_dtype dtype, bool overwrite,
                         bool json, ses_err *e)
{
    char human[SES_NUMBER_TEXT];
    adapter_job j = { .from = from, .dtype = dtype, .overwrite = overwrite };
    bool ok = ses_convert_output_open(&j.out, to, e) && convert(&j, e);
    ok = ses_convert_output_close(&j.out, ok, e);
    if (ok && json) {
        ok = print_json(&j, e);
    } else if (ok && !c->quiet) {
        ses_show_line(&c->out, "Wrote", "%s: adapter_config.json, adapter_model.safetensors", to);
        ses_show_line(&c->out, "Adapter", "of %s: %zu tensors, %s, %s", j.base, j.tensors,
                      ses_dtype_name(dtype), ses_bytes_text(human, j.bytes));
        if (j.copied.len) ses_show_line(&c->out, "Copied", "%s", j.copied.data);
    }
    ses_buf_free(&j.copied);
    ses_arena_free(&j.mem);
    ses_free(j.base);
    return ok;
}
