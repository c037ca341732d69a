/* Reader of SQuAD's JSON, versions 1.1 and 2.0: data[].paragraphs[].{context, qas[]}. */
#include "base/alloc.h"
#include "base/str.h"
#include "base/unicode/utf8.h"
#include "sesame/unstable/table.h"

#include <string.h>

enum { MAX_FILE = 512 << 20 };

struct ses_squad {
    ses_json_doc *doc;
    const ses_json *data;
    ses_squad_options o;
    size_t article, paragraph, qa; /* the next question */
    ses_answer *answer;
    size_t cap, skipped;
};

static bool text_of(const ses_json *object, const char *key, bool optional, ses_string *out, ses_err *e)
{
    const ses_json *v = ses_json_get(object, key);
    *out = (ses_string){ "", 0 };
    if (!v && optional) return true;
    const char *s = ses_json_string(v, &out->n);
    if (!s)
        return v ? ses_fail(e, SES_EFORMAT, "\"%s\" is %s, expected a string", key,
                            ses_json_type_name(ses_json_type_of(v)))
                 : ses_fail(e, SES_EFORMAT, "no \"%s\"", key);
    out->p = s;
    return strlen(s) == out->n || ses_fail(e, SES_EFORMAT, "\"%s\" contains a NUL", key);
}

static bool list_of(const ses_json *object, const char *key, const ses_json **out, ses_err *e)
{
    *out = ses_json_get(object, key);
    if (*out && ses_json_type_of(*out) == SES_JSON_ARRAY) return true;
    return ses_fail(e, SES_EFORMAT, *out ? "\"%s\" is not an array" : "no \"%s\"", key);
}

/* Byte offset of character n; false: the text is shorter. */
static bool byte_of(const ses_string *text, size_t n, size_t *byte)
{
    size_t at = 0;
    uint32_t cp;
    for (; n && at < text->n; n--) at += ses_utf8_next(text->p + at, &cp);
    *byte = at;
    return n == 0;
}

static bool occurs_at(const ses_string *context, const ses_string *text, size_t byte)
{
    return byte <= context->n && context->n - byte >= text->n && !memcmp(context->p + byte, text->p, text->n);
}

/* Finds the offsets of an answer; fails if its text is not at its start and cannot be searched. */
static bool locate(const ses_squad *q, const ses_string *context, int64_t start, ses_answer *a, ses_err *e)
{
    ses_quoted text = ses_quoted_of(a->text.p, a->text.n > 60 ? 60 : a->text.n);
    bool within = start >= 0 && byte_of(context, (size_t)start, &a->byte_start);
    if (within && a->text.n && occurs_at(context, &a->text, a->byte_start)) {
        a->char_start = (size_t)start;
        return true;
    }
    if (!a->text.n) return ses_fail(e, SES_EFORMAT, "empty answer");
    const char *found = strstr(context->p, a->text.p);
    if (!found) return ses_fail(e, SES_EFORMAT, "answer \"%s\" does not occur in its context", text.s);
    size_t byte = (size_t)(found - context->p), point = ses_utf8_count(context->p, byte);
    if (!q->o.search_context)
        return ses_fail(e, SES_EFORMAT, "answer \"%s\" is not at %lld; its first occurrence is at %zu",
                        text.s, (long long)start, point);
    a->byte_start = byte;
    a->char_start = point;
    return true;
}

static bool read_answers(ses_squad *q, const ses_json *qa, ses_question *out, ses_err *e)
{
    const ses_json *list = ses_json_get(qa, "answers");
    if (!list) return true; /* a test set */
    if (!list_of(qa, "answers", &list, e)) return false;
    size_t n = ses_json_len(list);
    if (!ses_array_reserve(&q->answer, &q->cap, n, sizeof *q->answer, e)) return false;
    for (size_t k = 0; k < n; k++) {
        const ses_json *v = ses_json_at(list, k);
        ses_answer *a = &q->answer[out->n_answers];
        int64_t start;
        ses_err why = { 0 };
        *a = (ses_answer){ 0 };
        if (ses_json_type_of(v) != SES_JSON_OBJECT)
            return ses_fail(e, SES_EFORMAT, "answer %zu: not an object", k);
        if (!text_of(v, "text", false, &a->text, e)) return ses_wrap(e, "answer %zu", k);
        if (!ses_json_int(ses_json_get(v, "answer_start"), &start))
            return ses_fail(e, SES_EFORMAT, "answer %zu: \"answer_start\" is not an integer", k);
        bool good = locate(q, &out->context, start, a, &why);
        if (!good && !q->o.skip_bad_answers) return ses_fail(e, why.code, "%s", why.msg);
        q->skipped += !good;
        out->n_answers += good;
    }
    return true;
}

