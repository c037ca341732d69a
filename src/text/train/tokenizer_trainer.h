/* What the trainers of tokenizers share: counted words in, pieces out. One file train_NAME.c a kind. */
#ifndef SES_TEXT_TRAIN_H
#define SES_TEXT_TRAIN_H

#include "base/arena.h"
#include "sesame/tokenizer.h"

/* A word and how often it was seen. */
typedef struct ses_counted_word {
    const char *p;
    size_t n;
    int64_t count;
} ses_counted_word;

typedef struct ses_counted_words { /* in the order of their bytes */
    ses_counted_word *word;
    size_t n;
} ses_counted_words;

/* What a trainer makes: tokens by id, with a score where the model has one; pairs of ids that merge. */
typedef struct ses_trained {
    ses_arena *mem;
    ses_string *token;
    double *score; /* NULL: none */
    size_t n, cap;
    int32_t (*merge)[2];
    size_t n_merges, cap_merges;
} ses_trained;

bool ses_trained_put(ses_trained *t, const char *p, size_t n, ses_err *e); /* copies the string */
bool ses_trained_merge(ses_trained *t, int32_t left, int32_t right, ses_err *e);
void ses_trained_free(ses_trained *t); /* the strings are mem's */

/* Special tokens are in `out` already. */
typedef bool ses_train_fn(const ses_train_options *o, const ses_counted_words *words, ses_trained *out,
                          ses_err *e);
ses_train_fn ses_train_bpe, ses_train_unigram, ses_train_wordlevel;

/* Tell the caller; false and an error when it wants to stop. */
bool ses_train_tell(const ses_train_options *o, const char *what, int64_t done, int64_t of, ses_err *e);

/* Words counted by whoever feeds them. (word_counter.c) */
typedef struct ses_counter ses_counter;
ses_counter *ses_counter_new(size_t max_words, ses_err *e);
void ses_counter_free(ses_counter *c);
bool ses_counter_add(ses_counter *c, const char *p, size_t n, int64_t count, ses_err *e);
bool ses_counter_merge(ses_counter *c, const ses_counter *from, ses_err *e);
bool ses_counter_words(const ses_counter *c, ses_arena *mem, ses_counted_words *out, ses_err *e); /* sorted */

#endif
