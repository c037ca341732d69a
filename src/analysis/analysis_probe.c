/* probe: what a simple model can read from the hidden states of each layer. The first operand is the kind. */
#include "analysis.h"
#include "analysis/probe/probe_kind.h"
#include "base/str.h"

#include <string.h>

static const ses_opt opt[] = {
    SES_OPT_CHOICE(ses_probe_args, first_piece, "word-pieces", "mean", "mean|first",
                   "state of a word: the mean of its tokens, or the first",
                   .was_set = offsetof(ses_probe_args, pieces_given), .group = "probing"),
    SES_OPT_FLAG(ses_probe_args, decoder, "decoder", "encoder-decoders: probe the decoder",
                 .group = "probing"),
    SES_OPT_FLAG(ses_probe_args, no_random, "no-random",
                 "skip the model with random weights, half of the time", .group = "probing"),
    SES_OPT_INCLUDE(ses_probe_args, classify, ses_probe_classifier_options),
    SES_OPT_INCLUDE(ses_probe_args, tree, ses_probe_tree_options),
};

#define SES_PROBE_KIND(name) &ses_probe_kind_##name,
static const ses_probe_kind *const kinds[] = {
#include "analysis/probe/probe_kinds.def"
};
#undef SES_PROBE_KIND

static const ses_probe_kind *find_kind(const char *name)
{
    for (size_t i = 0; i < SES_LEN(kinds); i++)
        if (!strcmp(kinds[i]->name, name)) return kinds[i];
    return NULL;
}

static bool unknown_kind(const char *name, ses_err *e)
{
    ses_buf list = { 0 };
    for (size_t i = 0; i < SES_LEN(kinds); i++) ses_buf_appendf(&list, "%s%s", i ? ", " : "", kinds[i]->name);
    ses_fail(e, SES_EUSAGE, "unknown kind of probe '%s', expected one of: %s",
             ses_quoted_of(name, strlen(name)).s, list.data ? list.data : "");
    ses_buf_free(&list);
    return false;
}

static bool run(ses_analysis_call *c, ses_err *e)
{
    const ses_probe_kind *k = find_kind(c->operands[0]);
    if (!k) return unknown_kind(c->operands[0], e);
    int n = c->n_operands - 1;
    if (n < k->min_files || (k->max_files >= 0 && n > k->max_files))
        return ses_fail(e, SES_EUSAGE, "%d file%s; usage: sesame probe %s %s", n, n == 1 ? "" : "s", k->name,
                        k->operands);
    return k->run(c, c->operands + 1, n, c->args, e);
}

static bool asks_decoder(const void *args) { return ((const ses_probe_args *)args)->decoder; }

static const ses_usage_example examples[] = {
    { "sesame probe tag train.conllu dev.conllu test.conllu", "part of speech by layer" },
    { "sesame probe tag --tags upos,feats.Number,deprel --mdl train.conllu dev.conllu",
      "three tasks, with codelengths" },
    { "sesame probe text reviews.tsv --layers 0,6,12", "labels of texts" },
    { "sesame probe arc train.conllu dev.conllu --max-train 50000", "dependency arcs and their relations" },
    { "sesame probe tree train.conllu dev.conllu test.conllu", "structural probes of every layer" },
    { "sesame probe tree trees.conllu --layers 4-8 --rank 64 --html trees.html", "five layers, as a page" },
    { 0 },
};

const ses_analysis ses_analysis_probe = {
    .operands = "tag|text|arc|tree FILE...",
    .description =
        "Trains probes: simple models on the hidden states of each layer. Scores above the scores of the "
        "same "
        "model with random weights show that training put the information there.\n\nKIND tag, text and arc "
        "train a classifier: softmax regression, an MLP (--mlp), an edge probe (--edge), or one of mixed "
        "layers "
        "(--mix). Its baselines are the most frequent label, the most frequent label of each word, layer 0, "
        "which is always probed, and random weights. In the control task (Hewitt and Liang 2019) each word "
        "draws a random label; selectivity is the difference of the two scores. --mdl adds the codelength of "
        "the labels (Voita and Titov 2020).\n\ntag probes words: the columns of CoNLL-U or other column "
        "files. "
        "text probes whole texts of a TSV, CSV or JSON lines file; its control task draws a label for each "
        "first word. arc probes pairs of words of CoNLL-U by [h_i; h_j; h_i * h_j]: whether j is the head of "
        "i, "
        "and the relation between them.\n\nKIND tree, structural probes (Hewitt and Manning 2019), reads "
        "CoNLL-U. Two linear maps are trained on each layer: one turns distances between words into "
        "distances "
        "in the dependency tree, one turns lengths into depths.\n\nFiles are TRAIN [DEV [TEST]]; without "
        "TEST, "
        "DEV is test data, too. One file is split: of ten texts, eight are training, one is development and "
        "one "
        "is test data. Texts longer than the model are read in overlapping windows.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(ses_probe_args),
    .min_operands = 2,
    .max_operands = -1,
    .default_model_of = "feature-extraction",
    .model = SES_ANALYSIS_HIDDEN_STATES,
    .asks_decoder = asks_decoder,
    .run = run,
};
