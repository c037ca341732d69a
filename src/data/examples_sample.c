/* Random subsets: every example gets a random number from (seed, its index); the examples of each class with
 * the least numbers are chosen. */
#include "examples_sample.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "examples_impl.h"

#include <stdlib.h>
#include <string.h>

enum { SITE = 0x73616d70 };

/* An example as a member of a class. */
typedef struct member {
    int32_t class;
    uint32_t key;
    size_t row, rank, of; /* rank among the `of` members of its class */
} member;

typedef struct members {
    member *item;
    size_t n, cap;
    uint64_t seed;
} members;

static int by_row(const member *x, const member *y)
{
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static int by_class(const void *a, const void *b)
{
    const member *x = a, *y = b;
    return x->class != y->class ? (x->class < y->class ? -1 : 1) : by_row(x, y);
}

/* Orders by (rank + 1/2) / of, the part of the class up to the example: any prefix has the classes in
 * proportion. */
static int by_part(const void *a, const void *b)
{
    const member *x = a, *y = b;
    uint64_t p = (2 * (uint64_t)x->rank + 1) * y->of, q = (2 * (uint64_t)y->rank + 1) * x->of;
    return p != q ? (p < q ? -1 : 1) : by_row(x, y);
}

static bool add(members *m, size_t row, int32_t class, ses_err *e)
{
    if (!ses_array_reserve(&m->item, &m->cap, m->n + 1, sizeof *m->item, e)) return false;
    uint32_t key = ses_rand32((ses_rng_key){ m->seed, 0, SITE }, row);
    m->item[m->n++] = (member){ .class = class, .key = key, .row = row };
    return true;
}

/* ---- classes ---- */

/* The entity type of a tag, "PER" of "B-PER"; the whole tag without a prefix; NULL: no entity. */
static const char *type_of(const char *tag)
{
    if (!strcmp(tag, "O")) return NULL;
    return *tag && strchr("BIESLU", *tag) && tag[1] == '-' ? tag + 2 : tag;
}

/* The class of a label: the first label of the same entity type; -1: none. */
static int32_t class_of(const ses_examples *d, int32_t label)
{
    if (d->kind != SES_DATA_TAG || label < 0) return label;
    const char *type = type_of(d->name[label]), *other;
    for (int32_t i = 0; type && i < label; i++)
        if ((other = type_of(d->name[i])) && !strcmp(type, other)) return i;
    return type ? label : -1;
}

static const char *class_name(const ses_examples *d, int32_t class)
{
    return d->kind == SES_DATA_TAG ? type_of(d->name[class]) : d->name[class];
}

/* Adds a row once for each class among its labels. */
static bool add_labels(members *m, const ses_examples *d, size_t row, const int32_t *class, bool *seen,
                       ses_err *e)
{
    const ses_labeled_example *x = &d->item[row];
    bool ok = true;
    for (size_t k = 0; ok && k < x->n_labels; k++) {
        int32_t c = x->labels[k] < 0 ? -1 : class[x->labels[k]];
        if (c < 0 || seen[c]) continue;
        seen[c] = true;
        ok = add(m, row, c, e);
    }
    for (size_t k = 0; k < x->n_labels; k++)
        if (x->labels[k] >= 0 && class[x->labels[k]] >= 0) seen[class[x->labels[k]]] = false;
    return ok;
}

static bool collect_classes(members *m, const ses_examples *d, const int32_t *class, ses_err *e)
{
    bool *seen = ses_alloc_array(d->n_labels + 1, sizeof *seen, e), ok = seen != NULL;
    for (size_t i = 0; ok && i < d->n; i++)
        ok = d->kind == SES_DATA_CLASSIFY ? d->item[i].label < 0 || add(m, i, d->item[i].label, e)
                                          : add_labels(m, d, i, class, seen, e);
    ses_free(seen);
    return ok;
}

/* Sorts the members by class and numbers the members of each class. */
static void rank(members *m)
{
    if (m->n) qsort(m->item, m->n, sizeof *m->item, by_class);
    for (size_t i = 0, end; i < m->n; i = end) {
        for (end = i; end < m->n && m->item[end].class == m->item[i].class;) end++;
        for (size_t k = i; k < end; k++) m->item[k].rank = k - i, m->item[k].of = end - i;
    }
}

/* ---- choice ---- */

static bool fail_few(const ses_examples *d, int64_t shots, int32_t class, size_t n, ses_err *e)
{
    const char *name = class_name(d, class);
    return ses_fail(
        e, SES_EARG,
        "shots %lld: %s \"%s\" has %zu %s, the fewest; ask for at most %zu, or for a total number "
        "(train-size)",
        (long long)shots, d->kind == SES_DATA_TAG ? "entity type" : "class",
        ses_quoted_of(name, strlen(name)).s, n, d->kind == SES_DATA_TAG ? "sentences" : "examples", n);
}

/* Every class has enough members; the message names the smallest one. */
static bool check_shots(const members *m, const ses_examples *d, const int32_t *class, int64_t shots,
                        ses_err *e)
{
    size_t *count = ses_alloc_array(d->n_labels + 1, sizeof *count, e);
    int32_t least = -1;
    if (!count) return false;
    for (size_t i = 0; i < m->n; i++) count[m->item[i].class]++;
    for (int32_t i = 0; (size_t)i < d->n_labels; i++)
        if (class[i] == i && (least < 0 || count[i] < count[least])) least = i;
    bool ok = least >= 0 || ses_fail(e, SES_EARG, "shots %lld: the data have no classes", (long long)shots);
    if (ok && count[least] < (size_t)shots) ok = fail_few(d, shots, least, count[least], e);
    ses_free(count);
    return ok;
}

static bool choose_shots(members *m, const ses_examples *d, int64_t shots, bool *chosen, ses_err *e)
{
    if (d->kind != SES_DATA_CLASSIFY && d->kind != SES_DATA_MULTI && d->kind != SES_DATA_TAG)
        return ses_fail(e, SES_EARG,
                        "shots counts examples of each class: data of %s have no classes; set train-size",
                        ses_data_kind_name(d->kind));
    int32_t *class = ses_alloc_array(d->n_labels + 1, sizeof *class, e);
    if (!class) return false;
    for (int32_t i = 0; (size_t)i < d->n_labels; i++) class[i] = class_of(d, i);
    bool ok = collect_classes(m, d, class, e) && check_shots(m, d, class, shots, e);
    if (ok) rank(m);
    for (size_t i = 0; ok && i < m->n; i++)
        if (m->item[i].rank < (size_t)shots) chosen[m->item[i].row] = true;
    ses_free(class);
    return ok;
}

static bool choose_size(members *m, const ses_examples *d, int64_t size, bool *chosen, ses_err *e)
{
    bool ok = true;
    if ((size_t)size > d->n)
        return ses_fail(e, SES_EARG, "train-size %lld: the data have %zu examples; ask for at most as many",
                        (long long)size, d->n);
    for (size_t i = 0; ok && i < d->n; i++)
        ok = add(m, i, d->kind == SES_DATA_CLASSIFY ? d->item[i].label : 0, e);
    if (!ok) return false;
    rank(m);
    qsort(m->item, m->n, sizeof *m->item, by_part);
    for (size_t i = 0; i < (size_t)size; i++) chosen[m->item[i].row] = true;
    return true;
}

/* ---- the subset ---- */

/* Labels are copied: they may be renumbered. */
static bool add_example(ses_examples *out, ses_labeled_example x, ses_err *e)
{
    if (x.labels) {
        int32_t *labels = ses_arena_array(&out->arena, x.n_labels + 1, sizeof *labels, e);
        if (!labels) return false;
        memcpy(labels, x.labels, x.n_labels * sizeof *labels);
        x.labels = labels;
    }
    return ses_examples_add(out, &x, e);
}

static ses_examples *copy(const ses_examples *d, const bool *chosen, ses_err *e)
{
    ses_data_spec spec = { .kind = d->kind };
    ses_examples *out = ses_examples_begin(&spec, d, e);
    bool ok = out != NULL;
    for (size_t i = 0; ok && i < d->n; i++)
        if (chosen[i]) ok = add_example(out, d->item[i], e);
    if (ok && ses_examples_end(out, e)) return out;
    ses_examples_free(out);
    return NULL;
}

ses_examples *ses_examples_sample(const ses_examples *d, const ses_sample *s, ses_err *e)
{
    members m = { .seed = s->seed };
    if (s->size && s->shots) {
        ses_fail(e, SES_EUSAGE, "train-size is a total, shots a number for each class: set one");
        return NULL;
    }
    bool *chosen = ses_alloc_array(d->n + 1, sizeof *chosen, e);
    bool ok = chosen != NULL;
    if (ok && s->shots)
        ok = choose_shots(&m, d, s->shots, chosen, e);
    else if (ok && s->size)
        ok = choose_size(&m, d, s->size, chosen, e);
    else if (ok)
        memset(chosen, true, d->n);
    for (size_t i = 0; ok && s->others && i < d->n; i++) chosen[i] = !chosen[i];
    ses_examples *out = ok ? copy(d, chosen, e) : NULL;
    ses_free(m.item);
    ses_free(chosen);
    return out;
}
