/* Words, n-grams and lines of a fastText model. */
#include "fasttext_model.h"

#include "base/alloc.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

size_t ses_fasttext_dim(const ses_fasttext_model *m) { return (size_t)m->set.dim; }
size_t ses_fasttext_n_words(const ses_fasttext_model *m) { return m->d.n_words; }
size_t ses_fasttext_n_labels(const ses_fasttext_model *m) { return m->d.n - m->d.n_words; }

ses_string ses_fasttext_word_at(const ses_fasttext_model *m, size_t i)
{
    return (ses_string){ m->d.word[i].text, m->d.word[i].len };
}

ses_string ses_fasttext_label_at(const ses_fasttext_model *m, size_t i)
{
    return ses_fasttext_word_at(m, m->d.n_words + i);
}

bool ses_fasttext_find(const ses_fasttext_model *m, const char *s, size_t n, size_t *i)
{
    int64_t id;
    if (!ses_strmap_find(&m->d.id, s, n, &id) || (size_t)id >= m->d.n_words) return false;
    *i = (size_t)id;
    return true;
}

void ses_fasttext_clear(ses_fasttext_model *m)
{
    ses_fasttext_dictionary_free(&m->d);
    ses_free(m->kept);
    ses_free(m->by_bucket);
    ses_free(m->tree);
    ses_fasttext_matrix_free(&m->in);
    ses_fasttext_matrix_free(&m->out);
    ses_mmap_free(&m->file);
    *m = (ses_fasttext_model){ 0 };
}

void ses_fasttext_free(ses_fasttext_model *m)
{
    if (m) ses_fasttext_clear(m);
    ses_free(m);
}

/* ---- indexes ---- */

static int compare_buckets(const void *a, const void *b)
{
    const ses_fasttext_kept *x = a, *y = b;
    return (x->bucket > y->bucket) - (x->bucket < y->bucket);
}

/* Huffman's tree over the labels, whose counts fall, as fastText builds it. */
static bool make_tree(ses_fasttext_model *m, ses_err *e)
{
    const int64_t most = 1000000000000000; /* more than any sum */
    int32_t n = (int32_t)ses_fasttext_n_labels(m), leaf = n - 1, next = n;
    int64_t total = 0;
    ses_free(m->tree);
    m->tree = NULL;
    if (m->set.model != SES_FASTTEXT_SUPERVISED || m->set.loss != SES_FASTTEXT_HIERARCHICAL || n < 1)
        return true;
    if (n > INT32_MAX / 2) return ses_fail(e, SES_EFORMAT, "%d labels are too many", n);
    ses_fasttext_node *tree = m->tree = ses_alloc_array(2 * (size_t)n - 1, sizeof *tree, e);
    if (!tree) return false;
    for (int32_t i = 0; i < 2 * n - 1; i++) tree[i] = (ses_fasttext_node){ -1, -1, -1, most, false };
    for (int32_t i = 0; i < n; i++) {
        int64_t count = m->d.word[m->d.n_words + (size_t)i].count;
        if (count < 0 || count >= most - total)
            return ses_fail(e, SES_EFORMAT, "label %d has count %lld", i, (long long)count);
        tree[i].count = count;
        total += count;
    }
    for (int32_t i = n; i < 2 * n - 1; i++) {
        int32_t child[2];
        for (int k = 0; k < 2; k++)
            child[k] = leaf >= 0 && tree[leaf].count < tree[next].count ? leaf-- : next++;
        tree[i].left = child[0];
        tree[i].right = child[1];
        tree[i].count = tree[child[0]].count + tree[child[1]].count;
        tree[child[0]].parent = tree[child[1]].parent = i;
        tree[child[1]].is_right = true;
    }
    return true;
}

bool ses_fasttext_index(ses_fasttext_model *m, ses_err *e)
{
    ses_free(m->by_bucket);
    m->by_bucket = NULL;
    if (m->n_pruned > 0) {
        m->by_bucket = ses_alloc_array((size_t)m->n_pruned, sizeof *m->by_bucket, e);
        if (!m->by_bucket) return false;
        memcpy(m->by_bucket, m->kept, (size_t)m->n_pruned * sizeof *m->kept);
        qsort(m->by_bucket, (size_t)m->n_pruned, sizeof *m->by_bucket, compare_buckets);
    }
    return make_tree(m, e);
}

/* ---- rows ---- */

/* Adds the row of a bucket, unless pruning removed it. */
static bool add_bucket(const ses_fasttext_model *m, int32_t bucket, ses_fasttext_rows *rows, ses_err *e)
{
    if (m->n_pruned == 0) return true;
    if (m->n_pruned > 0) {
        ses_fasttext_kept key = { bucket, 0 };
        const ses_fasttext_kept *found =
            bsearch(&key, m->by_bucket, (size_t)m->n_pruned, sizeof key, compare_buckets);
        if (!found) return true;
        bucket = found->row;
    }
    return ses_fasttext_rows_add(rows, (int32_t)m->d.n_words + bucket, e);
}

