/* Parser and writer of pattern files. */
#include "pattern_file.h"

#include "base/alloc.h"
#include "base/json/json_helpers.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

enum { FILE_MAX = 64 << 20 };

/* ---- patterns ---- */

static const struct {
    const char *name;
    ses_piece_kind kind;
} fields[] = { { "text", SES_PIECE_TEXT },
               { "pair", SES_PIECE_PAIR },
               { "mask", SES_PIECE_MASK },
               { "sep", SES_PIECE_SEP } };

/* The field that begins at *at with '{'; moves *at behind its '}'. */
static bool read_field(const char **at, ses_piece_kind *kind, ses_err *e)
{
    const char *end = strchr(*at, '}');
    size_t n = end ? (size_t)(end - *at - 1) : strlen(*at);
    for (size_t i = 0; end && i < SES_LEN(fields); i++)
        if (ses_equal(*at + 1, n, fields[i].name)) return *kind = fields[i].kind, *at = end + 1, true;
    return ses_fail(e, SES_EFORMAT,
                    "\"%s\" is not a field; expected {text}, {pair}, {mask} or {sep}, \"{{\" for a brace",
                    ses_quoted_of(*at, end ? n + 2 : n).s);
}

/* Words up to the next field, with "{{" and "}}" as braces. */
static bool read_words(const char **at, ses_string *out, ses_arena *mem, ses_err *e)
{
    char *to = ses_arena_array(mem, strlen(*at) + 1, 1, e);
    if (!to) return false;
    out->p = to;
    for (; **at; ++*at) {
        if (**at == '{' && (*at)[1] != '{') break;
        if ((**at == '{' || **at == '}') && (*at)[1] == **at) ++*at;
        to[out->n++] = **at;
    }
    return true;
}

static bool check_fields(const ses_cloze_pattern *p, const size_t count[SES_PIECE_SEP + 1], ses_err *e)
{
    (void)p;
    if (count[SES_PIECE_MASK] != 1)
        return ses_fail(e, SES_EFORMAT, "{mask} occurs %zu times; expected once: the model predicts one word",
                        count[SES_PIECE_MASK]);
    if (count[SES_PIECE_TEXT] != 1)
        return ses_fail(e, SES_EFORMAT, "{text} occurs %zu times; expected once", count[SES_PIECE_TEXT]);
    if (count[SES_PIECE_PAIR] > 1)
        return ses_fail(e, SES_EFORMAT, "{pair} occurs %zu times; expected at most once",
                        count[SES_PIECE_PAIR]);
    return count[SES_PIECE_SEP] <= 1 ||
           ses_fail(e, SES_EFORMAT, "{sep} occurs %zu times; expected at most once: a model reads two texts",
                    count[SES_PIECE_SEP]);
}

static bool read_pattern(const ses_json *v, ses_cloze_pattern *p, ses_arena *mem, ses_err *e)
{
    size_t n, count[SES_PIECE_SEP + 1] = { 0 };
    const char *s = ses_json_string(v, &n);
    if (!s)
        return ses_fail(e, SES_EFORMAT, "expected a string, not %s", ses_json_type_name(ses_json_type_of(v)));
    if (strlen(s) != n) return ses_fail(e, SES_EFORMAT, "contains a NUL character");
    const char *at = p->source = ses_arena_strndup(mem, s, n, e);
    p->piece = ses_arena_array(mem, SES_MAX_PATTERN_PIECES, sizeof *p->piece, e);
    if (!at || !p->piece) return false;
    while (*at) {
        if (p->n == SES_MAX_PATTERN_PIECES)
            return ses_fail(e, SES_EFORMAT, "more than %d fields and words", SES_MAX_PATTERN_PIECES);
        ses_pattern_piece *x = &p->piece[p->n++];
        bool field = *at == '{' && at[1] != '{';
        if (field ? !read_field(&at, &x->kind, e) : !read_words(&at, &x->words, mem, e)) return false;
        count[x->kind]++;
    }
    p->has_pair = count[SES_PIECE_PAIR] > 0;
    p->has_sep = count[SES_PIECE_SEP] > 0;
    return check_fields(p, count, e);
}

