/* Reads examples from plain text, CoNLL columns, SQuAD's JSON, and SuperGLUE's MultiRC and ReCoRD. */
#include "examples_impl.h"

#include "base/alloc.h"
#include "base/labels/tag_scheme.h"
#include "base/unicode/utf8.h"
#include "io/text_reader.h"

#include <stdio.h>
#include <string.h>

enum { MAX_LINE = 64 << 20 };

static const ses_string empty = { "", 0 };

bool ses_read_lines(ses_examples *d, const char *path, ses_err *e)
{
    ses_text_reader in = { .encoding = d->spec->encoding };
    ses_buf b = { 0 };
    const char *s = NULL;
    size_t n;
    if (d->spec->kind != SES_DATA_TEXT)
        return ses_fail(e, SES_EARG, "%s data cannot be read from plain text",
                        ses_data_kind_name(d->spec->kind));
    bool ok = ses_text_reader_open(&in, path, MAX_LINE, e);
    while (ok && (ok = ses_text_reader_next(&in, &s, &n, e) || ses_wrap(e, "%s", path)) && s) {
        ses_labeled_example x = { .line = in.line, .label = SES_IGNORE_INDEX, .id = empty, .text_b = empty };
        b.len = 0;
        ses_buf_append(&b, s, n);
        ses_buf_put(&b, '\n');
        x.text_a = (ses_string){ b.data, b.len };
        ok = ses_buf_ok(&b, e) && ses_examples_keep(d, &x.text_a, e) && ses_examples_add(d, &x, e);
    }
    ses_buf_free(&b);
    ses_text_reader_free(&in);
    return ok;
}

/* The label "PREFIX-TYPE". */
static bool take_tag(ses_examples *d, char prefix, const ses_tag *t, int32_t *out, ses_err *e)
{
    ses_buf b = { 0 };
    ses_buf_appendf(&b, "%c-%.*s", prefix, (int)t->n, t->type);
    bool ok = ses_buf_ok(&b, e) && ses_examples_take_label(d, b.data, b.len, out, e);
    ses_buf_free(&b);
    return ok;
}

/* The labels of a sentence, converted to the scheme. A new type gets all labels of the scheme, so that other
 * data have no unknown ones. */
static bool take_tags(ses_examples *d, const ses_conll_sentence *s, int32_t *labels, ses_err *e)
{
    ses_tag_scheme to = (ses_tag_scheme)d->spec->tag_scheme;
    const char *prefixes = to == SES_TAGS_BIOES ? "BIES" : "BI";
    ses_tag *tag = ses_alloc_array(s->n, sizeof *tag, e);
    bool ok = tag != NULL, bioes = false;
    for (size_t i = 0; ok && i < s->n; i++) {
        const ses_string *f = s->field + i * s->n_columns + 1;
        tag[i] = ses_tag_parse(f->p, f->n);
        bioes |= tag[i].prefix == 'E' || tag[i].prefix == 'S';
    }
    if (ok) d->repaired += ses_tags_convert(tag, s->n, to, bioes);
    for (size_t i = 0; ok && i < s->n; i++) {
        const ses_string *f = s->field + i * s->n_columns + 1;
        bool span = tag[i].prefix && tag[i].prefix != 'O';
        for (const char *p = prefixes; ok && span && !d->fixed && *p; p++)
            ok = take_tag(d, *p, &tag[i], &labels[i], e);
        ok = ok && (span ? take_tag(d, tag[i].prefix, &tag[i], &labels[i], e)
                         : ses_examples_take_label(d, f->p, f->n, &labels[i], e));
        if (!ok) ses_wrap(e, "token %zu", i + 1);
    }
    ses_free(tag);
    return ok;
}

static bool keep_sentence(ses_examples *d, const ses_conll_sentence *s, ses_labeled_example *x, ses_err *e)
{
    ses_string *part = ses_arena_array(&d->arena, s->n, sizeof *part, e);
    bool tags = s->n_columns > 1, convert = tags && d->spec->tag_scheme != SES_TAGS_PLAIN;
    x->labels = part && tags ? ses_arena_array(&d->arena, s->n, sizeof *x->labels, e) : NULL;
    if (!part || (tags && !x->labels)) return false;
    x->parts = part;
    x->n_parts = s->n;
    x->n_labels = tags ? s->n : 0;
    for (size_t i = 0; i < s->n; i++) {
        const ses_string *f = s->field + i * s->n_columns;
        part[i] = f[0];
        if (!ses_examples_keep(d, &part[i], e)) return false;
        if (tags && !convert && !ses_examples_take_label(d, f[1].p, f[1].n, &x->labels[i], e))
            return ses_wrap(e, "token %zu", i + 1);
    }
    return !convert || take_tags(d, s, x->labels, e);
}

