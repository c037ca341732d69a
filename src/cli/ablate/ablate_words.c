/* Options of a recipe as arguments of commands, checked by the commands' own tables. */
#include "ablate.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/number.h"
#include "base/suggest.h"
#include "cli/model_args.h"

#include <inttypes.h>
#include <string.h>

/* Set by this command for every job. */
static const char *const OWN = "output|resume|overwrite|json|seeds|grid|search|trials|eta";
/* Options whose values are files that must exist. */
static const char *const FILES = "corpus|train|eval|unlabeled|patterns|relations|candidates|vectors|adapt|"
                                 "first";

const char *ses_ablate_text(ses_ablate *s, const ses_json *v, ses_err *e)
{
    char number[SES_NUMBER_CHARS];
    double x;
    int64_t n;
    const char *text = ses_json_string(v, NULL);
    if (text) return text;
    if (ses_json_int(v, &n))
        snprintf(number, sizeof number, "%" PRId64, n);
    else if (ses_json_real(v, &x))
        ses_format_double(x, number);
    else {
        ses_fail(e, SES_EFORMAT, "a value is %s; expected a string, a number or true",
                 ses_json_type_name(ses_json_type_of(v)));
        return NULL;
    }
    return ses_arena_strndup(&s->mem, number, strlen(number), e);
}

bool ses_ablate_add_word(ses_ablate *s, ses_ablate_argv *w, const char *a, const char *b, ses_err *e)
{
    ses_buf x = { 0 };
    if (w->n + 1 >= w->cap) { /* one more for the NULL */
        size_t cap = w->cap ? 2 * w->cap : 32;
        char **more = ses_arena_array(&s->mem, cap, sizeof *more, e);
        if (!more) return false;
        if (w->n) memcpy(more, w->word, w->n * sizeof *more);
        w->word = more;
        w->cap = cap;
    }
    ses_buf_appendf(&x, "%s%s", a, b);
    bool ok = ses_buf_ok(&x, e);
    w->word[w->n] = ok ? ses_arena_strndup(&s->mem, x.data ? x.data : "", x.len, e) : NULL;
    ses_buf_free(&x);
    if (!w->word[w->n]) return false;
    w->word[++w->n] = NULL;
    return true;
}

/* ---- one option ---- */

static bool find(const ses_command *c, const char *key, ses_opt *out, ses_err *e)
{
    const ses_opt *o;
    const char *value = NULL;
    ses_suggestion near = { .word = key };
    if (ses_list_has(OWN, key)) return ses_fail(e, SES_EFORMAT, "\"%s\" is set by sesame ablate itself", key);
    for (ses_opt_iter it = ses_opt_begin(c->opt, c->n_opt); (o = ses_opt_next(&it));) {
        *out = *o;
        if (ses_opt_match(o, key, strlen(key), &value)) return true;
        if (!ses_list_has(OWN, o->name)) ses_suggest_offer(&near, o->name, strlen(o->name));
    }
    ses_fail(e, SES_EFORMAT, "sesame %s has no option \"%s\"", c->name, ses_quoted_of(key, strlen(key)).s);
    return ses_suggest_add(&near, "", e);
}

/* A file, or for a corpus FILE:WEIGHT. */
static bool check_file(const ses_opt *o, const char *value, ses_err *e)
{
    char *path = ses_strdup(value, e), *colon = path ? strrchr(path, ':') : NULL;
    bool ok = path && ses_path_exists(path);
    if (path && !ok && colon && o->type == SES_OPT_IS_LIST) *colon = 0, ok = ses_path_exists(path);
    if (path && !ok) ses_fail(e, SES_EIO, "\"%s\": %s: no such file", o->name, path);
    ses_free(path);
    return ok;
}

static bool add_value(ses_ablate *s, ses_ablate_argv *w, const ses_opt *o, const char *key, const ses_json *v,
                      ses_err *e)
{
    const char *text = ses_ablate_text(s, v, e);
    if (!text) return ses_wrap(e, "\"%s\"", key);
    if (o->type == SES_OPT_IS_FLAG) { /* "true" and "false" of --set */
        bool on = !strcmp(text, "true");
        if (!on && strcmp(text, "false") != 0)
            return ses_fail(e, SES_EFORMAT, "\"%s\" is a flag: expected true or false", key);
        return !on || ses_ablate_add_word(s, w, "--", key, e);
    }
    char name[80];
    snprintf(name, sizeof name, "--%.60s=", key);
    return (!ses_list_has(FILES, o->name) || check_file(o, text, e)) &&
           ses_ablate_add_word(s, w, name, text, e); /* one word: a value may begin with '-' */
}

