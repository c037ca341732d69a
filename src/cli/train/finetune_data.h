/* What finetune, eval and predict share: reading labeled files, showing and writing what came out. */
#ifndef SES_CLI_TUNE_H
#define SES_CLI_TUNE_H

#include "cli/command.h"
#include "cli/compute_args.h"
#include "data_options.h"
#include "tune/finetuner.h"

/* How a file is read, and what the task is told. */
typedef struct ses_finetune_data_args {
    ses_compute_args shared;
    ses_data_args data;
    const char *prefix, *src_lang, *tgt_lang, *loss, *pooling, *metrics;
    int eval_with; /* ses_embed_metric */
    double margin, temperature;
    bool all_pieces, allow_no_answer, line_by_line;
    int64_t max_length, stride, max_answer, n_best, max_target, num_beams;
    double null_threshold;
    const char *adapter, *model; /* of eval and predict; the model, if it is not the first operand */
} ses_finetune_data_args;

#define SES_OPT_TASK(struct_, field) SES_OPT_DATA_TASK(struct_, field.data, true)
#define SES_OPT_FINETUNED_MODEL(struct_, field)                                                         \
    {                                                                                                   \
        .name = "model", .letter = 'm', .type = SES_OPT_TEXT, .offset = offsetof(struct_, field.model), \
        .value = "DIR", .is_model = true, .help = "the model, in place of the first argument"           \
    }
#define SES_OPT_TUNE(struct_, field)                                                                       \
    SES_OPT_DATA(struct_, field.data),                                                                     \
        { .name = "max-length",                                                                            \
          .type = SES_OPT_INT,                                                                             \
          .offset = offsetof(struct_, field.max_length),                                                   \
          .def = "0",                                                                                      \
          .min = 0,                                                                                        \
          .max = 1 << 20,                                                                                  \
          .help = "most tokens of a sequence; 0: what the model takes" },                                  \
        { .name = "stride",                                                                                \
          .type = SES_OPT_INT,                                                                             \
          .offset = offsetof(struct_, field.stride),                                                       \
          .def = "128",                                                                                    \
          .min = 0,                                                                                        \
          .max = 1 << 20,                                                                                  \
          .help = "answer: tokens that two windows of a passage share" },                                  \
        { .name = "max-answer",                                                                            \
          .type = SES_OPT_INT,                                                                             \
          .offset = offsetof(struct_, field.max_answer),                                                   \
          .def = "30",                                                                                     \
          .min = 1,                                                                                        \
          .max = 1 << 16,                                                                                  \
          .help = "answer: the longest, in tokens" },                                                      \
        { .name = "n-best",                                                                                \
          .type = SES_OPT_INT,                                                                             \
          .offset = offsetof(struct_, field.n_best),                                                       \
          .def = "20",                                                                                     \
          .min = 1,                                                                                        \
          .max = 64,                                                                                       \
          .help = "answer: so many beginnings and ends are tried" },                                       \
        { .name = "no-answers",                                                                            \
          .type = SES_OPT_FLAG,                                                                            \
          .offset = offsetof(struct_, field.allow_no_answer),                                              \
          .help = "answer: a passage may have none, as in SQuAD 2.0" },                                    \
        { .name = "null-threshold",                                                                        \
          .type = SES_OPT_REAL,                                                                            \
          .offset = offsetof(struct_, field.null_threshold),                                               \
          .def = "0",                                                                                      \
          .help = "answer: how much more likely none must be to be said" },                                \
        { .name = "lines",                                                                                 \
          .type = SES_OPT_FLAG,                                                                            \
          .offset = offsetof(struct_, field.line_by_line),                                                 \
          .help = "continue: each line or row is a sequence of its own; else all are joined and cut in "   \
                  "blocks" },                                                                              \
        { .name = "prefix",                                                                                \
          .type = SES_OPT_TEXT,                                                                            \
          .offset = offsetof(struct_, field.prefix),                                                       \
          .value = "TEXT",                                                                                 \
          .help = "rewrite: put this in front of each text, as \"summarize: \" for T5" },                  \
        { .name = "max-target",                                                                            \
          .type = SES_OPT_INT,                                                                             \
          .offset = offsetof(struct_, field.max_target),                                                   \
          .def = "128",                                                                                    \
          .min = 1,                                                                                        \
          .max = 1 << 20,                                                                                  \
          .help = "rewrite: most tokens of a text to write" },                                             \
        { .name = "num-beams",                                                                             \
          .type = SES_OPT_INT,                                                                             \
          .offset = offsetof(struct_, field.num_beams),                                                    \
          .def = "0",                                                                                      \
          .min = 0,                                                                                        \
          .max = 1024,                                                                                     \
          .help = "rewrite: beams when measuring and predicting; 0: as the model's folder says" },         \
        { .name = "src-lang",                                                                              \
          .type = SES_OPT_TEXT,                                                                            \
          .offset = offsetof(struct_, field.src_lang),                                                     \
          .value = "CODE",                                                                                 \
          .help = "rewrite: the token of the language to read, as en_XX" },                                \
        { .name = "tgt-lang",                                                                              \
          .type = SES_OPT_TEXT,                                                                            \
          .offset = offsetof(struct_, field.tgt_lang),                                                     \
          .value = "CODE",                                                                                 \
          .help = "rewrite: the token of the language to write" },                                         \
        { .name = "loss",                                                                                  \
          .type = SES_OPT_TEXT,                                                                            \
          .offset = offsetof(struct_, field.loss),                                                         \
          .value = "NAME",                                                                                 \
          .help = "embed: negatives (of the batch), softmax, cosine, contrastive or triplet; without it "  \
                  "negatives" },                                                                           \
        { .name = "pooling",                                                                               \
          .type = SES_OPT_TEXT,                                                                            \
          .offset = offsetof(struct_, field.pooling),                                                      \
          .value = "WAY",                                                                                  \
          .help = "embed: how tokens' vectors become one: cls, max, mean, ...; without it as the folder "  \
                  "says, else mean" },                                                                     \
        { .name = "margin",                                                                                \
          .type = SES_OPT_REAL,                                                                            \
          .offset = offsetof(struct_, field.margin),                                                       \
          .def = "-1",                                                                                     \
          .min = -1,                                                                                       \
          .max = 1e6,                                                                                      \
          .help =                                                                                          \
              "embed: of triplets (usually 5) and contrastive pairs (usually 0.5); below 0: the usual" },  \
        { .name = "cosine-temperature",                                                                    \
          .type = SES_OPT_REAL,                                                                            \
          .offset = offsetof(struct_, field.temperature),                                                  \
          .def = "0.05",                                                                                   \
          .min = 1e-6,                                                                                     \
          .max = 1e6,                                                                                      \
          .help = "embed: cosines of negatives are divided by it" },                                       \
        { .name = "measure",                                                                               \
          .type = SES_OPT_CHOICE,                                                                          \
          .offset = offsetof(struct_, field.eval_with),                                                    \
          .def = "auto",                                                                                   \
          .choices = "auto|scores|triplets",                                                               \
          .help = "embed: what is measured with: pairs with a score, or triplets; auto: triplets where "   \
                  "they are the loss" },                                                                   \
        { .name = "metrics",                                                                               \
          .type = SES_OPT_TEXT,                                                                            \
          .offset = offsetof(struct_, field.metrics),                                                      \
          .value = "A|B...",                                                                               \
          .help = "in place of the task's usual ones: accuracy, f1, matthews, entity_iobes, rouge, bleu, " \
                  "exact, ..." },                                                                          \
    {                                                                                                      \
        .name = "all-pieces", .type = SES_OPT_FLAG, .offset = offsetof(struct_, field.all_pieces),         \
        .help = "tag: every piece of a word has its label, not the first alone"                            \
    }

