/* State of a run of `sesame geometry`, and its report. Owned by analysis_geometry.c; one thread. */
#ifndef SES_ANALYSIS_GEOMETRY_H
#define SES_ANALYSIS_GEOMETRY_H

#include "analysis/analysis.h"
#include "corpus_words.h"
#include "math/cka.h"
#include "nearest.h"

enum { SES_GEOMETRY_MAX_NEAREST = 100 };

typedef struct ses_geometry_args {
    int64_t pairs, min_count, cka_words, occurrence, top_k, max_texts;
    int encoding;
    const char *column, *target_column, *like, *nearest, *vectors;
    bool debiased, decoder;
    int pieces;
} ses_geometry_args;

/* Measures of a layer; NaN: no word or text to measure. */
typedef struct ses_geometry_measures {
    double anisotropy, self_similarity, intra, mev, mev_baseline;
} ses_geometry_measures;

typedef struct ses_geometry {
    ses_analysis_call *call;
    const ses_geometry_args *a;
    ses_text_file file;
    ses_corpus_words words, like;
    ses_model *like_model;
    ses_tokenizer *like_tokenizer;
    size_t *pair; /* [2 pairs]: random words */
    size_t n_pairs;
    size_t *sample, *like_sample; /* words of CKA, in both corpora */
    size_t n_sample;
    ses_cka_input *cka; /* layers of the model, then of --like */
    double *matrix;
    ses_geometry_measures *m;
    size_t types;             /* word forms that are frequent enough */
    size_t target, target_of; /* the word of --nearest, its number of occurrences */
    ses_near *near;           /* [layers, top_k] */
    size_t n_near;
    ses_near_word still[SES_GEOMETRY_MAX_NEAREST]; /* neighbours in the static vectors */
    size_t n_still;
} ses_geometry;

/* Fills the report: tables, curves, matrix, neighbours, JSON. */
bool ses_geometry_report(const ses_geometry *g, ses_err *e);

#endif
