/* Opens the weights of a model folder: model.safetensors, or model.safetensors.index.json with its shards; or
 * the PyTorch or int8 equivalents; or a TensorFlow checkpoint; or ELMo's HDF5 file. */
#include "safetensors_impl.h"

#include "base/alloc.h"
#include "base/str.h"
#include "elmo_read.h"
#include "folder/elmo_folder.h"
#include "folder/file_kind.h"
#include "folder/tf_folder.h"
#include "io/tf/tf_read.h"
#include "sesame/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Layouts in order of preference. */
static const struct layout {
    const char *name, *index;
    ses_tensor_reader *read;
} layouts[] = {
    { "model.safetensors", "model.safetensors.index.json", ses_safetensors_add },
    { "pytorch_model.bin", "pytorch_model.bin.index.json", ses_torch_add },
    { "model." SES_INT8_EXT, "model." SES_INT8_EXT ".index.json", ses_safetensors_add },
};

/* Shards named by an index, sorted. */
typedef struct shards {
    ses_strmap seen; /* set of file names */
    const char **file;
    size_t n;
} shards;

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A file name that cannot point outside the folder. */
static bool is_plain_name(const char *name, size_t n)
{
    return n && strlen(name) == n && !strchr(name, '/') && !strchr(name, '\\') && !strstr(name, "..") &&
           name[0] != '.';
}

static bool collect_shards(shards *s, const ses_json *map, ses_err *e)
{
    size_t n = ses_json_len(map);
    for (size_t i = 0; i < n; i++) {
        size_t kn, len = 0;
        const char *tensor = ses_json_key(map, i, &kn), *file = ses_json_string(ses_json_at(map, i), &len);
        bool fresh = false;
        if (!file)
            return ses_fail(e, SES_EFORMAT, "weight_map: tensor \"%s\": a file name expected, not %s",
                            ses_quoted_of(tensor, kn).s,
                            ses_json_type_name(ses_json_type_of(ses_json_at(map, i))));
        if (!is_plain_name(file, len))
            return ses_fail(e, SES_EFORMAT, "weight_map: tensor \"%s\": \"%s\" is not a plain file name",
                            ses_quoted_of(tensor, kn).s, ses_quoted_of(file, len).s);
        if (!ses_strmap_insert(&s->seen, file, len, 0, &fresh, e)) return false;
    }
    s->n = s->seen.count;
    s->file = ses_alloc_array(s->n, sizeof *s->file, e);
    if (!s->file) return false;
    for (size_t i = 0; i < s->n; i++) s->file[i] = s->seen.entry[i].key;
    qsort(s->file, s->n, sizeof *s->file, by_name);
    return true;
}

/* The index and the shards must name the same tensors. */
static bool check_map(const ses_safetensors *s, const ses_json *map, ses_err *e)
{
    for (size_t i = 0; i < ses_json_len(map); i++) {
        size_t n;
        const char *name = ses_json_key(map, i, &n), *file = ses_json_string(ses_json_at(map, i), NULL);
        const ses_tensor_entry *t = strlen(name) == n ? ses_safetensors_find(s, name) : NULL;
        if (!t) return ses_fail(e, SES_EFORMAT, "tensor \"%s\" is not in %s", ses_quoted_of(name, n).s, file);
        if (strcmp(t->file, file) != 0)
            return ses_fail(e, SES_EFORMAT, "tensor \"%s\" is in %s, not in %s", ses_quoted_of(name, n).s,
                            t->file, file);
    }
    for (size_t i = 0; i < s->n_entry; i++) {
        const ses_tensor_entry *t = &s->entry[i];
        if (!ses_json_get(map, t->name))
            return ses_fail(e, SES_EFORMAT, "tensor \"%s\" of %s is not in weight_map",
                            ses_quoted_of(t->name, strlen(t->name)).s, t->file);
    }
    return true;
}

static const ses_json *weight_map(const ses_json_doc *doc, ses_err *e)
{
    const ses_json *root = ses_json_root(doc), *map = ses_json_get(root, "weight_map");
    if (ses_json_type_of(root) != SES_JSON_OBJECT)
        ses_fail(e, SES_EFORMAT, "an object expected, not %s", ses_json_type_name(ses_json_type_of(root)));
    else if (!map)
        ses_fail(e, SES_EFORMAT, "weight_map missing");
    else if (ses_json_type_of(map) != SES_JSON_OBJECT)
        ses_fail(e, SES_EFORMAT, "weight_map: an object expected, not %s",
                 ses_json_type_name(ses_json_type_of(map)));
    else if (!ses_json_len(map))
        ses_fail(e, SES_EFORMAT, "weight_map is empty");
    else
        return map;
    return NULL;
}

