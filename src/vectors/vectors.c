/* Files of word vectors: opening, the index of words, saving. */
#include "vectors_impl.h"

#include "base/alloc.h"
#include "io/input_stream.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

enum { READ_BYTES = 1 << 20, WRITE_BYTES = 1 << 20, PROGRESS_ROWS = 1024 };

/* ---- opening ---- */

static bool detect(ses_vectors *v, ses_err *e)
{
    if (!v->is_folder && !v->n) return ses_fail(e, SES_EFORMAT, "the file is empty, expected word vectors");
    for (size_t i = 0; !v->format && ses_word_format_at(i); i++)
        if (ses_word_format_at(i)->detect(v)) v->format = ses_word_format_at(i);
    if (!v->format)
        return ses_fail(e, SES_EFORMAT,
                        "not a file of word vectors: expected word2vec text or binary, fastText .bin, .ftz "
                        "or .vec, GloVe text or gensim .kv");
    v->stated = -1;
    return v->format->open(v, e) && ses_vector_dim_check(v->dim, e);
}

/* gzip, xz or Zstandard. */
static bool is_compressed(const ses_mmap *m)
{
    static const char magic[][5] = { "\x1f\x8b", "\xfd\x37zX", "\x28\xb5\x2f\xfd" };
    for (size_t i = 0; i < SES_LEN(magic); i++)
        if (m->size >= strlen(magic[i]) && !memcmp(m->data, magic[i], strlen(magic[i]))) return true;
    return false;
}

static bool read_stream(ses_vectors *v, ses_err *e)
{
    ses_input_stream *in = ses_input_stream_open(v->path, e);
    size_t got = 1;
    bool ok = in != NULL;
    while (ok && got) {
        ok = (ses_buf_reserve(&v->heap, READ_BYTES) || ses_buf_ok(&v->heap, e)) &&
             ses_input_stream_read(in, v->heap.data + v->heap.len, READ_BYTES, &got, e);
        if (ok) v->heap.len += got;
    }
    ses_input_stream_free(in);
    v->p = v->heap.data, v->n = v->heap.len;
    return ok;
}

static bool map_file(ses_vectors *v, ses_err *e)
{
    struct stat st;
    bool is_pipe = !strcmp(v->path, "-") || (!stat(v->path, &st) && !S_ISREG(st.st_mode));
    if (is_pipe) return read_stream(v, e);
    if (!ses_mmap_open(&v->map, v->path, e)) return false;
    if (is_compressed(&v->map)) {
        ses_mmap_free(&v->map);
        return read_stream(v, e);
    }
    v->p = (const char *)v->map.data, v->n = v->map.size;
    return true;
}

ses_vectors *ses_vectors_new(const char *path, ses_err *e)
{
    ses_vectors *v = ses_alloc(sizeof *v, e);
    if (v && (v->path = ses_strdup(path, e))) return v;
    ses_free(v);
    return NULL;
}

ses_vectors *ses_vectors_open(const char *path, ses_err *e)
{
    ses_vectors *v = ses_vectors_new(path, e);
    if (!v) return NULL;
    v->is_folder = ses_path_is_dir(path);
    bool ok = v->is_folder || map_file(v, e); /* errors have the path */
    if (ok && (detect(v, e) || ses_wrap(e, "%s", path))) return v;
    ses_vectors_free(v);
    return NULL;
}

ses_vectors *ses_vectors_from_memory(const void *bytes, size_t n, const char *path, ses_err *e)
{
    ses_vectors *v = ses_vectors_new(path, e);
    if (!v) return NULL;
    v->p = bytes, v->n = n;
    if (detect(v, e) || ses_wrap(e, "%s", path)) return v;
    ses_vectors_free(v);
    return NULL;
}

void ses_vectors_free(ses_vectors *v)
{
    if (!v) return;
    if (v->format && v->format->close) v->format->close(v);
    ses_mmap_free(&v->map);
    ses_buf_free(&v->heap);
    ses_strmap_free(&v->names);
    ses_free(v->row);
    ses_free(v->path);
    ses_free(v);
}

/* ---- checks of the formats ---- */

