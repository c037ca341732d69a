/* Labeled examples in memory, read from the file formats of sesame/unstable/table.h; and the named
 * benchmarks, each with its columns, labels and metrics.
 *
 *     const ses_benchmark *b = ses_benchmark_find("sst2");
 *     ses_examples *train = ses_examples_open("SST-2/train.tsv", &b->spec, NULL, &e);
 *     ses_examples *dev = ses_examples_open("SST-2/dev.tsv", &b->spec, train, &e);  -- same label ids
 *
 * Ownership: examples and their strings are valid until ses_examples_free. Strings are followed by a NUL.
 * Threads: several threads may read one ses_examples. Benchmarks are static. */
#ifndef SESAME_EXAMPLES_H
#define SESAME_EXAMPLES_H

#include "sesame/unstable/table.h"

SES_BEGIN_DECLS

/* Kind of examples. */
typedef enum {
    SES_DATA_CLASSIFY, /* one or two texts: one label */
    SES_DATA_MULTI,    /* one or two texts: any number of labels, see label_separator */
    SES_DATA_REGRESS,  /* one or two texts: a number */
    SES_DATA_TAG,      /* tokens: one label each */
    SES_DATA_SPAN,     /* question (text_a) and context (text_b): answers */
    SES_DATA_CHOICE,   /* one or two texts and choices: the right choice (label) */
    SES_DATA_SEQ2SEQ,  /* source text (text_a), target text (text_b) */
    SES_DATA_TEXT,     /* unlabeled texts */
    SES_DATA_TUPLE,    /* anchor (text_a), positive (text_b) and optional negatives (parts) */
    SES_DATA_KIND_COUNT
} ses_data_kind;

/* Name of a kind for messages: "classification", "tagging". Static. */
const char *ses_data_kind_name(ses_data_kind k);

typedef enum {
    SES_DATA_TABLE,      /* TSV, CSV, JSON lines */
    SES_DATA_CONLL,      /* token columns */
    SES_DATA_SQUAD,      /* SQuAD's JSON */
    SES_DATA_MULTIRC,    /* MultiRC's JSON lines: one example per answer */
    SES_DATA_RECORD,     /* ReCoRD's JSON lines: one example per query */
    SES_DATA_WINOGENDER, /* all_sentences.tsv of Winogender: one example per sentence */
    SES_DATA_LINES,      /* plain text: one example per line, with its line end */
    SES_DATA_FORMAT_COUNT
} ses_data_format;

/* Rows of a table with an error, such as an empty label, and rows with an empty text. Both are counted: see
 * ses_examples_gap. */
typedef enum {
    SES_BAD_ROWS_FAIL, /* an error ends the reading; rows with an empty text are kept */
    SES_BAD_ROWS_DROP, /* both are dropped */
    SES_BAD_ROWS_COUNT /* rows with an error are dropped, rows with an empty text kept: to look at a file */
} ses_bad_rows;

/* How a file is read. Lists are strings separated by '|'. */
typedef struct ses_data_spec {
    ses_data_kind kind;
    ses_data_format format;
    const char *text_a, *text_b, *label; /* table columns: names, or numbers from 1; text_b may be NULL */
    const char *prefix_column;           /* column prepended to text_a as "prefix: text"; or NULL */
    const char *group;                   /* column of the example's group, such as a minimal pair; or NULL */
    const char *choices;                 /* list of choice columns; for tuples: of the negatives */
    ses_table_format table;
    ses_quotes quotes;
    char delimiter;
    bool no_header, ragged;
    int token_column, tag_column; /* CoNLL columns; 0: the first, the last */
    bool conllu;
    int tag_scheme;        /* CoNLL: convert labels of spans to 1: BIO, 2: BIOES; 0: as they are */
    bool no_labels;        /* the file has no labels, or they are ignored: for prediction */
    bool skip_bad_answers; /* SQuAD: skip answers that are not in their context; default: fail */
    /* list of labels as in the file, in id order; or pairs with names, "0=negative,1=positive", in which
     * labels with the same name are one. NULL: all labels that occur, sorted */
    const char *label_values;
    const char *label_names; /* list of label names; NULL: the values */
    const char *metrics,
        *best_metric; /* metric names of sesame/metric.h; the score that selects the best model */
    ses_bad_rows bad_rows;
    ses_text_encoding encoding;
    /* Several labels: the character between them, '[' for JSON arrays; 0: the one of JSON arrays,
     * '|', ';' and ',' that most rows have. */
    char label_separator;
} ses_data_spec;

