/* SentencePiece's normalizer: settings and application. */
#include "spm_norm.h"

#include "base/base64.h"
#include "base/str.h"

#include <string.h>

/* ---- settings ---- */

static bool open_map(ses_spm_norm *s, const ses_json *settings, ses_arena *mem, ses_err *e)
{
    if (!ses_setting_string(settings, "charsmap", "", mem, &s->base64, e)) return false;
    if (!s->base64.n) return true;
    size_t n;
    char *bytes = ses_arena_array(mem, ses_base64_max_decoded_size(s->base64.n), 1, e);
    return bytes && ses_base64_decode(s->base64.p, s->base64.n, bytes, &n, e) &&
           ses_charsmap_open(&s->map, bytes, n, e);
}

static bool open_symbols(ses_spm_norm *s, const ses_json *list, ses_arena *mem, ses_err *e)
{
    s->n_symbols = ses_json_len(list);
    if (list && ses_json_type_of(list) != SES_JSON_ARRAY)
        return ses_fail(e, SES_EFORMAT, "must be a list of strings");
    s->symbol = ses_arena_array(mem, s->n_symbols, sizeof *s->symbol, e);
    if (!s->symbol) return false;
    for (size_t i = 0; i < s->n_symbols; i++) {
        size_t n;
        const char *p = ses_json_string(ses_json_at(list, i), &n);
        if (!p || !n) return ses_fail(e, SES_EFORMAT, "entry %zu: must be a non-empty string", i);
        s->symbol[i] = (ses_string){ ses_arena_strndup(mem, p, n, e), n };
        if (!s->symbol[i].p) return false;
    }
    return ses_trie_build(&s->user, s->symbol, s->n_symbols, mem, e);
}

static bool has_user_prefix(const ses_spm_norm *s, const char *p, size_t n)
{
    uint32_t base = s->user.root;
    int32_t value;
    for (size_t i = 0; i < n; i++)
        if (!ses_trie_step(&s->user, &base, (uint8_t)p[i], &value)) return false;
    return true;
}

/* A character passes through unchanged if no rule matches it alone or followed by ASCII. */
static void find_passthrough(ses_spm_norm *s)
{
    for (int c = 0; c < 128; c++) {
        char two[2] = { (char)c };
        ses_string to;
        size_t len;
        bool map = s->base64.n != 0;
        s->passthrough[c] =
            c != ' ' &&
            (!map || (ses_charsmap_longest(&s->map, two, 1, &len, &to, NULL) == SES_CHARSMAP_NONE));
        bool single = !has_user_prefix(s, two, 1) && (!map || !ses_charsmap_has_prefix(&s->map, two, 1));
        for (int d = 0; s->passthrough[c] && !single && d < 128; d++) {
            two[1] = (char)d;
            s->passthrough[c] = ses_trie_find(&s->user, two, 1) < 0 && !has_user_prefix(s, two, 2) &&
                                !(map && ses_charsmap_has_prefix(&s->map, two, 2));
        }
    }
}

bool ses_spm_norm_open(ses_spm_norm *s, const ses_json *settings, ses_arena *mem, ses_err *e)
{
    *s = (ses_spm_norm){ 0 };
    if (!ses_setting_bool(settings, "add_dummy_prefix", true, &s->add_dummy_prefix, e) ||
        !ses_setting_bool(settings, "remove_extra_whitespaces", true, &s->remove_extra_whitespaces, e) ||
        !ses_setting_bool(settings, "escape_whitespaces", true, &s->escape_whitespaces, e) ||
        !ses_setting_bool(settings, "whitespace_as_suffix", false, &s->whitespace_as_suffix, e))
        return false;
    if (!open_map(s, settings, mem, e)) return ses_wrap(e, "charsmap");
    if (!open_symbols(s, ses_json_get(settings, "user_defined"), mem, e)) return ses_wrap(e, "user_defined");
    find_passthrough(s);
    return true;
}

void ses_spm_norm_save(const ses_spm_norm *s, ses_json_writer *w)
{
    ses_json_member_stringn(w, "charsmap", s->base64.p, s->base64.n);
    ses_json_member_bool(w, "add_dummy_prefix", s->add_dummy_prefix);
    ses_json_member_bool(w, "remove_extra_whitespaces", s->remove_extra_whitespaces);
    ses_json_member_bool(w, "escape_whitespaces", s->escape_whitespaces);
    ses_json_member_bool(w, "whitespace_as_suffix", s->whitespace_as_suffix);
    ses_json_member_array(w, "user_defined");
    for (size_t i = 0; i < s->n_symbols; i++) ses_json_put_stringn(w, s->symbol[i].p, s->symbol[i].n);
    ses_json_end_array(w);
}

/* ---- application ---- */

/* Match at p: `len` bytes are replaced by `to`. User-defined symbols stay unchanged; else the longest rule
 * of the map applies; else the character stays. */
