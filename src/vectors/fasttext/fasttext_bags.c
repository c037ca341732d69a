/* Counting texts and finding their rows. */
#include "fasttext_bags.h"

#include "base/alloc.h"
#include "base/sort.h"
#include "base/str.h"

#include <string.h>

ses_string *ses_fasttext_lines(const char *text, size_t size, size_t *n, ses_err *e)
{
    size_t capacity = 0;
    ses_string *line = NULL;
    *n = 0;
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t len = end ? (size_t)(end - text) - at : size - at;
        if (!ses_array_reserve(&line, &capacity, *n + 1, sizeof *line, e)) {
            ses_free(line);
            return NULL;
        }
        line[(*n)++] = (ses_string){ text + at, len };
        at += len + 1;
    }
    return line ? line : ses_alloc(sizeof *line, e);
}

static bool fail_at(const ses_fasttext_texts *t, size_t i, const char *what, ses_err *e)
{
    return ses_fail(e, SES_EARG, "%s: line %lld: %s", t->name ? t->name : "texts",
                    (long long)(t->first_line + (int64_t)i), what);
}

static bool is_blank_text(ses_string s)
{
    ses_fasttext_reader r = ses_fasttext_reader_of(s.p, s.n);
    while (ses_fasttext_read(&r))
        if (!r.line_end) return false;
    return true;
}

/* Counts the words of one text; with separate labels, words that look like labels are skipped. */
static bool count_text(ses_fasttext_dictionary *d, const ses_fasttext_texts *t, size_t i, ses_err *e)
{
    ses_fasttext_reader r = ses_fasttext_reader_of(t->text[i].p, t->text[i].n);
    size_t labels = 0;
    bool ok = true, ended = false;
    while (ok && !ended && ses_fasttext_read(&r)) {
        if (r.line_end) continue;
        bool is_label = ses_fasttext_is_label(d, r.word, r.len);
        labels += is_label;
        if (!is_label || !t->label) ok = ses_fasttext_count_word(d, r.word, r.len, e);
        ended = ses_equal(r.word, r.len, "</s>");
    }
    ok = ok && (ended || ses_fasttext_count_word(d, "</s>", 4, e));
    if (ok && !t->label && !labels && !is_blank_text(t->text[i]))
        return fail_at(t, i, "no label; a line needs one or more words that begin with the prefix of labels",
                       e);
    return ok;
}

static bool count_label(ses_fasttext_dictionary *d, const ses_fasttext_texts *t, size_t i, ses_buf *name,
                        ses_err *e)
{
    ses_string label = t->label_name[t->label[i]];
    name->len = 0;
    ses_buf_puts(name, d->label ? d->label : "__label__");
    ses_buf_append(name, label.p, label.n);
    return ses_buf_ok(name, e) && ses_fasttext_count_word(d, name->data, name->len, e);
}

bool ses_fasttext_count_texts(const ses_fasttext_options *o, const ses_fasttext_texts *t,
                              ses_fasttext_model *m, ses_err *e)
{
    ses_buf name = { 0 };
    bool ok = true;
    m->set = o->set;
    m->n_pruned = -1;
    m->d.label = o->label;
    for (size_t i = 0; ok && i < t->n; i++)
        ok = count_text(&m->d, t, i, e) && (!t->label || count_label(&m->d, t, i, &name, e));
    ses_buf_free(&name);
    ok = ok && ses_fasttext_drop_rare(&m->d, o->set.min_count, o->min_count_label, e);
    if (ok && o->pretrained)
        ok = ses_fasttext_count_pretrained(&m->d, o->pretrained, o->set.dim, e) &&
             ses_fasttext_drop_rare(&m->d, 1, 0, e);
    if (!ok) return false;
    const char *file = t->name ? t->name : "texts";
    if (!t->n) return ses_fail(e, SES_EARG, "%s: no texts", file);
    if (ses_fasttext_n_labels(m) < 2)
        return ses_fail(e, SES_EARG, "%s: %s; a classifier needs texts of two or more", file,
                        ses_fasttext_n_labels(m) ? "all texts have the same label" : "no label is left");
    if (!m->d.n_words) return ses_fail(e, SES_EARG, "%s: no words are left", file);
    return ses_fasttext_add_ngrams(&m->d, o->set.minn, o->set.maxn, o->set.bucket, e);
}

static bool add_bag(ses_fasttext_bags *b, const ses_fasttext_line *line, ses_err *e)
{
    const ses_fasttext_rows *rows = &line->rows, *labels = &line->labels;
    if (!ses_array_reserve(&b->row, &b->rows_capacity, b->n_rows + rows->n, sizeof *b->row, e) ||
        !ses_array_reserve(&b->label, &b->labels_capacity, b->n_labels + labels->n, sizeof *b->label, e))
        return false;
    if (rows->n) memcpy(b->row + b->n_rows, rows->row, rows->n * sizeof *b->row);
    if (labels->n) memcpy(b->label + b->n_labels, labels->row, labels->n * sizeof *b->label);
    b->tokens[b->n] = line->tokens > INT32_MAX ? INT32_MAX : (int32_t)line->tokens;
    b->all_tokens += b->tokens[b->n];
    b->row_start[++b->n] = b->n_rows += rows->n;
    b->label_start[b->n] = b->n_labels += labels->n;
    return true;
}

