/* Word vectors as text: a word and its numbers per line, separated by blanks; shared by the text formats. A
 * word may itself contain blanks: it ends where the last `dim` fields begin. */
#ifndef SES_VECTORS_TEXT_ROWS_H
#define SES_VECTORS_TEXT_ROWS_H

#include "vectors/vectors_impl.h"

typedef struct ses_vector_header {
    int64_t count, dim;
    size_t size; /* bytes of the line, with its end */
} ses_vector_header;

/* Reads the line "COUNT DIM" at the start; false: there is none. */
bool ses_vector_header_read(const ses_vectors *v, ses_vector_header *h);
/* Whether the first row after a header is text: a word and dim numbers, or at least printable. */
bool ses_vector_row_is_text(const ses_vectors *v, const ses_vector_header *h);

bool ses_text_rows_open(ses_vectors *v, const ses_vector_header *h, ses_err *e); /* h NULL: no header */
bool ses_text_rows_next(ses_vectors *v, ses_vector_row *row, ses_err *e);
bool ses_text_rows_get(const ses_vectors *v, const ses_vector_row *row, float *out, ses_err *e);

/* detect and open of formats with a header. */
bool ses_text_rows_detect(const ses_vectors *v);
bool ses_text_rows_open_header(ses_vectors *v, ses_err *e);

typedef enum { SES_TEXT_SIX_DECIMALS, SES_TEXT_NINE_DIGITS } ses_text_number;
/* Appends a row; blank_first: a blank before each number instead of one after it. */
void ses_text_row_put(ses_buf *out, const ses_vector_line *l, ses_text_number kind, bool blank_first);
void ses_vector_header_put(ses_buf *out, int64_t count, int64_t dim);
const char *ses_text_rows_refuses(ses_string word); /* blanks and line ends */

#endif
