/* The wire format of protocol buffers. */
#include "protobuf.h"

#include "base/bytes.h"

ses_proto ses_proto_of(const void *p, size_t n, const char *what)
{
    const unsigned char *s = p;
    return (ses_proto){ s, n ? s + n : s, s, what };
}

ses_proto ses_proto_inside(const ses_proto *c, ses_string s)
{
    const unsigned char *p = (const unsigned char *)s.p;
    return (ses_proto){ p, p + s.n, c->begin, c->what };
}

static bool format_error(const ses_proto *c, const char *problem, ses_err *e)
{
    return ses_fail(e, SES_EFORMAT, "%s: %s at byte %zu", c->what, problem, (size_t)(c->p - c->begin));
}

const unsigned char *ses_varint(const unsigned char *p, const unsigned char *end, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; shift < 64 && p < end; shift += 7) {
        uint64_t b = *p++;
        *out |= (b & 127) << shift;
        if (!(b & 128)) return p;
    }
    return NULL;
}

static bool read_varint(ses_proto *c, uint64_t *out, ses_err *e)
{
    const unsigned char *after = ses_varint(c->p, c->end, out);
    if (after) {
        c->p = after;
        return true;
    }
    bool is_long = c->end - c->p >= 10;
    c->p = is_long ? c->p + 10 : c->end;
    return format_error(c, is_long ? "number of more than 10 bytes" : "truncated number", e);
}

static bool read_fixed(ses_proto *c, size_t n, uint64_t *out, ses_err *e)
{
    if ((size_t)(c->end - c->p) < n) return format_error(c, "truncated number", e);
    *out = ses_le(c->p, n);
    c->p += n;
    return true;
}

bool ses_proto_next(ses_proto *c, ses_proto_field *f, ses_err *e)
{
    uint64_t tag, n;
    if (!read_varint(c, &tag, e)) return false;
    f->wire = (int)(tag & 7);
    if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff) return format_error(c, "invalid field number", e);
    f->number = (uint32_t)(tag >> 3);
    switch (f->wire) {
    case SES_PROTO_VARINT: return read_varint(c, &f->value, e);
    case SES_PROTO_FIXED64: return read_fixed(c, 8, &f->value, e);
    case SES_PROTO_FIXED32: return read_fixed(c, 4, &f->value, e);
    case SES_PROTO_BYTES:
        if (!read_varint(c, &n, e)) return false;
        if (n > (uint64_t)(c->end - c->p)) return format_error(c, "field exceeds the end", e);
        f->bytes = (ses_string){ (const char *)c->p, (size_t)n };
        c->p += n;
        return true;
    default: return format_error(c, "unsupported group field", e);
    }
}
