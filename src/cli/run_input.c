#define _POSIX_C_SOURCE 200809L
#include "run_input.h"

#include "base/alloc.h"
#include "base/str.h"
#include "sesame/json.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

void ses_lines_clear(ses_lines *l) { l->seqs = l->tokens = 0; }

void ses_lines_free(ses_lines *l)
{
    ses_free(l->origin);
    ses_free(l->cu);
    ses_free(l->ids);
    ses_free(l->segments);
    *l = (ses_lines){ 0 };
}

const char *ses_origin_text(char *buf, size_t size, const ses_origin *o)
{
    if (!o->file)
        snprintf(buf, size, "--ids: sequence %" PRId64, o->line);
    else
        snprintf(buf, size, "%s: line %" PRId64, strcmp(o->file, "-") != 0 ? o->file : "standard input",
                 o->line);
    return buf;
}

static bool grow(void **p, size_t item, size_t n, ses_err *e)
{
    void *more = ses_realloc_array(*p, n, item, e);
    if (!more) return false;
    *p = more;
    return true;
}

static bool room_for_seq(ses_lines *l, ses_err *e)
{
    if ((size_t)l->seqs < l->seq_room) return true;
    size_t n = l->seq_room ? 2 * l->seq_room : 64;
    void *origin = l->origin, *cu = l->cu;
    bool ok = grow(&origin, sizeof *l->origin, n, e);
    l->origin = origin;
    ok = ok && grow(&cu, sizeof *l->cu, n + 1, e);
    l->cu = cu;
    if (!ok) return false;
    if (!l->seq_room) l->cu[0] = 0;
    l->seq_room = n;
    return true;
}

static bool room_for_token(ses_lines *l, ses_err *e)
{
    if ((size_t)l->tokens < l->token_room) return true;
    size_t n = l->token_room ? 2 * l->token_room : 1024;
    void *ids = l->ids, *segments = l->segments;
    bool ok = grow(&ids, sizeof *l->ids, n, e);
    l->ids = ids;
    ok = ok && grow(&segments, sizeof *l->segments, n, e);
    l->segments = segments;
    if (ok) l->token_room = n;
    return ok;
}

/* ---- characters ---- */

static int get(ses_reader *r)
{
    if (!r->f) return *r->text ? (unsigned char)*r->text++ : EOF;
    int c = getc_unlocked(r->f);
    r->bytes += c != EOF;
    return c;
}

static void unget(ses_reader *r, int c)
{
    if (c == EOF) return;
    if (!r->f) {
        r->text--;
    } else {
        ungetc(c, r->f);
        r->bytes--;
    }
}

static bool ends_line(int c) { return c == '\n' || c == EOF; }
static bool is_blank(int c) { return c == ' ' || c == '\t' || c == ',' || c == '\r'; }

/* The next word of the line up to a blank, '|' or the end, cut to what a message needs. */
static size_t get_word(ses_reader *r, char *word, size_t size)
{
    size_t n = 0;
    int c;
    while (c = get(r), !ends_line(c) && !is_blank(c) && c != '|')
        if (n + 1 < size) word[n++] = (char)c;
    unget(r, c);
    word[n] = 0;
    return n;
}

/* ---- lines ---- */

static bool parse_id(const char *word, size_t n, int64_t *id)
{
    size_t at = n && word[0] == '-';
    if (at == n) return false;
    for (*id = 0; at < n; at++) {
        if (word[at] < '0' || word[at] > '9') return false;
        if (*id < INT64_MAX / 100) *id = 10 * *id + (word[at] - '0'); /* absurd stays absurd */
    }
    if (word[0] == '-') *id = -*id;
    return true;
}

static bool add_token(ses_lines *l, int64_t begin, const char *word, size_t n, int64_t segment,
                      const ses_limits *limit, ses_err *e)
{
    int64_t id, place = l->tokens - begin;
    if (!parse_id(word, n, &id))
        return ses_fail(e, SES_EFORMAT,
                        "\"%s\" at place %" PRId64 " is not a token id, expected a whole number",
                        ses_quoted_of(word, n).s, place);
    if (id < 0 || id >= limit->vocab)
        return ses_fail(e, SES_EARG, "token id %s at place %" PRId64 ", expected 0 to %" PRId64, word, place,
                        limit->vocab - 1);
    if (place == limit->tokens)
        return ses_fail(e, SES_EARG, "more than %" PRId64 " tokens, the longest sequence the model takes",
                        place);
    if (!room_for_token(l, e)) return false;
    l->ids[l->tokens] = (int32_t)id;
    l->segments[l->tokens++] = (int32_t)segment;
    return true;
}

static bool next_segment(const ses_lines *l, int64_t begin, int64_t *segment, const ses_limits *limit,
                         ses_err *e)
{
    if (l->tokens == begin || l->segments[l->tokens - 1] != *segment)
        return ses_fail(e, SES_EFORMAT, "no token before '|' number %" PRId64, *segment + 1);
    if (++*segment < limit->segments) return true;
    return ses_fail(e, SES_EARG, "'|' begins segment %" PRId64 ", expected at most %" PRId64 " segments",
                    *segment + 1, limit->segments);
}

/* ---- lines of JSON, as `sesame tokenize --json` writes them ---- */

/* The rest of the line; whatever it says, it is not held beyond MAX_LINE bytes. */
static bool get_line(ses_reader *r, ses_buf *text, ses_err *e)
{
    enum { MAX_LINE = 64 << 20 };
    text->limit = MAX_LINE;
    int c;
    while (c = get(r), !ends_line(c))
        if (!ses_buf_put(text, (char)c)) return ses_buf_ok(text, e);
    return true;
}

