/* Private copies of rows. */
#include "row_copies.h"

#include "base/alloc.h"

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

/* One row: the sum of the differences to the base, then the base. */
static void merge_row(const ses_row_copies *const *c, size_t n, int64_t row, float factor)
{
    int64_t cols = c[0]->cols;
    float *to = c[0]->base + row * cols;
    enum { PART = 64 };
    for (int64_t from = 0; from < cols; from += PART) {
        float sum[PART] = { 0 };
        int64_t part = cols - from < PART ? cols - from : PART;
        for (size_t k = 0; k < n; k++) {
            if (!c[k]->slot[row]) continue;
            const float *x = c[k]->data + (c[k]->slot[row] - 1) * cols + from;
            for (int64_t i = 0; i < part; i++) sum[i] += x[i] - to[from + i];
        }
        for (int64_t i = 0; i < part; i++) to[from + i] += factor * sum[i];
    }
}

void ses_row_copies_merge(const ses_row_copies *const *c, size_t n, int64_t begin, int64_t end)
{
    const double many = 192;
    for (int64_t row = begin; row < end; row++) {
        double copies = 0, uses = 0;
        for (size_t k = 0; k < n; k++)
            if (c[k]->slot[row]) copies++, uses += c[k]->uses[c[k]->slot[row] - 1];
        if (copies > 0)
            merge_row(c, n, row, (float)(1 / (1 + (copies - 1) * uses * uses / (uses * uses + many * many))));
    }
}
