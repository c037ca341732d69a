/* Static word vectors: every number is finite, every line has the same width. */
#include "fuzz.h"
#include "io/word_vectors.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ses_err e = { 0 };
    ses_word_vectors v = { 0 };
    size_t width = 0;
    ses_word_vectors_from_text(&v, (const char *)data, n);
    while (ses_word_vectors_next(&v, &e) && !v.end) {
        MUST(v.width && (!width || width == v.width) && v.word.len && strlen(v.word.data) == v.word.len);
        width = v.width;
        for (size_t i = 0; i < width; i++) MUST(isfinite(v.x[i]));
    }
    MUST(!e.code || e.code == SES_EFORMAT);
    ses_word_vectors_free(&v);
    return 0;
}
