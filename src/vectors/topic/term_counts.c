/* Term counts: see term_counts.h. */
#include "term_counts.h"

#include "base/alloc.h"
#include "base/sort.h"
#include "base/str.h"
#include "base/unicode/lowercase.h"
#include "base/unicode/unicode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const stop_words[] = {
#define SES_STOP_WORD(word) #word,
#include "stop_words.def"
#undef SES_STOP_WORD
};

void ses_term_vocab_free(ses_term_vocab *v)
{
    ses_strmap_free(&v->ids);
    ses_arena_free(&v->mem);
    ses_free(v->texts), ses_free(v->count);
    *v = (ses_term_vocab){ 0 };
}

void ses_term_counts_free(ses_term_counts *b)
{
    ses_free(b->start), ses_free(b->col), ses_free(b->value);
    *b = (ses_term_counts){ 0 };
}

/* ---- words of a text ---- */

/* Whether a word of one character, which may have several bytes. */
static bool is_single(ses_string word)
{
    uint32_t cp;
    return ses_char_at(word.p, word.n, &cp) == word.n;
}

bool ses_term_each(ses_string text, ses_words_rule split, ses_words *w, ses_term_fn *fn, void *ctx,
                   ses_err *e)
{
    if (!ses_words_split(w, text, split, e)) return false;
    for (size_t i = 0; i < w->n; i++) {
        ses_string word = { w->text.data + w->begin[i], w->end[i] - w->begin[i] };
        if (split == SES_WORDS_RUNS && is_single(word)) continue;
        if (!fn(ctx, word.p, word.n, e)) return false;
    }
    return true;
}

/* ---- vocabulary ---- */

typedef struct word_stats {
    const char *word;
    size_t len;
    int64_t texts, count, last; /* last: the last text that contained it */
} word_stats;

typedef struct counting {
    ses_strmap ids;
    ses_arena mem;
    word_stats *stats;
    size_t cap;
    int64_t text;
} counting;

static bool count_word(void *ctx, const char *word, size_t n, ses_err *e)
{
    counting *c = ctx;
    int64_t id;
    if (n > UINT32_MAX) return ses_fail(e, SES_EARG, "a word of %zu bytes", n);
    if (!ses_strmap_find(&c->ids, word, n, &id)) {
        bool fresh;
        id = (int64_t)c->ids.count;
        if (id == INT32_MAX) return ses_fail(e, SES_EARG, "more than %d words", INT32_MAX);
        const char *own = ses_arena_strndup(&c->mem, word, n, e);
        if (!own || !ses_array_reserve(&c->stats, &c->cap, (size_t)id + 1, sizeof *c->stats, e) ||
            !ses_strmap_insert(&c->ids, own, n, id, &fresh, e))
            return false;
        c->stats[id] = (word_stats){ .word = own, .len = n, .last = -1 };
    }
    word_stats *s = &c->stats[id];
    s->count++;
    s->texts += s->last != c->text;
    s->last = c->text;
    return true;
}

static int by_count(const void *x, const void *y)
{
    const word_stats *a = x, *b = y;
    if (a->count != b->count) return a->count < b->count ? 1 : -1;
    int order = memcmp(a->word, b->word, a->len < b->len ? a->len : b->len);
    return order ? order : (a->len > b->len) - (a->len < b->len);
}

static bool is_stop_word(const word_stats *s)
{
    for (size_t i = 0; i < SES_LEN(stop_words); i++)
        if (ses_equal(s->word, s->len, stop_words[i])) return true;
    return false;
}

bool ses_term_vocab_add(ses_term_vocab *v, const char *word, size_t n, ses_err *e)
{
    bool fresh;
    const char *own = ses_arena_strndup(&v->mem, word, n, e);
    if (!own || !ses_strmap_insert(&v->ids, own, n, v->words, &fresh, e)) return false;
    if (!fresh) return ses_fail(e, SES_EFORMAT, "word \"%s\" is repeated", ses_quoted_of(word, n).s);
    v->words++;
    return true;
}

/* Keeps the words that the options allow, in the order of the vocabulary. */
static bool choose(ses_term_vocab *v, counting *c, int64_t n, const ses_term_options *o, ses_err *e)
{
    size_t all = c->ids.count, kept = 0;
    for (size_t i = 0; i < all; i++) {
        const word_stats *s = &c->stats[i];
        if (s->texts < o->min_texts || (double)s->texts > o->max_share * (double)n) continue;
        if (o->stop_words && is_stop_word(s)) continue;
        c->stats[kept++] = *s;
    }
    if (kept && !ses_stable_sort(c->stats, kept, sizeof *c->stats, by_count, e)) return false;
    if (o->max_words > 0 && kept > (size_t)o->max_words) kept = (size_t)o->max_words;
    if (!all) return ses_fail(e, SES_EARG, "the texts have no word");
    if (!kept)
        return ses_fail(e, SES_EARG,
                        "none of the %zu words is left: expected words in at least %lld and at most %g %% "
                        "of %lld texts that are not stop words; change --min-df, --max-df or --stop-words",
                        all, (long long)o->min_texts, 100 * o->max_share, (long long)n);
    v->texts = ses_alloc_array(kept, sizeof *v->texts, e);
    v->count = v->texts ? ses_alloc_array(kept, sizeof *v->count, e) : NULL;
    if (!v->count || !ses_strmap_reserve(&v->ids, kept, e)) return false;
    for (size_t i = 0; i < kept; i++) {
        if (!ses_term_vocab_add(v, c->stats[i].word, c->stats[i].len, e)) return false;
        v->texts[i] = c->stats[i].texts;
        v->count[i] = c->stats[i].count;
    }
    return true;
}

