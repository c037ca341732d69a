/* Agreement of attention heads with dependency relations (Clark et al. 2019). For each word with a head in
 * the tree, an attention head predicts this head: the other word to which the word attends most (from the
 * dependent), or the other word that attends to it most (from the head). The baseline of a relation is its
 * best fixed offset. Counts belong to the caller; one thread at a time. */
#ifndef SES_ANALYSIS_HEAD_SYNTAX_H
#define SES_ANALYSIS_HEAD_SYNTAX_H

#include "analysis/attention_units.h"
#include "analysis/heads/attention_corpus.h"
#include "analysis/layer_set.h"
#include "analysis/treebank/treebank.h"
#include "figure/report.h"

typedef enum { SES_FROM_DEPENDENT, SES_FROM_HEAD, SES_SYNTAX_DIRECTIONS } ses_syntax_direction;

typedef struct ses_syntax_relation {
    ses_string name; /* DEPREL; the first one is "all" */
    int64_t cases;
    int64_t offset;      /* the most frequent distance of the head from the dependent */
    int64_t offset_hits; /* cases with this distance */
} ses_syntax_relation;

typedef struct ses_head_syntax {
    const ses_treebank *trees;
    const ses_layer_set *chosen; /* layers that are counted, from 1; NULL: all */
    int64_t layers, heads;       /* heads: the most in a layer */
    ses_syntax_relation *relation;
    size_t n;
    int64_t sentences, truncated; /* counted, and left out */
    int64_t *hits;                /* [SES_SYNTAX_DIRECTIONS, layers, heads, n]; see ses_head_syntax_hits */
    /* private */
    ses_strmap index;
    int64_t *offsets; /* [n, 2 SES_TREE_MAX_WORDS] */
    size_t cap;
    int32_t *of;  /* [words]: relation of each word of the treebank; -1: a root */
    float *words; /* [SES_TREE_MAX_WORDS^2]: weights between words */
} ses_head_syntax;

/* Starts the counts. trees and chosen are borrowed. Free it even on failure. */
bool ses_head_syntax_new(ses_head_syntax *s, const ses_treebank *trees, const ses_layer_set *chosen,
                         ses_err *e);
void ses_head_syntax_free(ses_head_syntax *s);

/* Adds the weights of a sentence; t->index is its index in the treebank. A truncated one is left out. */
bool ses_head_syntax_add(ses_head_syntax *s, const ses_attention_text *t, ses_err *e);

int64_t ses_head_syntax_hits(const ses_head_syntax *s, ses_syntax_direction d, int64_t layer, int64_t head,
                             size_t relation);

/* The best head of a relation in a direction; ties: the first. */
typedef struct ses_syntax_best {
    int64_t layer, head, hits;
} ses_syntax_best;
ses_syntax_best ses_head_syntax_best(const ses_head_syntax *s, ses_syntax_direction d, size_t relation);

/* Adds a table of the relations with at least min_cases cases, and notes. Layers and heads are
 * numbered from 1. */
void ses_head_syntax_figures(const ses_head_syntax *s, int64_t min_cases, ses_report *r);
/* Writes the member "syntax" of the result: every relation, the best heads, and the hits of all heads. */
void ses_head_syntax_json(const ses_head_syntax *s, int64_t min_cases, ses_json_writer *w);

#endif