static bool read_patterns(ses_patterns *p, const ses_json *list, ses_err *e)
{
    if (ses_json_type_of(list) != SES_JSON_ARRAY)
        return ses_json_wrong_type("patterns", list, "an array of strings", e);
    p->n_patterns = ses_json_len(list);
    if (!p->n_patterns || p->n_patterns > SES_MAX_PATTERNS)
        return ses_fail(e, SES_EFORMAT, "\"patterns\" has %zu entries, expected 1 to %d", p->n_patterns,
                        SES_MAX_PATTERNS);
    p->pattern = ses_arena_array(&p->mem, p->n_patterns, sizeof *p->pattern, e);
    bool ok = p->pattern != NULL;
    for (size_t i = 0; ok && i < p->n_patterns; i++)
        ok = read_pattern(ses_json_at(list, i), &p->pattern[i], &p->mem, e) ||
             ses_wrap(e, "pattern %zu", i + 1);
    return ok;
}

/* ---- verbalizers ---- */

static bool read_word(const ses_json *v, const char **out, ses_arena *mem, ses_err *e)
{
    size_t n;
    const char *s = ses_json_string(v, &n);
    if (!s)
        return ses_fail(e, SES_EFORMAT, "expected a word or an array of words, not %s",
                        ses_json_type_name(ses_json_type_of(v)));
    if (!n || strlen(s) != n) return ses_fail(e, SES_EFORMAT, "a word is empty or contains a NUL character");
    *out = ses_arena_strndup(mem, s, n, e);
    return *out != NULL;
}

static bool read_verbalizer(const ses_json *v, ses_verbalizer *x, ses_arena *mem, ses_err *e)
{
    bool list = ses_json_type_of(v) == SES_JSON_ARRAY, ok = true;
    x->n = list ? ses_json_len(v) : 1;
    if (!x->n || x->n > SES_MAX_LABEL_WORDS)
        return ses_fail(e, SES_EFORMAT, "%zu words, expected 1 to %d", x->n, SES_MAX_LABEL_WORDS);
    x->word = ses_arena_array(mem, x->n, sizeof *x->word, e);
    for (size_t i = 0; x->word && ok && i < x->n; i++)
        ok = read_word(list ? ses_json_at(v, i) : v, &x->word[i], mem, e);
    return x->word && ok;
}

static bool read_verbalizers(ses_patterns *p, const ses_json *map, ses_err *e)
{
    if (ses_json_type_of(map) != SES_JSON_OBJECT)
        return ses_json_wrong_type("verbalizers", map, "an object of labels and their words", e);
    p->n_verbalizers = ses_json_len(map);
    if (p->n_verbalizers < 2 || p->n_verbalizers > SES_MAX_VERBALIZERS)
        return ses_fail(e, SES_EFORMAT, "\"verbalizers\" has %zu labels, expected 2 to %d", p->n_verbalizers,
                        SES_MAX_VERBALIZERS);
    p->verbalizer = ses_arena_array(&p->mem, p->n_verbalizers, sizeof *p->verbalizer, e);
    bool ok = p->verbalizer != NULL;
    for (size_t i = 0; ok && i < p->n_verbalizers; i++) {
        size_t n;
        const char *label = ses_json_key(map, i, &n);
        p->verbalizer[i].label = ses_arena_strndup(&p->mem, label, n, e);
        ok = p->verbalizer[i].label && (read_verbalizer(ses_json_at(map, i), &p->verbalizer[i], &p->mem, e) ||
                                        ses_wrap(e, "verbalizer of \"%s\"", ses_quoted_of(label, n).s));
    }
    return ok;
}

/* ---- demonstrations ---- */

static bool read_text(const ses_json *v, const char *key, bool required, ses_string *out, ses_arena *mem,
                      ses_err *e)
{
    size_t n;
    const ses_json *x = ses_json_get(v, key);
    const char *s = ses_json_string(x, &n);
    if (!s && (required || x)) return ses_json_wrong_type(key, x, "a string", e);
    if (!s) return true;
    *out = (ses_string){ ses_arena_strndup(mem, s, n, e), n };
    return out->p != NULL;
}

static bool read_demonstration(const ses_patterns *p, const ses_json *v, ses_demonstration *d, ses_arena *mem,
                               ses_err *e)
{
    ses_string label = { 0 };
    if (!read_text(v, "label", true, &label, mem, e) || !read_text(v, "text", true, &d->text, mem, e) ||
        !read_text(v, "pair", false, &d->pair, mem, e))
        return false;
    for (size_t i = 0; i < p->n_verbalizers; i++)
        if (!strcmp(p->verbalizer[i].label, label.p)) d->label = p->verbalizer[i].label;
    return d->label ||
           ses_fail(e, SES_EFORMAT, "the label \"%s\" has no verbalizer", ses_quoted_of(label.p, label.n).s);
}

