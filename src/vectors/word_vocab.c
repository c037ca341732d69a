/* Vocabulary of a text. */
#include "word_vocab.h"

#include "base/alloc.h"
#include "base/sort.h"

int32_t ses_word_vocab_count(ses_word_vocab *v, const char *s, size_t n, ses_err *e)
{
    int64_t id;
    bool fresh;
    v->tokens++;
    if (ses_strmap_find(&v->index, s, n, &id)) {
        v->word[id].count++;
        return (int32_t)id;
    }
    if (v->n == INT32_MAX)
        return ses_fail(e, SES_EUNSUPPORTED, "more than %d different words", INT32_MAX), -1;
    char *copy = ses_arena_strndup(&v->text, s, n, e);
    if (!copy || !ses_array_reserve(&v->word, &v->capacity, v->n + 1, sizeof *v->word, e) ||
        !ses_strmap_insert(&v->index, copy, n, (int64_t)v->n, &fresh, e))
        return -1;
    v->word[v->n] = (ses_vocab_word){ copy, (uint32_t)n, 1 };
    return (int32_t)v->n++;
}

typedef struct entry {
    ses_vocab_word word;
    int32_t id;
} entry;

static int by_falling_count(const void *a, const void *b)
{
    int64_t x = ((const entry *)a)->word.count, y = ((const entry *)b)->word.count;
    return (x < y) - (x > y);
}

/* Copies the words into fresh memory: the dropped ones are usually most of them. */
static bool store(ses_word_vocab *v, const entry *kept, size_t n, ses_err *e)
{
    ses_word_vocab old = *v;
    bool ok = true, fresh;
    *v = (ses_word_vocab){ .tokens = old.tokens, .capacity = n };
    ok = (v->word = ses_alloc_array(n, sizeof *v->word, e)) && ses_strmap_reserve(&v->index, n, e);
    for (; ok && v->n < n; v->n++) {
        ses_vocab_word w = kept[v->n].word;
        ok = (w.text = ses_arena_strndup(&v->text, w.text, w.len, e)) &&
             ses_strmap_insert(&v->index, w.text, w.len, (int64_t)v->n, &fresh, e);
        v->word[v->n] = w;
        v->kept_tokens += w.count;
    }
    ses_word_vocab_free(&old);
    return ok;
}

bool ses_word_vocab_select(ses_word_vocab *v, int64_t min_count, size_t max_words, int32_t *new_id,
                           ses_err *e)
{
    size_t kept = 0, all = v->n;
    bool ok = false;
    entry *list = ses_alloc_array(all ? all : 1, sizeof *list, e);
    if (!list) return false;
    for (size_t i = 0; i < all; i++) {
        if (new_id) new_id[i] = -1;
        if (v->word[i].count >= min_count) list[kept++] = (entry){ v->word[i], (int32_t)i };
    }
    if (!ses_stable_sort(list, kept, sizeof *list, by_falling_count, e)) goto fail;
    if (!kept) {
        ses_fail(e, SES_EARG, "none of %zu different words occurs at least %lld times: lower min-count", all,
                 (long long)min_count);
        goto fail;
    }
    if (max_words && kept > max_words) kept = max_words;
    for (size_t i = 0; new_id && i < kept; i++) new_id[list[i].id] = (int32_t)i;
    ok = store(v, list, kept, e);
fail:
    ses_free(list);
    return ok;
}

int32_t ses_word_vocab_find(const ses_word_vocab *v, const char *s, size_t n)
{
    int64_t id;
    return ses_strmap_find(&v->index, s, n, &id) ? (int32_t)id : -1;
}

void ses_word_vocab_free(ses_word_vocab *v)
{
    ses_free(v->word);
    ses_arena_free(&v->text);
    ses_strmap_free(&v->index);
    *v = (ses_word_vocab){ 0 };
}
