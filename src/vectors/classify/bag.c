/* Bags of n-grams: numbering of features, texts as sorted lists. */
#include "bag.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/unicode/utf8.h"
#include "io/text_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FEATURES = INT32_MAX, MAX_LINE = 1 << 28 };

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Number of an n-gram; it is added if it is new. */
static bool number_of(ses_bag_vocab *v, const char *s, size_t n, uint32_t *out, ses_err *e)
{
    bool fresh;
    if (v->index.count >= MAX_FEATURES) return ses_fail(e, SES_EARG, "more than %d features", MAX_FEATURES);
    int64_t *at = ses_strmap_insert(&v->index, s, n, (int64_t)v->index.count, &fresh, e);
    if (!at) return false;
    *out = (uint32_t)*at;
    if (!fresh) return true;
    char *copy = ses_arena_strndup(&v->names, s, n, e); /* s is a buffer that is reused */
    ses_strmap_entry *last = &v->index.entry[v->index.count - 1];
    last->key = copy ? copy : "";
    if (!copy) last->len = 0;
    return copy != NULL;
}

/* Capacity for `more` features after the last text. */
static bool reserve(ses_bags *b, size_t used, size_t more, ses_err *e)
{
    size_t cap = b->cap, need;
    if (!ses_add_size(used, more, &need)) return ses_fail(e, SES_ENOMEM, "too many features");
    if (need <= cap) return true;
    cap = need > 2 * cap ? need : 2 * cap;
    uint32_t *feature = ses_grow_array(b->feature, used, cap, sizeof *feature, e);
    if (!feature) return false;
    b->feature = feature;
    float *count = ses_grow_array(b->count, used, cap, sizeof *count, e);
    if (!count) return false;
    b->count = count;
    b->cap = cap;
    return true;
}

/* Sorts the features from `first` to `end` and counts equal ones. Returns the end of the shorter list. */
static size_t merge_equal(ses_bags *b, size_t first, size_t end)
{
    size_t out = first;
    qsort(b->feature + first, end - first, sizeof *b->feature, by_number);
    for (size_t i = first; i < end; i++) {
        if (out > first && b->feature[out - 1] == b->feature[i]) {
            b->count[out - 1]++;
            continue;
        }
        b->feature[out] = b->feature[i];
        b->count[out++] = 1;
    }
    return out;
}

/* Adds the features of a text at `first`. grow: new n-grams get numbers; else they are skipped. */
static bool add_text(ses_bag_vocab *grow, const ses_bag_vocab *v, ses_string text, ses_words *w, ses_bags *b,
                     size_t first, size_t *end, ses_err *e)
{
    size_t most = (size_t)v->ngrams, at = first;
    if (!ses_words_split(w, text, v->rule, e) || !reserve(b, first, w->n * most + 1, e)) return false;
    for (size_t i = 0; i < w->n; i++)
        for (size_t k = 1; k <= most && i + k <= w->n; k++) {
            const char *s = w->text.data + w->begin[i];
            size_t n = w->end[i + k - 1] - w->begin[i];
            int64_t found = 0;
            uint32_t number = 0;
            if (grow && !number_of(grow, s, n, &number, e)) return false;
            if (!grow && !ses_strmap_find(&v->index, s, n, &found)) continue;
            b->feature[at++] = grow ? number : (uint32_t)found;
        }
    *end = merge_equal(b, first, at);
    return true;
}

/* Drops features that occur less than min_count times and renumbers the others. */
static bool drop_rare(ses_bag_vocab *v, ses_bags *b, int64_t min_count, ses_err *e)
{
    size_t size = ses_bag_vocab_size(v), at = 0;
    double *sum = ses_alloc_array(size + 1, sizeof *sum, e);
    uint32_t *number = ses_alloc_array(size + 1, sizeof *number, e);
    ses_strmap kept = { 0 };
    bool ok = sum && number, fresh;
    for (size_t i = 0; ok && i < b->begin[b->n]; i++) sum[b->feature[i]] += (double)b->count[i];
    for (size_t i = 0; ok && i < size; i++) {
        const ses_strmap_entry *x = &v->index.entry[i];
        if (sum[i] < (double)min_count) continue;
        number[i] = (uint32_t)kept.count;
        ok = ses_strmap_insert(&kept, x->key, x->len, (int64_t)kept.count, &fresh, e) != NULL;
    }
    for (size_t i = 0, from = 0; ok && i < b->n; i++) {
        size_t to = b->begin[i + 1];
        for (; from < to; from++) {
            if (sum[b->feature[from]] < (double)min_count) continue;
            b->feature[at] = number[b->feature[from]];
            b->count[at++] = b->count[from];
        }
        b->begin[i + 1] = at;
    }
    if (ok) {
        ses_strmap old = v->index;
        v->index = kept;
        kept = old;
    }
    ses_strmap_free(&kept);
    ses_free(sum);
    ses_free(number);
    return ok;
}

