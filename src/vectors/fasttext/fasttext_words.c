/* Words, dictionary and n-grams of fastText. */
#include "fasttext_words.h"

#include "base/alloc.h"
#include "base/str.h"
#include "vectors/exact/libstdcxx.h"

#include <string.h>

#define MAX_WORDS 22500000 /* above this, rare words are dropped while counting */
#define MAX_ROWS (1 << 30) /* length of one list */

ses_fasttext_reader ses_fasttext_reader_of(const void *text, size_t n)
{
    const unsigned char *start = text ? text : (const unsigned char *)"";
    return (ses_fasttext_reader){ .start = start, .at = start, .end = start + n };
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
            return r->line_end = true;
        }
    const unsigned char *start = r->at;
    r->line_end = false;
    while (r->at < r->end && !is_blank(*r->at)) r->at++;
    r->word = (const char *)start;
    r->len = (size_t)(r->at - start);
    if (r->at == r->end)
        r->ended = true;
    else if (*r->at != '\n')
        r->at++;
    return r->len > 0;
}

bool ses_fasttext_is_label(const ses_fasttext_dictionary *d, const char *s, size_t n)
{
    const char *label = d->label ? d->label : "__label__";
    size_t len = strlen(label);
    return n >= len && !memcmp(s, label, len);
}

bool ses_fasttext_count_word(ses_fasttext_dictionary *d, const char *s, size_t n, ses_err *e)
{
    int64_t known;
    bool fresh;
    d->tokens++;
    if (ses_strmap_find(&d->id, s, n, &known)) {
        d->word[known].count++;
        return true;
    }
    const char *copy = ses_arena_strndup(&d->text, s, n, e);
    if (!copy || !ses_array_reserve(&d->word, &d->capacity, d->n + 1, sizeof *d->word, e) ||
        !ses_strmap_insert(&d->id, copy, n, (int64_t)d->n, &fresh, e))
        return false;
    bool is_label = ses_fasttext_is_label(d, s, n);
    d->word[d->n++] = (ses_fasttext_word){ .text = copy, .len = n, .count = 1, .is_label = is_label };
    return true;
}

bool ses_fasttext_drop_rare(ses_fasttext_dictionary *d, int64_t min_count, int64_t min_label, ses_err *e)
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
    if (ok && kept) memcpy(d->word, sorted, kept * sizeof *sorted);
    d->n = kept;
    ses_strmap_free(&d->id);
    for (size_t i = 0; ok && i < d->n; i++)
        ok = ses_strmap_insert(&d->id, d->word[i].text, d->word[i].len, (int64_t)i, &fresh, e) != NULL;
    ses_free(item);
    ses_free(sorted);
    return ok;
}

bool ses_fasttext_count(ses_fasttext_dictionary *d, ses_fasttext_reader r, ses_err *e)
{
    int64_t least = 1;
    bool ok = true;
    while (ok && ses_fasttext_read(&r)) {
        ok = ses_fasttext_count_word(d, r.word, r.len, e);
        if (ok && d->n > MAX_WORDS) {
            least++;
            ok = ses_fasttext_drop_rare(d, least, least, e);
        }
    }
    return ok;
}

/* ---- n-grams ---- */

#define HASH_START 2166136261u

static uint32_t hash_byte(uint32_t h, char c) { return (h ^ (uint32_t)(int32_t)(signed char)c) * 16777619u; }

uint32_t ses_fasttext_hash(const char *s, size_t n)
{
    uint32_t h = HASH_START;
    for (size_t i = 0; i < n; i++) h = hash_byte(h, s[i]);
    return h;
}

static bool continues(char c) { return (c & 0xC0) == 0x80; } /* a byte within a UTF-8 character */

bool ses_fasttext_rows_add(ses_fasttext_rows *r, int32_t row, ses_err *e)
{
    if (r->n == MAX_ROWS) return ses_fail(e, SES_EARG, "more than %d n-grams", MAX_ROWS);
    if (!ses_array_reserve(&r->row, &r->capacity, r->n + 1, sizeof *r->row, e)) return false;
    r->row[r->n++] = row;
    return true;
}

void ses_fasttext_rows_free(ses_fasttext_rows *r)
{
    ses_free(r->row);
    *r = (ses_fasttext_rows){ 0 };
}

/* Byte i of <word>. */
static char marked(const char *word, size_t len, size_t i)
{
    return i == 0 ? '<' : i <= len ? word[i - 1] : '>';
}

bool ses_fasttext_add_buckets(ses_fasttext_rows *r, const char *word, size_t len, int minn, int maxn,
                              int64_t buckets, ses_err *e)
{
    size_t end = len + 2;
    if (buckets <= 0 || ses_equal(word, len, "</s>")) return true;
    for (size_t i = 0; i < end; i++) {
        if (continues(marked(word, len, i))) continue;
        size_t j = i;
        uint32_t h = HASH_START;
        for (int n = 1; j < end && n <= maxn; n++) {
            do h = hash_byte(h, marked(word, len, j++));
            while (j < end && continues(marked(word, len, j)));
            if (n < minn || (n == 1 && (i == 0 || j == end))) continue;
            if (!ses_fasttext_rows_add(r, (int32_t)(h % (uint32_t)buckets), e)) return false;
        }
    }
    return true;
}

bool ses_fasttext_add_ngrams(ses_fasttext_dictionary *d, int minn, int maxn, int64_t buckets, ses_err *e)
{
    bool ok = true;
    if (buckets > INT32_MAX - (int64_t)d->n)
        return ses_fail(e, SES_EUSAGE, "--bucket %lld: too many rows beside %zu words", (long long)buckets,
                        d->n);
    d->rows.n = 0;
    for (size_t i = 0; ok && i < d->n; i++) {
        ses_fasttext_word *w = &d->word[i];
        w->first_row = d->rows.n;
        ok = ses_fasttext_rows_add(&d->rows, (int32_t)i, e) &&
             ses_fasttext_add_buckets(&d->rows, w->text, w->len, minn, maxn, buckets, e);
        w->n_rows = d->rows.n - w->first_row;
        for (size_t k = w->first_row + 1; ok && k < d->rows.n; k++) d->rows.row[k] += (int32_t)d->n_words;
    }
    return ok;
}

void ses_fasttext_dictionary_free(ses_fasttext_dictionary *d)
{
    ses_arena_free(&d->text);
    ses_strmap_free(&d->id);
    ses_free(d->word);
    ses_fasttext_rows_free(&d->rows);
    *d = (ses_fasttext_dictionary){ 0 };
}
