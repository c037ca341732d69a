/* The texts of a file, in memory, for analyses of a corpus. The name (without .gz, .xz, .zst) decides:
 * .conllu and .conll: sentences of words, with a tag for each word; .tsv, .csv and .jsonl: a column of texts,
 * and perhaps one of labels; else one text per line. Empty lines and texts are skipped.
 *
 * Ownership: the caller frees the file, which owns all strings; each is followed by a NUL.
 * Threads: several may read an open file. */
#ifndef SES_ANALYSIS_TEXT_FILE_H
#define SES_ANALYSIS_TEXT_FILE_H

#include "base/arena.h"
#include "sesame/tokenizer.h"
#include "sesame/unstable/table.h"

typedef struct ses_text_file_options {
    const char *text_column;   /* tables: name or number; NULL: sentence, text, or the only column */
    const char *label_column;  /* tables: NULL: none; CoNLL-U: upos, xpos, deprel or a number, NULL: upos */
    const char *target_column; /* tables: texts of a decoder; NULL: none */
    size_t max_texts;          /* 0: all */
    ses_text_encoding encoding;
} ses_text_file_options;

typedef struct ses_text_file {
    ses_arena mem;
    ses_input *text;        /* [n]: strings, or words */
    ses_string *label;      /* [n]: tables with a label column; else NULL */
    const ses_string **tag; /* [n] of [words]: CoNLL; else NULL */
    ses_input *target;      /* [n]: of the target column; NULL: none was asked for */
    uint64_t *line;         /* [n]: from 1 */
    size_t n, cap;
    bool is_words; /* texts are given as words */
    bool is_cut;   /* max_texts has left out the rest */
    bool has_target;
} ses_text_file;

/* "-" is standard input: lines. Fails if the file has no text. *f must be zeroed; free it after a failure,
 * too. */
bool ses_text_file_open(ses_text_file *f, const char *path, const ses_text_file_options *o, ses_err *e);
void ses_text_file_free(ses_text_file *f); /* back to zero */

/* The bytes of a row of states: a word, or part of the string without spaces at its ends. */
ses_string ses_text_file_span(const ses_text_file *f, size_t text, int32_t index, ses_offset bytes);

#endif
