/* http_post PORT|SOCKET PATH [BODY]: prints the response to a POST, without BODY to a GET; exit 0 if its
 * status is 200, else 1. For the shell tests. */
#include "http_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    ses_err e = { 0 };
    ses_http_response a = { 0 };
    if (argc < 3) return 2;
    bool local = strchr(argv[1], '/') != NULL;
    ses_http_client *c = ses_http_client_open(local ? argv[1] : "127.0.0.1",
                                              local ? 0 : (int)strtol(argv[1], NULL, 10), 60, &e);
    ses_http_request r = { .target = argv[2] };
    if (argc > 3) r.method = "POST", r.body = argv[3], r.n = strlen(argv[3]);
    bool ok = c && ses_http_client_request(c, &r, &a, &e);
    if (ok)
        printf("%.*s\n", (int)a.body.n, a.body.p ? a.body.p : "");
    else
        fprintf(stderr, "http_post: %s\n", e.msg);
    ok = ok && a.status == 200;
    ses_http_client_free(c);
    return ok ? 0 : 1;
}
