/* compress: smaller forms of a model, measured on this machine. Options and help. */
#include "cli/compress/compress.h"
#include "cli/run_options.h"

static const ses_opt opt[] = {
    SES_OPT_TASK(ses_compress_args, tune.data, false),
    SES_OPT_TEXT(ses_compress_args, train, "data", "FILE",
                 "labeled examples for methods that train. Default: only methods that need none are tried"),
    SES_OPT_TEXT(
        ses_compress_args, eval, "eval", "FILE",
        "labeled examples for scores and times. Default: a random tenth of --data, at most about 2000, "
        "which no training sees"),
    SES_OPT_TEXT(
        ses_compress_args, output, "output", "DIR",
        "folder of the chosen model (DIR/model), the report and the candidates: compress.json, .svg, .html. "
        "Default: the model's name with -compressed",
        .letter = 'o', .alias = "to"),
    SES_OPT_REAL(
        ses_compress_args, max_drop, "max-drop", "1", 0, 100,
        "loss that the chosen model may have, in points of 100 of the task's main score (perplexity, "
        "error: in %)",
        .value = "POINTS"),
    SES_OPT_CHOICE(ses_compress_args, by, "by", "latency", "latency|size|memory|energy",
                   "cost of the front and of the choice"),
    SES_OPT_TEXT(ses_compress_args, methods, "methods", "NAME[:VALUE],...",
                 "methods, as student:6,student:0.25,int8; a chain as student:6+int8 joins them. A method "
                 "without a value has "
                 "its own values. Every transformation is also tried with each precision in the list "
                 "that is not part of a chain"),
    SES_OPT_REAL(ses_compress_args, budget, "budget", "0", 0, 1e6,
                 "start no further model after this time; 0: no limit", .value = "MINUTES", .of_call = true),
    SES_OPT_EPOCHS(ses_compress_args, epochs, "training: passes over --data"),
    SES_OPT_LR(ses_compress_args, lr, "training: peak learning rate"),
    SES_OPT_INT(ses_compress_args, batch_size, "batch-size", "32", 1, 1 << 20, "training: examples per batch",
                .letter = 'b', .group = "training"),
    SES_OPT_INT(ses_compress_args, train_size, "train-size", "0", 0, 1e12,
                "training: N random examples of --data; 0: all", .group = "training"),
    SES_OPT_INT(ses_compress_args, seed, "seed", "42", 0, 9e15,
                "random seed of training, of the intervals and of the timed texts", .letter = 's'),
    SES_OPT_INT(ses_compress_args, texts, "texts", "32", 1, 100000, "random texts of --eval that are timed",
                .group = "runs"),
    SES_OPT_INT(ses_compress_args, rounds, "rounds", "5", 1, 1000,
                "times that original and candidate alternate over the texts", .group = "runs"),
    SES_OPT_JOBS(
        ses_compress_args, jobs, 64,
        "models made at the same time, in processes that share the cores; they are measured one after "
        "the other"),
    SES_OPT_FLAG(ses_compress_args, make_only, "make-only",
                 "make the models and stop; --resume measures them, also on another machine", .of_call = true,
                 .group = "runs"),
    SES_OPT_FLAG(ses_compress_args, resume, "resume",
                 "keep the finished candidates in DIR; methods may be added", .of_call = true),
    SES_OPT_FLAG(ses_compress_args, overwrite, "overwrite", "replace the compression in DIR",
                 .of_call = true),
    SES_OPT_INT(ses_compress_args, tune.bootstrap.resamples, "bootstrap", "1000", 0, 1e6,
                "resamples for confidence intervals of scores; 0: no intervals", .group = "runs"),
    SES_OPT_REAL(ses_compress_args, tune.bootstrap.confidence, "confidence", "95", 1, 99.99,
                 "confidence level of the intervals", .value = "PERCENT", .group = "runs"),
    SES_OPT_INCLUDE(ses_compress_args, tune, ses_predictor_option_table),
    SES_OPT_INCLUDE(ses_compress_args, tune.compute, ses_compute_options),
};

/* Without --task: as in the run that trained the model. */
static ses_json_doc *open_stored(const ses_call *c, ses_err *e)
{
    const ses_compress_args *a = c->args;
    return ses_predictor_args_open_stored(&a->tune, c, NULL, e);
}

static const ses_usage_example examples[] = {
    { "sesame compress sst2 --task sst2 --data SST-2/train.tsv --max-drop 1",
      "all default methods, in the folder sst2-compressed; a tenth of the data is held out" },
    { "sesame compress sst2 --eval SST-2/dev.tsv -o small", "8-bit weights, without training" },
    { "sesame compress sst2 --data SST-2/train.tsv --eval SST-2/dev.tsv --max-drop 0.5 -o small",
      "all default methods; the fastest model that loses at most half a point" },
    { "sesame compress sesame-small --task sst2 --data SST-2/train.tsv --eval SST-2/dev.tsv -o small",
      "fine-tune an encoder first" },
    { "sesame compress ... --methods student:6,student:4,int8 --by size --resume",
      "other methods, chosen by size; finished candidates are kept" },
    { "sesame compress ... --device cuda --jobs 4",
      "train four models at a time on a GPU, measure on the CPU" },
    { 0 },
};

const ses_command ses_command_compress = {
    .name = "compress",
    .usage = "MODEL",
    .summary = "smaller and faster forms of a model, measured",
    .description =
        "Tries ways to make a fine-tuned model smaller and faster, and combinations of them, measures score, "
        "latency, throughput, memory, size and energy of each on this machine, shows which ones no other "
        "beats (the Pareto front), and writes the best one that loses at most --max-drop to DIR/model. An "
        "encoder without a head for the task is fine-tuned first.\n\n"
        "Methods:\n\n"
#define SES_COMPRESS(name_, kind_, tasks_, type_, values_, default_, trains_, after_, steps_, summary_) \
    "  " name_ ": " summary_ "\n\n"
#include "cli/compress/compress_methods.def"
#undef SES_COMPRESS
        "A candidate is a chain of methods. Chains share their beginnings: a model is trained once and "
        "measured in each precision. Models that train do not see --eval or the part of --data that is held "
        "out instead. Each candidate alternates with the "
        "original in several rounds, so that noise of the machine cancels. Methods that do not fit the model "
        "are left out with the reason.\n\n"
        "--device and --dtype (f32 or bf16) are of training; the types of the models are methods. Exits "
        "without "
        "exit are not chosen: they only add classifiers that nothing uses.\n\n"
        "The choice reads the scores on --eval: report the score of the chosen model on other data.\n\n"
        "Ctrl-C stops; --resume continues, and training from its checkpoint. The candidates stay in "
        "DIR/candidates.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(ses_compress_args),
    .min_operands = 1,
    .max_operands = 1,
    .open_stored = open_stored,
    .has_model_operand = true,
    .run = ses_compress_command,
};
