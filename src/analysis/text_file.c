/* Texts of a file: see text_file.h. */
#include "text_file.h"

#include "base/alloc.h"
#include "base/str.h"
#include "io/table_text.h"
#include "io/text_reader.h"
#include "sesame/unstable/table.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_LINE = 1 << 24 };

void ses_text_file_free(ses_text_file *f)
{
    ses_free(f->text), ses_free(f->label), ses_free(f->line), ses_free(f->target);
    ses_free((void *)f->tag);
    ses_arena_free(&f->mem);
    *f = (ses_text_file){ 0 };
}

/* Makes room for another text. */
static bool reserve(ses_text_file *f, ses_err *e)
{
    size_t cap[5] = { f->cap, f->cap, f->cap, f->cap, f->cap }, n = f->n + 1;
    if (n <= f->cap) return true;
    if (!ses_array_reserve(&f->text, &cap[0], n, sizeof *f->text, e) ||
        !ses_array_reserve(&f->label, &cap[1], n, sizeof *f->label, e) ||
        !ses_array_reserve(&f->tag, &cap[2], n, sizeof *f->tag, e) ||
        !ses_array_reserve(&f->line, &cap[3], n, sizeof *f->line, e) ||
        (f->has_target && !ses_array_reserve(&f->target, &cap[4], n, sizeof *f->target, e)))
        return false;
    f->cap = cap[0];
    for (int i = 1; i < (f->has_target ? 5 : 4); i++)
        if (cap[i] < f->cap) f->cap = cap[i];
    return true;
}

static bool copy(ses_text_file *f, ses_string s, ses_string *out, ses_err *e)
{
    *out = (ses_string){ ses_arena_strndup(&f->mem, s.p, s.n, e), s.n };
    return out->p != NULL;
}

static bool is_full(ses_text_file *f, const ses_text_file_options *o)
{
    return f->is_cut = o->max_texts && f->n == o->max_texts;
}

static bool add_text(ses_text_file *f, ses_string text, ses_string label, uint64_t line, ses_err *e)
{
    if (!reserve(f, e)) return false;
    f->text[f->n] = (ses_input){ 0 };
    f->label[f->n] = (ses_string){ 0 };
    f->tag[f->n] = NULL;
    f->line[f->n] = line;
    if (!copy(f, text, &f->text[f->n].text, e) || (label.p && !copy(f, label, &f->label[f->n], e)))
        return false;
    f->n++;
    return true;
}

/* The decoder's text of the text that was added last. */
static bool add_target(ses_text_file *f, ses_string target, ses_err *e)
{
    f->target[f->n - 1] = (ses_input){ 0 };
    return copy(f, target, &f->target[f->n - 1].text, e);
}

static bool is_blank(ses_string s) { return strspn(s.p, " \t\r\n\v\f") >= s.n; /* s ends with a NUL */ }

/* ---- lines ---- */

static bool read_lines(ses_text_file *f, const char *path, const ses_text_file_options *o, ses_err *e)
{
    ses_text_reader r = { .encoding = o->encoding };
    ses_string s;
    ses_buf line = { 0 };
    bool ok = ses_text_reader_open(&r, path, MAX_LINE, e);
    while (ok && (ok = ses_text_reader_next(&r, &s.p, &s.n, e)) && s.p && !is_full(f, o)) {
        line.len = 0;
        ses_buf_append(&line, s.p, s.n);
        ok = ses_buf_ok(&line, e);
        if (!ok || !line.data) continue;
        ses_string text = { line.data, line.len };
        if (!is_blank(text)) ok = add_text(f, text, (ses_string){ 0 }, r.line, e);
    }
    ses_buf_free(&line);
    ses_text_reader_free(&r);
    return ok || ses_wrap(e, "%s", path);
}

/* ---- tables ---- */

/* The first of several columns may have numbers or labels. */
static bool check_only(const ses_records *r, const char *path, ses_err *e)
{
    ses_buf names = { 0 };
    size_t n = ses_records_name_count(r);
    if (n < 2) return true;
    for (size_t i = 0; i < n; i++)
        ses_buf_appendf(&names, "%s%s", i ? ", " : "",
                        ses_quoted_of(ses_records_name(r, i), strlen(ses_records_name(r, i))).s);
    if (ses_buf_ok(&names, e))
        ses_fail(e, SES_EARG,
                 "%s: no column \"sentence\" or \"text\": name the column of the texts, one of %.300s", path,
                 names.data);
    ses_buf_free(&names);
    return false;
}

/* The column of the texts: as given, "sentence", "text", or the first one. */
static const char *choose_column(const char *path, const ses_text_file_options *o, ses_err *e)
{
    static const char *const names[] = { "sentence", "text" };
    if (o->text_column) return o->text_column;
    ses_records *r = ses_records_open(path, &(ses_records_options){ .encoding = o->encoding }, e);
    const char *found = r ? "1" : NULL;
    for (size_t k = 0; r && k < SES_LEN(names); k++)
        for (size_t i = 0; i < ses_records_field_count(r); i++) {
            const char *name = ses_records_column_name(r, i);
            if (name && !strcmp(name, names[k]) && !strcmp(found, "1")) found = names[k];
        }
    bool json = r && ses_records_format(r) == SES_TABLE_JSONL;
    if (r && !json && !strcmp(found, "1") && !check_only(r, path, e)) found = NULL;
    ses_records_free(r);
    return found && json && !strcmp(found, "1") ? "text" : found;
}

