/* Texts with labels of a file, for fastText classifiers: lines with words that begin with a prefix, or a
 * table with a text and a label column. Free with ses_labeled_texts_free. One thread. */
#ifndef SES_CLI_FASTTEXT_TEXTS_H
#define SES_CLI_FASTTEXT_TEXTS_H

#include "base/file.h"
#include "sesame/examples.h"
#include "vectors/fasttext/fasttext_trainer.h"

typedef struct ses_labeled_texts {
    ses_fasttext_texts texts;
    ses_mmap file;
    ses_examples *table;
    ses_string *text, *name;
    int32_t *label;
} ses_labeled_texts;

typedef struct ses_labeled_columns {
    const char *text, *label; /* columns of a table */
} ses_labeled_columns;

/* A name that ends in .tsv, .csv, .jsonl, .ndjson or .json (and .gz, .xz, .zst) is a table. *t must be
 * zeroed; free it even on failure. */
bool ses_labeled_texts_open(ses_labeled_texts *t, const char *path, const ses_labeled_columns *columns,
                            ses_err *e);
void ses_labeled_texts_free(ses_labeled_texts *t);

#endif
