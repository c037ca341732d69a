/* Helpers for JSON: lists of strings and floats, errors about types, finished writers, records. */
#ifndef SES_BASE_JSON_HELPERS_H
#define SES_BASE_JSON_HELPERS_H

#include "sesame/json.h"

/* The strings of an array, borrowed from the document; *n: how many. Fails if v is not an array of strings.
 * Free the result with ses_free. */
ses_string *ses_json_strings(const ses_json *v, size_t *n, ses_err *e);

/* The error for a value of the wrong type: key "size" must be an integer, not a string. Returns false. */
bool ses_json_wrong_type(const char *key, const ses_json *v, const char *expected, ses_err *e);

void ses_json_put_floats(ses_json_writer *w, const float *x, int64_t n); /* an array */

/* The text, which is the caller's to free with ses_free; the writer is empty afterwards. NULL as
 * ses_json_writer_text. */
char *ses_json_writer_take(ses_json_writer *w, size_t *len, ses_err *e);

/* End of a writer: its text becomes the file dir/name (dir NULL: the path `name`), or a document. Both free
 * w, also on failure; w may be NULL after an error. */
bool ses_json_writer_save(ses_json_writer *w, const char *dir, const char *name, bool overwrite, ses_err *e);
ses_json_doc *ses_json_writer_parse(ses_json_writer *w, ses_err *e);

/* ---- records: objects whose last member "checksum" covers the others ---- */

/* As ses_json_writer_save, with the checksum. indent: as ses_json_writer_new. */
bool ses_json_record_save(ses_json_writer *w, int indent, const char *dir, const char *name, bool overwrite,
                          ses_err *e);
/* As ses_json_load_object. Fails with SES_EFORMAT if a member has changed since it was saved; line breaks and
 * blanks may differ. required: a record of an older version, without a checksum, fails, too. */
ses_json_doc *ses_json_record_load(const char *path, size_t max_bytes, bool required, ses_err *e);
bool ses_json_record_check(const ses_json *record, bool required, ses_err *e); /* the same check */

#endif
