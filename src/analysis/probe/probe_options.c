/* Options of the probes that classify. */
#include "probe_options.h"

#define AT(field) offsetof(ses_probe_classifier_args, field)
static const ses_opt opt[] = {
    SES_OPT_TEXT(
        ses_probe_classifier_args, columns, "tags", "NAME,...",
        "tag: labels to probe. CoNLL-U: upos (default), xpos, deprel, feats.NAME; other column files: "
        "numbers from 2 (1 is the word; default: the last)",
        .alias = "columns", .was_set = AT(given.columns)),
    SES_OPT_TEXT(ses_probe_classifier_args, text, "column", "COLUMN",
                 "text: column of the text, by name or number; default: text or sentence, else 1",
                 .alias = "text", .was_set = AT(given.text)),
    SES_OPT_TEXT(ses_probe_classifier_args, pair, "pair-column", "COLUMN", "text: column of a second text",
                 .alias = "pair", .was_set = AT(given.pair)),
    SES_OPT_TEXT(ses_probe_classifier_args, label, "label-column", "COLUMN",
                 "text: column of the label, by name or number; default: label, else 2", .alias = "label",
                 .was_set = AT(given.label)),
    SES_OPT_TEXT(
        ses_probe_classifier_args, task, "task", "NAME,...",
        "text: tasks made from the trees of CoNLL-U: length, depth, word-content, bigram-shift, odd-word, "
        "subject-number, object-number, tense",
        .was_set = AT(given.task), .def = "all"),
    SES_OPT_CHOICE(
        ses_probe_classifier_args, pool, "pool", "mean", "mean|first|last",
        "text: vector of a text: mean of all its tokens, with special tokens, its first or its last "
        "position",
        .was_set = AT(given.pool)),
    SES_OPT_INT(ses_probe_classifier_args, mlp, "mlp", "0", 0, 1 << 14,
                "an MLP with N hidden units instead of softmax regression", .was_set = AT(given.mlp),
                .value = "N", .group = "probing"),
    SES_OPT_TEXT(
        ses_probe_classifier_args, c, "regularization", "C,...",
        "candidates of the inverse regularization strength, ascending; the best on development data is "
        "used",
        .letter = 'C', .was_set = AT(given.c), .def = "0.001,0.01,0.1,1", .group = "probing"),
    SES_OPT_REAL(ses_probe_classifier_args, tolerance, "tolerance", "1e-3", 1e-9, 1,
                 "softmax regression ends if no component of the gradient of the mean loss is larger",
                 .was_set = AT(given.tolerance), .value = "X", .group = "probing"),
    SES_OPT_FLAG(
        ses_probe_classifier_args, edge, "edge",
        "an edge probe: projection, attention over the words of a span, MLP, sigmoid for each label. "
        "Entities and chunks of column files (B-X, I-X) are spans",
        .group = "probing"),
    SES_OPT_FLAG(ses_probe_classifier_args, mix, "mix",
                 "a learned mix of layers: centre of gravity, expected layer", .group = "probing"),
    SES_OPT_FLAG(
        ses_probe_classifier_args, mdl, "mdl",
        "compute the codelength by online coding: blocks end at 0.1, 0.2, ... 50, 100 % of the training "
        "data; a label with probability p costs -log2((n p + 1)/(n + K)) bits after n examples of K "
        "labels, and -log2 p in the unsmoothed codelength if the label is among them",
        .group = "probing"),
    SES_OPT_TEXT(ses_probe_classifier_args, vectors, "vectors", "FILE",
                 "static word vectors (a file of 'sesame vectors') as a baseline: of a word its vector, of a "
                 "text the mean of its words",
                 .was_set = AT(given.vectors), .is_path = true, .group = "probing"),
    SES_OPT_FLAG(ses_probe_classifier_args, no_control, "no-control", "skip the control task",
                 .group = "probing"),
    SES_OPT_FLAG(ses_probe_classifier_args, random_all, "random-all",
                 "probe every layer of the model with random weights, not only the best one",
                 .group = "probing"),
    SES_OPT_INT(ses_probe_classifier_args, max_train, "max-train", "0", 0, 1e12,
                "maximum training examples, drawn at random; 0: all", .was_set = AT(given.max_train),
                .value = "N", .group = "probing"),
};
const ses_opt_table ses_probe_classifier_options = { opt, SES_LEN(opt) };
