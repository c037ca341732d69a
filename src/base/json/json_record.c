/* Records: JSON objects with a checksum of their members. */
#include "json_helpers.h"

#include "base/alloc.h"
#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const KEY = "checksum";

/* Hash of all other members in their order, without blanks, as 16 hexadecimal digits. */
static bool checksum_of(const ses_json *record, char hex[24], ses_err *e)
{
    static const ses_hash_key key = { 0x736573616d65, 13 }; /* fixed: the hash is stored in files */
    ses_json_writer *w = ses_json_writer_new(-1, e);
    size_t n = 0, len;
    if (!w) return false;
    ses_json_begin_object(w);
    for (size_t i = 0; i < ses_json_len(record); i++) {
        const char *name = ses_json_key(record, i, &len);
        if (!strcmp(name, KEY)) continue;
        ses_json_put_keyn(w, name, len);
        ses_json_put_value(w, ses_json_at(record, i));
    }
    ses_json_end_object(w);
    const char *text = ses_json_writer_text(w, &n, e);
    if (text) snprintf(hex, 24, "%016" PRIx64, ses_hash(key, text, n));
    ses_json_writer_free(w);
    return text != NULL;
}

bool ses_json_record_save(ses_json_writer *w, int indent, const char *dir, const char *name, bool overwrite,
                          ses_err *e)
{
    char hex[24];
    ses_json_doc *d = ses_json_writer_parse(w, e);
    ses_json_writer *out = d && checksum_of(ses_json_root(d), hex, e) ? ses_json_writer_new(indent, e) : NULL;
    if (out) {
        size_t n;
        const ses_json *root = ses_json_root(d);
        ses_json_begin_object(out);
        for (size_t i = 0; i < ses_json_len(root); i++) {
            const char *key = ses_json_key(root, i, &n);
            ses_json_put_keyn(out, key, n);
            ses_json_put_value(out, ses_json_at(root, i));
        }
        ses_json_member_string(out, KEY, hex);
        ses_json_end_object(out);
    }
    ses_json_free(d);
    return ses_json_writer_save(out, dir, name, overwrite, e);
}

bool ses_json_record_check(const ses_json *record, bool required, ses_err *e)
{
    char hex[24];
    const char *is = ses_json_string(ses_json_get(record, KEY), NULL);
    if (!ses_json_get(record, KEY))
        return !required ||
               ses_fail(e, SES_EFORMAT, "no member \"%s\": damaged, or written by an older version", KEY);
    if (!checksum_of(record, hex, e)) return false;
    return (is && !strcmp(is, hex)) ||
           ses_fail(e, SES_EFORMAT, "damaged: its checksum is not that of its members");
}

ses_json_doc *ses_json_record_load(const char *path, size_t max_bytes, bool required, ses_err *e)
{
    ses_json_doc *d = ses_json_load_object(path, max_bytes, e);
    if (!d || ses_json_record_check(ses_json_root(d), required, e)) return d;
    ses_wrap(e, "%s", path);
    ses_json_free(d);
    return NULL;
}
