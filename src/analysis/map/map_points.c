/* Reads texts, tables and CoNLL-U files into the points of a map. */
#include "analysis/map/map_points.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/unicode/utf8_replace.h"
#include "io/input_stream.h"
#include "io/text_reader.h"

#include <stdio.h>
#include <string.h>

enum { MAX_LINE = 64 << 20, CONLLU_COLUMNS = 5, MAX_WANTED = 256 };

static const int conllu_column[CONLLU_COLUMNS] = { 2, 4, 5, 8, 3 };
static const char *const conllu_name[CONLLU_COLUMNS] = { "word", "upos", "xpos", "deprel", "lemma" };

typedef struct word {
    const char *field[CONLLU_COLUMNS]; /* form, and of CoNLL-U its columns */
    size_t n, begin;                   /* bytes of the form, its first byte in the text */
} word;

/* One text of the file. */
typedef struct item {
    const char *plain;
    word *word; /* NULL: not split into words */
    size_t n_words;
    const char **field; /* columns of a table, or NULL */
} item;

typedef struct reading {
    const ses_map_source *s;
    ses_map_points *p;
    item *item;
    size_t n, cap;
    const char *name[SES_MAP_MAX_COLUMNS]; /* columns of a table */
    size_t n_names, text_field;
    bool conllu, by_word;
    ses_string wanted[MAX_WANTED]; /* words to find */
    size_t n_wanted;
    bool seen[MAX_WANTED];
} reading;

static const char *copy(reading *r, const char *s, size_t n, ses_err *e)
{
    return ses_arena_strndup(&r->p->arena, s, n, e);
}

static item *add_item(reading *r, ses_err *e)
{
    if (!ses_array_reserve(&r->item, &r->cap, r->n + 1, sizeof *r->item, e)) return NULL;
    r->item[r->n] = (item){ 0 };
    return &r->item[r->n++];
}

/* ---- words ---- */

static bool is_word_byte(char c)
{
    unsigned char u = (unsigned char)c;
    return u >= 0x80 || (u >= '0' && u <= '9') || (u >= 'A' && u <= 'Z') || (u >= 'a' && u <= 'z') ||
           u == '_';
}

/* Length of the word at s: letters and digits, or one other character; 0: a space. */
static size_t word_length(const char *s)
{
    size_t n = 0;
    if ((unsigned char)*s <= ' ') return 0;
    while (is_word_byte(s[n])) n++;
    return n ? n : 1;
}

static bool split_words(reading *r, item *it, ses_err *e)
{
    for (int pass = 0; pass < 2; pass++) {
        it->n_words = 0;
        for (const char *s = it->plain; *s;) {
            size_t n = word_length(s);
            if (n && pass) {
                const char *form = copy(r, s, n, e);
                if (!form) return false;
                it->word[it->n_words] = (word){ { form }, n, (size_t)(s - it->plain) };
            }
            it->n_words += n > 0;
            s += n ? n : 1;
        }
        if (!pass) it->word = ses_arena_array(&r->p->arena, it->n_words + 1, sizeof *it->word, e);
        if (!it->word) return false;
    }
    return true;
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }

static bool same_word(ses_string a, const char *b, size_t n)
{
    if (a.n != n) return false;
    for (size_t i = 0; i < n; i++)
        if (lower(a.p[i]) != lower(b[i])) return false;
    return true;
}

static bool is_wanted(reading *r, const word *w)
{
    if (!r->n_wanted) return true;
    for (size_t i = 0; i < r->n_wanted; i++)
        if (same_word(r->wanted[i], w->field[0], w->n)) return r->seen[i] = true;
    return false;
}

static bool parse_wanted(reading *r, ses_err *e)
{
    const char *s = r->s->words;
    if (!s || !strcmp(s, "all")) return true;
    for (;;) {
        size_t n = strcspn(s, ",");
        ses_string w = ses_trim((ses_string){ s, n });
        if (!w.n) return ses_fail(e, SES_EUSAGE, "--words %s: an empty word; expected words and commas", s);
        if (r->n_wanted == MAX_WANTED)
            return ses_fail(e, SES_EUSAGE, "--words: more than %d words", MAX_WANTED);
        r->wanted[r->n_wanted++] = w;
        if (!s[n]) return true;
        s += n + 1;
    }
}

/* ---- files ---- */

static bool read_lines(reading *r, ses_err *e)
{
    ses_text_reader t = { .encoding = r->s->records.encoding };
    const char *s;
    size_t n;
    bool ok = ses_text_reader_open(&t, r->s->path, MAX_LINE, e), more = ok;
    while (more && (ok = ses_text_reader_next(&t, &s, &n, e)) && s) {
        if (!r->s->labels_only && ses_text_is_blank(s, n)) continue;
        item *it = add_item(r, e);
        more = ok = it && (it->plain = copy(r, s, n, e)) && (!r->by_word || split_words(r, it, e));
    }
    if (!ok) ses_wrap(e, "%s", r->s->path);
    ses_text_reader_free(&t);
    return ok;
}

