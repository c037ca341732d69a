/* Listening sockets: TCP, Unix, and sockets passed by systemd. Accepting clients. */
#define _GNU_SOURCE
#include "http_impl.h"

#include "base/alloc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 4096, FIRST_PASSED_FD = 3 };

typedef union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un un;
    struct sockaddr_storage storage;
} address;

static bool is_loopback(const address *a)
{
    static const unsigned char mapped[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127 };
    if (a->any.sa_family == AF_INET) return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
    if (a->any.sa_family != AF_INET6) return false;
    return IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr) || !memcmp(&a->v6.sin6_addr, mapped, sizeof mapped);
}

static int port_of(const address *a)
{
    if (a->any.sa_family == AF_INET) return ntohs(a->v4.sin_port);
    return a->any.sa_family == AF_INET6 ? ntohs(a->v6.sin6_port) : 0;
}

/* "127.0.0.1:8080", "[::1]:8080" or "unix" */
static void format_address(const address *a, char out[64])
{
    char text[INET6_ADDRSTRLEN] = "";
    if (a->any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &a->v6.sin6_addr, text, sizeof text);
        snprintf(out, 64, "[%s]:%d", text, port_of(a));
    } else if (a->any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &a->v4.sin_addr, text, sizeof text);
        snprintf(out, 64, "%s:%d", text, port_of(a));
    } else
        snprintf(out, 64, "unix");
}

/* Takes a socket that is bound and listens. */
static bool add_listener(ses_http_server *s, int fd, ses_err *e)
{
    address a = { .any.sa_family = AF_UNSPEC };
    socklen_t n = sizeof a;
    ses_http_listener *l = &s->listener[s->listeners];
    if (s->listeners == SES_HTTP_MAX_LISTENERS) {
        close(fd);
        return ses_fail(e, SES_EARG, "more than %d listening sockets", SES_HTTP_MAX_LISTENERS);
    }
    if (getsockname(fd, &a.any, &n)) {
        close(fd);
        return ses_fail(e, SES_EIO, "getsockname: %s", strerror(errno));
    }
    *l = (ses_http_listener){ .source = SES_HTTP_SOURCE_LISTENER,
                              .fd = fd,
                              .is_unix = a.any.sa_family == AF_UNIX,
                              .is_loopback = is_loopback(&a) };
    /* Accepted sockets inherit it. Responses are written at once, so nothing is gained by waiting. */
    if (!l->is_unix) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
    if (!s->port) s->port = port_of(&a);
    s->listeners++;
    return true;
}

/* ---- TCP ---- */

/* *absent: this machine has no such address. */
static bool listen_address(ses_http_server *s, const struct addrinfo *info, bool *absent, ses_err *e)
{
    address a = { .any.sa_family = AF_UNSPEC };
    memcpy(&a, info->ai_addr, info->ai_addrlen < sizeof a ? info->ai_addrlen : sizeof a);
    if (a.any.sa_family == AF_INET && !a.v4.sin_port) a.v4.sin_port = htons((uint16_t)s->port);
    if (a.any.sa_family == AF_INET6 && !a.v6.sin6_port) a.v6.sin6_port = htons((uint16_t)s->port);
    char text[64];
    format_address(&a, text);
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    *absent = fd < 0 && errno == EAFNOSUPPORT;
    if (fd < 0) return ses_fail(e, SES_EIO, "cannot listen on %s: %s", text, strerror(errno));
    bool all = a.any.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&a.v6.sin6_addr); /* "::": IPv4 too */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
    if (info->ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){ !all }, sizeof(int));
    if (!bind(fd, &a.any, info->ai_addrlen) && !listen(fd, BACKLOG)) return add_listener(s, fd, e);
    int code = errno;
    *absent = code == EADDRNOTAVAIL;
    close(fd);
    if (code == EADDRINUSE)
        return ses_fail(e, SES_EIO, "cannot listen on %s: another program uses this port; choose another one",
                        text);
    return ses_fail(e, SES_EIO, "cannot listen on %s: %s", text, strerror(code));
}

/* A name may have several addresses ("localhost": 127.0.0.1 and ::1). An address that does not exist on
 * this machine is skipped if another one works. */
