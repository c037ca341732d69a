/* Event files, decoded again; TensorBoard's own reader accepts the same files. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "base/alloc.h"
#include "base/file.h"
#include "base/wire/crc32c.h"
#include "check.h"
#include "io/event_file.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct bytes { /* bytes left to read */
    const unsigned char *p;
    size_t n;
    bool bad;
} bytes;

static uint64_t little(bytes *b, size_t n)
{
    uint64_t x = 0;
    if (b->n < n) return b->bad = true, 0;
    for (size_t i = 0; i < n; i++) x |= (uint64_t)b->p[i] << 8 * i;
    b->p += n;
    b->n -= n;
    return x;
}

static uint64_t varint(bytes *b)
{
    uint64_t x = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        uint64_t c = little(b, 1);
        x |= (c & 0x7F) << shift;
        if (!(c & 0x80)) return x;
    }
    return b->bad = true, 0;
}

static bytes part(bytes *b, size_t n)
{
    bytes x = { b->p, n, n > b->n };
    if (n > b->n) return b->bad = true, x;
    b->p += n;
    b->n -= n;
    return x;
}

typedef struct seen {
    double wall;
    int64_t step;
    char version[32], tag[4][32];
    float value[4];
    int n, status;
} seen;

static void text(char out[32], bytes b)
{
    CHECK(b.n < 32);
    memcpy(out, b.p, b.n);
    out[b.n] = 0;
}

static void read_value(bytes b, seen *s)
{
    while (b.n && !b.bad) {
        uint64_t key = varint(&b);
        if (key == (1 << 3 | 2)) {
            text(s->tag[s->n], part(&b, varint(&b)));
        } else {
            uint32_t bits = (uint32_t)little(&b, 4);
            CHECK(key == (2 << 3 | 5));
            memcpy(&s->value[s->n], &bits, sizeof bits);
        }
    }
    CHECK(!b.bad);
    s->n++;
}

static seen read_event(bytes b)
{
    seen s = { .step = -1 };
    while (b.n && !b.bad) {
        uint64_t key = varint(&b), bits;
        switch (key) {
        case 1 << 3 | 1: bits = little(&b, 8), memcpy(&s.wall, &bits, 8); break;
        case 2 << 3 | 0: s.step = (int64_t)varint(&b); break;
        case 3 << 3 | 2: text(s.version, part(&b, varint(&b))); break;
        case 5 << 3 | 2:
            for (bytes all = part(&b, varint(&b)); all.n && !all.bad;) {
                CHECK(varint(&all) == (1 << 3 | 2));
                read_value(part(&all, varint(&all)), &s);
            }
            break;
        case 7 << 3 | 2: {
            bytes log = part(&b, varint(&b));
            CHECK(varint(&log) == (1 << 3 | 0));
            s.status = (int)varint(&log);
            break;
        }
        default: CHECK_MSG(false, "key %d", (int)key); b.bad = true;
        }
    }
    CHECK(!b.bad);
    return s;
}

static uint32_t mask(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xA282EAD8u; }

static bool next(bytes *b, seen *out)
{
    if (!b->n) return false;
    uint32_t of_length = mask(ses_crc32c(b->p, 8));
    uint64_t n = little(b, 8);
    CHECK(little(b, 4) == of_length);
    bytes data = part(b, n);
    CHECK(!b->bad && little(b, 4) == mask(ses_crc32c(data.p, data.n)));
    *out = read_event(data);
    return !b->bad;
}

int main(void)
{
    char dir[] = "/tmp/sesame-events-XXXXXX", sub[64];
    ses_err e = { 0 };
    CHECK(ses_crc32c("123456789", 9) == 0xE3069283u); /* check value of the CRC catalogue */
    CHECK(ses_crc32c("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 32) ==
          0x8A9136AAu); /* RFC 3720, B.4 */
    if (!mkdtemp(dir)) return 1;
    snprintf(sub, sizeof sub, "%s/runs", dir);
    ses_event_file *f = ses_event_file_new(sub, 1700000000.25, 1, &e),
                   *g = ses_event_file_new(sub, 1700000000.25, 301, &e);
    CHECK_MSG(f && g, "%s", e.msg);
    CHECK(strcmp(ses_event_file_path(f), ses_event_file_path(g)) < 0); /* read in this order */
    const ses_event_value v[] = { { "train/loss", 0.625 }, { "eval/ä", NAN }, { "", -INFINITY } };
    CHECK(ses_event_file_put(f, 1700000001.5, 300, v, 3, &e));
    CHECK(ses_event_file_put(f, 1700000002.5, (int64_t)1 << 40, v, 1, &e));

    size_t n;
    char *data = ses_file_read(ses_event_file_path(f), 1 << 16, &n, &e);
    bytes b = { (const unsigned char *)data, n, false };
    seen s;
    CHECK(data && next(&b, &s));
    CHECK_STR(s.version, "brain.Event:2");
    CHECK(s.wall == 1700000000.25);
    CHECK(next(&b, &s) && s.status == 1 && s.step == 1);
    CHECK(next(&b, &s) && s.n == 3 && s.step == 300 && s.wall == 1700000001.5);
    CHECK_STR(s.tag[0], "train/loss");
    CHECK_STR(s.tag[1], "eval/ä");
    CHECK(s.value[0] == 0.625f && isnan(s.value[1]) && s.value[2] == -INFINITY);
    CHECK(next(&b, &s) && s.n == 1 && s.step == (int64_t)1 << 40);
    CHECK(!next(&b, &s) && !b.bad);
    ses_free(data);
    ses_event_file_free(f);
    ses_event_file_free(g);
    ses_event_file_free(NULL);

    char *mine = ses_path_join(sub, "events.out.tfevents.1.mine", &e);
    CHECK(ses_file_write(mine, "x", 1, false, &e) && ses_event_files_remove(sub, &e));
    CHECK(ses_path_exists(mine) && ses_event_files_remove("/nowhere", &e));
    CHECK(ses_file_remove(mine, &e) && rmdir(sub) == 0); /* the others are removed */
    CHECK(!ses_event_file_new("/dev/null/x", 0, 0, &e) && e.code == SES_EIO);
    ses_free(mine);
    rmdir(dir);
    return check_report();
}
