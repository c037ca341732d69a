/* Labeled examples: storage, labels and checks. */
#include "examples_impl.h"

#include "base/alloc.h"
#include "base/label_pairs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LABELS = 1 << 20 };
static const size_t max_bytes = (size_t)8 << 30;

const char *ses_data_kind_name(ses_data_kind k)
{
    static const char *const name[SES_DATA_KIND_COUNT] = {
        "classification", "several labels",     "regression",
        "tagging",        "question answering", "multiple choice",
        "text to text",   "plain text",         "texts that belong together"
    };
    return name[k];
}

bool ses_examples_add(ses_examples *d, const ses_labeled_example *x, ses_err *e)
{
    if (!ses_array_reserve(&d->item, &d->cap, d->n + 1, sizeof *d->item, e)) return false;
    d->item[d->n++] = *x;
    return true;
}

bool ses_examples_keep(ses_examples *d, ses_string *f, ses_err *e)
{
    f->p = ses_arena_strndup(&d->arena, f->p, f->n, e);
    return f->p != NULL;
}

/* ---- labels ---- */

static bool add_label(ses_examples *d, const char *s, size_t n, const char *name, size_t name_len, ses_err *e)
{
    if (d->n_labels == d->label_cap) {
        size_t cap = d->label_cap ? 2 * d->label_cap : 16;
        const char **value = ses_realloc_array(d->value, cap, sizeof *value, e);
        if (value) d->value = value;
        const char **names = value ? ses_realloc_array(d->name, cap, sizeof *names, e) : NULL;
        if (!names) return false;
        d->name = names;
        d->label_cap = cap;
    }
    char *value = ses_arena_strndup(&d->arena, s, n, e);
    char *label = value && name ? ses_arena_strndup(&d->arena, name, name_len, e) : value;
    bool fresh;
    if (!label || !ses_strmap_insert(&d->map, value, n, (int64_t)d->n_labels, &fresh, e)) return false;
    d->value[d->n_labels] = value;
    d->name[d->n_labels++] = label;
    return true;
}

/* Appends the names, separated by commas; after about 300 bytes the rest becomes "...". */
static void append_names(ses_buf *list, const char *const *text, size_t n)
{
    size_t max_len = list->len + 300;
    for (size_t k = 0; k < n && list->len < max_len; k++)
        ses_buf_appendf(list, "%s%s", k ? ", " : "", ses_quoted_of(text[k], strlen(text[k])).s);
    if (list->len >= max_len) ses_buf_puts(list, ", ...");
}

static bool fail_unknown_label(const ses_examples *d, const char *s, size_t n, ses_err *e)
{
    ses_buf list = { 0 };
    append_names(&list, d->value, d->n_labels);
    if (ses_buf_ok(&list, e))
        ses_fail(e, SES_EARG,
                 "unknown label \"%s\"; expected one of: %s; correct the label or add it to the label set",
                 ses_quoted_of(s, n).s, list.data ? list.data : "none");
    ses_buf_free(&list);
    return false;
}

bool ses_examples_take_label(ses_examples *d, const char *s, size_t n, int32_t *out, ses_err *e)
{
    int64_t at;
    if (!n) return ses_fail(e, SES_EFORMAT, "empty label");
    if (!ses_strmap_find(&d->map, s, n, &at)) {
        if (d->fixed) return fail_unknown_label(d, s, n, e);
        if (d->n_labels == MAX_LABELS)
            return ses_fail(e, SES_EFORMAT, "more than %d labels", (int)MAX_LABELS);
        at = (int64_t)d->n_labels;
        if (!add_label(d, s, n, NULL, 0, e)) return false;
    }
    *out = (int32_t)at;
    return true;
}

/* Another value of label `at`. */
static bool add_value(ses_examples *d, const char *s, size_t n, int64_t at, ses_err *e)
{
    bool fresh;
    char *copy = ses_arena_strndup(&d->arena, s, n, e);
    return copy && ses_strmap_insert(&d->map, copy, n, at, &fresh, e);
}

