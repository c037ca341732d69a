/* Chunked bodies of requests. Extensions and trailers are checked and dropped. */
#include "http_parser.h"

#include "base/str.h"

#include <string.h>

enum {
    SIZE_FIRST, /* first digit of a chunk size */
    SIZE_NEXT,
    EXTENSION,
    SIZE_LF, /* LF after the CR of a size line */
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILER_FIRST, /* first character of a trailer line */
    TRAILER_NAME,
    TRAILER_VALUE,
    TRAILER_LF,
    END_LF,
    END,
    BAD
};

void ses_http_chunks_begin(ses_http_chunks *c, uint64_t max_total)
{
    *c = (ses_http_chunks){ .max_total = max_total };
}

static int bad(ses_http_chunks *c, int status, const char *reason)
{
    c->status = status;
    c->reason = reason;
    return BAD;
}

static int after_size(ses_http_chunks *c, char x)
{
    if (x != '\n') return bad(c, 400, "CR without LF in a chunk size line");
    c->line = 0;
    if (c->left == 0) return TRAILER_FIRST;
    if (c->left > c->max_total - c->total) return bad(c, 413, "the body is too large");
    c->total += c->left;
    return DATA;
}

static int size_byte(ses_http_chunks *c, char x)
{
    int digit = ses_hex_digit(x);
    if (digit < 0 && c->state == SIZE_FIRST) return bad(c, 400, "invalid chunk size");
    if (digit < 0 && x == ';') return EXTENSION;
    if (digit < 0 && x == '\r') return SIZE_LF;
    if (digit < 0) return bad(c, 400, "invalid chunk size");
    if (c->line > 16) return bad(c, 400, "the chunk size is too long");
    c->left = c->left << 4 | (unsigned)digit;
    return SIZE_NEXT;
}

static bool is_text(char x) { return x == '\t' || ((unsigned char)x >= 0x20 && x != 0x7f); }

static int extension_byte(ses_http_chunks *c, char x)
{
    if (x == '\r') return SIZE_LF;
    if (!is_text(x)) return bad(c, 400, "control character in a chunk extension");
    if (c->line > SES_HTTP_MAX_CHUNK_LINE || ++c->extensions > SES_HTTP_MAX_EXTENSIONS)
        return bad(c, 400, "chunk extensions are too long");
    return EXTENSION;
}

static int trailer_byte(ses_http_chunks *c, char x)
{
    if (++c->trailers > SES_HTTP_MAX_TRAILERS) return bad(c, 431, "the trailers are too long");
    switch (c->state) {
    case TRAILER_FIRST:
        if (x == '\r') return END_LF;
        return ses_http_is_token(&x, 1) ? TRAILER_NAME : bad(c, 400, "invalid trailer");
    case TRAILER_NAME:
        if (x == ':') return TRAILER_VALUE;
        return ses_http_is_token(&x, 1) ? TRAILER_NAME : bad(c, 400, "invalid trailer");
    case TRAILER_VALUE:
        if (x == '\r') return TRAILER_LF;
        return is_text(x) ? TRAILER_VALUE : bad(c, 400, "control character in a trailer");
    case TRAILER_LF: return x == '\n' ? TRAILER_FIRST : bad(c, 400, "CR without LF in a trailer");
    default: return x == '\n' ? END : bad(c, 400, "CR without LF after the last chunk");
    }
}

static int next_state(ses_http_chunks *c, char x)
{
    switch (c->state) {
    case SIZE_FIRST:
    case SIZE_NEXT: c->line++; return size_byte(c, x);
    case EXTENSION: c->line++; return extension_byte(c, x);
    case SIZE_LF: return after_size(c, x);
    case DATA_CR: return x == '\r' ? DATA_LF : bad(c, 400, "a chunk is longer than its size");
    case DATA_LF: return x == '\n' ? SIZE_FIRST : bad(c, 400, "CR without LF after a chunk");
    default: return trailer_byte(c, x);
    }
}

ses_http_result ses_http_chunks_decode(ses_http_chunks *c, const char *in, size_t *n, char *out,
                                       size_t *produced)
{
    size_t i = 0, len = 0;
    while (c->state != END && c->state != BAD && i < *n) {
        if (c->state != DATA) {
            c->state = next_state(c, in[i++]);
            continue;
        }
        size_t take = c->left < *n - i ? (size_t)c->left : *n - i;
        memmove(out + len, in + i, take);
        i += take, len += take;
        c->left -= take;
        if (c->left == 0) c->state = DATA_CR;
    }
    *n = i;
    *produced = len;
    return c->state == END ? SES_HTTP_COMPLETE : c->state == BAD ? SES_HTTP_INVALID : SES_HTTP_MORE;
}