static bool read_demonstrations(ses_patterns *p, const ses_json *list, const ses_json *sets, ses_err *e)
{
    p->demonstration_sets = 1;
    if (sets && (!ses_json_int(sets, &p->demonstration_sets) || p->demonstration_sets < 1 ||
                 p->demonstration_sets > SES_MAX_DEMONSTRATION_SETS))
        return ses_fail(e, SES_EFORMAT, "\"demonstration_sets\": expected a number from 1 to %d",
                        SES_MAX_DEMONSTRATION_SETS);
    if (!list) return true;
    if (ses_json_type_of(list) != SES_JSON_ARRAY)
        return ses_json_wrong_type("demonstrations", list, "an array of objects", e);
    size_t n = ses_json_len(list);
    if (n > SES_MAX_DEMONSTRATIONS)
        return ses_fail(e, SES_EFORMAT, "\"demonstrations\" has %zu entries, expected at most %d", n,
                        SES_MAX_DEMONSTRATIONS);
    p->demonstration = ses_arena_array(&p->mem, n + 1, sizeof *p->demonstration, e);
    bool ok = p->demonstration != NULL;
    for (; ok && p->n_demonstrations < n; p->n_demonstrations += ok)
        ok = read_demonstration(p, ses_json_at(list, p->n_demonstrations),
                                &p->demonstration[p->n_demonstrations], &p->mem, e) ||
             ses_wrap(e, "demonstration %zu", p->n_demonstrations + 1);
    return ok;
}

/* ---- files ---- */

static ses_patterns *from_json(const ses_json *root, ses_err *e)
{
    ses_patterns *p = ses_alloc(sizeof *p, e);
    if (!p) return NULL;
    if (ses_json_type_of(root) != SES_JSON_OBJECT)
        ses_fail(e, SES_EFORMAT, "expected an object with \"patterns\" and \"verbalizers\"");
    else if (read_patterns(p, ses_json_get(root, "patterns"), e) &&
             read_verbalizers(p, ses_json_get(root, "verbalizers"), e) &&
             read_demonstrations(p, ses_json_get(root, "demonstrations"),
                                 ses_json_get(root, "demonstration_sets"), e))
        return p;
    ses_patterns_free(p);
    return NULL;
}

ses_patterns *ses_patterns_parse(const char *text, size_t n, ses_err *e)
{
    ses_json_doc *d = ses_json_parse(text, n, e);
    ses_patterns *p = d ? from_json(ses_json_root(d), e) : NULL;
    ses_json_free(d);
    return p;
}

ses_patterns *ses_patterns_open(const char *path, ses_err *e)
{
    ses_json_doc *d = ses_json_load(path, FILE_MAX, e);
    ses_patterns *p = d ? from_json(ses_json_root(d), e) : NULL;
    if (d && !p) ses_wrap(e, "%s", path);
    ses_json_free(d);
    return p;
}

void ses_patterns_free(ses_patterns *p)
{
    if (!p) return;
    ses_arena_free(&p->mem);
    ses_free(p);
}

static void put_verbalizers(const ses_patterns *p, ses_json_writer *w)
{
    ses_json_member_object(w, "verbalizers");
    for (size_t i = 0; i < p->n_verbalizers; i++) {
        const ses_verbalizer *x = &p->verbalizer[i];
        if (x->n == 1) ses_json_member_string(w, x->label, x->word[0]);
        if (x->n == 1) continue;
        ses_json_member_array(w, x->label);
        for (size_t k = 0; k < x->n; k++) ses_json_put_string(w, x->word[k]);
        ses_json_end_array(w);
    }
    ses_json_end_object(w);
}

static void put_demonstrations(const ses_patterns *p, ses_json_writer *w)
{
    if (!p->n_demonstrations) return;
    ses_json_member_int(w, "demonstration_sets", p->demonstration_sets);
    ses_json_member_array(w, "demonstrations");
    for (size_t i = 0; i < p->n_demonstrations; i++) {
        const ses_demonstration *d = &p->demonstration[i];
        ses_json_begin_object(w);
        ses_json_member_string(w, "label", d->label);
        ses_json_member_stringn(w, "text", d->text.p, d->text.n);
        if (d->pair.n) ses_json_member_stringn(w, "pair", d->pair.p, d->pair.n);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
}

bool ses_patterns_save(const ses_patterns *p, size_t only, const char *dir, const char *name, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(2, e);
    ses_json_begin_object(w);
    ses_json_member_array(w, "patterns");
    for (size_t i = 0; i < p->n_patterns; i++)
        if (!only || i + 1 == only) ses_json_put_string(w, p->pattern[i].source);
    ses_json_end_array(w);
    put_verbalizers(p, w);
    put_demonstrations(p, w);
    ses_json_end_object(w);
    return ses_json_writer_save(w, dir, name, true, e);
}
