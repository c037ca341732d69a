/* Sorts byte strings with a radix sort over eight bytes at a time. */
#include "sort_keys.h"

#include "base/alloc.h"

#include <string.h>

/* Eight bytes of a key as a number. Most keys differ within them, so no string is touched. Keys with equal
 * parts are sorted again by the next eight bytes. */
typedef struct item {
    uint64_t part; /* bytes [depth, depth + 8), zero-padded */
    uint32_t index;
    uint32_t rest; /* bytes of the key after depth, 8 at most, 9 for more: orders "a" before "a\0" */
} item;

typedef struct range {
    uint32_t begin, end;
    size_t depth;
} range;

/* The first n < 8 bytes as the upper bytes of a number. */
static uint64_t load_partial(const unsigned char *p, size_t n)
{
    uint64_t x = 0;
    for (size_t i = 0; i < n; i++) x |= (uint64_t)p[i] << (56 - 8 * i);
    return x;
}

static void load(item *a, const ses_string *key, size_t depth)
{
    const ses_string *s = &key[a->index];
    size_t n = s->n > depth ? s->n - depth : 0;
    const unsigned char *p = (const unsigned char *)s->p;
    if (n) p += depth; /* a skipped key has p NULL and n 0 */
    a->rest = n > 8 ? 9 : (uint32_t)n;
    if (n < 8) {
        a->part = load_partial(p, n);
        return;
    }
    a->part = (uint64_t)p[0] << 56 | (uint64_t)p[1] << 48 | (uint64_t)p[2] << 40 | (uint64_t)p[3] << 32 |
              (uint64_t)p[4] << 24 | (uint64_t)p[5] << 16 | (uint64_t)p[6] << 8 | p[7];
}

static bool before(const item *a, const item *b)
{
    return a->part != b->part ? a->part < b->part : a->rest < b->rest;
}

static void sort_few(item *a, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        item x = a[i];
        size_t k = i;
        for (; k && before(&x, &a[k - 1]); k--) a[k] = a[k - 1];
        a[k] = x;
    }
}

/* One radix pass by the byte at `shift` of part, or by rest if shift < 0. Returns true if nothing moved. */
static bool pass(const item *from, item *to, size_t n, int shift)
{
    uint32_t count[256] = { 0 }, sum = 0;
    for (size_t i = 0; i < n; i++) count[shift < 0 ? from[i].rest : from[i].part >> shift & 255]++;
    uint32_t first = shift < 0 ? from[0].rest : (uint32_t)(from[0].part >> shift & 255);
    if (count[first] == n) return true;
    for (size_t b = 0; b < 256; b++) {
        uint32_t c = count[b];
        count[b] = sum;
        sum += c;
    }
    for (size_t i = 0; i < n; i++)
        to[count[shift < 0 ? from[i].rest : from[i].part >> shift & 255]++] = from[i];
    return false;
}

static void sort_items(item *a, item *buffer, size_t n)
{
    if (n <= 48) {
        sort_few(a, n);
        return;
    }
    item *from = a, *to = buffer;
    for (int shift = -8; shift < 64; shift += 8)
        if (!pass(from, to, n, shift)) {
            item *swap = from;
            from = to, to = swap;
        }
    if (from != a) memcpy(a, from, n * sizeof *a);
}

uint32_t *ses_sort_keys(const ses_string *key, size_t n, ses_err *e)
{
    item *a = ses_alloc_array(n + 1, sizeof *a, e), *buffer = ses_alloc_array(n + 1, sizeof *buffer, e);
    range *todo = ses_alloc_array(n + 1, sizeof *todo, e); /* disjoint ranges of at least two keys */
    uint32_t *order = ses_alloc_array(n + 1, sizeof *order, e);
    bool ok = a && buffer && todo && order;
    size_t n_todo = 0;
    for (size_t i = 0; ok && i < n; i++) a[i].index = (uint32_t)i;
    if (ok && n) todo[n_todo++] = (range){ 0, (uint32_t)n, 0 };
    while (ok && n_todo) {
        range r = todo[--n_todo];
        for (uint32_t i = r.begin; i < r.end; i++) load(&a[i], key, r.depth);
        sort_items(a + r.begin, buffer, r.end - r.begin);
        for (uint32_t i = r.begin, k; i < r.end; i = k) {
            for (k = i + 1; k < r.end && a[k].part == a[i].part && a[k].rest == a[i].rest;) k++;
            if (k - i > 1 && a[i].rest == 9) todo[n_todo++] = (range){ i, k, r.depth + 8 };
        }
    }
    for (size_t i = 0; ok && i < n; i++) order[i] = a[i].index;
    ses_free(a);
    ses_free(buffer);
    ses_free(todo);
    if (!ok) ses_free(order);
    return ok ? order : NULL;
}
