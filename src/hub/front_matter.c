/* Parses front matter into JSON. */
#include "front_matter.h"

#include "base/alloc.h"
#include "base/json/json_helpers.h"
#include "base/str.h"
#include "base/unicode/utf8.h"

#include <string.h>

typedef struct line {
    ses_string text; /* without indentation and line end */
    int indent;
    size_t number; /* from 1 */
} line;

typedef struct parser {
    line *line;
    size_t n, cap, at;
    ses_json_writer *w;
    ses_buf scalar;
    ses_err *e;
} parser;

static bool fail(const parser *p, const char *what)
{
    size_t i = p->at < p->n ? p->at : p->n ? p->n - 1 : 0;
    return ses_fail(p->e, SES_EFORMAT, "front matter, line %zu: %s", p->n ? p->line[i].number : 1, what);
}

/* ---- lines ---- */

static bool is_blank(ses_string s) { return !s.n || s.p[0] == '#'; }

/* One line from `at` on; *next: the following one. */
static ses_string line_at(const char *text, size_t n, size_t at, size_t *next)
{
    const char *end = memchr(text + at, '\n', n - at);
    size_t len = end ? (size_t)(end - (text + at)) : n - at;
    *next = at + len + (end != NULL);
    if (len && text[at + len - 1] == '\r') len--;
    return (ses_string){ text + at, len };
}

static bool is_fence(ses_string s)
{
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t')) s.n--;
    return ses_equal(s.p, s.n, "---");
}

static bool add_line(parser *p, ses_string s, size_t number)
{
    size_t indent = 0;
    while (indent < s.n && s.p[indent] == ' ') indent++;
    ses_string text = { s.p + indent, s.n - indent };
    while (text.n && (text.p[text.n - 1] == ' ' || text.p[text.n - 1] == '\t')) text.n--;
    if (!ses_array_reserve(&p->line, &p->cap, p->n + 1, sizeof *p->line, p->e)) return false;
    p->line[p->n++] = (line){ text, (int)(indent < 1000 ? indent : 1000), number };
    if (text.n && text.p[0] == '\t') return p->at = p->n - 1, fail(p, "a tab in the indentation");
    return true;
}

/* Skips blank lines and comments; false: no line is left. */
static bool more(parser *p)
{
    while (p->at < p->n && is_blank(p->line[p->at].text)) p->at++;
    return p->at < p->n;
}

/* ---- scalars ---- */

static bool is_item(ses_string s) { return s.n && s.p[0] == '-' && (s.n == 1 || s.p[1] == ' '); }

/* Bytes of a quoted scalar with its quotes; 0: it does not end here. */
static size_t quoted_length(ses_string s)
{
    for (size_t i = 1; i < s.n; i++) {
        if (s.p[0] == '"' && s.p[i] == '\\')
            i++;
        else if (s.p[i] == s.p[0]) {
            if (s.p[0] == '"' || i + 1 >= s.n || s.p[i + 1] != '\'') return i + 1;
            i++; /* '' is a quote */
        }
    }
    return 0;
}

/* The position of the ':' after the key of a mapping; s.n: this is not an entry of a mapping. */
static size_t key_end(ses_string s)
{
    if (!s.n || strchr("[{#&*!|>%@`", s.p[0]) || is_item(s)) return s.n;
    size_t i = 0;
    if (s.p[0] == '"' || s.p[0] == '\'') {
        i = quoted_length(s);
        return i && i < s.n && s.p[i] == ':' && (i + 1 == s.n || s.p[i + 1] == ' ') ? i : s.n;
    }
    for (; i < s.n; i++) {
        if (s.p[i] == ':' && (i + 1 == s.n || s.p[i + 1] == ' ' || s.p[i + 1] == '\t')) return i;
        if (s.p[i] == '#' && i && s.p[i - 1] == ' ') return s.n;
    }
    return s.n;
}