bool ses_term_vocab_build(ses_term_vocab *v, const ses_string *text, size_t n, const ses_term_options *o,
                          ses_err *e)
{
    counting c = { 0 };
    ses_words words = { 0 };
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        c.text = (int64_t)i;
        ok = ses_term_each(text[i], o->split, &words, count_word, &c, e);
    }
    v->split = o->split;
    v->all_texts = (int64_t)n;
    ok = ok && choose(v, &c, (int64_t)n, o, e);
    ses_words_free(&words);
    ses_strmap_free(&c.ids);
    ses_arena_free(&c.mem);
    ses_free(c.stats);
    return ok;
}

/* ---- counts ---- */

typedef struct row_ids {
    const ses_term_vocab *v;
    int32_t *id;
    size_t n, cap;
} row_ids;

static bool take_id(void *ctx, const char *word, size_t n, ses_err *e)
{
    row_ids *r = ctx;
    int64_t id;
    if (!ses_strmap_find(&r->v->ids, word, n, &id)) return true;
    if (!ses_array_reserve(&r->id, &r->cap, r->n + 1, sizeof *r->id, e)) return false;
    r->id[r->n++] = (int32_t)id;
    return true;
}

static int by_id(const void *x, const void *y)
{
    int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
    return (a > b) - (a < b);
}

static bool add_row(ses_term_counts *b, size_t *cap_col, size_t *cap_value, row_ids *r, ses_err *e)
{
    size_t at = (size_t)b->start[b->rows];
    if (!ses_array_reserve(&b->col, cap_col, at + r->n + 1, sizeof *b->col, e) ||
        !ses_array_reserve(&b->value, cap_value, at + r->n + 1, sizeof *b->value, e))
        return false;
    if (r->n) qsort(r->id, r->n, sizeof *r->id, by_id); /* equal ids are alike: the order is unique */
    for (size_t i = 0; i < r->n; i++) {
        if (i && r->id[i] == r->id[i - 1]) {
            b->value[at - 1]++;
            continue;
        }
        b->col[at] = r->id[i];
        b->value[at++] = 1;
    }
    b->start[++b->rows] = (int64_t)at;
    return true;
}

bool ses_term_counts_make(ses_term_counts *b, const ses_term_vocab *v, const ses_string *text, size_t n,
                          ses_err *e)
{
    row_ids r = { .v = v };
    ses_words words = { 0 };
    size_t cap_col = 0, cap_value = 0;
    b->cols = v->words;
    b->start = ses_alloc_array(n + 1, sizeof *b->start, e);
    bool ok = b->start != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        r.n = 0;
        ok = ses_term_each(text[i], v->split, &words, take_id, &r, e) &&
             add_row(b, &cap_col, &cap_value, &r, e);
    }
    ses_free(r.id);
    ses_words_free(&words);
    return ok;
}

bool ses_term_counts_transpose(ses_term_counts *out, const ses_term_counts *b, ses_err *e)
{
    int64_t n = b->start[b->rows];
    *out = (ses_term_counts){ .rows = b->cols, .cols = b->rows };
    out->start = ses_alloc_array((size_t)b->cols + 2, sizeof *out->start, e);
    out->col = out->start ? ses_alloc_array((size_t)n + 1, sizeof *out->col, e) : NULL;
    out->value = out->col ? ses_alloc_array((size_t)n + 1, sizeof *out->value, e) : NULL;
    if (!out->value) {
        ses_term_counts_free(out);
        return false;
    }
    int64_t *next = out->start + 1; /* becomes the end of each row */
    for (int64_t i = 0; i < n; i++) next[b->col[i] + 1]++;
    for (int64_t w = 0; w < b->cols; w++) next[w + 1] += next[w];
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t i = b->start[r]; i < b->start[r + 1]; i++) {
            int64_t at = next[b->col[i]]++;
            out->col[at] = (int32_t)r;
            out->value[at] = b->value[i];
        }
    return true;
}

void ses_term_counts_tf_idf(ses_term_counts *b, const int64_t *texts, int64_t n)
{
    for (int64_t r = 0; r < b->rows; r++) {
        double squares = 0;
        for (int64_t i = b->start[r]; i < b->start[r + 1]; i++) {
            b->value[i] *= log((1 + (double)n) / (1 + (double)texts[b->col[i]])) + 1;
            squares += b->value[i] * b->value[i];
        }
        double by = squares > 0 ? 1 / sqrt(squares) : 0;
        for (int64_t i = b->start[r]; i < b->start[r + 1]; i++) b->value[i] *= by;
    }
}
