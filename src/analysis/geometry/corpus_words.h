/* The words of a corpus with their hidden states in every chosen layer, and the occurrences of each word
 * form. Words without tokens are left out.
 *
 * Ownership: the caller frees them; they borrow the texts. Threads: one at a time. */
#ifndef SES_ANALYSIS_CORPUS_WORDS_H
#define SES_ANALYSIS_CORPUS_WORDS_H

#include "analysis/analysis.h"
#include "analysis/state_spool.h"
#include "analysis/text_file.h"
#include "base/strmap.h"

typedef struct ses_corpus_word {
    size_t text;
    int32_t index;    /* number of the word in its text */
    ses_string form;  /* not followed by a NUL if the text is a string */
    uint32_t type;    /* number of its form */
    ses_offset bytes; /* in the text; of words that were given: 0 */
    size_t stored;    /* its row in the spool */
} ses_corpus_word;

typedef struct ses_corpus_words {
    const ses_text_file *file;
    int64_t *layer; /* [n_layers], ascending */
    size_t n_layers, width;
    ses_state_spool *states;
    ses_corpus_word *word; /* [n], in the order of the texts */
    size_t n, cap;
    size_t *cu_texts;              /* [texts + 1]: words of each text */
    ses_strmap types;              /* form to its number */
    size_t *occurrence, *cu_types; /* words of each form: occurrence[cu_types[t]] .. */
} ses_corpus_words;

typedef struct ses_corpus_words_options {
    const ses_layer_set *layers; /* NULL: all */
    bool first_piece;
    bool decoder;            /* encoder-decoders: states of the decoder */
    const ses_input *source; /* then: the encoder's texts; NULL: the same ones */
} ses_corpus_words_options;

/* Runs a model over the texts. *w must be zeroed; free it after a failure, too. Fails if a state is not
 * finite. */
bool ses_corpus_words_read(ses_corpus_words *w, const ses_model *m, const ses_tokenizer *t,
                           const ses_text_file *f, const ses_corpus_words_options *o,
                           const ses_analysis_call *call, ses_err *e);
void ses_corpus_words_free(ses_corpus_words *w);

/* The states of layer number k of w->layer: [n, width]. Free with ses_free. */
float *ses_corpus_words_layer(const ses_corpus_words *w, size_t k, ses_err *e);

/* The words that two corpora of the same texts share: pairs of indices, by position in the text. *n: how
 * many; a and b are freed with ses_free. */
bool ses_corpus_words_align(const ses_corpus_words *x, const ses_corpus_words *y, size_t **a, size_t **b,
                            size_t *n, ses_err *e);

#endif
