/* Rows of evaluation data that are rows of the training data. Rows are compared by 64-bit hashes of their
 * texts without white space at the ends; labels do not count. Rows without text are left out.
 *
 * A zeroed ses_row_set is empty; free it even on failure. One thread. */
#ifndef SES_DATA_ROW_OVERLAP_H
#define SES_DATA_ROW_OVERLAP_H

#include "base/str.h"
#include "sesame/examples.h"
#include "sesame/pretrain.h"

typedef struct ses_row_set {
    uint64_t *hash;
    size_t n, cap;
} ses_row_set;

/* Adds a row of n texts, all of its texts in order. */
bool ses_row_set_add(ses_row_set *s, const ses_string *text, size_t n, ses_err *e);
bool ses_row_set_add_examples(ses_row_set *s, const ses_examples *d, ses_err *e);
void ses_row_set_free(ses_row_set *s); /* back to zero */

size_t ses_row_set_distinct(ses_row_set *s); /* number of different rows; sorts the set */

typedef struct ses_row_overlap {
    size_t shared, rows; /* rows of the evaluation data that are in the training data, of all */
} ses_row_overlap;

/* Sorts both sets. */
ses_row_overlap ses_row_set_overlap(ses_row_set *train, ses_row_set *eval);
bool ses_examples_overlap(const ses_examples *train, const ses_examples *eval, ses_row_overlap *out,
                          ses_err *e);
/* The same for documents of corpora, whose files have their hashes. Held-out documents of `train` do not
 * count. */
bool ses_corpus_overlap(const ses_corpus *train, const ses_corpus *eval, ses_row_overlap *out, ses_err *e);
/* A sentence about the overlap, without a period: "12 of 100 examples of dev.tsv are ..."; "" if there is
 * none. */
const char *ses_row_overlap_text(const ses_row_overlap *o, const char *eval_name, char *buf, size_t size);

#endif
