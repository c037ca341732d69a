/* Writes SentencePiece model files field by field, for tests. */
#ifndef TESTS_SPM_FIXTURE_H
#define TESTS_SPM_FIXTURE_H

#include "base/str.h"
#include "text/spm/spm_proto.h"

#include <string.h>

static inline void pb_varint(ses_buf *b, uint64_t x)
{
    for (; x > 127; x >>= 7) ses_buf_put(b, (char)(x | 128));
    ses_buf_put(b, (char)x);
}

static inline void pb_int(ses_buf *b, unsigned field, uint64_t x)
{
    pb_varint(b, field << 3);
    pb_varint(b, x);
}

static inline void pb_bytes(ses_buf *b, unsigned field, const char *p, size_t n)
{
    pb_varint(b, field << 3 | 2);
    pb_varint(b, n);
    ses_buf_append(b, p, n);
}

static inline void pb_float(ses_buf *b, unsigned field, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    pb_varint(b, field << 3 | 5);
    for (int i = 0; i < 4; i++) ses_buf_put(b, (char)(bits >> 8 * i));
}

static inline void pb_piece(ses_buf *b, const char *piece, float score, ses_spm_piece_type type)
{
    ses_buf m = { 0 };
    pb_bytes(&m, 1, piece, strlen(piece));
    pb_float(&m, 2, score);
    if (type != SES_SPM_NORMAL) pb_int(&m, 3, type);
    pb_bytes(b, 1, m.data, m.len);
    ses_buf_free(&m);
}

#endif
