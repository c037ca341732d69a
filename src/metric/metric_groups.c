/* Sorts the examples of an evaluation by their groups. */
#include "metric_groups.h"

#include "base/alloc.h"

#include <stdlib.h>

typedef struct member {
    int64_t group;
    size_t at;
} member;

static int by_group(const void *a, const void *b)
{
    const member *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

size_t *ses_examples_by_group(const ses_evaluation *v, ses_err *e)
{
    member *m = ses_alloc_array(v->n, sizeof *m, e);
    size_t *order = m ? ses_alloc_array(v->n, sizeof *order, e) : NULL;
    for (size_t i = 0; order && i < v->n; i++) m[i] = (member){ v->groups[i], i };
    if (order) qsort(m, v->n, sizeof *m, by_group);
    for (size_t i = 0; order && i < v->n; i++) order[i] = m[i].at;
    ses_free(m);
    return order;
}

size_t ses_group_end(const ses_evaluation *v, const size_t *order, size_t from)
{
    size_t to = from + 1;
    while (to < v->n && v->groups[order[to]] == v->groups[order[from]]) to++;
    return to;
}
