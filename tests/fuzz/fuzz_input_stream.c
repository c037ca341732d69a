/* Input streams: reading a few bytes at a time gives the same bytes and the same end as reading at once; an
 * uncompressed file gives its own bytes. The first byte selects the read size. */
#define _DEFAULT_SOURCE
#include "fuzz_folder.h"
#include "io/input_stream.h"

enum {
    MOST = 1 << 18
}; /* decompressed bytes that are compared: enough for all seeds, few of a decompression bomb */

typedef struct text {
    size_t n;
    ses_code code; /* reason of the end */
    char at[MOST];
} text;

static void read_all(text *t, const char *path, size_t step)
{
    ses_err e = { 0 };
    size_t got = 1;
    ses_input_stream *p = ses_input_stream_open(path, &e);
    for (t->n = 0; p && got && t->n < MOST; t->n += got) {
        size_t room = MOST - t->n < step ? MOST - t->n : step;
        if (!ses_input_stream_read(p, t->at + t->n, room, &got, &e)) break;
        MUST(got <= room);
        MUST(got || ses_input_stream_ready(p)); /* the end is immediate */
    }
    t->code = e.code;
    ses_input_stream_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static text once, slow;
    char dir[40], path[64];
    if (!n) return 0;
    fuzz_folder(dir);
    snprintf(path, sizeof path, "%s/packed", dir);
    fuzz_file(path, data + 1, n - 1);
    read_all(&once, path, MOST);
    read_all(&slow, path, (size_t)data[0] + 1);
    unlink(path);
    rmdir(dir);
    bool whole = once.n < MOST && slow.n < MOST;
    MUST(!whole || once.code == slow.code);
    MUST(!whole || once.code || (once.n == slow.n && !memcmp(once.at, slow.at, once.n)));
    MUST(!once.code || once.code == SES_EFORMAT || once.code == SES_EUNSUPPORTED || once.code == SES_ENOMEM);
    if (n > 1 && data[1] < 0x80 && data[1] != 0x1f && data[1] != 0x28)
        MUST(once.n == n - 1 && !memcmp(once.at, data + 1, n - 1));
    return 0;
}
