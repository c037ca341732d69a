/* A pickle as data.pkl of a valid archive, and as the dict of a legacy file: accepted tensors are inside the
 * file, or copies not larger than it. */
#include "../torch_fixture.h"
#include "fuzz.h"
#include "io/safetensors_impl.h"
#include "sesame/unstable/tensor.h"

static void check(const ses_safetensors *s, const uint8_t *data, const uint8_t *end)
{
    size_t copied = 0;
    for (size_t i = 0; i < ses_safetensors_count(s); i++) {
        const ses_tensor_entry *t = ses_safetensors_at(s, i);
        const uint8_t *p = t->data;
        MUST(ses_safetensors_find(s, t->name) == t && t->rank >= 0 && t->rank <= SES_ENTRY_MAX_DIM);
        int64_t count = 1;
        for (int k = 0; k < t->rank; k++) count *= t->dim[k];
        MUST(count == t->count && (size_t)count * ses_dtype_size(t->dtype) == t->bytes);
        bool inside = p >= data && p <= end;
        MUST(!inside || t->bytes <= (size_t)(end - p));
        copied += inside ? 0 : t->bytes;
        unsigned sum = 0;
        for (size_t k = 0; k < t->bytes; k++) sum += p[k];
        MUST(sum <= 255 * t->bytes);
    }
    MUST(copied <= (size_t)(end - data));
}

static void read_file(const bytes *b)
{
    uint8_t *exact = malloc(b->n);
    MUST(exact);
    memcpy(exact, b->data, b->n);
    ses_err e = { 0 };
    ses_safetensors *s = ses_tensors_from_memory(ses_torch_add, exact, b->n, "x", &e);
    MUST(s || e.code == SES_EFORMAT || e.code == SES_EUNSUPPORTED);
    MUST(s || !strncmp(e.msg, "x: ", 3));
    check(s, exact, exact + b->n);
    ses_safetensors_free(s);
    free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static zip_file z;
    if (n > sizeof z.b.data - 2048) return 0;
    make_torch(&z, data, n, n & 1);
    read_file(&z.b);
    z.b.n = 0;
    put_old_head(&z.b);
    put_bytes(&z.b, data, n);
    put_old_tail(&z.b, OLD_KEYS);
    read_file(&z.b);
    return 0;
}