typedef struct ses_labeled_example {
    uint64_t line; /* line number in the file, from 1; for SQuAD the number of the question */
    ses_string id, text_a, text_b;
    int32_t label;           /* class, or index of the right choice; SES_IGNORE_INDEX: none */
    double target;           /* number to predict, for regression */
    const ses_string *parts; /* tokens, choices or negatives */
    size_t n_parts;
    int32_t *labels; /* one per token, or the labels that apply */
    size_t n_labels;
    const ses_answer *answers;
    size_t n_answers;
    bool is_impossible; /* the question has no answer */
    int64_t group;      /* the question of MultiRC, the minimal pair of Winogender: from 1; 0: none */
} ses_labeled_example;

typedef struct ses_examples ses_examples;

/* Reads a whole file. like: NULL, or the training set, whose labels and label ids are used; an unknown label
 * is then an error. spec is used during the call only. NULL on failure. Free with ses_examples_free. */
ses_examples *ses_examples_open(const char *path, const ses_data_spec *spec, const ses_examples *like,
                                ses_err *e);

/* An example in memory; a kind reads its own fields, the others are 0 or NULL. */
typedef struct ses_example_input {
    const char *text;  /* question, source, anchor; unused by tags */
    const char *pair;  /* second text, passage of a span, target text, or positive of a tuple; may be NULL */
    const char *label; /* classification; NULL: unknown, to be predicted */
    double value;      /* regression */
    int64_t choice;    /* index of the right choice */
    const char *const *parts; /* words of tags, choices, negatives of a tuple */
    size_t n_parts;
    const char *const *labels; /* tags: one per part, or NULL: unknown; multi-label: the labels that apply */
    size_t n_labels;
    const char *answer;  /* span: an exact part of the passage; NULL: none, or unknown */
    size_t answer_start; /* its byte offset in the passage */
} ses_example_input;

/* A set of n examples; strings are copied. labels: the label set in order, '|' between; NULL: the labels that
 * occur, sorted. like: as in ses_examples_open. NULL on failure. Free with ses_examples_free. */
ses_examples *ses_examples_new(ses_data_kind kind, const ses_example_input *x, size_t n, const char *labels,
                               const ses_examples *like, ses_err *e);
/* A set without examples that has these n labels, in this order, to be passed as `like`. Names are copied. */
ses_examples *ses_examples_from_labels(ses_data_kind kind, const char *const *names, size_t n, ses_err *e);
/* Frees the examples. d may be NULL. */
void ses_examples_free(ses_examples *d);

/* Gives the labels of d the ids and names they have in `like`. Labels are matched by name, else by value,
 * case-insensitively. If the two sets differ, returns false with both lists and changes nothing. */
bool ses_examples_align_labels(ses_examples *d, const ses_examples *like, ses_err *e);
/* Fails with the reason if there is nothing to learn: no examples, or all with the same label or number. */
bool ses_examples_check_learnable(const ses_examples *d, ses_err *e);

/* Accessors. The pointers are NULL if i is out of range. */
ses_data_kind ses_examples_kind(const ses_examples *d);
size_t ses_examples_count(const ses_examples *d);
const ses_labeled_example *ses_examples_at(const ses_examples *d, size_t i);
size_t ses_examples_label_count(const ses_examples *d);
const char *ses_examples_label_name(const ses_examples *d, size_t i);
const char *ses_examples_label_value(const ses_examples *d, size_t i); /* as written in the file */
size_t ses_examples_skipped(const ses_examples *d); /* answers skipped by skip_bad_answers */
/* Labels that break the rules of BIOES and were repaired by tag_scheme. */
size_t ses_examples_repaired(const ses_examples *d);

/* The character between the labels of an example, '[' for JSON arrays; 0: no example had several. */
char ses_examples_label_separator(const ses_examples *d);

/* Rows with the same gap: an empty text, or an error. */
typedef struct ses_data_gap {
    const char *what; /* "empty text", or the error without its line */
    bool is_error;    /* it ends the reading unless bad rows are dropped or counted */
    size_t rows;
    uint64_t line[8]; /* numbers of the first rows' lines, from 1 */
} ses_data_gap;

/* Gap i in the order of the file; NULL after the last. */
const ses_data_gap *ses_examples_gap(const ses_examples *d, size_t i);
size_t ses_examples_dropped(const ses_examples *d); /* rows */

/* ---- named benchmarks ---- */

typedef struct ses_benchmark {
    const char *name, *title;
    ses_data_spec spec;
    const char *train, *dev, *test; /* files in the benchmark's folder; NULL: none (with labels) */
} ses_benchmark;

/* Benchmark i; NULL after the last. */
const ses_benchmark *ses_benchmark_at(size_t i);
/* The benchmark of this name; NULL if there is none. */
const ses_benchmark *ses_benchmark_find(const char *name);
/* The same; an unknown name is an error that lists the known ones. */
const ses_benchmark *ses_benchmark_require(const char *name, ses_err *e);

SES_END_DECLS

#endif
