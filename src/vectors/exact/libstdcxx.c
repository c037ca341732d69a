/* Introsort as GNU's C++ library implements it, its random numbers and hash maps. */
#include "libstdcxx.h"

#include "base/alloc.h"

#include <math.h>

enum { SMALL = 16 };

static bool before(const ses_sort_item *a, const ses_sort_item *b)
{
    return a->major != b->major ? a->major < b->major : a->minor > b->minor;
}

static void swap(ses_sort_item *a, ses_sort_item *b)
{
    ses_sort_item t = *a;
    *a = *b;
    *b = t;
}

/* ---- heap sort, after too many unbalanced partitions ---- */

static void sift(ses_sort_item *a, size_t hole, size_t n, ses_sort_item value)
{
    size_t top = hole, child = hole;
    while (child < (n - 1) / 2) {
        child = 2 * (child + 1);
        if (before(&a[child], &a[child - 1])) child--;
        a[hole] = a[child];
        hole = child;
    }
    if (n % 2 == 0 && child == (n - 2) / 2) {
        child = 2 * (child + 1);
        a[hole] = a[child - 1];
        hole = child - 1;
    }
    while (hole > top && before(&a[(hole - 1) / 2], &value)) {
        a[hole] = a[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    a[hole] = value;
}

static void heap_sort(ses_sort_item *a, size_t n)
{
    for (size_t parent = (n - 2) / 2 + 1; parent-- > 0;) sift(a, parent, n, a[parent]);
    for (size_t last = n - 1; last > 0; last--) {
        ses_sort_item value = a[last];
        a[last] = a[0];
        sift(a, 0, last, value);
    }
}

/* ---- partitions ---- */

static void move_median(ses_sort_item *result, ses_sort_item *a, ses_sort_item *b, ses_sort_item *c)
{
    if (before(a, b))
        swap(result, before(b, c) ? b : before(a, c) ? c : a);
    else
        swap(result, before(a, c) ? a : before(b, c) ? c : b);
}

static ses_sort_item *partition(ses_sort_item *first, ses_sort_item *last)
{
    ses_sort_item *pivot = first;
    move_median(first, first + 1, first + (last - first) / 2, last - 1);
    for (first++;; first++) {
        while (before(first, pivot)) first++;
        last--;
        while (before(pivot, last)) last--;
        if (first >= last) return first;
        swap(first, last);
    }
}

static void introsort(ses_sort_item *first, ses_sort_item *last, int depth)
{
    while (last - first > SMALL) {
        if (!depth--) {
            heap_sort(first, (size_t)(last - first));
            return;
        }
        ses_sort_item *middle = partition(first, last);
        introsort(middle, last, depth);
        last = middle;
    }
}

static void insert(ses_sort_item *at) /* an item before it, at least, is not larger */
{
    ses_sort_item value = *at;
    for (; before(&value, at - 1); at--) *at = at[-1];
    *at = value;
}

void ses_libstdcxx_sort(ses_sort_item *item, size_t n)
{
    int depth = 0;
    if (n < 2) return;
    for (size_t i = n; i > 1; i /= 2) depth += 2;
    introsort(item, item + n, depth);
    for (size_t i = 1; i < n; i++) {
        if (i < SMALL && before(&item[i], &item[0])) {
            ses_sort_item value = item[i];
            for (size_t k = i; k > 0; k--) item[k] = item[k - 1];
            item[0] = value;
        } else {
            insert(&item[i]);
        }
    }
}

/* ---- random numbers ---- */

#define MODULUS 2147483647u

ses_minstd ses_minstd_of(uint64_t seed)
{
    return (ses_minstd){ seed % MODULUS ? (uint32_t)(seed % MODULUS) : 1 };
}

static uint32_t next(ses_minstd *g) /* from 0: the generator's least number is subtracted */
{
    g->x = (uint32_t)((uint64_t)g->x * 48271 % MODULUS);
    return g->x - 1;
}

uint64_t ses_minstd_upto(ses_minstd *g, uint64_t most)
{
    uint64_t range = MODULUS - 2, scale = range / (most + 1), past = (most + 1) * scale, x;
    do x = next(g);
    while (x >= past);
    return x / scale;
}

double ses_minstd_real(ses_minstd *g, double low, double high)
{
    const double range = MODULUS - 1; /* count of its numbers */
    double sum = next(g);
    sum += next(g) * range;
    double x = sum / (range * range);
    if (x >= 1) x = nextafter(1, 0);
    return x * (high - low) + low;
}

static void swap_numbers(int32_t *a, int32_t *b)
{
    int32_t t = *a;
    *a = *b;
    *b = t;
}

void ses_libstdcxx_shuffle(int32_t *x, size_t n, ses_minstd *g)
{
    const uint64_t range = MODULUS - 2;
    size_t i = 1;
    if (n < 2) return;
    if (range / n < n) {
        for (; i < n; i++) swap_numbers(&x[i], &x[ses_minstd_upto(g, i)]);
        return;
    }
    if (n % 2 == 0) { /* the others are drawn in pairs */
        swap_numbers(&x[1], &x[ses_minstd_upto(g, 1)]);
        i = 2;
    }
    for (; i < n; i += 2) {
        uint64_t two = ses_minstd_upto(g, (i + 1) * (i + 2) - 1);
        swap_numbers(&x[i], &x[two / (i + 2)]);
        swap_numbers(&x[i + 1], &x[two % (i + 2)]);
    }
}

/* ---- hash map: one list of all nodes; a bucket points to the node before its first one ---- */

enum { NONE = -1, HEAD = -2 };

typedef struct hash_map {
    const int32_t *key;
    size_t n_slots;
    int64_t *next, *slot; /* next[i]: after node i; slot: node before the first, HEAD: the list's head */
    int64_t first;
} hash_map;

static int64_t *next_of(hash_map *m, int64_t node) { return node == HEAD ? &m->first : &m->next[node]; }

static void link_node(hash_map *m, int64_t node)
{
    size_t at = (size_t)m->key[node] % m->n_slots;
    if (m->slot[at] != NONE) {
        int64_t *before = next_of(m, m->slot[at]);
        m->next[node] = *before;
        *before = node;
        return;
    }
    m->next[node] = m->first;
    m->first = node;
    if (m->next[node] != NONE) m->slot[(size_t)m->key[m->next[node]] % m->n_slots] = node;
    m->slot[at] = HEAD;
}

static bool resize(hash_map *m, size_t n_slots, ses_err *e)
{
    int64_t *slot = ses_alloc_array(n_slots, sizeof *slot, e), node = m->first;
    if (!slot) return false;
    ses_free(m->slot);
    m->slot = slot;
    m->n_slots = n_slots;
    m->first = NONE;
    for (size_t i = 0; i < n_slots; i++) slot[i] = NONE;
    while (node != NONE) {
        int64_t next_node = m->next[node];
        link_node(m, node);
        node = next_node;
    }
    return true;
}

bool ses_libstdcxx_map_order(const int32_t *key, size_t n, size_t *order, ses_err *e)
{
    static const uint32_t sizes[] = { 13,        29,        59,        127,      257,       541,
                                      1109,      2357,      5087,      10273,    20753,     42043,
                                      85229,     172933,    351061,    712697,   1447153,   2938679,
                                      5967347,   12117689,  24607243,  49969847, 101473717, 206062531,
                                      418451333, 849749479, 1725587117 };
    hash_map m = { .key = key, .first = NONE };
    size_t size = 0;
    m.next = ses_alloc_array(n, sizeof *m.next, e);
    bool ok = m.next;
    for (size_t i = 0; ok && i < n; i++) {
        if (i + 1 > m.n_slots)
            ok = size < SES_LEN(sizes) ? resize(&m, sizes[size++], e)
                                       : ses_fail(e, SES_EUNSUPPORTED, "too many keys in a hash map");
        if (ok) link_node(&m, (int64_t)i);
    }
    for (size_t i = 0; ok && i < n; i++, m.first = m.next[m.first]) order[i] = (size_t)m.first;
    ses_free(m.next);
    ses_free(m.slot);
    return ok;
}
