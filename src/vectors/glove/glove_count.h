/* Co-occurrence counts of a text, as training pairs in the order of glove_tiles.h, in bounded memory. Pairs
 * are collected in hash tables; a full table becomes a sorted run in an unnamed temporary file beside the
 * output. Runs are then added up tile by tile into a second such file, from which training reads.
 *
 * Counts are sums of 1 / distance, in integers: every memory limit and number of threads gives the same
 * ones. */
#ifndef SES_VECTORS_GLOVE_COUNT_H
#define SES_VECTORS_GLOVE_COUNT_H

#include "base/thread_pool.h"
#include "glove_tiles.h"
#include "kernel/kernel.h"

#define SES_GLOVE_LEAST_MEMORY ((size_t)1 << 20)

typedef struct ses_glove_count_options {
    int64_t window;
    bool symmetric; /* false: contexts are the words to the right of a word */
    size_t memory;  /* bytes of hash tables and buffers; at least SES_GLOVE_LEAST_MEMORY are used */
    double x_max, alpha;
    const char *beside; /* temporary files are in the folder of this path; borrowed */
    /* Called with the number of words counted; false: stop. NULL: none. */
    bool (*progress)(void *ctx, int64_t words);
    void *ctx;
} ses_glove_count_options;

/* Training pairs in a file; tile t has count[t] of them from start[t] on. */
typedef struct ses_glove_pairs {
    ses_glove_tiles tiles;
    int fd; /* + 1; 0: none */
    const char *beside;
    int64_t *start, *count; /* [groups^2] */
    int64_t n;              /* all pairs */
} ses_glove_pairs;

/* Counts the pairs of n ids (ranks of words, negative: end of a sentence). *out must be zeroed; free it even
 * if this fails. */
bool ses_glove_count_pairs(ses_glove_pairs *out, const int32_t *id, int64_t n, const ses_glove_tiles *tiles,
                           const ses_glove_count_options *o, ses_thread_pool *pool, ses_err *e);
/* Reads n pairs from number `at` on. Several threads may read. */
bool ses_glove_pairs_read(const ses_glove_pairs *p, int64_t at, int64_t n, ses_glove_pair *to, ses_err *e);
void ses_glove_pairs_free(ses_glove_pairs *p);

#endif
