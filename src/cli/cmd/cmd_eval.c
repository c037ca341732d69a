/* eval: how good a fine-tuned model is on a labeled file. */
#include "cli/train/minimal_pairs.h"
#include "cli/train/eval_report.h"
#include "cli/ui/show_values.h"
#include "cli/train/finetune_data.h"

typedef struct args {
    ses_tune_args tune;
    ses_judge_args judge;
} args;

static const ses_opt opt[] = {
    SES_OPT_TASK(args, tune),
    SES_OPT_TUNED(args, tune),
    SES_OPT_TUNE(args, tune),
    SES_OPT_JUDGE(args, judge),
    { .name = "seed",
      .letter = 's',
      .type = SES_OPT_INT,
      .offset = offsetof(args, judge.seed),
      .def = "1",
      .min = 0,
      .max = 9e15,
      .help = "of the resamples" },
    SES_OPT_ADAPTER(args, tune.adapter),
    SES_OPT_SHARED(args, tune.shared),
};

static bool print_json(const ses_judged *j, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (!w) return false;
    ses_json_begin_object(w);
    ses_judged_put(j, w);
    ses_json_end_object(w);
    return ses_json_print(w, e);
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_tune_run r;
    ses_judged j = { 0 };
    if (ses_is_pairs_task(a->tune.data.task))
        return ses_eval_pairs(c->rest[0], c->rest[1], &a->tune.shared, c, e);
    bool ok =
        ses_tune_run_open(&r, &a->tune, c, true, e) && ses_judge(&j, r.tuner, &r.set, &r.said, &a->judge, e);
    if (ok && a->tune.shared.json) {
        ok = print_json(&j, e);
    } else if (ok) {
        ses_judged_show(&j, &c->out);
        ok = ses_judged_show_classes(&j, &c->out, e);
    }
    ses_judged_free(&j);
    ses_tune_run_free(&r);
    return ok;
}

static const ses_example examples[] = {
    { "sesame eval sst2 --task classify SST-2/dev.tsv", "loss, accuracy and F1, of each class too" },
    { "sesame eval sst2 --task classify SST-2/dev.tsv --bootstrap 1000", "with confidence intervals" },
    { "sesame eval mini --task blimp blimp.tsv", "how often the grammatical sentence is likelier" },
    { 0 },
};

const ses_command ses_command_eval = {
    .name = "eval",
    .usage = "DIR FILE",
    .summary = "measure a model on a labeled file",
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
    .min_rest = 2,
    .max_rest = 2,
    .model_first = true,
    .run = run,
};
