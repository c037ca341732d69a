/* Examples of a task, labels of control tasks, baselines without a model. */
#include "probe_examples.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "data/rng_stream.h"

#include <string.h>

enum { SITE = 0x70726f62 };

int32_t ses_probe_control_label(const ses_probe_data *d, const ses_probe_task *t, uint32_t type,
                                uint64_t seed, const int32_t *train, size_t n)
{
    const char *word = d->type[type];
    ses_hash_key key = { seed, 0x636f6e74726f6c00u };
    return t->y[train[ses_hash(key, word, strlen(word)) % n]];
}

static void shuffle(int32_t *x, size_t n, uint64_t seed, uint64_t step, uint32_t site)
{
    ses_rng_stream draws = ses_rng_stream_of(seed, step, site);
    ses_draw_shuffle(&draws, x, (int64_t)n);
}

void ses_probe_shuffle(int32_t *order, size_t n, uint64_t seed, uint64_t step, uint32_t site)
{
    for (size_t i = 0; i < n; i++) order[i] = (int32_t)i;
    shuffle(order, n, seed, step, site);
}

static bool list_set(ses_probe_examples *x, const ses_probe_data *d, const ses_probe_task *t, int set,
                     size_t max, uint64_t seed, ses_err *e)
{
    size_t first = d->first[set], end = d->first[set + 1], n = 0;
    int32_t *at = x->at[set] = ses_alloc_array(end - first + 1, sizeof *at, e);
    if (!at) return false;
    for (size_t i = first; i < end; i++)
        if (t->y[i] != SES_PROBE_NO_LABEL) at[n++] = (int32_t)i;
    if (set == SES_PROBE_TRAIN || (max && n > max)) shuffle(at, n, seed, (uint64_t)set, SITE);
    n = x->n[set] = max && n > max ? max : n;
    x->y[set] = ses_alloc_array(n + 1, sizeof *x->y[set], e);
    x->control[set] = ses_alloc_array(n + 1, sizeof *x->control[set], e);
    if (!x->y[set] || !x->control[set]) return false;
    for (size_t i = 0; i < n; i++) {
        x->y[set][i] = t->y[at[i]];
        x->control[set][i] = ses_probe_control_label(d, t, d->example[at[i]].type, seed,
                                                     x->at[SES_PROBE_TRAIN], x->n[SES_PROBE_TRAIN]);
    }
    return true;
}

bool ses_probe_examples_new(ses_probe_examples *x, const ses_probe_data *d, const ses_probe_task *t,
                            size_t max_train, size_t max_other, uint64_t seed, ses_err *e)
{
    if (d->n > INT32_MAX) return ses_fail(e, SES_EUNSUPPORTED, "%zu examples, expected at most 2^31", d->n);
    for (int s = 0; s < SES_PROBE_SETS; s++)
        if (!list_set(x, d, t, s, s == SES_PROBE_TRAIN ? max_train : max_other, seed, e)) return false;
    return true;
}

void ses_probe_examples_free(ses_probe_examples *x)
{
    for (int s = 0; s < SES_PROBE_SETS; s++) ses_free(x->at[s]), ses_free(x->y[s]), ses_free(x->control[s]);
    *x = (ses_probe_examples){ 0 };
}

/* ---- baselines ---- */

static size_t largest(const uint32_t *count, size_t n)
{
    size_t best = 0;
    for (size_t k = 1; k < n; k++)
        if (count[k] > count[best]) best = k;
    return best;
}

bool ses_probe_baselines_compute(const ses_probe_data *d, const ses_probe_task *t,
                                 const ses_probe_examples *x, ses_probe_baselines *out, ses_err *e)
{
    size_t cells;
    if (!ses_mul_size(d->n_types + 1, t->classes, &cells))
        return ses_fail(e, SES_ENOMEM, "%zu types", d->n_types);
    uint32_t *count = ses_alloc_array(cells, sizeof *count, e); /* [types + 1, classes]; the last row: all */
    if (!count) return false;
    uint32_t *all = count + d->n_types * t->classes;
    *out = (ses_probe_baselines){ .train = x->n[SES_PROBE_TRAIN], .test = x->n[SES_PROBE_TEST] };
    for (size_t i = 0; i < out->train; i++) {
        int32_t y = x->y[SES_PROBE_TRAIN][i];
        count[d->example[x->at[SES_PROBE_TRAIN][i]].type * t->classes + (size_t)y]++, all[y]++;
    }
    size_t majority = largest(all, t->classes), right = 0, right_by_word = 0;
    for (size_t i = 0; i < out->test; i++) {
        int32_t y = x->y[SES_PROBE_TEST][i];
        const uint32_t *word = count + d->example[x->at[SES_PROBE_TEST][i]].type * t->classes;
        size_t guess = largest(word, t->classes);
        if (!word[guess]) guess = majority;
        right += y == (int32_t)majority;
        right_by_word += y == (int32_t)guess;
        out->unseen += y == SES_PROBE_UNSEEN_LABEL;
    }
    out->majority = (double)right / (double)out->test;
    out->majority_by_word = (double)right_by_word / (double)out->test;
    ses_free(count);
    return true;
}
