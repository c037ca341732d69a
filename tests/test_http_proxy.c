/* Requests that two HTTP parsers may read differently, sent to the server directly and through nginx: the
 * server sees no request that nginx did not count as one. Skipped if nginx is not installed. */
#define _GNU_SOURCE
#include "http_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* C: the number of the case. A request for /sC must not be seen unless it was sent as a request. */
#define POST "POST /cC HTTP/1.1\r\nHost: localhost\r\n"
#define GET "GET /cC HTTP/1.1\r\nHost: localhost\r\n"
#define INNER "GET /sC HTTP/1.1\r\nHost: localhost\r\n\r\n"
#define CHUNKED "Transfer-Encoding: chunked\r\n"

static const struct {
    int direct;       /* requests that the server sees if they are sent directly */
    const char *text; /* @ is a NUL */
} cases[] = {
    { 1, GET "\r\n" },
    { 2, GET "\r\n" INNER },
    { 2, POST "Content-Length: 5\r\n\r\nhello" INNER },
    { 1, POST "Content-Length: 39\r\n\r\n" INNER }, /* the inner request is the body */
    { 1, GET "Content-Length: 39\r\n\r\n" INNER },
    { 1, POST CHUNKED "\r\n27\r\n" INNER "\r\n0\r\n\r\n" },
    { 2, POST CHUNKED "\r\n1;a=b\r\nx\r\n0\r\nX-T: y\r\n\r\n" INNER },
    { 2, GET CHUNKED "\r\n0\r\n\r\n" INNER },
    { 2, "\r\n" GET "\r\n" INNER },
    /* two lengths */
    { 0, POST "Content-Length: 0\r\nContent-Length: 39\r\n\r\n" INNER },
    { 0, POST "Content-Length: 39\r\nContent-Length: 0\r\n\r\n" INNER },
    { 0, POST "Content-Length: 39\r\nContent-Length: 39\r\n\r\n" INNER },
    { 0, POST "Content-Length: 0, 39\r\n\r\n" INNER },
    { 0, POST "Content-Length: 39\r\n" CHUNKED "\r\n0\r\n\r\n" INNER },
    { 0, POST CHUNKED "Content-Length: 4\r\n\r\n27\r\n" INNER "\r\n0\r\n\r\n" },
    { 0, POST CHUNKED "Content-Length: 0\r\n\r\n0\r\n\r\n" INNER },
    { 0, "POST /cC HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n" CHUNKED "\r\n0\r\n\r\n" INNER },
    { 0, POST CHUNKED CHUNKED "\r\n0\r\n\r\n" INNER },
    { 0, POST CHUNKED "Transfer-Encoding: identity\r\nContent-Length: 39\r\n\r\n" INNER },
    /* lengths and codings in odd forms */
    { 0, POST "Content-Length: +39\r\n\r\n" INNER },
    { 0, POST "Content-Length: -1\r\n\r\n" INNER },
    { 0, POST "Content-Length: 0x27\r\n\r\n" INNER },
    { 0, POST "Content-Length: 3 9\r\n\r\n" INNER },
    { 0, POST "Content-Length:\r\n\r\n" INNER },
    { 0, POST "Content-Length: 18446744073709551655\r\n\r\n" INNER },
    { 0, POST "Content-Length : 39\r\n\r\n" INNER },
    { 0, POST "Content-Length\t: 39\r\n\r\n" INNER },
    { 0, POST " Content-Length: 39\r\n\r\n" INNER },
    { 0, POST "Content-Length: 3\x0b"
              "9\r\n\r\n" INNER },
    { 0, POST "Content-Length: 39@\r\n\r\n" INNER },
    { 0, POST "Content-Length@: 39\r\n\r\n" INNER },
    { 2, POST "Content_Length: 39\r\n\r\n" INNER },
    { 0, POST "Transfer-Encoding : chunked\r\nContent-Length: 39\r\n\r\n" INNER },
    { 0, POST "Transfer-Encoding: xchunked\r\nContent-Length: 39\r\n\r\n" INNER },
    { 0, POST "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" INNER },
    { 0, POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" INNER },
    { 0, POST "Transfer-Encoding: \x0b"
              "chunked\r\n\r\n0\r\n\r\n" INNER },
    { 0, POST "Transfer-Encoding:\r\n chunked\r\nContent-Length: 39\r\n\r\n" INNER },
    { 0, POST "X: y\r\n Transfer-Encoding: chunked\r\nContent-Length: 39\r\n\r\n" INNER },
    { 0, POST "X: y\nTransfer-Encoding: chunked\r\nContent-Length: 39\r\n\r\n" INNER },
    { 0, POST "X: y\rTransfer-Encoding: chunked\r\nContent-Length: 39\r\n\r\n" INNER },
    { 0, POST "X: y@\r\nContent-Length: 39\r\n\r\n" INNER },
    { 0, POST ": y\r\nContent-Length: 39\r\n\r\n" INNER },
    { 1, POST "Connection: close, Content-Length\r\nContent-Length: 39\r\n\r\n" INNER },
    { 2, POST "Connection: Transfer-Encoding\r\n" CHUNKED "\r\n0\r\n\r\n" INNER },
    { 1, POST "Expect: 100-continue\r\nContent-Length: 39\r\n\r\n" INNER },
    { 2, GET "Upgrade: h2c\r\nConnection: Upgrade\r\n\r\n" INNER },
    /* chunks in odd forms */
    { 0, POST CHUNKED "\r\n5 \r\nhello\r\n0\r\n\r\n" INNER },
    { 0, POST CHUNKED "\r\n0x5\r\nhello\r\n0\r\n\r\n" INNER },
    { 0, POST CHUNKED "\r\n5\nhello\r\n0\r\n\r\n" INNER },
    { 0, POST CHUNKED "\r\n5\r\nhello\n0\r\n\r\n" INNER },
    { 0, POST CHUNKED "\r\n5\r\nhelloXX0\r\n\r\n" INNER },
    { 0, POST CHUNKED "\r\n-5\r\nhello\r\n0\r\n\r\n" INNER },
    { 0, POST CHUNKED "\r\n10000000000000005\r\nhello\r\n0\r\n\r\n" INNER },
    { 0, POST CHUNKED "\r\n5;a\nb\r\nhello\r\n0\r\n\r\n" INNER },
    { 0, POST CHUNKED "\r\n2;\nxx\r\n27\r\n" INNER "\r\n0\r\n\r\n" },
    { 0, POST CHUNKED "\r\n5;a\rb\r\nhello\r\n0\r\n\r\n" INNER },
    { 0, POST CHUNKED "\r\n0\n\n" INNER },
    { 0, POST CHUNKED "\r\n0\r\n\n" INNER },
    { 2, POST CHUNKED "\r\n0\r\nContent-Length: 39\r\n\r\n" INNER },
    { 0, POST CHUNKED "\r\n0\r\n X: y\r\n\r\n" INNER },
    /* lines and targets */
    { 0, "GET /cC HTTP/1.1\nHost: localhost\n\n" INNER },
    { 0, GET "\n" INNER },
    { 0, "GET /cC\r\n\r\n" INNER },
    { 0, "GET  /cC HTTP/1.1\r\nHost: localhost\r\n\r\n" INNER },
    { 0, "GET /cC HTTP/1.1 \r\nHost: localhost\r\n\r\n" INNER },
    { 0, "GET /cC HTTP/1.2\r\nHost: localhost\r\n\r\n" INNER },
    { 0, "GET /cC HTTP/1.1\r\n\r\n" INNER },
    { 0, "GET /cC HTTP/1.1\r\nHost: localhost\r\nHost: b\r\n\r\n" INNER },
    { 0, "GET http://b/cC HTTP/1.1\r\nHost: localhost\r\n\r\n" INNER },
    { 2, "GET http://localhost/cC HTTP/1.1\r\nHost: localhost\r\n\r\n" INNER },
    { 0, "GET /cC%0d%0a%0d%0aGET%20/sC HTTP/1.1\r\nHost: localhost\r\n\r\n" },
    { 0, "GET /cC%00 HTTP/1.1\r\nHost: localhost\r\n\r\n" INNER },
    { 0, "GET /cC#/sC HTTP/1.1\r\nHost: localhost\r\n\r\n" INNER },
};

/* ---- the requests that the server sees ---- */

enum { MAX_SEEN = 4096 };

typedef struct seen {
    char name[64]; /* method and path */
    int by_server, by_nginx;
} seen;

typedef struct record {
    pthread_mutex_t lock;
    seen list[MAX_SEEN];
    int n;
} record;

static record all;

static void note(const char *name, size_t n, bool by_nginx)
{
    pthread_mutex_lock(&all.lock);
    int i = 0;
    while (i < all.n && (strlen(all.list[i].name) != n || memcmp(all.list[i].name, name, n) != 0)) i++;
    if (i == all.n && n < sizeof all.list[i].name && i + 1 < MAX_SEEN)
        memcpy(all.list[all.n++].name, name, n);
    if (by_nginx)
        all.list[i].by_nginx++;
    else
        all.list[i].by_server++;
    pthread_mutex_unlock(&all.lock);
}

static int count_seen(const char *name)
{
    int found = 0;
    pthread_mutex_lock(&all.lock);
    for (int i = 0; i < all.n; i++)
        if (!strcmp(all.list[i].name, name)) found = all.list[i].by_server;
    pthread_mutex_unlock(&all.lock);
    return found;
}

static void forget(void)
{
    pthread_mutex_lock(&all.lock);
    memset(all.list, 0, sizeof all.list);
    all.n = 0;
    pthread_mutex_unlock(&all.lock);
}

static void on_request(void *ctx, ses_http_exchange *x)
{
    char name[64];
    ses_string method = ses_http_method(x), path = ses_http_path(x);
    int n = snprintf(name, sizeof name, "%.*s %.*s", (int)method.n, method.p, (int)path.n, path.p);
    (void)ctx;
    if (n < (int)sizeof name) note(name, (size_t)n, false);
    ses_http_reply(x, 200, "text/plain", name, strlen(name), NULL);
}

/* ---- clients ---- */

static int connect_unix(const char *path)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    struct timeval t = { 3, 0 };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    if (!connect(fd, (struct sockaddr *)&a, sizeof a)) return fd;
    close(fd);
    return -1;
}

