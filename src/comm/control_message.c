/* Reads and writes messages of the control channel. All integers are little-endian. */
#include "control_message.h"

#include "base/bytes.h"
#include "base/str.h"
#include "launch.h"

#include <string.h>

enum { MAGIC = 0x6b635353 };

/* Offsets; the text follows the head. */
enum { KIND = 4, BYTES = 6, RANK = 8, CODE = 12, FLAGS = 16, UPDATE = 24, ENTERED = 32, PROGRESS = 40 };
enum { WAITING = 1, COMPLETE = 2 };

static void put(unsigned char *p, uint64_t x, int n)
{
    for (int i = 0; i < n; i++) p[i] = (unsigned char)(x >> 8 * i);
}

size_t ses_control_write(const ses_control_message *m, unsigned char out[SES_CONTROL_HEAD + SES_CONTROL_TEXT])
{
    const char *end = memchr(m->text, 0, SES_CONTROL_TEXT);
    size_t n = end ? (size_t)(end - m->text) : SES_CONTROL_TEXT - 1;
    memset(out, 0, SES_CONTROL_HEAD);
    put(out, MAGIC, 4);
    put(out + KIND, m->kind, 2);
    put(out + BYTES, n, 2);
    put(out + RANK, (uint64_t)m->rank, 4);
    put(out + CODE, m->code, 4);
    put(out + FLAGS, (m->is_waiting ? WAITING : 0) | (m->is_complete ? COMPLETE : 0), 4);
    put(out + UPDATE, (uint64_t)m->update, 8);
    put(out + ENTERED, (uint64_t)m->entered, 8);
    put(out + PROGRESS, (uint64_t)m->progress, 8);
    memcpy(out + SES_CONTROL_HEAD, m->text, n);
    return SES_CONTROL_HEAD + n;
}

int ses_control_read(ses_control_message *m, const unsigned char *p, size_t n)
{
    if (n >= 4 && ses_le32(p) != MAGIC) return -1;
    if (n < SES_CONTROL_HEAD) return 0;
    unsigned kind = ses_le16(p + KIND), bytes = ses_le16(p + BYTES);
    uint32_t rank = ses_le32(p + RANK), code = ses_le32(p + CODE), flags = ses_le32(p + FLAGS);
    if (kind < SES_CONTROL_BEAT || kind > SES_CONTROL_ALL_LEFT || bytes >= SES_CONTROL_TEXT ||
        rank >= SES_MAX_RANKS || code > SES_EUSAGE)
        return -1;
    if (n < SES_CONTROL_HEAD + bytes) return 0;
    *m = (ses_control_message){ .kind = (ses_control_kind)kind,
                                .rank = (int)rank,
                                .code = (ses_code)code,
                                .is_waiting = flags & WAITING,
                                .is_complete = flags & COMPLETE,
                                .update = (int64_t)ses_le64(p + UPDATE),
                                .entered = (int64_t)ses_le64(p + ENTERED),
                                .progress = (int64_t)ses_le64(p + PROGRESS) };
    ses_quote(m->text, sizeof m->text, (const char *)p + SES_CONTROL_HEAD, bytes);
    return (int)(SES_CONTROL_HEAD + bytes);
}
