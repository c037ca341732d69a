/* A zip archive by itself, as a PyTorch file, and as a legacy PyTorch file, which it never is. */
#include "fuzz.h"
#include "io/safetensors_impl.h"
#include "io/zip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ses_err e = { 0 };
    ses_zip z = { 0 };
    bool ok = ses_zip_read(&z, data, n, &e);
    MUST(ok || e.code == SES_EFORMAT || e.code == SES_EUNSUPPORTED);
    const uint8_t *at = data;
    unsigned sum = 0;
    for (size_t i = 0; ok && i < z.n; i++) {
        const ses_zip_entry *x = &z.entry[i];
        MUST(ses_zip_find(&z, x->name, x->name_len) == x);
        MUST(x->data >= at + 30 + x->name_len && x->data + x->size <= data + n); /* disjoint, sorted */
        at = x->data + x->size;
        for (size_t k = 0; k < x->size; k++) sum += x->data[k];
    }
    MUST(!sum || ok);
    ses_zip_free(&z);

    ses_err_clear(&e);
    ses_safetensors *s = ses_tensors_from_memory(ses_torch_add, data, n, "x", &e);
    MUST(s ? ok || data[0] == 0x80 : e.code == SES_EFORMAT || e.code == SES_EUNSUPPORTED);
    ses_safetensors_free(s);
    return 0;
}
