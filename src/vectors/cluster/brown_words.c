/* Words and bigrams for Brown clustering: see brown_words.h.
 *
 * Words of equal count are clustered in the order of wcluster, the usual program: GNU's std::sort of the
 * order in which its unordered_map enumerates the words, whose hash is CityHash64 of the 4 bytes of a word's
 * number. */
#include "brown_words.h"

#include "base/alloc.h"
#include "vectors/exact/libstdcxx.h"

#include <stdlib.h>
#include <string.h>

void ses_brown_words_free(ses_brown_words *w)
{
    ses_word_vocab_free(&w->vocab);
    ses_free(w->id), ses_free(w->number), ses_free(w->right_start), ses_free(w->left_start);
    ses_free(w->right), ses_free(w->left);
    *w = (ses_brown_words){ 0 };
}

/* ---- the order of GNU's unordered_map ---- */

/* CityHash64 (Pike and Alakuijala 2011) of 4 bytes. */
static uint64_t city_hash(uint32_t x)
{
    const uint64_t k = 0x9ddfea08eb382d69u;
    uint64_t a = ((4 + ((uint64_t)x << 3)) ^ x) * k;
    a ^= a >> 47;
    uint64_t b = (x ^ a) * k;
    b ^= b >> 47;
    return b * k;
}

/* Sizes of the table as it grows. */
static const uint64_t sizes[] = { 13,      29,      59,      127,      257,      541,      1109,     2357,
                                  5087,    10273,   20753,   42043,    85229,    172933,   351061,   712697,
                                  1447153, 2938679, 5967347, 12117689, 24607243, 49969847, 101473717 };

/* A hash table whose nodes form one list; nodes of a bucket are adjacent. Node n is the list's head. */
typedef struct node_list {
    uint32_t *next;   /* [n + 1]; END: none */
    uint32_t *before; /* [size]: the node before the first of a bucket; END: the bucket is empty */
    uint64_t size;
    uint32_t head;
} node_list;

static const uint32_t END = UINT32_MAX;

static void insert(node_list *l, uint32_t node)
{
    uint64_t bucket = city_hash(node) % l->size;
    if (l->before[bucket] != END) {
        l->next[node] = l->next[l->before[bucket]];
        l->next[l->before[bucket]] = node;
        return;
    }
    uint32_t first = l->next[l->head];
    l->next[node] = first;
    l->next[l->head] = node;
    if (first != END) l->before[city_hash(first) % l->size] = node;
    l->before[bucket] = l->head;
}

static bool grow(node_list *l, uint64_t size, ses_err *e)
{
    uint32_t *before = ses_alloc_array(size, sizeof *before, e);
    if (!before) return false;
    ses_free(l->before);
    l->before = before, l->size = size;
    memset(before, 0xFF, size * sizeof *before);
    uint32_t node = l->next[l->head];
    l->next[l->head] = END;
    while (node != END) {
        uint32_t after = l->next[node];
        insert(l, node);
        node = after;
    }
    return true;
}

/* The words 0 .. n - 1 in the order of the map. */
static bool enumerate_map(uint32_t *out, uint32_t n, ses_err *e)
{
    node_list l = { .next = ses_alloc_array((size_t)n + 1, sizeof *l.next, e), .head = n };
    bool ok = l.next != NULL;
    size_t s = 0;
    if (ok) l.next[n] = END;
    for (uint32_t i = 0; ok && i < n; i++) {
        if (i + 1 > l.size) {
            ok = s < SES_LEN(sizes) || ses_fail(e, SES_EARG, "more than 101473717 different words");
            ok = ok && grow(&l, sizes[s++], e);
        }
        if (ok) insert(&l, i);
    }
    for (uint32_t node = ok ? l.next[n] : END; node != END; node = l.next[node]) *out++ = node;
    ses_free(l.next), ses_free(l.before);
    return ok;
}

/* ---- choice of words ---- */

static bool rank_words(ses_brown_words *w, int32_t *rank, const ses_brown_options *o, ses_err *e)
{
    size_t all = w->vocab.n, n = 0;
    uint32_t *order = ses_alloc_array(all + 1, sizeof *order, e);
    ses_sort_item *item = order ? ses_alloc_array(all + 1, sizeof *item, e) : NULL;
    bool ok = item && enumerate_map(order, (uint32_t)all, e);
    for (size_t i = 0; ok && i < all; i++) {
        int64_t count = w->vocab.word[order[i]].count;
        if (count >= o->min_count)
            item[n] = (ses_sort_item){ .major = -count, .index = n }, order[n++] = order[i];
    }
    if (ok) ses_libstdcxx_sort(item, n);
    if (o->max_words > 0 && n > (size_t)o->max_words) n = (size_t)o->max_words;
    w->id = ok ? ses_alloc_array(n + 1, sizeof *w->id, e) : NULL;
    w->number = w->id ? ses_alloc_array(n + 1, sizeof *w->number, e) : NULL;
    ok = w->number != NULL;
    for (size_t i = 0; ok && i < all; i++) rank[i] = -1;
    for (size_t i = 0; ok && i < n; i++) {
        w->number[i] = (int32_t)item[i].index;
        w->id[i] = (int32_t)order[item[i].index];
        rank[w->id[i]] = (int32_t)i;
    }
    w->n = (int64_t)n;
    ses_free(order), ses_free(item);
    return ok;
}

