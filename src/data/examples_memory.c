/* Labeled examples from memory. */
#include "examples_impl.h"

#include "base/unicode/utf8.h"

#include <string.h>

static bool keep_text(ses_examples *d, const char *s, ses_string *out, ses_err *e)
{
    *out = (ses_string){ s ? s : "", s ? strlen(s) : 0 };
    return ses_examples_keep(d, out, e);
}

static bool keep_parts(ses_examples *d, const ses_example_input *in, ses_labeled_example *x, ses_err *e)
{
    ses_string *part = ses_arena_array(&d->arena, in->n_parts + 1, sizeof *part, e);
    bool ok = part != NULL;
    for (size_t i = 0; ok && i < in->n_parts; i++) ok = keep_text(d, in->parts[i], &part[i], e);
    x->parts = part;
    x->n_parts = in->n_parts;
    return ok;
}

static bool keep_labels(ses_examples *d, const ses_example_input *in, ses_labeled_example *x, ses_err *e)
{
    if (d->kind == SES_DATA_TAG && !in->labels) return true;
    if (d->kind == SES_DATA_TAG && in->n_labels != in->n_parts)
        return ses_fail(e, SES_EARG, "%zu labels for %zu words", in->n_labels, in->n_parts);
    x->labels = ses_arena_array(&d->arena, in->n_labels + 1, sizeof *x->labels, e);
    bool ok = x->labels != NULL;
    for (size_t i = 0; ok && i < in->n_labels; i++)
        ok = ses_examples_take_label(d, in->labels[i], strlen(in->labels[i]), &x->labels[i], e);
    x->n_labels = ok ? in->n_labels : 0;
    return ok;
}

static bool keep_answer(ses_examples *d, const ses_example_input *in, ses_labeled_example *x, ses_err *e)
{
    x->is_impossible = !in->answer;
    if (!in->answer) return true;
    size_t n = strlen(in->answer);
    if (in->answer_start > x->text_b.n || n > x->text_b.n - in->answer_start ||
        memcmp(x->text_b.p + in->answer_start, in->answer, n))
        return ses_fail(e, SES_EARG, "the answer is not in the passage at byte %zu", in->answer_start);
    ses_answer *a = ses_arena_array(&d->arena, 1, sizeof *a, e);
    if (!a || !keep_text(d, in->answer, &a->text, e)) return false;
    a->byte_start = in->answer_start;
    a->char_start = ses_utf8_count(x->text_b.p, in->answer_start);
    x->answers = a;
    x->n_answers = 1;
    return true;
}

static bool add(ses_examples *d, const ses_example_input *in, ses_err *e)
{
    ses_labeled_example x = { .line = d->n + 1, .label = SES_IGNORE_INDEX, .target = in->value };
    bool has_parts = d->kind == SES_DATA_TAG || d->kind == SES_DATA_CHOICE || d->kind == SES_DATA_TUPLE;
    bool has_labels = d->kind == SES_DATA_TAG || d->kind == SES_DATA_MULTI;
    if (!keep_text(d, in->text, &x.text_a, e) || !keep_text(d, in->pair, &x.text_b, e)) return false;
    if (has_parts && !keep_parts(d, in, &x, e)) return false;
    if (has_labels && !keep_labels(d, in, &x, e)) return false;
    if (d->kind == SES_DATA_SPAN && !keep_answer(d, in, &x, e)) return false;
    if (d->kind == SES_DATA_CLASSIFY && in->label &&
        !ses_examples_take_label(d, in->label, strlen(in->label), &x.label, e))
        return false;
    if (d->kind == SES_DATA_CHOICE) {
        if (d->n && in->n_parts != d->item[0].n_parts)
            return ses_fail(e, SES_EARG, "%zu choices, the first example has %zu", in->n_parts,
                            d->item[0].n_parts);
        if (in->choice < 0 || (size_t)in->choice >= in->n_parts)
            return ses_fail(e, SES_EARG, "choice %lld of %zu", (long long)in->choice, in->n_parts);
        x.label = (int32_t)in->choice;
    }
    return ses_examples_add(d, &x, e);
}

ses_examples *ses_examples_new(ses_data_kind kind, const ses_example_input *x, size_t n, const char *labels,
                               const ses_examples *like, ses_err *e)
{
    ses_data_spec spec = { .kind = kind, .label_values = labels };
    ses_examples *d = ses_examples_begin(&spec, like, e);
    bool ok = d != NULL;
    for (size_t i = 0; ok && i < n; i++) ok = add(d, &x[i], e) || ses_wrap(e, "example %zu", i);
    if (ok && ses_examples_end(d, e)) return d;
    ses_examples_free(d);
    return NULL;
}
