/* A .tiktoken file: every id of an accepted file decodes to bytes. */
#include "base/alloc.h"
#include "fuzz.h"
#include "serve/tiktoken.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ses_err e = { 0 };
    ses_tiktoken *t = ses_tiktoken_parse((const char *)data, n, &e);
    MUST(t || (e.code && *e.msg));
    for (size_t i = 0; t && i <= ses_tiktoken_size(t) && i < 64; i++) {
        char list[32];
        ses_buf b = { 0 };
        snprintf(list, sizeof list, "[%zu]", i);
        ses_json_doc *doc = ses_json_parse(list, strlen(list), NULL);
        bool ok = ses_tiktoken_decode(t, ses_json_root(doc), &b, &e);
        MUST(ok == (i < ses_tiktoken_size(t)) && (!ok || b.len));
        ses_buf_free(&b);
        ses_json_free(doc);
    }
    ses_tiktoken_free(t);
    return 0;
}
