/* fastText files: .bin and .ftz. Integers are little-endian:
 *     i32 magic, version; i32 settings[12]; f64 t
 *     i32 entries, words, labels; i64 tokens, pruned; per entry: word \0, i64 count, u8 type
 *     pruned times i32 bucket, row; u8 quantized; input matrix; u8 quantized output; output matrix */
#include "fasttext_model.h"

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MAGIC = 793712314,
    VERSION = 12,
    OLD_VERSION = 11,
    N_SETTINGS = 12,
    ENTRY_TAIL = 9,
    MAX_NGRAM = 1 << 16
};

typedef struct reader {
    const unsigned char *p;
    size_t size, at;
} reader;

static bool need(const reader *r, size_t n, const char *what, ses_err *e)
{
    return n <= r->size - r->at ||
           ses_fail(e, SES_EFORMAT, "%s at offset %zu: the file ends after %zu bytes", what, r->at, r->size);
}

static int32_t get_i32(reader *r)
{
    r->at += 4;
    return (int32_t)ses_le32(r->p + r->at - 4);
}

static int64_t get_i64(reader *r)
{
    r->at += 8;
    return (int64_t)ses_le64(r->p + r->at - 8);
}

/* ---- settings ---- */

static int32_t *settings_of(ses_fasttext_settings *s, size_t i)
{
    int32_t *const field[N_SETTINGS] = { &s->dim,    &s->ws,          &s->epoch, &s->min_count,
                                         &s->neg,    &s->word_ngrams, &s->loss,  &s->model,
                                         &s->bucket, &s->minn,        &s->maxn,  &s->lr_update_rate };
    return field[i];
}

static bool read_settings(ses_fasttext_model *m, reader *r, ses_err *e)
{
    static const struct {
        const char *name;
        int32_t low, high;
    } range[N_SETTINGS] = { [0] = { "dim", 1, INT32_MAX },
                            [5] = { "wordNgrams", 0, INT32_MAX },
                            [6] = { "loss", SES_FASTTEXT_HIERARCHICAL, SES_FASTTEXT_ONE_VS_ALL },
                            [7] = { "model", SES_FASTTEXT_CBOW, SES_FASTTEXT_SUPERVISED },
                            [8] = { "bucket", 0, INT32_MAX },
                            [9] = { "minn", 0, MAX_NGRAM },
                            [10] = { "maxn", 0, MAX_NGRAM } };
    if (!need(r, 8 + N_SETTINGS * 4 + 8, "settings", e)) return false;
    int32_t magic = get_i32(r), version = get_i32(r);
    if (magic != MAGIC) return ses_fail(e, SES_EFORMAT, "not a fastText model: it begins with other bytes");
    if (version > VERSION || version < OLD_VERSION)
        return ses_fail(e, SES_EUNSUPPORTED, "version %d of fastText's format; expected %d or %d", version,
                        OLD_VERSION, VERSION);
    for (size_t i = 0; i < N_SETTINGS; i++) {
        int32_t x = *settings_of(&m->set, i) = get_i32(r);
        if (range[i].name && (x < range[i].low || x > range[i].high))
            return ses_fail(e, SES_EFORMAT, "setting %s at offset %zu is %d; expected %d to %d",
                            range[i].name, r->at - 4, x, range[i].low, range[i].high);
    }
    uint64_t bits = (uint64_t)get_i64(r);
    memcpy(&m->set.t, &bits, sizeof bits);
    if (version == OLD_VERSION && m->set.model == SES_FASTTEXT_SUPERVISED) m->set.maxn = 0;
    return true;
}

/* ---- dictionary ---- */

static bool read_entry(ses_fasttext_dictionary *d, size_t i, reader *r, ses_err *e)
{
    const unsigned char *text = r->p + r->at, *end = memchr(text, 0, r->size - r->at);
    bool fresh;
    if (!end) return ses_fail(e, SES_EFORMAT, "word %zu at offset %zu has no end", i, r->at);
    size_t len = (size_t)(end - text);
    r->at += len + 1;
    if (!need(r, ENTRY_TAIL, "the count of a word", e)) return false;
    if (len > UINT32_MAX) return ses_fail(e, SES_EFORMAT, "word %zu has %zu bytes", i, len);
    d->word[i] = (ses_fasttext_word){ .text = (const char *)text, .len = len, .count = get_i64(r) };
    d->word[i].is_label = r->p[r->at++] != 0;
    if (d->word[i].is_label != (i >= d->n_words))
        return ses_fail(e, SES_EFORMAT, "entry %zu is a %s; the file has %zu words, then labels", i,
                        d->word[i].is_label ? "label" : "word", d->n_words);
    int64_t *id = ses_strmap_insert(&d->id, d->word[i].text, len, (int64_t)i, &fresh, e);
    if (id) *id = (int64_t)i; /* the last of equal words counts, as in fastText */
    return id;
}