static bool find_text_field(reading *r, ses_err *e)
{
    ses_buf names = { 0 };
    size_t best = SES_MAP_MAX_COLUMNS;
    for (size_t i = 0; i < r->n_names; i++) {
        ses_buf_appendf(&names, "%s%s", i ? ", " : "", r->name[i]);
        const char *want = r->s->column;
        char number[24];
        snprintf(number, sizeof number, "%zu", i + 1);
        bool hit = want ? !strcmp(r->name[i], want) || !strcmp(number, want)
                        : !strcmp(r->name[i], "text") || !strcmp(r->name[i], "sentence");
        if (hit && best == SES_MAP_MAX_COLUMNS) best = i;
    }
    if (best == SES_MAP_MAX_COLUMNS && !r->s->column && (r->n_names == 1 || r->s->labels_only)) best = 0;
    r->text_field = best;
    if (best == SES_MAP_MAX_COLUMNS)
        ses_fail(e, SES_EUSAGE, "%s%s; the columns are %s",
                 r->s->column ? "no column " : "--column COLUMN, the column of the texts, is required",
                 r->s->column ? r->s->column : "", names.data ? names.data : "");
    ses_buf_free(&names);
    return best != SES_MAP_MAX_COLUMNS;
}

static bool name_fields(reading *r, const ses_records *t, ses_err *e)
{
    size_t n = ses_records_field_count(t);
    r->n_names = n < SES_MAP_MAX_COLUMNS ? n : SES_MAP_MAX_COLUMNS;
    for (size_t i = 0; i < r->n_names; i++) {
        const char *name = ses_records_column_name(t, i);
        char number[24];
        snprintf(number, sizeof number, "%zu", i + 1);
        r->name[i] = copy(r, name ? name : number, strlen(name ? name : number), e);
        if (!r->name[i]) return false;
    }
    return find_text_field(r, e);
}

static bool add_row(reading *r, const ses_records *t, const ses_string *row, ses_err *e)
{
    item *it = add_item(r, e);
    if (!it) return false;
    it->field = ses_arena_array(&r->p->arena, r->n_names, sizeof *it->field, e);
    if (!it->field) return false;
    size_t n = ses_records_field_count(t);
    for (size_t i = 0; i < r->n_names; i++) {
        it->field[i] = i < n ? copy(r, row[i].p, row[i].n, e) : "";
        if (!it->field[i]) return false;
    }
    it->plain = it->field[r->text_field];
    return !r->by_word || split_words(r, it, e);
}

static bool read_table(reading *r, ses_err *e)
{
    ses_records *t = ses_records_open(r->s->path, &r->s->records, e);
    const ses_string *row;
    bool ok = t != NULL;
    if (!ok) return false;
    while ((ok = ses_records_next(t, &row, e)) && row) {
        if (!r->n && !(ok = name_fields(r, t, e))) break;
        if (!(ok = add_row(r, t, row, e))) break;
    }
    if (!ok) ses_wrap(e, "%s", r->s->path);
    ses_records_free(t);
    return ok;
}

static bool add_sentence(reading *r, const ses_conll_sentence *s, ses_err *e)
{
    item *it = add_item(r, e);
    ses_buf plain = { 0 };
    bool ok = it && (it->word = ses_arena_array(&r->p->arena, s->n, sizeof *it->word, e));
    for (size_t i = 0; ok && i < s->n; i++) {
        word *w = &it->word[it->n_words++];
        for (int c = 0; ok && c < CONLLU_COLUMNS; c++) {
            ses_string f = s->field[i * s->n_columns + (size_t)c];
            ok = (w->field[c] = copy(r, f.p, f.n, e)) != NULL;
            if (c == 0) w->n = f.n;
        }
        if (i) ses_buf_put(&plain, ' ');
        w->begin = plain.len;
        ses_buf_puts(&plain, ok ? w->field[0] : "");
    }
    ok = ok && ses_buf_ok(&plain, e) && (it->plain = copy(r, plain.data, plain.len, e));
    ses_buf_free(&plain);
    return ok;
}

static bool read_conllu(reading *r, ses_err *e)
{
    ses_conll_options o = { .encoding = r->s->records.encoding,
                            .columns = conllu_column,
                            .n_columns = CONLLU_COLUMNS,
                            .conllu = true };
    ses_conll *c = ses_conll_open(r->s->path, &o, e);
    ses_conll_sentence s = { 0 };
    bool ok = c != NULL;
    if (!ok) return false;
    while ((ok = ses_conll_next(c, &s, e)) && s.n)
        if (!(ok = add_sentence(r, &s, e))) break;
    if (!ok) ses_wrap(e, "%s", r->s->path);
    ses_conll_free(c);
    return ok;
}