/* Replaces C by the number and @ by NUL; returns the length. */
static size_t expand(const char *text, size_t number, char *out, size_t size)
{
    size_t n = 0;
    for (; *text; text++) {
        bool is_name =
            text[0] == 'C' && n && (out[n - 1] == 'c' || out[n - 1] == 's') && n > 1 && out[n - 2] == '/';
        if (is_name)
            n += (size_t)snprintf(out + n, size - n, "%03zu", number);
        else
            out[n++] = *text == '@' ? 0 : *text;
    }
    return n;
}

static void test_direct(int port)
{
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        char text[2048], out[4096], outer[32], inner[32];
        size_t n = expand(cases[i].text, i, text, sizeof text);
        int fd = raw_connect(port);
        raw_send_n(fd, text, n);
        shutdown(fd, SHUT_WR);
        raw_read(fd, out, sizeof out - 1);
        close(fd);
        snprintf(outer, sizeof outer, "%s /c%03zu", text[0] == 'P' ? "POST" : "GET", i);
        snprintf(inner, sizeof inner, "GET /s%03zu", i);
        int sum = count_seen(outer) + count_seen(inner);
        CHECK_MSG(sum == cases[i].direct, "case %zu: %d requests, not %d: %s", i, sum, cases[i].direct, text);
    }
}