static bool read_dictionary(ses_fasttext_model *m, reader *r, ses_err *e)
{
    ses_fasttext_dictionary *d = &m->d;
    size_t at = r->at;
    if (!need(r, 12 + 16, "the dictionary", e)) return false;
    int32_t n = get_i32(r), words = get_i32(r), labels = get_i32(r);
    d->tokens = get_i64(r);
    m->n_pruned = get_i64(r);
    if (words < 0 || labels < 0 || (int64_t)words + labels != n)
        return ses_fail(e, SES_EFORMAT, "dictionary at offset %zu: %d entries, %d words, %d labels", at, n,
                        words, labels);
    if ((size_t)n > (r->size - r->at) / (ENTRY_TAIL + 1))
        return ses_fail(e, SES_EFORMAT, "dictionary at offset %zu: %d entries do not fit into the file", at,
                        n);
    d->n = d->capacity = (size_t)n;
    d->n_words = (size_t)words;
    d->word = ses_alloc_array(d->n, sizeof *d->word, e);
    if (!d->word || !ses_strmap_reserve(&d->id, d->n, e)) return false;
    for (size_t i = 0; i < d->n; i++)
        if (!read_entry(d, i, r, e)) return false;
    return true;
}

static bool read_pruned(ses_fasttext_model *m, reader *r, ses_err *e)
{
    if (m->n_pruned < -1 || m->n_pruned > INT32_MAX)
        return ses_fail(e, SES_EFORMAT, "%lld buckets kept by pruning", (long long)m->n_pruned);
    if (m->n_pruned <= 0) return true;
    if (!need(r, (size_t)m->n_pruned * 8, "the list of kept buckets", e)) return false;
    m->kept = ses_alloc_array((size_t)m->n_pruned, sizeof *m->kept, e);
    for (int64_t i = 0; m->kept && i < m->n_pruned; i++) {
        m->kept[i].bucket = get_i32(r);
        m->kept[i].row = get_i32(r);
    }
    return m->kept;
}

/* ---- the whole ---- */

/* Each row that a text can have is in the matrix. */
static bool check_shapes(const ses_fasttext_model *m, ses_err *e)
{
    int64_t spare = m->in.rows - (int64_t)m->d.n_words, labels = (int64_t)ses_fasttext_n_labels(m);
    bool ngrams = m->set.maxn > 0 || m->set.word_ngrams > 1;
    if (m->in.columns != m->set.dim || m->out.columns != m->set.dim)
        return ses_fail(e, SES_EFORMAT, "matrices of %lld and %lld columns, the settings specify %d",
                        (long long)m->in.columns, (long long)m->out.columns, m->set.dim);
    if (spare < 0 || m->in.rows > INT32_MAX || (ngrams && m->n_pruned < 0 && spare < m->set.bucket))
        return ses_fail(e, SES_EFORMAT, "input matrix of %lld rows for %zu words and %d buckets",
                        (long long)m->in.rows, m->d.n_words, m->set.bucket);
    for (int64_t i = 0; i < m->n_pruned; i++)
        if (m->kept[i].row < 0 || m->kept[i].row >= spare)
            return ses_fail(e, SES_EFORMAT, "kept bucket %lld has row %d of %lld", (long long)i,
                            m->kept[i].row, (long long)spare);
    if (m->set.model == SES_FASTTEXT_SUPERVISED && m->out.rows != labels)
        return ses_fail(e, SES_EFORMAT, "output matrix of %lld rows for %lld labels", (long long)m->out.rows,
                        (long long)labels);
    return true;
}

