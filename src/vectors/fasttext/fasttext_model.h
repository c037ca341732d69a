/* The model of a fastText file, .bin or .ftz: settings, dictionary, input and output matrices.
 *
 * Rows of the input matrix: words, then buckets, which n-grams of characters and of words share by their
 * hash. The vector of a word is the mean of its own row and the rows of its n-grams; an unknown word has
 * n-grams only.
 *
 * An open model refers to its mapped file: opening reads the dictionary, not the matrices. Several threads
 * may use a model. Functions are exact: the same bits as fastText. */
#ifndef SES_VECTORS_FASTTEXT_MODEL_H
#define SES_VECTORS_FASTTEXT_MODEL_H

#include "fasttext_matrix.h"
#include "fasttext_words.h"

typedef enum {
    SES_FASTTEXT_CBOW = 1,
    SES_FASTTEXT_SKIPGRAM,
    SES_FASTTEXT_SUPERVISED,
} ses_fasttext_kind;

typedef enum {
    SES_FASTTEXT_HIERARCHICAL = 1,
    SES_FASTTEXT_NEGATIVE,
    SES_FASTTEXT_SOFTMAX,
    SES_FASTTEXT_ONE_VS_ALL,
} ses_fasttext_loss;

/* Settings in the order of the file. */
typedef struct ses_fasttext_settings {
    int32_t dim, ws, epoch, min_count, neg, word_ngrams;
    int32_t loss, model; /* ses_fasttext_loss, ses_fasttext_kind */
    int32_t bucket, minn, maxn, lr_update_rate;
    double t;
} ses_fasttext_settings;

/* A bucket that pruning kept, and its row behind the words. */
typedef struct ses_fasttext_kept {
    int32_t bucket, row;
} ses_fasttext_kept;

/* Node of the tree of hierarchical softmax: labels, then inner nodes; -1: none. */
typedef struct ses_fasttext_node {
    int32_t parent, left, right;
    int64_t count;
    bool is_right; /* it is the right child */
} ses_fasttext_node;

typedef struct ses_fasttext_model {
    ses_fasttext_settings set;
    ses_fasttext_dictionary d;    /* words, then labels */
    int64_t n_pruned;             /* -1: not pruned, all buckets have rows */
    ses_fasttext_kept *kept;      /* [n_pruned] in the order of the file; owned */
    ses_fasttext_kept *by_bucket; /* the same, sorted */
    ses_fasttext_matrix in, out;
    ses_fasttext_node *tree; /* [2 labels - 1] for hierarchical softmax, otherwise NULL; owned */
    ses_mmap file;
} ses_fasttext_model;

/* ---- files ---- */

ses_fasttext_model *ses_fasttext_open(const char *path, ses_err *e);
/* The same from bytes in memory, which are borrowed. */
ses_fasttext_model *ses_fasttext_from_bytes(const void *bytes, size_t n, ses_err *e);
bool ses_fasttext_save(const ses_fasttext_model *m, const char *path, bool overwrite, ses_err *e);
bool ses_fasttext_write(const ses_fasttext_model *m, ses_file_writer *w, ses_err *e);
void ses_fasttext_clear(ses_fasttext_model *m); /* frees all but the struct; back to zero */
void ses_fasttext_free(ses_fasttext_model *m);  /* NULL is allowed */
/* Sorts the kept buckets and builds the tree: after a change of either. */
bool ses_fasttext_index(ses_fasttext_model *m, ses_err *e);

/* ---- words ---- */

size_t ses_fasttext_dim(const ses_fasttext_model *m);
size_t ses_fasttext_n_words(const ses_fasttext_model *m);
size_t ses_fasttext_n_labels(const ses_fasttext_model *m);
ses_string ses_fasttext_word_at(const ses_fasttext_model *m, size_t i);
ses_string ses_fasttext_label_at(const ses_fasttext_model *m, size_t i); /* with its prefix */
/* The number of a word; false: unknown, or a label. */
bool ses_fasttext_find(const ses_fasttext_model *m, const char *s, size_t n, size_t *i);
/* The vector of any word. *n_rows (may be NULL): rows it is the mean of; 0: unknown word without n-grams,
 * x is zero. */
bool ses_fasttext_word_vector(const ses_fasttext_model *m, const char *s, size_t n, float *x, size_t *n_rows,
                              ses_err *e);
/* Adds the rows of a word: its own, if it is known, and its n-grams. */
bool ses_fasttext_add_word_rows(const ses_fasttext_model *m, const char *s, size_t n, ses_fasttext_rows *rows,
                                ses_err *e);

/* ---- texts and labels ---- */

/* Tokens of a line: rows of the input matrix and labels, from 0. Zeroed: empty; free with
 * ses_fasttext_line_free. */
typedef struct ses_fasttext_line {
    ses_fasttext_rows rows, labels, hashes;
    int64_t tokens;
} ses_fasttext_line;

/* Reads one line, with its end as the token </s>; false in *more: the text has ended. */
bool ses_fasttext_read_line(const ses_fasttext_model *m, ses_fasttext_reader *r, ses_fasttext_line *line,
                            bool *more, ses_err *e);
/* The same for a text in memory, which is one line whatever it contains. */
bool ses_fasttext_line_of(const ses_fasttext_model *m, const char *text, size_t n, ses_fasttext_line *line,
                          ses_err *e);
void ses_fasttext_line_free(ses_fasttext_line *line);

typedef struct ses_fasttext_guess {
    float score;   /* log(p + 1e-5) */
    int32_t label; /* from 0 */
} ses_fasttext_guess;

/* The k best labels with p >= threshold, best first; *n: how many. guess has k elements. A line without rows
 * gets none. */
bool ses_fasttext_predict(const ses_fasttext_model *m, const ses_fasttext_line *line, size_t k,
                          float threshold, ses_fasttext_guess *guess, size_t *n, ses_err *e);
/* Probabilities of all labels in their order: p has ses_fasttext_n_labels elements; all 0 for a line without
 * rows. */
bool ses_fasttext_probabilities(const ses_fasttext_model *m, const ses_fasttext_line *line, float *p,
                                ses_err *e);

#endif
