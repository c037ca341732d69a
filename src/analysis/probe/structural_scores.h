/* Scores of structural probes (Hewitt and Manning 2019) and of the baseline that links neighbours. */
#ifndef SES_ANALYSIS_STRUCTURAL_SCORES_H
#define SES_ANALYSIS_STRUCTURAL_SCORES_H

#include "structural.h"

typedef struct ses_structural_scores {
    /* Distances: share of the edges of gold trees, without punctuation, in the minimum spanning tree of the
     * predictions. */
    double uuas;
    /* Spearman correlation of predicted and gold distances of a word to the words of its sentence; of
     * predicted and gold depths of a sentence. Averaged over each length, then over the lengths 5 to 50. */
    double dspr, nspr;
    /* Share of sentences whose root has the least predicted depth of the words that are not punctuation:
     * all sentences, and sentences with at least two such words. */
    double root, root_of_several;
    size_t edges, sentences, sentences_of_several; /* that were scored */
} ses_structural_scores;

/* Scores of a set; a probe may be NULL, and its scores stay. */
bool ses_structural_score(const ses_structural_probe *distance, const ses_structural_probe *depth,
                          ses_device *device, const ses_structural_set *set, ses_structural_scores *out,
                          ses_err *e);

/* Scores of the linear order: distances |i - j|, depths i. */
bool ses_structural_score_order(const ses_structural_gold *gold, ses_structural_scores *out, ses_err *e);

/* A predicted tree of sentence i, without punctuation, as heads among its content words (as
 * ses_tree_content_words): head[k] is an index of a content word, or -1 for the root. depth: n predicted
 * depths, distance: [n, n] predicted distances. */
void ses_structural_tree(const ses_tree *t, const ses_real *distance, const ses_real *depth, int32_t *head);

#endif
