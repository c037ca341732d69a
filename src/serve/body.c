/* Reads members of request bodies. */
#include "body.h"

#include "base/str.h"

#include <math.h>
#include <string.h>

const ses_json *ses_body_get(const ses_json *object, const char *key)
{
    const ses_json *v = ses_json_get(object, key);
    return v && ses_json_type_of(v) != SES_JSON_NULL ? v : NULL;
}

bool ses_body_wrong_type(ses_job *j, const char *key, const ses_json *v, const char *expected)
{
    return ses_api_fail(&j->error, SES_API_VALIDATION, key, "\"%s\" must be %s, not %s", key, expected,
                        ses_json_type_name(ses_json_type_of(v)));
}

bool ses_body_missing(ses_job *j, const char *key)
{
    return ses_api_fail(&j->error, SES_API_VALIDATION, key, "\"%s\" is missing", key);
}

ses_string ses_body_text(const ses_json *v)
{
    ses_string s = { 0 };
    s.p = ses_json_string(v, &s.n);
    return s;
}

/* For names and options: a NUL inside would hide what follows. */
bool ses_body_string(ses_job *j, const ses_json *object, const char *key, const char **out)
{
    const ses_json *v = ses_body_get(object, key);
    if (!v) return true;
    ses_string s = ses_body_text(v);
    if (!s.p) return ses_body_wrong_type(j, key, v, "a string");
    if (strlen(s.p) != s.n)
        return ses_api_fail(&j->error, SES_API_VALIDATION, key, "\"%s\" contains a NUL character", key);
    *out = s.p;
    return true;
}

bool ses_body_bool(ses_job *j, const ses_json *object, const char *key, bool *out)
{
    const ses_json *v = ses_body_get(object, key);
    return !v || ses_json_bool(v, out) || ses_body_wrong_type(j, key, v, "true or false");
}

bool ses_body_object(ses_job *j, const ses_json *object, const char *key, const ses_json **out)
{
    const ses_json *v = ses_body_get(object, key);
    *out = v;
    return !v || ses_json_type_of(v) == SES_JSON_OBJECT || ses_body_wrong_type(j, key, v, "an object");
}

/* 5.0 is an integer in JSON Schema, as in JavaScript. */
bool ses_body_whole(const ses_json *v, int64_t *out)
{
    double x;
    if (ses_json_int(v, out)) return true;
    if (!ses_json_real(v, &x) || !(fabs(x) < 0x1p63) || x != trunc(x)) return false;
    *out = (int64_t)x;
    return true;
}

bool ses_body_int(ses_job *j, const ses_json *object, const char *key, int64_t min, int64_t max, int64_t *out)
{
    const ses_json *v = ses_body_get(object, key);
    int64_t x;
    if (!v) return true;
    if (!ses_body_whole(v, &x)) return ses_body_wrong_type(j, key, v, "an integer");
    if (x < min || x > max)
        return ses_api_fail(&j->error, SES_API_VALIDATION, key, "\"%s\" must be from %lld to %lld", key,
                            (long long)min, (long long)max);
    *out = x;
    return true;
}

bool ses_body_real(ses_job *j, const ses_json *object, const char *key, double min, double max, double *out)
{
    const ses_json *v = ses_body_get(object, key);
    double x;
    if (!v) return true;
    if (!ses_json_real(v, &x)) return ses_body_wrong_type(j, key, v, "a number");
    if (!(x >= min && x <= max))
        return ses_api_fail(&j->error, SES_API_VALIDATION, key, "\"%s\" must be from %g to %g", key, min,
                            max);
    *out = x;
    return true;
}

bool ses_body_choice(ses_job *j, const ses_json *object, const char *key, const char *choices, int *out)
{
    const char *s = NULL, *word;
    size_t n;
    if (!ses_body_string(j, object, key, &s)) return false;
    if (!s) return true;
    for (size_t i = 0; ses_list_at(choices, i, &word, &n); i++)
        if (strlen(s) == n && !memcmp(s, word, n)) {
            *out = (int)i;
            return true;
        }
    ses_buf list = { 0 };
    for (size_t i = 0; ses_list_at(choices, i, &word, &n); i++)
        ses_buf_appendf(&list, "%s\"%.*s\"", i ? ", " : "", (int)n, word);
    ses_api_fail(&j->error, SES_API_VALIDATION, key, "\"%s\" must be one of %s", key,
                 list.data ? list.data : choices);
    ses_buf_free(&list);
    return false;
}

bool ses_body_either(ses_job *j, const char *a, const char *b, const char **key)
{
    bool has_a = ses_body_get(j->body, a), has_b = ses_body_get(j->body, b);
    *key = has_b && !has_a ? b : a;
    return !has_a || !has_b ||
           ses_api_fail(&j->error, SES_API_VALIDATION, a, "\"%s\" and \"%s\" exclude each other", a, b);
}

