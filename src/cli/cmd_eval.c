/* eval: how good a fine-tuned model is on a labeled file. */
#include "show.h"
#include "tune.h"

#include <math.h>

typedef struct args {
    ses_tune_args tune;
} args;

static const ses_opt opt[] = {
    SES_OPT_TASK(args, tune),
    SES_OPT_TUNE(args, tune),
    SES_OPT_SHARED(args, tune.shared),
};

static bool print_json(const ses_tune_run *r, const ses_scores *s, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (!w) return false;
    ses_json_begin_object(w);
    ses_tune_put_scores(w, s, "eval_");
    if (!isnan(r->said.loss)) ses_json_number(w, "eval_loss", r->said.loss);
    ses_json_count(w, "eval_samples", (int64_t)r->n);
    ses_json_end_object(w);
    return ses_json_print(w, e);
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_tune_run r;
    ses_scores s = { 0 };
    bool ok = ses_tune_run_open(&r, &a->tune, c, true, e) && ses_tuner_score(r.tuner, &r.set, &r.said, &s, e);
    if (ok && a->tune.shared.json)
        ok = print_json(&r, &s, e);
    else if (ok)
        ses_tune_show_scores(&c->out, &s, r.said.loss);
    ses_scores_free(&s);
    ses_tune_run_free(&r);
    return ok;
}

static const ses_example examples[] = {
    { "sesame eval sst2 --task classify SST-2/dev.tsv", "loss, accuracy and F1" },
    { 0 },
};

const ses_command ses_command_eval = {
    .name = "eval",
    .usage = "DIR FILE",
    .summary = "measure a fine-tuned model on a labeled file",
    .description =
        "Runs the model in folder DIR over the labeled examples of FILE and prints its loss and the "
        "task's scores. Files are read as finetune reads them.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_rest = 2,
    .max_rest = 2,
    .run = run,
};