/* Removes a comment: '#' after a space. */
static ses_string cut_comment(ses_string s)
{
    for (size_t i = 1; i < s.n; i++)
        if (s.p[i] == '#' && (s.p[i - 1] == ' ' || s.p[i - 1] == '\t')) s.n = i;
    return ses_trim(s);
}

static void put_escape(ses_buf *b, char c)
{
    static const char from[] = "ntr0", to[] = "\n\t\r ";
    const char *at = memchr(from, c, sizeof from - 1);
    ses_buf_put(b, at ? to[at - from] : c);
}

/* The contents of a quoted scalar, into p->scalar. */
static void unquote(parser *p, ses_string s)
{
    p->scalar.len = 0;
    for (size_t i = 1; i + 1 < s.n; i++) {
        if (s.p[0] == '"' && s.p[i] == '\\' && i + 2 < s.n)
            put_escape(&p->scalar, s.p[++i]);
        else if (s.p[0] == '\'' && s.p[i] == '\'')
            ses_buf_put(&p->scalar, s.p[i++]);
        else
            ses_buf_put(&p->scalar, s.p[i]);
    }
}

static void put_plain(parser *p, ses_string s)
{
    s = ses_trim(s);
    if (!s.n || ses_equal(s.p, s.n, "~") || ses_equal(s.p, s.n, "null"))
        ses_json_put_null(p->w);
    else
        ses_json_put_stringn(p->w, s.p, s.n);
}

static bool put_scalar(parser *p, ses_string s)
{
    if (!s.n || (s.p[0] != '"' && s.p[0] != '\'')) {
        if (s.n && strchr("&*!%@`", s.p[0])) return fail(p, "anchors, aliases and tags are not supported");
        put_plain(p, s);
        return true;
    }
    size_t n = quoted_length(s);
    if (!n) return fail(p, "a quote does not end");
    if (cut_comment((ses_string){ s.p + n, s.n - n }).n && s.p[n] != ' ')
        return fail(p, "text after a quote");
    unquote(p, (ses_string){ s.p, n });
    ses_json_put_stringn(p->w, p->scalar.len ? p->scalar.data : "", p->scalar.len);
    return ses_buf_ok(&p->scalar, p->e);
}

/* ---- flow: [a, b], {a: b} ---- */

static void skip_spaces(ses_string s, size_t *at)
{
    while (*at < s.n && (s.p[*at] == ' ' || s.p[*at] == '\t')) ++*at;
}

/* A scalar inside of brackets. */
static ses_string flow_scalar(ses_string s, size_t *at, bool key)
{
    size_t begin = *at;
    if (*at < s.n && (s.p[*at] == '"' || s.p[*at] == '\'')) {
        size_t n = quoted_length((ses_string){ s.p + *at, s.n - *at });
        *at += n ? n : s.n - *at;
    } else {
        while (*at < s.n && !strchr(",[]{}", s.p[*at]) && !(key && s.p[*at] == ':')) ++*at;
    }
    return ses_trim((ses_string){ s.p + begin, *at - begin });
}

static void put_key(parser *p, ses_string key)
{
    if (key.n && (key.p[0] == '"' || key.p[0] == '\'')) {
        unquote(p, key);
        key = (ses_string){ p->scalar.len ? p->scalar.data : "", p->scalar.len };
    }
    ses_json_put_keyn(p->w, key.p, key.n);
}

