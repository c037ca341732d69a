/* ELMo's files: the input is options.json up to the first NUL, then an HDF5 file. Converted files must have
 * valid tensors, and the config must be accepted or refused. */
#include "base/alloc.h"
#include "fuzz.h"
#include "io/elmo_read.h"
#include "model/model_desc.h"
#include "sesame/unstable/tensor.h"

static void check_tensors(const ses_safetensors *s)
{
    for (size_t i = 0; i < ses_safetensors_count(s); i++) {
        const ses_tensor_entry *t = ses_safetensors_at(s, i);
        int64_t count = 1;
        for (int d = 0; d < t->rank; d++) count *= t->dim[d];
        MUST(count == t->count && t->bytes == (size_t)count * ses_dtype_size(t->dtype));
        MUST(ses_safetensors_find(s, t->name) == t);
    }
}

static void check(const ses_json *options, const uint8_t *p, size_t n)
{
    ses_err e = { 0 };
    ses_json_doc *config = ses_elmo_config_new(options, &e);
    MUST(config || e.code == SES_EFORMAT || e.code == SES_EUNSUPPORTED);
    if (config) {
        ses_config c;
        const ses_model_desc *d = ses_config_find_model(ses_json_root(config), &e);
        MUST(d);
        ses_config_read(d, ses_json_root(config), &c, &e);
    }
    ses_json_free(config);
    ses_safetensors *raw = ses_tensors_from_memory(ses_hdf5_add, p, n, "x", &(ses_err){ 0 });
    ses_safetensors *s = ses_alloc(sizeof *s, &e);
    MUST(s);
    e = (ses_err){ 0 };
    if (raw && ses_elmo_read(s, raw, "x", options, &e))
        check_tensors(s);
    else
        MUST(!raw || e.code == SES_EFORMAT || e.code == SES_EUNSUPPORTED);
    ses_safetensors_free(s);
    ses_safetensors_free(raw);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const uint8_t *end = n ? memchr(data, 0, n) : NULL;
    size_t text = end ? (size_t)(end - data) : n, rest = end ? n - text - 1 : 0;
    ses_json_doc *options = ses_json_parse((const char *)data, text, &(ses_err){ 0 });
    if (options) check(ses_json_root(options), end ? end + 1 : data, rest);
    ses_json_free(options);
    return 0;
}
