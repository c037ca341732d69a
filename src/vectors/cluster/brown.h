/* Brown clustering (Brown et al. 1992) by the algorithm of Liang (2005): the C most frequent words are
 * clusters; each further word becomes a cluster of its own, and the two clusters are merged whose merge loses
 * least mutual information of neighbouring clusters; at the end the C clusters are merged to a tree. Time:
 * O(words C^2). A word's path is that of its cluster in the tree.
 *
 * Ownership: the caller frees the result. Threads: the pool's; bits do not depend on their number. */
#ifndef SES_VECTORS_BROWN_H
#define SES_VECTORS_BROWN_H

#include "base/thread_pool.h"
#include "brown_words.h"

typedef struct ses_brown_node {
    int32_t left, right; /* nodes below n are words; merge i is node n + i */
} ses_brown_node;

typedef struct ses_brown {
    int64_t n, clusters;
    ses_brown_node *merge; /* [n - 1], in order; the last clusters - 1 join the clusters */
    double information;    /* mutual information of the clusters in bits, before they are joined */
} ses_brown;

enum { SES_BROWN_MAX_CLUSTERS = 20000 };

/* clusters: at most that many. Fails if options' progress returns false. *b must be zeroed; free it after a
 * failure, too. */
bool ses_brown_fit(ses_brown *b, const ses_brown_words *w, int64_t clusters, const ses_brown_options *o,
                   ses_thread_pool *pool, ses_err *e);
void ses_brown_free(ses_brown *b);

/* Calls fn with each word (its rank) and the path of its cluster, from left to right in the tree. */
typedef bool ses_brown_fn(void *ctx, const char *path, int64_t rank, ses_err *e);
bool ses_brown_each(const ses_brown *b, ses_brown_fn *fn, void *ctx, ses_err *e);

#endif
