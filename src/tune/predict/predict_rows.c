/* Predictions for the rows of a file, in groups. */
#define _POSIX_C_SOURCE 200809L
#include "predict_part.h"
#include "predictor_impl.h"

#include "base/number_text.h"
#include "data/examples_impl.h"
#include "io/records_range.h"
#include "train/training_events.h"

#include <string.h>
#include <unistd.h>

enum { GROUP = 1024, SLICE = 64 };

typedef struct row_stream {
    ses_predictor *p;
    const ses_predict_stream *s;
    const ses_predict_part *part; /* NULL: the whole file */
    const char *path;
    ses_data_spec spec;
    ses_table_reader *table;
    ses_finetune_set all; /* counts for the notices */
    int64_t empty[2];     /* rows with an empty text, second text */
    int64_t labels;       /* rows whose text is a label of the model */
    ses_err broken;       /* why reading ended */
    bool end;
} row_stream;

/* Reads a row; the row that fails is not part of d. */
static bool add_row(row_stream *r, ses_examples *d, ses_err *e)
{
    const ses_records *row = ses_table_reader_records(r->table);
    if (!ses_table_reader_add(r->table, d, &r->end, e)) return false;
    if (r->end) return true;
    if (r->part && !r->part->on_start(r->s->ctx, ses_records_offset(row), e)) return false;
    if (!r->s->on_row || r->s->on_row(r->s->ctx, row, e)) return true;
    d->n--;
    return ses_wrap(e, "%s: line %llu", r->path, (unsigned long long)ses_records_line(row));
}

/* Reads the next group; NULL without an error: there is none. After a row that cannot be read (`broken`), the
 * group has the rows before it. */
static ses_examples *read_group(row_stream *r, ses_err *e)
{
    const ses_predictor *p = r->p;
    size_t limit = !p->rows_before ? 1 : r->s->group > 0 ? (size_t)r->s->group : GROUP;
    ses_examples *d = ses_examples_begin(&r->spec, r->spec.label_values ? NULL : p->labels, e);
    if (!d) return NULL;
    while (!r->end && ses_examples_count(d) < limit) r->end = !add_row(r, d, &r->broken) || r->end;
    if (!ses_examples_count(d) && (p->rows_before || r->broken.code || r->part)) {
        ses_examples_free(d);
        return NULL;
    }
    bool ok = ses_examples_end(d, e) || ses_wrap(e, "%s", r->path);
    if (ok && r->spec.label_values && p->has_label_names)
        ok = ses_examples_align_labels(d, p->labels, e) || ses_wrap(e, "%s", r->path);
    if (ok) return d;
    ses_examples_free(d);
    return NULL;
}

static bool is_label(const ses_predictor *p, ses_string text)
{
    ses_string x = ses_trim(text);
    for (size_t i = 0; p->has_label_names && i < ses_examples_label_count(p->labels); i++)
        if (ses_equal(x.p, x.n, ses_examples_label_name(p->labels, i))) return true;
    return false;
}

static bool run_group(row_stream *r, ses_examples *d, ses_err *e)
{
    r->p->is_partial = !r->end;
    ses_predictions *out = ses_predictions_of(r->p, d, r->path, e);
    if (!out) return false;
    r->all.n_rows += out->set.n_rows;
    r->all.n_truncated += out->set.n_truncated;
    r->all.n_lost_words += out->set.n_lost_words;
    r->all.n_shortened_words += out->set.n_shortened_words;
    r->p->rows_before += (int64_t)out->set.n_rows;
    for (size_t i = 0; i < ses_examples_count(d); i++)
        r->labels += is_label(r->p, ses_examples_at(d, i)->text_a);
    const ses_data_gap *g;
    for (size_t i = 0; (g = ses_examples_gap(d, i)); i++)
        r->empty[strcmp(g->what, "empty text") != 0] += (int64_t)g->rows; /* a row with an error ends them */
    bool ok = r->s->on_predictions(r->s->ctx, out, e);
    ses_predictions_free(out);
    return ok;
}

static void tell_empty(const row_stream *r)
{
    const char *column[2] = { r->spec.text_a, r->spec.text_b };
    char some[SES_NUMBER_TEXT], all[SES_NUMBER_TEXT];
    for (int k = 0; k < 2; k++)
        if (r->empty[k])
            ses_training_notify(r->p->o.on_event, r->p->o.ctx, "%s: %s of %s texts of column %s are empty",
                                r->path, ses_grouped_text(some, r->empty[k]),
                                ses_grouped_text(all, (int64_t)r->all.n_rows), column[k] ? column[k] : "?");
}

static void tell_labels(const row_stream *r)
{
    char all[SES_NUMBER_TEXT];
    if (r->labels < 2 || r->labels != (int64_t)r->all.n_rows) return;
    ses_training_notify(
        r->p->o.on_event, r->p->o.ctx,
        "%s: all %s texts of column %s are labels of the model: name the column of the texts with "
        "--text",
        r->path, ses_grouped_text(all, r->labels), r->spec.text_a);
}

