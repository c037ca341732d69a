/* eval: how good a fine-tuned model is on a labeled file. */
#include "cli/train/eval_report.h"
#include "cli/train/finetune_data.h"
#include "cli/train/minimal_pairs.h"
#include "cli/ui/show_values.h"

typedef struct args {
    ses_finetune_data_args tune;
    ses_bootstrap_args judge;
} args;

static const ses_opt opt[] = {
    SES_OPT_TASK(args, tune),
    SES_OPT_FINETUNED_MODEL(args, tune),
    SES_OPT_TUNE(args, tune),
    SES_OPT_BOOTSTRAP(args, judge),
    { .name = "seed",
      .letter = 's',
      .type = SES_OPT_INT,
      .offset = offsetof(args, judge.seed),
      .def = "1",
      .min = 0,
      .max = 9e15,
      .help = "of the resamples" },
    SES_OPT_ADAPTER(args, tune.adapter),
    SES_OPT_INCLUDE(args, tune.shared, ses_compute_options),
};

static bool print_json(const ses_eval_report *j, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (!w) return false;
    ses_json_begin_object(w);
    ses_eval_report_put(j, w);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_prediction_run r;
    ses_eval_report j = { 0 };
    if (ses_is_minimal_pairs_task(a->tune.data.task))
        return ses_eval_minimal_pairs(c->operands[0], c->operands[1], &a->tune.shared, c, e);
    bool ok = ses_prediction_run_open(&r, &a->tune, c, true, e) &&
              ses_eval_report_make(&j, r.tuner, &r.set, &r.predictions, &a->judge, e);
    if (ok && a->tune.shared.json) {
        ok = print_json(&j, e);
    } else if (ok) {
        ses_eval_report_show(&j, &c->out);
        ok = ses_eval_report_show_classes(&j, &c->out, e);
    }
    ses_eval_report_free(&j);
    ses_prediction_run_free(&r);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame eval sst2 --task classify SST-2/dev.tsv", "loss, accuracy and F1, of each class too" },
    { "sesame eval sst2 --task classify SST-2/dev.tsv --bootstrap 1000", "with confidence intervals" },
    { "sesame eval mini --task blimp blimp.tsv", "how often the grammatical sentence is likelier" },
    { 0 },
};

const ses_command ses_command_eval = {
    .name = "eval",
    .usage = "DIR FILE",
    .summary = "evaluate a model on labeled data",
    .description =
        "Runs the model in folder DIR over the labeled examples of FILE and prints its loss, the task's "
        "scores, those of each class and what was taken for what. Files are read as finetune reads them.\n\n"
        "Two tasks need no fine-tuning: of minimal pairs (--task blimp; --task agreement for the tables of "
        "Marvin and Linzen and of Gulordava et al.) it is counted how often the model finds the good "
        "sentence likelier; a masked model by its pseudo-log-likelihood.\n\n"
        "Confidence intervals are percentiles of scores of examples drawn again with replacement; the same "
        "seed gives the same ones everywhere.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 2,
    .max_operands = 2,
    .has_model_operand = true,
    .run = run,
};