static bool prefix(const ses_spm_norm *s, const char *p, size_t n, size_t *len, ses_string *to, ses_err *e)
{
    uint32_t base = s->user.root;
    int32_t value;
    size_t longest = 0;
    for (size_t i = 0; i < n && ses_trie_step(&s->user, &base, (uint8_t)p[i], &value); i++)
        if (value >= 0) longest = i + 1;
    if (!longest && s->base64.n) {
        ses_charsmap_result r = ses_charsmap_longest(&s->map, p, n, len, to, e);
        if (r != SES_CHARSMAP_NONE) return r == SES_CHARSMAP_FOUND;
    }
    if (!longest) {
        unsigned char c = (unsigned char)*p;
        longest = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
        if (longest > n) longest = n;
    }
    *len = longest;
    *to = (ses_string){ p, longest };
    return true;
}

typedef struct output {
    const ses_spm_norm *s;
    ses_text *text;
    size_t start; /* start of this call's output */
    const char *space;
    size_t n_space;
    bool after_space; /* further spaces are dropped */
} output;

/* Append a replacement; all its bytes have one source range. */
static bool put(output *o, ses_string to, ses_offset from, ses_err *e)
{
    while (o->after_space && to.n && *to.p == ' ') to.p++, to.n--;
    if (!to.n) return true;
    o->after_space = o->s->remove_extra_whitespaces && to.p[to.n - 1] == ' ';
    while (to.n) {
        const char *space = memchr(to.p, ' ', to.n);
        size_t n = space ? (size_t)(space - to.p) : to.n;
        if (n && !ses_text_put(o->text, to.p, n, from, e)) return false;
        if (space && !ses_text_put(o->text, o->space, o->n_space, from, e)) return false;
        n += space != NULL;
        to.p += n, to.n -= n;
    }
    return true;
}

/* Append a run of characters that pass through, each with its own source range. */
static bool put_passthrough(output *o, const ses_text *in, size_t *at, size_t end, ses_err *e)
{
    const unsigned char *p = (const unsigned char *)in->byte;
    size_t i = *at;
    while (i + 1 < end && p[i] < 0x80 && p[i + 1] < 0x80 && o->s->passthrough[p[i]]) i++;
    if (i == *at) return true;
    o->after_space = false;
    bool ok = ses_text_copy(o->text, in, *at, i, e);
    *at = i;
    return ok;
}

static bool put_all(output *o, const ses_text *in, size_t at, size_t end, ses_err *e)
{
    while (at < end) {
        size_t len;
        ses_string to;
        if (!put_passthrough(o, in, &at, end, e) || !prefix(o->s, in->byte + at, end - at, &len, &to, e))
            return false;
        ses_offset from = { in->from[at].begin, in->from[at + len - 1].end };
        if (!put(o, to, from, e)) return false;
        at += len;
    }
    return true;
}

static const char mark[] = "\xe2\x96\x81";

static output output_of(const ses_spm_norm *s, ses_text *out)
{
    bool escape = s->escape_whitespaces;
    return (output){ s, out, out->n, escape ? mark : " ", escape ? sizeof mark - 1 : 1, false };
}

bool ses_spm_norm_run_inner(const ses_spm_norm *s, const ses_text *in, size_t begin, size_t end,
                            ses_text *out, ses_err *e)
{
    output o = output_of(s, out);
    return put_all(&o, in, begin, end, e);
}

bool ses_spm_norm_is_word_local(const ses_spm_norm *s)
{
    for (size_t i = 0; i < s->n_symbols; i++)
        if (memchr(s->symbol[i].p, ' ', s->symbol[i].n)) return false;
    return !s->base64.n || !ses_charsmap_has_byte(&s->map, ' ');
}

bool ses_spm_norm_run(const ses_spm_norm *s, const ses_text *in, size_t begin, size_t end, ses_text *out,
                      bool *trimmed, ses_err *e)
{
    output o = output_of(s, out);
    size_t len;
    ses_string to;
    while (s->remove_extra_whitespaces && begin < end) { /* leading spaces */
        if (!prefix(s, in->byte + begin, end - begin, &len, &to, e)) return false;
        if (to.n != 1 || *to.p != ' ') break;
        begin += len;
    }
    if (begin == end) return true;
    o.after_space = s->remove_extra_whitespaces;
    ses_offset front = { in->from[begin].begin, in->from[begin].begin },
               back = { in->from[end - 1].end, in->from[end - 1].end };
    if (s->add_dummy_prefix && !s->whitespace_as_suffix && !ses_text_put(out, o.space, o.n_space, front, e))
        return false;
    if (!put_all(&o, in, begin, end, e)) return false;
    size_t all = out->n;
    while (s->remove_extra_whitespaces && out->n - o.start >= o.n_space &&
           !memcmp(out->byte + out->n - o.n_space, o.space, o.n_space))
        out->n -= o.n_space;
    if (trimmed) *trimmed = out->n < all;
    return !s->add_dummy_prefix || !s->whitespace_as_suffix || ses_text_put(out, o.space, o.n_space, back, e);
}
