/* Sockets of the ranks. */
#define _DEFAULT_SOURCE /* getifaddrs */
#include "net.h"

#include "base/clock.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage room;
} address;

static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };

static bool is_v4(const ses_ip *ip) { return !memcmp(ip->byte, mapped, sizeof mapped); }

static bool ip_of(const struct sockaddr *a, ses_ip *ip)
{
    if (a->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, a, sizeof v4);
        memcpy(ip->byte, mapped, sizeof mapped);
        memcpy(ip->byte + 12, &v4.sin_addr, 4);
    } else if (a->sa_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, a, sizeof v6);
        memcpy(ip->byte, &v6.sin6_addr, 16);
    }
    return a->sa_family == AF_INET || a->sa_family == AF_INET6;
}

static socklen_t address_of(const ses_ip *ip, int port, address *a)
{
    memset(a, 0, sizeof *a);
    if (is_v4(ip)) {
        a->v4.sin_family = AF_INET;
        a->v4.sin_port = htons((uint16_t)port);
        memcpy(&a->v4.sin_addr, ip->byte + 12, 4);
        return sizeof a->v4;
    }
    a->v6.sin6_family = AF_INET6;
    a->v6.sin6_port = htons((uint16_t)port);
    memcpy(&a->v6.sin6_addr, ip->byte, 16);
    return sizeof a->v6;
}

static void no_delay(int fd) { setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)); }

void ses_net_close(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

/* ---- listening ---- */

static int listen_family(int family, int port, int *bound)
{
    enum { BACKLOG = 4096 };
    address a;
    socklen_t n = sizeof a;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    memset(&a, 0, sizeof a); /* all zero: any address */
    a.any.sa_family = (sa_family_t)family;
    if (family == AF_INET6)
        a.v6.sin6_port = htons((uint16_t)port);
    else
        a.v4.sin_port = htons((uint16_t)port);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
    if (family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){ 0 }, sizeof(int));
    if (!bind(fd, &a.any, family == AF_INET6 ? sizeof a.v6 : sizeof a.v4) && !listen(fd, BACKLOG) &&
        !getsockname(fd, &a.any, &n)) {
        *bound = ntohs(family == AF_INET6 ? a.v6.sin6_port : a.v4.sin_port);
        return fd;
    }
    int code = errno;
    close(fd);
    errno = code;
    return -1;
}

int ses_net_listen(int port, int *bound, ses_err *e)
{
    int fd = listen_family(AF_INET6, port, bound);
    if (fd < 0 && errno != EADDRINUSE) fd = listen_family(AF_INET, port, bound); /* no IPv6 here */
    if (fd >= 0) return fd;
    if (errno == EADDRINUSE)
        ses_fail(e, SES_EIO, "cannot listen on port %d: another program uses it", port);
    else
        ses_fail(e, SES_EIO, "cannot listen on port %d: %s", port, strerror(errno));
    return -1;
}

int ses_net_accept(int listener)
{
    int fd = accept(listener, NULL, NULL);
    if (fd < 0) return -1;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    no_delay(fd);
    return fd;
}

/* ---- addresses ---- */

static bool is_link_local(const ses_ip *ip)
{
    if (is_v4(ip)) return ip->byte[12] == 169 && ip->byte[13] == 254;
    return ip->byte[0] == 0xfe && (ip->byte[1] & 0xc0) == 0x80;
}

int ses_net_local(ses_ip ip[SES_MAX_IPS])
{
    struct ifaddrs *list = NULL;
    int n = 0;
    if (getifaddrs(&list)) list = NULL;
    for (int pass = 0; pass < 2; pass++) /* loopback in the second one; one entry is kept for it */
        for (const struct ifaddrs *i = list; i && n < SES_MAX_IPS - !pass; i = i->ifa_next) {
            bool loop = i->ifa_flags & IFF_LOOPBACK;
            if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) || loop != pass) continue;
            if (ip_of(i->ifa_addr, &ip[n]) && !is_link_local(&ip[n])) n++;
        }
    if (list) freeifaddrs(list);
    return n;
}