static bool read_flag(reader *r, const char *what, bool *flag, ses_err *e)
{
    if (!need(r, 1, what, e)) return false;
    if (r->p[r->at] > 1)
        return ses_fail(e, SES_EFORMAT, "%s at offset %zu is %d; expected 0 or 1", what, r->at, r->p[r->at]);
    *flag = r->p[r->at++];
    return true;
}

static bool read_model(ses_fasttext_model *m, const unsigned char *p, size_t n, ses_err *e)
{
    reader r = { p, n, 0 };
    bool quantized = false, out_quantized = false;
    if (!read_settings(m, &r, e) || !read_dictionary(m, &r, e) || !read_pruned(m, &r, e) ||
        !read_flag(&r, "the flag of quantization", &quantized, e))
        return false;
    if (!quantized && m->n_pruned >= 0)
        return ses_fail(e, SES_EFORMAT, "pruned but not quantized: a file of an early version of fastText");
    return ses_fasttext_matrix_read(&m->in, quantized, p, n, &r.at, e) &&
           read_flag(&r, "the flag of quantized output", &out_quantized, e) &&
           ses_fasttext_matrix_read(&m->out, quantized && out_quantized, p, n, &r.at, e) &&
           check_shapes(m, e) && ses_fasttext_index(m, e);
}

ses_fasttext_model *ses_fasttext_from_bytes(const void *bytes, size_t n, ses_err *e)
{
    ses_fasttext_model *m = ses_alloc(sizeof *m, e);
    if (m && read_model(m, bytes, n, e)) return m;
    ses_fasttext_free(m);
    return NULL;
}

ses_fasttext_model *ses_fasttext_open(const char *path, ses_err *e)
{
    ses_fasttext_model *m = ses_alloc(sizeof *m, e);
    if (!m || !ses_mmap_open(&m->file, path, e)) goto fail;
    if (read_model(m, m->file.data, m->file.size, e)) return m;
    ses_wrap(e, "%s", path);
fail:
    ses_fasttext_free(m);
    return NULL;
}

/* ---- writing ---- */

static void put(ses_buf *b, int64_t x, size_t size) { ses_buf_append(b, &x, size); } /* little-endian */

static void put_head(const ses_fasttext_model *m, ses_buf *b)
{
    ses_fasttext_settings set = m->set;
    const ses_fasttext_dictionary *d = &m->d;
    put(b, MAGIC, 4);
    put(b, VERSION, 4);
    for (size_t i = 0; i < N_SETTINGS; i++) put(b, *settings_of(&set, i), 4);
    ses_buf_append(b, &set.t, sizeof set.t);
    put(b, (int64_t)d->n, 4);
    put(b, (int64_t)d->n_words, 4);
    put(b, (int64_t)(d->n - d->n_words), 4);
    put(b, d->tokens, 8);
    put(b, m->n_pruned, 8);
    for (size_t i = 0; i < d->n; i++) {
        ses_buf_append(b, d->word[i].text, d->word[i].len);
        put(b, 0, 1);
        put(b, d->word[i].count, 8);
        put(b, d->word[i].is_label, 1);
    }
    for (int64_t i = 0; i < m->n_pruned; i++) {
        put(b, m->kept[i].bucket, 4);
        put(b, m->kept[i].row, 4);
    }
    put(b, ses_fasttext_matrix_is_quantized(&m->in), 1);
}

bool ses_fasttext_write(const ses_fasttext_model *m, ses_file_writer *w, ses_err *e)
{
    ses_buf head = { 0 };
    put_head(m, &head);
    const unsigned char out_quantized = ses_fasttext_matrix_is_quantized(&m->out);
    bool ok = ses_buf_ok(&head, e) && ses_file_writer_put(w, head.data, head.len, e) &&
              ses_fasttext_matrix_write(&m->in, w, e) && ses_file_writer_put(w, &out_quantized, 1, e) &&
              ses_fasttext_matrix_write(&m->out, w, e);
    ses_buf_free(&head);
    return ok;
}

bool ses_fasttext_save(const ses_fasttext_model *m, const char *path, bool overwrite, ses_err *e)
{
    ses_file_writer *w = ses_file_writer_open(path, overwrite, e);
    bool ok = w && ses_fasttext_write(m, w, e) && ses_file_writer_commit(w, e);
    ses_file_writer_free(w);
    return ok;
}
