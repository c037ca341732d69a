/* Fields with several labels: "billing|delivery", or a JSON array. The separator is chosen when all fields
 * are known. */
#include "examples_impl.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

static const char separators[] = "|;,";

bool ses_examples_keep_labels(ses_examples *d, ses_string field, ses_err *e)
{
    if (!ses_array_reserve(&d->raw, &d->raw_cap, d->n + 1, sizeof *d->raw, e)) return false;
    if (!ses_examples_keep(d, &field, e)) return false;
    d->raw[d->n] = field;
    return true;
}

static bool is_array(ses_string s)
{
    s = ses_trim(s);
    return s.n > 1 && *s.p == '[' && s.p[s.n - 1] == ']';
}

/* A field that is not an array is one label if the file has arrays. */
static bool begins_array(ses_string s)
{
    s = ses_trim(s);
    return s.n && *s.p == '[';
}

/* The number of different labels that a separator gives; SIZE_MAX: unknown, without memory. */
static size_t count_labels(const ses_examples *d, char separator)
{
    ses_strmap seen = { 0 };
    bool ok = true, fresh;
    for (size_t i = 0; ok && i < d->n; i++) {
        const char *s = d->raw[i].p, *end = s + d->raw[i].n;
        while (ok && s < end && !is_array(d->raw[i])) {
            const char *stop = memchr(s, separator, (size_t)(end - s));
            ses_string name = ses_trim((ses_string){ s, (size_t)((stop ? stop : end) - s) });
            ok = ses_strmap_insert(&seen, name.p, name.n, 0, &fresh, NULL);
            s = stop ? stop + 1 : end;
        }
    }
    size_t n = ok ? seen.count : SIZE_MAX;
    ses_strmap_free(&seen);
    return n;
}

/* The separator that most rows have, '[' for arrays; ties: '[', then the one with the fewest labels. 0: none.
 * The separator of the training data comes first if it occurs. */
static char choose(const ses_examples *d, size_t rows[static SES_LEN(separators)])
{
    enum { ARRAYS = SES_LEN(separators) - 1 }; /* in rows: after the separators */
    memset(rows, 0, SES_LEN(separators) * sizeof *rows);
    for (size_t i = 0; i < d->n; i++) {
        bool array = is_array(d->raw[i]);
        rows[ARRAYS] += array;
        for (size_t k = 0; !array && separators[k]; k++)
            rows[k] += d->raw[i].n && memchr(d->raw[i].p, separators[k], d->raw[i].n);
    }
    const char *like = d->separator ? strchr(separators, d->separator) : NULL;
    if (like && rows[like - separators]) return d->separator;
    if (d->separator == '[' && rows[ARRAYS]) return '[';
    size_t best = ARRAYS;
    for (size_t k = 0; separators[k]; k++)
        if (rows[k] > rows[best] || (best != ARRAYS && rows[k] && rows[k] == rows[best] &&
                                     count_labels(d, separators[k]) < count_labels(d, separators[best])))
            best = k;
    return best != ARRAYS ? separators[best] : rows[best] ? '[' : 0;
}

/* Chooses the separator; keeps another one that occurs, the most frequent, for the notice. */
static void detect_separator(ses_examples *d)
{
    size_t rows[SES_LEN(separators)];
    d->separator = choose(d, rows);
    for (size_t k = 0; d->separator && separators[k]; k++)
        if (separators[k] != d->separator && rows[k] > d->other_rows)
            d->other_separator = separators[k], d->other_rows = rows[k];
}

static bool add_label(ses_examples *d, ses_string name, ses_labeled_example *x, ses_err *e)
{
    name = ses_trim(name);
    if (!ses_examples_take_label(d, name.p, name.n, &x->labels[x->n_labels], e)) return false;
    for (size_t k = 0; k < x->n_labels; k++)
        if (x->labels[k] == x->labels[x->n_labels])
            return ses_fail(e, SES_EFORMAT, "label \"%s\" appears twice", ses_quoted_of(name.p, name.n).s);
    x->n_labels++;
    return true;
}

