/* POST /v1/completions: OpenAI's text completion. */
#include "serve/generate_reply.h"

static bool handle(ses_worker *w, ses_job *j)
{
    (void)w;
    return ses_api_fail(&j->error, SES_API_VALIDATION, NULL, "not yet");
}

const ses_route ses_route_openai_completions = {
    .method = "POST",
    .path = "/v1/completions",
    .style = SES_STYLE_OPENAI,
    .handle = handle,
    .tag = "OpenAI",
    .summary = "Continues a text",
    .request = "{\"type\":\"object\"}",
    .response = "{\"type\":\"object\"}",
};