/* Opens the shards of an index. Errors in a shard begin with its name. */
static bool read_index(ses_safetensors *s, const char *text, size_t n, ses_tensor_reader *read,
                       ses_shard_source *get, void *ctx, ses_err *e)
{
    shards all = { 0 };
    bool ok = false;
    ses_json_doc *doc = ses_check_not_lfs(text, n, "index", e) ? ses_json_parse(text, n, e) : NULL;
    const ses_json *map = doc ? weight_map(doc, e) : NULL;
    if (!map || !collect_shards(&all, map, e)) goto done;
    for (size_t i = 0; i < all.n; i++) {
        const void *bytes = NULL;
        size_t size = 0;
        if (!get(ctx, all.file[i], &bytes, &size, e)) goto done;
        if (!read(s, bytes, size, all.file[i], e)) {
            ses_wrap(e, "%s", all.file[i]);
            goto done;
        }
    }
    ok = check_map(s, map, e);
done:
    ses_strmap_free(&all.seen);
    ses_free(all.file);
    ses_json_free(doc);
    return ok;
}

ses_safetensors *ses_checkpoint_from_index(const char *text, size_t n, ses_shard_source *get, void *ctx,
                                           ses_err *e)
{
    ses_safetensors *s = ses_alloc(sizeof *s, e);
    if (s && read_index(s, text, n, layouts[0].read, get, ctx, e)) return s;
    ses_wrap(e, "%s", layouts[0].index);
    ses_safetensors_free(s);
    return NULL;
}

typedef struct folder {
    const char *dir;
    ses_safetensors *s;
} folder;

static bool map_shard(void *ctx, const char *file, const void **bytes, size_t *n, ses_err *e)
{
    folder *f = ctx;
    ses_safetensors *s = f->s;
    ses_mmap *map = ses_realloc_array(s->map, s->n_map + 1, sizeof *map, e);
    if (!map) return false;
    s->map = map;
    char *path = ses_path_join(f->dir, file, e);
    bool ok = path && ses_mmap_open(&map[s->n_map], path, e);
    ses_free(path);
    if (!ok) return false;
    *bytes = map[s->n_map].data;
    *n = map[s->n_map].size;
    s->n_map++;
    return true;
}

static ses_safetensors *open_index(const char *dir, const char *path, ses_tensor_reader *read, ses_err *e)
{
    size_t n;
    folder f = { dir, NULL };
    char *text = ses_file_read(path, SES_SAFETENSORS_MAX_HEADER, &n, e);
    if (!text) return NULL;
    f.s = ses_alloc(sizeof *f.s, e);
    if (f.s && !read_index(f.s, text, n, read, map_shard, &f, e)) {
        ses_wrap(e, "%s", path);
        ses_safetensors_free(f.s);
        f.s = NULL;
    }
    ses_free(text);
    return f.s;
}

/* Appends the file to the error. */
static void put_other(const char *name, const ses_file_kind *kind, ses_err *e)
{
    size_t n = e ? strlen(e->msg) : 0;
    ses_quoted q = ses_quoted_of(name, strlen(name));
    if (e && kind->file)
        snprintf(e->msg + n, sizeof e->msg - n, "; %s has %s: if they are the model's, name it %s", q.s,
                 kind->name, kind->file);
    else if (e)
        snprintf(e->msg + n, sizeof e->msg - n, "; %s is %s: %s", q.s, kind->name, kind->remedy);
}

/* Reports the missing files, and unsupported formats in the folder with what to do about them. */
static void fail_not_found(const char *dir, ses_err *e)
{
    static const struct other {
        const char *name, *option;
    } other[] = { { "tf_model.h5", "from_tf" }, { "flax_model.msgpack", "from_flax" } };
    for (size_t i = 0; i < SES_LEN(other); i++) {
        char *path = ses_path_join(dir, other[i].name, e);
        if (path && ses_path_exists(path))
            ses_fail(e, SES_EUNSUPPORTED,
                     "%s: found %s, expected %s: take a revision of the model with safetensors, or convert "
                     "it in Python with transformers 4: AutoModel.from_pretrained(\"%s\", %s=True)"
                     ".save_pretrained(\"OUT\"), with the class of its task in place of AutoModel",
                     dir, other[i].name, layouts[0].name, dir, other[i].option);
        ses_free(path);
    }
    char name[256];
    const ses_file_kind *kind = ses_file_kind_in(dir, name);
    ses_fail(e, SES_EIO, "%s: neither %s nor %s nor an index of shards nor a TensorFlow checkpoint found",
             dir, layouts[0].name, layouts[1].name);
    if (kind) put_other(name, kind, e);
}

