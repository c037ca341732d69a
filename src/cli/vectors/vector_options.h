/* Options and steps that several actions of `sesame vectors` share. Main thread only. */
#ifndef SES_CLI_VECTOR_OPTIONS_H
#define SES_CLI_VECTOR_OPTIONS_H

#include "cli/command.h"
#include "sesame/vectors.h"
#include "vectors/word_reader.h"

/* Names of SES_OPT_CHOICE, all of ses_vectors_writable_format. */
#define SES_VECTOR_FORMAT_CHOICES "word2vec|word2vec-binary|vec|glove|safetensors|fasttext"
/* The name of a choice, as ses_vectors_save takes it; NULL: not given. */
const char *ses_vector_format_name(int choice);

/* The file to write; the fields are `const char *` and `bool`. */
#define SES_OPT_OUTPUT_FILE(struct_, field, what)                                                  \
    {                                                                                              \
        .name = "output", .letter = 'o', .type = SES_OPT_TEXT, .offset = offsetof(struct_, field), \
        .value = "FILE", .required = true, .help = what                                            \
    }
#define SES_OPT_OVERWRITE(struct_, field)                                              \
    {                                                                                  \
        .name = "overwrite", .type = SES_OPT_FLAG, .offset = offsetof(struct_, field), \
        .help = "replace the output"                                                   \
    }
/* Fails if the file exists and must not be replaced, and for a folder. */
bool ses_output_file_check(const char *path, bool overwrite, ses_err *e);
/* The same for vectors in a format of SES_VECTOR_FORMAT_CHOICES: safetensors is a folder, of which only one
 * with word vectors is replaced. NULL: a file. */
bool ses_vectors_output_check(const char *path, const char *format, bool overwrite, ses_err *e);

/* Labels that a classifier predicts; the fields are `int64_t` and `double`. */
#define SES_OPT_LABEL_COUNT(struct_, field)                                                              \
    {                                                                                                    \
        .name = "k", .letter = 'k', .type = SES_OPT_INT, .offset = offsetof(struct_, field), .def = "1", \
        .min = 1, .max = 1 << 30, .help = "labels to predict for each text"                              \
    }
#define SES_OPT_LEAST_PROBABILITY(struct_, field)                                                            \
    {                                                                                                        \
        .name = "threshold", .type = SES_OPT_REAL, .offset = offsetof(struct_, field), .def = "0", .min = 0, \
        .max = 1, .help = "least probability of a predicted label"                                           \
    }

/* Prints and clears the error of a run that a signal stopped: main exits with the code of the signal. */
void ses_show_stop(ses_err *e);
/* Tells that words of the file occurred again: their first vectors count. */
void ses_report_duplicate_words(const ses_call *c, const char *path, const ses_vectors *v);
/* Warns about words that were skipped. */
void ses_warn_skipped(const char *path, const ses_words_skipped *s);

#endif