static bool add_word_ngrams(const ses_fasttext_model *m, const char *s, size_t n, ses_fasttext_rows *rows,
                            ses_err *e)
{
    size_t from = rows->n;
    if (m->set.maxn <= 0 || m->n_pruned == 0) return true;
    if (!ses_fasttext_add_buckets(rows, s, n, m->set.minn, m->set.maxn, m->set.bucket, e)) return false;
    size_t end = rows->n;
    rows->n = from; /* each is replaced by at most one row */
    for (size_t i = from; i < end; i++)
        if (!add_bucket(m, rows->row[i], rows, e)) return false;
    return true;
}

bool ses_fasttext_add_word_rows(const ses_fasttext_model *m, const char *s, size_t n, ses_fasttext_rows *rows,
                                ses_err *e)
{
    size_t id;
    if (ses_fasttext_find(m, s, n, &id)) {
        const ses_fasttext_word *w = &m->d.word[id];
        if (!ses_fasttext_rows_add(rows, (int32_t)id, e)) return false;
        for (size_t k = 1; k < w->n_rows; k++) /* computed before */
            if (!ses_fasttext_rows_add(rows, m->d.rows.row[w->first_row + k], e)) return false;
        if (w->n_rows) return true;
    }
    return add_word_ngrams(m, s, n, rows, e);
}

bool ses_fasttext_word_vector(const ses_fasttext_model *m, const char *s, size_t n, float *x, size_t *n_rows,
                              ses_err *e)
{
    ses_fasttext_rows rows = { 0 };
    size_t dim = ses_fasttext_dim(m);
    bool ok = ses_fasttext_add_word_rows(m, s, n, &rows, e);
    memset(x, 0, dim * sizeof *x);
    for (size_t i = 0; ok && i < rows.n; i++) ses_fasttext_add_row(&m->in, rows.row[i], x);
    float share = rows.n ? (float)(1.0 / (double)rows.n) : 0;
    for (size_t k = 0; k < dim; k++) x[k] *= share;
    if (n_rows) *n_rows = rows.n;
    ses_fasttext_rows_free(&rows);
    return ok;
}

/* ---- lines ---- */

/* Word n-grams: hashes are chained as signed 32-bit numbers. */
static bool add_phrases(const ses_fasttext_model *m, ses_fasttext_line *line, ses_err *e)
{
    size_t n = line->hashes.n;
    if (m->set.word_ngrams < 2 || m->set.bucket <= 0) return true;
    for (size_t i = 0; i < n; i++) {
        uint64_t h = (uint64_t)(int64_t)line->hashes.row[i];
        for (size_t j = i + 1; j < n && j < i + (size_t)m->set.word_ngrams; j++) {
            h = h * 116049371 + (uint64_t)(int64_t)line->hashes.row[j];
            if (!add_bucket(m, (int32_t)(h % (uint64_t)m->set.bucket), &line->rows, e)) return false;
        }
    }
    return true;
}

static bool add_token(const ses_fasttext_model *m, const char *s, size_t n, ses_fasttext_line *line,
                      ses_err *e)
{
    int64_t id;
    bool known = ses_strmap_find(&m->d.id, s, n, &id);
    line->tokens++;
    if (known ? (size_t)id >= m->d.n_words : ses_fasttext_is_label(&m->d, s, n))
        return !known || ses_fasttext_rows_add(&line->labels, (int32_t)(id - (int64_t)m->d.n_words), e);
    if (!ses_fasttext_add_word_rows(m, s, n, &line->rows, e)) return false;
    return m->set.word_ngrams < 2 ||
           ses_fasttext_rows_add(&line->hashes, (int32_t)ses_fasttext_hash(s, n), e);
}

bool ses_fasttext_read_line(const ses_fasttext_model *m, ses_fasttext_reader *r, ses_fasttext_line *line,
                            bool *more, ses_err *e)
{
    line->rows.n = line->labels.n = line->hashes.n = 0;
    line->tokens = 0;
    while (ses_fasttext_read(r)) {
        if (!add_token(m, r->word, r->len, line, e)) return false;
        if (ses_equal(r->word, r->len, "</s>")) break;
    }
    *more = line->tokens > 0;
    return add_phrases(m, line, e);
}

bool ses_fasttext_line_of(const ses_fasttext_model *m, const char *text, size_t n, ses_fasttext_line *line,
                          ses_err *e)
{
    ses_fasttext_reader r = ses_fasttext_reader_of(text, n);
    line->rows.n = line->labels.n = line->hashes.n = 0;
    line->tokens = 0;
    bool ended = false;
    while (!ended && ses_fasttext_read(&r)) {
        if (r.line_end) continue; /* as a blank */
        if (!add_token(m, r.word, r.len, line, e)) return false;
        ended = ses_equal(r.word, r.len, "</s>");
    }
    return (ended || add_token(m, "</s>", 4, line, e)) && add_phrases(m, line, e);
}

void ses_fasttext_line_free(ses_fasttext_line *line)
{
    ses_fasttext_rows_free(&line->rows);
    ses_fasttext_rows_free(&line->labels);
    ses_fasttext_rows_free(&line->hashes);
}
