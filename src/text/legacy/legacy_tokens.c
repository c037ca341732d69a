/* Added tokens of a legacy folder: tokens of a role, listed tokens, and their ids. */
#include "base/alloc.h"
#include "base/str.h"
#include "legacy.h"

#include <stdlib.h>
#include <string.h>

static ses_legacy_token *find(const ses_legacy_converter *o, ses_string content)
{
    int64_t at;
    return ses_strmap_find(&o->by_name, content.p, content.n, &at) ? &o->token[at] : NULL;
}

/* The first entry for a token determines its flags. */
static bool put(ses_legacy_converter *o, ses_legacy_token t, ses_err *e)
{
    bool fresh;
    if (!t.content.p || !t.content.n) return true;
    ses_legacy_token *there = find(o, t.content);
    if (there) {
        if (there->id < 0) there->id = t.id;
        there->special |= t.special;
        return true;
    }
    if (!ses_array_reserve(&o->token, &o->cap_tokens, o->n_tokens + 1, sizeof *o->token, e)) return false;
    t.content.p = ses_arena_strndup(&o->mem, t.content.p, t.content.n, e);
    if (!t.content.p ||
        !ses_strmap_insert(&o->by_name, t.content.p, t.content.n, (int64_t)o->n_tokens, &fresh, e))
        return false;
    o->token[o->n_tokens++] = t;
    return true;
}

/* A token written as a string or an object; missing flags are taken from t. */
static bool put_value(ses_legacy_converter *o, const ses_json *v, ses_legacy_token t, ses_err *e)
{
    if (ses_json_type_of(v) == SES_JSON_OBJECT) {
        ses_json_bool(ses_json_get(v, "lstrip"), &t.lstrip);
        ses_json_bool(ses_json_get(v, "rstrip"), &t.rstrip);
        ses_json_bool(ses_json_get(v, "single_word"), &t.single_word);
        ses_json_bool(ses_json_get(v, "normalized"), &t.normalized);
        ses_json_bool(ses_json_get(v, "special"), &t.special);
        v = ses_json_get(v, "content");
    }
    t.content.p = ses_json_string(v, &t.content.n);
    return put(o, t, e);
}

bool ses_legacy_add_role(ses_legacy_converter *o, const char *role, const char *def, bool lstrip, ses_err *e)
{
    const ses_json *v = ses_json_get(o->special, role);
    if (!v) v = ses_json_get(o->settings, role);
    ses_legacy_token t = { .lstrip = lstrip, .special = true, .id = -1 };
    if (v && ses_json_type_of(v) != SES_JSON_NULL) {
        if (ses_json_type_of(v) == SES_JSON_OBJECT) t.lstrip = false;
        return put_value(o, v, t, e);
    }
    if (v || !def) return true;
    t.content = (ses_string){ def, strlen(def) };
    return put(o, t, e);
}

bool ses_legacy_add(ses_legacy_converter *o, ses_string content, bool lstrip, bool special, ses_err *e)
{
    return put(o, (ses_legacy_token){ .content = content, .lstrip = lstrip, .special = special, .id = -1 },
               e);
}

bool ses_legacy_add_special(ses_legacy_converter *o, const char *words, ses_err *e)
{
    for (const char *t = words; t && *(t += strspn(t, " ")); t += strcspn(t, " "))
        if (!ses_legacy_add(o, (ses_string){ t, strcspn(t, " ") }, false, true, e)) return false;
    return true;
}

static bool add_list(ses_legacy_converter *o, const ses_json *list, ses_err *e)
{
    for (size_t i = 0; i < ses_json_len(list); i++)
        if (!put_value(o, ses_json_at(list, i), (ses_legacy_token){ .special = true, .id = -1 }, e))
            return false;
    return true;
}

