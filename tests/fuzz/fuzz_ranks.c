/* Bytes from other ranks, and node lists of Slurm. The first byte chooses: a hello, messages of the control
 * channel, or a list. Accepted hellos and messages are written and read again with the same result. */
#include "comm/control_message.h"
#include "comm/hello.h"
#include "fuzz.h"

static void check_hello(const uint8_t *data, size_t n)
{
    unsigned char in[SES_HELLO_BYTES] = { 0 }, out[SES_HELLO_BYTES], again[SES_HELLO_BYTES];
    ses_hello h, h2;
    memcpy(in, data, n < sizeof in ? n : sizeof in);
    if (!ses_hello_read(&h, in)) return;
    MUST(h.rank >= 0 && h.rank < h.size && h.size <= SES_MAX_RANKS && h.ips <= SES_MAX_IPS);
    MUST(h.port >= 0 && h.port < 65536 && memchr(h.version, 0, sizeof h.version));
    ses_hello_write(&h, out);
    MUST(ses_hello_read(&h2, out));
    ses_hello_write(&h2, again);
    MUST(!memcmp(out, again, sizeof out));
}

static void check_messages(const uint8_t *data, size_t n)
{
    unsigned char out[SES_CONTROL_HEAD + SES_CONTROL_TEXT];
    ses_control_message m, m2;
    int k;
    /* in a block of its own, so that reads past the end are detected */
    unsigned char *copy = malloc(n ? n : 1), *p = copy;
    MUST(copy);
    if (n) memcpy(copy, data, n);
    while ((k = ses_control_read(&m, p, n)) > 0) {
        MUST((size_t)k <= n && memchr(m.text, 0, sizeof m.text) && m.rank >= 0 && m.rank < SES_MAX_RANKS);
        size_t written = ses_control_write(&m, out);
        MUST(ses_control_read(&m2, out, written) == (int)written);
        MUST(m2.kind == m.kind && m2.rank == m.rank && m2.update == m.update && !strcmp(m2.text, m.text));
        MUST(ses_control_read(&m2, out, written - 1) == 0);
        p += k;
        n -= (size_t)k;
    }
    free(copy);
}

static void check_list(const uint8_t *data, size_t n)
{
    static const int index[] = { 0, 1, 7, 1000, 1 << 30 };
    char *list = malloc(n + 1), host[32];
    MUST(list);
    memcpy(list, data, n);
    list[n] = 0;
    for (size_t i = 0; i < sizeof index / sizeof *index; i++) {
        memset(host, 'x', sizeof host);
        if (ses_nodelist_at(list, index[i], host, sizeof host))
            MUST(memchr(host, 0, sizeof host) && *host && !strchr(host, ','));
    }
    free(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n) return 0;
    switch (data[0] % 3) {
    case 0: check_hello(data + 1, n - 1); break;
    case 1: check_messages(data + 1, n - 1); break;
    default: check_list(data + 1, n - 1);
    }
    return 0;
}
