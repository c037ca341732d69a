/* quantize: a model in fewer bits, and what that costs on a labeled file. */
#include "cli/train/eval_report.h"
#include "cli/train/finetune_data.h"
#include "cli/ui/show_values.h"
#include "convert_model.h"

#include <math.h>

typedef struct args {
    ses_finetune_data_args tune;
    const char *eval, *metric;
    double most;
    int embeddings; /* 0: 16 bits, 1: 8 */
    bool overwrite;
} args;

static const ses_opt opt[] = {
    SES_OPT_DATA_TASK(args, tune.data, false),
    { .name = "eval",
      .type = SES_OPT_TEXT,
      .offset = offsetof(args, eval),
      .value = "FILE",
      .help = "labeled data: measure what is lost before anything is written" },
    { .name = "max-drop",
      .type = SES_OPT_REAL,
      .offset = offsetof(args, most),
      .def = "1",
      .min = 0,
      .max = 100,
      .value = "POINTS",
      .help =
          "most that the score may lose, of 100 (a perplexity or error: %); above it nothing is written" },
    { .name = "embeddings",
      .type = SES_OPT_CHOICE,
      .offset = offsetof(args, embeddings),
      .def = "f16",
      .choices = "f16|int8",
      .help = "with --dtype int8: tables of embeddings in 16 bits, or in 8 with a scale a row" },
    { .name = "metric",
      .type = SES_OPT_TEXT,
      .offset = offsetof(args, metric),
      .value = "NAME",
      .help = "the score that counts; without it the task's usual one" },
    { .name = "overwrite",
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, overwrite),
      .help = "replace a model that is in OUT already" },
    SES_OPT_TUNE(args, tune),
    SES_OPT_INCLUDE(args, tune.shared, ses_compute_options),
};

/* The score of the model with its weights as they are (0) or rounded. */
static bool measure(const args *a, const ses_call *c, int dtype, double *score, const char **name, ses_err *e)
{
    ses_finetune_data_args t = a->tune;
    char *rest[2] = { c->operands[0], (char *)(uintptr_t)a->eval };
    ses_call call = *c;
    ses_prediction_run r;
    ses_eval_report j = { 0 };
    const ses_finetune_task *kind;
    ses_data_spec spec;
    t.shared.dtype = dtype;
    t.shared.int8_embeddings = dtype && a->embeddings;
    call.operands = rest;
    if (!ses_finetune_resolve_task(&t, &kind, &spec, e)) return false;
    *name = a->metric ? a->metric : spec.best_metric;
    bool ok = ses_prediction_run_open(&r, &t, &call, true, e) &&
              ses_eval_report_make(&j, r.tuner, &r.set, &r.predictions,
                                   &(ses_bootstrap_args){ .confidence = 95 }, e);
    if (ok && !ses_scores_find(&j.scores, *name, score))
        ok = ses_fail(e, SES_EUSAGE, "--metric: no score is called \"%s\" here; the first is %s", *name,
                      j.scores.n ? j.scores.item[0].name : "none");
    ses_eval_report_free(&j);
    ses_prediction_run_free(&r);
    return ok;
}

static bool weigh(const args *a, const ses_call *c, ses_err *e)
{
    double whole, rounded;
    const char *name;
    if (!a->tune.data.task) return ses_fail(e, SES_EUSAGE, "--eval needs --task: what the labels are for");
    if (!measure(a, c, 0, &whole, &name, e) || !measure(a, c, a->tune.shared.dtype, &rounded, &name, e))
        return false;
    bool lower = ses_metric_lower_is_better(name);
    double drop = 100 * (lower ? rounded / whole - 1 : whole - rounded);
    const char *unit = lower ? "%" : "points";
    if (!c->quiet)
        ses_show_line(&c->err, "Measured", "%s %.4f as it is, %.4f rounded: %s %.2f %s", name, whole, rounded,
                      drop > 0 ? "loses" : "gains", fabs(drop), unit);
    if (drop <= a->most) return true;
    return ses_fail(e, SES_EARG,
                    "rounding costs %.2f %s of %s, --max-drop allows %.2f: nothing was written; "
                    "--dtype f16 loses less",
                    drop, unit, name, a->most);
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_device_options o = ses_compute_device_options(&a->tune.shared);
    ses_dtype tables = a->embeddings ? SES_I8 : SES_F16;
    if (o.dtype == SES_F32)
        return ses_fail(e, SES_EUSAGE, "--dtype must be int8, f16 or bf16: f32 leaves weights as they are");
    if (a->embeddings && o.dtype != SES_I8)
        return ses_fail(e, SES_EUSAGE, "--embeddings int8 goes with --dtype int8");
    return (!a->eval || weigh(a, c, e)) && ses_convert_model(c, o.dtype, tables, a->overwrite, e);
}

static const ses_usage_example examples[] = {
    { "sesame quantize sst2 sst2-int8 --dtype int8 --task sst2 --eval SST-2/dev.tsv --max-drop 0.5",
      "a quarter of the size, if that costs at most half a point of accuracy" },
    { 0 },
};

const ses_command ses_command_quantize = {
    .name = "quantize",
    .usage = "DIR OUT",
    .summary = "quantize weights and measure score loss",
    .description =
        "Writes the model in folder DIR to folder OUT with its weights rounded: int8, dense weights in 8 "
        "bits with a scale for each output, heads and tables of embeddings in 16 (with --embeddings int8 "
        "tables in 8, too, and what projects to the vocabulary where it is such a table); or f16 or bf16, "
        "all of them. A model of int8 runs with products of 8-bit numbers, whose other factor is rounded "
        "token by token, in every command. The reference library reads f16 and bf16.\n\n"
        "With --eval both are measured on a labeled file first, and a model that loses more than --max-drop "
        "is not written.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 2,
    .max_operands = 2,
    .has_model_operand = true,
    .run = run,
};
