/* Rows of labeled files that have gaps: counted, dropped or refused; notices about them and about labels. */
#include "examples_notices.h"

#include "examples_impl.h"

#include "base/alloc.h"
#include "base/number_text.h"
#include "base/str.h"
#include "base/strmap.h"
#include "base/unicode/lowercase.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_GAPS = 32, TEXT = 1200, SHOWN_LABELS = 20 };

/* ---- counting ---- */

/* A message without "line N: " at its start. */
static const char *without_line(const char *s)
{
    if (strncmp(s, "line ", 5) != 0) return s;
    size_t digits = strspn(s + 5, "0123456789");
    return digits && !strncmp(s + 5 + digits, ": ", 2) ? s + 7 + digits : s;
}

bool ses_examples_add_gap(ses_examples *d, const char *why, bool is_error, uint64_t line, ses_err *e)
{
    size_t i = 0;
    const char *what = without_line(why);
    while (i < d->n_gaps && strcmp(d->gap[i].what, what) != 0) i++;
    if (i == MAX_GAPS) i--, what = "other errors"; /* the last entry takes the rest */
    if (i + 1 == MAX_GAPS && i == d->n_gaps) what = "other errors", is_error = true;
    if (i == d->n_gaps) {
        if (!ses_array_reserve(&d->gap, &d->gap_cap, i + 1, sizeof *d->gap, e)) return false;
        char *copy = ses_arena_strndup(&d->arena, what, strlen(what), e);
        if (!copy) return false;
        d->gap[d->n_gaps++] = (ses_data_gap){ .what = copy, .is_error = is_error };
    }
    ses_data_gap *g = &d->gap[i];
    if (g->rows < SES_LEN(g->line)) g->line[g->rows] = line;
    g->rows++;
    return true;
}

bool ses_examples_drop(ses_examples *d, const ses_err *why, uint64_t line, ses_err *e)
{
    bool drops = d->spec->bad_rows != SES_BAD_ROWS_FAIL && why->code != SES_ENOMEM && why->code != SES_EIO;
    if (!drops) return ses_fail(e, why->code, "%s", why->msg);
    d->dropped++;
    return ses_examples_add_gap(d, why->msg, true, line, e);
}

const ses_data_gap *ses_examples_gap(const ses_examples *d, size_t i)
{
    return i < d->n_gaps ? &d->gap[i] : NULL;
}

size_t ses_examples_dropped(const ses_examples *d) { return d->dropped; }

/* ---- notices ---- */

typedef struct notices {
    const ses_examples *d;
    const char *name;
    ses_data_notice_fn *fn;
    void *ctx;
} notices;

static void put(const notices *n, ses_buf *b)
{
    char text[TEXT];
    if (!b->data) return;
    snprintf(text, sizeof text, "%s: %s", n->name, b->data);
    n->fn(n->ctx, text);
    b->len = 0;
}

/* ---- gaps ---- */

