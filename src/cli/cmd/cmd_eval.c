/* eval: evaluate a fine-tuned model on a labeled file. */
#include "cli/train/direct_eval.h"
#include "cli/train/eval_report_show.h"
#include "cli/train/predictor_args.h"
#include "cli/ui/show_values.h"

typedef struct eval_args {
    ses_predictor_args predictor; /* first: open_stored reads it */
    ses_lama_args lama;
} eval_args;

#define AT(field) offsetof(ses_predictor_args, field)

static const ses_opt opt[] = {
    SES_OPT_TASK(ses_predictor_args, data, false),
    SES_OPT_FINETUNED_MODEL(ses_predictor_args, model),
    { .table = &ses_predictor_option_table },
    SES_OPT_INCLUDE(ses_predictor_args, bootstrap, ses_bootstrap_option_table),
    { .name = "seed",
      .letter = 's',
      .type = SES_OPT_INT,
      .offset = AT(bootstrap.seed),
      .def = "1",
      .min = 0,
      .max = 9e15,
      .help = "random seed of the resamples" },
    SES_OPT_INCLUDE(eval_args, lama, ses_lama_option_table),
    SES_OPT_ADAPTERS(ses_predictor_args, adapters),
    SES_OPT_INCLUDE(ses_predictor_args, compute, ses_compute_options),
};

static ses_json_doc *open_stored(const ses_call *c, ses_err *e)
{
    return ses_predictor_args_open_stored(c->args, c, NULL, e);
}

static bool print_json(const ses_eval_report *r, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (!w) return false;
    ses_json_begin_object(w);
    ses_eval_report_put(r, w);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

static bool run(ses_call *c, ses_err *e)
{
    const eval_args *args = c->args;
    const ses_predictor_args *a = &args->predictor;
    const ses_direct_eval *direct = ses_direct_eval_find(a->data.task);
    ses_open_predictor p;
    ses_eval_report r = { 0 };
    if (c->n_operands > 2 && !(direct && direct->several_files))
        return ses_fail(e, SES_EUSAGE, "%d files: only --task lama and --task checklist take several",
                        c->n_operands - 1);
    if (direct)
        return direct->run(&(ses_direct_eval_call){ .call = c,
                                                    .dir = c->operands[0],
                                                    .file = c->operands + 1,
                                                    .n_files = c->n_operands - 1,
                                                    .compute = &a->compute,
                                                    .lama = &args->lama },
                           e);
    bool ok = ses_open_predictor_open(&p, a, c->operands[0], c, e) &&
              ses_predictor_evaluate(p.predictor, c->operands[1], &r, e);
    if (ok && a->compute.json) {
        ok = print_json(&r, e);
    } else if (ok) {
        ses_eval_report_show(&r, &c->out);
        ok = ses_eval_report_show_classes(&r, &c->out, e);
    }
    ses_eval_report_free(&r);
    ses_open_predictor_free(&p);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame eval sst2 SST-2/dev.tsv", "loss, accuracy and F1, also per class" },
    { "sesame eval bert-sst2 SST-2/dev.tsv --task classify --bootstrap 1000",
      "a model of another program, with confidence intervals" },
    { "sesame eval mini --task blimp blimp.tsv", "how often the grammatical sentence is more likely" },
    { "sesame eval sesame-small TREx/P*.jsonl --task lama --relations relations.jsonl",
      "facts: precision at 1 and 10 and mean reciprocal rank of each relation" },
    { "sesame eval sesame-sentiment suite.jsonl --task checklist",
      "failure rates of behavioral tests (MFT, INV, DIR)" },
    { 0 },
};

const ses_command ses_command_eval = {
    .name = "eval",
    .usage = "DIR FILE...",
    .summary = "evaluate a model on labeled data",
    .description =
        "Runs the model in folder DIR over the labeled examples of FILE and prints its loss, the "
        "task's scores, "
        "the scores of each class and the confusion matrix. Files are read as by finetune; if --task is not "
        "given, with the task, the columns and the format of the run that trained the model.\n\n"
        "Some tasks need no fine-tuning. Minimal pairs (--task blimp; --task agreement for the "
        "tables of Marvin and Linzen and of Gulordava et al.) count how often the model gives the acceptable "
        "sentence a higher probability; masked models by pseudo-log-likelihood. --task lama completes facts: "
        "JSON lines with obj_label (the answer) and masked_sentences, or sub_label and a template; it prints "
        "P@1, P@10 and the mean reciprocal rank of the answer among the tokens of the vocabulary or of "
        "--candidates. Causal models predict it from the text before the mask. --task checklist runs "
        "behavioral tests on a classifier: JSON lines with type (MFT, INV or DIR), texts, label, name and "
        "capability, for DIR also direction (increasing or decreasing) and tolerance; it prints how many "
        "cases of each test fail.\n\n"
        "Confidence intervals are percentiles of the scores of examples drawn with replacement. "
        "The same seed "
        "gives the same intervals on every machine.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(eval_args),
    .min_operands = 2,
    .max_operands = -1,
    .has_model_operand = true,
    .open_stored = open_stored,
    .run = run,
};