static bool parse_flow(parser *p, ses_string s, size_t *at, int depth)
{
    char close = s.p[*at] == '[' ? ']' : '}';
    if (depth > SES_FRONT_MATTER_DEPTH) return fail(p, "more than 16 levels");
    if (close == ']')
        ses_json_begin_array(p->w);
    else
        ses_json_begin_object(p->w);
    for (++*at;;) {
        skip_spaces(s, at);
        if (*at < s.n && s.p[*at] == close) break;
        if (close == '}') {
            put_key(p, flow_scalar(s, at, true));
            skip_spaces(s, at);
            if (*at >= s.n || s.p[*at] != ':') return fail(p, "':' expected in {...}");
            ++*at;
            skip_spaces(s, at);
        }
        if (*at < s.n && (s.p[*at] == '[' || s.p[*at] == '{')) {
            if (!parse_flow(p, s, at, depth + 1)) return false;
        } else if (!put_scalar(p, flow_scalar(s, at, false))) {
            return false;
        }
        skip_spaces(s, at);
        if (*at < s.n && s.p[*at] == ',')
            ++*at;
        else if (*at >= s.n || s.p[*at] != close)
            return fail(p, close == ']' ? "',' or ']' expected" : "',' or '}' expected");
    }
    ++*at;
    if (close == ']')
        ses_json_end_array(p->w);
    else
        ses_json_end_object(p->w);
    return true;
}

/* ---- blocks ---- */

static bool parse_node(parser *p, int indent, int depth);

/* "|" and ">": the lines that are indented deeper than `indent`. */
static bool parse_literal(parser *p, char kind, int indent)
{
    p->scalar.len = 0;
    int own = -1;
    for (; p->at < p->n; p->at++) {
        const line *l = &p->line[p->at];
        if (l->text.n && l->indent <= indent) break;
        if (own < 0 && l->text.n) own = l->indent;
        if (p->scalar.len) ses_buf_put(&p->scalar, kind == '|' || !l->text.n ? '\n' : ' ');
        for (int i = own; l->text.n && i < l->indent; i++) ses_buf_put(&p->scalar, ' ');
        ses_buf_append(&p->scalar, l->text.p, l->text.n);
    }
    ses_string s = ses_trim((ses_string){ p->scalar.data, p->scalar.len });
    ses_json_put_stringn(p->w, s.n ? s.p : "", s.n);
    return ses_buf_ok(&p->scalar, p->e);
}

/* A value that begins on the line of its key or dash, and continues on deeper lines. */
static bool parse_inline(parser *p, ses_string s, int indent, int depth)
{
    if (s.p[0] == '|' || s.p[0] == '>') {
        p->at++;
        return parse_literal(p, s.p[0], indent);
    }
    ses_buf joined = { 0 };
    bool quoted = s.p[0] == '"' || s.p[0] == '\'', flow = s.p[0] == '[' || s.p[0] == '{';
    ses_string first = quoted ? s : cut_comment(s);
    ses_buf_append(&joined, first.p, first.n);
    size_t start = p->at++;
    while (more(p) && p->line[p->at].indent > indent) {
        bool is_key = key_end(p->line[p->at].text) < p->line[p->at].text.n;
        if (is_key && !quoted && !flow) return ses_buf_free(&joined), fail(p, "wrong indentation");
        ses_string next = quoted ? p->line[p->at].text : cut_comment(p->line[p->at].text);
        ses_buf_put(&joined, ' ');
        ses_buf_append(&joined, next.p, next.n);
        p->at++;
    }
    size_t after = p->at, at = 0;
    ses_string all = { joined.data, joined.len };
    p->at = start; /* for messages */
    bool ok = ses_buf_ok(&joined, p->e) && (flow ? parse_flow(p, all, &at, depth) : put_scalar(p, all));
    if (ok && flow && cut_comment((ses_string){ all.p + at, all.n - at }).n)
        ok = fail(p, "text after a bracket");
    p->at = after;
    ses_buf_free(&joined);
    return ok;
}

/* The value below a key or dash without one on its line. A sequence may have the indentation of its key. */
static bool parse_below(parser *p, int indent, bool after_key, int depth)
{
    p->at++;
    if (more(p)) {
        const line *l = &p->line[p->at];
        if (l->indent > indent || (after_key && l->indent == indent && is_item(l->text)))
            return parse_node(p, l->indent, depth + 1);
    }
    ses_json_put_null(p->w);
    return true;
}

