/* curve: scores of methods by the number of training examples. Options and help. */
#include "cli/curve/curve.h"
#include "cli/run_options.h"
#include "train/energy/energy_options.h"

static const ses_opt opt[] = {
    SES_OPT_TASK(ses_curve_args, data, true),
    SES_OPT_TEXT(ses_curve_args, train, "train", "FILE",
                 "labeled examples, from which the training examples are drawn", .required = true),
    SES_OPT_TEXT(ses_curve_args, eval, "eval", "FILE", "labeled examples for the scores; they select nothing",
                 .required = true),
    SES_OPT_TEXT(ses_curve_args, output, "output", "DIR",
                 "folder of curve.json, curve.svg, curve.html and the results of the cells", .letter = 'o',
                 .required = true, .alias = "to"),
    SES_OPT_TEXT(ses_curve_args, model, "model", "DIR", "pretrained model", .letter = 'm',
                 .def = "sesame-small", .is_model = true),
    SES_OPT_TEXT(
        ses_curve_args, sizes, "sizes", "N,...",
        "numbers of training examples; \"...\" doubles up to the next number, all: the whole file. Numbers "
        "of at least all examples become all",
        .def = "8,16,...,1024,all"),
    SES_OPT_FLAG(ses_curve_args, per_class, "per-class",
                 "--sizes are examples of each class (tag: sentences with each entity type)",
                 .group = "runs"),
    SES_OPT_TEXT(
        ses_curve_args, methods, "methods", "NAME,...",
        "methods, as nb,logreg,finetune,lora; an unknown name lists them all; default: all of the task"),
    SES_OPT_LIST(ses_curve_args, set, "set", "METHOD:OPTION=VALUE",
                 "an option of finetune for a method: lora:lr=5e-4", .group = "training"),
    SES_OPT_INT(ses_curve_args, seed, "seed", "42", 0, 9e15, "first random seed", .letter = 's'),
    SES_OPT_INT(ses_curve_args, seeds, "seeds", "5", 1, 1000,
                "runs of each method and size; a seed draws the examples, the same for all methods"),
    SES_OPT_EPOCHS(ses_curve_args, epochs, "models: passes over the training data"),
    SES_OPT_INT(ses_curve_args, least_updates, "least-updates", "120", 0, 1e9,
                "models: updates if the epochs are fewer; 0: the epochs decide", .group = "training"),
    SES_OPT_INT(ses_curve_args, batch_size, "batch-size", "16", 1, 1 << 20, "models: examples per batch",
                .letter = 'b', .group = "training"),
    SES_OPT_LR(ses_curve_args, lr, "models: peak learning rate of the methods that set none"),
    SES_OPT_INT(ses_curve_args, max_length, "max-length", "128", 1, 1 << 20, "models: tokens per text",
                .group = "training"),
    SES_OPT_TEXT(ses_curve_args, vectors, "vectors", "FILE",
                 "word vectors of vectors and bilstm; default: skip-gram vectors of the drawn texts",
                 .is_path = true, .group = "training"),
    SES_OPT_TEXT(ses_curve_args, patterns, "patterns", "FILE",
                 "pet, adapet: cloze patterns and a word for each label; default: these methods are left out",
                 .is_path = true, .group = "training"),
    SES_OPT_TEXT(ses_curve_args, unlabeled, "unlabeled", "FILE",
                 "pet: texts without labels; default: the texts of --train", .is_path = true,
                 .group = "training"),
    SES_OPT_REAL(ses_curve_args, confidence, "confidence", "95", 1, 99.99,
                 "confidence level of the intervals", .value = "PERCENT", .group = "runs"),
    SES_OPT_JOBS(
        ses_curve_args, jobs, 256,
        "cells run at the same time, in processes that share the cores; the scores are the same, times "
        "are not"),
    SES_OPT_FLAG(ses_curve_args, keep_models, "keep-models",
                 "keep the model of each cell; default: its scores", .of_call = true, .group = "runs"),
    SES_OPT_FLAG(ses_curve_args, resume, "resume",
                 "keep the finished cells in DIR; sizes, methods and seeds may be added", .of_call = true),
    SES_OPT_FLAG(ses_curve_args, overwrite, "overwrite", "replace the curve in DIR", .of_call = true),
    SES_OPT_INCLUDE(ses_curve_args, data, ses_data_option_table),
    SES_OPT_INCLUDE(ses_curve_args, energy, ses_energy_options),
    SES_OPT_INCLUDE(ses_curve_args, compute, ses_compute_options),
};

static const ses_usage_example examples[] = {
    { "sesame curve --task sst2 --train SST-2/train.tsv --eval SST-2/dev.tsv --methods nb,logreg,finetune -o "
      "curve",
      "three methods with 8 to all examples, five seeds" },
    { "sesame curve ... --sizes 8,32,128 --per-class --seeds 10", "examples of each class" },
    { "sesame curve ... --methods nb,logreg,finetune,lora --resume", "add a method to a curve" },
    { "sesame curve ... --device cuda --jobs 4", "four runs at a time on a GPU" },
    { 0 },
};

const ses_command ses_command_curve = {
    .name = "curve",
    .usage = "",
    .summary = "learning curves of methods with few to all examples",
    .description =
        "Trains every method on random parts of the training data, with several seeds, and evaluates each "
        "run once: "
        "a table of mean scores with confidence intervals, a plot, and for each number of examples the "
        "method to "
        "use: the best one, or the cheapest one whose difference to the best is noise (paired by seed, "
        "Student's t).\n\n"
        "The parts of one seed are nested and the same for all methods. Runs are not tuned on the evaluation "
        "data: "
        "their number of updates is fixed (--epochs, at least --least-updates) and the last weights are "
        "evaluated. A run is the same as `sesame finetune --train-size N --seed S` with the options of its "
        "method.\n\n"
        "Ctrl-C stops and shows the finished cells; --resume continues with the same results. Cells that "
        "failed "
        "have a note with the reason, and --resume repeats them.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(ses_curve_args),
    .run = ses_curve_command,
};