static bool add_json_token(ses_lines *l, int64_t begin, const ses_json *id, const ses_json *type,
                           const ses_limits *limit, ses_err *e)
{
    char word[32];
    int64_t value, segment = 0, place = l->tokens - begin;
    if (!ses_json_int(id, &value))
        return ses_fail(e, SES_EFORMAT, "\"ids\" at place %" PRId64 " is %s, expected a token id", place,
                        ses_json_type_name(ses_json_type_of(id)));
    if (type && (!ses_json_int(type, &segment) || segment < 0 || segment >= limit->segments))
        return ses_fail(e, SES_EARG,
                        "\"type_ids\" at place %" PRId64 " is not a segment, expected 0 to %" PRId64, place,
                        limit->segments - 1);
    snprintf(word, sizeof word, "%" PRId64, value);
    return add_token(l, begin, word, strlen(word), segment, limit, e);
}

static bool add_object(const ses_json *o, const ses_limits *limit, ses_lines *l, ses_err *e)
{
    const ses_json *ids = ses_json_get(o, "ids"), *types = ses_json_get(o, "type_ids");
    int64_t begin = l->tokens;
    size_t n = ses_json_len(ids);
    if (ses_json_type_of(ids) != SES_JSON_ARRAY)
        return ses_fail(e, SES_EFORMAT, "no array \"ids\" in the object");
    if (!n) return ses_fail(e, SES_EFORMAT, "\"ids\" is empty, expected token ids");
    if (ses_json_type_of(types) != SES_JSON_NULL && ses_json_len(types) != n)
        return ses_fail(e, SES_EFORMAT, "\"type_ids\" has %zu entries for %zu ids", ses_json_len(types), n);
    for (size_t i = 0; i < n; i++)
        if (!add_json_token(l, begin, ses_json_at(ids, i), ses_json_len(types) ? ses_json_at(types, i) : NULL,
                            limit, e))
            return false;
    return true;
}

static bool parse_json(ses_reader *r, const ses_limits *limit, ses_lines *l, ses_err *e)
{
    ses_buf text = { 0 };
    bool ok = get_line(r, &text, e);
    ses_json_doc *d = ok ? ses_json_parse(text.data, text.len, e) : NULL;
    ok = d && add_object(ses_json_root(d), limit, l, e);
    ses_json_free(d);
    ses_buf_free(&text);
    return ok;
}

/* The line's tokens, up to its end or the first thing wrong in it. */
static bool parse_line(ses_reader *r, const ses_limits *limit, ses_lines *l, ses_err *e)
{
    int64_t begin = l->tokens, segment = 0;
    char word[64];
    int c;
    while (c = get(r), !ends_line(c)) {
        if (is_blank(c)) continue;
        if (c == '|') {
            if (!next_segment(l, begin, &segment, limit, e)) return false;
            continue;
        }
        unget(r, c);
        if (c == '{' && l->tokens == begin && !segment) return parse_json(r, limit, l, e);
        size_t n = get_word(r, word, sizeof word);
        if (!add_token(l, begin, word, n, segment, limit, e)) return false;
    }
    if (l->tokens == begin) return ses_fail(e, SES_EFORMAT, "empty, expected token ids");
    if (l->segments[l->tokens - 1] != segment) return ses_fail(e, SES_EFORMAT, "no token after the last '|'");
    return true;
}

/* ---- sources ---- */

static bool read_failed(const ses_reader *r, ses_err *e)
{
    return ses_fail(e, SES_EIO, "%s: %s", strcmp(r->name, "-") != 0 ? r->name : "standard input",
                    strerror(errno));
}

void ses_reader_close(ses_reader *r)
{
    if (r->f && r->f != stdin) fclose(r->f);
    r->f = NULL;
}

/* Stand before the next line there is. */
static ses_read find_line(ses_reader *r, ses_err *e)
{
    for (;;) {
        if (!r->f && r->next_given < r->given.n) {
            r->text = r->given.item[r->next_given++];
            r->line++;
            return SES_READ_ONE;
        }
        if (r->f) {
            errno = 0;
            int c = get(r);
            if (c != EOF) {
                unget(r, c);
                r->line++;
                return SES_READ_ONE;
            }
            if (ferror(r->f)) return read_failed(r, e), SES_READ_ERROR;
            ses_reader_close(r);
        }
        if (!*r->file) return SES_READ_END;
        r->name = *r->file++;
        r->line = 0;
        r->f = strcmp(r->name, "-") != 0 ? fopen(r->name, "r") : stdin;
        if (!r->f) return read_failed(r, e), SES_READ_ERROR;
    }
}

ses_read ses_reader_next(ses_reader *r, const ses_limits *limit, ses_lines *l, ses_err *e)
{
    ses_read found = find_line(r, e);
    if (found != SES_READ_ONE) return found;
    int64_t before = l->tokens;
    ses_origin o = { r->f ? r->name : NULL, r->line, ++r->number };
    char where[256];
    if (!room_for_seq(l, e)) return SES_READ_ERROR;
    bool ok = parse_line(r, limit, l, e);
    if (r->f && ferror(r->f)) ok = read_failed(r, e);
    if (!ok) {
        ses_wrap(e, "%s", ses_origin_text(where, sizeof where, &o));
        l->tokens = before;
        return SES_READ_ERROR;
    }
    l->origin[l->seqs++] = o;
    l->cu[l->seqs] = (int32_t)l->tokens;
    return SES_READ_ONE;
}
