/* predict: what a fine-tuned model says about each row of a file. */
#include "cli/train/finetune_data.h"

typedef struct args {
    ses_finetune_data_args tune;
} args;

static const ses_opt opt[] = {
    SES_OPT_TASK(args, tune),
    SES_OPT_FINETUNED_MODEL(args, tune),
    SES_OPT_TUNE(args, tune),
    SES_OPT_ADAPTER(args, tune.adapter),
    SES_OPT_INCLUDE(args, tune.shared, ses_compute_options),
};

static bool print_row(ses_prediction_run *r, size_t row, ses_err *e)
{
    size_t n;
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (!w) return false;
    ses_json_begin_object(w);
    r->tuner->o.kind->put_prediction(r->tuner, &r->set, &r->predictions, row, w);
    ses_json_end_object(w);
    const char *text = ses_json_writer_text(w, &n, e);
    bool ok =
        text && (fprintf(stdout, "%s\n", text) > 0 || ses_fail(e, SES_EIO, "stdout: cannot be written"));
    ses_json_writer_free(w);
    return ok;
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_prediction_run r;
    bool ok = ses_prediction_run_open(&r, &a->tune, c, false, e);
    for (size_t i = 0; ok && i < r.n; i++) ok = print_row(&r, i, e);
    ses_prediction_run_free(&r);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame predict sst2 --task classify reviews.tsv", "a line of JSON for each row" },
    { 0 },
};

const ses_command ses_command_predict = {
    .name = "predict",
    .usage = "DIR FILE",
    .summary = "predict each row of a file",
    .description =
        "Runs the model in folder DIR over the rows of FILE and prints a line of JSON for each: the label "
        "with its probability, the number, the labels, the tags, or the answer. Labels in the file are "
        "not needed.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 2,
    .max_operands = 2,
    .has_model_operand = true,
    .run = run,
};
