/* caps: the tagger trains a vector of the capital letters of a word: none, all, the first, others. */
#include "word_stack.h"

const ses_word_embedder_kind ses_word_embedder_caps = { .name = "caps", .reads_chars = true };
