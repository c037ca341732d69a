/* A small HTTP server over src/serve/http for tests: prints one line for each request it sees, and
 * answers with the method, path and body. Usage: http_echo [PORT | SOCKET]. Prints the port first; ends
 * on SIGTERM. */
#define _POSIX_C_SOURCE 200809L
#include "serve/http/http_server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ses_http_server *server;

static void terminate(int sig)
{
    (void)sig;
    ses_http_server_drain(server);
}

static void on_request(void *ctx, ses_http_exchange *x)
{
    (void)ctx;
    ses_string method = ses_http_method(x), path = ses_http_path(x), body = ses_http_body(x);
    printf("%.*s %.*s %zu\n", (int)method.n, method.p, (int)path.n, path.p, body.n);
    fflush(stdout);
    size_t size = method.n + path.n + body.n + 3;
    char *text = malloc(size);
    if (!text) {
        ses_http_reply(x, 503, NULL, NULL, 0, NULL);
        return;
    }
    int n = snprintf(text, size, "%.*s %.*s ", (int)method.n, method.p, (int)path.n, path.p);
    memcpy(text + n, body.p, body.n);
    ses_http_reply(x, 200, "text/plain", text, (size_t)n + body.n, free);
}

int main(int argc, char **argv)
{
    ses_err e = { 0 };
    const char *where = argc > 1 ? argv[1] : "0";
    bool is_path = strchr(where, '/') != NULL;
    ses_http_options o = { .port = is_path ? -1 : (int)strtol(where, NULL, 10),
                           .unix_socket = is_path ? where : NULL,
                           .on_request = on_request };
    struct sigaction action = { .sa_handler = terminate };
    if (!(server = ses_http_server_new(&o, &e))) return fprintf(stderr, "%s\n", e.msg), 1;
    sigaction(SIGTERM, &action, NULL);
    printf("port %d\n", ses_http_server_port(server));
    fflush(stdout);
    bool ok = ses_http_server_run(server, &e);
    if (!ok) fprintf(stderr, "%s\n", e.msg);
    ses_http_server_free(server);
    return !ok;
}