/* Labels with names, VALUE=NAME; values with the same name are one label. */
static bool add_pairs(ses_examples *d, const char *pairs, ses_err *e)
{
    ses_string value, name;
    bool ok = ses_label_pairs_check(pairs, e);
    for (size_t k = 0; ok && ses_label_pairs_at(pairs, k, &value, &name); k++) {
        size_t at = 0;
        while (at < d->n_labels && !ses_equal(name.p, name.n, d->name[at])) at++;
        ok = at < d->n_labels ? add_value(d, value.p, value.n, (int64_t)at, e)
                              : add_label(d, value.p, value.n, name.p, name.n, e);
    }
    return ok;
}

static bool fail_no_name(const ses_examples *d, ses_string name, ses_err *e)
{
    ses_buf list = { 0 };
    append_names(&list, d->name, d->n_labels);
    if (ses_buf_ok(&list, e))
        ses_fail(e, SES_EARG, "labels: no label is named \"%s\"; the names are %s",
                 ses_quoted_of(name.p, name.n).s, list.data ? list.data : "none");
    ses_buf_free(&list);
    return false;
}

/* The labels of another set with all their values. Pairs give more values of the same names. */
static bool copy_labels(ses_examples *d, const ses_examples *like, const char *pairs, ses_err *e)
{
    ses_string value, name;
    for (size_t k = 0; k < like->n_labels; k++)
        if (!add_label(d, like->value[k], strlen(like->value[k]), like->name[k], strlen(like->name[k]), e))
            return false;
    for (size_t k = 0; k < like->map.count; k++)
        if (!add_value(d, like->map.entry[k].key, like->map.entry[k].len, like->map.entry[k].value, e))
            return false;
    for (size_t k = 0; pairs && ses_label_pairs_at(pairs, k, &value, &name); k++) {
        size_t at = 0;
        while (at < d->n_labels && !ses_equal(name.p, name.n, d->name[at])) at++;
        if (at == d->n_labels) return fail_no_name(d, name, e);
        if (!add_value(d, value.p, value.n, (int64_t)at, e)) return false;
    }
    return true;
}

static bool fix_labels(ses_examples *d, const ses_data_spec *spec, const ses_examples *like, ses_err *e)
{
    const char *s, *name;
    size_t n, name_len;
    bool numbered = spec->kind == SES_DATA_CHOICE && !spec->label_values; /* indices of the choices */
    d->fixed = like || spec->label_values || numbered;
    const char *pairs = ses_is_label_pairs(spec->label_values) ? spec->label_values : NULL;
    if (like) return copy_labels(d, like, pairs, e);
    if (pairs) return add_pairs(d, pairs, e);
    for (size_t k = 0; ses_list_at(spec->label_values, k, &s, &n); k++) {
        if (!ses_list_at(spec->label_names, k, &name, &name_len)) name = NULL, name_len = 0;
        if (!add_label(d, s, n, name, name_len, e)) return false;
    }
    for (size_t k = 0; numbered && k < ses_list_len(spec->choices); k++) {
        char number[24];
        if (!add_label(d, number, (size_t)snprintf(number, sizeof number, "%zu", k), NULL, 0, e))
            return false;
    }
    return true;
}

typedef struct sorted {
    const char *value;
    bool is_number; /* all labels are integers */
    long long x;
    int32_t old_id;
} sorted;

static bool parse_integer(const char *s, long long *x)
{
    char *end;
    if (strlen(s) > 18 || (*s != '-' && (*s < '0' || *s > '9'))) return false;
    *x = strtoll(s, &end, 10);
    return !*end && s[strlen(s) - 1] != '-';
}

static int by_value(const void *a, const void *b)
{
    const sorted *x = a, *y = b;
    if (x->is_number && x->x != y->x) return x->x < y->x ? -1 : 1;
    return strcmp(x->value, y->value);
}

/* Gives label k the id new_id[k] in all examples. The caller permutes values and names. */
static void renumber(ses_examples *d, const int32_t *new_id)
{
    for (size_t k = 0; k < d->map.count; k++) d->map.entry[k].value = new_id[d->map.entry[k].value];
    for (size_t i = 0; i < d->n; i++) {
        ses_labeled_example *x = &d->item[i];
        if (x->label >= 0 && d->kind == SES_DATA_CLASSIFY) x->label = new_id[x->label];
        for (size_t k = 0; x->labels && k < x->n_labels; k++)
            if (x->labels[k] >= 0) x->labels[k] = new_id[x->labels[k]];
    }
}

/* Sorts the labels found in a file, integers numerically, so that ids do not depend on the order of the
 * file. */
