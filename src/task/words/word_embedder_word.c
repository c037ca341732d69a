/* word: the tagger trains a vector for each word that occurs at least twice in its training data. */
#include "word_stack.h"

const ses_word_embedder_kind ses_word_embedder_word = { .name = "word" };
