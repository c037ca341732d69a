/* char: the tagger trains a bidirectional LSTM over the bytes of a word. */
#include "word_stack.h"

const ses_word_embedder_kind ses_word_embedder_char = { .name = "char", .reads_chars = true };
