/* Reader of JSON lines: one object per line. A reader belongs to one thread; values are valid until the next
 * call. */
#ifndef SES_IO_JSON_LINES_H
#define SES_IO_JSON_LINES_H

#include "sesame/json.h"
#include "text_reader.h"

typedef struct ses_json_lines {
    ses_text_reader text;
    ses_json_doc *doc;
} ses_json_lines;

/* *l must be zeroed. Free it even if the open fails. "-" is standard input. */
bool ses_json_lines_open(ses_json_lines *l, const char *path, ses_err *e);
void ses_json_lines_from_text(ses_json_lines *l, const char *text, size_t n); /* the text is borrowed */
void ses_json_lines_free(ses_json_lines *l);                                  /* back to zero */

/* The next object; *object is NULL at the end. Empty lines are skipped. Errors begin with the line. */
bool ses_json_lines_next(ses_json_lines *l, const ses_json **object, ses_err *e);
/* Prepends the line of the last object to an error. Returns false. */
bool ses_json_lines_wrap(const ses_json_lines *l, ses_err *e);

/* The string of a key; p NULL: absent or null. Fails if it has another type or contains a NUL. */
bool ses_json_lines_string(const ses_json *object, const char *key, ses_string *out, ses_err *e);

#endif
