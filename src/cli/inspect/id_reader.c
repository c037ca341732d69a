/* Parses sequences of token ids: plain lines and JSON objects. */
#include "id_reader.h"

#include "base/alloc.h"
#include "base/str.h"
#include "io/text_reader.h"
#include "sesame/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- batch ---- */

void ses_id_batch_clear(ses_id_batch *l)
{
    ses_batch_builder_clear(&l->in);
    l->seqs = 0;
}

void ses_id_batch_truncate(ses_id_batch *l, int64_t seqs)
{
    ses_batch_builder *b = &l->in;
    size_t ends = (size_t)seqs + 1;
    if (!seqs) {
        ses_id_batch_clear(l);
        return;
    }
    l->seqs = seqs;
    b->cu_seqlens.n = ends;
    b->ids.n = b->segments.n = (size_t)b->cu_seqlens.p[seqs];
    if (!b->target_cu_seqlens.n) return;
    b->target_cu_seqlens.n = ends;
    b->target_ids.n = (size_t)b->target_cu_seqlens.p[seqs];
}

void ses_id_batch_free(ses_id_batch *l)
{
    ses_batch_builder_free(&l->in);
    ses_free(l->origin);
    *l = (ses_id_batch){ 0 };
}

const char *ses_id_origin_text(char *buf, size_t size, const ses_id_origin *o)
{
    if (!o->file)
        snprintf(buf, size, "--ids: sequence %" PRId64, o->line);
    else
        snprintf(buf, size, "%s: line %" PRId64, strcmp(o->file, "-") != 0 ? o->file : "standard input",
                 o->line);
    return buf;
}

/* ---- one line ---- */

typedef struct line {
    ses_id_batch *to;
    const ses_id_limits *limit;
    size_t begin, target_begin; /* its start in `to` */
    int64_t segment;
    bool target; /* a > was read */
} line;

/* The ids that the next token of the line is appended to; *position: its index in the line. */
static ses_ints *destination(const line *l, int64_t *position)
{
    ses_ints *x = l->target ? &l->to->in.target_ids : &l->to->in.ids;
    *position = (int64_t)(x->n - (l->target ? l->target_begin : l->begin));
    return x;
}

static bool add_id(line *l, int64_t id, const char *word, ses_err *e)
{
    int64_t position;
    ses_ints *x = destination(l, &position);
    if (id < 0 || id >= l->limit->vocab)
        return ses_fail(e, SES_EARG, "token id %s at position %" PRId64 ", expected 0 to %" PRId64, word,
                        position, l->limit->vocab - 1);
    if (position == l->limit->tokens)
        return ses_fail(e, SES_EARG, "more than %" PRId64 " tokens, the maximum sequence length of the model",
                        position);
    return ses_ints_push(x, (int32_t)id, e) &&
           (l->target || ses_ints_push(&l->to->in.segments, (int32_t)l->segment, e));
}

static bool parse_id(const char *word, size_t n, int64_t *id)
{
    size_t at = n && word[0] == '-';
    if (at == n) return false;
    for (*id = 0; at < n; at++) {
        if (word[at] < '0' || word[at] > '9') return false;
        if (*id < INT64_MAX / 100)
            *id = 10 * *id + (word[at] - '0'); /* saturates: out of range in any case */
    }
    if (word[0] == '-') *id = -*id;
    return true;
}

static bool add_word(line *l, const char *word, size_t n, ses_err *e)
{
    int64_t id, position;
    destination(l, &position);
    if (parse_id(word, n, &id)) return add_id(l, id, word, e);
    return ses_fail(e, SES_EFORMAT,
                    "\"%s\" at position %" PRId64 " is not a token id, expected a whole number",
                    ses_quoted_of(word, n).s, position);
}

static bool segment_is_empty(const line *l)
{
    const ses_ints *s = &l->to->in.segments;
    return s->n == l->begin || s->p[s->n - 1] != l->segment;
}

/* Handles '|' and '>'. A segment may be empty: XLM uses the segment as language. */
static bool begin_part(line *l, int mark, ses_err *e)
{
    if (l->target) return ses_fail(e, SES_EFORMAT, "'%c' after '>'", mark);
    if (mark == '>') {
        l->target = true;
        return l->limit->target ||
               ses_fail(e, SES_EARG, "'>' starts the decoder input, but the model has no such decoder");
    }
    if (++l->segment < l->limit->segments) return true;
    return ses_fail(e, SES_EARG, "'|' begins segment %" PRId64 ", expected at most %" PRId64 " segment%s",
                    l->segment + 1, l->limit->segments, l->limit->segments == 1 ? "" : "s");
}