static bool listen_tcp(ses_http_server *s, ses_err *e)
{
    const char *host = s->o.host ? s->o.host : "127.0.0.1";
    struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM },
                    *list = NULL;
    char port[16];
    if (s->o.port < 0 || s->o.port > 65535)
        return ses_fail(e, SES_EARG, "port %d is not in 0..65535", s->o.port);
    snprintf(port, sizeof port, "%d", s->o.port);
    int code = getaddrinfo(host, port, &hints, &list);
    if (code)
        return ses_fail(e, SES_EARG, "host \"%s\": %s", ses_quoted_of(host, strlen(host)).s,
                        gai_strerror(code));
    int before = s->listeners;
    ses_err error = { 0 }; /* the first one */
    bool absent = true;
    for (const struct addrinfo *i = list; i && absent; i = i->ai_next)
        if (listen_address(s, i, &absent, &error)) absent = true;
    freeaddrinfo(list);
    if (absent && s->listeners > before) return true;
    return ses_fail(e, error.code, "%s", error.msg);
}

/* ---- Unix sockets ---- */

/* A socket file whose server has ended is removed. False: it is in use, or not a socket. */
static bool remove_stale(const struct sockaddr_un *a, ses_err *e)
{
    struct stat st;
    if (lstat(a->sun_path, &st)) return true;
    if (!S_ISSOCK(st.st_mode)) return ses_fail(e, SES_EIO, "%s: exists and is not a socket", a->sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool used = fd >= 0 && (!connect(fd, (const struct sockaddr *)a, sizeof *a) || errno != ECONNREFUSED);
    if (fd >= 0) close(fd);
    if (used) return ses_fail(e, SES_EIO, "%s: another program listens on this socket", a->sun_path);
    if (!unlink(a->sun_path) || errno == ENOENT) return true;
    return ses_fail(e, SES_EIO, "%s: cannot remove the old socket: %s", a->sun_path, strerror(errno));
}

static bool listen_unix(ses_http_server *s, ses_err *e)
{
    const char *path = s->o.unix_socket;
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    struct stat st;
    if (strlen(path) >= sizeof a.sun_path)
        return ses_fail(e, SES_EARG, "the path of the socket is longer than %zu bytes",
                        sizeof a.sun_path - 1);
    memcpy(a.sun_path, path, strlen(path) + 1);
    if (!(s->unix_path = ses_strdup(path, e)) || !remove_stale(&a, e)) return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t mode = (mode_t)(s->o.unix_mode ? s->o.unix_mode : 0600);
    /* Before listen no client can connect, so the permissions are in force from the start. */
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) || chmod(path, mode) || stat(path, &st) ||
        listen(fd, BACKLOG)) {
        ses_fail(e, SES_EIO, "cannot listen on %s: %s", path, strerror(errno));
        if (fd >= 0) close(fd);
        return false;
    }
    if (!add_listener(s, fd, e)) return false;
    ses_http_listener *l = &s->listener[s->listeners - 1];
    l->owns_path = true;
    l->device = st.st_dev;
    l->inode = st.st_ino;
    return true;
}

/* ---- sockets passed by systemd (sd_listen_fds) ---- */

static long number_of(const char *text)
{
    char *end = NULL;
    long n = text && *text ? strtol(text, &end, 10) : -1;
    return end && !*end ? n : -1;
}

static int passed_sockets(void)
{
    long n = number_of(getenv("LISTEN_FDS"));
    return number_of(getenv("LISTEN_PID")) == (long)getpid() && n > 0 ? (int)(n < 4096 ? n : 4096) : 0;
}

static bool listen_passed(ses_http_server *s, int count, ses_err *e)
{
    for (int fd = FIRST_PASSED_FD; fd < FIRST_PASSED_FD + count; fd++) {
        int listens = 0, type = 0;
        socklen_t n = sizeof listens, m = sizeof type;
        int flags = fcntl(fd, F_GETFL);
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) || !listens ||
            getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &m) || type != SOCK_STREAM)
            return ses_fail(e, SES_EARG, "file descriptor %d of LISTEN_FDS is not a listening stream socket",
                            fd);
        if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) || fcntl(fd, F_SETFD, FD_CLOEXEC))
            return ses_fail(e, SES_EIO, "file descriptor %d of LISTEN_FDS: %s", fd, strerror(errno));
        if (!add_listener(s, fd, e)) return false;
    }
    return true;
}

