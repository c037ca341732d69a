/* Initial candidates for a Unigram vocabulary: every character, and every substring that occurs at least
 * twice with different continuations, i.e. the inner nodes of a suffix tree, read from a sorted suffix
 * array. Suffixes are sorted only up to the maximum piece length. */
#include "unigram_seed.h"

#include "base/alloc.h"
#include "base/unicode/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 16, STACK = LONGEST + 2 };

typedef struct seed {
    const uint32_t *text; /* words concatenated, each followed by 0 */
    uint32_t *suffix;
    size_t n;
} seed;

/* Length of the common prefix of two suffixes, up to one more than the maximum piece length. The end of a
 * word counts as a character, so that a substring that always ends a word is not a separate candidate. */
static uint32_t common_prefix(const uint32_t *a, const uint32_t *b)
{
    uint32_t n = 0;
    while (n <= LONGEST && a[n] == b[n])
        if (!a[n++]) break;
    return n;
}

/* Three-way radix quicksort by characters, most significant first, with an explicit stack. */
typedef struct range {
    size_t begin, end;
    uint32_t depth;
} range;

static bool sort(seed *s, ses_err *e)
{
    size_t cap = 1024, n = 0;
    range *stack = ses_alloc_array(cap, sizeof *stack, e);
    if (!stack) return false;
    stack[n++] = (range){ 0, s->n, 0 };
    while (n) {
        range r = stack[--n];
        if (r.end - r.begin < 2 || r.depth > LONGEST) continue;
        uint32_t *x = s->suffix, pivot = s->text[x[r.begin + (r.end - r.begin) / 2] + r.depth];
        size_t low = r.begin, i = r.begin, high = r.end;
        while (i < high) {
            uint32_t c = s->text[x[i] + r.depth], swap = x[i];
            if (c < pivot)
                x[i++] = x[low], x[low++] = swap;
            else if (c > pivot)
                x[i] = x[--high], x[high] = swap;
            else
                i++;
        }
        if (n + 3 > cap) {
            range *grown = ses_realloc_array(stack, 2 * cap, sizeof *stack, e);
            if (!grown) {
                ses_free(stack);
                return false;
            }
            stack = grown;
            cap *= 2;
        }
        stack[n++] = (range){ r.begin, low, r.depth };
        stack[n++] = (range){ high, r.end, r.depth };
        if (pivot) stack[n++] = (range){ low, high, r.depth + 1 }; /* a word end terminates the comparison */
    }
    ses_free(stack);
    return true;
}

typedef struct node { /* suffixes from `begin` on share `depth` characters */
    uint32_t depth;
    size_t begin;
} node;

typedef struct found {
    ses_seed_candidate *list;
    size_t n, cap;
} found;

static bool put(found *f, const seed *s, node k, size_t times, ses_err *e)
{
    if (!ses_array_reserve(&f->list, &f->cap, f->n + 1, sizeof *f->list, e)) return false;
    f->list[f->n++] =
        (ses_seed_candidate){ s->suffix[k.begin], k.depth, (uint32_t)k.begin, (double)times * k.depth };
    return true;
}

/* Enumerate the intervals of suffixes with a common prefix, using a stack of depths. */
static bool enumerate_intervals(seed *s, found *f, ses_err *e)
{
    node stack[STACK + 1] = { { 0, 0 } };
    int top = 0;
    for (size_t i = 1; i <= s->n; i++) {
        uint32_t depth = i < s->n ? common_prefix(s->text + s->suffix[i - 1], s->text + s->suffix[i]) : 0;
        size_t begin = i - 1;
        while (stack[top].depth > depth) {
            node k = stack[top--];
            begin = k.begin;
            bool whole = k.depth > 1 && k.depth <= LONGEST && s->text[s->suffix[k.begin] + k.depth - 1];
            if (whole && !put(f, s, k, i - k.begin, e)) return false;
        }
        if (stack[top].depth < depth) stack[++top] = (node){ depth, begin };
    }
    return true;
}

bool ses_unigram_seed(const ses_counted_words *words, uint32_t **text, size_t *n_text,
                      ses_seed_candidate **list, size_t *n, ses_err *e)
{
    size_t total = 0, at = 0, suffixes = 0;
    found f = { 0 };
    for (size_t i = 0; i < words->n; i++) total += words->word[i].n + 1;
    if (total > UINT32_MAX / 2)
        return ses_fail(e, SES_ENOMEM, "%zu bytes of distinct words exceed the limit", total);
    uint32_t *t = ses_alloc_array(total + LONGEST + 2, sizeof *t, e);
    seed s = { .text = t, .suffix = t ? ses_alloc_array(total, sizeof *s.suffix, e) : NULL };
    bool ok = s.suffix != NULL;
    for (size_t i = 0; ok && i < words->n; i++) {
        for (size_t b = 0; b < words->word[i].n; suffixes++) {
            s.suffix[suffixes] = (uint32_t)at;
            b += ses_utf8_next(words->word[i].p + b, &t[at++]);
        }
        t[at++] = 0;
    }
    s.n = suffixes;
    ok = ok && sort(&s, e) && enumerate_intervals(&s, &f, e);
    ses_free(s.suffix);
    *text = t;
    *n_text = at;
    *list = f.list;
    *n = f.n;
    return ok;
}