/* The checkpoint of google-research's files. */
static ses_safetensors *open_tf(const char *dir, const char *class, ses_err *e)
{
    folder f = { dir, NULL };
    ses_tf_index x;
    char *prefix = ses_tf_folder_prefix(dir, e);
    if (prefix && ses_tf_index_open(&x, dir, prefix, e)) {
        f.s = ses_alloc(sizeof *f.s, e);
        if (f.s && !ses_tf_read(f.s, &x, prefix, class, map_shard, &f, e)) {
            ses_wrap(e, "%s/%s.index", dir, prefix);
            ses_safetensors_free(f.s);
            f.s = NULL;
        }
        ses_tf_index_free(&x);
    }
    ses_free(prefix);
    return f.s;
}

/* The original files of ELMo. */
static ses_safetensors *open_elmo(const char *dir, ses_err *e)
{
    folder f = { dir, NULL };
    ses_elmo_files name;
    const void *bytes = NULL;
    size_t n = 0;
    ses_json_doc *options =
        ses_elmo_folder_files(dir, &name, e) ? ses_elmo_options_open(dir, name.options, e) : NULL;
    ses_safetensors *raw = NULL;
    bool ok = false;
    if (!options) return NULL;
    f.s = ses_alloc(sizeof *f.s, e);
    if (f.s && map_shard(&f, name.weights, &bytes, &n, e))
        raw = ses_tensors_from_memory(ses_hdf5_add, bytes, n, name.weights, e);
    if (raw)
        ok = ses_elmo_read(f.s, raw, name.weights, ses_json_root(options), e) ||
             ses_wrap(e, "%s", name.weights);
    ses_safetensors_free(raw);
    ses_json_free(options);
    if (ok) return f.s;
    ses_wrap(e, "%s", dir);
    ses_safetensors_free(f.s);
    return NULL;
}

ses_safetensors *ses_tensors_open_files(const char *dir, const char *const file[], size_t n, ses_err *e)
{
    folder f = { dir, ses_alloc(sizeof *f.s, e) };
    for (size_t i = 0; f.s && i < n; i++) {
        const void *bytes = NULL;
        size_t size = 0;
        if (map_shard(&f, file[i], &bytes, &size, e)) {
            ses_tensor_reader *read = ses_is_torch_file(bytes, size) ? ses_torch_add : ses_safetensors_add;
            if (read(f.s, bytes, size, file[i], e)) continue;
            ses_wrap(e, "%s/%s", dir, file[i]);
        }
        ses_safetensors_free(f.s);
        f.s = NULL;
    }
    return f.s;
}

/* *found: one of the layout's files exists; the result or error is about it. */
static ses_safetensors *open_layout(const char *dir, const struct layout *l, bool *found, ses_err *e)
{
    ses_safetensors *s = NULL;
    char *one = ses_path_join(dir, l->name, e), *index = ses_path_join(dir, l->index, e);
    *found = true;
    if (!one || !index)
        s = NULL;
    else if (ses_path_exists(one))
        s = ses_tensors_open(l->read, one, e);
    else if (ses_path_exists(index))
        s = open_index(dir, index, l->read, e);
    else
        *found = false;
    ses_free(one);
    ses_free(index);
    return s;
}

ses_safetensors *ses_checkpoint_open_as(const char *dir, const char *class, ses_err *e)
{
    if (ses_path_exists(dir) && !ses_path_is_dir(dir)) return ses_tensors_open(NULL, dir, e);
    if (!ses_dir_check(dir, e)) return NULL;
    for (size_t i = 0; i < SES_LEN(layouts); i++) {
        bool found;
        ses_safetensors *s = open_layout(dir, &layouts[i], &found, e);
        if (found) return s;
    }
    if (ses_elmo_folder_is(dir)) return open_elmo(dir, e);
    if (ses_tf_folder_is(dir)) return open_tf(dir, class, e);
    fail_not_found(dir, e);
    return NULL;
}

ses_safetensors *ses_checkpoint_open(const char *dir, ses_err *e)
{
    return ses_checkpoint_open_as(dir, NULL, e);
}