static bool parse_sequence(parser *p, int indent, int depth)
{
    ses_json_begin_array(p->w);
    while (more(p) && p->line[p->at].indent == indent && is_item(p->line[p->at].text)) {
        line *l = &p->line[p->at];
        size_t skip = 1;
        while (skip < l->text.n && l->text.p[skip] == ' ') skip++;
        ses_string rest = { l->text.p + skip, l->text.n - skip };
        bool ok;
        if (is_blank(rest)) {
            ok = parse_below(p, indent, false, depth);
        } else if (is_item(rest) || key_end(rest) < rest.n) { /* a block begins on this line */
            l->text = rest;
            l->indent = indent + (int)skip;
            ok = parse_node(p, l->indent, depth + 1);
        } else {
            ok = parse_inline(p, rest, indent, depth + 1);
        }
        if (!ok) return false;
    }
    ses_json_end_array(p->w);
    return true;
}

static bool parse_mapping(parser *p, int indent, int depth)
{
    ses_json_begin_object(p->w);
    while (more(p) && p->line[p->at].indent == indent && !is_item(p->line[p->at].text)) {
        ses_string s = p->line[p->at].text;
        size_t end = key_end(s);
        if (end == s.n) return fail(p, "KEY: VALUE expected");
        put_key(p, ses_trim((ses_string){ s.p, end }));
        ses_string rest = ses_trim((ses_string){ s.p + end + 1, s.n - end - 1 });
        if (is_blank(rest) ? !parse_below(p, indent, true, depth) : !parse_inline(p, rest, indent, depth + 1))
            return false;
    }
    ses_json_end_object(p->w);
    return true;
}

static bool parse_node(parser *p, int indent, int depth)
{
    if (depth > SES_FRONT_MATTER_DEPTH) return fail(p, "more than 16 levels");
    ses_string s = p->line[p->at].text;
    if (is_item(s)) return parse_sequence(p, indent, depth);
    if (key_end(s) < s.n) return parse_mapping(p, indent, depth);
    return parse_inline(p, s, indent - 1, depth);
}

/* ---- the whole ---- */

/* Reads the lines between the fences; false without an error: there are none. */
static bool read_lines(parser *p, const char *text, size_t n, size_t *body)
{
    size_t at = 0, next;
    if (n >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3)) at = 3;
    if (!is_fence(line_at(text, n, at, &next))) return false;
    for (size_t number = 2; at = next, at < n; number++) {
        ses_string s = line_at(text, n, at, &next);
        *body = next;
        if (is_fence(s)) return true;
        if (!add_line(p, s, number)) return false;
    }
    return ses_fail(p->e, SES_EFORMAT, "front matter: the line \"---\" at its end is missing");
}

static bool parse_all(parser *p)
{
    if (!more(p)) {
        ses_json_begin_object(p->w);
        ses_json_end_object(p->w);
        return true;
    }
    int indent = p->line[p->at].indent;
    if (is_item(p->line[p->at].text)) return fail(p, "KEY: VALUE expected");
    if (!parse_mapping(p, indent, 0)) return false;
    return !more(p) || fail(p, "wrong indentation");
}

ses_json_doc *ses_front_matter_parse(const char *text, size_t n, size_t *body, ses_err *e)
{
    ses_err bad = { 0 };
    parser p = { .e = &bad };
    ses_json_doc *doc = NULL;
    *body = 0;
    if (n > SES_FRONT_MATTER_MAX) n = SES_FRONT_MATTER_MAX;
    bool found = read_lines(&p, text, n, body);
    if (found && ses_utf8_valid(text, *body) != *body)
        ses_fail(&bad, SES_EFORMAT, "front matter: invalid UTF-8");
    if (found && !bad.code && (p.w = ses_json_writer_new(-1, &bad)) && parse_all(&p)) {
        doc = ses_json_writer_parse(p.w, &bad);
        p.w = NULL;
        if (!doc) ses_wrap(&bad, "front matter");
    }
    ses_json_writer_free(p.w);
    ses_buf_free(&p.scalar);
    ses_free(p.line);
    if (bad.code) ses_fail(e, bad.code, "%s", bad.msg);
    return doc;
}
