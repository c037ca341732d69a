/* JSON writer. */
#include "json_helpers.h"
#include "json_impl.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/number.h"
#include "base/str.h"
#include "base/unicode/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

typedef struct level {
    bool object, any; /* any: it has at least one member or element */
} level;

struct ses_json_writer {
    ses_buf out;
    int indent;
    bool ascii;
    bool keyed; /* a key was written, its value must follow */
    bool done;  /* the root value is complete */
    int depth;
    level level[SES_JSON_MAX_DEPTH];
    ses_err err; /* the first error */
};

ses_json_writer *ses_json_writer_new(int indent, ses_err *e)
{
    ses_json_writer *w = ses_alloc(sizeof *w, e);
    if (w) w->indent = indent;
    return w;
}

void ses_json_writer_free(ses_json_writer *w)
{
    if (!w) return;
    ses_buf_free(&w->out);
    ses_free(w);
}

void ses_json_writer_set_ascii(ses_json_writer *w, bool on)
{
    if (w) w->ascii = on;
}

static bool misuse(ses_json_writer *w, const char *what)
{
    return ses_fail(&w->err, SES_EARG, "JSON writer: %s", what);
}

static void new_line(ses_json_writer *w)
{
    if (w->indent <= 0) return;
    ses_buf_put(&w->out, '\n');
    for (int i = 0; i < w->indent * w->depth; i++) ses_buf_put(&w->out, ' ');
}

/* Writes the separator before a key, an element or the root value. */
static void separate(ses_json_writer *w)
{
    if (!w->depth) return;
    level *l = &w->level[w->depth - 1];
    if (l->any) ses_buf_puts(&w->out, w->indent == 0 ? ", " : ",");
    l->any = true;
    new_line(w);
}

/* Checks that a value may follow, and writes its separator. */
static bool start(ses_json_writer *w)
{
    if (!w || w->err.code) return false;
    if (w->done) return misuse(w, "a second value after the first");
    bool member = w->depth && w->level[w->depth - 1].object;
    if (member && !w->keyed) return misuse(w, "a member without a key");
    if (!member) separate(w);
    w->keyed = false;
    return true;
}

static void finish(ses_json_writer *w) { w->done = w->depth == 0; }

static void begin(ses_json_writer *w, bool object)
{
    if (!start(w)) return;
    if (w->depth == SES_JSON_MAX_DEPTH) {
        misuse(w, "nested too deep");
        return;
    }
    w->level[w->depth++] = (level){ .object = object };
    ses_buf_put(&w->out, object ? '{' : '[');
}

static void end(ses_json_writer *w, bool object)
{
    if (!w || w->err.code) return;
    if (!w->depth || w->level[w->depth - 1].object != object || w->keyed) {
        misuse(w, w->keyed ? "a key without a value" : "an end without its begin");
        return;
    }
    bool any = w->level[--w->depth].any;
    if (any) new_line(w);
    ses_buf_put(&w->out, object ? '}' : ']');
    finish(w);
}

void ses_json_begin_object(ses_json_writer *w) { begin(w, true); }
void ses_json_end_object(ses_json_writer *w) { end(w, true); }
void ses_json_begin_array(ses_json_writer *w) { begin(w, false); }
void ses_json_end_array(ses_json_writer *w) { end(w, false); }

static void escape_unit(ses_json_writer *w, uint32_t unit)
{
    static const char hex[] = "0123456789abcdef";
    char s[6] = { '\\', 'u', hex[unit >> 12 & 15], hex[unit >> 8 & 15], hex[unit >> 4 & 15], hex[unit & 15] };
    ses_buf_append(&w->out, s, sizeof s);
}

static void escape(ses_json_writer *w, uint32_t cp)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *at = cp && cp < 0x80 ? strchr(from, (int)cp) : NULL;
    if (at) {
        char s[2] = { '\\', to[at - from] };
        ses_buf_append(&w->out, s, sizeof s);
    } else if (cp < 0x10000) {
        escape_unit(w, cp);
    } else {
        escape_unit(w, 0xD800 + ((cp - 0x10000) >> 10));
        escape_unit(w, 0xDC00 + (cp & 0x3FF));
    }
}

