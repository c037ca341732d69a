/* Baselines without a model, and the labels of control tasks (Hewitt and Liang 2019). */
#include "probe_baselines.h"
#include "base/alloc.h"
#include "base/hash.h"

#include <string.h>

int32_t ses_probe_control_label(const ses_probe_data *d, const ses_probe_task *t, uint32_t type,
                                uint64_t seed, const uint32_t *train, size_t n)
{
    const char *word = d->type[type];
    ses_hash_key key = { seed, 0x636f6e74726f6c00u };
    return t->y[train[ses_hash(key, word, strlen(word)) % n]];
}

static size_t largest(const uint32_t *count, size_t n)
{
    size_t best = 0;
    for (size_t k = 1; k < n; k++)
        if (count[k] > count[best]) best = k;
    return best;
}

bool ses_probe_baselines_compute(const ses_probe_data *d, const ses_probe_task *t, ses_probe_baselines *out,
                                 ses_err *e)
{
    size_t cells;
    if (!ses_mul_size(d->n_types + 1, t->classes, &cells))
        return ses_fail(e, SES_ENOMEM, "%zu types", d->n_types);
    uint32_t *count = ses_alloc_array(cells, sizeof *count, e); /* [types + 1, classes]; the last row: all */
    if (!count) return false;
    uint32_t *all = count + d->n_types * t->classes;
    *out = (ses_probe_baselines){ 0 };
    for (size_t i = 0; i < d->first[SES_PROBE_DEV]; i++)
        if (t->y[i] >= 0) {
            count[d->example[i].type * t->classes + (size_t)t->y[i]]++, all[t->y[i]]++;
            out->train++;
        }
    size_t majority = largest(all, t->classes), right = 0, right_by_word = 0;
    for (size_t i = d->first[SES_PROBE_TEST]; i < d->n; i++) {
        if (t->y[i] == SES_PROBE_NO_LABEL) continue;
        const uint32_t *word = count + d->example[i].type * t->classes;
        size_t guess = largest(word, t->classes);
        if (!word[guess]) guess = majority;
        right += t->y[i] == (int32_t)majority;
        right_by_word += t->y[i] == (int32_t)guess;
        out->unseen += t->y[i] == SES_PROBE_UNSEEN_LABEL;
        out->test++;
    }
    out->majority = (double)right / (double)out->test;
    out->majority_by_word = (double)right_by_word / (double)out->test;
    ses_free(count);
    return true;
}
