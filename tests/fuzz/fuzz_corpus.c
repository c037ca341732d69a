/* A corpus file with a corrected header hash, so that the index is reached: a corpus that opens can be read
 * completely. */
#include "base/alloc.h"
#include "data/corpus/corpus_file.h"
#include "fuzz.h"

static void read_all(const ses_corpus *c)
{
    int64_t documents = ses_corpus_info_of(c)->documents, tokens = 0;
    int32_t id[64];
    uint8_t starts[64];
    for (int64_t i = 0; i < documents; i++) {
        ses_document d = ses_corpus_document(c, i);
        MUST(d.n_tokens > 0 && d.n_sentences > 0 && d.n_sentences <= d.n_tokens);
        for (int64_t at = 0; at < d.n_tokens; at += 64)
            ses_corpus_read(c, &d, at, d.n_tokens - at < 64 ? d.n_tokens - at : 64, id, starts);
        tokens += d.n_tokens;
    }
    MUST(tokens == ses_corpus_info_of(c)->tokens || !documents);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ses_err e = { 0 };
    char *copy = ses_alloc(n + 8, &e);
    if (!copy) return 0;
    if (n) memcpy(copy, data, n);
    if (n >= CORPUS_HEADER_BYTES) {
        uint64_t hash = ses_corpus_hash(copy, offsetof(ses_corpus_header, hash));
        memcpy(copy + offsetof(ses_corpus_header, hash), &hash, sizeof hash);
    }
    ses_corpus *c = ses_corpus_from_memory(copy, n, &e);
    MUST(c || e.code);
    if (c) read_all(c);
    if (c) ses_corpus_verify(c, &e);
    ses_corpus_free(c);
    ses_free(copy);
    return 0;
}
