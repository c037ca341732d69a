/* eval: evaluate a fine-tuned model on a labeled file. */
#include "base/alloc.h"
#include "cli/train/direct_eval.h"
#include "cli/train/eval/eval_baselines.h"
#include "cli/train/eval/exit_curve.h"
#include "cli/train/eval_report_show.h"
#include "cli/train/likelihood_eval.h"
#include "cli/train/predictor_args.h"
#include "cli/ui/show_values.h"

typedef struct eval_args {
    ses_predictor_args predictor; /* first: open_stored reads it */
    ses_lama_args lama;
    ses_scoring_args scoring;
    ses_baseline_args baselines;
    ses_likelihood_args likelihood;
    ses_exit_curve_args curve;
} eval_args;

static const ses_opt opt[] = {
    SES_OPT_TASK(ses_predictor_args, data, false),
    SES_OPT_FINETUNED_MODEL(ses_predictor_args, model),
    { .table = &ses_predictor_option_table },
    { .table = &ses_ensemble_option_table },
    { .table = &ses_exit_rule_table },
    SES_OPT_PATTERNS(ses_predictor_args, task),
    SES_OPT_INCLUDE(ses_predictor_args, bootstrap, ses_bootstrap_option_table),
    SES_OPT_INT(ses_predictor_args, bootstrap.seed, "seed", "1", 0, 9e15,
                "random seed of the resamples, and of the examples of task files", .letter = 's'),
    SES_OPT_INCLUDE(eval_args, lama, ses_lama_option_table),
    SES_OPT_INCLUDE(eval_args, scoring, ses_scoring_option_table),
    SES_OPT_INCLUDE(eval_args, baselines, ses_baseline_option_table),
    SES_OPT_INCLUDE(eval_args, likelihood, ses_likelihood_option_table),
    SES_OPT_INCLUDE(eval_args, curve, ses_exit_curve_option_table),
    SES_OPT_ADAPTERS(ses_predictor_args, adapters),
    SES_OPT_INCLUDE(ses_predictor_args, compute, ses_compute_options),
};

static ses_json_doc *open_stored(const ses_call *c, ses_err *e)
{
    return ses_predictor_args_open_stored(c->args, c, NULL, e);
}