/* Predicts the rows of a table. A row that cannot be read ends it, after the rows before. */
static bool run_groups(row_stream *r, ses_err *e)
{
    ses_predictor *p = r->p;
    bool ok = true, several = false;
    while (ok && !r->end) {
        ses_examples *d = read_group(r, e);
        if (!d) break;
        several = p->rows_before > 0;
        ok = run_group(r, d, e);
        ses_examples_free(d);
    }
    p->rows_before = 0;
    p->is_partial = false;
    if (ok && several) tell_empty(r);
    if (ok) tell_labels(r);
    if (ok && several) ses_finetune_report_set(p->tuner, &r->all, r->path, p->o.on_event, p->o.ctx);
    if (r->broken.code) ses_fail(e, r->broken.code, "%s", r->broken.msg);
    return ok && !e->code;
}

/* Predicts the rows of a part in groups, without reading the file again. */
static bool run_slices(row_stream *r, const ses_examples *all, ses_err *e)
{
    uint64_t n = ses_examples_count(all), bytes = r->part->bytes;
    bool ok = true;
    for (size_t i = 0; ok && i < n;) {
        ses_examples slice = *all;
        size_t from = i, limit = r->s->group > 0 ? (size_t)r->s->group : SLICE;
        for (; ok && i < n && i - from < limit; i++) {
            uint64_t at = bytes / n * i + bytes % n * i / n;
            if (at < r->part->begin && i == from) from++;
            if (at < r->part->begin) continue;
            if (at >= r->part->end) break;
            ok = r->part->on_start(r->s->ctx, at, e);
        }
        if (!ok || i == from) break;
        slice.item += from;
        slice.n = i - from;
        r->end = i == n;
        ok = run_group(r, &slice, e);
    }
    r->p->rows_before = 0;
    r->p->is_partial = false;
    return ok;
}

static bool run_whole(row_stream *r, ses_err *e)
{
    if (r->s->on_row)
        return ses_fail(e, SES_EARG, "%s: expected rows of CSV, TSV or JSON lines, one prediction for each",
                        r->path);
    if (r->part) {
        ses_examples *all = ses_predictor_read(r->p, r->path, false, e);
        bool done = all && run_slices(r, all, e);
        ses_examples_free(all);
        return done;
    }
    ses_predictions *out = ses_predictor_predict(r->p, r->path, e);
    bool ok = out && r->s->on_predictions(r->s->ctx, out, e);
    ses_predictions_free(out);
    return ok;
}

/* Shows the first row of the table to the caller, if the part begins after it. */
static bool show_first_row(row_stream *r, ses_err *e)
{
    const ses_string *row;
    off_t before = strcmp(r->path, "-") ? -1 : lseek(STDIN_FILENO, 0, SEEK_CUR);
    ses_table_reader *t = ses_table_reader_open(&r->spec, r->path, e);
    const ses_records *first = t ? ses_table_reader_records(t) : NULL;
    bool ok = t && (ses_records_next((ses_records *)first, &row, e) || ses_wrap(e, "%s", r->path));
    if (ok && row && ses_records_offset(first) < r->part->begin)
        ok = r->part->on_first(r->s->ctx, first, e) || ses_wrap(e, "%s", r->path);
    ses_table_reader_free(t);
    if (before >= 0) lseek(STDIN_FILENO, before, SEEK_SET); /* it is read again */
    return ok;
}

static bool open_table(row_stream *r, ses_err *e)
{
    const ses_predict_part *part = r->part;
    if (part && part->begin && part->on_first && !show_first_row(r, e)) return false;
    r->table = ses_table_reader_open(&r->spec, r->path, e);
    if (!r->table || !part) return r->table != NULL;
    ses_records *in = (ses_records *)ses_table_reader_records(r->table);
    return ses_records_set_range(in, r->path, part->begin, part->end, e) || ses_wrap(e, "%s", r->path);
}

bool ses_predictor_predict_part(ses_predictor *p, const char *path, const ses_predict_stream *s,
                                const ses_predict_part *part, ses_err *e)
{
    ses_err local = { 0 };
    row_stream r = { .p = p, .s = s, .part = part, .path = path, .spec = p->spec };
    if (!e) e = &local; /* an error ends the groups */
    r.spec.no_labels = true;
    r.spec.bad_rows = SES_BAD_ROWS_FAIL; /* each row has a prediction */
    ses_found_columns found;
    if (!ses_data_find_columns(&r.spec, path, &found, e) || !ses_predictor_check_pair(p, &r.spec, path, e))
        return false;
    if (*found.notice) ses_training_notify(p->o.on_event, p->o.ctx, "%s: %s", path, found.notice);
    if (r.spec.format != SES_DATA_TABLE || r.spec.kind == SES_DATA_TEXT) return run_whole(&r, e);
    bool ok = open_table(&r, e) && run_groups(&r, e);
    ses_table_reader_free(r.table);
    return ok;
}

bool ses_predictor_predict_stream(ses_predictor *p, const char *path, const ses_predict_stream *s, ses_err *e)
{
    return ses_predictor_predict_part(p, path, s, NULL, e);
}
