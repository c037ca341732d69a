/* A vector index with a corrected header hash, so that counts and entries are reached: an index that opens
 * can be read and searched completely. */
#include "base/alloc.h"
#include "base/hash.h"
#include "fuzz.h"
#include "kernel/kernel.h"
#include "task/vector_index.h"

static void read_all(const ses_vector_index *x, ses_err *e)
{
    const ses_vector_index_info *info = ses_vector_index_info_of(x);
    ses_index_hit hit[3];
    int64_t k = info->count < 3 ? info->count : 3;
    volatile uint64_t sum = 0;
    for (int64_t i = 0; i < info->count; i++) {
        ses_string s = ses_vector_index_text(x, i);
        for (size_t c = 0; c < s.n; c++) sum += (unsigned char)s.p[c];
        MUST(ses_vector_index_line(x, i) > i);
    }
    (void)sum;
    ses_thread_pool *pool = ses_thread_pool_new(1, e);
    if (!pool) return;
    ses_vector_index_verify(x, pool, e);
    if (ses_vector_index_search(x, pool, ses_isa_best(), ses_vector_index_probe(x), 1, k, hit, e))
        for (int64_t i = 0; i < k; i++) MUST(hit[i].index >= 0 && hit[i].index < info->count);
    ses_thread_pool_free(pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ses_err e = { 0 };
    unsigned char *copy = ses_alloc(n + 8, &e);
    if (!copy) return 0;
    if (n) memcpy(copy, data, n);
    if (n >= SES_VECTOR_INDEX_HEADER) {
        uint64_t hash = ses_checksum_chunks(copy, 8 * SES_INDEX_HEADER_HASH);
        memcpy(copy + 8 * SES_INDEX_HEADER_HASH, &hash, sizeof hash);
    }
    ses_vector_index *x = ses_vector_index_from_memory(copy, n, &e);
    MUST(x || e.code);
    if (x) read_all(x, &e);
    ses_vector_index_free(x);
    ses_free(copy);
    return 0;
}