static bool is_table(const ses_map_source *s)
{
    static const char *const ending[] = { ".tsv", ".csv", ".jsonl", ".ndjson", ".json" };
    if (s->column || s->records.format) return true;
    for (size_t i = 0; i < SES_LEN(ending); i++)
        if (ses_input_stream_has_suffix(s->path, ending[i])) return true;
    return false;
}

/* ---- points ---- */

static size_t candidates(reading *r, const item *it)
{
    size_t n = 0;
    if (!r->by_word) return 1;
    for (size_t i = 0; i < it->n_words; i++) n += is_wanted(r, &it->word[i]);
    return n;
}

/* The number of the k-th chosen candidate: a random one of each of p->n equal parts. */
static size_t chosen(const ses_map_points *p, const ses_map_source *s, size_t k)
{
    double part = (double)p->found / (double)p->n;
    size_t begin = (size_t)((double)k * part), end = (size_t)((double)(k + 1) * part);
    if (p->n == p->found) return k;
    float u = ses_rand_unit((ses_rng_key){ s->seed, 0, 0x736D706C }, k);
    size_t i = begin + (size_t)((double)u * (double)(end - begin));
    return i < p->found ? i : p->found - 1;
}

static void set_point(reading *r, size_t k, const item *it, size_t row, int32_t index)
{
    ses_map_points *p = r->p;
    p->point[k] = (ses_map_point){ p->n_texts - 1, index, row, index < 0 ? 0 : it->word[index].begin };
    p->label[k] = index < 0 ? it->plain : it->word[index].field[0];
    for (size_t c = 0; c < p->n_columns; c++) {
        bool of_table = c < r->n_names;
        p->column[c].value[k] = of_table ? it->field[c] : it->word[index].field[c - r->n_names];
    }
}

static bool make_columns(reading *r, ses_err *e)
{
    ses_map_points *p = r->p;
    size_t of_word = r->by_word ? r->conllu ? CONLLU_COLUMNS : 1 : 0;
    for (size_t c = 0; c < r->n_names + of_word && c < SES_MAP_MAX_COLUMNS; c++) {
        ses_map_column *to = &p->column[p->n_columns++];
        to->name = c < r->n_names ? r->name[c] : conllu_name[c - r->n_names];
        to->value = ses_arena_array(&p->arena, p->n, sizeof *to->value, e);
        if (!to->value) return false;
    }
    return true;
}

static bool add_text(reading *r, const item *it, ses_err *e)
{
    ses_map_points *p = r->p;
    ses_string *words = NULL;
    if (r->by_word) {
        words = ses_arena_array(&p->arena, it->n_words + 1, sizeof *words, e);
        if (!words) return false;
        for (size_t i = 0; i < it->n_words; i++)
            words[i] = (ses_string){ it->word[i].field[0], it->word[i].n };
    }
    p->plain[p->n_texts] = it->plain;
    p->text[p->n_texts++] = r->by_word ? (ses_input){ .words = words, .n_words = it->n_words }
                                       : (ses_input){ .text = { it->plain, strlen(it->plain) } };
    return true;
}

static bool choose_points(reading *r, ses_err *e)
{
    ses_map_points *p = r->p;
    for (size_t i = 0; i < r->n; i++) p->found += candidates(r, &r->item[i]);
    for (size_t i = 0; i < r->n_wanted; i++)
        if (!r->seen[i])
            return ses_fail(e, SES_EARG, "%s: the word '%s' does not occur", r->s->path,
                            ses_quoted_of(r->wanted[i].p, r->wanted[i].n).s);
    if (!p->found) return ses_fail(e, SES_EARG, "%s: no text; expected at least one", r->s->path);
    p->n = r->s->most > 0 && (size_t)r->s->most < p->found ? (size_t)r->s->most : p->found;
    p->of_words = r->by_word;
    p->point = ses_arena_array(&p->arena, p->n, sizeof *p->point, e);
    p->label = ses_arena_array(&p->arena, p->n, sizeof *p->label, e);
    p->text = ses_arena_array(&p->arena, r->n, sizeof *p->text, e);
    p->plain = ses_arena_array(&p->arena, r->n, sizeof *p->plain, e);
    if (!p->point || !p->label || !p->text || !p->plain || !make_columns(r, e)) return false;
    size_t k = 0, at = 0, next = chosen(p, r->s, 0);
    for (size_t i = 0; i < r->n && k < p->n; i++) {
        const item *it = &r->item[i];
        bool used = false;
        for (size_t w = 0; w < (r->by_word ? it->n_words : 1) && k < p->n; w++) {
            if (r->by_word && !is_wanted(r, &it->word[w])) continue;
            if (at++ != next) continue;
            if (!used && !add_text(r, it, e)) return false;
            used = true;
            set_point(r, k++, it, at - 1, r->by_word ? (int32_t)w : -1);
            next = k < p->n ? chosen(p, r->s, k) : 0;
        }
    }
    return true;
}

