/* SentencePiece models: a model that opens encodes any text, and its ids decode. The input is the model;
 * its last bytes are also used as text. */
#include "fuzz.h"
#include "sesame/json.h"
#include "sesame/tokenizer.h"
#include "text/spm/spm_to_json.h"

static void encode(ses_encode_ctx *k, const char *p, size_t n)
{
    ses_err e = { 0 };
    const char *text;
    size_t len;
    if (!ses_encode(k, &(ses_input){ .text = { p, n } }, NULL, &e)) {
        MUST(e.msg[0]); /* an invalid character map */
        return;
    }
    const ses_encoding *r = ses_encode_ctx_result(k);
    for (size_t i = 0; i < r->n; i++)
        MUST(r->byte_offset[i].begin <= r->byte_offset[i].end && r->byte_offset[i].end <= n);
    MUST(ses_decode(k, r->id, r->n, true, &text, &len, &e) || e.msg[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ses_err e = { 0 };
    ses_spm m;
    if (!ses_spm_parse(&m, (const char *)data, n, &e)) {
        MUST(e.msg[0]);
        return 0;
    }
    ses_json_writer *w = ses_json_writer_new(-1, &e);
    size_t len;
    const char *text = ses_spm_write(&m, w, &e) ? ses_json_writer_text(w, &len, &e) : NULL;
    ses_tokenizer *t = text ? ses_tokenizer_from_json(text, len, &e) : NULL;
    MUST(t || e.msg[0]);
    ses_encode_ctx *k = t ? ses_encode_ctx_new(t, &e) : NULL;
    if (k) {
        size_t tail = n < 64 ? n : 64;
        encode(k, "  ab aa\xe2\x96\x81 [U]<s>\xc3\xa9\xe6\x97\xa5  b ", 26);
        encode(k, (const char *)data + n - tail, tail);
    }
    ses_encode_ctx_free(k);
    ses_tokenizer_free(t);
    ses_json_writer_free(w);
    ses_spm_free(&m);
    return 0;
}
