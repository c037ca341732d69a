/* The first byte picks a normalizer, the rest is text. What comes out is text, and its ranges lie in the
 * input, in order. */
#include "base/utf8.h"
#include "fuzz.h"
#include "text/stage.h"

static const char *const settings[] = {
    "{\"type\": \"BertNormalizer\"}",
    "{\"type\": \"BertNormalizer\", \"clean_text\": false, \"strip_accents\": false}",
    "{\"type\": \"NFC\"}",
    "{\"type\": \"NFD\"}",
    "{\"type\": \"NFKC\"}",
    "{\"type\": \"NFKD\"}",
    "{\"type\": \"Lowercase\"}",
    "{\"type\": \"StripAccents\"}",
    "{\"type\": \"Strip\"}",
    "{\"type\": \"Nmt\"}",
    "{\"type\": \"Prepend\", \"prepend\": \"\\u2581\"}",
    "{\"type\": \"ByteLevel\"}",
    "{\"type\": \"Replace\", \"pattern\": {\"String\": \"aa\"}, \"content\": \"\\u00e9\"}",
    "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \"\\\\s+|(?<=\\\\w)x*|$\"}, \"content\": \"_\"}",
};

static void run(const ses_step *step, const char *text, size_t n)
{
    ses_err e = { 0 };
    ses_text in = { 0 }, out = { 0 };
    for (size_t i = 0, k; i < n; i += k) {
        uint32_t cp;
        k = ses_utf8_next(text + i, &cp);
        MUST(ses_text_put(&in, text + i, k, (ses_offset){ (uint32_t)i, (uint32_t)(i + k) }, &e));
    }
    MUST(step->stage->normalize(step->self, &in, 0, in.n, &out, &e));
    MUST(ses_utf8_valid(out.byte, out.n) == out.n);
    for (size_t i = 0; i < out.n; i++) {
        MUST(out.from[i].begin <= out.from[i].end && out.from[i].end <= n);
        MUST(!i || (out.from[i - 1].begin <= out.from[i].begin && out.from[i - 1].end <= out.from[i].end));
    }
    ses_text_free(&in);
    ses_text_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n) return 0;
    const char *json = settings[data[0] % SES_LEN(settings)], *text = (const char *)data + 1;
    ses_arena mem = { 0 };
    ses_err e = { 0 };
    ses_step step;
    ses_json_doc *doc = ses_json_parse(json, strlen(json), &e);
    MUST(doc && ses_step_open(&step, SES_NORMALIZER, ses_json_root(doc), &mem, &e));
    run(&step, text, ses_utf8_valid(text, n - 1));
    ses_step_close(&step);
    ses_arena_free(&mem);
    ses_json_free(doc);
    return 0;
}
