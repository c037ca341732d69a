/* Data of a probe: texts, examples and labels. */
#include "probe_data.h"

#include "base/alloc.h"
#include "base/str.h"
#include "probe_setup.h"

#include <string.h>

bool ses_probe_in_set(size_t i, int set)
{
    size_t at = i % 10;
    return at < 8 ? set == SES_PROBE_TRAIN : at == 8 ? set == SES_PROBE_DEV : set == SES_PROBE_TEST;
}

bool ses_probe_data_add_task(ses_probe_data *d, const char *name, size_t n, ses_err *e)
{
    char *copy = ses_arena_strndup(&d->mem, name, n, e);
    if (!copy || !ses_array_reserve(&d->task, &d->cap_tasks, d->n_tasks + 1, sizeof *d->task, e))
        return false;
    d->task[d->n_tasks++] = (ses_probe_task){ .name = copy };
    return true;
}

void ses_probe_data_begin(ses_probe_data *d, int set)
{
    d->set = set;
    d->first[set] = d->n;
    d->first_input[set] = d->n_inputs;
}

static bool add_input(ses_probe_data *d, ses_input in, size_t rows, size_t *row, ses_err *e)
{
    if (!ses_array_reserve(&d->input, &d->cap_inputs, d->n_inputs + 1, sizeof *d->input, e)) return false;
    d->input[d->n_inputs++] = in;
    *row = d->rows;
    d->rows += rows;
    return true;
}

static bool copy_string(ses_probe_data *d, ses_string *s, ses_err *e)
{
    s->p = s->p ? ses_arena_strndup(&d->mem, s->p, s->n, e) : NULL;
    return s->p != NULL;
}

static bool add_word_list(ses_probe_data *d, const ses_string *word, size_t n, size_t rows, size_t *row,
                          ses_err *e)
{
    ses_string *copy = ses_arena_array(&d->mem, n + 1, sizeof *copy, e);
    if (!copy) return false;
    for (size_t i = 0; i < n; i++) {
        copy[i] = word[i];
        if (!copy_string(d, &copy[i], e)) return false;
    }
    return add_input(d, (ses_input){ .words = copy, .n_words = n }, rows, row, e);
}

bool ses_probe_data_add_words(ses_probe_data *d, const ses_string *word, size_t n, size_t *row, ses_err *e)
{
    return add_word_list(d, word, n, n, row, e);
}

bool ses_probe_data_add_sentence(ses_probe_data *d, const ses_string *word, size_t n, size_t *row, ses_err *e)
{
    return add_word_list(d, word, n, 1, row, e);
}

bool ses_probe_data_add_text(ses_probe_data *d, ses_string text, ses_string pair, size_t *row, ses_err *e)
{
    if (!copy_string(d, &text, e) || (pair.p && !copy_string(d, &pair, e))) return false;
    return add_input(d, (ses_input){ .text = text, .pair = pair }, 1, row, e);
}

/* The id of a string in a map; new strings are copied to *name. */
static int64_t intern(ses_probe_data *d, ses_strmap *map, const char ***name, size_t *n, size_t *cap,
                      ses_string s, ses_err *e)
{
    int64_t id;
    if (ses_strmap_find(map, s.p, s.n, &id)) return id;
    char *copy = ses_arena_strndup(&d->mem, s.p, s.n, e);
    bool fresh;
    if (!copy || !ses_array_reserve(name, cap, *n + 1, sizeof **name, e) ||
        !ses_strmap_insert(map, copy, s.n, (int64_t)*n, &fresh, e))
        return -1;
    (*name)[*n] = copy;
    return (int64_t)(*n)++;
}

static bool label_id(ses_probe_data *d, ses_probe_task *t, ses_string label, int32_t *id, ses_err *e)
{
    int64_t found;
    *id = SES_PROBE_NO_LABEL;
    if (!label.p) return true;
    if (d->set == SES_PROBE_TRAIN)
        found = intern(d, &t->ids, &t->label, &t->classes, &t->cap_labels, label, e);
    else if (!ses_strmap_find(&t->ids, label.p, label.n, &found))
        found = SES_PROBE_UNSEEN_LABEL;
    *id = (int32_t)found;
    return found != -1;
}

