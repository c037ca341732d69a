/* json_valid [--lines]: exit 0 if standard input is one JSON value, or one a line. For the shell tests. */
#include "sesame/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool valid(const char *text, size_t n)
{
    ses_err e = { 0 };
    ses_json_doc *d = ses_json_parse(text, n, &e);
    if (!d) fprintf(stderr, "%s\n", e.msg);
    ses_json_free(d);
    return d != NULL;
}

int main(int argc, char **argv)
{
    enum { MOST = 16 << 20 };
    char *text = malloc(MOST);
    if (!text) return 1;
    size_t n = fread(text, 1, MOST - 1, stdin);
    text[n] = 0;
    bool ok = n > 0;
    if (argc > 1 && !strcmp(argv[1], "--lines"))
        for (char *at = text, *end; ok && *at; at = end + (*end == '\n')) {
            end = at + strcspn(at, "\n");
            ok = valid(at, (size_t)(end - at));
        }
    else
        ok = valid(text, n);
    free(text);
    return ok ? 0 : 1;
}
