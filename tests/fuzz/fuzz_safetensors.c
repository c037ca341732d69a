/* safetensors: the input as a file; and as a header up to the first NUL, followed by data, with the correct
 * length, so that mutated headers pass the length check. Also the kind of the file. */
#include "folder/file_kind.h"
#include "fuzz.h"
#include "io/safetensors_impl.h"
#include "sesame/unstable/tensor.h"

static void check(const uint8_t *p, size_t n)
{
    ses_err e = { 0 };
    ses_safetensors *s = ses_safetensors_from_memory(p, n, "x", &e);
    MUST(s || e.code == SES_EFORMAT || e.code == SES_EUNSUPPORTED);
    MUST(s || strncmp(e.msg, "x: ", 3) == 0);
    const uint8_t *at = NULL;
    for (size_t i = 0; i < ses_safetensors_count(s); i++) {
        const ses_tensor_entry *t = ses_safetensors_at(s, i);
        MUST(ses_safetensors_find(s, t->name) == t && t->rank >= 0 && t->rank <= SES_ENTRY_MAX_DIM);
        MUST((size_t)t->count * ses_dtype_size(t->dtype) == t->bytes);
        MUST((const uint8_t *)t->data >= p + 8 && (!at || t->data == at)); /* end to end, to the last byte */
        at = (const uint8_t *)t->data + t->bytes;
        float one;
        ses_tensor_entry head = *t;
        head.count = t->count > 0;
        MUST(ses_tensor_entry_to_f32(&head, &one, &e));
    }
    MUST(!at || at == p + n);
    const char *key, *value;
    for (size_t i = 0; i < ses_safetensors_meta_count(s); i++)
        MUST(ses_safetensors_meta_at(s, i, &key, &value));
    ses_safetensors_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    check(data, n);
    const ses_file_kind *kind = ses_file_kind_of(data, n < SES_FILE_KIND_BYTES ? n : SES_FILE_KIND_BYTES, n);
    MUST(!kind || (*kind->name && *kind->remedy));
    const uint8_t *end = n ? memchr(data, 0, n) : NULL;
    size_t header = end ? (size_t)(end - data) : n, rest = end ? n - header - 1 : 0;
    uint8_t *file = calloc(1, 8 + header + rest);
    MUST(file);
    for (int i = 0; i < 8; i++) file[i] = (uint8_t)((uint64_t)header >> (8 * i));
    if (header) memcpy(file + 8, data, header);
    if (rest) memcpy(file + 8 + header, end + 1, rest);
    check(file, 8 + header + rest);
    free(file);
    return 0;
}