/* "key": value becomes --key=value; true: --key; an array: --key=element once per element. */
static bool add_option(ses_ablate *s, ses_ablate_argv *w, const ses_opt *o, const char *key,
                       const ses_json *v, ses_err *e)
{
    bool flag;
    if (ses_json_type_of(v) == SES_JSON_NULL) return true;
    if (ses_json_bool(v, &flag)) return !flag || ses_ablate_add_word(s, w, "--", key, e);
    if (ses_json_type_of(v) != SES_JSON_ARRAY) return add_value(s, w, o, key, v, e);
    for (size_t i = 0; i < ses_json_len(v); i++)
        if (!add_value(s, w, o, key, ses_json_at(v, i), e)) return false;
    return true;
}

/* Whether a later layer has the option, and replaces it. */
static bool is_replaced(const ses_ablate_layer *layer, size_t i, size_t n, const ses_opt *o, const char *key)
{
    for (size_t k = i + 1; k < n; k++) {
        const ses_json *v = ses_json_get(layer[k].object, key);
        if (v && (o->type != SES_OPT_IS_LIST || ses_json_type_of(v) == SES_JSON_NULL)) return true;
    }
    return false;
}

bool ses_ablate_add_options(ses_ablate *s, ses_ablate_argv *w, const ses_command *c,
                            const ses_ablate_layer *layer, size_t n, ses_err *e)
{
    ses_opt o;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < ses_json_len(layer[i].object); k++) {
            const char *key = ses_json_key(layer[i].object, k, NULL);
            if (layer[i].reserved && ses_list_has(layer[i].reserved, key)) continue;
            const ses_json *v = ses_json_at(layer[i].object, k);
            if (layer[i].at) v = ses_json_at(v, layer[i].at[k]);
            if (!find(c, key, &o, e) ||
                (!is_replaced(layer, i, n, &o, key) && !add_option(s, w, &o, key, v, e)))
                return ses_wrap(e, "%s", layer[i].where);
        }
    return true;
}

/* ---- all options of a job ---- */

/* Models and tokenizers, after names have become folders. */
static bool check_models(const ses_command *c, const void *args, ses_err *e)
{
    const ses_opt *o;
    for (ses_opt_iter it = ses_opt_begin(c->opt, c->n_opt); (o = ses_opt_next(&it));) {
        const char *path = o->is_model && o->type == SES_OPT_IS_TEXT
                               ? *(const char *const *)((const char *)args + o->offset)
                               : NULL;
        if (path && !ses_path_exists(path))
            return ses_fail(e, SES_EIO, "\"%s\": %s: no such file or folder", o->name, path);
    }
    return true;
}

bool ses_ablate_check_words(const ses_command *c, const ses_ablate_argv *w, ses_ablate_check_fn *check,
                            void *ctx, ses_err *e)
{
    int n_operands = 0;
    void *args = ses_alloc(c->args_size, e);
    char **words = args ? ses_alloc_array(w->n + 1, sizeof *words, e) : NULL;
    char *own[SES_MAX_MODEL_ARGS] = { 0 }, *none[] = { NULL };
    ses_opt_group g = { c->opt, c->n_opt, args };
    bool ok = words != NULL;
    if (ok && w->n) memcpy(words, w->word, w->n * sizeof *words);
    ok = ok && ses_options_parse(&g, 1, words, false, &n_operands, e) &&
         ses_options_check_required(&g, 1, e) && ses_model_args_resolve(c, args, none, own, e) &&
         check_models(c, args, e) && (!check || check(ctx, args, e));
    if (args) ses_options_free(&g, 1);
    for (size_t i = 0; i < SES_LEN(own); i++) ses_free(own[i]);
    ses_free(words);
    ses_free(args);
    return ok;
}
