/* BPE training (Sennrich et al. 2016): starts with characters and merges the most frequent adjacent pair
 * until the vocabulary is full; of equally frequent pairs the one with lower ids. WordPiece is the same
 * with a prefix on all but the first character of a word.
 *
 * Pairs are in a heap with the words that contain them. An outdated count is detected when the pair
 * reaches the top; the pair is then inserted again. Each merge costs only as much as it changes. */
#include "base/alloc.h"
#include "base/strmap.h"
#include "base/unicode/utf8.h"
#include "text/vocab/byte_chars.h"
#include "tokenizer_trainer.h"

#include <stdlib.h>
#include <string.h>

typedef struct symbols { /* a word in the process of merging */
    int32_t *id;
    uint32_t n;
} symbols;

typedef struct word_list { /* words that contain a pair: ascending indices without duplicates */
    uint32_t *word;
    uint32_t n, cap;
} word_list;

typedef struct entry { /* heap entry */
    uint64_t pair;
    int64_t count;
    word_list at;
} entry;

/* Count of a pair, and the words in which it appeared during the current merge. */
typedef struct slot {
    uint64_t pair; /* left << 32 | right; EMPTY: free */
    int64_t count;
    word_list fresh;
    bool listed;
} slot;

static const uint64_t EMPTY = UINT64_MAX;

typedef struct bpe {
    const ses_tokenizer_train_options *o;
    const ses_counted_words *words;
    ses_trained_vocab *out;
    ses_strmap id; /* token to id */
    const char *prefix;
    size_t n_prefix;
    symbols *word;
    int32_t *all; /* symbols of all words, concatenated */
    slot *slot;
    size_t slots, used_slots;
    uint64_t *listed; /* pairs with new words */
    size_t n_listed, cap_listed;
    entry *heap;
    size_t n_heap, cap_heap;
} bpe;

/* ---- tables ---- */

static size_t hash(const bpe *b, uint64_t pair)
{
    return (size_t)((pair ^ pair >> 31) * 0x9E3779B97F4A7C15u >> 20) & (b->slots - 1);
}

static slot *find(bpe *b, uint64_t pair)
{
    size_t i = hash(b, pair);
    while (b->slot[i].pair != EMPTY && b->slot[i].pair != pair) i = (i + 1) & (b->slots - 1);
    return &b->slot[i];
}

static bool grow(bpe *b, ses_err *e)
{
    size_t old_n = b->slots;
    slot *old = b->slot;
    b->slots = old_n ? 2 * old_n : 1 << 16;
    b->slot = ses_alloc_array(b->slots, sizeof *b->slot, e);
    if (!b->slot) {
        b->slot = old, b->slots = old_n;
        return false;
    }
    for (size_t i = 0; i < b->slots; i++) b->slot[i].pair = EMPTY;
    for (size_t i = 0; i < old_n; i++)
        if (old[i].pair != EMPTY) *find(b, old[i].pair) = old[i];
    ses_free(old);
    return true;
}

static bool word_list_put(word_list *p, uint32_t word, ses_err *e)
{
    if (p->n && p->word[p->n - 1] == word) return true;
    if (p->n == p->cap) {
        uint32_t cap = p->cap ? 2 * p->cap : 4;
        uint32_t *w = ses_realloc_array(p->word, cap, sizeof *w, e);
        if (!w) return false;
        p->word = w;
        p->cap = cap;
    }
    p->word[p->n++] = word;
    return true;
}

/* Change the count of a pair; if it grows, record the word. */
static bool change_count(bpe *b, int32_t left, int32_t right, int64_t by, uint32_t word, ses_err *e)
{
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    if (2 * b->used_slots >= b->slots && !grow(b, e)) return false;
    slot *s = find(b, pair);
    if (s->pair == EMPTY) {
        *s = (slot){ .pair = pair };
        b->used_slots++;
    }
    s->count += by;
    if (by < 0) return true;
    if (!s->listed) {
        if (!ses_array_reserve(&b->listed, &b->cap_listed, b->n_listed + 1, sizeof *b->listed, e))
            return false;
        b->listed[b->n_listed++] = pair;
        s->listed = true;
    }
    return word_list_put(&s->fresh, word, e);
}

/* ---- heap: highest count first, then lowest ids ---- */

static bool before(const entry *x, const entry *y)
{
    return x->count != y->count ? x->count > y->count : x->pair < y->pair;
}

static bool push(bpe *b, entry x, ses_err *e)
{
    if (b->n_heap == b->cap_heap) {
        size_t cap = b->cap_heap ? 2 * b->cap_heap : 1024;
        entry *h = ses_realloc_array(b->heap, cap, sizeof *h, e);
        if (!h) {
            ses_free(x.at.word);
            return false;
        }
        b->heap = h;
        b->cap_heap = cap;
    }
    size_t i = b->n_heap++;
    for (; i && before(&x, &b->heap[(i - 1) / 2]); i = (i - 1) / 2) b->heap[i] = b->heap[(i - 1) / 2];
    b->heap[i] = x;
    return true;
}