static bool read_question(ses_squad *q, const ses_json *article, const ses_json *paragraph,
                          const ses_json *qa, ses_question *out, ses_err *e)
{
    *out = (ses_question){ 0 };
    if (ses_json_type_of(qa) != SES_JSON_OBJECT) return ses_fail(e, SES_EFORMAT, "not an object");
    if (!text_of(article, "title", true, &out->title, e) ||
        !text_of(paragraph, "context", false, &out->context, e) || !text_of(qa, "id", true, &out->id, e) ||
        !text_of(qa, "question", false, &out->question, e))
        return false;
    ses_json_bool(ses_json_get(qa, "is_impossible"), &out->is_impossible);
    if (read_answers(q, qa, out, e)) return out->answers = q->answer, true;
    return out->id.n ? ses_wrap(e, "question %s", ses_quoted_of(out->id.p, out->id.n).s) : false;
}

bool ses_squad_next(ses_squad *q, ses_question *out, bool *end, ses_err *e)
{
    *end = false;
    for (; q->article < ses_json_len(q->data); q->article++, q->paragraph = 0) {
        const ses_json *article = ses_json_at(q->data, q->article), *paragraphs, *qas;
        if (!list_of(article, "paragraphs", &paragraphs, e)) return ses_wrap(e, "data[%zu]", q->article);
        for (; q->paragraph < ses_json_len(paragraphs); q->paragraph++, q->qa = 0) {
            const ses_json *paragraph = ses_json_at(paragraphs, q->paragraph);
            if (!list_of(paragraph, "qas", &qas, e))
                return ses_wrap(e, "data[%zu].paragraphs[%zu]", q->article, q->paragraph);
            if (q->qa == ses_json_len(qas)) continue;
            size_t k = q->qa++;
            return read_question(q, article, paragraph, ses_json_at(qas, k), out, e) ||
                   ses_wrap(e, "data[%zu].paragraphs[%zu].qas[%zu]", q->article, q->paragraph, k);
        }
    }
    *end = true;
    return true;
}

static ses_squad *make(ses_json_doc *doc, const ses_squad_options *o, ses_err *e)
{
    ses_squad *q = doc ? ses_alloc(sizeof *q, e) : NULL;
    if (!q) return ses_json_free(doc), NULL;
    q->doc = doc;
    if (o) q->o = *o;
    if (list_of(ses_json_root(doc), "data", &q->data, e)) return q;
    ses_wrap(e, "not SQuAD's JSON");
    ses_squad_free(q);
    return NULL;
}

ses_squad *ses_squad_open(const char *path, const ses_squad_options *o, ses_err *e)
{
    ses_json_doc *doc = ses_json_load(path, MAX_FILE, e); /* its errors include the path */
    if (!doc) return NULL;
    ses_squad *q = make(doc, o, e);
    if (!q) ses_wrap(e, "%s", path);
    return q;
}

ses_squad *ses_squad_from_text(const char *text, size_t n, const ses_squad_options *o, ses_err *e)
{
    return make(ses_json_parse(text, n, e), o, e);
}

void ses_squad_free(ses_squad *q)
{
    if (!q) return;
    ses_json_free(q->doc);
    ses_free(q->answer);
    ses_free(q);
}

const char *ses_squad_version(const ses_squad *q)
{
    const char *s = ses_json_string(ses_json_get(ses_json_root(q->doc), "version"), NULL);
    return s ? s : "";
}

size_t ses_squad_skipped(const ses_squad *q) { return q->skipped; }
