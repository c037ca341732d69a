/* Growing byte buffer, and formatting of untrusted text for messages. A zeroed ses_buf is empty and ready;
 * it owns its bytes until ses_buf_free. The first failure is kept: later calls do nothing, and ses_buf_ok
 * reports it once at the end. */
#ifndef SES_BASE_STR_H
#define SES_BASE_STR_H

#include "sesame/base.h"

#include <stdarg.h>

typedef struct ses_buf {
    char *data;    /* NUL after len bytes, once anything was reserved */
    size_t len;    /* bytes in use */
    size_t cap;    /* capacity without the NUL */
    size_t limit;  /* maximum capacity; 0: no limit */
    size_t wanted; /* not 0: a call failed to reserve this many bytes */
} ses_buf;

bool ses_buf_reserve(ses_buf *b, size_t more); /* capacity for `more` bytes after len */
bool ses_buf_append(ses_buf *b, const void *p, size_t n);
bool ses_buf_put(ses_buf *b, char c);
bool ses_buf_puts(ses_buf *b, const char *s);
bool ses_buf_appendf(ses_buf *b, const char *fmt, ...) SES_PRINTF(2, 3);
bool ses_buf_vappendf(ses_buf *b, const char *fmt, va_list ap) SES_PRINTF(2, 0);
bool ses_buf_ok(const ses_buf *b, ses_err *e); /* false with the reason if a call failed */
void ses_buf_free(ses_buf *b);                 /* back to zero */

bool ses_equal(const char *s, size_t n, const char *word); /* whether s[0, n) equals a NUL-terminated word */
ses_string ses_trim(ses_string s);                         /* without white space at both ends */
int ses_hex_digit(char c);                                 /* its value; -1: not a hex digit */

/* Item i of a list "a|b|c"; false past the end or if list is NULL. */
bool ses_list_at(const char *list, size_t i, const char **item, size_t *len);
size_t ses_list_len(const char *list);
bool ses_list_has(const char *list, const char *word);
/* The same of a list "a,b,c". */
bool ses_comma_item(const char *list, size_t i, ses_string *out);

/* Escapes untrusted text for a message: control characters and invalid UTF-8 become \xNN; text that does not
 * fit into `size` bytes is truncated and ends in "...". Returns out. */
const char *ses_quote(char *out, size_t size, const char *s, size_t n);

/* The same by value: long enough for a tensor name or a path. */
typedef struct ses_quoted {
    char s[160];
} ses_quoted;
ses_quoted ses_quoted_of(const char *s, size_t n);

#endif
