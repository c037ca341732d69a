/* Sesame's folder of word vectors:
 *
 *     config.json         "model_type": "word_vectors", "vocab_size": V, "hidden_size": d, and checksums
 *     model.safetensors   tensor "vectors" [V, d], f32
 *     vocab.txt           V words, a line feed after each; any other byte may occur in a word */
#include "base/alloc.h"
#include "base/dir.h"
#include "base/json/json_helpers.h"
#include "io/manifest.h"
#include "sesame/safetensors.h"
#include "vectors/vectors_impl.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define MODEL_TYPE "word_vectors"
enum { MAX_CONFIG = 1 << 20, MAX_TEMP = 32 };

typedef struct folder {
    ses_safetensors *file;
    ses_mmap vocab;
    const char *data; /* [V, d] */
} folder;

static ses_json_doc *load_config(const char *path, ses_err *e)
{
    char *name = ses_path_join(path, "config.json", e);
    ses_json_doc *d = name ? ses_json_load_object(name, MAX_CONFIG, e) : NULL;
    ses_free(name);
    return d;
}

static bool is_word_config(const ses_json_doc *d)
{
    const char *type = ses_json_string(ses_json_get(ses_json_root(d), "model_type"), NULL);
    return type && !strcmp(type, MODEL_TYPE);
}

/* The only folder among the formats; open checks it. */
static bool detect(const ses_vectors *v) { return v->is_folder; }

static bool read_config(ses_vectors *v, ses_err *e)
{
    ses_json_doc *d = load_config(v->path, e);
    const ses_json *root = ses_json_root(d);
    if (d && !is_word_config(d))
        ses_fail(e, SES_EFORMAT, "not a folder of word vectors: config.json lacks \"model_type\": \"%s\"",
                 MODEL_TYPE);
    bool ok = d && is_word_config(d) &&
              ((ses_json_int(ses_json_get(root, "vocab_size"), &v->stated) && v->stated >= 0 &&
                ses_json_int(ses_json_get(root, "hidden_size"), &v->dim)) ||
               ses_fail(e, SES_EFORMAT, "config.json: vocab_size and hidden_size must be integers")) &&
              ses_manifest_check_config(root, v->path, e);
    ses_json_free(d);
    return ok;
}

static bool open(ses_vectors *v, ses_err *e)
{
    folder *f = v->extra = ses_alloc(sizeof *f, e);
    char *weights = f ? ses_path_join(v->path, "model.safetensors", e) : NULL;
    char *vocab = weights ? ses_path_join(v->path, "vocab.txt", e) : NULL;
    bool ok = vocab && read_config(v, e) && (f->file = ses_safetensors_open(weights, e)) &&
              ses_mmap_open(&f->vocab, vocab, e);
    ses_free(weights);
    ses_free(vocab);
    if (!ok) return false;
    const ses_tensor_entry *t = ses_safetensors_find(f->file, "vectors");
    if (!t) return ses_fail(e, SES_EFORMAT, "model.safetensors: no tensor \"vectors\"");
    if (t->dtype != SES_F32 || t->rank != 2 || t->dim[0] != v->stated || t->dim[1] != v->dim)
        return ses_fail(e, SES_EFORMAT,
                        "model.safetensors: tensor \"vectors\": expected f32 of the shape in config.json, "
                        "[%" PRId64 ", %" PRId64 "]",
                        v->stated, v->dim);
    f->data = t->data;
    return true;
}

static bool next(ses_vectors *v, ses_vector_row *row, ses_err *e)
{
    const folder *f = v->extra;
    const char *p = (const char *)f->vocab.data + v->at;
    size_t left = f->vocab.size - v->at;
    if (!left) return true;
    if (v->read == v->stated)
        return ses_fail(e, SES_EFORMAT, "vocab.txt: more than %" PRId64 " words", v->stated);
    const char *end = memchr(p, '\n', left);
    size_t n = end ? (size_t)(end - p) : left;
    if (!ses_vector_word_check(p, n, e)) return ses_wrap(e, "vocab.txt: line %" PRId64, v->read + 1);
    *row = (ses_vector_row){ p, f->data + (size_t)v->read * (size_t)v->dim * 4, (uint32_t)n };
    v->at += n + (end != NULL);
    return true;
}

static void close_folder(ses_vectors *v)
{
    folder *f = v->extra;
    if (!f) return;
    ses_safetensors_free(f->file);
    ses_mmap_free(&f->vocab);
    ses_free(f);
}

/* ---- writing ---- */

static const char *refuses(ses_string word)
{
    return memchr(word.p, '\n', word.n) ? "a line feed in the word, which vocab.txt cannot store" : NULL;
}