bool ses_vector_dim_check(int64_t dim, ses_err *e)
{
    return (dim >= 1 && dim <= SES_VECTORS_MAX_DIM) ||
           ses_fail(e, SES_EFORMAT, "vectors of %" PRId64 " numbers, expected 1 to %d", dim,
                    SES_VECTORS_MAX_DIM);
}

bool ses_vector_word_check(const char *word, size_t n, ses_err *e)
{
    if (!n) return ses_fail(e, SES_EFORMAT, "an empty word");
    if (n > SES_VECTORS_MAX_WORD)
        return ses_fail(e, SES_EFORMAT, "a word of %zu bytes, the maximum is %d", n, SES_VECTORS_MAX_WORD);
    if (memchr(word, 0, n))
        return ses_fail(e, SES_EFORMAT, "byte 0x00 in the word \"%s\"", ses_quoted_of(word, n).s);
    return true;
}

bool ses_vector_check_finite(const ses_vectors *v, const float *x, ses_err *e)
{
    bool finite = true;
    for (int64_t k = 0; k < v->dim; k++) finite &= isfinite(x[k]) != 0;
    return finite || ses_fail(e, SES_EFORMAT, "a number is not finite");
}

bool ses_vector_floats(const ses_vectors *v, const void *data, float *out, ses_err *e)
{
    memcpy(out, data, (size_t)v->dim * sizeof *out);
    return ses_vector_check_finite(v, out, e);
}

/* ---- words ---- */

static bool keep_row(ses_vectors *v, const ses_vector_row *r, ses_err *e)
{
    bool fresh;
    if (v->n_rows >= INT32_MAX) return ses_fail(e, SES_EUNSUPPORTED, "more than %d words", INT32_MAX);
    if (!ses_array_reserve(&v->row, &v->cap_rows, v->n_rows + 1, sizeof *v->row, e) ||
        !ses_strmap_insert(&v->names, r->word, r->len, (int64_t)v->n_rows, &fresh, e))
        return false;
    if (fresh) v->row[v->n_rows++] = *r;
    return true;
}

bool ses_vectors_next_row(ses_vectors *v, ses_vector_row *r, ses_err *e)
{
    *r = (ses_vector_row){ 0 };
    if (v->complete) return true;
    if (!v->format->next(v, r, e)) return ses_wrap(e, "%s", v->path);
    v->complete = !r->word;
    if (!v->complete) v->read++;
    return !v->complete || v->stated < 0 || v->read == v->stated ||
           ses_fail(e, SES_EFORMAT, "%s: the header gives %" PRId64 " words, the file has %" PRId64, v->path,
                    v->stated, v->read);
}

bool ses_vectors_read_words(ses_vectors *v, int64_t max, ses_err *e)
{
    ses_vector_row r;
    while (!v->complete && (max <= 0 || v->n_rows < (size_t)max)) {
        if (!ses_vectors_next_row(v, &r, e)) return false;
        if (r.word && !keep_row(v, &r, e)) return ses_wrap(e, "%s", v->path);
    }
    return true;
}

const char *ses_vectors_format(const ses_vectors *v) { return v->format->name; }
int64_t ses_vectors_dim(const ses_vectors *v) { return v->dim; }
int64_t ses_vectors_stated_count(const ses_vectors *v) { return v->complete ? v->read : v->stated; }
bool ses_vectors_has_subwords(const ses_vectors *v) { return v->format->unknown != NULL; }
int64_t ses_vectors_count(const ses_vectors *v) { return (int64_t)v->n_rows; }
int64_t ses_vectors_duplicates(const ses_vectors *v) { return v->read - (int64_t)v->n_rows; }

ses_string ses_vectors_word(const ses_vectors *v, int64_t i)
{
    return (ses_string){ v->row[i].word, v->row[i].len };
}

int64_t ses_vectors_find(const ses_vectors *v, const char *word, size_t n)
{
    int64_t i;
    return ses_strmap_find(&v->names, word, n, &i) ? i : -1;
}

bool ses_vectors_get_row(const ses_vectors *v, const ses_vector_row *r, float *out, ses_err *e)
{
    bool ok = v->format->get ? v->format->get(v, r, out, e) : ses_vector_floats(v, r->data, out, e);
    if (ok) return true;
    ses_wrap(e, "vector of \"%s\"", ses_quoted_of(r->word, r->len).s);
    return ses_wrap(e, "%s", v->path);
}