static void quote(ses_json_writer *w, const char *s, size_t n)
{
    ses_buf_put(&w->out, '"');
    size_t run = 0, i = 0;
    while (i < n) {
        unsigned char c = (unsigned char)s[i];
        uint32_t cp = c;
        size_t k = c < 0x80 ? 1 : ses_utf8_decode(s + i, n - i, &cp);
        if (!k) {
            ses_fail(&w->err, SES_EFORMAT, "JSON writer: invalid UTF-8 at byte %zu of a string", i);
            return;
        }
        if (c == '"' || c == '\\' || c < 0x20 || (c >= 0x7F && w->ascii)) {
            ses_buf_append(&w->out, s + run, i - run);
            escape(w, cp);
            run = i + k;
        }
        i += k;
    }
    ses_buf_append(&w->out, s + run, n - run);
    ses_buf_put(&w->out, '"');
}

void ses_json_put_keyn(ses_json_writer *w, const char *key, size_t n)
{
    if (!w || w->err.code) return;
    if (!w->depth || !w->level[w->depth - 1].object || w->keyed) {
        misuse(w, "a key outside an object, or after another key");
        return;
    }
    separate(w);
    quote(w, key, n);
    ses_buf_puts(&w->out, w->indent < 0 ? ":" : ": ");
    w->keyed = true;
}

void ses_json_put_key(ses_json_writer *w, const char *key) { ses_json_put_keyn(w, key, strlen(key)); }

void ses_json_put_stringn(ses_json_writer *w, const char *s, size_t n)
{
    if (!start(w)) return;
    quote(w, s, n);
    finish(w);
}

static void put_text(ses_json_writer *w, const char *text)
{
    if (!start(w)) return;
    ses_buf_puts(&w->out, text);
    finish(w);
}

void ses_json_put_string(ses_json_writer *w, const char *s)
{
    if (s)
        ses_json_put_stringn(w, s, strlen(s));
    else
        put_text(w, "null");
}

void ses_json_put_int(ses_json_writer *w, int64_t x)
{
    char s[24];
    snprintf(s, sizeof s, "%" PRId64, x);
    put_text(w, s);
}

void ses_json_put_uint(ses_json_writer *w, uint64_t x)
{
    char s[24];
    snprintf(s, sizeof s, "%" PRIu64, x);
    put_text(w, s);
}

void ses_json_put_real(ses_json_writer *w, double x)
{
    char s[SES_NUMBER_CHARS] = "null";
    if (isfinite(x)) ses_format_double(x, s);
    put_text(w, s);
}

void ses_json_put_float(ses_json_writer *w, float x)
{
    char s[SES_NUMBER_CHARS] = "null";
    if (isfinite(x)) ses_format_float(x, s);
    put_text(w, s);
}

/* The first element is separated as any value; the separator of the others is known. */
void ses_json_put_floats(ses_json_writer *w, const float *x, int64_t n)
{
    if (!w) return;
    const char *comma = w->indent == 0 ? ", " : ",";
    size_t comma_n = strlen(comma);
    int64_t i = 0;
    ses_json_begin_array(w);
    if (n > 0) ses_json_put_float(w, x[i++]);
    for (; w->indent <= 0 && i < n && !w->err.code; i++) {
        if (!ses_buf_reserve(&w->out, SES_NUMBER_CHARS + comma_n)) break;
        char *to = w->out.data + w->out.len;
        memcpy(to, comma, comma_n);
        bool finite = isfinite(x[i]);
        if (!finite) memcpy(to + comma_n, "null", 5);
        w->out.len += comma_n + (finite ? ses_format_float(x[i], to + comma_n) : 4);
    }
    for (; i < n; i++) ses_json_put_float(w, x[i]);
    ses_json_end_array(w);
}