bool ses_probe_data_add(ses_probe_data *d, size_t row, size_t other, ses_string type, const ses_string *label,
                        ses_err *e)
{
    int64_t id = intern(d, &d->types, &d->type, &d->n_types, &d->cap_types, type, e);
    if (id < 0 || !ses_array_reserve(&d->example, &d->cap, d->n + 1, sizeof *d->example, e)) return false;
    for (size_t k = 0; k < d->n_tasks; k++) {
        ses_probe_task *t = &d->task[k];
        if (!ses_array_reserve(&t->y, &t->cap_y, d->n + 1, sizeof *t->y, e) ||
            !label_id(d, t, label[k], &t->y[d->n], e))
            return false;
    }
    d->example[d->n++] = (ses_probe_example){ row, other, (uint32_t)id, 1 };
    return true;
}

static bool check_task(const ses_probe_data *d, const ses_probe_task *t, ses_err *e)
{
    static const char *const name[] = { "training", "development", "test" };
    for (int s = 0; s < SES_PROBE_SETS; s++) {
        size_t n = 0, unseen = 0;
        for (size_t i = d->first[s]; i < d->first[s + 1]; i++) {
            n += t->y[i] != SES_PROBE_NO_LABEL;
            unseen += t->y[i] == SES_PROBE_UNSEEN_LABEL;
        }
        if (n && unseen == n)
            return ses_fail(e, SES_EARG, "%s: none of the labels of the %s data occurs in the training data",
                            t->name, name[s]);
        if (!n)
            return ses_fail(e, SES_EARG, "%s: the %s data have no example%s", t->name, name[s],
                            s == SES_PROBE_TRAIN
                                ? ""
                                : "; of a single file, the ninth text of ten is development "
                                  "and the tenth test data: give more texts, or several files");
        if (s == SES_PROBE_TRAIN && n < t->classes)
            return ses_fail(e, SES_EARG, "%s: %zu examples of %zu classes, expected more", t->name, n,
                            t->classes);
    }
    return t->classes > 1 ||
           ses_fail(e, SES_EARG,
                    "%s: all training examples have the label \"%s\"; expected at least two labels", t->name,
                    ses_quoted_of(t->label[0], strlen(t->label[0])).s);
}

static void task_free(ses_probe_task *t)
{
    ses_strmap_free(&t->ids);
    ses_free(t->label);
    ses_free(t->y);
}

bool ses_probe_data_end(ses_probe_data *d, ses_report *report, ses_err *e)
{
    d->first[SES_PROBE_SETS] = d->n;
    d->first_input[SES_PROBE_SETS] = d->n_inputs;
    for (size_t k = 0; k < d->n_tasks;) {
        ses_err why = { 0 };
        if (check_task(d, &d->task[k], &why)) {
            k++;
            continue;
        }
        if (!d->drops_tasks || d->n_tasks == 1) {
            if (e) *e = why;
            return false;
        }
        if (!ses_array_reserve(&d->dropped, &d->cap_dropped, d->n_dropped + 1, sizeof *d->dropped, e))
            return false;
        d->dropped[d->n_dropped++] = d->task[k].name;
        ses_report_note(report, "Left out: %s.", why.msg);
        task_free(&d->task[k]);
        memmove(&d->task[k], &d->task[k + 1], (--d->n_tasks - k) * sizeof *d->task);
    }
    size_t dev = d->first_input[SES_PROBE_DEV], test = d->first_input[SES_PROBE_TEST];
    return ses_probe_note_overlap(report, d->input, dev, d->input + test, d->n_inputs - test,
                                  &d->test_in_train, e);
}

void ses_probe_data_free(ses_probe_data *d)
{
    for (size_t k = 0; k < d->n_tasks; k++) task_free(&d->task[k]);
    ses_free(d->dropped);
    ses_strmap_free(&d->types);
    ses_free(d->type);
    ses_free(d->task);
    ses_free(d->example);
    ses_free(d->input);
    ses_arena_free(&d->mem);
    *d = (ses_probe_data){ 0 };
}
