/* The WordPiece model's settings, for its shortcut. */
#ifndef SES_TEXT_MODEL_WORDPIECE_H
#define SES_TEXT_MODEL_WORDPIECE_H

#include "text/stage.h"
#include "text/vocab/vocab.h"

typedef struct ses_wordpiece {
    ses_vocab vocab; /* first: see vocab.h */
    ses_string unknown, prefix;
    int64_t max_chars;
    int32_t unknown_id; /* -1: not in the vocabulary */
    size_t longest;     /* bytes of the longest token */
} ses_wordpiece;

#endif
