/* Data of a ladder: the files, or one file that is split. */
#include "ladder.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "cli/train/data_notes.h"
#include "tune/finetune_data.h"

#include <stdlib.h>
#include <string.h>

enum { SITE = 0x6c616464 };

typedef struct keyed_row {
    int32_t label;
    uint32_t key;
    size_t row;
} keyed_row;

static int by_key(const void *a, const void *b)
{
    const keyed_row *x = a, *y = b;
    if (x->label != y->label) return x->label < y->label ? -1 : 1;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* Marks the rows of the test part: a random part of each class, the same for the same seed and file. */
static bool choose_test(const ses_examples *all, double part, uint64_t seed, bool *is_test, ses_err *e)
{
    size_t n = ses_examples_count(all);
    keyed_row *k = ses_alloc_array(n, sizeof *k, e);
    if (!k) return false;
    for (size_t i = 0; i < n; i++)
        k[i] =
            (keyed_row){ ses_examples_at(all, i)->label, ses_rand32((ses_rng_key){ seed, 0, SITE }, i), i };
    qsort(k, n, sizeof *k, by_key);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && k[end].label == k[i].label;) end++;
        size_t count = (size_t)(part * (double)(end - i) + 0.5);
        if (count == end - i) count--; /* at least one text of the class is for training */
        for (size_t j = i; j < i + count; j++) is_test[k[j].row] = true;
    }
    ses_free(k);
    return true;
}

/* The rows whose is_test has this value, with the labels of all. */
static ses_examples *part_of(const ses_examples *all, const bool *is_test, bool test, ses_err *e)
{
    size_t n = ses_examples_count(all), count = 0;
    ses_example_input *in = ses_alloc_array(n + 1, sizeof *in, e);
    for (size_t i = 0; in && i < n; i++) {
        const ses_labeled_example *x = ses_examples_at(all, i);
        if (is_test[i] != test) continue;
        in[count++] = (ses_example_input){ .text = x->text_a.p, /* followed by a NUL */
                                           .pair = x->text_b.n ? x->text_b.p : NULL,
                                           .label = ses_examples_label_name(all, (size_t)x->label) };
    }
    ses_examples *part = in ? ses_examples_new(SES_DATA_CLASSIFY, in, count, NULL, all, e) : NULL;
    ses_free(in);
    return part;
}

static bool split(ses_ladder *l, const ses_examples *all, ses_err *e)
{
    size_t n = ses_examples_count(all);
    bool *is_test = ses_alloc_array(n + 1, sizeof *is_test, e);
    bool ok = is_test && choose_test(all, l->a->test_size, (uint64_t)l->a->seed, is_test, e);
    size_t count = 0;
    for (size_t i = 0; ok && i < n; i++) count += is_test[i];
    if (ok && !count)
        ok = ses_fail(e, SES_EARG, "%s: %zu texts are too few to split off a test part; give a second file",
                      l->train_name, n);
    l->train = ok ? part_of(all, is_test, false, e) : NULL;
    l->test = l->train ? part_of(all, is_test, true, e) : NULL;
    ses_free(is_test);
    return l->test != NULL;
}

bool ses_ladder_read(ses_ladder *l, ses_err *e)
{
    ses_data_options d = l->a->data;
    ses_finetune_task_options none = { 0 };
    const ses_finetune_task *task;
    ses_data_spec spec;
    d.task = l->task = l->x.c->operands[0];
    if (!ses_finetune_resolve_task(&d, &none, &task, &spec, e)) return false;
    if (!task->ways[SES_WAY_CLASSIFIER])
        return ses_fail(e, SES_EUSAGE, "%s: a ladder compares methods of classification; use classify",
                        d.task);
    l->metric = spec.best_metric;
    l->lower_is_better = ses_metric_lower_is_better(l->metric);
    l->train_name = l->x.c->operands[1];
    l->test_name = l->x.c->n_operands > 2 ? l->x.c->operands[2] : l->train_name;
    ses_examples *all = ses_data_open(&spec, l->train_name, NULL, e);
    if (!all) return false;
    ses_note_data(l->x.c, all, l->train_name, true);
    bool ok = ses_examples_check_learnable(all, e) || ses_wrap(e, "%s", l->train_name);
    if (ok && l->x.c->n_operands == 2) {
        ok = split(l, all, e);
        ses_examples_free(all);
    } else if (ok) {
        l->train = all;
        l->test = ses_data_open(&spec, l->test_name, all, e);
        ok = l->test != NULL;
        if (ok) ses_note_data(l->x.c, l->test, l->test_name, false);
    } else
        ses_examples_free(all);
    return ok && ses_examples_overlap(l->train, l->test, &l->overlap, e);
}
