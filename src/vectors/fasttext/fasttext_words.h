/* The words of a text as fastText reads them, its dictionary and the n-grams of words. */
#ifndef SES_VECTORS_FASTTEXT_WORDS_H
#define SES_VECTORS_FASTTEXT_WORDS_H

#include "base/arena.h"
#include "base/strmap.h"

typedef struct ses_fasttext_reader {
    const unsigned char *start, *at, *end;
    bool ended;    /* a read hit the end of the file: the next line starts over */
    bool line_end; /* the last word is the </s> of a line's end, not of the text */
    const char *word;
    size_t len;
} ses_fasttext_reader;

ses_fasttext_reader ses_fasttext_reader_of(const void *text, size_t n);
bool ses_fasttext_read(ses_fasttext_reader *r); /* "</s>" for the end of a line; false: the end of the file */

typedef struct ses_fasttext_word {
    const char *text;
    size_t len;
    int64_t count;
    bool is_label;
    size_t first_row, n_rows; /* in rows: the word and its n-grams */
} ses_fasttext_word;

/* Rows of the input matrix, or other numbers: a growing list. Zeroed: empty. */
typedef struct ses_fasttext_rows {
    int32_t *row;
    size_t n, capacity;
} ses_fasttext_rows;

bool ses_fasttext_rows_add(ses_fasttext_rows *r, int32_t row, ses_err *e);
void ses_fasttext_rows_free(ses_fasttext_rows *r); /* back to zero */

typedef struct ses_fasttext_dictionary {
    ses_arena text;
    ses_strmap id;
    ses_fasttext_word *word; /* words by falling count, then labels */
    size_t n, capacity, n_words;
    int64_t tokens; /* tokens of the text, including words that were dropped */
    ses_fasttext_rows rows;
    const char *label; /* prefix of labels; NULL: "__label__" */
} ses_fasttext_dictionary;

uint32_t ses_fasttext_hash(const char *s, size_t n); /* FNV-1a over signed bytes */
bool ses_fasttext_is_label(const ses_fasttext_dictionary *d, const char *s, size_t n);
/* Adds the buckets of the n-grams of <word> that have minn to maxn characters. */
bool ses_fasttext_add_buckets(ses_fasttext_rows *r, const char *word, size_t len, int minn, int maxn,
                              int64_t buckets, ses_err *e);

/* Counts all tokens of a text. *d must be zeroed but for the label; free it even if this fails. */
bool ses_fasttext_count(ses_fasttext_dictionary *d, ses_fasttext_reader r, ses_err *e);
bool ses_fasttext_count_word(ses_fasttext_dictionary *d, const char *s, size_t n, ses_err *e);
/* Sorts, and drops words below min_count and labels below min_label. */
bool ses_fasttext_drop_rare(ses_fasttext_dictionary *d, int64_t min_count, int64_t min_label, ses_err *e);
/* Finds the n-grams of minn to maxn characters of all words; they have rows from n_words to n_words +
 * buckets. */
bool ses_fasttext_add_ngrams(ses_fasttext_dictionary *d, int minn, int maxn, int64_t buckets, ses_err *e);
void ses_fasttext_dictionary_free(ses_fasttext_dictionary *d);

#endif