static bool read_table(ses_text_file *f, const char *path, const ses_text_file_options *o, ses_err *e)
{
    const char *columns[3] = { choose_column(path, o, e) };
    size_t n = 1, target = 0;
    if (!columns[0]) return false;
    if (o->label_column) columns[n++] = o->label_column;
    if (o->target_column) target = n, columns[n++] = o->target_column;
    f->has_target = target > 0;
    ses_records_options ro = { .columns = columns, .n_columns = n, .encoding = o->encoding };
    ses_records *r = ses_records_open(path, &ro, e);
    const ses_string *row = NULL;
    bool ok = r != NULL;
    while (ok && (ok = ses_records_next(r, &row, e) || ses_wrap(e, "%s", path)) && row && !is_full(f, o))
        if (!is_blank(row[0]))
            ok = add_text(f, row[0], o->label_column ? row[1] : (ses_string){ 0 }, ses_records_line(r), e) &&
                 (!target || add_target(f, row[target], e));
    ses_records_free(r);
    return ok;
}

/* ---- sentences of words ---- */

static bool tag_column(const ses_text_file_options *o, bool conllu, int *column, ses_err *e)
{
    static const struct {
        const char *name;
        int column;
    } names[] = { { "lemma", 3 }, { "upos", 4 }, { "xpos", 5 }, { "feats", 6 }, { "deprel", 8 } };
    char *end;
    *column = conllu ? 4 : -1;
    if (!o->label_column) return true;
    for (size_t i = 0; conllu && i < SES_LEN(names); i++)
        if (!strcmp(o->label_column, names[i].name)) return *column = names[i].column, true;
    long n = strtol(o->label_column, &end, 10);
    if (!*end && end != o->label_column && n && n > -257 && n < 257) return *column = (int)n, true;
    return ses_fail(e, SES_EUSAGE, "column \"%s\": expected %sa number from 1",
                    ses_quoted_of(o->label_column, strlen(o->label_column)).s,
                    conllu ? "lemma, upos, xpos, feats, deprel or " : "");
}

static bool add_sentence(ses_text_file *f, const ses_conll_sentence *s, ses_err *e)
{
    if (!reserve(f, e)) return false;
    ses_string *word = ses_arena_array(&f->mem, s->n, sizeof *word, e);
    ses_string *tag = word ? ses_arena_array(&f->mem, s->n, sizeof *tag, e) : NULL;
    for (size_t i = 0; tag && i < s->n; i++)
        if (!copy(f, s->field[i * s->n_columns], &word[i], e) ||
            !copy(f, s->field[i * s->n_columns + 1], &tag[i], e))
            return false;
    if (!tag) return false;
    f->text[f->n] = (ses_input){ .words = word, .n_words = s->n };
    f->label[f->n] = (ses_string){ 0 };
    f->tag[f->n] = tag;
    f->line[f->n++] = s->line;
    return true;
}

static bool read_conll(ses_text_file *f, const char *path, bool conllu, const ses_text_file_options *o,
                       ses_err *e)
{
    int columns[2] = { conllu ? 2 : 1, 0 };
    ses_conll_sentence s;
    if (!tag_column(o, conllu, &columns[1], e)) return false;
    ses_conll *c = ses_conll_open(
        path,
        &(ses_conll_options){ .columns = columns, .n_columns = 2, .conllu = conllu, .encoding = o->encoding },
        e);
    bool ok = c != NULL;
    f->is_words = true;
    while (ok && (ok = ses_conll_next(c, &s, e) || ses_wrap(e, "%s", path)) && s.n && !is_full(f, o))
        ok = add_sentence(f, &s, e);
    ses_conll_free(c);
    return ok;
}

bool ses_text_file_open(ses_text_file *f, const char *path, const ses_text_file_options *o, ses_err *e)
{
    static const ses_text_file_options none = { 0 };
    bool table = ses_is_table_name(path), conllu = ses_input_stream_has_suffix(path, ".conllu");
    if (!o) o = &none;
    bool is_conll = conllu || ses_input_stream_has_suffix(path, ".conll");
    if (o->target_column && !table)
        return ses_fail(e, SES_EUSAGE, "--target-column: %s is not a table (.tsv, .csv, .jsonl)", path);
    bool ok = is_conll ? read_conll(f, path, conllu, o, e)
              : table  ? read_table(f, path, o, e)
                       : read_lines(f, path, o, e);
    return ok && (f->n || ses_fail(e, SES_EFORMAT, "%s: no text", path));
}

ses_string ses_text_file_span(const ses_text_file *f, size_t text, int32_t index, ses_offset bytes)
{
    if (f->is_words) return f->text[text].words[index];
    ses_string s = { f->text[text].text.p + bytes.begin, bytes.end - bytes.begin };
    while (s.n && (*s.p == ' ' || *s.p == '\t')) s.p++, s.n--;
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t')) s.n--;
    return s;
}