/* {"32000": {"content": ...}, ...} */
static bool add_decoder(ses_legacy_converter *o, const ses_json *list, ses_err *e)
{
    for (size_t i = 0; i < ses_json_len(list); i++) {
        size_t n;
        const char *key = ses_json_key(list, i, &n);
        int64_t id = 0;
        for (size_t k = 0; k < n && id < INT32_MAX; k++) {
            if (key[k] < '0' || key[k] > '9')
                return ses_fail(e, SES_EFORMAT, "added_tokens_decoder: \"%s\" is not an id", key);
            id = id * 10 + (key[k] - '0');
        }
        if (!n || id >= INT32_MAX)
            return ses_fail(e, SES_EFORMAT, "added_tokens_decoder: \"%s\" is not an id", key);
        if (!put_value(o, ses_json_at(list, i), (ses_legacy_token){ .id = id }, e)) return false;
    }
    return true;
}

bool ses_legacy_add_listed(ses_legacy_converter *o, ses_err *e)
{
    if (!add_decoder(o, ses_json_get(o->settings, "added_tokens_decoder"), e) ||
        !add_list(o, ses_json_get(o->special, "additional_special_tokens"), e) ||
        !add_list(o, ses_json_get(o->settings, "additional_special_tokens"), e) ||
        !add_list(o, ses_json_get(o->settings, "extra_special_tokens"), e))
        return false;
    for (size_t i = 0; i < ses_json_len(o->added); i++) {
        ses_legacy_token t = { .normalized = true };
        t.content.p = ses_json_key(o->added, i, &t.content.n);
        if (!ses_json_int(ses_json_at(o->added, i), &t.id) || t.id < 0 || t.id >= INT32_MAX)
            return ses_fail(e, SES_EFORMAT, "added_tokens.json: \"%s\": an id must be a non-negative integer",
                            ses_quoted_of(t.content.p, t.content.n).s);
        if (!put(o, t, e)) return false;
    }
    return true;
}

int64_t ses_legacy_token_id(const ses_legacy_converter *o, ses_string token)
{
    const ses_legacy_token *t = find(o, token);
    return t && t->id >= 0 ? t->id : ses_vocab_id(&o->vocab, token.p, token.n);
}

static int by_id(const void *a, const void *b)
{
    const ses_legacy_token *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static void write_token(ses_json_writer *w, const ses_legacy_token *t)
{
    ses_json_begin_object(w);
    ses_json_member_int(w, "id", t->id);
    ses_json_member_stringn(w, "content", t->content.p, t->content.n);
    ses_json_member_bool(w, "single_word", t->single_word);
    ses_json_member_bool(w, "lstrip", t->lstrip);
    ses_json_member_bool(w, "rstrip", t->rstrip);
    ses_json_member_bool(w, "normalized", t->normalized);
    ses_json_member_bool(w, "special", t->special);
    ses_json_end_object(w);
}

bool ses_legacy_write_tokens(ses_legacy_converter *o, ses_err *e)
{
    int64_t next = o->vocab.size;
    for (size_t i = 0; i < o->n_tokens; i++) {
        ses_legacy_token *t = &o->token[i];
        int32_t known = ses_vocab_id(&o->vocab, t->content.p, t->content.n);
        if (known >= 0) t->id = known;
        if (t->id >= next) next = t->id + 1;
    }
    for (size_t i = 0; i < o->n_tokens; i++)
        if (o->token[i].id < 0) o->token[i].id = next++;
    if (o->n_tokens) qsort(o->token, o->n_tokens, sizeof *o->token, by_id);
    for (size_t i = 0; i < o->n_tokens; i++) {
        bool fresh;
        int64_t *at =
            ses_strmap_insert(&o->by_name, o->token[i].content.p, o->token[i].content.n, 0, &fresh, e);
        if (!at) return false;
        *at = (int64_t)i;
    }
    ses_json_member_array(o->w, "added_tokens");
    for (size_t i = 0; i < o->n_tokens; i++) write_token(o->w, &o->token[i]);
    ses_json_end_array(o->w);
    return true;
}
