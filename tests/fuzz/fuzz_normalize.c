/* The first byte selects a normalizer, the rest is text. The output is valid UTF-8, and its source ranges
 * are inside the input and in order. */
#include "base/unicode/utf8.h"
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

static void put(ses_text *t, const char *text, size_t n, size_t shift)
{
    for (size_t i = 0, k; i < n; i += k) {
        uint32_t cp, at = (uint32_t)(i + shift);
        k = ses_utf8_next(text + i, &cp);
        MUST(ses_text_put(t, text + i, k, (ses_offset){ at, at + (uint32_t)k }, NULL));
    }
}

static void check(const ses_text *out, size_t n)
{
    MUST(ses_utf8_valid(out->byte, out->n) == out->n);
    for (size_t i = 0; i < out->n; i++) {
        const ses_offset *from = &out->from[i];
        MUST(from->begin <= from->end && from->end <= n);
        MUST(!i || (from[-1].begin <= from->begin && from[-1].end <= from->end));
    }
}

/* Normalize the text alone, and with an e before it and an acute accent after it: neighbors must not
 * matter. */
static void run(const ses_stage_instance *step, const char *text, size_t n)
{
    ses_text in = { 0 }, out = { 0 }, wide = { .base = 1 }, part = { 0 };
    put(&in, text, n, 0);
    put(&wide, "e", 1, 0);
    put(&wide, text, n, 1);
    put(&wide, "\xCC\x81", 2, 1 + n);
    MUST(step->stage->normalize(step->self, &in, 0, n, &out, NULL));
    MUST(step->stage->normalize(step->self, &wide, 1, 1 + n, &part, NULL));
    check(&out, n);
    if (step->stage->changes && !step->stage->changes(step->self, text, n)) /* then normalizing copies */
        MUST(out.n == n &&
             (!n || (!memcmp(out.byte, text, n) && !memcmp(out.from, in.from, n * sizeof *in.from))));
    MUST(part.n == out.n && (!out.n || !memcmp(part.byte, out.byte, out.n)));
    for (size_t i = 0; i < out.n; i++)
        MUST(part.from[i].begin == out.from[i].begin + 1 && part.from[i].end == out.from[i].end + 1);
    ses_text_free(&in);
    ses_text_free(&out);
    ses_text_free(&wide);
    ses_text_free(&part);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n) return 0;
    const char *json = settings[data[0] % SES_LEN(settings)], *text = (const char *)data + 1;
    ses_arena mem = { 0 };
    ses_err e = { 0 };
    ses_stage_instance step;
    ses_json_doc *doc = ses_json_parse(json, strlen(json), &e);
    MUST(doc && ses_stage_instance_open(&step, SES_NORMALIZER, ses_json_root(doc), &mem, &e));
    run(&step, text, ses_utf8_valid(text, n - 1));
    ses_stage_instance_close(&step);
    ses_arena_free(&mem);
    ses_json_free(doc);
    return 0;
}