static entry pop(bpe *b)
{
    entry top = b->heap[0], last = b->heap[--b->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < b->n_heap; i = child) {
        if (child + 1 < b->n_heap && before(&b->heap[child + 1], &b->heap[child])) child++;
        if (!before(&b->heap[child], &last)) break;
        b->heap[i] = b->heap[child];
    }
    b->heap[i] = last;
    return top;
}

/* Insert pairs whose count grew, with their new words. */
static bool push_grown(bpe *b, ses_err *e)
{
    bool ok = true;
    for (size_t i = 0; i < b->n_listed; i++) {
        slot *s = find(b, b->listed[i]);
        word_list at = s->fresh;
        s->fresh = (word_list){ 0 };
        s->listed = false;
        if (ok && s->count > 0)
            ok = push(b, (entry){ s->pair, s->count, at }, e);
        else
            ses_free(at.word);
    }
    b->n_listed = 0;
    return ok;
}

/* ---- initial alphabet ---- */

static bool token_id(bpe *b, const char *p, size_t n, int32_t *id, ses_err *e)
{
    int64_t known;
    if (ses_strmap_find(&b->id, p, n, &known)) {
        *id = (int32_t)known;
        return true;
    }
    bool fresh;
    *id = (int32_t)b->out->n;
    if (!ses_trained_vocab_put(b->out, p, n, e)) return false;
    const ses_string *copy = &b->out->token[b->out->n - 1];
    return ses_strmap_insert(&b->id, copy->p, copy->n, *id, &fresh, e) != NULL;
}

typedef struct letter {
    uint32_t point;
    int64_t count;
} letter;

static int by_count(const void *a, const void *b)
{
    const letter *x = a, *y = b;
    if (x->count != y->count) return x->count > y->count ? -1 : 1;
    return x->point < y->point ? -1 : x->point > y->point;
}

static int by_point(const void *a, const void *b)
{
    const letter *x = a, *y = b;
    return x->point < y->point ? -1 : x->point > y->point;
}

enum { POINTS = 0x110000 };

/* The initial characters in order of code points. kept[point]: 1 if included. */
static bool build_alphabet(bpe *b, uint8_t *kept, ses_err *e)
{
    int64_t *count = ses_alloc_array(POINTS, sizeof *count, e);
    letter *list = count ? ses_alloc_array(POINTS, sizeof *list, e) : NULL;
    size_t n = 0;
    bool ok = list != NULL, bytes = b->o->type == SES_TOKENIZER_BPE && b->o->byte_level;
    for (size_t i = 0; ok && i < b->words->n; i++)
        for (size_t at = 0; at < b->words->word[i].n;) {
            uint32_t c;
            at += ses_utf8_next(b->words->word[i].p + at, &c);
            count[c] += b->words->word[i].count;
        }
    for (int i = 0; ok && bytes && i < 256; i++) count[ses_byte_char((uint8_t)i)] = INT64_MAX;
    for (uint32_t c = 0; ok && c < POINTS; c++)
        if (count[c]) list[n++] = (letter){ c, count[c] };
    if (ok && b->o->limit_alphabet && (int64_t)n > b->o->limit_alphabet) {
        qsort(list, n, sizeof *list, by_count);
        n = (size_t)b->o->limit_alphabet;
        qsort(list, n, sizeof *list, by_point);
    }
    for (size_t i = 0; ok && i < n; i++) {
        char text[4];
        int32_t id;
        kept[list[i].point] = 1;
        ok = token_id(b, text, ses_utf8_encode(list[i].point, text), &id, e);
    }
    ses_free(list);
    ses_free(count);
    return ok;
}

/* Word i as character ids; characters outside the alphabet are skipped. */
static bool to_symbols(bpe *b, size_t i, const uint8_t *kept, int32_t *to, ses_err *e)
{
    const ses_counted_word *w = &b->words->word[i];
    char text[16];
    memcpy(text, b->prefix, b->n_prefix);
    b->word[i].id = to;
    for (size_t at = 0; at < w->n;) {
        uint32_t c;
        bool first = at == 0;
        size_t len = ses_utf8_next(w->p + at, &c);
        if (kept[c]) {
            memcpy(text + b->n_prefix, w->p + at, len);
            if (!token_id(b, first ? w->p : text, first ? len : b->n_prefix + len, &to[b->word[i].n], e))
                return false;
            b->word[i].n++;
        }
        at += len;
    }
    return true;
}

