/* tests/fixtures/elmo: its sentences, and the numbers of its independent implementation. */
#ifndef TESTS_ELMO_FIXTURE_H
#define TESTS_ELMO_FIXTURE_H

#include "base/alloc.h"
#include "base/elmo/word_chars.h"
#include "base/file.h"
#include "check.h"
#include "sesame/base.h"
#include "sesame/model.h"
#include "sesame/unstable/tensor.h"

#include <math.h>

#define ELMO "tests/fixtures/elmo"

enum { ELMO_SENTENCES = 5, ELMO_LAYERS = 3, ELMO_PROJ = 5, ELMO_WIDTH = 10, ELMO_VOCAB = 3, ELMO_STATE = 48 };

#define A10 "aaaaaaaaaa"
static const char *const elmo_words[] = { "The",
                                          "cat",
                                          "sat",
                                          "on",
                                          "the",
                                          "mat",
                                          ".",
                                          A10 A10 A10 A10 A10 A10,
                                          A10 A10 A10 A10 "aaaaaaaa",
                                          "na\303\257ve",
                                          "The",
                                          "\347\214\253",
                                          "x",
                                          "x",
                                          "x" };
static const size_t elmo_first[ELMO_SENTENCES + 1] = { 0, 7, 10, 10, 12, 15 };

/* A batch of sentences `which`. */
typedef struct elmo_batch {
    int32_t id[64], cu[8], labels[64];
    int16_t chars[64 * 50];
    ses_batch b;
} elmo_batch;

static inline void elmo_fill(elmo_batch *e, const int *which, int n)
{
    int32_t at = 0, row = 0;
    memset(e, 0, sizeof *e);
    for (int s = 0; s < n; s++) {
        e->id[at++] = 0;
        for (size_t w = elmo_first[which[s]]; w < elmo_first[which[s] + 1]; w++) {
            ses_word_chars(e->chars + 50 * row, 50, elmo_words[w], strlen(elmo_words[w]));
            e->id[at++] = ELMO_VOCAB + row++;
        }
        e->id[at++] = 1;
        e->cu[s + 1] = at;
        for (int32_t t = e->cu[s]; t < at; t++) e->labels[t] = (3 * (t - e->cu[s]) + s) % ELMO_VOCAB;
    }
    e->b = (ses_batch){ .seqs = n,
                        .tokens = at,
                        .cu_seqlens = e->cu,
                        .ids = e->id,
                        .extra_word_chars = e->chars,
                        .n_extra_words = row };
}

/* The numbers, read from the start to the end. */
typedef struct elmo_numbers {
    float *all;
    size_t at, n;
} elmo_numbers;

static inline bool elmo_numbers_open(elmo_numbers *x)
{
    size_t bytes;
    *x = (elmo_numbers){ .all = (float *)(void *)ses_file_read(ELMO "/numbers.f32", 1 << 20, &bytes, NULL) };
    x->n = x->all ? bytes / sizeof *x->all : 0;
    return CHECK(x->all);
}

static inline const float *elmo_take(elmo_numbers *x, size_t n)
{
    static const float none[4096];
    if (!CHECK(x->at + n <= x->n)) return none;
    return x->all + (x->at += n) - n;
}

/* Maximum difference to the next n numbers. */
static inline double elmo_differ(elmo_numbers *x, const ses_real *got, size_t n)
{
    const float *want = elmo_take(x, n);
    double most = 0;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs((double)got[i] - (double)want[i]));
    return most;
}

static inline size_t elmo_tokens(int s) { return elmo_first[s + 1] - elmo_first[s] + 2; }

/* Reads an output of the batch. */
static inline bool elmo_read(ses_tape *t, const ses_outputs *out, const char *name, ses_real *to)
{
    const ses_output *x = ses_outputs_find(out, name);
    return CHECK_MSG(x && ses_tape_read(t, x->tensor, to), "%s", name);
}

#endif
