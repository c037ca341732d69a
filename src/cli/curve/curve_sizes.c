/* Sizes of a learning curve. */
#include "curve.h"

#include "base/alloc.h"
#include "base/str.h"
#include "data/examples_sample.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_SIZES = 64, DOTS = -1 };

static bool parse_item(const char *s, size_t n, int64_t *out, ses_err *e)
{
    *out = 0;
    if (ses_equal(s, n, "all")) return true;
    if (ses_equal(s, n, "...")) return *out = DOTS, true;
    for (size_t i = 0; i < n && i < 15; i++) {
        if (s[i] < '0' || s[i] > '9') *out = 0, n = 0;
        if (n) *out = 10 * *out + (s[i] - '0');
    }
    return (n && n < 15 && *out > 0) ||
           ses_fail(e, SES_EUSAGE, "--sizes: \"%s\" is neither a number above 0 nor \"all\" nor \"...\"",
                    ses_quoted_of(s, n ? n : strcspn(s, ",")).s);
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = (uint64_t)(*(const int64_t *)a - 1),
             y = (uint64_t)(*(const int64_t *)b - 1); /* 0: the last */
    return (x > y) - (x < y);
}

static bool add(int64_t *out, size_t max, size_t *n, int64_t size, ses_err *e)
{
    if (*n == max) return ses_fail(e, SES_EUSAGE, "--sizes: more than %zu numbers", max);
    out[(*n)++] = size;
    return true;
}

/* Numbers between `from` and `to`, excluding both; to 0: up to limit. */
static bool add_doubled(int64_t *out, size_t max, size_t *n, int64_t from, int64_t to, int64_t limit,
                        ses_err *e)
{
    for (int64_t x = 2 * from; to ? x < to : x <= limit; x *= 2)
        if (!add(out, max, n, x, e)) return false;
    return true;
}

static bool check_distinct(const int64_t *out, size_t n, ses_err *e)
{
    char text[24];
    for (size_t i = 1; i < n; i++)
        if (out[i] == out[i - 1])
            return ses_fail(e, SES_EUSAGE, "--sizes: %s is given twice", ses_curve_size_text(out[i], text));
    return n > 0 || ses_fail(e, SES_EUSAGE, "--sizes: no number");
}

bool ses_curve_sizes_parse(const char *text, int64_t limit, int64_t *out, size_t max, size_t *n, ses_err *e)
{
    int64_t from = 0, x = 0;
    bool dots = false, ok = true;
    *n = 0;
    for (const char *at = text; ok; at++) {
        size_t len = strcspn(at, ",");
        ok = parse_item(at, len, &x, e);
        if (ok && x == DOTS && (dots || from <= 0))
            ok = ses_fail(e, SES_EUSAGE, "--sizes: \"...\" doubles the number before it: 8,...,64");
        if (ok && x != DOTS)
            ok = (!dots || add_doubled(out, max, n, from, x, limit, e)) && add(out, max, n, x, e);
        dots = x == DOTS;
        if (x != DOTS) from = x;
        at += len;
        if (!*at) break;
    }
    if (ok && dots) ok = ses_fail(e, SES_EUSAGE, "--sizes: a number or \"all\" must follow \"...\"");
    if (!ok) return false;
    if (*n) qsort(out, *n, sizeof *out, by_size);
    return check_distinct(out, *n, e);
}

/* The largest k for which every class has k examples, by trying: classes are counted by the sampler. */
static int64_t most_shots(const ses_examples *d)
{
    int64_t low = 0, high = (int64_t)ses_examples_count(d) + 1;
    while (high - low > 1) {
        int64_t k = low + (high - low) / 2;
        ses_examples *s = ses_examples_sample(d, &(ses_sample){ .shots = k }, NULL);
        if (s)
            low = k;
        else
            high = k;
        ses_examples_free(s);
    }
    return low;
}

/* Sizes of at least all examples become `all`. */
static void clamp(ses_curve *v)
{
    size_t kept = 0;
    int64_t count = (int64_t)ses_examples_count(v->train), above = 0;
    for (size_t i = 0; i < v->n_sizes; i++) {
        if (v->size[i] >= count && !above) above = v->size[i];
        if (v->size[i] && v->size[i] < count) v->size[kept++] = v->size[i];
    }
    if ((above || !v->size[v->n_sizes - 1]) && kept < v->n_sizes) v->size[kept++] = 0;
    v->n_sizes = kept;
    if (above && !v->x.c->quiet)
        fprintf(stderr, "--sizes %lld: %s has %lld examples; the last point is all of them\n",
                (long long)above, v->a->train, (long long)count);
}

static bool check_shots(const ses_curve *v, ses_err *e)
{
    for (size_t i = 0; i < v->n_sizes; i++) {
        ses_sample s = { .shots = v->size[i] };
        ses_examples *part = v->size[i] ? ses_examples_sample(v->train, &s, e) : NULL;
        if (!part && v->size[i]) return ses_wrap(e, "--sizes with --per-class: %s", v->a->train);
        ses_examples_free(part);
    }
    return true;
}

bool ses_curve_choose_sizes(ses_curve *v, ses_err *e)
{
    int64_t limit = v->a->per_class ? most_shots(v->train) : (int64_t)ses_examples_count(v->train) - 1;
    v->size = ses_alloc_array(MAX_SIZES, sizeof *v->size, e);
    if (!v->size || !ses_curve_sizes_parse(v->a->sizes, limit, v->size, MAX_SIZES, &v->n_sizes, e))
        return false;
    if (v->a->per_class) return check_shots(v, e);
    clamp(v);
    return true;
}