int ses_net_resolve(const char *host, ses_ip ip[SES_MAX_IPS], ses_err *e)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;
    int n = 0, code = getaddrinfo(host, NULL, &hints, &list);
    if (code) {
        ses_fail(e, SES_EIO, "host \"%s\": %s", ses_quoted_of(host, strlen(host)).s, gai_strerror(code));
        return 0;
    }
    for (const struct addrinfo *i = list; i && n < SES_MAX_IPS; i = i->ai_next)
        n += ip_of(i->ai_addr, &ip[n]);
    freeaddrinfo(list);
    if (!n) ses_fail(e, SES_EIO, "host \"%s\" has no address", ses_quoted_of(host, strlen(host)).s);
    return n;
}

ses_ip ses_net_peer(int fd)
{
    address a;
    socklen_t n = sizeof a;
    ses_ip ip = { { 0 } };
    if (!getpeername(fd, &a.any, &n)) ip_of(&a.any, &ip);
    return ip;
}

/* ---- transfer ---- */

int ses_net_millis(double deadline, int limit)
{
    double ms = (deadline - ses_seconds()) * 1e3;
    return ms <= 0 ? 0 : ms < limit ? (int)ms + 1 : limit;
}

bool ses_net_wait(int fd, bool write, double deadline)
{
    struct pollfd p = { .fd = fd, .events = write ? POLLOUT : POLLIN };
    for (;;) {
        int n = poll(&p, 1, ses_net_millis(deadline, 1000));
        if (n > 0) return true;
        if (n < 0 && errno != EINTR) return false;
        if (ses_seconds() >= deadline) return false;
    }
}

/* Sets errno on failure. */
int ses_net_connect_begin(const ses_ip *ip, int port, bool *pending)
{
    address a;
    socklen_t n = address_of(ip, port, &a);
    int fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    no_delay(fd);
    *pending = false;
    if (!connect(fd, &a.any, n)) return fd;
    *pending = errno == EINPROGRESS;
    if (*pending) return fd;
    int code = errno;
    close(fd);
    errno = code;
    return -1;
}

bool ses_net_connect_end(int fd)
{
    int code = 0;
    socklen_t size = sizeof code;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size)) return false;
    errno = code;
    return !code;
}

int ses_net_connect(const ses_ip *ip, int port, double deadline, ses_err *e)
{
    bool pending = false, ok = true;
    int fd = ses_net_connect_begin(ip, port, &pending);
    if (pending) {
        errno = ETIMEDOUT;
        ok = ses_net_wait(fd, true, deadline) && ses_net_connect_end(fd);
    }
    if (fd >= 0 && ok) return fd;
    int code = errno;
    ses_net_close(&fd);
    ses_fail(e, SES_EIO, "cannot connect: %s", strerror(code));
    return -1;
}

bool ses_net_send(int fd, const void *p, size_t n, double deadline, ses_err *e)
{
    const char *from = p;
    while (n) {
        ssize_t k = send(fd, from, n, MSG_NOSIGNAL);
        if (k > 0) {
            from += k;
            n -= (size_t)k;
        } else if (k < 0 && errno != EAGAIN && errno != EINTR) {
            return ses_fail(e, SES_EIO, "cannot send: %s", strerror(errno));
        } else if (!ses_net_wait(fd, true, deadline)) {
            return ses_fail(e, SES_EIO, "cannot send: no answer in time");
        }
    }
    return true;
}

bool ses_net_recv(int fd, void *p, size_t n, double deadline, ses_err *e)
{
    char *to = p;
    while (n) {
        ssize_t k = recv(fd, to, n, 0);
        if (k > 0) {
            to += k;
            n -= (size_t)k;
        } else if (!k) {
            return ses_fail(e, SES_EIO, "the connection was closed");
        } else if (errno != EAGAIN && errno != EINTR) {
            return ses_fail(e, SES_EIO, "cannot receive: %s", strerror(errno));
        } else if (!ses_net_wait(fd, false, deadline)) {
            return ses_fail(e, SES_EIO, "no answer in time");
        }
    }
    return true;
}