bool ses_read_conll(ses_examples *d, const char *path, ses_err *e)
{
    const ses_data_spec *s = d->spec;
    int columns[] = { s->token_column ? s->token_column : 1, s->tag_column ? s->tag_column : -1 };
    ses_conll_options o = {
        .columns = columns, .n_columns = s->no_labels ? 1 : 2, .conllu = s->conllu, .encoding = s->encoding
    };
    if (s->kind != SES_DATA_TAG)
        return ses_fail(e, SES_EARG, "%s data cannot be read from CoNLL columns",
                        ses_data_kind_name(s->kind));
    ses_conll *in = ses_conll_open(path, &o, e);
    ses_conll_sentence sentence;
    bool ok = in != NULL;
    while (ok && (ok = ses_conll_next(in, &sentence, e) || ses_wrap(e, "%s", path)) && sentence.n) {
        ses_labeled_example x = {
            .line = sentence.line, .label = SES_IGNORE_INDEX, .id = empty, .text_a = empty, .text_b = empty
        };
        ok = keep_sentence(d, &sentence, &x, e) ||
             ses_wrap(e, "%s: the sentence at line %llu", path, (unsigned long long)x.line);
        ok = ok && ses_examples_add(d, &x, e);
    }
    ses_conll_free(in);
    return ok;
}

/* ---- questions ---- */

static bool keep_answers(ses_examples *d, const ses_answer *from, size_t n, ses_labeled_example *x,
                         ses_err *e)
{
    ses_answer *a = ses_arena_array(&d->arena, n, sizeof *a, e);
    if (!a) return false;
    for (size_t k = 0; k < n; k++) {
        a[k] = from[k];
        a[k].text.p = x->text_b.p + a[k].byte_start; /* copied next, to add a NUL */
        if (!ses_examples_keep(d, &a[k].text, e)) return false;
    }
    x->answers = a;
    x->n_answers = n;
    return true;
}

bool ses_read_squad(ses_examples *d, const char *path, ses_err *e)
{
    ses_squad_options o = { .skip_bad_answers = d->spec->skip_bad_answers };
    if (d->spec->kind != SES_DATA_SPAN)
        return ses_fail(e, SES_EARG, "%s data cannot be read from SQuAD's JSON",
                        ses_data_kind_name(d->spec->kind));
    ses_squad *in = ses_squad_open(path, &o, e);
    ses_question q;
    ses_string context = empty; /* copied once for all its questions */
    const char *last = NULL;    /* the context before it was copied */
    bool end = false, ok = in != NULL;
    while (ok && (ok = ses_squad_next(in, &q, &end, e) || ses_wrap(e, "%s", path)) && !end) {
        ses_labeled_example x = {
            .line = d->n + 1, .label = SES_IGNORE_INDEX, .id = q.id, .text_a = q.question
        };
        if (last != q.context.p) {
            last = q.context.p;
            context = q.context;
            ok = ses_examples_keep(d, &context, e);
        }
        x.text_b = context;
        x.is_impossible = q.is_impossible;
        ok = ok && ses_examples_keep(d, &x.id, e) && ses_examples_keep(d, &x.text_a, e) &&
             keep_answers(d, q.answers, q.n_answers, &x, e) && ses_examples_add(d, &x, e);
    }
    if (in) d->skipped = ses_squad_skipped(in);
    ses_squad_free(in);
    return ok;
}

/* ---- SuperGLUE ---- */

static bool text_of(const ses_json *v, const char *key, ses_string *out, ses_err *e)
{
    out->p = ses_json_string(ses_json_get(v, key), &out->n);
    if (out->p && strlen(out->p) == out->n) return true;
    return ses_fail(e, SES_EFORMAT, "no string \"%s\"", key);
}

/* The integer id as text. */
static bool id_of(ses_examples *d, const ses_json *v, ses_string *out, ses_err *e)
{
    char text[32];
    int64_t i = 0;
    if (ses_json_int(ses_json_get(v, "idx"), &i)) {
        *out = (ses_string){ text, (size_t)snprintf(text, sizeof text, "%lld", (long long)i) };
        return ses_examples_keep(d, out, e);
    }
    *out = empty;
    return true;
}

typedef bool each_fn(ses_examples *d, const ses_json *root, uint64_t line, ses_err *e);

/* Calls fn for every object of a JSON-lines file; errors begin with path and line. */
static bool each_object(ses_examples *d, const char *path, each_fn *fn, ses_err *e)
{
    const char *none[] = { "" };
    ses_records_options o = { .format = SES_TABLE_JSONL, .columns = none, .n_columns = 0 };
    ses_records *in = ses_records_open(path, &o, e);
    const ses_string *row;
    bool ok = in != NULL;
    while (ok && (ok = ses_records_next(in, &row, e) || ses_wrap(e, "%s", path)) && row) {
        uint64_t line = ses_records_line(in);
        ok = fn(d, ses_records_json(in), line, e) ||
             ses_wrap(e, "%s: line %llu", path, (unsigned long long)line);
    }
    ses_records_free(in);
    return ok;
}

