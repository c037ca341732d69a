/* Files of paragraph vectors: load, then infer. */
#include "base/thread_pool.h"
#include "fuzz.h"
#include "vectors/paragraph/paragraph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ses_pv_model m = { 0 };
    ses_err e = { 0 };
    if (ses_pv_load_bytes(&m, data, n, &e)) {
        ses_thread_pool *pool = ses_thread_pool_new(1, &e);
        ses_kernels k = ses_kernels_cpu(SES_ISA_REF);
        int32_t id[3] = { 0, (int32_t)m.vocab.n - 1, 0 };
        int64_t start[2] = { 0, 3 };
        ses_documents d = { .id = id, .start = start, .n = 1 };
        float out[SES_PV_MAX_DIM];
        if (pool) ses_pv_infer(&m, &d, 1, &k, pool, out, &e);
        ses_thread_pool_free(pool);
    }
    ses_pv_free(&m);
    return 0;
}