static bool print_json(const ses_eval_report *r, const ses_baselines *b, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_eval_report_put(r, w);
    ses_baselines_put(b, w);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

/* Options of evaluations without a task file. */
static bool check_task_file_options(const eval_args *a, ses_err *e)
{
    const char *name = a->predictor.ensemble    ? "ensemble"
                       : a->baselines.baselines ? "baselines"
                       : a->baselines.train     ? "train"
                       : a->baselines.vectors   ? "vectors"
                       : a->predictor.exit      ? "exit"
                                                : NULL;
    return !name || ses_fail(e, SES_EUSAGE, "--%s does not apply to task files (--task %s)", name,
                             a->predictor.data.task);
}

/* --exit curve. */
static bool run_curve(const ses_call *c, const char *file, ses_err *e)
{
    const eval_args *args = c->args;
    ses_predictor_args a = args->predictor;
    ses_open_predictor p;
    a.exit = NULL;
    if (a.ensemble || args->baselines.baselines)
        return ses_fail(e, SES_EUSAGE, "--exit curve does not apply to --ensemble and --baselines");
    bool ok = ses_open_predictor_open(&p, &a, ses_predictor_args_dir(&a, c), c, e) &&
              ses_exit_curve_run(&p, &a, &args->curve, file, c, e);
    ses_open_predictor_free(&p);
    return ok;
}

/* --exit belongs to fine-tuned models, files of the curve to --exit curve. */
static bool check_exit(const eval_args *a, bool direct, ses_err *e)
{
    const char *exit = a->predictor.exit;
    if (exit && direct)
        return ses_fail(e, SES_EUSAGE, "--exit does not apply to --task %s", a->predictor.data.task);
    return ses_exit_curve_args_check(&a->curve, exit, e);
}

/* How texts are scored belongs to minimal pairs. */
static bool check_scoring(const eval_args *a, bool scores_texts, ses_err *e)
{
    const char *name = scores_texts ? NULL : ses_opt_given(&ses_scoring_option_table, &a->scoring);
    return !name || ses_fail(e, SES_EUSAGE, "--%s applies to --task blimp and --task agreement", name);
}

/* A task file: *done, and whether it succeeded; else *done is false. */
static bool run_task_file(ses_call *c, bool *done, ses_err *e)
{
    const eval_args *args = c->args;
    const ses_predictor_args *a = &args->predictor;
    char *path = NULL;
    *done = !ses_likelihood_task_path(a->data.task, &args->likelihood, &path, e);
    if (*done || !path) return !*done;
    *done = true;
    bool ok = check_task_file_options(args, e) && check_scoring(args, false, e);
    if (ok && c->n_operands > 2)
        ok = ses_fail(e, SES_EUSAGE, "%d files: a task file takes one", c->n_operands - 1);
    ok = ok && ses_eval_likelihood(&(ses_likelihood_call){ .call = c,
                                                           .dir = c->operands[0],
                                                           .file = c->operands[1],
                                                           .task = path,
                                                           .adapters = &a->adapters,
                                                           .compute = &a->compute,
                                                           .args = &args->likelihood,
                                                           .bootstrap = &a->bootstrap },
                                   e);
    ses_free(path);
    return ok;
}

static bool run(ses_call *c, ses_err *e)
{
    bool done;
    const eval_args *args = c->args;
    const ses_predictor_args *a = &args->predictor;
    const ses_direct_eval *direct = ses_direct_eval_find(a->data.task);
    ses_open_predictor p;
    ses_eval_report r = { 0 };
    ses_baselines b = { 0 };
    bool task_ok = run_task_file(c, &done, e);
    if (done) return task_ok;
    if (!ses_likelihood_args_check_unused(&args->likelihood, e)) return false;
    if (c->n_operands < 2 && !a->ensemble)
        return ses_fail(e, SES_EUSAGE, "expected a FILE with labeled examples after the model");
    if (a->ensemble && direct)
        return ses_fail(e, SES_EUSAGE, "--ensemble does not apply to --task %s", a->data.task);
    if (c->n_operands > 2 && !(direct && direct->several_files))
        return ses_fail(e, SES_EUSAGE, "%d files: only --task lama and --task checklist take several",
                        c->n_operands - 1);
    if (!ses_baseline_args_check(&args->baselines, direct ? a->data.task : NULL, e)) return false;
    if (!check_exit(args, direct != NULL, e)) return false;
    if (!check_scoring(args, direct && direct->scores_texts, e)) return false;
    if (direct)
        return direct->run(&(ses_direct_eval_call){ .call = c,
                                                    .dir = c->operands[0],
                                                    .file = c->operands + 1,
                                                    .n_files = c->n_operands - 1,
                                                    .compute = &a->compute,
                                                    .lama = &args->lama,
                                                    .scoring = &args->scoring },
                           e);
    const char *file = c->operands[c->n_operands - 1];
    if (ses_exit_curve_requested(a->exit)) return run_curve(c, file, e);
    bool ok = ses_open_predictor_open(&p, a, ses_predictor_args_dir(a, c), c, e) &&
              ses_baselines_run(&b, &args->baselines, a, file, c, e) &&
              ses_predictor_evaluate(p.predictor, file, &r, e);
    if (ok && a->compute.json) {
        ok = print_json(&r, &b, e);
    } else if (ok) {
        ses_eval_report_show(&r, &c->out);
        ok = ses_eval_report_show_classes(&r, &c->out, e) && ses_baselines_show(&b, &r, &c->out, e);
    }
    ses_baselines_free(&b);
    ses_eval_report_free(&r);
    ses_open_predictor_free(&p);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame eval sst2 SST-2/dev.tsv", "loss, accuracy and F1, also per class" },
    { "sesame eval bert-sst2 SST-2/dev.tsv --task classify --bootstrap 1000",
      "a model of another program, with confidence intervals" },
    { "sesame eval sst2 SST-2/dev.tsv --baselines --train SST-2/train.tsv",
      "next to the majority class and a continuous bag of words" },
    { "sesame eval --ensemble sst2-a,sst2-b SST-2/dev.tsv", "the mean probabilities of two models" },
    { "sesame eval mini --task blimp blimp.tsv", "how often the grammatical sentence is more likely" },
    { "sesame eval sesame-small TREx/P*.jsonl --task lama --relations relations.jsonl",
      "facts: precision at 1 and 10 and mean reciprocal rank of each relation" },
    { "sesame eval sesame-sentiment suite.jsonl --task checklist",
      "failure rates of behavioral tests (MFT, INV, DIR)" },
    { "sesame eval sesame-gpt SST-2/dev.tsv --task sst2 --shots 4",
      "a language model on a task file: accuracy by likelihood, after four examples" },
    { "sesame eval gpt2 wikitext-2/test.txt --task wikitext", "perplexity per word, byte and token" },
    { 0 },
};

const ses_command ses_command_eval = {
    .name = "eval",
    .usage = "DIR [FILE...]",
    .summary = "evaluate a model on labeled data",
    .description =
        "Runs the model in folder DIR over the labeled examples of FILE and prints its loss, the "
        "task's scores, "
        "the scores of each class and the confusion matrix. Files are read as by finetune; if --task is not "
        "given, with the task, the columns and the format of the run that trained the model.\n\n"
        "Some tasks need no fine-tuning. Minimal pairs (--task blimp; --task agreement for the "
        "tables of Marvin and Linzen and of Gulordava et al.) count how often the model gives the acceptable "
        "sentence a higher probability; masked models by pseudo-log-likelihood (--pll); --temperature "
        "divides the logits. "
        "--task lama completes facts: "
        "JSON lines with obj_label (the answer) and masked_sentences, or sub_label and a template; it prints "
        "P@1, P@10 and the mean reciprocal rank of the answer among the tokens of the vocabulary or of "
        "--candidates. Causal models predict it from the text before the mask. --task checklist runs "
        "behavioral tests on a classifier: JSON lines with type (MFT, INV or DIR), texts, label, name and "
        "capability, for DIR also direction (increasing or decreasing) and tolerance; it prints how many "
        "cases of each test fail.\n\n"
        "--baselines --train FILE trains the majority class and a continuous bag of words on FILE and prints "
        "their scores next to the model's; they classify texts and pairs, which are joined by a blank.\n\n"
        "A task file (--task FILE.json, or the name of a bundled one with --shots K) evaluates a language "
        "model "
        "as the lm-evaluation-harness does: choices by their likelihood, perplexity of texts, or exact match "
        "of "
        "greedy output, after K examples. docs/EVALUATION.md describes the files.\n\n"
        "Confidence intervals are percentiles of the scores of examples drawn with replacement. "
        "The same seed "
        "gives the same intervals on every machine.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(eval_args),
    .min_operands = 1,
    .max_operands = -1,
    .has_model_operand = true,
    .names_models = ses_predictor_args_name_models,
    .open_stored = open_stored,
    .run = run,
};
