/* predict: predict each row of a file with a fine-tuned model. */
#include "base/alloc.h"
#include "cli/pipeline/atomic_output.h"
#include "cli/shard/shard_output.h"
#include "cli/standard_output.h"
#include "cli/text_operands.h"
#include "cli/train/submission.h"
#include "cli/ui/show_values.h"
#include "kernel/kernel.h"
#include "tune/predict/predict_part.h"

static const ses_opt opt[] = {
    SES_OPT_TASK(ses_predictor_args, data, false),
    SES_OPT_FINETUNED_MODEL(ses_predictor_args, model),
    { .table = &ses_predictor_option_table },
    { .table = &ses_ensemble_option_table },
    { .table = &ses_exit_rule_table },
    SES_OPT_CHOICE(
        ses_predictor_args, submission, "submission", NULL, SES_SUBMISSION_SUITES,
        "write the file that this benchmark's server takes (as RTE.tsv) into the folder --to; --task "
        "is the "
        "benchmark"),
    SES_OPT_PATTERNS(ses_predictor_args, task),
    SES_OPT_ADAPTERS(ses_predictor_args, adapters),
    SES_OPT_INCLUDE(ses_predictor_args, rows, ses_row_options),
    SES_OPT_INCLUDE(ses_predictor_args, compute, ses_compute_options),
};

static ses_json_doc *open_stored(const ses_call *c, ses_err *e)
{
    return ses_predictor_args_open_stored(c->args, c, "labels", e); /* they describe another file */
}

typedef struct job {
    ses_row_writer rows;
    ses_atomic_output to;
    ses_shard_job shard;
    ses_span part; /* bytes of the file that belong to the shard */
} job;

static bool on_row(void *ctx, const ses_records *row, ses_err *e)
{
    return ses_rows_keep_record(&((job *)ctx)->rows, row, e);
}

/* The first row of the file gives the columns; its part of the output has the header. */
static bool on_first(void *ctx, const ses_records *row, ses_err *e)
{
    job *j = ctx;
    if (!ses_rows_keep_record(&j->rows, row, e)) return false;
    ses_rows_continue(&j->rows);
    return true;
}

static bool on_start(void *ctx, uint64_t offset, ses_err *e)
{
    job *j = ctx;
    return ses_shard_output_fed(&j->shard.out, ses_span_block(&j->part, offset), e);
}

/* The members of a prediction are the result columns. */
static bool set_results(ses_row_writer *rows, ses_json_writer *w, ses_err *e)
{
    size_t n;
    const char *text = ses_json_writer_text(w, &n, e), *name[SES_MAX_RESULT_COLUMNS];
    ses_json_doc *doc = text ? ses_json_parse(text, n, e) : NULL;
    for (n = 0; n < SES_LEN(name) && (name[n] = ses_json_key(ses_json_root(doc), n, NULL)); n++) continue;
    bool ok = doc && ses_rows_set_results(rows, name, n, e);
    ses_json_free(doc);
    return ok;
}

static bool put(job *j, const ses_predictions *p, size_t i, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_predictions_put(p, i, w);
    if (!ses_rows_active(&j->rows)) return ses_rows_print(&j->rows, w, e); /* frees w */
    if (j->rows.n_results || set_results(&j->rows, w, e)) return ses_rows_put(&j->rows, w, e);
    ses_json_writer_free(w);
    return false;
}

static bool on_predictions(void *ctx, const ses_predictions *p, ses_err *e)
{
    job *j = ctx;
    bool ok = true, saves = ses_shard_output_active(&j->shard.out);
    for (size_t i = 0; ok && i < ses_predictions_count(p); i++)
        ok = put(j, p, i, e) &&
             (!saves || (ses_stdout_flush(e) && ses_shard_output_done(&j->shard.out, false, e)));
    return ok && ses_stdout_flush(e);
}

static bool check_usage(const ses_call *c, const ses_predictor_args *a, ses_err *e)
{
    if (a->rows.prefix && a->rows.keep < 0) return ses_fail(e, SES_EUSAGE, "--result-prefix needs --keep");
    if (c->n_operands < 2 && !a->ensemble)
        return ses_fail(e, SES_EUSAGE, "missing argument; usage: sesame predict DIR FILE");
    return ses_operands_require_files(c, c->n_operands - 1,
                                      "predict reads a file; 'sesame text-classification' and the other "
                                      "pipelines read texts",
                                      e);
}

