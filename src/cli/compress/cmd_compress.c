/* compress: smaller forms of a model, measured on this machine. Options and help. */
#include "cli/compress/compress.h"
#include "cli/run_options.h"

#define AT(field) offsetof(ses_compress_args, field)

static const ses_opt opt[] = {
    SES_OPT_TASK(ses_compress_args, tune.data, false),
    { .name = "data",
      .type = SES_OPT_TEXT,
      .offset = AT(train),
      .value = "FILE",
      .help = "labeled examples for methods that train; default: only methods that need none are tried" },
    { .name = "eval",
      .type = SES_OPT_TEXT,
      .offset = AT(eval),
      .value = "FILE",
      .help = "labeled examples for scores and times; default: a random tenth of --data, at most about 2000, "
              "which no training sees" },
    { .name = "output",
      .letter = 'o',
      .type = SES_OPT_TEXT,
      .offset = AT(output),
      .value = "DIR",
      .help = "folder of the chosen model (DIR/model), compress.json, compress.svg, compress.html and the "
              "candidates; default: the model's name with -compressed" },
    { .name = "max-drop",
      .type = SES_OPT_REAL,
      .offset = AT(max_drop),
      .def = "1",
      .min = 0,
      .max = 100,
      .value = "POINTS",
      .help = "loss that the chosen model may have, in points of 100 of the task's main score (perplexity, "
              "error: in %)" },
    { .name = "by",
      .type = SES_OPT_CHOICE,
      .offset = AT(by),
      .def = "latency",
      .choices = "latency|size|memory|energy",
      .help = "cost of the front and of the choice" },
    { .name = "methods",
      .type = SES_OPT_TEXT,
      .offset = AT(methods),
      .value = "NAME[:VALUE],...",
      .help = "methods, as student:6,student:0.25,int8; a chain as student:6+int8 joins them. A method "
              "without a value has "
              "its own values. Every transformation is also tried with each precision in the list "
              "that is not part of a chain" },
    { .name = "budget",
      .type = SES_OPT_REAL,
      .offset = AT(budget),
      .def = "0",
      .min = 0,
      .max = 1e6,
      .value = "MINUTES",
      .of_call = true,
      .help = "start no further model after this time; 0: no limit" },
    SES_OPT_EPOCHS(ses_compress_args, epochs, "training: passes over --data"),
    SES_OPT_LR(ses_compress_args, lr, "training: peak learning rate"),
    { .name = "batch-size",
      .letter = 'b',
      .type = SES_OPT_INT,
      .offset = AT(batch_size),
      .def = "32",
      .min = 1,
      .max = 1 << 20,
      .help = "training: examples per batch" },
    { .name = "train-size",
      .type = SES_OPT_INT,
      .offset = AT(train_size),
      .def = "0",
      .min = 0,
      .max = 1e12,
      .help = "training: N random examples of --data; 0: all" },
    { .name = "seed",
      .letter = 's',
      .type = SES_OPT_INT,
      .offset = AT(seed),
      .def = "42",
      .min = 0,
      .max = 9e15,
      .help = "random seed of training, of the intervals and of the timed texts" },
    { .name = "texts",
      .type = SES_OPT_INT,
      .offset = AT(texts),
      .def = "32",
      .min = 1,
      .max = 100000,
      .help = "random texts of --eval that are timed" },
    { .name = "rounds",
      .type = SES_OPT_INT,
      .offset = AT(rounds),
      .def = "5",
      .min = 1,
      .max = 1000,
      .help = "times that original and candidate alternate over the texts" },
    SES_OPT_JOBS(
        ses_compress_args, jobs, 64,
        "models made at the same time, in processes that share the cores; they are measured one after "
        "the other"),
    { .name = "make-only",
      .type = SES_OPT_FLAG,
      .offset = AT(make_only),
      .of_call = true,
      .help = "make the models and stop; --resume measures them, also on another machine" },
    { .name = "resume",
      .type = SES_OPT_FLAG,
      .offset = AT(resume),
      .of_call = true,
      .help = "keep the finished candidates in DIR; methods may be added" },
    { .name = "overwrite",
      .type = SES_OPT_FLAG,
      .offset = AT(overwrite),
      .of_call = true,
      .help = "replace the compression in DIR" },
    { .name = "bootstrap",
      .type = SES_OPT_INT,
      .offset = AT(tune.bootstrap.resamples),
      .def = "1000",
      .min = 0,
      .max = 1e6,
      .help = "resamples for confidence intervals of scores; 0: no intervals" },
    { .name = "confidence",
      .type = SES_OPT_REAL,
      .offset = AT(tune.bootstrap.confidence),
      .def = "95",
      .value = "PERCENT",
      .min = 1,
      .max = 99.99,
      .help = "confidence level of the intervals" },
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
