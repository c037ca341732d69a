/* Options and steps that several actions of `sesame vectors` share. Main thread only. */
#ifndef SES_CLI_VECTOR_OPTIONS_H
#define SES_CLI_VECTOR_OPTIONS_H

#include "cli/command.h"
#include "sesame/vectors.h"
#include "vectors/word_reader.h"

/* Names of SES_OPT_IS_CHOICE, all of ses_vectors_writable_format. */
#define SES_VECTOR_FORMAT_CHOICES "word2vec|word2vec-binary|vec|glove|safetensors|fasttext"
/* The name of a choice, as ses_vectors_save takes it; NULL: not given. */
const char *ses_vector_format_name(int choice);

/* The file to write; the fields are `const char *` and `bool`. */
#define SES_OPT_OUTPUT_FILE(struct_, field, what) \
    SES_OPT_TEXT(struct_, field, "output", "FILE", what, .letter = 'o', .required = true)
#define SES_OPT_OVERWRITE(struct_, field) SES_OPT_FLAG(struct_, field, "overwrite", "replace the output")
/* Fails if the file exists and must not be replaced, and for a folder. */
bool ses_output_file_check(const char *path, bool overwrite, ses_err *e);
/* The same for vectors in a format of SES_VECTOR_FORMAT_CHOICES: safetensors is a folder, of which only one
 * with word vectors is replaced. NULL: a file. */
bool ses_vectors_output_check(const char *path, const char *format, bool overwrite, ses_err *e);

/* Labels that a classifier predicts; the fields are `int64_t` and `double`. */
#define SES_OPT_LABEL_COUNT(struct_, field) \
    SES_OPT_INT(struct_, field, "k", "1", 1, 1 << 30, "labels to predict for each text", .letter = 'k')
#define SES_OPT_LEAST_PROBABILITY(struct_, field) \
    SES_OPT_REAL(struct_, field, "threshold", "0", 0, 1, "least probability of a predicted label")

/* Prints and clears the error of a run that a signal stopped: main exits with the code of the signal. */
void ses_show_stop(ses_err *e);
/* Tells that words of the file occurred again: their first vectors count. */
void ses_report_duplicate_words(const ses_call *c, const char *path, const ses_vectors *v);
/* Warns about words that were skipped. */
void ses_warn_skipped(const char *path, const ses_words_skipped *s);

#endif
