/* Words, dictionary and n-grams of fastText. */
#include "fasttext_words.h"

#include "base/alloc.h"
#include "base/str.h"
#include "libstdcxx.h"

#include <string.h>

#define MAX_WORDS 22500000 /* above this, rare words are dropped while counting */

ses_fasttext_reader ses_fasttext_reader_of(const ses_mmap *file)
{
    return (ses_fasttext_reader){ .start = file->data, .at = file->data, .end = file->data + file->size };
}

static bool is_blank(unsigned char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\v' || c == '\f' || !c;
}

bool ses_fasttext_read(ses_fasttext_reader *r)
{
    for (; r->at < r->end && is_blank(*r->at); r->at++)
        if (*r->at == '\n') {
            r->at++;
            r->word = "</s>";
            r->len = 4;
            return true;
        }
    const unsigned char *start = r->at;
    while (r->at < r->end && !is_blank(*r->at)) r->at++;
    r->word = (const char *)start;
    r->len = (size_t)(r->at - start);
    if (r->at == r->end)
        r->ended = true;
    else if (*r->at != '\n')
        r->at++;
    return r->len > 0;
}

static bool add_word(ses_fasttext_dictionary *d, const ses_fasttext_reader *r, ses_err *e)
{
    int64_t known;
    bool fresh;
    d->tokens++;
    if (ses_strmap_find(&d->id, r->word, r->len, &known)) {
        d->word[known].count++;
        return true;
    }
    const char *copy = ses_arena_strndup(&d->text, r->word, r->len, e);
    if (!copy || !ses_array_reserve(&d->word, &d->capacity, d->n + 1, sizeof *d->word, e) ||
        !ses_strmap_insert(&d->id, copy, r->len, (int64_t)d->n, &fresh, e))
        return false;
    bool is_label = r->len >= 9 && !memcmp(copy, "__label__", 9);
    d->word[d->n++] = (ses_fasttext_word){ .text = copy, .len = r->len, .count = 1, .is_label = is_label };
    return true;
}

/* Sorts, and drops words below min_count and labels below min_label. */
static bool drop_rare(ses_fasttext_dictionary *d, int64_t min_count, int64_t min_label, ses_err *e)
{
    ses_sort_item *item = ses_alloc_array(d->n, sizeof *item, e);
    ses_fasttext_word *sorted = ses_alloc_array(d->n, sizeof *sorted, e);
    size_t kept = 0;
    bool fresh, ok = item && sorted;
    for (size_t i = 0; ok && i < d->n; i++)
        item[i] = (ses_sort_item){ d->word[i].is_label, d->word[i].count, i };
    if (ok) ses_libstdcxx_sort(item, d->n);
    d->n_words = 0;
    for (size_t i = 0; ok && i < d->n; i++) {
        const ses_fasttext_word *w = &d->word[item[i].index];
        if (w->count < (w->is_label ? min_label : min_count)) continue;
        d->n_words += !w->is_label;
        sorted[kept++] = *w;
    }
    if (ok) memcpy(d->word, sorted, kept * sizeof *sorted);
    d->n = kept;
    ses_strmap_free(&d->id);
    for (size_t i = 0; ok && i < d->n; i++)
        ok = ses_strmap_insert(&d->id, d->word[i].text, d->word[i].len, (int64_t)i, &fresh, e) != NULL;
    ses_free(item);
    ses_free(sorted);
    return ok;
}

bool ses_fasttext_count(ses_fasttext_dictionary *d, const ses_mmap *file, const char *path, int64_t min_count,
                        ses_err *e)
{
    ses_fasttext_reader r = ses_fasttext_reader_of(file);
    int64_t least = 1;
    bool ok = true;
    while (ok && ses_fasttext_read(&r)) {
        ok = add_word(d, &r, e);
        if (ok && d->n > MAX_WORDS) {
            least++;
            ok = drop_rare(d, least, least, e);
        }
    }
    ok = ok && drop_rare(d, min_count, 0, e);
    if (ok && d->n_words < 2)
        return ses_fail(e, SES_EARG, "%s: fewer than two words occur at least %lld times (--minCount)", path,
                        (long long)min_count);
    return ok;
}

static uint32_t hash(const char *s, size_t n)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n; i++) h = (h ^ (uint32_t)(int32_t)(signed char)s[i]) * 16777619u;
    return h;
}

static bool continues(char c) { return (c & 0xC0) == 0x80; } /* a byte within a UTF-8 character */

static bool add_row(ses_fasttext_dictionary *d, int32_t row, ses_err *e)
{
    if (!ses_array_reserve(&d->rows, &d->rows_capacity, d->n_rows + 1, sizeof *d->rows, e)) return false;
    d->rows[d->n_rows++] = row;
    return true;
}

/* n-grams of <word>. */
static bool add_word_ngrams(ses_fasttext_dictionary *d, const char *s, size_t len, int minn, int maxn,
                            int64_t buckets, ses_err *e)
{
    for (size_t i = 0; i < len; i++) {
        if (continues(s[i])) continue;
        size_t j = i;
        for (int n = 1; j < len && n <= maxn; n++) {
            for (j++; j < len && continues(s[j]);) j++;
            if (n < minn || (n == 1 && (i == 0 || j == len))) continue;
            int32_t bucket = (int32_t)(hash(s + i, j - i) % (uint32_t)buckets);
            if (!add_row(d, (int32_t)d->n_words + bucket, e)) return false;
        }
    }
    return true;
}

bool ses_fasttext_add_ngrams(ses_fasttext_dictionary *d, int minn, int maxn, int64_t buckets, ses_err *e)
{
    ses_buf s = { 0 };
    bool ok = true;
    if (buckets > INT32_MAX - (int64_t)d->n)
        return ses_fail(e, SES_EUSAGE, "--bucket %lld: too many rows beside %zu words", (long long)buckets,
                        d->n);
    for (size_t i = 0; ok && i < d->n; i++) {
        ses_fasttext_word *w = &d->word[i];
        w->first_row = d->n_rows;
        s.len = 0;
        ok =
            add_row(d, (int32_t)i, e) && ses_buf_put(&s, '<') && ses_buf_append(&s, w->text, w->len) &&
            ses_buf_put(&s, '>') &&
            (ses_equal(w->text, w->len, "</s>") || add_word_ngrams(d, s.data, s.len, minn, maxn, buckets, e));
        w->n_rows = d->n_rows - w->first_row;
    }
    if (!ok) ses_buf_ok(&s, e);
    ses_buf_free(&s);
    return ok;
}

void ses_fasttext_dictionary_free(ses_fasttext_dictionary *d)
{
    ses_arena_free(&d->text);
    ses_strmap_free(&d->id);
    ses_free(d->word);
    ses_free(d->rows);
    *d = (ses_fasttext_dictionary){ 0 };
}
