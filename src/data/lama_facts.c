/* Facts of LAMA: see lama_facts.h. */
#include "lama_facts.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/json/json_helpers.h"
#include "base/strmap.h"

#include <string.h>

struct ses_lama_facts {
    ses_string template_text; /* template of every fact; p NULL: none */
    ses_arena mem;            /* templates of relations */
    ses_strmap index;         /* relation to its number in templates */
    ses_string *templates;
    size_t n, cap;
    ses_buf text;
};

static const char mask_mark[] = "[MASK]";

/* ---- templates ---- */

static bool check_template(ses_string t, ses_err *e)
{
    if (strstr(t.p, "[X]") && strstr(t.p, "[Y]")) return true;
    return ses_fail(e, SES_EFORMAT,
                    "template \"%s\": expected [X] for the subject and [Y] for the answer, as "
                    "in \"[X] was born in [Y] .\"",
                    ses_quoted_of(t.p, t.n).s);
}

static bool add_template(ses_lama_facts *f, const ses_json *v, ses_err *e)
{
    ses_string relation, text;
    bool fresh;
    if (!ses_json_lines_string(v, "relation", &relation, e) ||
        !ses_json_lines_string(v, "template", &text, e))
        return false;
    if (!relation.p || !text.p)
        return ses_fail(e, SES_EFORMAT, "expected the keys \"relation\" and \"template\"");
    if (!text.n) return true; /* LAMA: none for this relation */
    if (!check_template(text, e)) return false;
    char *key = ses_arena_strndup(&f->mem, relation.p, relation.n, e);
    char *copy = key ? ses_arena_strndup(&f->mem, text.p, text.n, e) : NULL;
    if (!copy || !ses_array_reserve(&f->templates, &f->cap, f->n + 1, sizeof *f->templates, e)) return false;
    int64_t *at = ses_strmap_insert(&f->index, key, relation.n, (int64_t)f->n, &fresh, e);
    if (at && fresh) f->templates[f->n++] = (ses_string){ copy, text.n };
    if (at && !fresh) f->templates[*at] = (ses_string){ copy, text.n };
    return at != NULL;
}

bool ses_lama_facts_add_templates(ses_lama_facts *f, ses_json_lines *l, ses_err *e)
{
    for (const ses_json *v;;) {
        if (!ses_json_lines_next(l, &v, e)) return false;
        if (!v) return true;
        if (!add_template(f, v, e)) return ses_json_lines_wrap(l, e);
    }
}

ses_lama_facts *ses_lama_facts_new(const char *template_text, const char *relations, ses_err *e)
{
    ses_lama_facts *f = ses_alloc(sizeof *f, e);
    if (!f) return NULL;
    ses_json_lines l = { 0 };
    bool ok = true;
    if (template_text) f->template_text = (ses_string){ template_text, strlen(template_text) };
    if (template_text) ok = check_template(f->template_text, e);
    if (ok && relations)
        ok = (ses_json_lines_open(&l, relations, e) && ses_lama_facts_add_templates(f, &l, e)) ||
             ses_wrap(e, "%s", relations);
    ses_json_lines_free(&l);
    if (ok) return f;
    ses_lama_facts_free(f);
    return NULL;
}

void ses_lama_facts_free(ses_lama_facts *f)
{
    if (!f) return;
    ses_strmap_free(&f->index);
    ses_arena_free(&f->mem);
    ses_buf_free(&f->text);
    ses_free(f->templates);
    ses_free(f);
}

/* ---- facts ---- */

/* Replaces [X] by the subject and [Y] by the mask. */
static bool fill_template(ses_lama_facts *f, ses_string t, const ses_json *v, ses_err *e)
{
    ses_string subject;
    if (!ses_json_lines_string(v, "sub_label", &subject, e)) return false;
    if (!subject.p && !ses_json_lines_string(v, "sub", &subject, e)) return false;
    if (!subject.p)
        return ses_fail(e, SES_EFORMAT, "expected the key \"sub_label\", for [X] of the template");
    for (const char *at = t.p; *at;) {
        bool x = !strncmp(at, "[X]", 3), y = !strncmp(at, "[Y]", 3);
        if (x) ses_buf_append(&f->text, subject.p, subject.n);
        if (y) ses_buf_puts(&f->text, mask_mark);
        if (!x && !y) ses_buf_put(&f->text, *at);
        at += x || y ? 3 : 1;
    }
    return ses_buf_ok(&f->text, e);
}

