/* Reader of static word vectors as text: a word and its numbers per line, separated by spaces (GloVe); a
 * first line with the number of words and of columns is skipped (word2vec, fastText). Memory is that of one
 * line. One thread at a time. */
#ifndef SES_IO_WORD_VECTORS_H
#define SES_IO_WORD_VECTORS_H

#include "text_reader.h"

typedef struct ses_word_vectors {
    ses_text_reader lines;
    ses_buf word; /* the last word */
    float *x;     /* [width]: its vector */
    size_t width; /* 0: nothing has been read */
    bool end;
} ses_word_vectors;

/* *v must be zeroed. Free it even if the open fails. */
bool ses_word_vectors_open(ses_word_vectors *v, const char *path, ses_err *e);
void ses_word_vectors_from_text(ses_word_vectors *v, const char *text, size_t n); /* the text is borrowed */
void ses_word_vectors_free(ses_word_vectors *v);                                  /* back to zero */

/* Reads the next word into v->word and v->x; v->end is true after the last one. Fails for a line with another
 * number of columns and for a number that is not finite; errors begin with the line. */
bool ses_word_vectors_next(ses_word_vectors *v, ses_err *e);

#endif