/* All cases at once, each on a connection of its own, then an honest client. */
static void test_through(const char *socket_path)
{
    int fd[SES_LEN(cases)];
    char text[2048], out[4096];
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        size_t n = expand(cases[i].text, i, text, sizeof text);
        fd[i] = connect_unix(socket_path);
        CHECK(fd[i] >= 0);
        raw_send_n(fd[i], text, n);
    }
    for (int i = 0; i < 20; i++) {
        int honest = connect_unix(socket_path);
        raw_send(honest, "GET /honest HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        CHECK_MSG(raw_read(honest, out, sizeof out - 1) > 0 && strstr(out, "\r\n\r\nGET /honest"), "%s", out);
        close(honest);
    }
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        raw_read(fd[i], out, sizeof out - 1);
        close(fd[i]);
    }
}

/* ---- nginx ---- */

static const char *find_nginx(void)
{
    static const char *const paths[] = { "/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx" };
    for (size_t i = 0; i < SES_LEN(paths); i++)
        if (!access(paths[i], X_OK)) return paths[i];
    return NULL;
}

/* Three ways to forward: with kept connections, without buffering and with invalid headers, and as
 * HTTP/1.0. */
static void write_config(const char *dir, int port)
{
    char path[128];
    snprintf(path, sizeof path, "%s/nginx.conf", dir);
    FILE *f = fopen(path, "w");
    if (!f) abort();
    fprintf(
        f,
        "daemon off; master_process off; pid %s/pid; error_log %s/error.log;\n"
        "events { worker_connections 512; }\n"
        "http {\n"
        "  log_format request '$request_method $uri'; access_log %s/access.log request;\n"
        "  client_body_temp_path %s/t1; proxy_temp_path %s/t2; fastcgi_temp_path %s/t3; uwsgi_temp_path "
        "%s/t4;\n"
        "  scgi_temp_path %s/t5; keepalive_timeout 1s; client_body_timeout 1s; client_header_timeout 1s;\n"
        "  lingering_close off; proxy_next_upstream off; proxy_set_header Host $http_host;\n"
        "  upstream ours { server 127.0.0.1:%d max_fails=0; keepalive 4; }\n"
        "  server { listen unix:%s/0.sock; location / { proxy_pass http://ours; proxy_http_version 1.1;\n"
        "    proxy_set_header Connection ''; proxy_set_header Host $http_host; } }\n"
        "  server { listen unix:%s/1.sock; ignore_invalid_headers off; underscores_in_headers on;\n"
        "    location / { proxy_pass http://ours; proxy_http_version 1.1; proxy_request_buffering off;\n"
        "    proxy_buffering off; proxy_set_header Connection ''; proxy_set_header Host $http_host; } }\n"
        "  server { listen unix:%s/2.sock; location / { proxy_pass http://127.0.0.1:%d; } }\n"
        "}\n",
        dir, dir, dir, dir, dir, dir, dir, dir, port, dir, dir, dir, port);
    fclose(f);
}