static bool end_line(line *l, ses_err *e)
{
    if (l->to->in.ids.n == l->begin) return ses_fail(e, SES_EFORMAT, "empty, expected token ids");
    if (segment_is_empty(l)) return ses_fail(e, SES_EFORMAT, "no token after the last '|'");
    if (!l->limit->target || l->to->in.target_ids.n > l->target_begin) return true;
    if (l->target) return ses_fail(e, SES_EFORMAT, "no token after '>'");
    if (l->limit->start >= 0) return ses_ints_push(&l->to->in.target_ids, (int32_t)l->limit->start, e);
    return ses_fail(e, SES_EFORMAT, "no decoder input, expected token ids after '>'");
}

/* ---- characters ---- */

/* Fills the buffer; false: end of the file or an error. */
static bool fill(ses_id_reader *r)
{
    uint64_t before = ses_input_stream_consumed(r->in);
    r->at = r->have = 0;
    if (r->failed.code || !ses_input_stream_read(r->in, r->buf, sizeof r->buf, &r->have, &r->failed))
        return false;
    r->bytes += (int64_t)(ses_input_stream_consumed(r->in) - before);
    return r->have > 0;
}

static int get(ses_id_reader *r)
{
    if (!r->in) return *r->text ? (unsigned char)*r->text++ : EOF;
    return r->at < r->have || fill(r) ? r->buf[r->at++] : EOF;
}

/* Takes back the last character; a buffer is filled only before it is read. */
static void unget(ses_id_reader *r, int c)
{
    if (c == EOF) return;
    if (!r->in)
        r->text--;
    else
        r->at--;
}

static bool ends_line(int c) { return c == '\n' || c == EOF; }
static bool is_blank(int c) { return c == ' ' || c == '\t' || c == ',' || c == '\r'; }

/* Reads a word up to a space, a mark or the line end, truncated to the size needed for messages. */
static size_t get_word(ses_id_reader *r, char *word, size_t size)
{
    size_t n = 0;
    int c;
    while (c = get(r), !ends_line(c) && !is_blank(c) && c != '|' && c != '>')
        if (n + 1 < size) word[n++] = (char)c;
    unget(r, c);
    word[n] = 0;
    return n;
}

/* ---- JSON lines in the format of `sesame tokenize --json` ---- */

/* Reads the rest of the line, at most MAX_LINE bytes. */
static bool get_line(ses_id_reader *r, ses_buf *text, ses_err *e)
{
    enum { MAX_LINE = 64 << 20 };
    text->limit = MAX_LINE;
    int c;
    while (c = get(r), !ends_line(c))
        if (!ses_buf_put(text, (char)c)) return ses_buf_ok(text, e);
    return true;
}

static bool add_json_id(line *l, const ses_json *id, const char *key, ses_err *e)
{
    char word[32];
    int64_t value, position;
    destination(l, &position);
    if (!ses_json_int(id, &value))
        return ses_fail(e, SES_EFORMAT, "\"%s\" at position %" PRId64 " is %s, expected a token id", key,
                        position, ses_json_type_name(ses_json_type_of(id)));
    snprintf(word, sizeof word, "%" PRId64, value);
    return add_id(l, value, word, e);
}

static bool set_type(line *l, const ses_json *types, size_t i, ses_err *e)
{
    int64_t max = l->limit->segments > 1 ? l->limit->segments - 1 : 0; /* a single segment must be 0 */
    l->segment = 0;
    if (!ses_json_len(types)) return true;
    if (ses_json_int(ses_json_at(types, i), &l->segment) && l->segment >= 0 && l->segment <= max) return true;
    return ses_fail(e, SES_EARG, "\"type_ids\" at position %zu is not a segment, expected 0 to %" PRId64, i,
                    max);
}

static bool add_object(line *l, const ses_json *o, ses_err *e)
{
    const ses_json *ids = ses_json_get(o, "ids"), *types = ses_json_get(o, "type_ids"),
                   *target = ses_json_get(o, "target_ids");
    size_t n = ses_json_len(ids);
    if (ses_json_type_of(ids) != SES_JSON_ARRAY)
        return ses_fail(e, SES_EFORMAT, "no array \"ids\" in the object");
    if (!n) return ses_fail(e, SES_EFORMAT, "\"ids\" is empty, expected token ids");
    if (ses_json_type_of(types) != SES_JSON_NULL && ses_json_len(types) != n)
        return ses_fail(e, SES_EFORMAT, "\"type_ids\" has %zu entries for %zu ids", ses_json_len(types), n);
    if (ses_json_type_of(types) != SES_JSON_NULL && ses_json_type_of(types) != SES_JSON_ARRAY)
        return ses_fail(e, SES_EFORMAT, "\"type_ids\" is %s, expected an array",
                        ses_json_type_name(ses_json_type_of(types)));
    for (size_t i = 0; i < n; i++)
        if (!set_type(l, types, i, e) || !add_json_id(l, ses_json_at(ids, i), "ids", e)) return false;
    if (ses_json_type_of(target) == SES_JSON_NULL) return true;
    if (!begin_part(l, '>', e)) return false;
    for (size_t i = 0; i < ses_json_len(target); i++)
        if (!add_json_id(l, ses_json_at(target, i), "target_ids", e)) return false;
    return true;
}

