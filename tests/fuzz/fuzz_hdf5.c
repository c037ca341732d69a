/* HDF5: the input as a file, also with the number of its bytes in the superblock, so that truncated files
 * pass that check. */
#include "fuzz.h"
#include "io/safetensors_impl.h"
#include "sesame/unstable/tensor.h"

static void check(const uint8_t *p, size_t n)
{
    ses_err e = { 0 };
    ses_safetensors *s = ses_tensors_from_memory(ses_hdf5_add, p, n, "x", &e);
    MUST(s || e.code == SES_EFORMAT || e.code == SES_EUNSUPPORTED);
    MUST(s || strncmp(e.msg, "x: ", 3) == 0);
    for (size_t i = 0; i < ses_safetensors_count(s); i++) {
        const ses_tensor_entry *t = ses_safetensors_at(s, i);
        const uint8_t *at = t->data;
        MUST(ses_safetensors_find(s, t->name) == t && t->rank >= 0 && t->rank <= SES_ENTRY_MAX_DIM);
        MUST((size_t)t->count * ses_dtype_size(t->dtype) == t->bytes);
        MUST(at >= p && t->bytes <= n && (size_t)(at - p) <= n - t->bytes);
    }
    ses_safetensors_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    enum { END = 40 };
    check(data, n);
    if (n < END + 8) return 0;
    uint8_t *file = malloc(n);
    MUST(file);
    memcpy(file, data, n);
    for (int i = 0; i < 8; i++) file[END + i] = (uint8_t)((uint64_t)n >> (8 * i));
    check(file, n);
    free(file);
    return 0;
}
