/* The words of a text as fastText reads them, its dictionary and the n-grams of words. */
#ifndef SES_VECTORS_FASTTEXT_WORDS_H
#define SES_VECTORS_FASTTEXT_WORDS_H

#include "base/arena.h"
#include "base/file.h"
#include "base/strmap.h"

typedef struct ses_fasttext_reader {
    const unsigned char *start, *at, *end;
    bool ended; /* a read hit the end of the file: the next line starts over */
    const char *word;
    size_t len;
} ses_fasttext_reader;

ses_fasttext_reader ses_fasttext_reader_of(const ses_mmap *file);
bool ses_fasttext_read(ses_fasttext_reader *r); /* "</s>" for the end of a line; false: the end of the file */

typedef struct ses_fasttext_word {
    const char *text;
    size_t len;
    int64_t count;
    bool is_label;
    size_t first_row, n_rows; /* in rows: the word and its n-grams */
} ses_fasttext_word;

typedef struct ses_fasttext_dictionary {
    ses_arena text;
    ses_strmap id;
    ses_fasttext_word *word; /* words by falling count, then labels */
    size_t n, capacity, n_words;
    int64_t tokens; /* tokens of the text, including words that were dropped */
    int32_t *rows;
    size_t n_rows, rows_capacity;
} ses_fasttext_dictionary;

/* *d must be zeroed; free it even if this fails. */
bool ses_fasttext_count(ses_fasttext_dictionary *d, const ses_mmap *file, const char *path, int64_t min_count,
                        ses_err *e);
/* Finds the n-grams of minn to maxn characters of all words; they have rows from n_words to n_words +
 * buckets. */
bool ses_fasttext_add_ngrams(ses_fasttext_dictionary *d, int minn, int maxn, int64_t buckets, ses_err *e);
void ses_fasttext_dictionary_free(ses_fasttext_dictionary *d);

#endif
