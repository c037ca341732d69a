/* A topic model: vocabulary, settings and the result of LSA or LDA; training, files, scores.
 *
 * Folder: config.json (settings and state), model.safetensors ("topics" [topics, words] in double,
 * "word_texts" and "word_count" [words]; LSA: "singular_values" [topics]), vocab.txt (a word per line).
 *
 * Ownership: the caller frees the model. Threads: one per model; it has its own pool. */
#ifndef SES_VECTORS_TOPIC_MODEL_H
#define SES_VECTORS_TOPIC_MODEL_H

#include "lda.h"
#include "lsa.h"

enum { SES_TOPIC_PAIRED = 10 };

typedef enum { SES_TOPICS_LDA, SES_TOPICS_LSA } ses_topic_method;

typedef struct ses_topic_settings {
    ses_topic_method method;
    ses_term_options terms;
    bool counts; /* LSA: counts instead of TF-IDF */
    int64_t passes;
    ses_lda_settings lda;
    ses_lsa_settings lsa;
} ses_topic_settings;

typedef struct ses_topic_model {
    ses_topic_settings s;
    ses_term_vocab vocab;
    ses_lda lda;        /* LDA: the state of the training */
    ses_lsa lsa;        /* LSA */
    double *perplexity; /* [n_perplexity]: after each pass of LDA */
    size_t n_perplexity, cap_perplexity;
    double *umass, *npmi; /* [topics]: coherence of the SES_TOPIC_PAIRED top words in the training texts */
    char texts_sha[65];   /* hash of the counts: a resumed training has the same texts */
    ses_thread_pool *pool;
} ses_topic_model;

/* Called after each update; false: stop. done, total: texts of all passes, or rounds. */
typedef bool ses_topic_progress(void *ctx, int64_t done, int64_t total);

/* Trains a model on n texts. start: NULL, or the initial topics [topics, words] of LDA. *m must be zeroed;
 * free it after a failure, too. *stopped: progress has returned false; the model is that of the last update
 * (LSA: the call fails). */
bool ses_topic_train(ses_topic_model *m, const ses_topic_settings *s, const ses_string *text, size_t n,
                     const char *start, int threads, ses_topic_progress *progress, void *ctx, bool *stopped,
                     ses_err *e);
/* Continues the training of an opened LDA model on the same texts up to `passes`. */
bool ses_topic_resume(ses_topic_model *m, int64_t passes, const ses_string *text, size_t n,
                      ses_topic_progress *progress, void *ctx, bool *stopped, ses_err *e);
void ses_topic_model_free(ses_topic_model *m); /* back to zero */

/* Writes the folder atomically. Fails if it exists, unless overwrite. */
bool ses_topic_save(const ses_topic_model *m, const char *dir, bool overwrite, ses_err *e);
bool ses_topic_open(ses_topic_model *m, const char *dir, int threads, ses_err *e); /* *m must be zeroed */

int64_t ses_topic_count(const ses_topic_model *m);
/* Weight of a word in a topic: its probability (LDA), its component of the singular vector (LSA). */
double ses_topic_weight(const ses_topic_model *m, int64_t topic, int64_t word);
/* The n words of largest weight (LSA: of largest absolute weight) of a topic, at most all. Ties: the word
 * with the lower id. */
bool ses_topic_top(const ses_topic_model *m, int64_t topic, int64_t n, int32_t *word, ses_err *e);

/* The topics of n texts: y [n, topics]: shares that sum to 1 (LDA) or coordinates (LSA). perplexity: NULL, or
 * receives that of the texts by LDA; NaN for LSA. *unknown: texts without a word of the model. */
bool ses_topic_infer(const ses_topic_model *m, const ses_string *text, size_t n, double *y,
                     double *perplexity, size_t *unknown, ses_err *e);

/* Coherence of topics: pairs of their first `top` words, i before j. Probabilities are shares of the texts
 * that contain the words; epsilon 1e-12.
 *     UMass: mean of ln((p(i, j) + epsilon) / p(i))
 *     NPMI:  mean of ln((p(i, j) + epsilon) / (p(i) p(j))) / -ln(p(i, j) + epsilon)
 * Arrays [topics]; NaN: no pair. */
bool ses_topic_coherence(const ses_topic_model *m, const ses_term_counts *b, int64_t top, double *umass,
                         double *npmi, ses_err *e);
/* Share of a topic: of the words that LDA assigns to it; LSA: of the squares of the singular values. */
double ses_topic_share(const ses_topic_model *m, int64_t topic);

#endif
