/* Feed-forward activations of a corpus, and scores of a model with some neurons set to a value.
 *
 * Ownership: the caller frees the activations. Threads: one at a time. */
#ifndef SES_ANALYSIS_ACTIVATIONS_H
#define SES_ANALYSIS_ACTIVATIONS_H

#include "analysis/analysis.h"
#include "analysis/text_file.h"
#include "sesame/hooks.h"

/* A sample is a word with its tag, or a text with its label (the mean of all its tokens). */
typedef struct ses_activations {
    int64_t layers, width; /* neurons of a layer */
    size_t n, cap;         /* samples; cap: the most */
    float *x;              /* [layers * width, cap] */
    ses_string *label;     /* [cap] */
    size_t *text;          /* [cap] */
    int32_t *word;         /* [cap]: its number in the text; -1: the whole text */
    bool is_cut;           /* more samples than cap */
} ses_activations;

/* Runs the model over the texts. Encoder-decoders: the encoder; decoder: the decoder, which reads its start
 * token and the target of each text, or the text itself if the file has no targets. *a must be zeroed; free
 * it after a failure, too. Fails if an activation is not finite. */
bool ses_activations_read(ses_activations *a, const ses_model *m, const ses_tokenizer *t,
                          const ses_text_file *f, bool decoder, size_t max_samples,
                          const ses_analysis_call *call, ses_err *e);
void ses_activations_free(ses_activations *a);

/* Activations of one neuron for each token of a text of the file: [*n], with the tokens' names. Free both
 * with ses_free, and each name. */
typedef struct ses_neuron_strip {
    const ses_text_file *file;
    size_t text;
    bool decoder;
    int64_t layer, neuron;
} ses_neuron_strip;
bool ses_activations_of_text(const ses_model *m, const ses_tokenizer *t, const ses_neuron_strip *s,
                             double **value, char ***name, int64_t *n, ses_err *e);

/* The share of texts whose label a classifier predicts, with edits (NULL: none). *n: texts with a label of
 * the model. Fails if the model does not classify texts. */
bool ses_classifier_accuracy(const ses_model *m, const ses_tokenizer *t, const ses_text_file *f, size_t texts,
                             const ses_edits *edits, double *accuracy, size_t *n, ses_err *e);

#endif
