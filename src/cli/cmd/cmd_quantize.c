/* quantize: writes a model with 8- or 16-bit weights and measures the loss in score. */
#include "base/file.h"
#include "cli/compress/score_drop.h"
#include "cli/train/predictor_args.h"
#include "cli/ui/show_values.h"
#include "convert_model.h"
#include "tune/finetune_data.h"

#include <math.h>

typedef struct args {
    ses_predictor_args tune;
    const char *eval, *metric;
    double max_drop, sparse;
    int embeddings; /* 0: f16, 1: int8 */
    bool overwrite;
} args;

static const ses_opt opt[] = {
    SES_OPT_TASK(args, tune.data, false),
    SES_OPT_TEXT(args, eval, "eval", "FILE", "labeled data: measure the loss in score before writing"),
    SES_OPT_REAL(args, max_drop, "max-drop", "1", 0, 100,
                 "maximum loss in points of 100 (perplexity, error: in %); above it nothing is written",
                 .value = "POINTS"),
    SES_OPT_CHOICE(args, embeddings, "embeddings", "f16", "f16|int8",
                   "with --dtype int8: type of embedding tables; int8 has a scale per row"),
    SES_OPT_REAL(args, sparse, "sparse", "0", 0, 0.99,
                 "with --dtype int8: set this share of each dense weight to 0, in blocks of four inputs, the "
                 "smallest first; products skip these blocks",
                 .value = "SHARE"),
    SES_OPT_TEXT(args, metric, "metric", "NAME", "score to compare; default: the task's main score"),
    SES_OPT_FLAG(args, overwrite, "overwrite", "replace a model in OUT"),
    SES_OPT_INCLUDE(args, tune, ses_predictor_option_table),
    SES_OPT_INCLUDE(args, tune.compute, ses_compute_options),
};

/* --eval without --task: as in the run that trained the model. */
static ses_json_doc *open_stored(const ses_call *c, ses_err *e)
{
    const args *a = c->args;
    return a->eval ? ses_predictor_args_open_stored(&a->tune, c, NULL, e) : NULL;
}

/* Scores the model in folder dir with weights of this dtype (index in --dtype; 0: unquantized). */
static bool evaluate(const args *a, const ses_call *c, const char *dir, int dtype, double *score,
                     const char **name, ses_err *e)
{
    ses_predictor_args t = a->tune;
    ses_open_predictor p;
    ses_eval_report r = { 0 };
    t.compute.dtype = dtype;
    t.compute.int8_embeddings = dtype && a->embeddings;
    bool ok =
        ses_open_predictor_open(&p, &t, dir, c, e) && ses_predictor_evaluate(p.predictor, a->eval, &r, e);
    if (ok) *name = a->metric ? a->metric : ses_predictor_metric(p.predictor);
    if (ok && !ses_scores_find(&r.scores, *name, score))
        ok = ses_fail(e, SES_EUSAGE, "--metric: no score \"%s\"; the first score is %s", *name,
                      r.scores.n ? r.scores.item[0].name : "none");
    ses_eval_report_free(&r);
    ses_open_predictor_free(&p);
    return ok;
}

/* Compares the model with the quantized one in folder dir, which may be the same. */
static bool check_drop(const args *a, const ses_call *c, const char *dir, ses_quantize_scores *s, ses_err *e)
{
    double original, quantized;
    const char *name;
    if (!evaluate(a, c, c->operands[0], 0, &original, &name, e) ||
        !evaluate(a, c, dir, a->tune.compute.dtype, &quantized, &name, e))
        return false;
    bool lower = ses_metric_lower_is_better(name);
    const ses_finetune_task *task;
    ses_data_spec spec;
    if (!ses_finetune_resolve_task(&a->tune.data, &a->tune.task, &task, &spec, e)) return false;
    double drop = ses_score_drop(original, quantized, lower, task->in_percent);
    const char *unit = lower ? "%" : "points";
    *s = (ses_quantize_scores){ name, original, quantized, drop };
    if (!c->quiet && drop == 0)
        ses_show_line(&c->err, "Evaluated", "%s %.4f original, %.4f quantized: no change", name, original,
                      quantized);
    else if (!c->quiet)
        ses_show_line(&c->err, "Evaluated", "%s %.4f original, %.4f quantized: %s %.2f %s", name, original,
                      quantized, drop > 0 ? "loses" : "gains", fabs(drop), unit);
    if (drop <= a->max_drop) return true;
    return ses_fail(e, SES_EARG,
                    "quantization loses %.2f %s of %s, --max-drop is %.2f: nothing was written; "
                    "try %s",
                    drop, unit, name, a->max_drop,
                    a->sparse > 0 ? "a smaller --sparse, or finetune with pruning" : "--dtype f16");
}