static bool join_sentences(ses_lama_facts *f, const ses_json *list, ses_err *e)
{
    ses_string one = { 0 };
    one.p = ses_json_string(list, &one.n);
    if (one.p) return ses_buf_append(&f->text, one.p, one.n), ses_buf_ok(&f->text, e);
    size_t n;
    ses_string *s = ses_json_strings(list, &n, e);
    if (!s) return ses_wrap(e, "key \"masked_sentences\"");
    for (size_t i = 0; i < n; i++) {
        if (i) ses_buf_put(&f->text, ' ');
        ses_buf_append(&f->text, s[i].p, s[i].n);
    }
    ses_free(s);
    return ses_buf_ok(&f->text, e);
}

static bool build_text(ses_lama_facts *f, const ses_json *v, ses_string relation, ses_err *e)
{
    int64_t at;
    ses_string own;
    const ses_json *sentences = ses_json_get(v, "masked_sentences");
    f->text.len = 0;
    if (f->template_text.p) return fill_template(f, f->template_text, v, e);
    if (ses_strmap_find(&f->index, relation.p, relation.n, &at))
        return fill_template(f, f->templates[at], v, e);
    if (!ses_json_lines_string(v, "template", &own, e)) return false;
    if (own.n) return check_template(own, e) && fill_template(f, own, v, e);
    if (!sentences) sentences = ses_json_get(ses_json_at(ses_json_get(v, "evidences"), 0), "masked_sentence");
    if (sentences) return join_sentences(f, sentences, e);
    return ses_fail(e, SES_EFORMAT,
                    "expected \"masked_sentences\", or \"sub_label\" and a template (--template, "
                    "--relations)");
}

/* Splits the text at its only mask; without its spaces. */
static void split_at_mask(ses_lama_facts *f, ses_lama_fact *out)
{
    const char *s = f->text.data ? f->text.data : "", *at = NULL;
    size_t n = f->text.len, len = sizeof mask_mark - 1;
    for (const char *m = s; (m = strstr(m, mask_mark)); m += len) at = m, out->masks++;
    if (out->masks != 1) return;
    out->before = (ses_string){ s, (size_t)(at - s) };
    out->after = (ses_string){ at + len, n - len - (size_t)(at - s) };
}

static bool read_fact(ses_lama_facts *f, const ses_json *v, ses_lama_fact *out, ses_err *e)
{
    static const char *const keys[] = { "predicate_id", "relation", "pred" };
    *out = (ses_lama_fact){ 0 };
    for (size_t i = 0; !out->relation.n && i < SES_LEN(keys); i++)
        if (!ses_json_lines_string(v, keys[i], &out->relation, e)) return false;
    if (!out->relation.n) out->relation = (ses_string){ "all", 3 };
    if (!ses_json_lines_string(v, "obj_label", &out->answer, e)) return false;
    if (!out->answer.n) return ses_fail(e, SES_EFORMAT, "expected the key \"obj_label\": the answer");
    out->before = out->after = (ses_string){ "", 0 };
    if (!build_text(f, v, out->relation, e)) return false;
    if (f->text.len && strlen(f->text.data) != f->text.len)
        return ses_fail(e, SES_EFORMAT, "the text contains a NUL");
    split_at_mask(f, out);
    return true;
}

bool ses_lama_facts_next(ses_lama_facts *f, ses_json_lines *l, ses_lama_fact *out, bool *end, ses_err *e)
{
    const ses_json *v;
    if (!ses_json_lines_next(l, &v, e)) return false;
    *end = !v;
    return !v || read_fact(f, v, out, e) || ses_json_lines_wrap(l, e);
}
