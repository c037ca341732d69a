/* Members of a JSON object being written: key and value in one call. */
#include "sesame/json.h"

#include <string.h>

void ses_json_member_string(ses_json_writer *w, const char *key, const char *value)
{
    ses_json_put_key(w, key);
    ses_json_put_string(w, value);
}

void ses_json_member_stringn(ses_json_writer *w, const char *key, const char *value, size_t n)
{
    ses_json_put_key(w, key);
    ses_json_put_stringn(w, value, n);
}

void ses_json_member_int(ses_json_writer *w, const char *key, int64_t value)
{
    ses_json_put_key(w, key);
    ses_json_put_int(w, value);
}

void ses_json_member_uint(ses_json_writer *w, const char *key, uint64_t value)
{
    ses_json_put_key(w, key);
    ses_json_put_uint(w, value);
}

void ses_json_member_real(ses_json_writer *w, const char *key, double value)
{
    ses_json_put_key(w, key);
    ses_json_put_real(w, value);
}

void ses_json_member_bool(ses_json_writer *w, const char *key, bool value)
{
    ses_json_put_key(w, key);
    ses_json_put_bool(w, value);
}

void ses_json_member_array(ses_json_writer *w, const char *key)
{
    ses_json_put_key(w, key);
    ses_json_begin_array(w);
}

void ses_json_member_object(ses_json_writer *w, const char *key)
{
    ses_json_put_key(w, key);
    ses_json_begin_object(w);
}

void ses_json_member_list(ses_json_writer *w, const char *key, const char *list)
{
    ses_json_member_array(w, key);
    while (*list) {
        const char *end = strstr(list, ", ");
        size_t n = end ? (size_t)(end - list) : strlen(list);
        ses_json_put_stringn(w, list, n);
        list += end ? n + 2 : n;
    }
    ses_json_end_array(w);
}