/* group: the number of the question. */
static bool add_multirc(ses_examples *d, const ses_json *question, const ses_json *answer,
                        const ses_string *passage, uint64_t line, int64_t group, ses_err *e)
{
    ses_labeled_example x = { .line = line, .label = SES_IGNORE_INDEX, .text_a = *passage, .group = group };
    ses_string q, a;
    int64_t right = 0;
    if (!text_of(question, "question", &q, e) || !text_of(answer, "text", &a, e)) return false;
    if (!d->spec->no_labels) {
        if (!ses_json_int(ses_json_get(answer, "label"), &right))
            return ses_fail(e, SES_EFORMAT, "\"label\" is not 0 or 1");
        if (!ses_examples_take_label(d,
                                     right == 0   ? "0"
                                     : right == 1 ? "1"
                                                  : "other",
                                     right == 0 || right == 1 ? 1 : 5, &x.label, e))
            return false;
    }
    ses_buf b = { 0 }; /* the second text: question and answer */
    ses_buf_appendf(&b, "%s %s", q.p, a.p);
    bool ok = ses_buf_ok(&b, e) && id_of(d, question, &x.id, e);
    x.text_b = (ses_string){ b.data, b.len };
    ok = ok && ses_examples_keep(d, &x.text_b, e) && ses_examples_add(d, &x, e);
    ses_buf_free(&b);
    return ok;
}

static bool multirc(ses_examples *d, const ses_json *root, uint64_t line, ses_err *e)
{
    const ses_json *p = ses_json_get(root, "passage"), *list = ses_json_get(p, "questions");
    ses_string passage;
    if (!text_of(p, "text", &passage, e)) return ses_wrap(e, "passage");
    if (!ses_examples_keep(d, &passage, e)) return false;
    for (size_t i = 0; i < ses_json_len(list); i++) {
        const ses_json *q = ses_json_at(list, i), *answers = ses_json_get(q, "answers");
        int64_t group = (d->n ? d->item[d->n - 1].group : 0) + 1;
        for (size_t k = 0; k < ses_json_len(answers); k++)
            if (!add_multirc(d, q, ses_json_at(answers, k), &passage, line, group, e))
                return ses_wrap(e, "question %zu, answer %zu", i, k);
    }
    return true;
}

bool ses_read_multirc(ses_examples *d, const char *path, ses_err *e)
{
    return each_object(d, path, multirc, e);
}

/* The answer is located by its text; the offsets of the file are not used. */
static bool add_record(ses_examples *d, const ses_json *qa, const ses_string *passage, uint64_t line,
                       ses_err *e)
{
    ses_labeled_example x = { .line = line, .label = SES_IGNORE_INDEX, .text_b = *passage };
    const ses_json *list = ses_json_get(qa, "answers");
    size_t n = ses_json_len(list);
    if (!text_of(qa, "query", &x.text_a, e) || !ses_examples_keep(d, &x.text_a, e) || !id_of(d, qa, &x.id, e))
        return false;
    ses_answer *a = ses_arena_array(&d->arena, n, sizeof *a, e);
    if (!a) return false;
    for (size_t k = 0; k < n && !d->spec->no_labels; k++) {
        const ses_json *v = ses_json_at(list, k);
        if (!text_of(v, "text", &a[k].text, e)) return ses_wrap(e, "answer %zu", k);
        const char *at = a[k].text.n ? strstr(passage->p, a[k].text.p) : NULL;
        if (!at)
            return ses_fail(e, SES_EFORMAT, "answer \"%s\" does not occur in its passage",
                            ses_quoted_of(a[k].text.p, a[k].text.n).s);
        if (!ses_examples_keep(d, &a[k].text, e)) return false;
        a[k].byte_start = (size_t)(at - passage->p);
        a[k].char_start = ses_utf8_count(passage->p, a[k].byte_start);
    }
    x.answers = a;
    x.n_answers = d->spec->no_labels ? 0 : n;
    return ses_examples_add(d, &x, e);
}

static bool record(ses_examples *d, const ses_json *root, uint64_t line, ses_err *e)
{
    const ses_json *list = ses_json_get(root, "qas");
    ses_string passage;
    if (!text_of(ses_json_get(root, "passage"), "text", &passage, e)) return ses_wrap(e, "passage");
    if (!ses_examples_keep(d, &passage, e)) return false;
    for (size_t k = 0; k < ses_json_len(list); k++)
        if (!add_record(d, ses_json_at(list, k), &passage, line, e)) return ses_wrap(e, "question %zu", k);
    return true;
}

bool ses_read_record(ses_examples *d, const char *path, ses_err *e)
{
    return each_object(d, path, record, e);
}
