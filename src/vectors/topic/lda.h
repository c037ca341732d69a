/* Latent Dirichlet allocation by online variational Bayes (Hoffman, Blei, Bach 2010), or by batch updates.
 * Bits depend on the data and the settings, not on the number of threads.
 *
 * Notation of the paper: lambda are the parameters of the topics' distributions over words, gamma the
 * parameters of a text's distribution over topics, rho = (offset + t)^-decay the weight of update t = 0, 1,
 * ...
 *
 * Ownership: the caller frees the model, which borrows the thread pool. Threads: one per model. */
#ifndef SES_VECTORS_LDA_H
#define SES_VECTORS_LDA_H

#include "base/thread_pool.h"
#include "term_counts.h"

typedef struct ses_lda_settings {
    int64_t topics;
    int64_t chunk;      /* texts of an update; ignored by batch updates */
    int64_t iterations; /* maximum iterations for a text */
    double decay, offset;
    double threshold; /* iterations end once the mean change of gamma is below it */
    double alpha;     /* prior of gamma; 0: 1 / topics */
    double eta;       /* prior of lambda; 0: 1 / topics */
    bool batch;       /* one update per pass, with rho = 1 */
    uint64_t seed;
} ses_lda_settings;

typedef struct ses_lda {
    ses_lda_settings s; /* alpha and eta resolved */
    int64_t words;
    double *lambda;     /* [words, topics] */
    double *exp_beta;   /* [words, topics]: exp(E[log beta]) */
    double *topic_sum;  /* [topics]: sums of lambda over the words */
    int64_t updates;    /* so far */
    int64_t pass, next; /* complete passes; the first text of the next update */
    double bound;       /* bound of the texts so far in this pass, with the topics before their update */
    double tokens;      /* their words */
    ses_thread_pool *pool;
} ses_lda;

/* start [words, topics]: the initial lambda; NULL: Gamma(100, 1 / 100) by the seed. *m must be zeroed; free
 * it after a failure, too. */
bool ses_lda_new(ses_lda *m, const ses_lda_settings *s, int64_t words, const double *start,
                 ses_thread_pool *pool, ses_err *e);
void ses_lda_free(ses_lda *m);
bool ses_lda_settings_check(const ses_lda_settings *s, ses_err *e);
/* Recomputes exp_beta and topic_sum after a change of lambda. */
bool ses_lda_refresh(ses_lda *m, ses_err *e);

/* One update by the texts from m->next on. At the end of a pass, m->pass is incremented and *perplexity is
 * that of the pass, from the bounds of its texts before their updates; else it is NaN. */
bool ses_lda_update(ses_lda *m, const ses_term_counts *b, double *perplexity, ses_err *e);

/* gamma [rows, topics] for rows begin .. begin + rows - 1. */
bool ses_lda_infer(const ses_lda *m, const ses_term_counts *b, int64_t begin, int64_t rows, double *gamma,
                   ses_err *e);
/* The variational bound of the texts: E[log p(texts, theta, beta)] - E[log q(theta, beta)]. */
bool ses_lda_bound(const ses_lda *m, const ses_term_counts *b, double *bound, ses_err *e);
double ses_term_counts_total(const ses_term_counts *b, int64_t begin,
                             int64_t end); /* sum of the counts of some rows */

#endif
