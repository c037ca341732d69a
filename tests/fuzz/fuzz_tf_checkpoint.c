/* The index of a TensorFlow checkpoint: the input as a whole table, and as the block of a table with valid
 * checksums, whose tensors lie in a shard that has valid checksums, too. */
#include "../tf_fixture.h"
#include "base/alloc.h"
#include "fuzz.h"
#include "io/tf/tf_family.h"
#include "io/tf/tf_read.h"
#include "sesame/unstable/tensor.h"

enum { SHARD = 1 << 14 };
static const unsigned char shard[SHARD] = { 1, 2, 3, 4 };

static bool get_shard(void *ctx, const char *file, const void **bytes, size_t *n, ses_err *e)
{
    (void)ctx, (void)file, (void)e;
    *bytes = shard;
    *n = SHARD;
    return true;
}

static void check_tensors(const ses_safetensors *s)
{
    for (size_t i = 0; i < ses_safetensors_count(s); i++) {
        const ses_tensor_entry *t = ses_safetensors_at(s, i);
        const unsigned char *p = t->data;
        int64_t count = 1;
        for (int d = 0; d < t->rank; d++) count *= t->dim[d];
        MUST(count == t->count && t->bytes == (size_t)count * ses_dtype_size(t->dtype));
        MUST(ses_safetensors_find(s, t->name) == t);
        volatile unsigned char sum = 0;
        for (size_t k = 0; k < t->bytes; k++) sum = (unsigned char)(sum + p[k]);
    }
}

static void read_tensors(ses_tf_index *x)
{
    static const char *const classes[] = { NULL, "ElectraForMaskedLM" };
    for (size_t i = 0; i < x->n; i++) {
        ses_tf_tensor *t = &x->tensor[i];
        if (t->offset <= SHARD && t->bytes <= SHARD - t->offset)
            t->crc = ses_crc32c_mask(ses_crc32c(shard + t->offset, (size_t)t->bytes));
    }
    for (size_t i = 0; i < SES_LEN(classes); i++) {
        ses_err e = { 0 };
        ses_safetensors *s = ses_alloc(sizeof *s, &e);
        MUST(s);
        bool ok = x->shards < 9 && ses_tf_read(s, x, "model.ckpt", classes[i], get_shard, NULL, &e);
        MUST(ok || x->shards >= 9 || e.code != SES_OK);
        if (ok) check_tensors(s);
        ses_safetensors_free(s);
        const ses_tf_family *f = ses_tf_family_of(x, classes[i], &e);
        if (f) ses_json_free(ses_tf_config_new(x, f, NULL, &e));
    }
}

static void parse(const void *p, size_t n)
{
    ses_err e = { 0 };
    ses_tf_index x;
    bool ok = ses_tf_index_parse(&x, p, n, &e);
    MUST(ok == (e.code == SES_OK));
    if (ok) read_tensors(&x);
    ses_tf_index_free(&x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ses_buf block = { 0 };
    parse(data, n);
    MUST(ses_buf_append(&block, data, n));
    ses_buf table = tf_table(&block, 0);
    parse(table.data, table.len);
    ses_buf_free(&table);
    return 0;
}
