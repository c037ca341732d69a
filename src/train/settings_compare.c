/* Comparison of settings: see settings_compare.h. */
#include "settings_compare.h"

#include <stdio.h>
#include <string.h>

/* Settings that are written only if they differ from these values. */
static void put_default(const char *key, ses_json_writer *w)
{
    if (!strcmp(key, "lanes"))
        ses_json_put_int(w, 1);
    else if (!strcmp(key, "loss_mean"))
        ses_json_put_string(w, "batches");
    else if (!strcmp(key, "gradients"))
        ses_json_put_string(w, "f32");
    else
        ses_json_put_null(w);
}

/* The text of a setting; x NULL: it is absent. *equal: it is the same as `other`. */
static bool write_text(const char *key, const ses_json *x, char *out, size_t size, const ses_json *other,
                       bool *equal, ses_err *e)
{
    ses_json_writer *a = ses_json_writer_new(0, e), *b = a ? ses_json_writer_new(0, e) : NULL;
    if (b) x ? ses_json_put_value(a, x) : put_default(key, a);
    if (b) other ? ses_json_put_value(b, other) : put_default(key, b);
    const char *s = b ? ses_json_writer_text(a, NULL, e) : NULL,
               *t = s ? ses_json_writer_text(b, NULL, e) : NULL;
    if (t) snprintf(out, size, "%s", s);
    *equal = t && !strcmp(s, t);
    ses_json_writer_free(a);
    ses_json_writer_free(b);
    return t != NULL;
}

static bool compare_one(const char *key, const ses_json *a, const ses_json *b, ses_setting_difference *out,
                        ses_err *e)
{
    bool equal;
    if (!write_text(key, a, out->a, sizeof out->a, b, &equal, e) ||
        !write_text(key, b, out->b, sizeof out->b, a, &equal, e))
        return false;
    if (!equal) out->key = key;
    return true;
}

bool ses_settings_compare(const ses_json *a, const ses_json *b, ses_setting_difference *out, ses_err *e)
{
    bool ok = true;
    *out = (ses_setting_difference){ 0 };
    for (size_t i = 0; ok && !out->key && i < ses_json_len(b); i++) {
        const char *key = ses_json_key(b, i, NULL);
        ok = compare_one(key, ses_json_get(a, key), ses_json_at(b, i), out, e);
    }
    for (size_t i = 0; ok && !out->key && i < ses_json_len(a); i++) {
        const char *key = ses_json_key(a, i, NULL);
        if (!ses_json_get(b, key)) ok = compare_one(key, ses_json_at(a, i), NULL, out, e);
    }
    return ok;
}
