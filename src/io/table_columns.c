/* Columns of texts and labels by their values: see table_columns.h. */
#include "table_columns.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/number.h"
#include "base/str.h"
#include "base/strmap.h"
#include "records_range.h"
#include "table_text.h"

#include <stdio.h>
#include <string.h>

enum { SAMPLE_ROWS = 1000, MAX_COLUMNS = 256, MAX_LABELS = 200, LABEL_BYTES = 60, NAME_BYTES = 40 };

/* The values of a column. */
typedef struct column {
    const char *name; /* NULL: none */
    size_t n, empty, numbers, phrases, bytes;
    ses_strmap values;
} column;

typedef struct sample {
    ses_arena mem;
    column *column;
    size_t n_columns, rows;
    bool json, no_header;
} sample;

static void sample_free(sample *s)
{
    for (size_t i = 0; i < s->n_columns; i++) ses_strmap_free(&s->column[i].values);
    ses_free(s->column);
    ses_arena_free(&s->mem);
}

/* ---- the values ---- */

/* Whether a value is made of words: blanks between letters. Scripts without blanks: letters that are not
 * ASCII. */
static bool is_phrase(ses_string v)
{
    size_t letters = 0, other = 0, blanks = 0;
    for (size_t i = 0; i < v.n; i++) {
        unsigned char c = (unsigned char)v.p[i], lower = c | 32;
        letters += lower >= 'a' && lower <= 'z';
        other += c >= 0x80;
        blanks += c == ' ' && i && i + 1 < v.n;
    }
    return (blanks && letters + other > blanks) || 2 * other > v.n;
}

static bool add_value(sample *s, column *c, ses_string v, ses_err *e)
{
    double x;
    bool fresh;
    int64_t seen;
    v = ses_trim(v);
    c->n++;
    c->empty += !v.n;
    c->bytes += v.n;
    c->numbers += ses_parse_number(v.p, v.n, &x);
    c->phrases += is_phrase(v);
    if (!v.n || ses_strmap_find(&c->values, v.p, v.n, &seen)) return true;
    const char *copy = ses_arena_strndup(&s->mem, v.p, v.n, e);
    return copy && ses_strmap_insert(&c->values, copy, v.n, 1, &fresh, e);
}

static bool name_columns(sample *s, const ses_records *r, ses_err *e)
{
    size_t n = ses_records_field_count(r);
    s->json = ses_records_format(r) == SES_TABLE_JSONL;
    s->column = ses_alloc_array(n + 1, sizeof *s->column, e);
    for (; s->column && s->n_columns < n && s->n_columns < MAX_COLUMNS; s->n_columns++) {
        const char *name = ses_records_column_name(r, s->n_columns);
        column *c = &s->column[s->n_columns];
        if (name && !(c->name = ses_arena_strndup(&s->mem, name, strlen(name), e))) return false;
    }
    return s->column != NULL;
}

/* Rows that cannot be read are left to the reader of the file. */
static bool sample_read(sample *s, const char *path, const ses_records_options *o, ses_err *e)
{
    ses_records_options all = *o;
    const ses_string *row;
    all.columns = NULL;
    all.n_columns = 0;
    ses_records *r = ses_records_open(path, &all, e);
    bool ok = r != NULL, named = false;
    while (ok && s->rows < SAMPLE_ROWS) {
        bool read = ses_records_next(r, &row, NULL);
        if (read ? !row : !ses_records_row_failed(r)) break;
        if (!read) continue;
        ok = named || name_columns(s, r, e);
        named = true;
        for (size_t i = 0; ok && i < s->n_columns; i++) ok = add_value(s, &s->column[i], row[i], e);
        s->rows++;
    }
    if (ok && !named) ok = name_columns(s, r, e);
    ses_records_free(r);
    return ok;
}

/* ---- the choice ---- */

static bool has_few_values(const column *c)
{
    size_t n = c->values.count;
    return !c->empty && n >= 2 && n <= MAX_LABELS && 2 * n <= c->n && c->bytes <= LABEL_BYTES * c->n;
}

static bool has_texts(const column *c) { return 2 * c->phrases > c->n && 5 * c->numbers < c->n; }

static bool has_label_name(const column *c)
{
    static const char *const names[] = { "sentiment", "intent", "topic", "target",  "emotion",
                                         "polarity",  "rating", "stars", "outcome", "tag" };
    for (size_t k = 0; c->name && k < SES_LEN(names); k++)
        if (ses_is_column_name(c->name, names[k])) return true;
    return false;
}

/* Roles of columns, each with the second choice after it. */
typedef enum role {
    TEXT,
    REPEATED_TEXT, /* with few different texts */
    NAMED_LABEL,   /* few values and a name such as "sentiment" */
    LABEL,
    COLUMN /* any */
} role;

static bool fits(const sample *s, size_t i, role r, size_t taken)
{
    const column *c = &s->column[i];
    if (r == COLUMN) return true;
    if (i == taken) return false;
    if (r <= REPEATED_TEXT) return has_texts(c) && has_few_values(c) == (r == REPEATED_TEXT);
    return has_few_values(c) && (r == LABEL || has_label_name(c));
}

static size_t count(const sample *s, role r, size_t taken, size_t *found)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_columns; i++)
        if (fits(s, i, r, taken)) n++, *found = i;
    return n;
}