void ses_data_gap_text(const ses_data_gap *g, char *out, size_t size)
{
    char number[SES_NUMBER_TEXT];
    size_t shown = g->rows < SES_LEN(g->line) ? g->rows : SES_LEN(g->line), n;
    n = (size_t)snprintf(out, size, "%s row%s: %s (line%s ", ses_grouped_text(number, (int64_t)g->rows),
                         g->rows == 1 ? "" : "s", g->what, g->rows == 1 ? "" : "s");
    for (size_t i = 0; i < shown && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%" PRIu64, i ? ", " : "", g->line[i]);
    if (n < size) snprintf(out + n, size - n, g->rows > shown ? ", ...)" : ")");
}

static void tell_gaps(const notices *n, ses_buf *b)
{
    char text[400], all[SES_NUMBER_TEXT];
    const ses_data_gap *g;
    size_t dropped = ses_examples_dropped(n->d), count = ses_examples_count(n->d), empty = 0;
    for (size_t i = 0; (g = ses_examples_gap(n->d, i)); i++) {
        ses_data_gap_text(g, text, sizeof text);
        ses_buf_appendf(b, "%s%s", i ? "; " : "", text);
        if (!strcmp(g->what, "empty text")) empty = g->rows;
    }
    if (!ses_examples_gap(n->d, 0)) return;
    if (dropped)
        ses_buf_appendf(b, ": dropped, %s rows are left", ses_grouped_text(all, (int64_t)count));
    else if (empty == count)
        ses_buf_puts(b, ": all texts are empty; is it the right column (--text)?");
    else
        ses_buf_appendf(b, " of %s; --skip-bad drops them", ses_grouped_text(all, (int64_t)count));
    put(n, b);
}

/* ---- labels ---- */

static void tell_separator(const notices *n, ses_buf *b)
{
    char separator = ses_examples_label_separator(n->d);
    size_t labels = ses_examples_label_count(n->d);
    if (ses_examples_kind(n->d) != SES_DATA_MULTI || !labels) return;
    if (separator == '[')
        ses_buf_puts(b, "labels are JSON arrays");
    else if (separator)
        ses_buf_appendf(b, "labels are separated by \"%c\"", separator);
    else
        ses_buf_puts(b, "no row has several labels (--label-separator names the character between them)");
    ses_buf_appendf(b, "; %zu label%s: ", labels, labels == 1 ? "" : "s");
    for (size_t i = 0; i < labels && i < SHOWN_LABELS; i++)
        ses_buf_appendf(b, "%s%s", i ? ", " : "", ses_examples_label_name(n->d, i));
    if (labels > SHOWN_LABELS) ses_buf_puts(b, ", ...");
    if (n->d->other_separator)
        ses_buf_appendf(b, "; \"%c\" is in %zu row%s, too: --label-separator chooses", n->d->other_separator,
                        n->d->other_rows, n->d->other_rows == 1 ? "" : "s");
    put(n, b);
}

/* The label in lower case, without blanks at its ends and with single ones inside. */
static void fold(const char *s, ses_buf *out)
{
    ses_buf lower = { 0 };
    ses_lower_append(&lower, s, strlen(s));
    ses_string t = ses_trim((ses_string){ lower.data ? lower.data : "", lower.len });
    out->len = 0;
    ses_buf_puts(out, "");
    for (size_t i = 0; i < t.n; i++) {
        bool blank = t.p[i] == ' ' || t.p[i] == '\t', before = out->len && out->data[out->len - 1] == ' ';
        if (!blank || !before) ses_buf_put(out, blank ? ' ' : t.p[i]);
    }
    ses_buf_free(&lower);
}

/* Labels that people write as one. */
static bool tell_similar(const notices *n, ses_buf *b, ses_err *e)
{
    ses_strmap seen = { 0 };
    ses_buf folded = { 0 };
    size_t labels = ses_examples_label_count(n->d), found = 0;
    char **key = ses_alloc_array(labels + 1, sizeof *key, e);
    bool ok = key != NULL, fresh;
    for (size_t i = 0; ok && i < labels; i++) {
        const char *name = ses_examples_label_name(n->d, i);
        int64_t first;
        fold(name, &folded);
        ok = ses_buf_ok(&folded, e);
        if (ok && ses_strmap_find(&seen, folded.data ? folded.data : "", folded.len, &first)) {
            const char *other = ses_examples_label_name(n->d, (size_t)first);
            if (found++ < 5) ses_buf_appendf(b, "%s\"%s\" and \"%s\"", found > 1 ? ", " : "", other, name);
            continue;
        }
        key[i] = ok ? ses_strndup(folded.data ? folded.data : "", folded.len, e) : NULL;
        ok = key[i] && ses_strmap_insert(&seen, key[i], folded.len, (int64_t)i, &fresh, e);
    }
    if (found > 5) ses_buf_puts(b, ", ...");
    if (found) ses_buf_puts(b, " are different labels: they differ only in case or blanks");
    if (ok && found) put(n, b);
    for (size_t i = 0; key && i < labels; i++) ses_free(key[i]);
    ses_free(key);
    ses_strmap_free(&seen);
    ses_buf_free(&folded);
    return ok;
}

/* Words that other programs write for a missing value. */
static bool tell_missing(const notices *n, ses_buf *b, ses_err *e)
{
    static const char *const missing[] = { "nan", "null", "<na>", "n/a", "#n/a", "nil" };
    ses_buf folded = { 0 };
    size_t found = 0;
    bool classes = ses_examples_kind(n->d) == SES_DATA_CLASSIFY || ses_examples_kind(n->d) == SES_DATA_MULTI;
    for (size_t i = 0; classes && i < ses_examples_label_count(n->d); i++) {
        fold(ses_examples_label_name(n->d, i), &folded);
        for (size_t k = 0; folded.data && k < SES_LEN(missing); k++)
            if (ses_equal(missing[k], strlen(missing[k]), folded.data))
                ses_buf_appendf(b, "%s\"%s\"", found++ ? ", " : "", ses_examples_label_name(n->d, i));
    }
    if (found)
        ses_buf_puts(
            b, found > 1
                   ? " are learned as labels: if they mean that the label is missing, remove these rows"
                   : " is learned as a label: if it means that the label is missing, remove these rows");
    if (found) put(n, b);
    bool ok = ses_buf_ok(&folded, e);
    ses_buf_free(&folded);
    return ok;
}

static void tell_single(const notices *n, ses_buf *b)
{
    size_t count = ses_examples_count(n->d);
    const ses_labeled_example *first = ses_examples_at(n->d, 0);
    if (ses_examples_kind(n->d) != SES_DATA_CLASSIFY || count < 2 || first->label < 0) return;
    for (size_t i = 1; i < count; i++)
        if (ses_examples_at(n->d, i)->label != first->label) return;
    ses_buf_appendf(b, "all %zu rows have the label \"%s\": scores of other labels are not measured", count,
                    ses_examples_label_name(n->d, (size_t)first->label));
    put(n, b);
}

bool ses_examples_note_columns(ses_examples *d, const char *notice, ses_err *e)
{
    if (!*notice) return true;
    d->columns_note = ses_arena_strndup(&d->arena, notice, strlen(notice), e);
    return d->columns_note != NULL;
}

const char *ses_examples_columns_note(const ses_examples *d) { return d->columns_note; }

bool ses_data_notices(const ses_examples *d, const char *name, ses_data_notice_fn *fn, void *ctx, ses_err *e)
{
    notices n = { d, name, fn, ctx };
    ses_buf b = { 0 };
    if (d->columns_note) ses_buf_puts(&b, d->columns_note);
    put(&n, &b);
    tell_gaps(&n, &b);
    tell_single(&n, &b);
    bool ok = ses_buf_ok(&b, e);
    ses_buf_free(&b);
    return ok;
}

bool ses_data_label_notices(const ses_examples *d, const char *name, ses_data_notice_fn *fn, void *ctx,
                            ses_err *e)
{
    notices n = { d, name, fn, ctx };
    ses_buf b = { 0 };
    tell_separator(&n, &b);
    bool ok = tell_similar(&n, &b, e) && tell_missing(&n, &b, e) && ses_buf_ok(&b, e);
    ses_buf_free(&b);
    return ok;
}
