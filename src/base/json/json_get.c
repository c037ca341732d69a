/* Accessors of parsed JSON: members, elements, values, lists of strings. */
#include "base/alloc.h"
#include "json_helpers.h"
#include "json_impl.h"

const ses_json *ses_json_root(const ses_json_doc *d) { return d ? d->node : NULL; }

ses_json_type ses_json_type_of(const ses_json *v) { return v ? (ses_json_type)v->type : SES_JSON_NULL; }

const char *ses_json_type_name(ses_json_type t)
{
    switch (t) {
    case SES_JSON_NULL: return "null";
    case SES_JSON_BOOL: return "a boolean";
    case SES_JSON_INT:
    case SES_JSON_UINT: return "an integer";
    case SES_JSON_REAL: return "a number";
    case SES_JSON_STRING: return "a string";
    case SES_JSON_ARRAY: return "an array";
    case SES_JSON_OBJECT: return "an object";
    }
    return "?";
}

const ses_json *ses_json_get(const ses_json *object, const char *key)
{
    if (ses_json_type_of(object) != SES_JSON_OBJECT) return NULL;
    size_t n = strlen(key);
    const ses_json *kid = object->kid;
    if (object->len <= SES_JSON_LINEAR) {
        for (size_t i = 0; i < object->len; i++)
            if (ses_json_same(kid + 2 * i, key, n)) return kid + 2 * i + 1;
        return NULL;
    }
    const ses_json_lookup *t = kid[-1].lookup;
    uint64_t hash = ses_hash(t->key, key, n);
    uint32_t tag = ses_json_tag(hash);
    for (size_t at = hash & t->mask; t->slot[at]; at = (at + 1) & t->mask) {
        const ses_json *k = kid + 2 * (size_t)((t->slot[at] & SES_JSON_SLOT) - 1);
        if ((t->slot[at] & ~(uint32_t)SES_JSON_SLOT) == tag && ses_json_same(k, key, n)) return k + 1;
    }
    return NULL;
}

size_t ses_json_len(const ses_json *v)
{
    ses_json_type t = ses_json_type_of(v);
    return t == SES_JSON_ARRAY || t == SES_JSON_OBJECT ? v->len : 0;
}

const ses_json *ses_json_at(const ses_json *v, size_t i)
{
    if (i >= ses_json_len(v)) return NULL;
    return v->type == SES_JSON_ARRAY ? v->kid + i : v->kid + 2 * i + 1;
}

const char *ses_json_key(const ses_json *object, size_t i, size_t *len)
{
    if (ses_json_type_of(object) != SES_JSON_OBJECT || i >= object->len) return NULL;
    return ses_json_string(object->kid + 2 * i, len);
}

bool ses_json_bool(const ses_json *v, bool *out)
{
    if (ses_json_type_of(v) != SES_JSON_BOOL) return false;
    *out = v->b;
    return true;
}

bool ses_json_int(const ses_json *v, int64_t *out)
{
    if (ses_json_type_of(v) != SES_JSON_INT) return false;
    *out = v->i;
    return true;
}

bool ses_json_uint(const ses_json *v, uint64_t *out)
{
    ses_json_type t = ses_json_type_of(v);
    if (t != SES_JSON_UINT && (t != SES_JSON_INT || v->i < 0)) return false;
    *out = v->u;
    return true;
}

bool ses_json_real(const ses_json *v, double *out)
{
    switch (ses_json_type_of(v)) {
    case SES_JSON_INT: *out = (double)v->i; return true;
    case SES_JSON_UINT: *out = (double)v->u; return true;
    case SES_JSON_REAL: *out = v->d; return true;
    default: return false;
    }
}

const char *ses_json_string(const ses_json *v, size_t *len)
{
    if (ses_json_type_of(v) != SES_JSON_STRING) return NULL;
    if (len) *len = v->len;
    return v->str;
}

size_t ses_json_pos(const ses_json *v) { return v ? v->pos : 0; }

bool ses_json_wrong_type(const char *key, const ses_json *v, const char *expected, ses_err *e)
{
    return ses_fail(e, SES_EFORMAT, "key \"%s\" must be %s, not %s", key, expected,
                    ses_json_type_name(ses_json_type_of(v)));
}

ses_string *ses_json_strings(const ses_json *v, size_t *n, ses_err *e)
{
    if (ses_json_type_of(v) != SES_JSON_ARRAY) {
        ses_fail(e, SES_EFORMAT, "must be an array of strings, not %s",
                 ses_json_type_name(ses_json_type_of(v)));
        return NULL;
    }
    *n = v->len;
    ses_string *list = ses_alloc_array(v->len, sizeof *list, e);
    for (size_t i = 0; list && i < v->len; i++) {
        list[i].p = ses_json_string(v->kid + i, &list[i].n);
        if (list[i].p) continue;
        ses_fail(e, SES_EFORMAT, "element %zu must be a string", i);
        ses_free(list);
        return NULL;
    }
    return list;
}