/* What vectors are measured with. */
typedef enum { SES_EVAL_AUTO, SES_EVAL_SCORES, SES_EVAL_TRIPLETS } ses_embed_metric;

/* finetune_data.c */
bool ses_finetune_resolve_task(const ses_finetune_data_args *a, const ses_finetune_task **kind,
                               ses_data_spec *spec, ses_err *e);
/* How a file to measure with is read: as the training data, vectors apart. */
ses_data_spec ses_finetune_eval_spec(const ses_finetune_data_args *a, const ses_finetune_task *k,
                                     const ses_data_spec *spec);
/* The labels of a config, as a `like`; NULL where it has none. told: not just LABEL_0, LABEL_1, ... */
bool ses_config_labels(const ses_json *config, ses_data_kind kind, ses_examples **out, bool *told,
                       ses_err *e);
ses_finetuner_options ses_finetuner_options_from(const ses_finetune_data_args *a, const ses_finetune_task *k,
                                                 const ses_data_spec *s);

/* prediction_run.c: the model in c->rest[0] over the file c->rest[1] */
typedef struct ses_prediction_run {
    ses_device *dev;
    ses_json_doc *config;
    ses_examples *rows, *labels; /* labels: the model's, or NULL */
    bool has_label_names;        /* they have names */
    size_t n;                    /* rows, or what else is predicted: blocks of a text */
    ses_finetuner *tuner;
    ses_finetune_set set;
    ses_task_outputs predictions;
} ses_prediction_run;
/* labels: whether the file must have them */
bool ses_prediction_run_open(ses_prediction_run *r, const ses_finetune_data_args *a, const ses_call *c,
                             bool labels, ses_err *e);
void ses_prediction_run_free(ses_prediction_run *r); /* fine after a failed open */

bool ses_metric_lower_is_better(const char *score); /* the lower the better */

/* finetune_notify.c */
/* On stderr: how many rows were too long, and what became of them; nothing where none was. */
void ses_notify_truncated(const ses_finetuner *t, const ses_finetune_set *s, const char *path);

#endif