static pid_t start_nginx(const char *program, const char *dir)
{
    char config[128], path[128];
    snprintf(config, sizeof config, "%s/nginx.conf", dir);
    pid_t pid = fork();
    if (!pid) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 2);
        execl(program, program, "-p", dir, "-c", config, (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 100; i++) {
        snprintf(path, sizeof path, "%s/2.sock", dir);
        int fd = connect_unix(path);
        if (fd >= 0) {
            close(fd);
            return pid;
        }
        sleep_ms(50);
    }
    return pid;
}

static int read_log(const char *dir)
{
    char path[128], line[512];
    int n = 0;
    snprintf(path, sizeof path, "%s/access.log", dir);
    FILE *f = fopen(path, "r");
    for (; f && fgets(line, sizeof line, f); n++) note(line, strcspn(line, "\n"), true);
    if (f) fclose(f);
    return n;
}

static void compare(const char *dir)
{
    int requests = read_log(dir), forwarded = 0;
    for (int i = 0; i < all.n; i++) {
        CHECK_MSG(all.list[i].by_server <= all.list[i].by_nginx, "%s: %d requests, %d of them known to nginx",
                  all.list[i].name, all.list[i].by_server, all.list[i].by_nginx);
        forwarded += all.list[i].by_server;
    }
    CHECK_MSG(forwarded > 3 * 20, "%d", forwarded);
    printf("nginx counted %d requests and forwarded %d\n", requests, forwarded);
}

int main(void)
{
    static char dir[] = "/tmp/sesame-nginx-XXXXXX";
    const char *nginx = find_nginx();
    fixture f = { .options = { .on_request = on_request } };
    pthread_mutex_init(&all.lock, NULL);
    f.server = ses_http_server_new(&f.options, NULL);
    if (!f.server || !mkdtemp(dir)) return 1;
    f.port = ses_http_server_port(f.server);
    write_config(dir, f.port);
    pid_t pid = nginx ? start_nginx(nginx, dir) : 0;
    pthread_create(&f.thread, NULL, fixture_run, &f);
    test_direct(f.port);
    forget();
    for (int i = 0; i < 3 && nginx; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/%d.sock", dir, i);
        test_through(path);
    }
    if (pid) {
        kill(pid, SIGTERM);
        waitpid(pid, NULL, 0);
        compare(dir);
    } else
        SKIP("nginx is not installed");
    ses_http_server_stop(f.server);
    pthread_join(f.thread, NULL);
    ses_http_server_free(f.server);
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", dir);
    return system(command) ? 1 : check_report();
}
