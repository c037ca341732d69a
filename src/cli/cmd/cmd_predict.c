/* predict: predict each row of a file with a fine-tuned model. */
#include "cli/text_operands.h"
#include "cli/train/predictor_args.h"

static const ses_opt opt[] = {
    SES_OPT_TASK(ses_predictor_args, data, true),
    SES_OPT_FINETUNED_MODEL(ses_predictor_args, model),
    { .table = &ses_predictor_option_table },
    SES_OPT_ADAPTER(ses_predictor_args, adapter),
    SES_OPT_INCLUDE(ses_predictor_args, compute, ses_compute_options),
};

static bool print_row(const ses_predictions *p, size_t row, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (!w) return false;
    ses_predictions_put(p, row, w);
    const char *text = ses_json_writer_text(w, NULL, e);
    bool ok =
        text && (fprintf(stdout, "%s\n", text) > 0 || ses_fail(e, SES_EIO, "standard output: write error"));
    ses_json_writer_free(w);
    return ok;
}

static bool run(ses_call *c, ses_err *e)
{
    ses_open_predictor p;
    if (!ses_operands_require_files(c, 1,
                                    "predict reads a file; 'sesame text-classification' and the other "
                                    "pipelines read texts",
                                    e))
        return false;
    bool ok = ses_open_predictor_open(&p, c->args, c->operands[0], c, e);
    ses_predictions *r = ok ? ses_predictor_predict(p.predictor, c->operands[1], e) : NULL;
    ok = r != NULL;
    for (size_t i = 0; ok && i < ses_predictions_count(r); i++) ok = print_row(r, i, e);
    ses_predictions_free(r);
    ses_open_predictor_free(&p);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame predict sst2 --task classify reviews.tsv", "one JSON object per row" },
    { 0 },
};

const ses_command ses_command_predict = {
    .name = "predict",
    .usage = "DIR FILE",
    .summary = "predict each row of a file",
    .description = "Runs the model in folder DIR over the rows of FILE and prints one JSON object per row: "
                   "the label with "
                   "its probability, the number, the labels, the tags, or the answer. FILE needs no labels.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(ses_predictor_args),
    .min_operands = 2,
    .max_operands = 2,
    .has_model_operand = true,
    .run = run,
};
