/* predict --submission: the files of GLUE (TSV with index and prediction) and SuperGLUE (JSON lines with
 * idx and label). */
#include "submission.h"

#include "base/alloc.h"
#include "base/file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct submission {
    ses_submission_suite suite;
    const char *benchmark, *file;
    int64_t rows;
    const char *text, *pair, *values;
} submissions[] = {
#define SES_SUBMISSION(suite, benchmark, file, rows, text, pair, values) \
    { SES_SUBMISSION_##suite, benchmark, file, rows, text, pair, values },
#include "submissions.def"
#undef SES_SUBMISSION
};

/* A file that is being written. */
typedef struct job {
    const struct submission *s;
    const ses_benchmark *b;
    int64_t read, written; /* rows */
    ses_buf out;
} job;

static const struct submission *find(int suite, const char *task, ses_err *e)
{
    static const char *const names[] = { "glue", "superglue" };
    ses_buf list = { 0 };
    for (size_t i = 0; i < SES_LEN(submissions); i++) {
        if ((int)submissions[i].suite != suite) continue;
        if (!strcmp(submissions[i].benchmark, task)) return &submissions[i];
        ses_buf_appendf(&list, "%s%s", list.len ? ", " : "", submissions[i].benchmark);
    }
    if (ses_buf_ok(&list, e))
        ses_fail(e, SES_EUSAGE, "--submission %s: the task is %s; expected --task with one of %s",
                 names[suite], task, list.data);
    ses_buf_free(&list);
    return NULL;
}

/* ---- rows ---- */

/* The index that a row of the test file has: *index; -1: none. */
static int64_t index_of(const ses_records *row)
{
    int64_t index = -1;
    if (ses_records_format(row) == SES_TABLE_JSONL)
        return ses_json_int(ses_json_get(ses_records_json(row), "idx"), &index) ? index : -1;
    for (size_t i = 0; i < ses_records_name_count(row) && i < ses_records_source_count(row); i++) {
        ses_string f = ses_records_source_field(row, i);
        char text[24] = "";
        if (strcmp(ses_records_name(row, i), "index") || f.n >= sizeof text) continue;
        memcpy(text, f.p, f.n);
        if (sscanf(text, "%" SCNd64, &index) != 1) index = -1;
    }
    return index;
}

static bool on_row(void *ctx, const ses_records *row, ses_err *e)
{
    job *j = ctx;
    int64_t index = index_of(row), at = j->read++;
    return index < 0 || index == at ||
           ses_fail(e, SES_EFORMAT,
                    "the index is %" PRId64 ", expected %" PRId64 ": a submission has the rows of the "
                    "test set in their order",
                    index, at);
}

/* Item i of a list "a|b"; "" past the end. */
static ses_string item_of(const char *list, size_t i)
{
    ses_string s = { "", 0 };
    if (!ses_list_at(list, i, &s.p, &s.n)) s = (ses_string){ "", 0 };
    return s;
}

/* The benchmark's own value of a label, by its name or value; n 0: unknown. */
static ses_string value_of(const job *j, const char *label)
{
    const char *values = j->b->spec.label_values, *lists[] = { j->b->spec.label_names, values };
    const char *item;
    size_t n;
    for (size_t k = 0; label && k < SES_LEN(lists); k++)
        for (size_t i = 0; ses_list_at(lists[k], i, &item, &n); i++)
            if (ses_equal(item, n, label)) return item_of(j->s->values ? j->s->values : values, i);
    return (ses_string){ "", 0 };
}

/* The text of a prediction in the file; *quoted: a JSON string. */
static bool put_value(job *j, const ses_prediction *p, bool quoted, ses_err *e)
{
    const char *quote = quoted ? "\"" : "";
    if (j->b->spec.kind == SES_DATA_REGRESS)
        return ses_buf_appendf(&j->out, "%.3f", fmin(5, fmax(0, p->value))), true;
    if (j->b->spec.kind == SES_DATA_CHOICE) return ses_buf_appendf(&j->out, "%" PRId64, p->choice), true;
    ses_string v = value_of(j, p->label);
    if (!v.n)
        return ses_fail(e, SES_EARG, "the model predicts \"%s\", which is not a label of %s: %s",
                        p->label ? p->label : "", j->b->name,
                        j->b->spec.label_names ? j->b->spec.label_names : j->b->spec.label_values);
    ses_buf_appendf(&j->out, "%s%.*s%s", quote, (int)v.n, v.p, quote);
    return true;
}

static bool on_predictions(void *ctx, const ses_predictions *p, ses_err *e)
{
    job *j = ctx;
    bool json = j->s->suite == SES_SUBMISSION_superglue;
    for (size_t i = 0; i < ses_predictions_count(p); i++) {
        ses_prediction x = ses_predictions_at(p, i);
        ses_buf_appendf(&j->out, json ? "{\"idx\": %" PRId64 ", \"label\": " : "%" PRId64 "\t", j->written++);
        if (!put_value(j, &x, json, e)) return false;
        ses_buf_puts(&j->out, json ? "}\n" : "\n");
    }
    return ses_buf_ok(&j->out, e);
}

/* ---- the file ---- */

/* How the test file is read: its columns may differ from the training file's. */
static void set_columns(const struct submission *s, ses_data_options *d)
{
    if (!s->text || d->text) return;
    d->task = "classify";
    d->text = s->text;
    if (!d->pair) d->pair = s->pair;
}

static bool write_file(const job *j, const ses_predictor_args *a, ses_err *e)
{
    if (j->written != j->s->rows)
        return ses_fail(e, SES_EFORMAT,
                        "%" PRId64 " rows; the test set of %s has %" PRId64 ": nothing was written",
                        j->written, j->b->name, j->s->rows);
    char *path = ses_path_join(a->rows.to, j->s->file, e);
    bool ok = path && ses_dir_make(a->rows.to, e) &&
              ses_file_write(path, j->out.data, j->out.len, a->rows.overwrite, e);
    if (ok) fprintf(stderr, "%s: %" PRId64 " predictions\n", path, j->written);
    ses_free(path);
    return ok;
}

bool ses_submission_run(ses_call *c, const ses_predictor_args *a, ses_err *e)
{
    ses_predictor_args args = *a;
    ses_open_predictor p = { 0 };
    job j = { 0 };
    if (!a->rows.to)
        return ses_fail(e, SES_EUSAGE, "--submission needs --to FOLDER, for the benchmark's file");
    if (a->rows.shard || a->rows.keep >= 0)
        return ses_fail(e, SES_EUSAGE,
                        "--submission writes the benchmark's columns: leave out --keep and --shard");
    if (!a->data.task) return ses_fail(e, SES_EUSAGE, "--submission needs --task BENCHMARK");
    if (!(j.s = find(a->submission, a->data.task, e))) return false;
    j.b = ses_benchmark_find(a->data.task);
    set_columns(j.s, &args.data);
    if (j.s->suite == SES_SUBMISSION_glue) ses_buf_puts(&j.out, "index\tprediction\n");
    ses_predict_stream s = { .on_row = on_row, .on_predictions = on_predictions, .ctx = &j };
    bool ok = ses_open_predictor_open(&p, &args, ses_predictor_args_dir(a, c), c, e) &&
              ses_predictor_predict_stream(p.predictor, c->operands[c->n_operands - 1], &s, e) &&
              write_file(&j, a, e);
    ses_open_predictor_free(&p);
    ses_buf_free(&j.out);
    return ok;
}