/* ---- bigrams ---- */

static int by_key(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

/* Groups sorted keys (first << 32 | second) by the first word. */
static bool group(const uint64_t *key, size_t n, int64_t words, int64_t **start, ses_brown_bigram **bigram,
                  ses_err *e)
{
    size_t kinds = 0, at = 0;
    for (size_t i = 0; i < n; i++) kinds += !i || key[i] != key[i - 1];
    *start = ses_alloc_array((size_t)words + 1, sizeof **start, e);
    *bigram = *start ? ses_alloc_array(kinds + 1, sizeof **bigram, e) : NULL;
    if (!*bigram) return false;
    for (size_t i = 0; i < n; i++) {
        if (!i || key[i] != key[i - 1]) {
            (*bigram)[at++] = (ses_brown_bigram){ (int32_t)(uint32_t)key[i], 0 };
            (*start)[(key[i] >> 32) + 1]++;
        }
        (*bigram)[at - 1].count++;
    }
    for (int64_t r = 0; r < words; r++) (*start)[r + 1] += (*start)[r];
    return true;
}

static bool count_bigrams(ses_brown_words *w, const int32_t *text, const int32_t *rank, ses_err *e)
{
    size_t n = 0;
    uint64_t *key = ses_alloc_array((size_t)w->tokens + 1, sizeof *key, e);
    if (!key) return false;
    for (int64_t i = 0; i + 1 < w->tokens; i++) {
        int32_t a = rank[text[i]], b = rank[text[i + 1]];
        if (a >= 0 && b >= 0) key[n++] = (uint64_t)a << 32 | (uint64_t)b;
    }
    if (n) qsort(key, n, sizeof *key, by_key);
    bool ok = group(key, n, w->n, &w->right_start, &w->right, e);
    for (size_t i = 0; i < n; i++) key[i] = key[i] << 32 | key[i] >> 32;
    if (ok && n) qsort(key, n, sizeof *key, by_key);
    ok = ok && group(key, n, w->n, &w->left_start, &w->left, e);
    ses_free(key);
    return ok;
}

/* ---- text ---- */

static bool read_text(ses_brown_words *w, const char *path, int32_t **text, const ses_brown_options *o,
                      ses_err *e)
{
    ses_word_reader r = { .encoding = o->encoding };
    size_t capacity = 0;
    bool ok = ses_word_reader_open(&r, path, SES_WORDS_BLANK, e) || ses_wrap(e, "%s", path), any = true;
    while (ok && any) {
        const char *s;
        size_t n;
        ok = ses_word_reader_next(&r, &s, &n, e) || ses_wrap(e, "%s", path);
        any = ok && s;
        if (!any || !n) continue;
        int32_t id = ses_word_vocab_count(&w->vocab, s, n, e);
        ok = id >= 0 && ses_array_reserve(text, &capacity, (size_t)w->tokens + 1, sizeof **text, e);
        if (ok) (*text)[w->tokens++] = id;
        if (ok && w->tokens % (1 << 20) == 0 && o->progress && !o->progress(o->ctx, 0, 0))
            ok = ses_fail(e, SES_EARG, "stopped while reading %s", path);
    }
    w->skipped = r.skipped;
    ses_word_reader_free(&r);
    return ok;
}

bool ses_brown_words_read(ses_brown_words *w, const char *path, const ses_brown_options *o, ses_err *e)
{
    int32_t *text = NULL, *rank = NULL;
    bool ok = read_text(w, path, &text, o, e);
    if (ok && !w->tokens) ok = ses_fail(e, SES_EARG, "%s: no words", path);
    rank = ok ? ses_alloc_array(w->vocab.n, sizeof *rank, e) : NULL;
    ok = rank && rank_words(w, rank, o, e);
    if (ok && !w->n)
        ok = ses_fail(e, SES_EARG, "%s: none of %zu words occurs %lld times; lower --min-count", path,
                      w->vocab.n, (long long)o->min_count);
    ok = ok && count_bigrams(w, text, rank, e);
    ses_free(text), ses_free(rank);
    return ok;
}