/* Pruned weights exist only in the output. */
static bool check_output(void *ctx, const char *dir, ses_quantize_scores *s, ses_err *e)
{
    const ses_call *c = ctx;
    return check_drop(c->args, c, dir, s, e);
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_device_options o = ses_compute_device_options(&a->tune.compute);
    ses_convert_options to = { .dtype = o.dtype,
                               .embedding_dtype = a->embeddings ? SES_I8 : SES_F16,
                               .overwrite = a->overwrite,
                               .threads = ses_compute_threads(&a->tune.compute),
                               .json = a->tune.compute.json };
    if (o.dtype == SES_F32) return ses_fail(e, SES_EUSAGE, "--dtype must be int8, f16 or bf16");
    if (a->embeddings && o.dtype != SES_I8)
        return ses_fail(e, SES_EUSAGE, "--embeddings int8 requires --dtype int8");
    if (a->sparse > 0 && o.dtype != SES_I8) return ses_fail(e, SES_EUSAGE, "--sparse requires --dtype int8");
    if (a->sparse > 0 && a->eval && ses_path_exists(c->operands[1]))
        return ses_fail(
            e, SES_EUSAGE,
            "%s exists: --sparse with --eval measures the written model, so it needs a new folder",
            c->operands[1]);
    to.sparse = a->sparse;
    if (a->sparse > 0 && a->eval) to.check = check_output, to.ctx = c;
    if (a->eval && !to.check && !check_drop(a, c, c->operands[0], &to.scores, e)) return false;
    return ses_convert_model(c, &to, e);
}

static const ses_usage_example examples[] = {
    { "sesame quantize sst2 sst2-int8 --dtype int8 --task sst2 --eval SST-2/dev.tsv --max-drop 0.5",
      "a quarter of the size, if accuracy drops by at most 0.5 points" },
    { "sesame quantize sst2 sst2-sparse --dtype int8 --sparse 0.5 --task sst2 --eval SST-2/dev.tsv",
      "half of the weights 0, in blocks that products skip" },
    { 0 },
};

const ses_command ses_command_quantize = {
    .name = "quantize",
    .usage = "DIR OUT",
    .summary = "quantize weights and measure score loss",
    .description =
        "Writes the model in folder DIR to folder OUT with quantized weights. int8: dense weights in 8 "
        "bits with a scale per output channel, heads and embedding tables in 16 bits (--embeddings "
        "int8: embedding tables and a tied output projection in 8 bits, too). f16, bf16: all weights. "
        "Every command runs an int8 model with int8 matrix products; activations are quantized per "
        "token. transformers reads f16 and bf16. The file of int8 weights is model.sesame-int8, which "
        "other programs do not read; 'sesame convert OUT DIR --dtype f32' restores a model for them.\n\n"
        "--sparse prunes the weights that are stored in 8 bits, once, by magnitude: blocks of four inputs of "
        "one output. A weight with enough zero blocks is packed without them when it is loaded, from this or "
        "any other pruning. A large share costs score if the model is not trained.\n\n"
        "With --eval both models are scored on a labeled file first. A model that loses more than "
        "--max-drop is not written.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 2,
    .max_operands = 2,
    .open_stored = open_stored,
    .has_model_operand = true,
    .run = run,
};