bool ses_body_texts(ses_job *j, const ses_json *v, const char *key, ses_string **list, size_t *n,
                    bool may_be_empty)
{
    if (!v) return ses_body_missing(j, key);
    bool array = ses_json_type_of(v) == SES_JSON_ARRAY;
    *n = array ? ses_json_len(v) : 1;
    if (!*n) return ses_api_fail(&j->error, SES_API_EMPTY, key, "\"%s\" is empty", key);
    *list = ses_job_alloc(j, *n, sizeof **list);
    for (size_t i = 0; *list && i < *n; i++) {
        const ses_json *at = array ? ses_json_at(v, i) : v;
        (*list)[i] = ses_body_text(at);
        if (!(*list)[i].p)
            return array ? ses_api_fail(&j->error, SES_API_VALIDATION, key,
                                        "\"%s\": element %zu must be a string, not %s", key, i,
                                        ses_json_type_name(ses_json_type_of(at)))
                         : ses_body_wrong_type(j, key, v, "a string or a list of strings");
        if (!(*list)[i].n && !may_be_empty)
            return array ? ses_api_fail(&j->error, SES_API_EMPTY, key, "\"%s\": element %zu is empty", key, i)
                         : ses_api_fail(&j->error, SES_API_EMPTY, key, "\"%s\" is empty", key);
    }
    return *list != NULL;
}

/* ---- settings ---- */

bool ses_settings_begin(ses_job *j, ses_body_settings *s, size_t max)
{
    *s = (ses_body_settings){ .capacity = max };
    s->pipeline = ses_job_alloc(j, max + 1, sizeof *s->pipeline);
    s->item = ses_job_alloc(j, max + 1, sizeof *s->item);
    return s->pipeline && s->item;
}

void ses_settings_add(ses_body_settings *s, const ses_task *t, const char *name, const char *value)
{
    char option[64];
    size_t n = 0;
    for (; name[n] && n + 1 < sizeof option; n++) option[n] = name[n] == '_' ? '-' : name[n];
    option[n] = 0;
    ses_setting x = { name, value };
    if (ses_task_allows_item_setting(t, option)) {
        if (s->n_item < s->capacity) s->item[s->n_item++] = x;
    } else if (s->n_pipeline < s->capacity) {
        s->pipeline[s->n_pipeline++] = x;
    }
}

static bool append_value(ses_buf *b, const ses_json *v)
{
    bool flag;
    int64_t i;
    double x;
    ses_string s = ses_body_text(v);
    if (s.p) return !memchr(s.p, 0, s.n) && ses_buf_append(b, s.p, s.n);
    if (ses_json_bool(v, &flag)) return ses_buf_puts(b, flag ? "true" : "false");
    if (ses_json_int(v, &i)) return ses_buf_appendf(b, "%lld", (long long)i);
    return ses_json_real(v, &x) && ses_buf_appendf(b, "%.17g", x);
}

const char *ses_body_value_text(ses_job *j, const char *name, const ses_json *v)
{
    ses_buf b = { 0 };
    bool ok = true;
    if (ses_json_type_of(v) == SES_JSON_ARRAY)
        for (size_t i = 0; ok && i < ses_json_len(v); i++)
            ok = (!i || ses_buf_put(&b, ',')) && append_value(&b, ses_json_at(v, i));
    else
        ok = append_value(&b, v);
    if (!ok)
        ses_api_fail(&j->error, SES_API_VALIDATION, "parameters",
                     "parameter \"%s\" must be a text, a number or a list of them",
                     ses_quoted_of(name, strlen(name)).s);
    ses_string value = ok ? ses_job_copy(j, b.data ? b.data : "", b.len) : (ses_string){ 0 };
    ses_buf_free(&b);
    return value.p;
}

static bool fail_file(ses_job *j, const char *name)
{
    return ses_api_fail(&j->error, SES_API_VALIDATION, "parameters",
                        "parameter \"%s\" is a file: requests cannot read files of the server",
                        ses_quoted_of(name, strlen(name)).s);
}

/* The JSON type suits the option: a number is not given as a list, a flag not as a text. */
static bool fits(const ses_opt *o, const ses_json *v)
{
    ses_string s = ses_body_text(v);
    int64_t i;
    double x;
    bool flag;
    switch (o->type) {
    case SES_OPT_IS_FLAG: return ses_json_bool(v, &flag);
    case SES_OPT_IS_INT:
        return s.p ? o->zero_word && ses_equal(s.p, s.n, o->zero_word) : ses_body_whole(v, &i);
    case SES_OPT_IS_REAL: return ses_json_real(v, &x);
    case SES_OPT_IS_CHOICE: return s.p || ses_json_bool(v, &flag);
    default: return true;
    }
}