bool ses_vectors_get(const ses_vectors *v, int64_t i, float *out, ses_err *e)
{
    return ses_vectors_get_row(v, &v->row[i], out, e);
}

bool ses_vectors_lookup(const ses_vectors *v, const char *word, size_t n, float *out, bool *found, ses_err *e)
{
    int64_t i = ses_vectors_find(v, word, n);
    *found = i >= 0;
    if (*found) return ses_vectors_get(v, i, out, e);
    return !v->format->unknown || v->format->unknown(v, (ses_string){ word, n }, out, found, e) ||
           ses_wrap(e, "%s", v->path);
}

/* ---- saving ---- */

static bool is_writable(const ses_word_format *f) { return f->save || f->put_row; }

const char *ses_vectors_writable_format(size_t i)
{
    const ses_word_format *f;
    for (size_t k = 0; (f = ses_word_format_at(k)); k++)
        if (is_writable(f) && i-- == 0) return f->name;
    return NULL;
}

static const ses_word_format *find_writable(const char *name, ses_err *e)
{
    const ses_word_format *f;
    const char *known;
    for (size_t k = 0; (f = ses_word_format_at(k)); k++)
        if (is_writable(f) && !strcmp(f->name, name)) return f;
    ses_buf names = { 0 };
    for (size_t k = 0; (known = ses_vectors_writable_format(k)); k++)
        ses_buf_appendf(&names, "%s%s", k ? ", " : "", known);
    if (ses_buf_ok(&names, e))
        ses_fail(e, SES_EARG, "unknown format \"%s\"; expected one of %s", name, names.data);
    ses_buf_free(&names);
    return NULL;
}

static bool check_words(const ses_vectors *v, const ses_word_format *f, ses_err *e)
{
    for (size_t i = 0; f->refuses && i < v->n_rows; i++) {
        ses_string w = { v->row[i].word, v->row[i].len };
        const char *why = f->refuses(w);
        if (why) return ses_fail(e, SES_EARG, "word %zu, \"%s\": %s", i + 1, ses_quoted_of(w.p, w.n).s, why);
    }
    return true;
}

static bool put_rows(const ses_vectors *v, const ses_word_format *f, ses_file_writer *w,
                     const ses_vectors_save_options *o, ses_err *e)
{
    ses_buf out = { 0 };
    int64_t count = (int64_t)v->n_rows;
    float *x = ses_alloc_array((size_t)v->dim, sizeof *x, e);
    bool ok = x != NULL;
    if (ok && f->put_head) f->put_head(&out, count, v->dim);
    for (int64_t i = 0; ok && i < count; i++) {
        ses_vector_line line = { ses_vectors_word(v, i), x, v->dim, o->full_precision };
        ok = ses_vectors_get(v, i, x, e);
        if (ok) f->put_row(&out, &line);
        if (ok && (out.len >= WRITE_BYTES || i + 1 == count)) {
            ok = ses_buf_ok(&out, e) && ses_file_writer_put(w, out.data, out.len, e);
            out.len = 0;
        }
        if (ok && o->progress && i % PROGRESS_ROWS == 0 && !o->progress(o->ctx, i, count))
            ok = ses_fail(e, SES_EIO, "interrupted; nothing was written");
    }
    ok = ok && ses_buf_ok(&out, e) && (!out.len || ses_file_writer_put(w, out.data, out.len, e));
    ses_buf_free(&out);
    ses_free(x);
    return ok;
}

bool ses_vectors_save(const ses_vectors *v, const char *format, const char *path,
                      const ses_vectors_save_options *o, ses_err *e)
{
    static const ses_vectors_save_options none = { 0 };
    const ses_word_format *f = find_writable(format, e);
    if (!o) o = &none;
    if (!f || (!check_words(v, f, e) && !ses_wrap(e, "%s", v->path))) return false;
    if (f->save) return f->save(v, path, o, e);
    ses_file_writer *w = ses_file_writer_open(path, o->overwrite, e);
    bool ok = w && put_rows(v, f, w, o, e) && ses_file_writer_commit(w, e);
    ses_file_writer_free(w);
    return ok;
}
