/* A chat template with fixed messages: it renders, or is refused with a message. */
#include "fuzz.h"
#include "task/chat/chat_template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char variables[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":\"assistant\",\"content\":"
        "\" yes \"}],\"add_generation_prompt\":true,\"bos_token\":\"<s>\"}";
    static ses_json_doc *doc;
    if (!doc) doc = ses_json_parse(variables, sizeof variables - 1, NULL);
    ses_buf b = { 0 };
    ses_err e = { 0 };
    bool ok = ses_chat_template_render((ses_string){ (const char *)data, n }, ses_json_root(doc), &b, &e);
    MUST(ok || (e.code && *e.msg));
    ses_buf_free(&b);
    return 0;
}
