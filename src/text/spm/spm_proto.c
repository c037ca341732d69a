/* Parser for the protocol buffer in SentencePiece .model files. */
#include "spm_proto.h"

#include "base/alloc.h"

#include <string.h>

/* ---- wire format ---- */

typedef struct cursor {
    const unsigned char *p, *end;
    const unsigned char *begin; /* start of the file, for messages */
} cursor;

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

typedef struct field {
    uint32_t number;
    int wire;
    uint64_t value;   /* if VARINT, FIXED64 or FIXED32 */
    ses_string bytes; /* if BYTES */
} field;

static bool format_error(const cursor *c, const char *what, ses_err *e)
{
    return ses_fail(e, SES_EFORMAT, "not a SentencePiece model: %s at byte %zu", what,
                    (size_t)(c->p - c->begin));
}

static bool read_varint(cursor *c, uint64_t *out, ses_err *e)
{
    *out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (c->p == c->end) return format_error(c, "truncated number", e);
        uint64_t b = *c->p++;
        *out |= (b & 127) << shift;
        if (!(b & 128)) return true;
    }
    return format_error(c, "number of more than 10 bytes", e);
}

static bool read_fixed(cursor *c, int n, uint64_t *out, ses_err *e)
{
    *out = 0;
    if (c->end - c->p < n) return format_error(c, "truncated number", e);
    for (int i = 0; i < n; i++) *out |= (uint64_t)*c->p++ << 8 * i;
    return true;
}

static bool read_field(cursor *c, field *f, ses_err *e)
{
    uint64_t tag, n;
    if (!read_varint(c, &tag, e)) return false;
    f->wire = (int)(tag & 7);
    if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff) return format_error(c, "invalid field number", e);
    f->number = (uint32_t)(tag >> 3);
    switch (f->wire) {
    case VARINT: return read_varint(c, &f->value, e);
    case FIXED64: return read_fixed(c, 8, &f->value, e);
    case FIXED32: return read_fixed(c, 4, &f->value, e);
    case BYTES:
        if (!read_varint(c, &n, e)) return false;
        if (n > (uint64_t)(c->end - c->p)) return format_error(c, "field exceeds the end", e);
        f->bytes = (ses_string){ (const char *)c->p, (size_t)n };
        c->p += n;
        return true;
    default: return format_error(c, "unsupported group field", e);
    }
}

static cursor inside(const cursor *c, ses_string s)
{
    const unsigned char *p = (const unsigned char *)s.p;
    return (cursor){ p, p + s.n, c->begin };
}

/* A field with an unexpected wire type is treated as unknown, as protocol buffers require. */
static void get_bool(const field *f, bool *out)
{
    if (f->wire == VARINT) *out = f->value != 0;
}

static void get_string(const field *f, ses_string *out)
{
    if (f->wire == BYTES) *out = f->bytes;
}

/* ---- messages ---- */

static bool read_piece(cursor c, ses_spm_piece *piece, ses_err *e)
{
    field f;
    *piece = (ses_spm_piece){ .piece = { "", 0 }, .type = SES_SPM_NORMAL };
    while (c.p < c.end) {
        if (!read_field(&c, &f, e)) return false;
        if (f.number == 1) get_string(&f, &piece->piece);
        if (f.number == 2 && f.wire == FIXED32) {
            uint32_t bits = (uint32_t)f.value;
            memcpy(&piece->score, &bits, sizeof bits);
        }
        if (f.number == 3 && f.wire == VARINT && f.value >= SES_SPM_NORMAL && f.value <= SES_SPM_BYTE)
            piece->type = (ses_spm_piece_type)f.value;
    }
    return true;
}

static bool read_trainer(cursor c, ses_spm *m, ses_err *e)
{
    field f;
    while (c.p < c.end) {
        if (!read_field(&c, &f, e)) return false;
        switch (f.number) {
        case 3:
            if (f.wire == VARINT && f.value >= SES_SPM_UNIGRAM && f.value <= SES_SPM_CHAR)
                m->kind = (ses_spm_model_type)f.value;
            break;
        case 24: get_bool(&f, &m->whitespace_as_suffix); break;
        case 35: get_bool(&f, &m->byte_fallback); break;
        case 44: get_string(&f, &m->unk_surface); break;
        case 45: get_string(&f, &m->unk); break;
        case 46: get_string(&f, &m->bos); break;
        case 47: get_string(&f, &m->eos); break;
        case 48: get_string(&f, &m->pad); break;
        default: break;
        }
    }
    return true;
}

static bool read_normalizer(cursor c, ses_spm_normalizer *n, ses_err *e)
{
    field f;
    while (c.p < c.end) {
        if (!read_field(&c, &f, e)) return false;
        switch (f.number) {
        case 2: get_string(&f, &n->charsmap); break;
        case 3: get_bool(&f, &n->add_dummy_prefix); break;
        case 4: get_bool(&f, &n->remove_extra_whitespaces); break;
        case 5: get_bool(&f, &n->escape_whitespaces); break;
        default: break;
        }
    }
    return true;
}

static bool read_model(ses_spm *m, cursor c, ses_err *e)
{
    field f;
    size_t at = 0;
    while (c.p < c.end) {
        if (!read_field(&c, &f, e)) return false;
        if (f.wire != BYTES) continue;
        cursor in = inside(&c, f.bytes);
        bool ok = true;
        switch (f.number) {
        case 1: ok = read_piece(in, &m->piece[at++], e); break;
        case 2: ok = read_trainer(in, m, e); break;
        case 3: ok = read_normalizer(in, &m->normalizer, e); break;
        case 5: ok = read_normalizer(in, &m->denormalizer, e); break;
        default: break;
        }
        if (!ok) return false;
    }
    return true;
}

static bool count_pieces(cursor c, size_t *n, ses_err *e)
{
    field f;
    *n = 0;
    while (c.p < c.end) {
        if (!read_field(&c, &f, e)) return false;
        *n += f.number == 1 && f.wire == BYTES;
    }
    return true;
}

static void or_default(ses_string *s, const char *text)
{
    if (!s->n) *s = (ses_string){ text, strlen(text) };
}

bool ses_spm_parse(ses_spm *m, const char *bytes, size_t n, ses_err *e)
{
    const ses_spm_normalizer plain = { { NULL, 0 }, true, true, true };
    *m = (ses_spm){ .kind = SES_SPM_UNIGRAM, .normalizer = plain, .denormalizer = plain };
    m->unk_surface = (ses_string){ " \xe2\x81\x87 ", 5 };
    const unsigned char *p = (const unsigned char *)bytes;
    cursor c = { p, p + n, p };
    if (!count_pieces(c, &m->n, e)) return false;
    m->piece = ses_alloc_array(m->n, sizeof *m->piece, e);
    if (!m->piece || !read_model(m, c, e)) {
        ses_spm_free(m);
        return false;
    }
    or_default(&m->unk, "<unk>");
    or_default(&m->bos, "<s>");
    or_default(&m->eos, "</s>");
    or_default(&m->pad, "<pad>");
    return true;
}

void ses_spm_free(ses_spm *m)
{
    ses_free(m->piece);
    *m = (ses_spm){ 0 };
}
