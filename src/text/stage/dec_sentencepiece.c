/* SentencePiece as a decoder: U+2581 becomes a space, except at the start; control symbols are removed;
 * byte tokens are decoded as UTF-8; the unknown piece has its own text. */
#include "base/str.h"
#include "base/strmap.h"
#include "base/unicode/utf8.h"
#include "text/spm/spm_norm.h"
#include "text/vocab/byte_chars.h"

#include <string.h>

typedef struct self_type {
    bool add_dummy_prefix, remove_extra_whitespaces, bytes;
    ses_string unk, unk_surface;
    ses_string *control;
    size_t n_control;
    ses_strmap is_control;
    bool denormalizes;
    ses_spm_norm denormalizer;
} self_type;

/* ---- settings ---- */

static bool open_control(self_type *d, const ses_json *list, ses_arena *mem, ses_err *e)
{
    bool fresh;
    d->n_control = ses_json_len(list);
    d->control = ses_arena_array(mem, d->n_control, sizeof *d->control, e);
    if (!d->control) return false;
    for (size_t i = 0; i < d->n_control; i++) {
        size_t n;
        const char *p = ses_json_string(ses_json_at(list, i), &n);
        if (!p) return ses_fail(e, SES_EFORMAT, "key \"control\" must be a list of strings");
        d->control[i] = (ses_string){ ses_arena_strndup(mem, p, n, e), n };
        if (!d->control[i].p || !ses_strmap_insert(&d->is_control, d->control[i].p, n, 1, &fresh, e))
            return false;
    }
    return true;
}

static void close(void *self) { ses_strmap_free(&((self_type *)self)->is_control); }

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    self_type *d = ses_arena_array(mem, 1, sizeof *d, e);
    if (!d || !ses_setting_bool(settings, "add_dummy_prefix", true, &d->add_dummy_prefix, e) ||
        !ses_setting_bool(settings, "remove_extra_whitespaces", true, &d->remove_extra_whitespaces, e) ||
        !ses_setting_bool(settings, "byte_fallback", false, &d->bytes, e) ||
        !ses_setting_string(settings, "unk", "<unk>", mem, &d->unk, e) ||
        !ses_setting_string(settings, "unk_surface", " \xe2\x81\x87 ", mem, &d->unk_surface, e))
        return NULL;
    d->denormalizes = !ses_setting_absent(settings, "denormalizer");
    if (d->denormalizes &&
        !ses_spm_norm_open(&d->denormalizer, ses_json_get(settings, "denormalizer"), mem, e))
        return ses_wrap(e, "denormalizer"), NULL;
    if (!open_control(d, ses_json_get(settings, "control"), mem, e)) return close(d), NULL;
    return d;
}

static void save(const void *self, ses_json_writer *w)
{
    const self_type *d = self;
    ses_json_member_bool(w, "add_dummy_prefix", d->add_dummy_prefix);
    ses_json_member_bool(w, "remove_extra_whitespaces", d->remove_extra_whitespaces);
    ses_json_member_bool(w, "byte_fallback", d->bytes);
    ses_json_member_stringn(w, "unk", d->unk.p, d->unk.n);
    ses_json_member_stringn(w, "unk_surface", d->unk_surface.p, d->unk_surface.n);
    ses_json_member_array(w, "control");
    for (size_t i = 0; i < d->n_control; i++) ses_json_put_stringn(w, d->control[i].p, d->control[i].n);
    ses_json_end_array(w);
    ses_json_put_key(w, "denormalizer");
    if (!d->denormalizes) {
        ses_json_put_null(w);
        return;
    }
    ses_json_begin_object(w);
    ses_spm_norm_save(&d->denormalizer, w);
    ses_json_end_object(w);
}

/* ---- decoding ---- */

static const char mark[] = "\xe2\x96\x81";

static int byte_of(const self_type *d, ses_string s)
{
    char want[SES_BYTE_TOKEN];
    for (int b = 0; d->bytes && s.n == SES_BYTE_TOKEN && b < 256; b++)
        if (ses_byte_token((uint8_t)b, want) && !memcmp(want, s.p, s.n)) return b;
    return -1;
}

static void put_piece(ses_buf *out, ses_string s)
{
    for (size_t i = 0; i < s.n;) {
        bool space = s.n - i >= 3 && !memcmp(s.p + i, mark, 3);
        ses_buf_put(out, space ? ' ' : s.p[i]);
        i += space ? 3 : 1;
    }
}

/* Each byte that is not part of a valid character becomes U+FFFD. */
static void put_bytes(ses_buf *out, ses_buf *bytes)
{
    for (size_t i = 0; i < bytes->len;) {
        uint32_t c;
        size_t step = ses_utf8_decode(bytes->data + i, bytes->len - i, &c);
        ses_buf_append(out, step ? bytes->data + i : "\xef\xbf\xbd", step ? step : 3);
        i += step ? step : 1;
    }
    bytes->len = 0;
}

static void put_all(const self_type *d, const ses_strings *s, ses_buf *out, ses_buf *bytes)
{
    bool front = true; /* at the start: U+2581 here was added by encoding */
    int64_t value;
    for (size_t i = 0; i < s->n; i++) {
        ses_string t = s->string[i];
        int b = byte_of(d, t);
        if (b >= 0) {
            ses_buf_put(bytes, (char)b);
            continue;
        }
        put_bytes(out, bytes);
        if (out->len) front = false;
        if (ses_strmap_find(&d->is_control, t.p, t.n, &value)) continue;
        bool dropped = false;
        bool unk = t.n == d->unk.n && !memcmp(t.p, d->unk.p, t.n);
        if (front && (d->add_dummy_prefix || d->remove_extra_whitespaces) && t.n >= 3 &&
            !memcmp(t.p, mark, 3)) {
            t.p += 3, t.n -= 3;
            dropped = !d->remove_extra_whitespaces;
        }
        if (unk)
            ses_buf_append(out, d->unk_surface.p, d->unk_surface.n);
        else
            put_piece(out, t);
        if (dropped || out->len) front = false;
    }
    put_bytes(out, bytes);
}

/* Apply the model's denormalizer, if it has one. */
static bool denormalize(const self_type *d, ses_buf *text, ses_err *e)
{
    ses_text in = { 0 }, out = { 0 };
    bool ok = ses_text_put(&in, text->data, text->len, (ses_offset){ 0, 0 }, e) &&
              ses_spm_norm_run(&d->denormalizer, &in, 0, in.n, &out, NULL, e);
    text->len = 0;
    ok = ok && (ses_buf_append(text, out.byte, out.n) || ses_buf_ok(text, e));
    ses_text_free(&in);
    ses_text_free(&out);
    return ok;
}

static bool decode(const void *self, ses_strings *s, ses_err *e)
{
    const self_type *d = self;
    ses_buf out = { 0 }, bytes = { 0 };
    put_all(d, s, &out, &bytes);
    bool ok = ses_buf_ok(&out, e) && ses_buf_ok(&bytes, e) &&
              (!d->denormalizes || !out.len || denormalize(d, &out, e));
    s->n = 0;
    char *p = ok ? ses_arena_strndup(&s->mem, out.len ? out.data : "", out.len, e) : NULL;
    ok = p && ses_strings_put(s, p, out.len, e);
    ses_buf_free(&out);
    ses_buf_free(&bytes);
    return ok;
}

const ses_stage ses_stage_dec_sentencepiece = {
    .type = "SentencePiece",
    .kind = SES_DECODER,
    .open = open,
    .close = close,
    .save = save,
    .decode = decode,
};
