/* Texts with labels of a file, for fastText classifiers: lines with words that begin with a prefix, or a
 * table with a text and a label column. Free with ses_label_lines_free. One thread. */
#ifndef SES_CLI_FASTTEXT_TEXTS_H
#define SES_CLI_FASTTEXT_TEXTS_H

#include "base/file.h"
#include "base/str.h"
#include "sesame/examples.h"
#include "vectors/fasttext/fasttext_trainer.h"

typedef struct ses_label_lines {
    ses_fasttext_texts texts;
    ses_mmap file;
    ses_buf read; /* bytes of a compressed file or standard input */
    ses_examples *table;
    ses_string *text, *name;
    int32_t *label;
} ses_label_lines;

typedef struct ses_label_columns {
    const char *text, *label; /* columns of a table */
    int encoding;             /* a ses_text_encoding: of lines and tables */
} ses_label_columns;

/* Files with names of tables are tables, others are lines, compressed if the name ends in .gz, .xz or .zst;
 * "-" is standard input. *t must be zeroed; free it even on failure. */
bool ses_label_lines_open(ses_label_lines *t, const char *path, const ses_label_columns *columns, ses_err *e);
void ses_label_lines_free(ses_label_lines *t);

#endif
