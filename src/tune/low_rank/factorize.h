/* Factorization of a model's dense weights and token table by SVD: W [out, in] becomes B [out, rank] A [rank,
 * in], with sqrt(singular value) in both.
 *
 * Ownership: the factorization owns its factors; the model is borrowed and must outlive it. Threads: one
 * thread, which uses the device's threads. */
#ifndef SES_TUNE_FACTORIZE_H
#define SES_TUNE_FACTORIZE_H

#include "input_moments.h"

typedef enum { SES_FACTORIZE_ALL, SES_FACTORIZE_ATTENTION, SES_FACTORIZE_FFN } ses_factorize_part;

/* One of rank, ratio, energy and embeddings is required, at most one of the first three is allowed. */
typedef struct ses_factorize_options {
    int64_t rank;  /* rank of every weight; 0: not set */
    double ratio;  /* parameters of the factors / parameters of the weight; 0: not set */
    double energy; /* least share of the squared singular values that is kept; 0: not set */
    ses_factorize_part only;
    int64_t embeddings;  /* rank of the token table; 0: not factorized */
    bool even_if_larger; /* also where the factors have more parameters than the weight */
    /* inputs of the layers: energy and error then concern the layers' outputs; NULL: the weights */
    const ses_input_moments *moments;
    void (*progress)(void *ctx, int64_t done, int64_t total); /* NULL: none */
    void *progress_ctx;
} ses_factorize_options;

typedef struct ses_factors {
    char name[200];  /* "encoder.layer.0.attention.self.query"; the token table: of its tensor */
    size_t param;    /* index of the weight in the model's store */
    int64_t out, in; /* token table: rows, columns */
    int64_t rank;    /* 0: stays dense */
    double energy;   /* share of the squared singular values, or of the outputs' squares, that is kept */
    ses_real *a, *b; /* [rank, in], [out, rank]; NULL: stays dense */
    bool is_table;
} ses_factors;

typedef struct ses_factorization {
    const ses_model *m;
    ses_factors *item;
    size_t n;
    int64_t before, after; /* parameters of the model */
} ses_factorization;

/* Factorizes the weights of the layers of m, which is on a CPU and was opened with no_packing. An error:
 * values out of range, a model that is factorized already or cannot be, no weight that becomes smaller. */
bool ses_factorize(ses_factorization *f, const ses_model *m, const ses_factorize_options *o, ses_err *e);
void ses_factorization_free(ses_factorization *f);

/* Writes config.json and the weights in f32. */
bool ses_factorization_save(const ses_factorization *f, const char *dir, bool overwrite, ses_err *e);

#endif