static const char *type_of(const ses_opt *o)
{
    switch (o->type) {
    case SES_OPT_IS_FLAG: return "true or false";
    case SES_OPT_IS_INT: return "an integer";
    case SES_OPT_IS_REAL: return "a number";
    default: return "a text";
    }
}

static bool fail_choice(ses_job *j, const ses_opt *o, const char *name, const ses_json *v)
{
    const char *word;
    size_t n;
    ses_buf list = { 0 };
    for (size_t i = 0; ses_list_at(o->choices, i, &word, &n); i++)
        ses_buf_appendf(&list, "%s%.*s", i ? ", " : "", (int)n, word);
    ses_api_fail(&j->error, SES_API_VALIDATION, "parameters", "parameter \"%s\" must be one of %s, not %s",
                 ses_quoted_of(name, strlen(name)).s, list.data ? list.data : o->choices,
                 ses_json_type_name(ses_json_type_of(v)));
    ses_buf_free(&list);
    return false;
}

static bool check_type(ses_job *j, const ses_opt *o, const char *name, const ses_json *v)
{
    bool word = o->type == SES_OPT_IS_INT && o->zero_word;
    if (o->type == SES_OPT_IS_CHOICE && !fits(o, v)) return fail_choice(j, o, name, v);
    return fits(o, v) ||
           ses_api_fail(&j->error, SES_API_VALIDATION, "parameters",
                        "parameter \"%s\" must be %s%s%s%s, not %s", ses_quoted_of(name, strlen(name)).s,
                        type_of(o), word ? " or \"" : "", word ? o->zero_word : "", word ? "\"" : "",
                        ses_json_type_name(ses_json_type_of(v)));
}

/* The option accepts the value: an error of the request, not of each of its inputs. */
static bool check_value(ses_job *j, const ses_task *t, const ses_opt *o, const char *name, const char *value)
{
    ses_err e = { 0 };
    if (o->type == SES_OPT_IS_LIST || o->type == SES_OPT_IS_TEXT) return true;
    void *scratch = ses_job_alloc(j, 1, t->args_size);
    return scratch && (ses_opt_set(o, scratch, name, value, &e) ||
                       ses_api_fail_with(&j->error, SES_API_VALIDATION, "parameters", &e));
}

bool ses_settings_add_json(ses_job *j, ses_body_settings *s, const ses_task *t, const char *name,
                           const ses_json *v)
{
    ses_opt o;
    bool known = ses_opt_find(t->opt, t->n_opt, name, "", &o, NULL);
    if (ses_task_setting_is_file(t, name)) return fail_file(j, name);
    if (known && !check_type(j, &o, name, v)) return false;
    const char *value = ses_body_value_text(j, name, v);
    if (!value || (known && !check_value(j, t, &o, name, value))) return false;
    ses_settings_add(s, t, name, value);
    return true;
}

/* The option of a parameter, which may be spelled with underscores; NULL: none. */
static const ses_opt *find_option(ses_opt_iter *it, const char *name)
{
    char dashed[64];
    const ses_opt *o;
    const char *flag;
    size_t n = strlen(name);
    if (n >= sizeof dashed) return NULL;
    for (size_t i = 0; i < n; i++) dashed[i] = name[i] == '_' ? '-' : name[i];
    while ((o = ses_opt_next(it))) {
        ses_opt_spelling s = ses_opt_match(o, dashed, n, &flag);
        if (s == SES_OPT_BY_NAME || s == SES_OPT_BY_ALIAS) return o;
    }
    return NULL;
}

bool ses_body_options(ses_job *j, const ses_json *object, const ses_opt *opt, size_t n, void *args)
{
    ses_err e = { 0 };
    for (size_t i = 0; i < ses_json_len(object); i++) {
        const char *name = ses_json_key(object, i, NULL);
        const ses_json *v = ses_json_at(object, i);
        if (ses_json_type_of(v) == SES_JSON_NULL) continue; /* absent */
        ses_opt_iter it = ses_opt_begin(opt, n);
        const ses_opt *o = find_option(&it, name);
        if (!o)
            return ses_api_fail(&j->error, SES_API_VALIDATION, "parameters", "unknown parameter \"%s\"",
                                ses_quoted_of(name, strlen(name)).s);
        if (o->is_model || o->is_path) return fail_file(j, name);
        const char *value = check_type(j, o, name, v) ? ses_body_value_text(j, name, v) : NULL;
        if (!value) return false;
        if (!ses_opt_set(o, args, o->name, value, &e))
            return ses_api_fail_with(&j->error, SES_API_VALIDATION, "parameters", &e);
    }
    return true;
}
