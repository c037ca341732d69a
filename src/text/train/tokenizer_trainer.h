/* Shared by the tokenizer trainers: word counts in, vocabulary out. One file train_NAME.c per type.
 * Strings are on the arena of the trained vocabulary; a word counter belongs to one thread. */
#ifndef SES_TEXT_TOKENIZER_TRAINER_H
#define SES_TEXT_TOKENIZER_TRAINER_H

#include "base/arena.h"
#include "sesame/tokenizer.h"

/* A word and its number of occurrences. */
typedef struct ses_counted_word {
    const char *p;
    size_t n;
    int64_t count;
} ses_counted_word;

typedef struct ses_counted_words { /* sorted by bytes */
    ses_counted_word *word;
    size_t n;
} ses_counted_words;

/* Result of a trainer: tokens by id, with scores if the model has them, and merges as pairs of ids. */
typedef struct ses_trained_vocab {
    ses_arena *mem;
    ses_string *token;
    double *score; /* NULL: none */
    size_t n, cap;
    int32_t (*merge)[2];
    size_t n_merges, cap_merges;
} ses_trained_vocab;

bool ses_trained_vocab_put(ses_trained_vocab *t, const char *p, size_t n, ses_err *e); /* copies the string */
bool ses_trained_vocab_put_merge(ses_trained_vocab *t, int32_t left, int32_t right, ses_err *e);
void ses_trained_vocab_free(ses_trained_vocab *t); /* the strings stay on mem */

/* `out` already contains the special tokens. */
typedef bool ses_tokenizer_train_fn(const ses_tokenizer_train_options *o, const ses_counted_words *words,
                                    ses_trained_vocab *out, ses_err *e);
ses_tokenizer_train_fn ses_train_bpe, ses_train_unigram, ses_train_wordlevel;

/* Call the progress callback; false, with an error, if it cancels the training. */
bool ses_tokenizer_train_report(const ses_tokenizer_train_options *o, const char *what, int64_t done,
                                int64_t of, ses_err *e);

/* Word counts (word_counter.c) */
typedef struct ses_word_counter ses_word_counter;
ses_word_counter *ses_word_counter_new(size_t max_words, ses_err *e);
void ses_word_counter_free(ses_word_counter *c);
bool ses_word_counter_add(ses_word_counter *c, const char *p, size_t n, int64_t count, ses_err *e);
bool ses_word_counter_merge(ses_word_counter *c, const ses_word_counter *from, ses_err *e);
/* sorted */
bool ses_word_counter_sorted(const ses_word_counter *c, ses_arena *mem, ses_counted_words *out, ses_err *e);

#endif
