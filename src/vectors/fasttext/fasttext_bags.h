/* Texts as bags: the rows of their words and n-grams, and their labels. */
#ifndef SES_VECTORS_FASTTEXT_BAGS_H
#define SES_VECTORS_FASTTEXT_BAGS_H

#include "fasttext_trainer.h"

/* A frequent row in a text: its index in `frequent`, and how often it occurs. */
typedef struct ses_fasttext_hot {
    int32_t index, count;
} ses_fasttext_hot;

typedef struct ses_fasttext_bags {
    size_t n, n_rows, n_labels, rows_capacity, labels_capacity;
    int32_t *row, *label;            /* texts after texts */
    size_t *row_start, *label_start; /* [n + 1] */
    int32_t *tokens;                 /* [n] */
    int64_t all_tokens;
    /* Rows that occur in many texts, most frequent first; they are not in `row`. */
    int32_t *frequent; /* [n_frequent]: their numbers */
    size_t n_frequent, n_hot;
    struct ses_fasttext_hot *hot; /* texts after texts */
    size_t *hot_start;            /* [n + 1] */
    int32_t *size;                /* [n]: rows of a text, with these */
} ses_fasttext_bags;

/* Counts the words and labels of the texts into the dictionary of m. */
bool ses_fasttext_count_texts(const ses_fasttext_options *o, const ses_fasttext_texts *t,
                              ses_fasttext_model *m, ses_err *e);
/* *b must be zeroed; free it even on failure. */
bool ses_fasttext_bags_fill(ses_fasttext_bags *b, const ses_fasttext_texts *t, const ses_fasttext_model *m,
                            ses_err *e);
/* Takes up to `most` frequent rows out of the bags; in_rows: rows of the matrix. */
bool ses_fasttext_bags_split(ses_fasttext_bags *b, size_t in_rows, size_t most, ses_err *e);
void ses_fasttext_bags_free(ses_fasttext_bags *b);

#endif
