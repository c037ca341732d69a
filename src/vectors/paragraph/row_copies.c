/* Private copies of rows. */
#include "row_copies.h"

#include "base/alloc.h"
#include "kernel/word_draws.h"

#include <string.h>

bool ses_row_copies_init(ses_row_copies *c, float *base, int64_t rows, int64_t cols, ses_err *e)
{
    *c = (ses_row_copies){ .base = base, .rows = rows, .cols = cols };
    return (c->slot = ses_alloc_array((size_t)rows, sizeof *c->slot, e)) != NULL;
}

void ses_row_copies_free(ses_row_copies *c)
{
    ses_free(c->slot);
    ses_free(c->row);
    ses_free(c->uses);
    ses_free(c->data);
    *c = (ses_row_copies){ 0 };
}

bool ses_row_copies_reserve(ses_row_copies *c, size_t more, ses_err *e)
{
    size_t n = c->n + more;
    return ses_array_reserve(&c->row, &c->row_capacity, n, sizeof *c->row, e) &&
           ses_array_reserve(&c->uses, &c->uses_capacity, n, sizeof *c->uses, e) &&
           ses_array_reserve(&c->data, &c->data_capacity, n * (size_t)c->cols, sizeof *c->data, e);
}

float *ses_row_copy(ses_row_copies *c, int32_t row)
{
    size_t cols = (size_t)c->cols;
    if (!c->slot[row]) {
        memcpy(c->data + c->n * cols, c->base + (size_t)row * cols, cols * sizeof *c->data);
        c->uses[c->n] = 0;
        c->row[c->n++] = row;
        c->slot[row] = (int32_t)c->n;
    }
    size_t i = (size_t)(c->slot[row] - 1);
    c->uses[i]++;
    return c->data + i * cols;
}

void ses_row_copies_drop(ses_row_copies *c)
{
    for (size_t i = 0; i < c->n; i++) c->slot[c->row[i]] = 0;
    c->n = 0;
}

void ses_row_copies_merge(const ses_row_copies *const *c, size_t n, int64_t part, int64_t parts, float step,
                          const ses_kernels *k)
{
    const float *from[SES_ROW_COPIES_MAX];
    int64_t cols = c[0]->cols;
    for (size_t first = 0; first < n; first++)
        for (size_t i = 0; i < c[first]->n; i++) {
            int32_t row = c[first]->row[i];
            int64_t copies = 0, uses = 0;
            if ((row & (parts - 1)) != part) continue;
            size_t s = 0;
            while (!c[s]->slot[row]) s++;
            if (s < first) continue; /* merged already */
            for (; s < n; s++) {
                if (!c[s]->slot[row]) continue;
                int32_t at = c[s]->slot[row] - 1;
                from[copies++] = c[s]->data + at * cols;
                uses += c[s]->uses[at];
            }
            k->merge_rows(c[0]->base + row * cols, from, copies, ses_word_scale(step, uses, copies), cols);
        }
}