bool ses_http_listen(ses_http_server *s, ses_err *e)
{
    int passed = s->o.socket_activation ? passed_sockets() : 0;
    if (passed) return listen_passed(s, passed, e);
    if (s->o.unix_socket && !listen_unix(s, e)) return false;
    if (s->o.port != -1 && !listen_tcp(s, e)) return false;
    if (!s->listeners) return ses_fail(e, SES_EARG, "no port and no Unix socket to listen on");
    return true;
}

void ses_http_close_listeners(ses_http_server *s)
{
    struct stat st;
    for (int i = 0; i < s->listeners; i++) {
        const ses_http_listener *l = &s->listener[i];
        if (l->owns_path && !lstat(s->unix_path, &st) && st.st_dev == l->device && st.st_ino == l->inode)
            unlink(s->unix_path);
        close(l->fd);
    }
    s->listeners = 0;
    s->listening = false;
}

void ses_http_set_listening(ses_http_server *s, bool on)
{
    for (int i = 0; i < s->listeners; i++) {
        struct epoll_event event = { .events = EPOLLIN, .data.ptr = &s->listener[i] };
        epoll_ctl(s->epoll, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, s->listener[i].fd, &event);
    }
    s->listening = on;
}

/* ---- clients ---- */

/* No descriptor is left: the one in reserve accepts the client, who gets an answer instead of waiting. */
static void refuse(ses_http_server *s, ses_http_listener *l)
{
    static const char text[] = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\n"
                               "Connection: close\r\n\r\n";
    if (s->reserve >= 0) close(s->reserve);
    int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        ssize_t ignored = send(fd, text, sizeof text - 1, MSG_NOSIGNAL);
        (void)ignored;
        shutdown(fd, SHUT_WR);
        close(fd);
        ses_http_count(&s->rejected_total, 1);
    }
    s->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (s->o.on_rejected) s->o.on_rejected(s->o.ctx, 503, "no file descriptor is left");
}

static void pause_accepting(ses_http_server *s)
{
    if (s->listening) ses_http_set_listening(s, false);
}

void ses_http_accept(ses_http_server *s, ses_http_listener *l, int max)
{
    for (int i = 0; i < max; i++) {
        address a = { .any.sa_family = AF_UNSPEC };
        socklen_t n = sizeof a;
        char peer[64];
        if (s->open >= s->limits.max_connections) {
            pause_accepting(s);
            return;
        }
        int fd = accept4(l->fd, &a.any, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            format_address(&a, peer);
            ses_http_connection_new(s, fd, l, peer);
            continue;
        }
        if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO || errno == EPERM) continue;
        if (errno == EAGAIN || errno == EWOULDBLOCK) return;
        if (errno == EMFILE || errno == ENFILE) refuse(s, l);
        s->retry_accept = s->now + 50000000; /* other errors are temporary too: ENOBUFS, ENOMEM */
        pause_accepting(s);
        return;
    }
}

/* ---- the Host header ---- */

bool ses_http_is_loopback(ses_string name)
{
    static const char local[] = "localhost";
    char text[INET6_ADDRSTRLEN];
    address a = { .any.sa_family = AF_INET };
    if (name.n == sizeof local - 1 && ses_http_equal_nocase(name.p, name.n, local)) return true;
    if (name.n >= sizeof text) return false;
    memcpy(text, name.p, name.n);
    text[name.n] = 0;
    if (inet_pton(AF_INET, text, &a.v4.sin_addr) == 1) return is_loopback(&a);
    a.any.sa_family = AF_INET6;
    return inet_pton(AF_INET6, text, &a.v6.sin6_addr) == 1 && is_loopback(&a);
}

static bool same_name(ses_string name, const char *allowed)
{
    return allowed && name.n == strlen(allowed) && ses_http_equal_nocase(name.p, name.n, allowed);
}

bool ses_http_host_allowed(const ses_http_server *s, const char *value, size_t n)
{
    ses_string name;
    if (!ses_http_host_name(value, n, &name)) return false;
    if (ses_http_is_loopback(name) || same_name(name, s->o.host)) return true;
    for (const char *const *h = s->o.allowed_hosts; h && *h; h++)
        if (same_name(name, *h) || same_name((ses_string){ value, n }, *h)) return true;
    return false;
}
