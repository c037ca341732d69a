/* Labeled examples in memory, read from any of the files of sesame/table.h; and the named benchmarks, each a
 * row that says which columns, labels and metrics it has.
 *
 *     const ses_benchmark *b = ses_benchmark_find("sst2");
 *     ses_examples *train = ses_examples_open("SST-2/train.tsv", &b->spec, NULL, &e);
 *     ses_examples *dev = ses_examples_open("SST-2/dev.tsv", &b->spec, train, &e);  -- has its labels
 *
 * What is read is borrowed until ses_examples_free, and may be read from several threads. */
#ifndef SESAME_EXAMPLES_H
#define SESAME_EXAMPLES_H

#include "sesame/table.h"

SES_BEGIN_DECLS

/* What an example is, and what is asked about it. */
typedef enum {
    SES_DATA_CLASSIFY, /* a text, perhaps a second: one label */
    SES_DATA_MULTI,    /* the same: several labels at once, ',' apart in the file */
    SES_DATA_REGRESS,  /* the same: a number */
    SES_DATA_TAG,      /* tokens: a label each */
    SES_DATA_SPAN,     /* question (text_a) and context (text_b): answers */
    SES_DATA_CHOICE,   /* a text, perhaps a second, and choices: which is right (label) */
    SES_DATA_SEQ2SEQ,  /* a text becomes another */
    SES_DATA_TEXT,     /* texts, with nothing said about them */
    SES_DATA_TUPLE,    /* a text, one that belongs to it (text_b), and perhaps some that do not (parts) */
    SES_DATA_KIND_COUNT
} ses_data_kind;

const char *ses_data_kind_name(ses_data_kind k); /* "classification", "tagging", ... */

typedef enum {
    SES_DATA_TABLE,   /* TSV, CSV, JSON lines */
    SES_DATA_CONLL,   /* columns of tokens */
    SES_DATA_SQUAD,   /* SQuAD's JSON */
    SES_DATA_MULTIRC, /* MultiRC's JSON lines: an example for each answer */
    SES_DATA_RECORD,  /* ReCoRD's JSON lines: an example for each query */
    SES_DATA_LINES,   /* plain text, an example for each line, with its end */
    SES_DATA_FORMAT_COUNT
} ses_data_format;

/* How a file is read. Lists are texts with '|' between. */
typedef struct ses_data_spec {
    ses_data_kind kind;
    ses_data_format format;
    const char *text_a, *text_b, *label; /* columns of a table: names, or numbers from 1; b may be NULL */
    const char *prefix_column;           /* column put in front of the first text, "lead: text"; or NULL */
    const char *choices;                 /* columns of the choices; of tuples: of what does not belong */
    ses_table_format table;
    ses_quotes quotes;
    char delimiter;
    bool no_header, ragged;
    int token_column, tag_column; /* of CoNLL; 0: the first, the last */
    bool conllu;
    bool no_labels; /* there are none, or they do not matter: to predict */
    bool
        skip_bad_answers; /* SQuAD: leave answers out that do not stand in their context, instead of failing */
    const char *label_values; /* labels as they stand in the file, in order; NULL: those that occur, sorted */
    const char *label_names;  /* of the labels; NULL: the values */
    const char *metrics, *best_metric; /* names of sesame/metric.h; the score to choose a model by */
} ses_data_spec;

typedef struct ses_labeled_example {
    uint64_t line; /* of its file, from 1 (SQuAD: the question's number) */
    ses_field id, text_a, text_b;
    int32_t label; /* of classification, of choice; SES_IGNORE_INDEX: none */
    double target;
    const ses_field *parts; /* tokens, or choices */
    size_t n_parts;
    int32_t *labels; /* of tokens; or those that apply */
    size_t n_labels;
    const ses_answer *answers;
    size_t n_answers;
    bool is_impossible; /* has no answer */
} ses_labeled_example;

typedef struct ses_examples ses_examples;

/* All of a file. `like` NULL, or the training set, whose labels these must be. */
ses_examples *ses_examples_open(const char *path, const ses_data_spec *spec, const ses_examples *like,
                                ses_err *e);
void ses_examples_free(ses_examples *d);

/* No examples, only labels, in this order: a `like`. */
ses_examples *ses_examples_from_labels(ses_data_kind kind, const char *const *names, size_t n, ses_err *e);

/* Labels get the order and the names of like's, matched by their names or else by their values, in either
 * case of letters. Unless both have the same set: false with both lists, and nothing is changed. */
bool ses_examples_align_labels(ses_examples *d, const ses_examples *like, ses_err *e);
ses_data_kind ses_examples_kind(const ses_examples *d);
size_t ses_examples_count(const ses_examples *d);
const ses_labeled_example *ses_examples_at(const ses_examples *d, size_t i);
size_t ses_examples_label_count(const ses_examples *d);
const char *ses_examples_label_name(const ses_examples *d, size_t i);  /* its name */
const char *ses_examples_label_value(const ses_examples *d, size_t i); /* as it stands in the file */
size_t ses_examples_skipped(const ses_examples *d);                    /* answers left out by skip_bad */

/* False and the reason where there is nothing to learn: no examples, one class only, one number only. */
bool ses_examples_check_learnable(const ses_examples *d, ses_err *e);

/* ---- named benchmarks ---- */

typedef struct ses_benchmark {
    const char *name, *title;
    ses_data_spec spec;
    const char *train, *dev, *test; /* files in the benchmark's folder; NULL: has none (with labels) */
} ses_benchmark;

const ses_benchmark *ses_benchmark_at(size_t i);                          /* NULL past the last */
const ses_benchmark *ses_benchmark_find(const char *name);                /* NULL: none */
const ses_benchmark *ses_benchmark_require(const char *name, ses_err *e); /* names those there are */

SES_END_DECLS

#endif
