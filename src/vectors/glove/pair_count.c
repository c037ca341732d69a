/* Hash table and radix sort of pair counts. */
#include "pair_count.h"

#include "base/alloc.h"

enum { LEAST_SLOTS = 1 << 8, FIRST_SLOTS = 1 << 16, DIGIT = 8, FEW = 48 };

bool ses_pair_table_init(ses_pair_table *t, size_t bytes, ses_err *e)
{
    *t = (ses_pair_table){ .max_slots = LEAST_SLOTS };
    /* The old and the new table exist while it grows: 1.5 times its final size. */
    while (t->max_slots < (size_t)1 << 31 && bytes / 3 >= t->max_slots * sizeof *t->slot) t->max_slots *= 2;
    t->slots = t->max_slots < FIRST_SLOTS ? t->max_slots : FIRST_SLOTS;
    return (t->slot = ses_alloc_huge(t->slots, sizeof *t->slot, e)) != NULL;
}

void ses_pair_table_free(ses_pair_table *t)
{
    ses_free(t->slot);
    *t = (ses_pair_table){ 0 };
}

bool ses_pair_table_reserve(ses_pair_table *t, size_t n, bool *full, ses_err *e)
{
    *full = false;
    while (t->used + n > t->slots / 2) {
        if (t->slots == t->max_slots) return *full = true;
        ses_pair_table larger = { .slots = 2 * t->slots, .max_slots = t->max_slots };
        if (!(larger.slot = ses_alloc_huge(larger.slots, sizeof *larger.slot, e))) return false;
        for (const ses_pair_count *p = t->slot; p < t->slot + t->slots; p++)
            if (p->key) ses_pair_table_add(&larger, p->key, ses_pair_slot(&larger, p->key), p->sum);
        ses_free(t->slot);
        *t = larger;
    }
    return true;
}

static void insertion_sort(ses_pair_count *p, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        ses_pair_count x = p[i];
        size_t k = i;
        for (; k && p[k - 1].key > x.key; k--) p[k] = p[k - 1];
        p[k] = x;
    }
}

/* Distribution in place by the digit below `bits`, then the same for each of its values. */
void ses_pair_sort(ses_pair_count *p, size_t n, int bits)
{
    if (n <= FEW || bits <= 0) {
        insertion_sort(p, bits <= 0 ? 0 : n);
        return;
    }
    int shift = bits > DIGIT ? bits - DIGIT : 0;
    size_t next[1 << DIGIT] = { 0 }, end[1 << DIGIT], sum = 0;
    uint64_t mask = (1 << DIGIT) - 1;
    for (size_t i = 0; i < n; i++) next[p[i].key >> shift & mask]++;
    for (size_t d = 0; d <= mask; d++) {
        size_t count = next[d];
        next[d] = sum;
        end[d] = sum += count;
    }
    for (size_t d = 0; d <= mask; d++)
        while (next[d] < end[d]) {
            ses_pair_count x = p[next[d]];
            for (size_t to; (to = x.key >> shift & mask) != d;) {
                ses_pair_count other = p[next[to]];
                p[next[to]++] = x;
                x = other;
            }
            p[next[d]++] = x;
        }
    for (size_t d = 0; d <= mask; d++)
        ses_pair_sort(p + (d ? end[d - 1] : 0), end[d] - (d ? end[d - 1] : 0), shift);
}

size_t ses_pair_unite(ses_pair_count *p, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (kept && p[kept - 1].key == p[i].key)
            p[kept - 1].sum += p[i].sum;
        else
            p[kept++] = p[i];
    return kept;
}