static bool parse_json(ses_id_reader *r, line *l, ses_err *e)
{
    ses_buf text = { 0 };
    bool ok = get_line(r, &text, e);
    ses_json_doc *d = ok ? ses_json_parse(text.data, text.len, e) : NULL;
    ok = d && add_object(l, ses_json_root(d), e);
    ses_json_free(d);
    ses_buf_free(&text);
    return ok;
}

/* Parses the line up to its end or its first error. */
static bool parse_line(ses_id_reader *r, line *l, ses_err *e)
{
    char word[64];
    int c;
    while (c = get(r), is_blank(c)) continue;
    unget(r, c);
    if (c == '{') return parse_json(r, l, e) && end_line(l, e);
    while (c = get(r), !ends_line(c)) {
        if (is_blank(c)) continue;
        if (c == '|' || c == '>') {
            if (!begin_part(l, c, e)) return false;
            continue;
        }
        unget(r, c);
        size_t n = get_word(r, word, sizeof word);
        if (!add_word(l, word, n, e)) return false;
    }
    return end_line(l, e);
}

/* ---- sources ---- */

static bool read_failed(ses_id_reader *r, ses_err *e)
{
    ses_fail(e, r->failed.code, "%s: %s", strcmp(r->name, "-") != 0 ? r->name : "standard input",
             r->failed.msg);
    r->failed = (ses_err){ 0 };
    return false;
}

void ses_id_reader_close(ses_id_reader *r)
{
    ses_input_stream_free(r->in);
    r->in = NULL;
    r->at = r->have = 0;
}

static bool open_file(ses_id_reader *r)
{
    r->name = *r->file++;
    r->line = 0;
    r->in = ses_input_stream_open(r->name, &r->failed);
    if (!r->in || !fill(r)) return !r->failed.code;
    const char *binary = ses_text_binary_format((const char *)r->buf, r->have);
    return !binary || ses_fail(&r->failed, SES_EFORMAT, "this file is %s", binary);
}

/* Moves to the next line. */
static ses_id_read_status find_line(ses_id_reader *r, ses_err *e)
{
    for (;;) {
        if (!r->in && r->next_ids < r->ids.n) {
            r->text = r->ids.item[r->next_ids++];
            r->line++;
            return SES_ID_READ_OK;
        }
        if (r->in) {
            int c = get(r);
            if (c != EOF) {
                unget(r, c);
                r->line++;
                return SES_ID_READ_OK;
            }
            if (r->failed.code) return read_failed(r, e), SES_ID_READ_ERROR;
            ses_id_reader_close(r);
        }
        if (!*r->file) return SES_ID_READ_END;
        if (!open_file(r)) return read_failed(r, e), SES_ID_READ_ERROR;
    }
}

ses_id_read_status ses_id_reader_next(ses_id_reader *r, const ses_id_limits *limit, ses_id_batch *to,
                                      ses_err *e)
{
    ses_id_read_status found = find_line(r, e);
    if (found != SES_ID_READ_OK) return found;
    line l = { .to = to, .limit = limit, .begin = to->in.ids.n, .target_begin = to->in.target_ids.n };
    ses_id_origin o = { r->in ? r->name : NULL, r->line, ++r->number };
    char where[256];
    if (!ses_array_reserve(&to->origin, &to->seq_cap, (size_t)to->seqs + 1, sizeof *to->origin, e))
        return SES_ID_READ_ERROR;
    bool ok = parse_line(r, &l, e);
    if (r->failed.code) {
        *e = (ses_err){ 0 }; /* the line is incomplete */
        ok = read_failed(r, e);
    } else if (!ok) {
        ses_wrap(e, "%s", ses_id_origin_text(where, sizeof where, &o));
    }
    ok = ok && ses_batch_builder_end_sequence(&to->in, e) &&
         (!limit->target || ses_batch_builder_end_target(&to->in, e));
    if (!ok) {
        ses_id_batch_truncate(to, to->seqs);
        return SES_ID_READ_ERROR;
    }
    to->origin[to->seqs++] = o;
    return SES_ID_READ_OK;
}
