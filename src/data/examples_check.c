/* Whether examples can be learned: labels that differ, and are labels. */
#include "examples_impl.h"

#include "base/alloc.h"
#include "base/number.h"
#include "row_overlap.h"

#include <string.h>

enum { LEAST_NUMBERS = 20, LEAST_LABELS = 3 };

static bool has_label(ses_data_kind k)
{
    return k == SES_DATA_CLASSIFY || k == SES_DATA_MULTI || k == SES_DATA_TAG || k == SES_DATA_CHOICE;
}

/* Whether the label of every example is its text. */
static bool labels_are_texts(const ses_examples *d)
{
    size_t n = 0;
    for (; n < d->n && d->item[n].label >= 0; n++) {
        ses_string x = ses_trim(d->item[n].text_a), y = d->item[n].text_b;
        const char *label = d->value[d->item[n].label];
        if (!ses_equal(x.p, x.n, label) && !ses_equal(y.p, y.n, label)) return false;
    }
    return n == d->n && n > 1;
}

/* Whether the labels are fractional numbers, most of which occur once. */
static bool labels_are_numbers(const ses_examples *d)
{
    double x;
    bool point = false;
    if (d->n < LEAST_NUMBERS || d->n_labels <= d->n / 2) return false;
    for (size_t k = 0; k < d->n_labels; k++) {
        if (!ses_parse_number(d->value[k], strlen(d->value[k]), &x)) return false;
        point |= strchr(d->value[k], '.') != NULL;
    }
    return point;
}

/* Number of different tags that occur; schemes have more. */
static bool count_tags(const ses_examples *d, size_t *n, ses_err *e)
{
    bool *occurs = ses_alloc_array(d->n_labels + 1, sizeof *occurs, e);
    *n = 0;
    if (!occurs) return false;
    for (size_t i = 0; i < d->n; i++)
        for (size_t k = 0; k < d->item[i].n_labels; k++) {
            int32_t tag = d->item[i].labels[k];
            if (tag < 0 || occurs[tag]) continue;
            occurs[tag] = true;
            ++*n;
        }
    ses_free(occurs);
    return true;
}

/* Tags that differ more than the words: the columns are swapped. */
static bool check_tags(const ses_examples *d, ses_err *e)
{
    ses_row_set s = { 0 };
    size_t tags = 0;
    if (d->n_labels < LEAST_LABELS) return true;
    bool ok = count_tags(d, &tags, e);
    for (size_t i = 0; ok && i < d->n; i++)
        for (size_t k = 0; ok && k < d->item[i].n_parts; k++)
            ok = ses_row_set_add(&s, &d->item[i].parts[k], 1, e);
    size_t words = ok ? ses_row_set_distinct(&s) : 0;
    ses_row_set_free(&s);
    if (ok && tags > words)
        ok = ses_fail(e, SES_EARG,
                      "%zu different words have %zu different tags: are the columns swapped (--token-column, "
                      "--tag-column)?",
                      words, tags);
    return ok;
}

/* Columns that another task or another order of columns would read. */
static bool check_columns(const ses_examples *d, ses_err *e)
{
    if (d->kind == SES_DATA_TAG) return check_tags(d, e);
    if (d->kind != SES_DATA_CLASSIFY) return true;
    if (labels_are_texts(d))
        return ses_fail(e, SES_EARG, "the label of every example is its text: name another column of labels");
    if (labels_are_numbers(d))
        return ses_fail(e, SES_EARG,
                        "%zu examples have %zu different numbers as labels: the task regress learns numbers",
                        d->n, d->n_labels);
    if (d->n_labels < LEAST_LABELS || d->n_labels <= d->n / 2) return true; /* texts hardly ever repeat */
    ses_row_set s = { 0 };
    bool ok = ses_row_set_add_examples(&s, d, e);
    size_t texts = ok ? ses_row_set_distinct(&s) : 0;
    ses_row_set_free(&s);
    if (ok && d->n_labels > texts)
        ok = ses_fail(
            e, SES_EARG,
            "%zu different texts have %zu different labels: are the columns of texts and labels swapped?",
            texts, d->n_labels);
    return ok;
}

static bool has_no_text(const ses_examples *d)
{
    for (size_t i = 0; i < d->n; i++)
        if (ses_trim(d->item[i].text_a).n || ses_trim(d->item[i].text_b).n || d->item[i].n_parts)
            return false;
    return true;
}

bool ses_examples_check_learnable(const ses_examples *d, ses_err *e)
{
    const ses_labeled_example *first = &d->item[0];
    bool differs = d->kind == SES_DATA_CHOICE || (!has_label(d->kind) && d->kind != SES_DATA_REGRESS);
    if (!d->n) return ses_fail(e, SES_EFORMAT, "no examples");
    if (has_no_text(d))
        return ses_fail(e, SES_EARG,
                        "the texts of all %zu examples are empty: is it the right column (--text)?", d->n);
    for (size_t i = 0; i < d->n && !differs; i++) {
        const ses_labeled_example *x = &d->item[i];
        differs = x->label != first->label || x->target != first->target;
        for (size_t k = 0; k < x->n_labels && !differs; k++) differs = x->labels[k] != first->labels[0];
        if (d->kind == SES_DATA_MULTI) differs = differs || x->n_labels != first->n_labels;
    }
    if (differs) return check_columns(d, e);
    if (d->kind == SES_DATA_REGRESS)
        return ses_fail(e, SES_EARG, "all %zu examples have the number %g: nothing to learn", d->n,
                        first->target);
    const char *name = d->kind == SES_DATA_CLASSIFY ? ses_examples_label_name(d, (size_t)first->label)
                       : first->n_labels            ? ses_examples_label_name(d, (size_t)first->labels[0])
                                                    : NULL;
    return ses_fail(e, SES_EARG, "all %zu examples have the label \"%s\": nothing to learn", d->n,
                    name ? name : "");
}
