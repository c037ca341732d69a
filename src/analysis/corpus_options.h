/* Options that several analyses have, one macro each: the same name, range and help everywhere. Arguments:
 * the struct of the analysis and the field. */
#ifndef SES_ANALYSIS_CORPUS_OPTIONS_H
#define SES_ANALYSIS_CORPUS_OPTIONS_H

#include "base/opt_table.h"
#include "io/text_decoder.h"

#define SES_OPT_COLUMN(struct_, field, when)                                                               \
    SES_OPT_TEXT(struct_, field, "column", "COLUMN",                                                       \
                 when "column of the texts, by name or number; default: text or sentence, else the first", \
                 .alias = "text-column")

#define SES_OPT_MAX_TEXTS(struct_, field, when, def_)                                              \
    SES_OPT_INT(struct_, field, "max-texts", def_, 0, 1e9, when "maximum number of texts to read", \
                .alias = "examples", .value = "N|all", .zero_word = "all")

#define SES_OPT_MAX_SEQ_LEN(struct_, field, most)               \
    SES_OPT_INT(struct_, field, "max-seq-len", NULL, 0, 100000, \
                "truncate texts to this many tokens; 0: the model's limit" most, .value = "N")

#define SES_OPT_WORD_PIECES(struct_, field)                             \
    SES_OPT_CHOICE(struct_, field, "word-pieces", "mean", "mean|first", \
                   "vector of a word: mean of its tokens, or its first token", .alias = "first-piece=first")

#define SES_OPT_TOP(struct_, field, def_, most, what) \
    SES_OPT_INT(struct_, field, "top-k", def_, 1, most, what, .alias = "top", .letter = 'k', .value = "N")

#define SES_OPT_DECODER(struct_, field) \
    SES_OPT_FLAG(struct_, field, "decoder", "encoder-decoders: the decoder instead of the encoder")

#define SES_OPT_TARGET_COLUMN(struct_, field)               \
    SES_OPT_TEXT(struct_, field, "target-column", "COLUMN", \
                 "tables: column of the decoder's texts; default: the texts")

#define SES_OPT_SKIP_INVALID(struct_, field) \
    SES_OPT_FLAG(struct_, field, "skip-invalid", "CoNLL-U: skip invalid sentences instead of failing")

#endif