static bool sort_labels(ses_examples *d, ses_err *e)
{
    sorted *s = ses_alloc_array(d->n_labels, sizeof *s, e);
    int32_t *new_id = s ? ses_alloc_array(d->n_labels, sizeof *new_id, e) : NULL;
    bool numbers = true;
    for (size_t k = 0; new_id && k < d->n_labels; k++) {
        s[k] = (sorted){ .value = d->value[k], .old_id = (int32_t)k };
        numbers = parse_integer(d->value[k], &s[k].x) && numbers;
    }
    for (size_t k = 0; new_id && k < d->n_labels; k++) s[k].is_number = numbers;
    if (new_id && d->n_labels) qsort(s, d->n_labels, sizeof *s, by_value);
    for (size_t k = 0; new_id && k < d->n_labels; k++) {
        new_id[s[k].old_id] = (int32_t)k;
        d->value[k] = d->name[k] = s[k].value;
    }
    if (new_id) renumber(d, new_id);
    bool ok = new_id != NULL;
    ses_free(new_id);
    ses_free(s);
    return ok;
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static bool equal_ignoring_case(const char *a, const char *b)
{
    for (; *a && lower(*a) == lower(*b); a++) b++;
    return *a == *b;
}

/* new_id[k]: index of text[k] in `in`. False unless the two lists have the same n names. */
static bool match_names(const char *const *text, const char *const *in, size_t n, int32_t *new_id)
{
    for (size_t k = 0; k < n; k++) {
        size_t at = 0;
        while (at < n && strcmp(text[k], in[at])) at++;
        for (size_t i = 0; at == n && i < n; i++)
            if (equal_ignoring_case(text[k], in[i])) at = i;
        for (size_t i = 0; at < n && i < k; i++)
            if (new_id[i] == (int32_t)at) at = n;
        if (at >= n) return false;
        new_id[k] = (int32_t)at;
    }
    return true;
}

static bool fail_labels_differ(const ses_examples *d, const ses_examples *like, ses_err *e)
{
    ses_buf list = { 0 };
    append_names(&list, d->name, d->n_labels);
    ses_buf_puts(&list, "; the model has ");
    append_names(&list, like->name, like->n_labels);
    if (ses_buf_ok(&list, e)) ses_fail(e, SES_EARG, "the labels differ: the data have %s", list.data);
    ses_buf_free(&list);
    return false;
}

bool ses_examples_align_labels(ses_examples *d, const ses_examples *like, ses_err *e)
{
    size_t n = d->n_labels;
    if (n != like->n_labels) return fail_labels_differ(d, like, e);
    int32_t *new_id = ses_alloc_array(n + 1, sizeof *new_id, e);
    const char **value = new_id ? ses_alloc_array(n + 1, sizeof *value, e) : NULL;
    bool ok = value != NULL;
    if (ok && !match_names(d->name, like->name, n, new_id) && !match_names(d->value, like->name, n, new_id))
        ok = fail_labels_differ(d, like, e);
    for (size_t k = 0; ok && k < n; k++) {
        value[new_id[k]] = d->value[k];
        d->name[k] = ses_arena_strndup(&d->arena, like->name[k], strlen(like->name[k]), e);
        ok = d->name[k] != NULL;
    }
    if (ok) {
        memcpy(d->value, value, n * sizeof *value);
        renumber(d, new_id);
    }
    ses_free(new_id);
    ses_free(value);
    return ok;
}

static bool has_name(const ses_examples *d, const char *name)
{
    for (size_t i = 0; i < d->n_labels; i++)
        if (equal_ignoring_case(d->name[i], name)) return true;
    return false;
}

bool ses_examples_check_labels(const ses_examples *d, const ses_examples *like, ses_err *e)
{
    for (size_t k = 0; k < d->n_labels; k++)
        if (!has_name(like, d->name[k]) && !has_name(like, d->value[k]))
            return fail_labels_differ(d, like, e);
    return true;
}

ses_examples *ses_examples_from_labels(ses_data_kind kind, const char *const *names, size_t n, ses_err *e)
{
    ses_examples *d = ses_alloc(sizeof *d, e);
    if (!d) return NULL;
    d->kind = kind;
    d->arena.limit = max_bytes;
    d->fixed = true;
    for (size_t k = 0; k < n; k++)
        if (!add_label(d, names[k], strlen(names[k]), NULL, 0, e)) {
            ses_examples_free(d);
            return NULL;
        }
    return d;
}

/* ---- reading ---- */

static bool has_classes(ses_data_kind k)
{
    return k == SES_DATA_CLASSIFY || k == SES_DATA_MULTI || k == SES_DATA_TAG || k == SES_DATA_CHOICE;
}

ses_examples *ses_examples_begin(const ses_data_spec *spec, const ses_examples *like, ses_err *e)
{
    if (like && like->kind != spec->kind) {
        ses_fail(e, SES_EARG, "examples of %s, expected %s", ses_data_kind_name(spec->kind),
                 ses_data_kind_name(like->kind));
        return NULL;
    }
    ses_examples *d = ses_alloc(sizeof *d, e);
    if (!d) return NULL;
    d->kind = spec->kind;
    d->arena.limit = max_bytes;
    d->spec = spec;
    if (like) d->separator = like->separator;
    if (!has_classes(spec->kind) || fix_labels(d, spec, like, e)) return d;
    ses_examples_free(d);
    return NULL;
}

bool ses_examples_take_group(ses_examples *d, ses_string name, int64_t *out, ses_err *e)
{
    bool fresh;
    int64_t next = (int64_t)d->group.count + 1;
    if (ses_strmap_find(&d->group, name.p, name.n, out)) return true;
    *out = next;
    return ses_examples_keep(d, &name, e) && ses_strmap_insert(&d->group, name.p, name.n, next, &fresh, e);
}

bool ses_examples_end(ses_examples *d, ses_err *e)
{
    if (d->raw && !ses_examples_split_labels(d, e)) return false;
    if (has_classes(d->kind) && !d->fixed && !sort_labels(d, e)) return false;
    d->spec = NULL;
    d->fixed = true;
    if (d->n) return true;
    const ses_data_gap *g = d->dropped ? &d->gap[0] : NULL;
    return g ? ses_fail(e, SES_EFORMAT, "line %llu: %s (all rows have gaps: %zu were dropped)",
                        (unsigned long long)g->line[0], g->what, d->dropped)
             : ses_fail(e, SES_EFORMAT, "no examples");
}

ses_examples *ses_examples_open(const char *path, const ses_data_spec *spec, const ses_examples *like,
                                ses_err *e)
{
    static bool (*const read[SES_DATA_FORMAT_COUNT])(ses_examples *, const char *, ses_err *) = {
        [SES_DATA_TABLE] = ses_read_table,           [SES_DATA_CONLL] = ses_read_conll,
        [SES_DATA_SQUAD] = ses_read_squad,           [SES_DATA_MULTIRC] = ses_read_multirc,
        [SES_DATA_RECORD] = ses_read_record,         [SES_DATA_LINES] = ses_read_lines,
        [SES_DATA_WINOGENDER] = ses_read_winogender,
    };
    ses_examples *d = ses_examples_begin(spec, like, e);
    bool is_read = d && read[spec->format](d, path, e);
    if (is_read && ses_examples_end(d, e)) return d;
    if (!d || is_read) ses_wrap(e, "%s", path); /* readers name the file themselves */
    ses_examples_free(d);
    return NULL;
}

void ses_examples_free(ses_examples *d)
{
    if (!d) return;
    ses_strmap_free(&d->map);
    ses_strmap_free(&d->group);
    ses_arena_free(&d->arena);
    ses_free(d->gap);
    ses_free(d->raw);
    ses_free(d->value);
    ses_free(d->name);
    ses_free(d->item);
    ses_free(d);
}

ses_data_kind ses_examples_kind(const ses_examples *d) { return d->kind; }
size_t ses_examples_count(const ses_examples *d) { return d->n; }
const ses_labeled_example *ses_examples_at(const ses_examples *d, size_t i)
{
    return i < d->n ? &d->item[i] : NULL;
}
size_t ses_examples_label_count(const ses_examples *d) { return d->n_labels; }
const char *ses_examples_label_name(const ses_examples *d, size_t i)
{
    return i < d->n_labels ? d->name[i] : NULL;
}
const char *ses_examples_label_value(const ses_examples *d, size_t i)
{
    return i < d->n_labels ? d->value[i] : NULL;
}
size_t ses_examples_skipped(const ses_examples *d) { return d->skipped; }
size_t ses_examples_repaired(const ses_examples *d) { return d->repaired; }
