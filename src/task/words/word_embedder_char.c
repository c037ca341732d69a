/* char: the tagger trains a bidirectional LSTM over the bytes of a word. */
#include "word_stack.h"

static int64_t max_bytes(const void *self)
{
    (void)self;
    return SES_MAX_WORD_BYTES;
}

const ses_word_embedder_kind ses_word_embedder_char = { .name = "char",
                                                        .reads_chars = true,
                                                        .max_bytes = max_bytes };
