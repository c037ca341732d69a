/* Reads and writes the first bytes of connections. All integers are little-endian. */
#include "hello.h"

#include "base/bytes.h"
#include "sesame/base.h"

#include <string.h>

static const unsigned char magic[8] = { 'S', 'E', 'S', 'A', 'M', 'E', 'r', 'k' };

/* Offsets. */
enum {
    PROTOCOL = 8,
    KIND = 12,
    RANK = 16,
    SIZE = 20,
    COOKIE = 24,
    PORT = 32,
    IPS = 36,
    IP = 40,
    VERSION = 168
};

static void put(unsigned char *p, uint64_t x, int n)
{
    for (int i = 0; i < n; i++) p[i] = (unsigned char)(x >> 8 * i);
}

ses_hello ses_hello_of(ses_hello_kind kind, int rank, int size, uint64_t cookie, int port)
{
    ses_hello h = { .kind = kind,
                    .protocol = SES_COMM_PROTOCOL,
                    .rank = rank,
                    .size = size,
                    .cookie = cookie,
                    .port = port };
    const char *version = ses_version();
    size_t n = strlen(version);
    memcpy(h.version, version, n < sizeof h.version ? n : sizeof h.version - 1);
    h.ips = ses_net_local(h.ip);
    return h;
}

void ses_hello_write(const ses_hello *h, unsigned char out[SES_HELLO_BYTES])
{
    memset(out, 0, SES_HELLO_BYTES);
    memcpy(out, magic, sizeof magic);
    put(out + PROTOCOL, h->protocol, 4);
    put(out + KIND, h->kind, 4);
    put(out + RANK, (uint64_t)h->rank, 4);
    put(out + SIZE, (uint64_t)h->size, 4);
    put(out + COOKIE, h->cookie, 8);
    put(out + PORT, (uint64_t)h->port, 4);
    put(out + IPS, (uint64_t)h->ips, 4);
    for (int i = 0; i < h->ips; i++) memcpy(out + IP + 16 * i, h->ip[i].byte, 16);
    memcpy(out + VERSION, h->version, sizeof h->version);
}

bool ses_hello_read(ses_hello *h, const unsigned char in[SES_HELLO_BYTES])
{
    *h = (ses_hello){ 0 };
    if (memcmp(in, magic, sizeof magic)) return false;
    uint32_t kind = ses_le32(in + KIND), rank = ses_le32(in + RANK), size = ses_le32(in + SIZE);
    uint32_t port = ses_le32(in + PORT), ips = ses_le32(in + IPS);
    if (kind < SES_HELLO_JOIN || kind > SES_HELLO_CONTROL || size < 1 || size > SES_MAX_RANKS ||
        rank >= size || port > 65535 || ips > SES_MAX_IPS)
        return false;
    h->kind = (ses_hello_kind)kind;
    h->protocol = ses_le32(in + PROTOCOL);
    h->rank = (int)rank;
    h->size = (int)size;
    h->cookie = ses_le64(in + COOKIE);
    h->port = (int)port;
    h->ips = (int)ips;
    for (int i = 0; i < h->ips; i++) memcpy(h->ip[i].byte, in + IP + 16 * i, 16);
    for (int i = 0; i < SES_HELLO_VERSION - 1; i++) { /* for messages: printable */
        unsigned char c = in[VERSION + i];
        if (!c) break;
        h->version[i] = c > ' ' && c < 127 ? (char)c : '?';
    }
    return true;
}

bool ses_hello_check_version(const ses_hello *h, const char *host, ses_err *e)
{
    if (strcmp(h->version, ses_version()))
        return ses_fail(e, SES_EARG,
                        "rank %d on %s runs Sesame %s, this rank %s: install the same version everywhere",
                        h->rank, host, h->version, ses_version());
    if (h->protocol != SES_COMM_PROTOCOL)
        return ses_fail(e, SES_EARG,
                        "rank %d on %s has version %u of the protocol between ranks, this rank %d: install "
                        "the same build everywhere",
                        h->rank, host, h->protocol, SES_COMM_PROTOCOL);
    return true;
}

bool ses_hello_send(int fd, const ses_hello *h, double deadline, ses_err *e)
{
    unsigned char out[SES_HELLO_BYTES];
    ses_hello_write(h, out);
    return ses_net_send(fd, out, sizeof out, deadline, e);
}

bool ses_hello_recv(int fd, ses_hello *h, double deadline, ses_err *e)
{
    unsigned char in[SES_HELLO_BYTES];
    if (!ses_net_recv(fd, in, sizeof in, deadline, e)) return false;
    return ses_hello_read(h, in) || ses_fail(e, SES_EFORMAT, "the answer is not one of a rank of Sesame");
}
