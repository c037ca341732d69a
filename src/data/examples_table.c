/* Reads examples from rows of a table. */
#include "examples_impl.h"

#include "base/alloc.h"
#include "base/number.h"
#include "io/records_range.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MAX_CHOICES = 64, TEXT_A = 0 };

/* Roles of the fields of a row. */
typedef struct roles {
    char *name[MAX_CHOICES + 5];
    size_t n;
    size_t b, label, prefix, group, choice, n_choices; /* field indices; 0: none, as field 0 is text_a */
} roles;

static bool add_role(roles *r, const char *s, size_t n, ses_err *e)
{
    if (r->n == SES_LEN(r->name)) return ses_fail(e, SES_EARG, "more than %d choices", (int)MAX_CHOICES);
    r->name[r->n] = ses_strndup(s, n, e);
    return r->name[r->n] && ++r->n;
}

static bool make_roles(roles *r, const ses_data_spec *s, ses_err *e)
{
    const char *name;
    size_t n;
    if (!s->text_a) return ses_fail(e, SES_EARG, "no text column specified");
    if (s->text_b && !strcmp(s->text_a, s->text_b))
        return ses_fail(e, SES_EARG, "column %s is both texts of a row: name another one with --pair",
                        s->text_a);
    if (!add_role(r, s->text_a, strlen(s->text_a), e)) return false;
    bool target = s->kind == SES_DATA_SEQ2SEQ; /* text_b is the target */
    if (s->text_b && !(target && s->no_labels)) {
        r->b = r->n;
        if (!add_role(r, s->text_b, strlen(s->text_b), e)) return false;
    }
    if (s->label && !s->no_labels && s->kind != SES_DATA_TUPLE) {
        r->label = r->n;
        if (!add_role(r, s->label, strlen(s->label), e)) return false;
    }
    if (s->prefix_column) {
        r->prefix = r->n;
        if (!add_role(r, s->prefix_column, strlen(s->prefix_column), e)) return false;
    }
    if (s->group) {
        r->group = r->n;
        if (!add_role(r, s->group, strlen(s->group), e)) return false;
    }
    r->choice = r->n;
    bool tuple = s->kind == SES_DATA_TUPLE;
    for (size_t k = 0; (tuple || s->kind == SES_DATA_CHOICE) && ses_list_at(s->choices, k, &name, &n);
         k++, r->n_choices++)
        if (!add_role(r, name, n, e)) return false;
    if (s->kind == SES_DATA_CHOICE && r->n_choices < 2)
        return ses_fail(e, SES_EARG, "multiple choice needs at least two choice columns");
    if (target && !r->b && !s->no_labels) return ses_fail(e, SES_EARG, "no target column specified");
    if (tuple && !r->b) return ses_fail(e, SES_EARG, "no column of positives specified");
    if (!r->label && !s->no_labels && !target && !tuple && s->kind != SES_DATA_TEXT)
        return ses_fail(e, SES_EARG, "no label column specified");
    return true;
}

/* A number, optionally with spaces around it and a leading '+'. */
static bool read_number(const ses_string *f, double *x, ses_err *e)
{
    const char *s = f->p;
    size_t n = f->n;
    while (n && *s == ' ') s++, n--;
    while (n && s[n - 1] == ' ') n--;
    if (n && *s == '+') s++, n--;
    if (ses_parse_number(s, n, x) && fabs(*x) <= FLT_MAX) return true;
    return ses_fail(e, SES_EFORMAT, "\"%s\" is not a finite number", ses_quoted_of(f->p, f->n).s);
}

static bool read_choices(ses_examples *d, const ses_string *row, const roles *r, ses_labeled_example *x,
                         ses_err *e)
{
    ses_string *part = ses_arena_array(&d->arena, r->n_choices, sizeof *part, e);
    if (!part) return false;
    for (size_t k = 0; k < r->n_choices; k++) {
        part[k] = row[r->choice + k];
        if (!ses_examples_keep(d, &part[k], e)) return false;
    }
    x->parts = part;
    x->n_parts = r->n_choices;
    if (x->label >= (int32_t)r->n_choices)
        return ses_fail(e, SES_EARG, "the label is not the index of a choice");
    return true;
}

static bool read_text(ses_examples *d, const ses_string *text, const ses_string *prefix, ses_string *out,
                      ses_err *e)
{
    ses_buf b = { 0 };
    if (prefix) ses_buf_appendf(&b, "%s: %s", prefix->p, text->p);
    *out = prefix ? (ses_string){ b.data, b.len } : *text;
    bool ok = ses_buf_ok(&b, e) && ses_examples_keep(d, out, e);
    ses_buf_free(&b);
    return ok;
}

