/* A file of --template, and prompts made by it. */
#include "base/alloc.h"
#include "fuzz.h"
#include "task/generation_task.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ses_err e = { 0 };
    ses_json_doc *doc = ses_json_parse((const char *)data, n, &e);
    ses_prompt_template *t = doc ? ses_prompt_template_new(doc, &e) : NULL;
    const char *const *stop;
    for (size_t i = 0; t && i < ses_prompt_template_stops(t, &stop); i++) MUST(stop[i]);
    for (int64_t shots = -1; t && shots < 3; shots++) {
        size_t len = 0;
        ses_err bad = { 0 };
        char *s = ses_prompt_template_fill(t, ses_str("a {text}"), ses_str("b"), shots, &len, &bad);
        MUST(s ? s[len] == 0 : bad.code == SES_EFORMAT);
        ses_free(s);
    }
    ses_prompt_template_free(t);
    return 0;
}