/* The number of each label name in the model; -1: it does not occur. */
static int32_t *map_labels(const ses_fasttext_texts *t, const ses_fasttext_model *m, ses_err *e)
{
    ses_buf name = { 0 };
    int32_t *map = ses_alloc_array(t->n_labels, sizeof *map, e);
    for (size_t i = 0; map && i < t->n_labels; i++) {
        int64_t id;
        name.len = 0;
        ses_buf_puts(&name, m->d.label ? m->d.label : "__label__");
        ses_buf_append(&name, t->label_name[i].p, t->label_name[i].n);
        bool known = name.data && ses_strmap_find(&m->d.id, name.data, name.len, &id);
        map[i] = known ? (int32_t)(id - (int64_t)m->d.n_words) : -1;
    }
    if (map && t->n_labels && !ses_buf_ok(&name, e)) {
        ses_free(map);
        map = NULL;
    }
    ses_buf_free(&name);
    return map;
}

bool ses_fasttext_bags_fill(ses_fasttext_bags *b, const ses_fasttext_texts *t, const ses_fasttext_model *m,
                            ses_err *e)
{
    ses_fasttext_line line = { 0 };
    int32_t *map = t->label ? map_labels(t, m, e) : NULL;
    b->row_start = ses_alloc_array(t->n + 1, sizeof *b->row_start, e);
    b->label_start = ses_alloc_array(t->n + 1, sizeof *b->label_start, e);
    b->tokens = ses_alloc_array(t->n, sizeof *b->tokens, e);
    bool ok = (map || !t->label) && b->row_start && b->label_start && b->tokens;
    for (size_t i = 0; ok && i < t->n; i++) {
        ok = ses_fasttext_line_of(m, t->text[i].p, t->text[i].n, &line, e);
        if (ok && t->label) {
            line.labels.n = 0;
            ok = map[t->label[i]] < 0 || ses_fasttext_rows_add(&line.labels, map[t->label[i]], e);
        }
        ok = ok && add_bag(b, &line, e);
    }
    ses_fasttext_line_free(&line);
    ses_free(map);
    return ok;
}

/* ---- frequent rows ---- */

enum { FREQUENT_SHARE = 64 }; /* a frequent row occurs once in so few texts, at least */

typedef struct row_count {
    uint32_t count;
    int32_t row;
} row_count;

static int by_falling_count(const void *a, const void *b)
{
    const row_count *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return (x->row > y->row) - (x->row < y->row);
}

/* Chooses the rows; index[row] becomes their index + 1. */
static bool choose_frequent(ses_fasttext_bags *b, uint32_t *index, size_t in_rows, size_t most, ses_err *e)
{
    row_count *found = NULL;
    size_t n = 0, capacity = 0;
    bool ok = true;
    for (size_t i = 0; i < b->n_rows; i++) index[b->row[i]] += index[b->row[i]] < UINT32_MAX;
    for (size_t i = 0; ok && i < in_rows; i++) {
        uint32_t count = index[i];
        index[i] = 0;
        if ((uint64_t)count * FREQUENT_SHARE < b->n || count < 2) continue;
        ok = ses_array_reserve(&found, &capacity, n + 1, sizeof *found, e);
        if (ok) found[n++] = (row_count){ count, (int32_t)i };
    }
    ok = ok && ses_stable_sort(found, n, sizeof *found, by_falling_count, e);
    b->n_frequent = n < most ? n : most;
    b->frequent = ok ? ses_alloc_array(b->n_frequent, sizeof *b->frequent, e) : NULL;
    for (size_t i = 0; b->frequent && i < b->n_frequent; i++) {
        b->frequent[i] = found[i].row;
        index[found[i].row] = (uint32_t)i + 1;
    }
    ses_free(found);
    return b->frequent;
}

bool ses_fasttext_bags_split(ses_fasttext_bags *b, size_t in_rows, size_t most, ses_err *e)
{
    size_t capacity = 0, kept = 0, from = 0;
    uint32_t *index = ses_alloc_array(in_rows, sizeof *index, e);
    b->hot_start = ses_alloc_array(b->n + 1, sizeof *b->hot_start, e);
    b->size = ses_alloc_array(b->n, sizeof *b->size, e);
    bool ok = index && b->hot_start && b->size && choose_frequent(b, index, in_rows, most, e);
    for (size_t i = 0; ok && i < b->n; i++) {
        size_t end = b->row_start[i + 1], first = b->n_hot;
        b->size[i] = (int32_t)(end - from);
        for (; ok && from < end; from++) {
            int32_t row = b->row[from], at = (int32_t)index[row] - 1;
            size_t k = first;
            if (at < 0) {
                b->row[kept++] = row;
                continue;
            }
            while (k < b->n_hot && b->hot[k].index != at) k++;
            if (k == b->n_hot) {
                ok = ses_array_reserve(&b->hot, &capacity, b->n_hot + 1, sizeof *b->hot, e);
                if (ok) b->hot[b->n_hot++] = (ses_fasttext_hot){ at, 0 };
            }
            if (ok) b->hot[k].count++;
        }
        b->row_start[i + 1] = kept;
        b->hot_start[i + 1] = b->n_hot;
    }
    b->n_rows = kept;
    ses_free(index);
    return ok;
}

void ses_fasttext_bags_free(ses_fasttext_bags *b)
{
    void *own[] = { b->row,      b->label, b->row_start, b->label_start, b->tokens,
                    b->frequent, b->hot,   b->hot_start, b->size };
    for (size_t i = 0; i < SES_LEN(own); i++) ses_free(own[i]);
    *b = (ses_fasttext_bags){ 0 };
}