/* Begins the output: a file that is complete or absent, a resumable file of a shard, or standard output. */
static bool begin_output(job *j, const ses_call *c, const ses_predictor_args *a, ses_err *e)
{
    enum { MAX_MODELS = 16 };
    const char *dir = ses_predictor_args_dir(a, c), *to = a->rows.to;
    const char *models[MAX_MODELS] = { dir };
    for (size_t i = 0, n = !!dir; i < a->adapters.n && n + 1 < MAX_MODELS; i++)
        models[n++] = a->adapters.item[i];
    ses_shard_conditions conditions = { models, ses_compute_level(&a->compute) };
    if (a->ensemble && a->rows.shard)
        return ses_fail(e, SES_EUSAGE, "--shard does not apply to --ensemble: split the file instead");
    if (!ses_shard_job_begin(&j->shard, c, a->rows.shard, (const char *const *)c->operands + !!dir, 1,
                             &conditions, to, a->rows.overwrite, e))
        return false;
    return !to || a->rows.shard || ses_atomic_output_begin(&j->to, to, a->rows.overwrite, e);
}

static bool commit_output(job *j, const ses_predictor_args *a, ses_err *e)
{
    if (ses_shard_output_active(&j->shard.out)) return ses_shard_output_commit(&j->shard.out, e);
    return !a->rows.to || ses_atomic_output_commit(&j->to, e);
}

/* Predicts the part of the file that the shard still lacks. */
static bool predict_part(job *j, ses_predictor *p, const char *path, const ses_predict_stream *s, ses_err *e)
{
    size_t n;
    const ses_shard_plan *plan = &j->shard.plan;
    if (!ses_shard_job_given(&j->shard)) return ses_predictor_predict_stream(p, path, s, e);
    ses_span *span = ses_shard_plan_spans(plan, ses_shard_job_block(&j->shard), plan->last, &n, e);
    bool ok = span != NULL;
    if (ok && n) {
        j->part = span[0];
        ses_predict_part part = { .begin = span[0].begin,
                                  .end = span[0].end,
                                  .bytes = plan->file[0].bytes,
                                  .on_first = s->on_row ? on_first : NULL,
                                  .on_start = on_start };
        ok = ses_predictor_predict_part(p, path, s, &part, e);
    }
    ses_free(span);
    return ok;
}

static bool run(ses_call *c, ses_err *e)
{
    ses_predictor_args own = *(const ses_predictor_args *)c->args;
    const ses_predictor_args *a = &own;
    ses_open_predictor p = { 0 };
    job j = { .to.before = -1, .shard.out.before = -1 };
    if (!ses_row_args_resolve(&own.rows, e)) return false;
    ses_predict_stream s = { .on_row = a->rows.keep >= 0 ? on_row : NULL,
                             .on_predictions = on_predictions,
                             .ctx = &j };
    ses_predictor_args named = *a;
    named.renames_labels = true;
    if (a->submission >= 0) return check_usage(c, a, e) && ses_submission_run(c, a, e);
    ses_rows_open(&j.rows, &a->rows, false);
    bool ok = check_usage(c, a, e) && begin_output(&j, c, a, e);
    if (ok && !j.shard.complete)
        ok = ses_open_predictor_open(&p, &named, ses_predictor_args_dir(a, c), c, e) &&
             predict_part(&j, p.predictor, c->operands[c->n_operands - 1], &s, e) &&
             (!j.rows.array || ses_rows_end(&j.rows, e)) && commit_output(&j, a, e);
    ses_atomic_output_end(&j.to, e);
    ses_shard_job_end(&j.shard, e);
    ses_rows_free(&j.rows);
    ses_open_predictor_free(&p);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame predict sst2 --task classify reviews.tsv", "one JSON object per row" },
    { "sesame predict sst2 --task classify reviews.csv -o labeled.csv", "the rows with their labels" },
    { "sesame predict rte RTE/test.tsv --task rte --submission glue --to submission",
      "submission/RTE.tsv for the benchmark's server" },
    { "sesame predict --ensemble sst2-a,sst2-b,sst2-c reviews.tsv", "the mean of three models" },
    { 0 },
};

const ses_command ses_command_predict = {
    .name = "predict",
    .usage = "DIR FILE",
    .summary = "predict each row of a file",
    .description =
        "Runs the model in folder DIR over the rows of FILE and prints one JSON object per row: "
        "the label with "
        "its probability, the number, the labels, the tags, or the answer. FILE needs no labels. "
        "If --task is not given, task, columns and format come from the run that trained the model.\n\n"
        "Rows of CSV, TSV and JSON lines are read and predicted in groups, so that memory does not "
        "depend on their number. --keep writes each row with all its fields and its prediction.\n\n"
        "--ensemble averages the probabilities of several models of one task; DIR may then be left out.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(ses_predictor_args),
    .min_operands = 1,
    .max_operands = 2,
    .has_model_operand = true,
    .names_models = ses_predictor_args_name_models,
    .open_stored = open_stored,
    .run = run,
};
