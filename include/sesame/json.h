/* JSON (RFC 8259): parser, accessors and writer.
 *
 * The parser is strict: one value, UTF-8 without a byte order mark, no trailing bytes, no duplicate keys,
 * at most SES_JSON_MAX_DEPTH levels. Every parse error reports line, column and byte offset. Integers that
 * fit 64 bits are exact and never pass through a double; larger ones become reals.
 *
 * Ownership: a document owns its values and strings; pointers to them are valid until ses_json_free.
 * Memory: at most 24 bytes for each byte of text, plus a few kilobytes; typically 4.
 * Threads: several threads may read one document. A writer belongs to one thread.
 *
 * The accessors accept NULL as a value and treat it like a value of another type, so
 *     ses_json_int(ses_json_get(config, "hidden_size"), &n)
 * is false if the key is absent and if its value is not an integer. */
#ifndef SESAME_JSON_H
#define SESAME_JSON_H

#include "sesame/base.h"

SES_BEGIN_DECLS

enum { SES_JSON_MAX_DEPTH = 128 };

typedef struct ses_json ses_json;         /* a value, owned by its document */
typedef struct ses_json_doc ses_json_doc; /* a parsed document */

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

/* ---- parsing ---- */

/* Parses n bytes of text, which may be freed afterwards. NULL on failure. Free the result with
 * ses_json_free. */
ses_json_doc *ses_json_parse(const char *text, size_t n, ses_err *e);
/* The same for one line of a file: errors report the column only, so that the caller can prepend its own line
 * number. */
ses_json_doc *ses_json_parse_line(const char *line, size_t n, ses_err *e);
/* Reads and parses a file of at most max_bytes bytes. Errors begin with the path. */
ses_json_doc *ses_json_load(const char *path, size_t max_bytes, ses_err *e);
/* The same; fails if the root is not an object. */
ses_json_doc *ses_json_load_object(const char *path, size_t max_bytes, ses_err *e);
/* Frees a document and all its values. d may be NULL. */
void ses_json_free(ses_json_doc *d);
/* The root value; NULL if d is NULL. */
const ses_json *ses_json_root(const ses_json_doc *d);

/* ---- accessors: none allocates, none fails with an error message ---- */

/* The type of v; SES_JSON_NULL if v is NULL. */
ses_json_type ses_json_type_of(const ses_json *v);
/* Type name with its article, for messages: "an integer", "a string". Static. */
const char *ses_json_type_name(ses_json_type t);
/* The value of a key; NULL if it is absent or v is not an object. Large objects are hashed: O(1). */
const ses_json *ses_json_get(const ses_json *object, const char *key);
/* Number of elements of an array or members of an object; 0 for other types. */
size_t ses_json_len(const ses_json *v);
/* Element i of an array or value of member i of an object, in O(1); NULL if i is out of range. */
const ses_json *ses_json_at(const ses_json *v, size_t i);
/* Key of member i, in the order of the text, NUL-terminated; NULL if i is out of range. *len (may be NULL):
 * its bytes. */
const char *ses_json_key(const ses_json *object, size_t i, size_t *len);

/* Each accessor stores the value in *out and returns true, or returns false if v has another type. */
bool ses_json_bool(const ses_json *v, bool *out);
bool ses_json_int(const ses_json *v, int64_t *out);   /* SES_JSON_INT only: 1.0 is a real */
bool ses_json_uint(const ses_json *v, uint64_t *out); /* SES_JSON_UINT, or SES_JSON_INT of at least 0 */
bool ses_json_real(const ses_json *v, double *out);   /* any number */
/* The bytes of a string, NUL-terminated; NULL if v is not a string. A string may contain NULs: *len (may be
 * NULL) is its length. */
const char *ses_json_string(const ses_json *v, size_t *len);
/* Byte offset of the value in the parsed text, for messages. */
size_t ses_json_pos(const ses_json *v);

/* ---- writing ---- */

/* A writer builds a text call by call. The first failure is kept and reported by ses_json_writer_text; later
 * calls do nothing. Invalid call sequences (a member without a key, an end without its begin) are failures
 * too. */
typedef struct ses_json_writer ses_json_writer;

/* indent 0: one line with ", " and ": ", as Python's json.dumps; above 0: one member or element per line,
 * indented by that many spaces per level; below 0: no whitespace. NULL on failure. Free with
 * ses_json_writer_free. */
ses_json_writer *ses_json_writer_new(int indent, ses_err *e);
/* Escapes all non-ASCII characters as \uXXXX, as json.dumps does by default; off: UTF-8. */
void ses_json_writer_set_ascii(ses_json_writer *w, bool on);
/* Frees the writer and its text. w may be NULL. */
void ses_json_writer_free(ses_json_writer *w);
/* The finished text, NUL-terminated and owned by the writer; *len (may be NULL): its bytes. NULL if a call
 * failed or a begin lacks its end. */
const char *ses_json_writer_text(ses_json_writer *w, size_t *len, ses_err *e);

/* Containers. Each begin needs its end. */
void ses_json_begin_object(ses_json_writer *w);
void ses_json_end_object(ses_json_writer *w);
void ses_json_begin_array(ses_json_writer *w);
void ses_json_end_array(ses_json_writer *w);

/* The key of the next value; the n form takes a length instead of a NUL. */
void ses_json_put_key(ses_json_writer *w, const char *key);
void ses_json_put_keyn(ses_json_writer *w, const char *key, size_t n);

/* Values: the root, an element of an array, or the value of the last key. Strings must be UTF-8. */
void ses_json_put_string(ses_json_writer *w, const char *s); /* NULL: null */
void ses_json_put_stringn(ses_json_writer *w, const char *s, size_t n);
void ses_json_put_int(ses_json_writer *w, int64_t x);
void ses_json_put_uint(ses_json_writer *w, uint64_t x);
void ses_json_put_real(ses_json_writer *w, double x); /* shortest round-trip text; NaN and infinity: null */
void ses_json_put_float(ses_json_writer *w, float x); /* shortest text that reads back as this float */
void ses_json_put_bool(ses_json_writer *w, bool x);
void ses_json_put_null(ses_json_writer *w);
void ses_json_put_value(ses_json_writer *w, const ses_json *v); /* a parsed value with all it contains */

/* Members: a key and its value in one call. */
void ses_json_member_string(ses_json_writer *w, const char *key, const char *value); /* NULL: null */
void ses_json_member_stringn(ses_json_writer *w, const char *key, const char *value, size_t n);
void ses_json_member_int(ses_json_writer *w, const char *key, int64_t value);
void ses_json_member_uint(ses_json_writer *w, const char *key, uint64_t value);
void ses_json_member_real(ses_json_writer *w, const char *key, double value);
void ses_json_member_bool(ses_json_writer *w, const char *key, bool value);
/* Begins an array; end it with ses_json_end_array. */
void ses_json_member_array(ses_json_writer *w, const char *key);
void ses_json_member_object(ses_json_writer *w, const char *key); /* begins an object */
/* An array of strings, from a list with ", " between its items. */
void ses_json_member_list(ses_json_writer *w, const char *key, const char *list);

SES_END_DECLS

#endif