typedef struct saving {
    const ses_vectors *v;
    const ses_vectors_save_options *o;
    float *x; /* one row */
} saving;

/* A ses_tensor_source; chunks need not end at rows. */
static bool give_rows(void *ctx, void *out, size_t offset, size_t bytes, ses_err *e)
{
    saving *s = ctx;
    size_t row_bytes = (size_t)s->v->dim * sizeof *s->x;
    for (size_t done = 0, n; done < bytes; done += n) {
        size_t row = (offset + done) / row_bytes, from = (offset + done) % row_bytes;
        n = row_bytes - from < bytes - done ? row_bytes - from : bytes - done;
        if (!ses_vectors_get(s->v, (int64_t)row, s->x, e)) return false;
        memcpy((char *)out + done, (const char *)s->x + from, n);
    }
    int64_t count = ses_vectors_count(s->v);
    if (s->o->progress && !s->o->progress(s->o->ctx, (int64_t)((offset + bytes) / row_bytes), count))
        return ses_fail(e, SES_EIO, "interrupted; nothing was written");
    return true;
}

static bool save_matrix(saving *s, const char *dir, ses_err *e)
{
    int64_t dim[2] = { ses_vectors_count(s->v), s->v->dim };
    ses_safetensors_writer *w = ses_safetensors_writer_new(e);
    s->x = w ? ses_alloc_array((size_t)s->v->dim, sizeof *s->x, e) : NULL;
    bool ok = s->x && ses_safetensors_writer_add_meta(w, "format", "pt", e) &&
              ses_safetensors_writer_add_source(w, "vectors", SES_F32, 2, dim, give_rows, s, e) &&
              ses_checkpoint_save(w, dir, 0, false, e);
    ses_free(s->x);
    ses_safetensors_writer_free(w);
    return ok;
}

static bool save_vocab(const ses_vectors *v, const char *dir, ses_err *e)
{
    char *path = ses_path_join(dir, "vocab.txt", e);
    ses_file_writer *w = path ? ses_file_writer_open(path, false, e) : NULL;
    bool ok = w != NULL;
    for (int64_t i = 0; ok && i < ses_vectors_count(v); i++) {
        ses_string s = ses_vectors_word(v, i);
        ok = ses_file_writer_put(w, s.p, s.n, e) && ses_file_writer_put(w, "\n", 1, e);
    }
    ok = ok && ses_file_writer_commit(w, e);
    ses_file_writer_free(w);
    ses_free(path);
    return ok;
}

static bool save_config(const ses_vectors *v, const char *dir, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(2, e);
    if (!w) return false;
    ses_json_begin_object(w);
    ses_json_member_string(w, "model_type", MODEL_TYPE);
    ses_json_member_int(w, "vocab_size", ses_vectors_count(v));
    ses_json_member_int(w, "hidden_size", v->dim);
    return ses_manifest_save_config(w, dir, e);
}

static bool check_folder(const char *path, ses_err *e)
{
    ses_err own = { 0 };
    ses_json_doc *d = load_config(path, &own);
    bool ok = is_word_config(d);
    ses_json_free(d);
    if (own.code == SES_ENOMEM) return ses_fail(e, own.code, "%s", own.msg);
    return ok || ses_fail(e, SES_EIO, "%s is not a folder of word vectors and is not overwritten", path);
}

static bool save(const ses_vectors *v, const char *path, const ses_vectors_save_options *o, ses_err *e)
{
    bool exists = ses_path_exists(path);
    if (exists && !o->overwrite) return ses_fail_exists(path, e);
    if (exists && !check_folder(path, e)) return false;
    ses_buf temp = { 0 };
    char *to = ses_strdup(path, e);
    if (!to) return false;
    ses_path_trim(to);
    ses_buf_appendf(&temp, "%s.sesame-%ld.tmp", to, (long)getpid());
    saving s = { .v = v, .o = o };
    bool ok = ses_buf_ok(&temp, e) && ses_dir_remove(temp.data, e) && ses_dir_make(temp.data, e) &&
              save_vocab(v, temp.data, e) && save_matrix(&s, temp.data, e) && save_config(v, temp.data, e) &&
              ses_dir_place(temp.data, to, o->overwrite, e);
    if (!ok && temp.data) ses_dir_remove(temp.data, NULL);
    ses_buf_free(&temp);
    ses_free(to);
    return ok;
}

const ses_word_format ses_word_format_word_folder = {
    .name = "safetensors",
    .title = "safetensors folder",
    .detect = detect,
    .open = open,
    .next = next,
    .close = close_folder,
    .refuses = refuses,
    .save = save,
    .check_folder = check_folder,
};
