/* JSON (RFC 8259), strict: one value, UTF-8 without a byte order mark, no trailing bytes, no duplicate
 * keys, at most SES_JSON_MAX_DEPTH levels. Every refusal names line, column and byte.
 *
 * A document owns its values and strings; they are borrowed until ses_json_free and may be read from
 * several threads. Memory: at most 24 bytes for each byte of text, plus a few kilobytes; a typical file
 * takes 4. Integers that fit 64 bits are exact and never pass through a double; larger ones become reals.
 *
 * The readers take NULL for a value and answer as for a value of another type, so
 *     ses_json_int(ses_json_get(config, "hidden_size"), &n)
 * is false both when the key is absent and when it holds something else. */
#ifndef SESAME_JSON_H
#define SESAME_JSON_H

#include "sesame/err.h"

SES_BEGIN_DECLS

enum { SES_JSON_MAX_DEPTH = 128 };

typedef struct ses_json ses_json;         /* a value */
typedef struct ses_json_doc ses_json_doc; /* what owns it */

typedef enum {
    SES_JSON_NULL,
    SES_JSON_BOOL,
    SES_JSON_INT,
    SES_JSON_UINT, /* an integer above INT64_MAX */
    SES_JSON_REAL,
    SES_JSON_STRING,
    SES_JSON_ARRAY,
    SES_JSON_OBJECT
} ses_json_type;

ses_json_doc *ses_json_parse(const char *text, size_t n, ses_err *e); /* text may go afterwards */
/* A line of a file, whose number the caller tells: errors tell the column alone. */
ses_json_doc *ses_json_parse_line(const char *line, size_t n, ses_err *e);
ses_json_doc *ses_json_load(const char *path, size_t max_bytes, ses_err *e);
ses_json_doc *ses_json_load_object(const char *path, size_t max_bytes, ses_err *e); /* refuses others */
void ses_json_free(ses_json_doc *d);
const ses_json *ses_json_root(const ses_json_doc *d);

ses_json_type ses_json_type_of(const ses_json *v);
const char *ses_json_type_name(ses_json_type t);                         /* "an integer", "a string", ... */
const ses_json *ses_json_get(const ses_json *object, const char *key);   /* hashed when there are many */
size_t ses_json_len(const ses_json *v);                                  /* members or elements */
const ses_json *ses_json_at(const ses_json *v, size_t i);                /* element or member's value; O(1) */
const char *ses_json_key(const ses_json *object, size_t i, size_t *len); /* in the text's order */

bool ses_json_bool(const ses_json *v, bool *out);
bool ses_json_int(const ses_json *v, int64_t *out);          /* INT only: 1.0 is a REAL */
bool ses_json_uint(const ses_json *v, uint64_t *out);        /* INT from 0, or UINT */
bool ses_json_real(const ses_json *v, double *out);          /* any number */
const char *ses_json_string(const ses_json *v, size_t *len); /* ends in NUL and may hold more: len tells */
size_t ses_json_pos(const ses_json *v);                      /* byte position in the text */

/* Writer: a text grown call by call. The first failure sticks and is told by ses_json_writer_text; calls in
 * an order that makes no JSON (a value without its key, an end without its begin) are such a failure. */
typedef struct ses_json_writer ses_json_writer;

/* indent 0: one line with ", " and ": ", as Python's json.dumps writes; above: one member or element a
 * line, that many spaces deeper each level; below: no space at all. */
ses_json_writer *ses_json_writer_new(int indent, ses_err *e);
/* Escape all but ASCII, as Python does; else UTF-8. */
void ses_json_writer_set_ascii(ses_json_writer *w, bool on);
void ses_json_writer_free(ses_json_writer *w);
void ses_json_begin_object(ses_json_writer *w);
void ses_json_end_object(ses_json_writer *w);
void ses_json_begin_array(ses_json_writer *w);
void ses_json_end_array(ses_json_writer *w);
void ses_json_put_key(ses_json_writer *w, const char *key);
void ses_json_put_keyn(ses_json_writer *w, const char *key, size_t n);
void ses_json_put_string(ses_json_writer *w, const char *s); /* NULL: null */
void ses_json_put_stringn(ses_json_writer *w, const char *s, size_t n);
void ses_json_put_int(ses_json_writer *w, int64_t x);
void ses_json_put_uint(ses_json_writer *w, uint64_t x);
void ses_json_put_real(ses_json_writer *w, double x); /* shortest text that reads back; NaN, infinity: null */
void ses_json_put_float(ses_json_writer *w, float x); /* shortest that reads back as this float */
void ses_json_put_bool(ses_json_writer *w, bool x);
void ses_json_put_null(ses_json_writer *w);
void ses_json_put_value(ses_json_writer *w, const ses_json *v); /* a parsed value, whole */

/* Key and value in one call, in the object being written. */
void ses_json_member_string(ses_json_writer *w, const char *key, const char *value); /* NULL: null */
void ses_json_member_int(ses_json_writer *w, const char *key, int64_t value);
void ses_json_member_real(ses_json_writer *w, const char *key, double value);
void ses_json_member_bool(ses_json_writer *w, const char *key, bool value);
void ses_json_member_array(ses_json_writer *w, const char *key); /* begins the array */
/* An array of strings, from a list with ", " between its items. */
void ses_json_member_list(ses_json_writer *w, const char *key, const char *list);

/* The finished text, owned by the writer and ended by NUL; NULL and the reason when something failed or a
 * begin lacks its end. */
const char *ses_json_writer_text(ses_json_writer *w, size_t *len, ses_err *e);

SES_END_DECLS

#endif
