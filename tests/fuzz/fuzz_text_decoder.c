/* Conversion to UTF-8: the output is text, and the same whole and in pieces. The first byte selects the
 * encoding, the second the size of the pieces. */
#include "fuzz.h"
#include "io/text_decoder.h"

static bool decode(ses_text_encoding encoding, const uint8_t *p, size_t n, size_t step, ses_buf *out,
                   ses_err *e)
{
    ses_text_decoder d = { .encoding = encoding };
    for (size_t i = 0; i < n; i += step)
        if (!ses_text_decode(&d, p + i, n - i < step ? n - i : step, false, out, e)) return false;
    return ses_text_decode(&d, p, 0, true, out, e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ses_buf once = { 0 }, slow = { 0 };
    ses_err a = { 0 }, b = { 0 };
    if (n < 2) return 0;
    ses_text_encoding encoding = (ses_text_encoding)(1 + data[0] % SES_ENCODING_UTF16BE);
    bool ok = decode(encoding, data + 2, n - 2, n, &once, &a);
    MUST(ok == decode(encoding, data + 2, n - 2, 1 + data[1] % 9, &slow, &b));
    MUST(ok == (a.code == SES_OK) && !strcmp(a.msg, b.msg));
    MUST(once.len == slow.len && (!once.len || !memcmp(once.data, slow.data, once.len)));
    MUST(!once.len || ses_text_good(once.data, once.len) == once.len);
    ses_buf_free(&once);
    ses_buf_free(&slow);
    return 0;
}
