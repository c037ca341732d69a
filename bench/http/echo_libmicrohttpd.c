/* Echoes bodies with libmicrohttpd; see run.sh. */
#define _POSIX_C_SOURCE 200809L
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct body {
    char *p;
    size_t n;
} body;

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *c, const char *url, const char *method,
                                  const char *version, const char *data, size_t *n, void **state)
{
    (void)ctx, (void)url, (void)method, (void)version;
    body *b = *state;
    if (!b) return (*state = calloc(1, sizeof *b)) ? MHD_YES : MHD_NO;
    if (*n) {
        char *p = realloc(b->p, b->n + *n);
        if (!p) return MHD_NO;
        memcpy(p + b->n, data, *n);
        b->p = p;
        b->n += *n;
        *n = 0;
        return MHD_YES;
    }
    struct MHD_Response *r = MHD_create_response_from_buffer(b->n, b->p, MHD_RESPMEM_MUST_COPY);
    MHD_add_response_header(r, "Content-Type", "application/json");
    enum MHD_Result result = MHD_queue_response(c, 200, r);
    MHD_destroy_response(r);
    return result;
}

static void on_done(void *ctx, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode code)
{
    (void)ctx, (void)c, (void)code;
    body *b = *state;
    if (b) free(b->p);
    free(b);
}

int main(int argc, char **argv)
{
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_TURBO;
    uint16_t port = argc > 1 ? (uint16_t)strtol(argv[1], NULL, 10) : 0;
    struct MHD_Daemon *d = MHD_start_daemon(
        flags, port, NULL, NULL, on_request, NULL, MHD_OPTION_NOTIFY_COMPLETED, on_done, NULL,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_CONNECTION_LIMIT, 1000u, MHD_OPTION_END);
    return d ? pause() : 1;
}
