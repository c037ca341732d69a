/* Settings of the WordPiece model, for its fast path. On the tokenizer's arena, read-only. */
#ifndef SES_TEXT_MODEL_WORDPIECE_H
#define SES_TEXT_MODEL_WORDPIECE_H

#include "text/stage.h"
#include "text/vocab/vocab.h"

typedef struct ses_wordpiece {
    ses_vocab vocab; /* must be first: see vocab.h */
    ses_string unknown, prefix;
    int64_t max_chars;
    int32_t unknown_id; /* -1: not in the vocabulary */
    size_t longest;     /* bytes */
} ses_wordpiece;

#endif