static bool initialize(bpe *b, ses_err *e)
{
    size_t total = 0, at = 0, n = b->words->n;
    uint8_t *kept = ses_alloc_array(POINTS, 1, e);
    for (size_t i = 0; i < n; i++) total += b->words->word[i].n;
    b->word = ses_alloc_array(n, sizeof *b->word, e);
    b->all = b->word ? ses_alloc_array(total, sizeof *b->all, e) : NULL;
    bool ok = kept && b->all && grow(b, e) && build_alphabet(b, kept, e);
    for (size_t i = 0; ok && i < n; i++) {
        ok = to_symbols(b, i, kept, b->all + at, e);
        at += b->word[i].n;
        for (uint32_t j = 0; ok && j + 1 < b->word[i].n; j++)
            ok = change_count(b, b->word[i].id[j], b->word[i].id[j + 1], b->words->word[i].count, (uint32_t)i,
                              e);
    }
    ses_free(kept);
    return ok && push_grown(b, e);
}

/* ---- merging ---- */

/* Merge every `left right` in word w into `joined`, and update the counts of neighboring pairs. */
static bool merge_word(bpe *b, uint32_t w, int32_t left, int32_t right, int32_t joined, ses_err *e)
{
    symbols *s = &b->word[w];
    int64_t count = b->words->word[w].count;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++, n++) {
        if (s->id[i] != left || i + 1 == s->n || s->id[i + 1] != right) {
            s->id[n] = s->id[i];
            continue;
        }
        if (n && (!change_count(b, s->id[n - 1], left, -count, w, e) ||
                  !change_count(b, s->id[n - 1], joined, count, w, e)))
            return false;
        if (i + 2 < s->n && (!change_count(b, right, s->id[i + 2], -count, w, e) ||
                             !change_count(b, joined, s->id[i + 2], count, w, e)))
            return false;
        s->id[n] = joined;
        i++;
    }
    s->n = n;
    return true;
}

/* String of the merged token: the second part loses its prefix. */
static bool join(bpe *b, int32_t left, int32_t right, int32_t *id, ses_err *e)
{
    ses_string x = b->out->token[left], y = b->out->token[right];
    if (b->n_prefix && y.n >= b->n_prefix && !memcmp(y.p, b->prefix, b->n_prefix))
        y.p += b->n_prefix, y.n -= b->n_prefix;
    char *text = ses_alloc(x.n + y.n, e);
    if (!text) return false;
    memcpy(text, x.p, x.n);
    memcpy(text + x.n, y.p, y.n);
    bool ok = token_id(b, text, x.n + y.n, id, e);
    ses_free(text);
    return ok;
}

static bool merge_top(bpe *b, const entry *top, ses_err *e)
{
    int32_t left = (int32_t)(top->pair >> 32), right = (int32_t)(top->pair & UINT32_MAX), joined;
    if (!join(b, left, right, &joined, e) || !ses_trained_vocab_put_merge(b->out, left, right, e))
        return false;
    for (uint32_t i = 0; i < top->at.n; i++)
        if (!merge_word(b, top->at.word[i], left, right, joined, e)) return false;
    return push_grown(b, e);
}

static bool merge_all(bpe *b, ses_err *e)
{
    while ((int64_t)b->out->n < b->o->vocab_size && b->n_heap) {
        entry top = pop(b);
        int64_t now = find(b, top.pair)->count;
        if (top.count != now) {
            top.count = now;
            if (!push(b, top, e)) return false;
            continue;
        }
        if (top.count < 1 || top.count < b->o->min_frequency) {
            ses_free(top.at.word);
            break;
        }
        bool ok = merge_top(b, &top, e);
        ses_free(top.at.word);
        if (!ok || !ses_tokenizer_train_report(b->o, "merging", (int64_t)b->out->n, b->o->vocab_size, e))
            return false;
    }
    return true;
}

bool ses_train_bpe(const ses_tokenizer_train_options *o, const ses_counted_words *words,
                   ses_trained_vocab *out, ses_err *e)
{
    bpe b = { .o = o, .words = words, .out = out, .prefix = "" };
    if (o->type == SES_TOKENIZER_WORDPIECE) b.prefix = "##", b.n_prefix = 2;
    bool ok = true, fresh;
    for (size_t i = 0; ok && i < out->n; i++)
        ok = ses_strmap_insert(&b.id, out->token[i].p, out->token[i].n, (int64_t)i, &fresh, e) != NULL;
    ok = ok && initialize(&b, e) && merge_all(&b, e);
    for (size_t i = 0; i < b.n_heap; i++) ses_free(b.heap[i].at.word);
    for (size_t i = 0; b.slot && i < b.slots; i++)
        ses_free(b.slot[i].pair == EMPTY ? NULL : b.slot[i].fresh.word);
    ses_free(b.heap);
    ses_free(b.slot);
    ses_free(b.listed);
    ses_free(b.all);
    ses_free(b.word);
    ses_strmap_free(&b.id);
    return ok;
}