bool ses_map_points_read(ses_map_points *p, const ses_map_source *s, ses_err *e)
{
    *p = (ses_map_points){ 0 };
    reading r = { .s = s, .p = p, .conllu = ses_input_stream_has_suffix(s->path, ".conllu") };
    r.by_word = !s->texts && !s->labels_only && (r.conllu || s->words);
    bool ok = parse_wanted(&r, e) && (r.conllu      ? read_conllu(&r, e)
                                      : is_table(s) ? read_table(&r, e)
                                                    : read_lines(&r, e));
    ok = ok && choose_points(&r, e);
    ses_free(r.item);
    if (!ok) ses_map_points_free(p);
    return ok;
}

bool ses_map_points_number(ses_map_points *p, const ses_map_source *s, size_t n, ses_err *e)
{
    *p = (ses_map_points){ .n = s->most > 0 && (size_t)s->most < n ? (size_t)s->most : n, .found = n };
    p->label = ses_arena_array(&p->arena, p->n, sizeof *p->label, e);
    p->point = p->label ? ses_arena_array(&p->arena, p->n, sizeof *p->point, e) : NULL;
    bool ok = p->point != NULL;
    for (size_t k = 0; ok && k < p->n; k++) {
        char number[24];
        p->point[k] = (ses_map_point){ .word = -1, .row = chosen(p, s, k) };
        snprintf(number, sizeof number, "%zu", p->point[k].row + 1);
        ok = (p->label[k] = ses_arena_strndup(&p->arena, number, strlen(number), e)) != NULL;
    }
    if (!ok) ses_map_points_free(p);
    return ok;
}

/* "101-1000" for the 500th word. */
static const char *rank_group(size_t i)
{
    static const char *const group[] = { "1-10", "11-100", "101-1000", "1001-10000" };
    size_t k = 0;
    for (size_t end = 10; k < SES_LEN(group) && i >= end; end *= 10) k++;
    return k < SES_LEN(group) ? group[k] : "10001-";
}

bool ses_map_points_words(ses_map_points *p, const ses_map_source *s, const ses_vectors *v, ses_err *e)
{
    size_t found = (size_t)ses_vectors_count(v);
    ses_buf text = { 0 };
    *p = (ses_map_points){ .n = s->most > 0 && (size_t)s->most < found ? (size_t)s->most : found,
                           .found = found,
                           .n_columns = 1 };
    p->label = ses_arena_array(&p->arena, p->n, sizeof *p->label, e);
    p->point = p->label ? ses_arena_array(&p->arena, p->n, sizeof *p->point, e) : NULL;
    p->column[0].name = "rank";
    p->column[0].value = p->point ? ses_arena_array(&p->arena, p->n, sizeof *p->column->value, e) : NULL;
    bool ok = p->column[0].value != NULL;
    for (size_t i = 0; ok && i < p->n; i++) {
        ses_string w = ses_vectors_word(v, (int64_t)i);
        p->point[i] = (ses_map_point){ .word = -1, .row = i };
        p->column[0].value[i] = rank_group(i);
        text.len = 0;
        ses_utf8_replace_invalid(&text, w.p, w.n);
        ok = ses_buf_ok(&text, e) && (p->label[i] = ses_arena_strndup(&p->arena, text.data, text.len, e));
    }
    ses_buf_free(&text);
    if (!ok) ses_map_points_free(p);
    return ok;
}

void ses_map_points_free(ses_map_points *p)
{
    ses_arena_free(&p->arena);
    *p = (ses_map_points){ 0 };
}

bool ses_map_points_column(const ses_map_points *p, const char *name, size_t *index, ses_err *e)
{
    ses_buf names = { 0 };
    for (size_t c = 0; c < p->n_columns; c++) {
        if (!strcmp(p->column[c].name, name)) {
            ses_buf_free(&names);
            return *index = c, true;
        }
        ses_buf_appendf(&names, "%s%s", c ? ", " : "", p->column[c].name);
    }
    ses_fail(e, SES_EUSAGE, "--color %s: no such column; %s%s", ses_quoted_of(name, strlen(name)).s,
             p->n_columns ? "the columns are " : "the input has no columns", names.data ? names.data : "");
    ses_buf_free(&names);
    return false;
}
