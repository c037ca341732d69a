/* Word lists of the surface tasks: frequent words, and words by XPOS and frequency. */
#include "analysis/treebank/surface_lists.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { CHOSEN = 100, CHOSEN_SKIP = 20, MAX_WORD = 64, NEIGHBORS = 10 };

/* s in lower case; returns its length, 0: too long for out. */
static size_t lower(ses_string s, char out[MAX_WORD])
{
    size_t n = 0;
    for (size_t i = 0; i < s.n;) {
        uint32_t cp, low[2];
        i += ses_utf8_next(s.p + i, &cp);
        size_t count = ses_cp_lower(cp, low);
        for (size_t k = 0; k < count; k++) {
            if (n + 4 > MAX_WORD) return 0;
            n += ses_utf8_encode(low[k], out + n);
        }
    }
    return n;
}

bool ses_surface_find_chosen(const ses_surface_lists *l, ses_string form, int64_t *at)
{
    char low[MAX_WORD];
    size_t n = lower(form, low);
    return n && ses_strmap_find(&l->chosen, low, n, at);
}

/* ---- words by XPOS ---- */

static int compare_strings(ses_string a, ses_string b)
{
    int c = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);
    return c ? c : (a.n > b.n) - (a.n < b.n);
}

static int by_tag_and_count(const void *x, const void *y)
{
    const ses_surface_word *a = x, *b = y;
    int c = compare_strings(a->xpos, b->xpos);
    if (c) return c;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    return compare_strings(a->form, b->form);
}

static int by_count(const void *x, const void *y)
{
    const ses_surface_word *a = x, *b = y;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    return compare_strings(a->form, b->form);
}

/* Counts a word under a key; a new one is appended. The form is borrowed, or the key if lower is set. */
static bool count_word(ses_surface_word **list, size_t *n, size_t *cap, ses_strmap *index, ses_arena *arena,
                       const ses_buf *key, const ses_conllu_word *w, bool lowered, ses_err *e)
{
    int64_t at;
    if (ses_strmap_find(index, key->data, key->len, &at)) {
        (*list)[at].count++;
        return true;
    }
    bool fresh;
    const char *copy = ses_arena_strndup(arena, key->data, key->len, e);
    if (!copy || !ses_array_reserve(list, cap, *n + 1, sizeof **list, e) ||
        !ses_strmap_insert(index, copy, key->len, (int64_t)*n, &fresh, e))
        return false;
    ses_string form = lowered ? (ses_string){ copy, key->len } : w->form;
    (*list)[(*n)++] = (ses_surface_word){ .form = form, .xpos = w->xpos, .upos = w->upos, .count = 1 };
    return true;
}

static bool list_words(ses_surface_lists *l, const ses_treebank *train, ses_err *e)
{
    ses_strmap index = { 0 };
    ses_buf key = { 0 };
    bool ok = true;
    for (size_t i = 0; ok && i < train->n; i++)
        for (size_t w = 0; ok && w < train->tree[i].n; w++) {
            const ses_conllu_word *x = &train->tree[i].word[w];
            key.len = 0;
            ses_buf_appendf(&key, "%s\t%s", x->xpos.p, x->form.p);
            ok = ses_buf_ok(&key, e) &&
                 count_word(&l->word, &l->n, &l->cap, &index, &l->arena, &key, x, false, e);
        }
    ses_buf_free(&key);
    ses_strmap_free(&index);
    if (ok && l->n) qsort(l->word, l->n, sizeof *l->word, by_tag_and_count);
    return ok;
}

/* The first word at or after (xpos, count). */
static size_t find_from(const ses_surface_lists *l, ses_string xpos, int64_t count)
{
    size_t low = 0, high = l->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int c = compare_strings(l->word[middle].xpos, xpos);
        if (c < 0 || (c == 0 && l->word[middle].count > count))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int64_t count_of(const ses_surface_lists *l, const ses_conllu_word *w)
{
    for (size_t i = find_from(l, w->xpos, INT64_MAX); i < l->n; i++) {
        if (compare_strings(l->word[i].xpos, w->xpos) != 0) break;
        if (!compare_strings(l->word[i].form, w->form)) return l->word[i].count;
    }
    return 1;
}

ses_string ses_surface_replacement(const ses_surface_lists *l, const ses_conllu_word *w,
                                   ses_rng_stream *draws)
{
    size_t begin = find_from(l, w->xpos, INT64_MAX), end = find_from(l, w->xpos, -1);
    int64_t count = count_of(l, w);
    size_t same = find_from(l, w->xpos, count), after = find_from(l, w->xpos, count - 1);
    size_t from = same - begin > NEIGHBORS ? same - NEIGHBORS : begin;
    size_t to = end - after > NEIGHBORS ? after + NEIGHBORS : end;
    for (int tries = 0; tries < 8 && to > from; tries++) {
        const ses_surface_word *x = &l->word[from + (size_t)ses_draw_below(draws, (int64_t)(to - from))];
        if (compare_strings(x->form, w->form) != 0) return x->form;
    }
    return (ses_string){ NULL, 0 };
}

/* ---- words of word_content ---- */

static bool is_content(const ses_conllu_word *w)
{
    return ses_equal(w->upos.p, w->upos.n, "NOUN") || ses_equal(w->upos.p, w->upos.n, "VERB") ||
           ses_equal(w->upos.p, w->upos.n, "ADJ");
}

static bool choose_words(ses_surface_lists *l, const ses_treebank *train, ses_err *e)
{
    ses_strmap index = { 0 };
    ses_surface_word *list = NULL;
    size_t n = 0, cap = 0;
    bool ok = true, fresh;
    for (size_t i = 0; ok && i < train->n; i++)
        for (size_t w = 0; ok && w < train->tree[i].n; w++) {
            const ses_conllu_word *x = &train->tree[i].word[w];
            char low[MAX_WORD];
            size_t len = is_content(x) ? lower(x->form, low) : 0;
            ses_buf key = { .data = low, .len = len };
            if (len) ok = count_word(&list, &n, &cap, &index, &l->arena, &key, x, true, e);
        }
    if (ok && n) qsort(list, n, sizeof *list, by_count);
    size_t from = n > CHOSEN + CHOSEN_SKIP ? CHOSEN_SKIP : 0, to = n < from + CHOSEN ? n : from + CHOSEN;
    for (size_t i = from; ok && i < to; i++)
        ok = ses_strmap_insert(&l->chosen, list[i].form.p, list[i].form.n, (int64_t)l->chosen.count, &fresh,
                               e);
    ses_free(list);
    ses_strmap_free(&index);
    return ok;
}

bool ses_surface_lists_new(ses_surface_lists *l, const ses_treebank *train, ses_err *e)
{
    *l = (ses_surface_lists){ 0 };
    return list_words(l, train, e) && choose_words(l, train, e);
}

void ses_surface_lists_free(ses_surface_lists *l)
{
    ses_free(l->word);
    ses_strmap_free(&l->chosen);
    ses_arena_free(&l->arena);
    *l = (ses_surface_lists){ 0 };
}