static bool read_row(ses_examples *d, const ses_string *row, const roles *r, ses_labeled_example *x,
                     ses_err *e)
{
    const ses_string *label = r->label ? &row[r->label] : NULL;
    if (!read_text(d, &row[TEXT_A], r->prefix ? &row[r->prefix] : NULL, &x->text_a, e)) return false;
    if (r->b) x->text_b = row[r->b];
    if (r->b && !ses_examples_keep(d, &x->text_b, e)) return false;
    if (r->group && !ses_examples_take_group(d, row[r->group], &x->group, e)) return false;
    switch (label ? d->kind : SES_DATA_SEQ2SEQ) {
    case SES_DATA_REGRESS:
        if (!read_number(label, &x->target, e)) return false;
        break;
    case SES_DATA_MULTI:
        if (!ses_examples_keep_labels(d, *label, e)) return false;
        break;
    case SES_DATA_CLASSIFY:
    case SES_DATA_CHOICE:
        if (!ses_examples_take_label(d, label->p, label->n, &x->label, e)) return false;
        break;
    default: break;
    }
    return !r->n_choices || read_choices(d, row, r, x, e);
}

static bool is_table_kind(ses_data_kind k) { return k != SES_DATA_TAG && k != SES_DATA_SPAN; }

struct ses_table_reader {
    ses_records *in;
    const char *path; /* borrowed */
    roles r;
};

void ses_table_reader_free(ses_table_reader *t)
{
    if (!t) return;
    ses_records_free(t->in);
    for (size_t k = 0; k < SES_LEN(t->r.name); k++) ses_free(t->r.name[k]);
    ses_free(t);
}

ses_table_reader *ses_table_reader_open(const ses_data_spec *s, const char *path, ses_err *e)
{
    ses_table_reader *t = ses_alloc(sizeof *t, e);
    if (!t) return NULL;
    t->path = path;
    bool ok = is_table_kind(s->kind)
                  ? make_roles(&t->r, s, e)
                  : ses_fail(e, SES_EARG, "%s data cannot be read from a table", ses_data_kind_name(s->kind));
    if (ok) {
        ses_records_options o = { .format = s->table,
                                  .quotes = s->quotes,
                                  .delimiter = s->delimiter,
                                  .no_header = s->no_header,
                                  .ragged = s->ragged,
                                  .columns = (const char *const *)t->r.name,
                                  .n_columns = t->r.n,
                                  .encoding = s->encoding,
                                  .keep_arrays = s->kind == SES_DATA_MULTI };
        t->in = ses_records_open(path, &o, e);
    }
    if (t->in) return t;
    ses_table_reader_free(t);
    return NULL;
}

/* The empty part of a row; NULL: none. */
static const char *empty_text(const ses_string *row, const roles *r)
{
    if (!ses_trim(row[TEXT_A]).n) return "empty text";
    return r->b && !ses_trim(row[r->b]).n ? "empty second text" : NULL;
}

/* Adds a row; one with a gap may be dropped. */
static bool add_row(ses_table_reader *t, ses_examples *d, const ses_string *row, ses_err *e)
{
    ses_err why = { 0 };
    ses_labeled_example x = {
        .line = ses_records_line(t->in), .label = SES_IGNORE_INDEX, .id = { "", 0 }, .text_b = { "", 0 }
    };
    const char *empty = empty_text(row, &t->r);
    bool drop = empty && d->spec->bad_rows == SES_BAD_ROWS_DROP;
    if (empty && !ses_examples_add_gap(d, empty, false, x.line, e)) return false;
    d->dropped += drop;
    if (drop) return true;
    if (read_row(d, row, &t->r, &x, &why)) return ses_examples_add(d, &x, e);
    return ses_examples_drop(d, &why, x.line, e) ||
           ses_wrap(e, "%s: line %llu", t->path, (unsigned long long)x.line);
}

bool ses_table_reader_add(ses_table_reader *t, ses_examples *d, bool *end, ses_err *e)
{
    const ses_string *row;
    for (size_t before = d->n;;) {
        ses_err why = { 0 };
        bool read = ses_records_next(t->in, &row, &why);
        if (!read && !ses_records_row_failed(t->in)) return ses_fail(e, why.code, "%s: %s", t->path, why.msg);
        *end = read && !row;
        if (*end) return true;
        bool ok = read ? add_row(t, d, row, e)
                       : ses_examples_drop(d, &why, ses_records_line(t->in), e) || ses_wrap(e, "%s", t->path);
        if (!ok || d->n > before) return ok;
    }
}

const ses_records *ses_table_reader_records(const ses_table_reader *t) { return t->in; }

bool ses_read_table(ses_examples *d, const char *path, ses_err *e)
{
    ses_table_reader *t = ses_table_reader_open(d->spec, path, e);
    bool ok = t != NULL, end = false;
    while (ok && !end) ok = ses_table_reader_add(t, d, &end, e);
    ses_table_reader_free(t);
    return ok;
}
