/* Growing byte buffer, and printing of text that cannot be trusted. A zeroed ses_buf is empty and ready.
 * The first failure sticks: later calls do nothing and ses_buf_ok tells it once, at the end. */
#ifndef SES_BASE_STR_H
#define SES_BASE_STR_H

#include "sesame/err.h"

#include <stdarg.h>

typedef struct ses_buf {
    char *data;    /* NUL after len bytes, once anything was reserved */
    size_t len;    /* bytes in use */
    size_t cap;    /* bytes there, without the NUL */
    size_t limit;  /* most bytes allowed; 0: no limit */
    size_t wanted; /* not 0: a call wanted this many bytes and failed */
} ses_buf;

bool ses_buf_reserve(ses_buf *b, size_t more); /* room for more bytes after len */
bool ses_buf_append(ses_buf *b, const void *p, size_t n);
bool ses_buf_put(ses_buf *b, char c);
bool ses_buf_puts(ses_buf *b, const char *s);
bool ses_buf_appendf(ses_buf *b, const char *fmt, ...) SES_PRINTF(2, 3);
bool ses_buf_vappendf(ses_buf *b, const char *fmt, va_list ap) SES_PRINTF(2, 0);
bool ses_buf_ok(const ses_buf *b, ses_err *e); /* false and the reason when a call failed */
void ses_buf_free(ses_buf *b);                 /* back to zero */

bool ses_equal(const char *s, size_t n, const char *word); /* s[0, n), NUL bytes and all, is the word */
int ses_hex_digit(char c);                                 /* its value; -1: it is none */

/* Text from outside, made fit for a message: control characters and bad UTF-8 as \xNN, cut with "..." where
 * out (size bytes) is too small. Returns out. */
const char *ses_quote(char *out, size_t size, const char *s, size_t n);

/* Enough for a tensor's name or a path in a message. */
typedef struct ses_quoted {
    char s[160];
} ses_quoted;
ses_quoted ses_quoted_of(const char *s, size_t n);

#endif
