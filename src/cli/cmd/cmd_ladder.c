/* ladder: methods of classification on one data set. Options and help. */
#include "base/energy/energy_options.h"
#include "cli/ladder/ladder.h"
#include "cli/run_options.h"

#define AT(field) offsetof(ses_ladder_args, field)

static const ses_opt opt[] = {
    { .name = "only",
      .type = SES_OPT_TEXT,
      .offset = AT(only),
      .value = "NAME,...",
      .help =
          "run these rungs only: majority, nb, nb-bi, nb-svm, nb-svm-bi, vectors, fasttext, bilstm, lm-lstm, "
          "sa-lstm, ulmfit, elmo, features, finetuned" },
    { .name = "skip",
      .type = SES_OPT_TEXT,
      .offset = AT(skip),
      .value = "NAME,...",
      .help = "leave these out" },
    { .name = "output",
      .letter = 'o',
      .type = SES_OPT_TEXT,
      .offset = AT(output),
      .value = "DIR",
      .help = "keep the models in subfolders of DIR, with ladder.json; default: a temporary folder" },
    { .name = "resume",
      .type = SES_OPT_FLAG,
      .offset = AT(resume),
      .help = "skip the rungs that are finished in DIR" },
    { .name = "overwrite",
      .type = SES_OPT_FLAG,
      .offset = AT(overwrite),
      .help = "replace the rungs in DIR and the files of --svg and --html" },
    { .name = "model",
      .letter = 'm',
      .type = SES_OPT_TEXT,
      .offset = AT(model),
      .value = "DIR",
      .def = "sesame-small",
      .is_model = true,
      .help = "pretrained model of the last rungs" },
    { .name = "vectors",
      .type = SES_OPT_TEXT,
      .offset = AT(vectors),
      .value = "FILE",
      .is_path = true,
      .help = "word vectors; default: skip-gram vectors of the training texts" },
    { .name = "lm",
      .type = SES_OPT_TEXT,
      .offset = AT(lm),
      .value = "DIR",
      .is_model = true,
      .help = "ulmfit: general language model, awd-lstm; default: none, the rung is left out" },
    { .name = "elmo",
      .type = SES_OPT_TEXT,
      .offset = AT(elmo),
      .value = "DIR",
      .is_model = true,
      .help = "elmo: its folder; default: none, the rung is left out" },
    SES_OPT_EPOCHS(ses_ladder_args, epochs, "finetuned: passes over the training data"),
    SES_OPT_LR(ses_ladder_args, lr, "finetuned: peak learning rate"),
    { .name = "max-length",
      .type = SES_OPT_INT,
      .offset = AT(max_length),
      .def = "128",
      .min = 1,
      .max = 1 << 20,
      .help = "features, finetuned: tokens per text" },
    { .name = "test-size",
      .type = SES_OPT_REAL,
      .offset = AT(test_size),
      .def = "0.2",
      .min = 0.01,
      .max = 0.99,
      .help = "one file: part of each class that is split off for the test" },
    { .name = "seed",
      .letter = 's',
      .type = SES_OPT_INT,
      .offset = AT(seed),
      .def = "42",
      .min = 0,
      .max = 9e15,
      .help = "random seed of the split, of training and of the resamples" },
    { .name = "seeds",
      .type = SES_OPT_INT,
      .offset = AT(seeds),
      .def = "1",
      .min = 1,
      .max = 1000,
      .help = "N runs of the methods that depend on the seed, from --seed; reports mean and deviation" },
    { .name = "bootstrap",
      .type = SES_OPT_INT,
      .offset = AT(bootstrap),
      .def = "1000",
      .min = 0,
      .max = 1000000,
      .help = "resamples for confidence intervals; 0: no intervals" },
    { .name = "confidence",
      .type = SES_OPT_REAL,
      .offset = AT(confidence),
      .def = "95",
      .value = "PERCENT",
      .min = 1,
      .max = 99.99,
      .help = "confidence level of the intervals" },
    { .name = "svg",
      .type = SES_OPT_TEXT,
      .offset = AT(svg),
      .value = "FILE",
      .help = "write table and bars" },
    { .name = "html",
      .type = SES_OPT_TEXT,
      .offset = AT(html),
      .value = "FILE",
      .help = "write a page that needs no other file" },
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
        "rungs: majority class; Naive Bayes and NB-SVM, with and without bigrams; mean of word vectors; "
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