/* A field with one of separators; 0: it is one label. An empty field has none. Ignores a separator at the
 * end. */
static bool split_text(ses_examples *d, ses_string s, char separator, ses_labeled_example *x, ses_err *e)
{
    size_t count = 1, at = 0;
    for (size_t i = 0; i < s.n; i++) count += separator && s.p[i] == separator;
    x->labels = ses_arena_array(&d->arena, count, sizeof *x->labels, e);
    bool ok = x->labels != NULL;
    while (ok && ses_trim(s).n && count--) {
        const char *stop = count ? memchr(s.p + at, separator, s.n - at) : s.p + s.n;
        size_t n = (size_t)(stop - s.p) - at;
        if (!count && x->n_labels && !ses_trim((ses_string){ s.p + at, n }).n) break;
        ok = add_label(d, (ses_string){ s.p + at, n }, x, e);
        at += n + 1;
    }
    return ok;
}

static bool add_json(ses_examples *d, const ses_json *v, ses_labeled_example *x, ses_err *e)
{
    char number[24];
    int64_t i;
    size_t n;
    const char *s = ses_json_string(v, &n);
    if (!s && ses_json_int(v, &i))
        s = number, n = (size_t)snprintf(number, sizeof number, "%lld", (long long)i);
    if (!s || memchr(s, 0, n))
        return ses_fail(e, SES_EFORMAT, "a label is %s, expected a string or an integer",
                        s ? "a string with NUL" : ses_json_type_name(ses_json_type_of(v)));
    return add_label(d, (ses_string){ s, n }, x, e);
}

static bool split_array(ses_examples *d, ses_string s, ses_labeled_example *x, ses_err *e)
{
    ses_err why = { 0 };
    s = ses_trim(s);
    ses_json_doc *doc = s.n ? ses_json_parse_line(s.p, s.n, &why) : NULL;
    const ses_json *v = ses_json_root(doc);
    bool ok = !s.n || (doc && ses_json_type_of(v) == SES_JSON_ARRAY);
    if (!ok)
        ses_fail(e, why.code == SES_ENOMEM ? SES_ENOMEM : SES_EFORMAT,
                 "the labels %s are not a JSON array, as [\"a\", \"b\"] with double quotes",
                 ses_quoted_of(s.p, s.n).s);
    x->labels = ok ? ses_arena_array(&d->arena, ses_json_len(v) + 1, sizeof *x->labels, e) : NULL;
    ok = x->labels != NULL;
    for (size_t k = 0; ok && k < ses_json_len(v); k++) ok = add_json(d, ses_json_at(v, k), x, e);
    ses_json_free(doc);
    return ok;
}

bool ses_examples_split_labels(ses_examples *d, ses_err *e)
{
    size_t kept = 0;
    bool ok = true;
    bool set = d->spec->label_separator != 0;
    bool own =
        d->separator && d->separator != '[' && !strchr(separators, d->separator); /* set for training */
    if (set)
        d->separator = d->spec->label_separator;
    else if (!own)
        detect_separator(d);
    for (size_t i = 0; ok && i < d->n; i++) {
        ses_labeled_example *x = &d->item[i];
        ses_err why = { 0 };
        bool arrays = d->separator == '[';
        bool array = set ? arrays : arrays ? begins_array(d->raw[i]) : is_array(d->raw[i]);
        if (array ? split_array(d, d->raw[i], x, &why)
                  : split_text(d, d->raw[i], arrays ? 0 : d->separator, x, &why))
            d->item[kept++] = *x;
        else
            ok = ses_examples_drop(d, &why, x->line, e) ||
                 ses_wrap(e, "line %llu", (unsigned long long)x->line);
    }
    d->n = ok ? kept : d->n;
    ses_free(d->raw);
    d->raw = NULL;
    return ok;
}

char ses_examples_label_separator(const ses_examples *d) { return d->separator; }