static void list(const sample *s, role r, size_t taken, ses_buf *out)
{
    size_t n = 0, begin = out->len;
    for (size_t i = 0; i < s->n_columns && out->len < begin + 200; i++) {
        const char *name = s->column[i].name ? s->column[i].name : "";
        if (fits(s, i, r, taken))
            ses_buf_appendf(out, "%s\"%s\"", n++ ? ", " : "", ses_quoted_of(name, strlen(name)).s);
    }
    if (out->len >= begin + 200) ses_buf_puts(out, ", ...");
}

/* Chooses the only column that may be the first role, or the second if none may be the first. */
static bool choose(const sample *s, role r, role other, size_t taken, const char *option, size_t *found,
                   ses_err *e)
{
    ses_buf b = { 0 };
    size_t n = count(s, r, taken, found);
    if (!n) n = count(s, r = other, taken, found);
    if (n == 1) return true;
    bool text = r <= REPEATED_TEXT;
    ses_buf_appendf(&b, "which column has the %s? ", text ? "texts" : "labels");
    if (n) list(s, r, taken, &b);
    ses_buf_appendf(&b, "%s%s; name it with %s; columns: ", n ? " may" : "none seems to",
                    text ? n ? " be texts" : " have texts"
                    : n  ? " be labels"
                         : " have labels",
                    option);
    list(s, COLUMN, 0, &b);
    if (ses_buf_ok(&b, e)) ses_fail(e, SES_EARG, "%s", b.data);
    ses_buf_free(&b);
    return false;
}

/* The number of a column given by name or number; n_columns: none is given, or it is not there. */
static size_t index_of(const sample *s, const char *given)
{
    double x;
    for (size_t i = 0; given && i < s->n_columns; i++)
        if (s->column[i].name && ses_is_column_name(s->column[i].name, given)) return i;
    bool number = given && ses_parse_number(given, strlen(given), &x) && x >= 1 && x <= (double)s->n_columns;
    return number ? (size_t)x - 1 : s->n_columns;
}

/* Whether the first line of a table of two columns has one of the values of the column beside the texts. */
static bool lacks_header(const sample *s, size_t text)
{
    int64_t seen;
    if (s->json || s->n_columns != 2 || !has_few_values(&s->column[1 - text])) return false;
    const char *name = s->column[1 - text].name;
    ses_string v = name ? ses_trim((ses_string){ name, strlen(name) }) : (ses_string){ 0 };
    return v.n && ses_strmap_find(&s->column[1 - text].values, v.p, v.n, &seen);
}

/* Whether the name of a column is more like a text. */
static bool is_sentence(const column *c)
{
    return c->name && (strlen(c->name) > NAME_BYTES || strpbrk(c->name, ".!?"));
}

/* The name of a column, or its number where the name is not one. */
static void put_name(const sample *s, size_t i, bool by_number, char out[static SES_COLUMN_NAME])
{
    const char *name = s->column[i].name;
    bool unique = name && *name && strlen(name) < SES_COLUMN_NAME;
    for (size_t k = 0; unique && k < s->n_columns; k++)
        unique = k == i || !s->column[k].name || strcmp(s->column[k].name, name) != 0;
    if (by_number || (!unique && !s->json))
        snprintf(out, SES_COLUMN_NAME, "%zu", i + 1);
    else
        snprintf(out, SES_COLUMN_NAME, "%s", name);
}

static void put_notice(const sample *s, size_t text, size_t label, const ses_column_question *q,
                       ses_found_columns *f)
{
    char name[2][SES_COLUMN_NAME];
    const char *quote = f->no_header ? "" : "\"";
    bool labels = label < s->n_columns && !q->no_labels;
    put_name(s, text, f->no_header, name[0]);
    if (labels) put_name(s, label, f->no_header, name[1]);
    int n =
        snprintf(f->notice, sizeof f->notice, "%stexts are in column %s%s%s",
                 f->no_header ? "no header: " : "", quote, ses_quoted_of(name[0], strlen(name[0])).s, quote);
    if (labels)
        n += snprintf(f->notice + n, sizeof f->notice - (size_t)n, ", labels in %s%s%s", quote,
                      ses_quoted_of(name[1], strlen(name[1])).s, quote);
    snprintf(f->notice + n, sizeof f->notice - (size_t)n, ", found by their values (%s%s%s choose)",
             q->text_option, labels ? " and " : "", labels ? q->label_option : "");
}

bool ses_found_columns_read(ses_found_columns *f, const char *path, const ses_records_options *o,
                            const ses_column_question *q, ses_err *e)
{
    sample s = { 0 };
    bool wants_text = !q->text, wants_label = !q->label && !q->no_labels;
    *f = (ses_found_columns){ 0 };
    if (!sample_read(&s, path, o, e)) return sample_free(&s), false;
    size_t text = index_of(&s, q->text), label = index_of(&s, q->label);
    bool ok = !wants_text || choose(&s, TEXT, REPEATED_TEXT, label, q->text_option, &text, e);
    ok = ok && (!wants_label || choose(&s, NAMED_LABEL, LABEL, text, q->label_option, &label, e));
    f->no_header = ok && !q->text && lacks_header(&s, text);
    if (ok && wants_text && !f->no_header && !s.json && is_sentence(&s.column[text]))
        ok = ses_fail(e, SES_EARG,
                      "is \"%.100s\" the name of a column? If the first line is a row: --no-header, else %s",
                      ses_quoted_of(s.column[text].name, strlen(s.column[text].name)).s, q->text_option);
    if (ok && wants_text) put_name(&s, text, f->no_header, f->text);
    if (ok && wants_label) put_name(&s, label, f->no_header, f->label);
    if (ok && text < s.n_columns) put_notice(&s, text, label, q, f);
    sample_free(&s);
    return ok || ses_wrap(e, "%s", path);
}
