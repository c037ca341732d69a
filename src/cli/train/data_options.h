/* Options that say how a file of labeled text is read, shared by the commands that read one. */
#ifndef SES_CLI_DATA_OPTIONS_H
#define SES_CLI_DATA_OPTIONS_H

#include "cli/option_parser.h"
#include "sesame/examples.h"

typedef struct ses_data_args {
    const char *task, *text, *pair, *label, *choices, *labels, *delimiter;
    int format, quotes;
    bool no_header, skip_bad;
    int64_t token_column, tag_column;
} ses_data_args;

/* must: the command cannot do without. */
#define SES_OPT_DATA_TASK(struct_, field, must)                                                             \
    {                                                                                                       \
        .name = "task", .letter = 'T', .type = SES_OPT_TEXT, .offset = offsetof(struct_, field.task),       \
        .value = "TASK", .required = must,                                                                  \
        .help =                                                                                             \
            "classify, regress, multi_label, tag, answer, choose, rewrite, continue, embed, or a benchmark" \
    }
#define SES_OPT_DATA(struct_, field)                                                                       \
    { .name = "text",                                                                                      \
      .type = SES_OPT_TEXT,                                                                                \
      .offset = offsetof(struct_, field.text),                                                             \
      .value = "COLUMN",                                                                                   \
      .help = "column of the text: a name, or a number from 1; without it, by its usual names" },          \
        { .name = "pair",                                                                                  \
          .type = SES_OPT_TEXT,                                                                            \
          .offset = offsetof(struct_, field.pair),                                                         \
          .value = "COLUMN",                                                                               \
          .help = "column of a second text; of choose: what all choices begin with; of rewrite: the text " \
                  "to write" },                                                                            \
        { .name = "label",                                                                                 \
          .type = SES_OPT_TEXT,                                                                            \
          .offset = offsetof(struct_, field.label),                                                        \
          .value = "COLUMN",                                                                               \
          .help = "column of the label or number; without it, by its usual names" },                       \
        { .name = "choices",                                                                               \
          .type = SES_OPT_TEXT,                                                                            \
          .offset = offsetof(struct_, field.choices),                                                      \
          .value = "COLUMN|COLUMN...",                                                                     \
          .help = "columns of the choices; of embed: of texts that do not belong to the first" },          \
        { .name = "labels",                                                                                \
          .type = SES_OPT_TEXT,                                                                            \
          .offset = offsetof(struct_, field.labels),                                                       \
          .value = "A|B...",                                                                               \
          .help = "the labels in order; without it, those that occur, sorted; of choices, their numbers "  \
                  "from 0" },                                                                              \
        { .name = "format",                                                                                \
          .type = SES_OPT_CHOICE,                                                                          \
          .offset = offsetof(struct_, field.format),                                                       \
          .def = "auto",                                                                                   \
          .choices = "auto|tsv|csv|jsonl|conll|conllu|squad|text",                                         \
          .help = "how the file is written; auto: by the task and the file's name" },                      \
        { .name = "no-header",                                                                             \
          .type = SES_OPT_FLAG,                                                                            \
          .offset = offsetof(struct_, field.no_header),                                                    \
          .help = "the first line is an example; columns are numbers" },                                   \
        { .name = "quotes",                                                                                \
          .type = SES_OPT_CHOICE,                                                                          \
          .offset = offsetof(struct_, field.quotes),                                                       \
          .def = "auto",                                                                                   \
          .choices = "auto|off|on",                                                                        \
          .help = "whether \"...\" quotes a field; auto: in CSV" },                                        \
        { .name = "delimiter",                                                                             \
          .type = SES_OPT_TEXT,                                                                            \
          .offset = offsetof(struct_, field.delimiter),                                                    \
          .value = "CHARACTER",                                                                            \
          .help = "what stands between fields; without it, a tab or (CSV) a comma" },                      \
        { .name = "token-column",                                                                          \
          .type = SES_OPT_INT,                                                                             \
          .offset = offsetof(struct_, field.token_column),                                                 \
          .def = "0",                                                                                      \
          .min = -256,                                                                                     \
          .max = 256,                                                                                      \
          .help = "of CoNLL: the tokens' column, from 1 or (-1) from the end; 0: the first" },             \
        { .name = "tag-column",                                                                            \
          .type = SES_OPT_INT,                                                                             \
          .offset = offsetof(struct_, field.tag_column),                                                   \
          .def = "0",                                                                                      \
          .min = -256,                                                                                     \
          .max = 256,                                                                                      \
          .help = "of CoNLL: the tags' column; 0: the last" },                                             \
    {                                                                                                      \
        .name = "skip-bad", .type = SES_OPT_FLAG, .offset = offsetof(struct_, field.skip_bad),             \
        .help = "of SQuAD: leave answers out that do not stand in their context, instead of stopping"      \
    }

/* What the options say, over what the named benchmark says; *b NULL where the task is a kind. */
bool ses_data_args_spec(const ses_data_args *a, ses_data_spec *spec, const ses_benchmark **b, ses_err *e);
/* ses_examples_open, with columns that nobody named looked for by their usual names. */
ses_examples *ses_data_args_open(const ses_data_spec *spec, const char *path, const ses_examples *like,
                                 ses_err *e);

#endif
