/* Echoes bodies with Sesame's HTTP server; see run.sh. */
#include "serve/http/http_server.h"

#include <stdlib.h>

static void on_request(void *ctx, ses_http_exchange *x)
{
    ses_string body = ses_http_body(x);
    (void)ctx;
    ses_http_reply(x, 200, "application/json", body.p, body.n, NULL);
}

int main(int argc, char **argv)
{
    ses_http_options o = { .port = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0, .on_request = on_request };
    ses_http_server *s = ses_http_server_new(&o, NULL);
    return s && ses_http_server_run(s, NULL) ? 0 : 1;
}
