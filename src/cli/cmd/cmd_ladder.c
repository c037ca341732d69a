/* ladder: methods of classification on one data set. Options and help. */
#include "cli/ladder/ladder.h"
#include "cli/run_options.h"
#include "train/energy/energy_options.h"

static const ses_opt opt[] = {
    SES_OPT_TEXT(
        ses_ladder_args, only, "only", "NAME,...",
        "run these methods only: majority, nb, nb-bi, nb-svm, nb-svm-bi, vectors, fasttext, bilstm, lm-lstm, "
        "sa-lstm, ulmfit, elmo, features, finetuned"),
    SES_OPT_TEXT(ses_ladder_args, skip, "skip", "NAME,...", "leave these out"),
    SES_OPT_TEXT(ses_ladder_args, output, "output", "DIR",
                 "keep the models in subfolders of DIR, with ladder.json; default: a temporary folder",
                 .letter = 'o', .alias = "to"),
    SES_OPT_FLAG(ses_ladder_args, resume, "resume", "skip the methods that are finished in DIR"),
    SES_OPT_FLAG(ses_ladder_args, overwrite, "overwrite",
                 "replace the methods in DIR and the files of --svg and --html"),
    SES_OPT_TEXT(ses_ladder_args, model, "model", "DIR", "pretrained model of the last methods",
                 .letter = 'm', .def = "sesame-small", .is_model = true),
    SES_OPT_TEXT(ses_ladder_args, vectors, "vectors", "FILE",
                 "word vectors; default: skip-gram vectors of the training texts", .is_path = true),
    SES_OPT_TEXT(ses_ladder_args, lm, "lm", "DIR",
                 "ulmfit: general language model, awd-lstm; default: none, the method is left out",
                 .is_model = true, .group = "runs"),
    SES_OPT_TEXT(ses_ladder_args, elmo, "elmo", "DIR",
                 "elmo: its folder; default: none, the method is left out", .is_model = true,
                 .group = "runs"),
    SES_OPT_EPOCHS(ses_ladder_args, epochs, "finetuned: passes over the training data"),
    SES_OPT_LR(ses_ladder_args, lr, "finetuned: peak learning rate"),
    SES_OPT_INT(ses_ladder_args, max_length, "max-length", "128", 1, 1 << 20,
                "features, finetuned: tokens per text"),
    SES_OPT_REAL(ses_ladder_args, test_size, "test-size", "0.2", 0.01, 0.99,
                 "one file: part of each class that is split off for the test", .group = "runs"),
    SES_OPT_INT(ses_ladder_args, seed, "seed", "42", 0, 9e15,
                "random seed of the split, of training and of the resamples", .letter = 's'),
    SES_OPT_INT(ses_ladder_args, seeds, "seeds", "1", 1, 1000,
                "N runs of the methods that depend on the seed, from --seed; reports mean and deviation",
                .group = "runs"),
    SES_OPT_INT(ses_ladder_args, bootstrap, "bootstrap", "1000", 0, 1000000,
                "resamples for confidence intervals; 0: no intervals", .group = "runs"),
    SES_OPT_REAL(ses_ladder_args, confidence, "confidence", "95", 1, 99.99,
                 "confidence level of the intervals", .value = "PERCENT", .group = "runs"),
    SES_OPT_TEXT(ses_ladder_args, svg, "svg", "FILE", "write table and bars", .group = "pages"),
    SES_OPT_TEXT(ses_ladder_args, html, "html", "FILE", "write a page that needs no other file",
                 .group = "pages"),
    SES_OPT_INCLUDE(ses_ladder_args, data, ses_data_option_table),
    SES_OPT_INCLUDE(ses_ladder_args, energy, ses_energy_options),
    SES_OPT_INCLUDE(ses_ladder_args, compute, ses_compute_options),
};

static const ses_usage_example examples[] = {
    { "sesame ladder classify train.tsv test.tsv --svg ladder.svg", "all methods, a table and a picture" },
    { "sesame ladder classify reviews.csv --only nb,nb-svm-bi,finetuned",
      "three methods; a fifth of the reviews is the test set" },
    { "sesame ladder sst2 SST-2/train.tsv SST-2/dev.tsv --output sst2 --resume",
      "continue an interrupted ladder" },
    { 0 },
};

const ses_command ses_command_ladder = {
    .name = "ladder",
    .usage = "TASK TRAIN [TEST]",
    .summary = "compare methods from majority class to fine-tuning",
    .description =
        "Trains methods of growing cost on one data set and prints one table: score on the test data with "
        "its "
        "confidence interval, training time, prediction time per text, energy of training and size on disk. "
        "The "
        "methods: majority class; Naive Bayes and NB-SVM, with and without bigrams; mean of word vectors; "
        "fastText; BiLSTM over word vectors; LSTMs that start as a language model (lm-lstm) or a sequence "
        "autoencoder (sa-lstm) of the training texts; ULMFiT (--lm); BiLSTM over features of ELMo (--elmo); "
        "features of a pretrained model with logistic regression; the fine-tuned model.\n\n"
        "TASK is classify or a classification benchmark, as for finetune; columns are found by their common "
        "names. "
        "If TEST is not given, a part of each class is split off for the test, the same for the same "
        "seed.\n\n"
        "--output keeps each model in a subfolder of its name, which eval, predict and text-classification "
        "open "
        "(features: the weights of the regression only). Ctrl-C stops and prints the finished rows; --resume "
        "continues. The interval is that of the first seed.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(ses_ladder_args),
    .min_operands = 2,
    .max_operands = 3,
    .run = ses_ladder_command,
};
