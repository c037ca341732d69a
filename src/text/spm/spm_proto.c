/* Parser for the protocol buffer in SentencePiece .model files. */
#include "spm_proto.h"

#include "base/alloc.h"
#include "base/wire/protobuf.h"

#include <string.h>

/* A field with an unexpected wire type is treated as unknown, as protocol buffers require. */
static void get_bool(const ses_proto_field *f, bool *out)
{
    if (f->wire == SES_PROTO_VARINT) *out = f->value != 0;
}

static void get_string(const ses_proto_field *f, ses_string *out)
{
    if (f->wire == SES_PROTO_BYTES) *out = f->bytes;
}

/* ---- messages ---- */

static bool read_piece(ses_proto c, ses_spm_piece *piece, ses_err *e)
{
    ses_proto_field f;
    *piece = (ses_spm_piece){ .piece = { "", 0 }, .type = SES_SPM_NORMAL };
    while (c.p < c.end) {
        if (!ses_proto_next(&c, &f, e)) return false;
        if (f.number == 1) get_string(&f, &piece->piece);
        if (f.number == 2 && f.wire == SES_PROTO_FIXED32) {
            uint32_t bits = (uint32_t)f.value;
            memcpy(&piece->score, &bits, sizeof bits);
        }
        if (f.number == 3 && f.wire == SES_PROTO_VARINT && f.value >= SES_SPM_NORMAL &&
            f.value <= SES_SPM_BYTE)
            piece->type = (ses_spm_piece_type)f.value;
    }
    return true;
}

static bool read_trainer(ses_proto c, ses_spm *m, ses_err *e)
{
    ses_proto_field f;
    while (c.p < c.end) {
        if (!ses_proto_next(&c, &f, e)) return false;
        switch (f.number) {
        case 3:
            if (f.wire == SES_PROTO_VARINT && f.value >= SES_SPM_UNIGRAM && f.value <= SES_SPM_CHAR)
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

static bool read_normalizer(ses_proto c, ses_spm_normalizer *n, ses_err *e)
{
    ses_proto_field f;
    while (c.p < c.end) {
        if (!ses_proto_next(&c, &f, e)) return false;
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

static bool read_model(ses_spm *m, ses_proto c, ses_err *e)
{
    ses_proto_field f;
    size_t at = 0;
    while (c.p < c.end) {
        if (!ses_proto_next(&c, &f, e)) return false;
        if (f.wire != SES_PROTO_BYTES) continue;
        ses_proto in = ses_proto_inside(&c, f.bytes);
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

static bool count_pieces(ses_proto c, size_t *n, ses_err *e)
{
    ses_proto_field f;
    *n = 0;
    while (c.p < c.end) {
        if (!ses_proto_next(&c, &f, e)) return false;
        *n += f.number == 1 && f.wire == SES_PROTO_BYTES;
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
    ses_proto c = ses_proto_of(bytes, n, "not a SentencePiece model");
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