bool ses_bags_build(ses_bag_vocab *v, const ses_string *text, size_t n, int64_t min_count, ses_bags *out,
                    ses_err *e)
{
    ses_words w = { 0 };
    *out = (ses_bags){ .n = n };
    out->begin = ses_alloc_array(n + 1, sizeof *out->begin, e);
    bool ok = out->begin != NULL;
    for (size_t i = 0; ok && i < n; i++)
        ok = add_text(v, v, text[i], &w, out, out->begin[i], &out->begin[i + 1], e);
    ses_words_free(&w);
    ok = ok && (min_count <= 1 || drop_rare(v, out, min_count, e));
    if (ok && !ses_bag_vocab_size(v))
        ok = ses_fail(e, SES_EARG, "no word of %zu training texts occurs %lld times; lower --min-count", n,
                      (long long)min_count);
    if (!ok) ses_bags_free(out);
    return ok;
}

bool ses_bags_add(const ses_bag_vocab *v, ses_string text, ses_words *w, ses_bags *b, ses_err *e)
{
    if (!b->begin) b->begin = ses_alloc_array(2, sizeof *b->begin, e);
    if (!b->begin) return false;
    b->n = 1;
    return add_text(NULL, v, text, w, b, 0, &b->begin[1], e);
}

void ses_bags_free(ses_bags *b)
{
    ses_free(b->begin);
    ses_free(b->feature);
    ses_free(b->count);
    *b = (ses_bags){ 0 };
}

/* ---- files ---- */

bool ses_bag_vocab_can_store(const char *s, size_t n)
{
    return n && !memchr(s, '\n', n) && !memchr(s, 0, n) && ses_utf8_valid(s, n) == n;
}

/* The reader strips a byte order mark from the first line and one \r from each: such a word gets a second. */
static bool put_line(ses_file_writer *f, const char *s, size_t n, bool first, ses_err *e)
{
    static const char mark[] = "\xef\xbb\xbf";
    if (!ses_bag_vocab_can_store(s, n))
        return ses_fail(e, SES_EFORMAT,
                        "the word \"%.*s\" is empty or has a line feed, a NUL or invalid UTF-8: a list of "
                        "words cannot store it",
                        (int)(n < 100 ? n : 100), s);
    return (!first || n < 3 || memcmp(s, mark, 3) != 0 || ses_file_writer_put(f, mark, 3, e)) &&
           ses_file_writer_put(f, s, n, e) &&
           (s[n - 1] == '\r' ? ses_file_writer_put(f, "\r\n", 2, e) : ses_file_writer_put(f, "\n", 1, e));
}

bool ses_bag_vocab_save(const ses_bag_vocab *v, const char *dir, const char *name, ses_err *e)
{
    char *path = ses_path_join(dir, name, e);
    ses_file_writer *f = path ? ses_file_writer_open(path, false, e) : NULL;
    bool ok = f != NULL;
    for (size_t i = 0; ok && i < ses_bag_vocab_size(v); i++)
        ok = put_line(f, v->index.entry[i].key, v->index.entry[i].len, i == 0, e);
    ok = ok && ses_file_writer_commit(f, e);
    ses_file_writer_free(f);
    ses_free(path);
    return ok;
}

static bool add_line(ses_bag_vocab *v, const char *s, size_t n, size_t size, ses_err *e)
{
    uint32_t number = 0;
    size_t before = ses_bag_vocab_size(v);
    if (before >= size)
        return ses_fail(e, SES_EFORMAT, "more lines than the %zu features of the model", size);
    if (!n) return ses_fail(e, SES_EFORMAT, "an empty line; expected a word or an n-gram");
    if (!number_of(v, s, n, &number, e)) return false;
    return ses_bag_vocab_size(v) > before || ses_fail(e, SES_EFORMAT, "repeats line %u", number + 1);
}

/* A file that was truncated within its last line may still have the right number of lines. */
static bool ends_with_newline(const char *path, ses_err *e)
{
    FILE *f = fopen(path, "rb");
    bool ends = f && !fseek(f, -1, SEEK_END) && getc(f) == '\n';
    if (f) fclose(f);
    return ends || ses_fail(e, SES_EFORMAT, "the last line has no end: the file is truncated");
}

bool ses_bag_vocab_open(ses_bag_vocab *v, const char *dir, const char *name, size_t size, ses_err *e)
{
    ses_text_reader lines = { 0 };
    const char *s = NULL;
    size_t n = 0;
    char *path = ses_path_join(dir, name, e);
    bool ok = path && ses_text_reader_open(&lines, path, MAX_LINE, e);
    while (ok && (ok = ses_text_reader_next(&lines, &s, &n, e)) && s)
        ok = add_line(v, s, n, size, e) || ses_wrap(e, "line %llu", (unsigned long long)lines.line);
    if (ok && ses_bag_vocab_size(v) != size)
        ok = ses_fail(e, SES_EFORMAT, "%zu lines, but the model has %zu features: the file is truncated",
                      ses_bag_vocab_size(v), size);
    ok = ok && ends_with_newline(path, e);
    ses_text_reader_free(&lines);
    ses_free(path);
    return ok || ses_wrap(e, "%s", name);
}

void ses_bag_vocab_free(ses_bag_vocab *v)
{
    ses_strmap_free(&v->index);
    ses_arena_free(&v->names);
    *v = (ses_bag_vocab){ 0 };
}
