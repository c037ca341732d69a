/* Options that several analyses have, one macro each: the same name, range and help everywhere. Arguments:
 * the struct of the analysis and the field. */
#ifndef SES_ANALYSIS_CORPUS_OPTIONS_H
#define SES_ANALYSIS_CORPUS_OPTIONS_H

#include "base/opt_table.h"

#define SES_OPT_COLUMN(struct_, field, when)                                                             \
    {                                                                                                    \
        .name = "column", .alias = "text-column", .type = SES_OPT_TEXT, .value = "COLUMN",               \
        .offset = offsetof(struct_, field),                                                              \
        .help = when "column of the texts, by name or number; default: text or sentence, else the first" \
    }

#define SES_OPT_MAX_TEXTS(struct_, field, when, def_)                                                 \
    {                                                                                                 \
        .name = "max-texts", .alias = "examples", .type = SES_OPT_INT, .value = "N|all", .def = def_, \
        .offset = offsetof(struct_, field), .max = 1e9, .zero_word = "all",                           \
        .help = when "maximum number of texts to read"                                                \
    }

#define SES_OPT_MAX_SEQ_LEN(struct_, field, most)                                                     \
    {                                                                                                 \
        .name = "max-seq-len", .type = SES_OPT_INT, .offset = offsetof(struct_, field), .value = "N", \
        .max = 100000, .help = "truncate texts to this many tokens; 0: the model's limit" most        \
    }

#define SES_OPT_WORD_PIECES(struct_, field)                                          \
    {                                                                                \
        .name = "word-pieces", .alias = "first-piece=first", .type = SES_OPT_CHOICE, \
        .offset = offsetof(struct_, field), .def = "mean", .choices = "mean|first",  \
        .help = "vector of a word: mean of its tokens, or its first token"           \
    }

#define SES_OPT_TOP(struct_, field, def_, most, what)                                        \
    {                                                                                        \
        .name = "top-k", .alias = "top", .letter = 'k', .type = SES_OPT_INT, .value = "N",   \
        .offset = offsetof(struct_, field), .def = def_, .min = 1, .max = most, .help = what \
    }

#define SES_OPT_DECODER(struct_, field)                                              \
    {                                                                                \
        .name = "decoder", .type = SES_OPT_FLAG, .offset = offsetof(struct_, field), \
        .help = "encoder-decoders: the decoder instead of the encoder"               \
    }

#define SES_OPT_TARGET_COLUMN(struct_, field)                                                  \
    {                                                                                          \
        .name = "target-column", .type = SES_OPT_TEXT, .offset = offsetof(struct_, field),     \
        .value = "COLUMN", .help = "tables: column of the decoder's texts; default: the texts" \
    }

#define SES_OPT_SKIP_INVALID(struct_, field)                                              \
    {                                                                                     \
        .name = "skip-invalid", .type = SES_OPT_FLAG, .offset = offsetof(struct_, field), \
        .help = "CoNLL-U: skip invalid sentences instead of failing"                      \
    }

#endif
