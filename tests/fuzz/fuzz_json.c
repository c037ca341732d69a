/* JSON: an accepted text is written and parsed again as the same value. */
#include "fuzz.h"
#include "sesame/json.h"

static char *written(const ses_json *v, int indent, size_t *n)
{
    ses_json_writer *w = ses_json_writer_new(indent, NULL);
    MUST(w);
    ses_json_writer_set_ascii(w, indent == 0);
    ses_json_put_value(w, v);
    const char *s = ses_json_writer_text(w, n, NULL);
    MUST(s && strlen(s) == *n);
    char *copy = malloc(*n + 1);
    MUST(copy);
    memcpy(copy, s, *n + 1);
    ses_json_writer_free(w);
    return copy;
}

static void visit(const ses_json *o)
{
    for (size_t i = 0; i < ses_json_len(o); i++) {
        size_t n = 0;
        const char *key = ses_json_key(o, i, &n);
        MUST(ses_json_at(o, i) && !key == (ses_json_type_of(o) == SES_JSON_ARRAY));
        if (key && strlen(key) == n) MUST(ses_json_get(o, key) == ses_json_at(o, i));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ses_err e = { 0 };
    ses_json_doc *d = ses_json_parse((const char *)data, n, &e);
    MUST(!d == (e.code == SES_EFORMAT) && (d || e.msg[0]));
    if (!d) return 0;
    visit(ses_json_root(d));
    for (int indent = -1; indent <= 2; indent++) {
        size_t a, b;
        char *first = written(ses_json_root(d), indent, &a);
        ses_json_doc *again = ses_json_parse(first, a, &e);
        MUST(again);
        char *second = written(ses_json_root(again), indent, &b);
        MUST(a == b && memcmp(first, second, a) == 0);
        ses_json_free(again);
        free(first);
        free(second);
    }
    ses_json_free(d);
    return 0;
}