void ses_json_put_bool(ses_json_writer *w, bool x) { put_text(w, x ? "true" : "false"); }
void ses_json_put_null(ses_json_writer *w) { put_text(w, "null"); }

static void put_number(ses_json_writer *w, const ses_json *v)
{
    char s[320]; /* integers beyond 64 bits stay integers; %.0f writes no locale-dependent decimal point */
    if (v->type == SES_JSON_INT) {
        ses_json_put_int(w, v->i);
    } else if (v->type == SES_JSON_UINT) {
        ses_json_put_uint(w, v->u);
    } else if (v->len == SES_JSON_WAS_INTEGER) {
        snprintf(s, sizeof s, "%.0f", v->d);
        put_text(w, s);
    } else {
        ses_json_put_real(w, v->d);
    }
}

/* Any value except containers. */
static void put_scalar(ses_json_writer *w, const ses_json *v)
{
    ses_json_type t = ses_json_type_of(v);
    if (t == SES_JSON_NULL)
        ses_json_put_null(w);
    else if (t == SES_JSON_BOOL)
        ses_json_put_bool(w, v->b);
    else if (t == SES_JSON_STRING)
        ses_json_put_stringn(w, v->str, v->len);
    else
        put_number(w, v);
}

void ses_json_put_value(ses_json_writer *w, const ses_json *v)
{
    struct {
        const ses_json *v;
        size_t next;
    } open[SES_JSON_MAX_DEPTH];
    int depth = 0;
    for (;;) {
        ses_json_type t = ses_json_type_of(v);
        if (t == SES_JSON_ARRAY || t == SES_JSON_OBJECT) {
            begin(w, t == SES_JSON_OBJECT);
            open[depth].v = v;
            open[depth++].next = 0;
        } else {
            put_scalar(w, v);
        }
        while (depth && open[depth - 1].next == open[depth - 1].v->len)
            end(w, open[--depth].v->type == SES_JSON_OBJECT);
        if (!depth || !w || w->err.code) return;
        const ses_json *o = open[depth - 1].v;
        size_t i = open[depth - 1].next++;
        if (o->type == SES_JSON_OBJECT) ses_json_put_keyn(w, o->kid[2 * i].str, o->kid[2 * i].len);
        v = ses_json_at(o, i);
    }
}

const char *ses_json_writer_text(ses_json_writer *w, size_t *len, ses_err *e)
{
    if (!w) return NULL; /* the error of ses_json_writer_new */
    if (!w->err.code) ses_buf_ok(&w->out, &w->err);
    if (!w->err.code && !w->done) misuse(w, w->depth ? "a begin without its end" : "nothing was written");
    if (w->err.code) {
        ses_fail(e, w->err.code, "%s", w->err.msg);
        return NULL;
    }
    if (len) *len = w->out.len;
    return w->out.data;
}

char *ses_json_writer_take(ses_json_writer *w, size_t *len, ses_err *e)
{
    if (!ses_json_writer_text(w, len, e)) return NULL;
    char *text = w->out.data;
    w->out = (ses_buf){ 0 };
    return text;
}

bool ses_json_writer_save(ses_json_writer *w, const char *dir, const char *name, bool overwrite, ses_err *e)
{
    size_t n = 0;
    const char *text = w ? ses_json_writer_text(w, &n, e) : NULL;
    char *path = text && dir ? ses_path_join(dir, name, e) : NULL;
    bool ok = text && (!dir || path) && ses_file_write(dir ? path : name, text, n, overwrite, e);
    ses_free(path);
    ses_json_writer_free(w);
    return ok;
}

ses_json_doc *ses_json_writer_parse(ses_json_writer *w, ses_err *e)
{
    size_t n = 0;
    const char *text = w ? ses_json_writer_text(w, &n, e) : NULL;
    ses_json_doc *d = text ? ses_json_parse(text, n, e) : NULL;
    ses_json_writer_free(w);
    return d;
}
