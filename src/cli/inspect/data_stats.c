/* Statistics of labeled examples. */
#include "data_stats.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/strmap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static ses_distribution distribution_of(double *x, size_t n)
{
    ses_distribution s = { 0 };
    double square = 0;
    qsort(x, n, sizeof *x, ascending);
    for (size_t i = 0; i < n; i++) s.mean += x[i];
    s.mean /= (double)n;
    for (size_t i = 0; i < n; i++) square += (x[i] - s.mean) * (x[i] - s.mean);
    s.stddev = sqrt(square / (double)n);
    s.min = x[0];
    s.median = n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
    s.p95 = x[n - n / 20 - 1]; /* 95 % are not above this */
    s.max = x[n - 1];
    return s;
}

static void count_text(const ses_string *f, double *words, double *characters)
{
    bool in_word = false;
    for (size_t i = 0; i < f->n; i++) {
        unsigned char c = (unsigned char)f->p[i];
        bool space = c == ' ' || (c >= 9 && c <= 13);
        *words += !space && !in_word;
        *characters += (c & 0xC0) != 0x80;
        in_word = !space;
    }
}

/* Joins the texts of an example with NUL bytes. */
static bool join_texts(const ses_labeled_example *x, ses_buf *b, ses_err *e)
{
    b->len = 0;
    ses_buf_append(b, x->text_a.p, x->text_a.n);
    ses_buf_put(b, 0);
    ses_buf_append(b, x->text_b.p, x->text_b.n);
    for (size_t k = 0; k < x->n_parts; k++) {
        ses_buf_put(b, 0);
        ses_buf_append(b, x->parts[k].p, x->parts[k].n);
    }
    return ses_buf_ok(b, e);
}

static bool same_labels(const ses_labeled_example *a, const ses_labeled_example *b)
{
    return a->label == b->label && a->target == b->target && a->n_labels == b->n_labels &&
           (!a->n_labels || !memcmp(a->labels, b->labels, a->n_labels * sizeof *a->labels));
}

static bool find_duplicates(const ses_examples *d, ses_data_stats *s, ses_err *e)
{
    ses_strmap seen = { 0 };
    ses_buf b = { 0 };
    size_t n = ses_examples_count(d), n_keys = 0;
    char **keys = ses_alloc_array(n, sizeof *keys, e);
    bool ok = keys != NULL, is_new = false;
    for (size_t i = 0; ok && i < n; i++) {
        const ses_labeled_example *x = ses_examples_at(d, i);
        int64_t before;
        ok = join_texts(x, &b, e);
        if (ok && ses_strmap_find(&seen, b.data, b.len, &before)) {
            s->duplicates++;
            s->contradictions += !same_labels(x, ses_examples_at(d, (size_t)before));
            continue;
        }
        keys[n_keys] = ok ? ses_strndup(b.data, b.len, e) : NULL;
        ok = ok && keys[n_keys] && ses_strmap_insert(&seen, keys[n_keys], b.len, (int64_t)i, &is_new, e);
        n_keys++;
    }
    for (size_t i = 0; keys && i < n; i++) ses_free(keys[i]);
    ses_free(keys);
    ses_buf_free(&b);
    ses_strmap_free(&seen);
    return ok;
}

bool ses_data_stats_of(const ses_examples *d, ses_data_stats *s, ses_err *e)
{
    size_t n = ses_examples_count(d);
    double *x = ses_alloc_array(3 * n, sizeof *x, e), *words = x, *characters = x ? x + n : NULL;
    s->count = x ? ses_alloc_array(ses_examples_label_count(d), sizeof *s->count, e) : NULL;
    for (size_t i = 0; s->count && i < n; i++) {
        const ses_labeled_example *one = ses_examples_at(d, i);
        if (one->label >= 0) s->count[one->label]++;
        for (size_t k = 0; k < one->n_labels; k++) s->count[one->labels[k]]++;
        count_text(&one->text_a, &words[i], &characters[i]);
        count_text(&one->text_b, &words[i], &characters[i]);
        for (size_t k = 0; k < one->n_parts; k++) count_text(&one->parts[k], &words[i], &characters[i]);
        if (ses_examples_kind(d) == SES_DATA_TAG) words[i] = (double)one->n_parts;
        s->tokens += (int64_t)one->n_parts;
        s->unanswered += one->n_answers == 0;
        x[2 * n + i] = one->target;
    }
    bool ok = s->count && find_duplicates(d, s, e);
    if (ok)
        s->words = distribution_of(words, n), s->characters = distribution_of(characters, n),
        s->targets = distribution_of(x + 2 * n, n);
    ses_free(x);
    return ok;
}

void ses_data_stats_free(ses_data_stats *s)
{
    ses_free(s->count);
    *s = (ses_data_stats){ 0 };
}
