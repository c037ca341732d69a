/* Saving a model and opening it again. */
#define _GNU_SOURCE
#include "base/alloc.h"
#include "check.h"
#include "kernel/kernel.h"
#include "model_fixture.h"
#include "tensor/device_impl.h"
#include "tensor/pack.h"

#include <math.h>

/* A saved model has the same tensors, bit by bit in f32, sharded or not, opened for training or not. */
static void test_save(void)
{
    char dir[] = "/tmp/sesame-test-XXXXXX", cmd[128];
    ses_err e = { 0 };
    ses_json_doc *doc;
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    ses_model *m, *back;
    doc = fixture_config("BertForPreTraining", &e);
    m = ses_model_new(ses_json_root(doc), dev, &(ses_model_options){ .seed = 5 }, &e);
    CHECK_MSG(m, "%s", e.msg);
    CHECK(mkdtemp(dir));
    CHECK_MSG(ses_model_save(m, dir, &(ses_save_options){ .overwrite = true }, &e), "%s", e.msg);
    CHECK(!ses_model_save(m, dir, &(ses_save_options){ 0 }, &e)); /* no overwriting by default */
    ses_err_clear(&e);
    for (int round = 0; round < 3; round++) {
        if (round == 2) /* shards of about 4 KB instead of one file */
            CHECK_MSG(
                ses_model_save(m, dir, &(ses_save_options){ .overwrite = true, .shard_bytes = 4096 }, &e),
                "%s", e.msg);
        back = ses_model_open(dir, dev, &(ses_model_options){ .train = round == 1 }, &e);
        CHECK_MSG(back, "%s", e.msg);
        CHECK(back && ses_store_count(ses_model_store(back)) == ses_store_count(ses_model_store(m)));
        for (size_t i = 0; back && i < ses_store_count(ses_model_store(m)); i++) {
            const ses_tensor *x = ses_store_at(ses_model_store(m), i)->tensor;
            const ses_tensor *y = ses_store_at(ses_model_store(back), i)->tensor;
            CHECK(ses_same_shape(x, y) && !memcmp(x->f, y->f, (size_t)ses_count(x) * sizeof *x->f));
        }
        CHECK_STR(back ? ses_model_unexpected_keys(back) : NULL, "");
        ses_model_free(back);
    }
    snprintf(cmd, sizeof cmd, "rm -r %s", dir);
    CHECK(system(cmd) == 0);
    ses_model_free(m);
    ses_json_free(doc);
    ses_device_free(dev);
}

/* The first output of a pass over the fixture's batch. */
static void pass(const ses_model *m, ses_device *dev, ses_real *out, int64_t n)
{
    ses_err e = { 0 };
    ses_outputs o = { 0 };
    ses_batch b = fixture_batch(true);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    CHECK_MSG(ses_model_forward(m, t, &b, &(ses_output_request){ .logits = true }, &o, &e), "%s", e.msg);
    CHECK(o.n && ses_count(o.item[0].tensor) == n);
    memcpy(out, o.item[0].tensor->f, (size_t)n * sizeof *out);
    ses_tape_free(t);
}

static size_t packed(const ses_model *m)
{
    size_t bytes = 0;
    const ses_store *s = ses_model_store(m);
    for (size_t i = 0; i < ses_store_count(s); i++) bytes += ses_pack_bytes(ses_store_at(s, i)->tensor->pack);
    return bytes;
}

/* Weights stay as in the file, and are packed in the second pass; the bits do not change, except that int8
 * weights compute in int8. */
static void test_quantized_files(ses_device *dev, ses_dtype dtype, ses_dtype tables)
{
    enum { N = 13 * 37 };
    char dir[] = "/tmp/sesame-test-XXXXXX", cmd[128];
    ses_err e = { 0 };
    ses_json_doc *doc = fixture_config("BertForMaskedLM", &e);
    ses_model *m = ses_model_new(ses_json_root(doc), dev, &(ses_model_options){ .seed = 5 }, &e);
    CHECK(mkdtemp(dir));
    CHECK_MSG(ses_model_save(m, dir, &(ses_save_options){ .dtype = dtype, .tables = tables }, &e), "%s",
              e.msg);
    ses_model *held = ses_model_open(dir, dev, NULL, &e),
              *wide = ses_model_open(dir, dev, &(ses_model_options){ .no_packing = true }, &e);
    CHECK_MSG(held && wide, "%s", e.msg);
    ses_real first[N], again[N], third[N], want[N];
    size_t at_once = packed(held);
    pass(held, dev, first, N), pass(held, dev, again, N), pass(held, dev, third, N), pass(wide, dev, want, N);
    CHECK(dtype == SES_F32 ? at_once == 0 : at_once > 0);
    CHECK(packed(held) > 0 && packed(wide) == 0);
    CHECK(!memcmp(first, again, sizeof first) && !memcmp(first, third, sizeof first));
    CHECK_MSG(dtype == SES_I8 || !memcmp(first, want, sizeof first), "%s", ses_dtype_name(dtype));
    double off = 0, norm = 0;
    for (int i = 0; i < N; i++)
        off += (double)((first[i] - want[i]) * (first[i] - want[i])), norm += (double)(want[i] * want[i]);
    CHECK_MSG(off < 1e-3 * norm, "%s: %g", ses_dtype_name(dtype), off / norm);
    snprintf(cmd, sizeof cmd, "rm -r %s", dir);
    CHECK(system(cmd) == 0);
    ses_model_free(held), ses_model_free(wide), ses_model_free(m);
    ses_json_free(doc);
}

/* Packed weights are contiguous in memory, so that they share large pages. */
static void test_contiguous_packs(ses_dtype dtype)
{
    enum { N = 5, WIDE = 96 };
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .dtype = dtype }, NULL);
    ses_store *s = ses_store_new(dev, &e);
    for (int i = 0; i < N; i++) {
        char name[] = "layer.0";
        name[6] = (char)('0' + i);
        ses_store_set_dense(s, ses_store_add(s, name, (int64_t[SES_MAX_DIM]){ WIDE, WIDE }, SES_INIT_NORMAL),
                            SES_OUT_IN);
        CHECK(ses_store_alloc_one(s, (size_t)i, &e));
    }
    ses_store_init(s, 0.02, 1);
    CHECK_MSG(ses_store_finalize(s, &e), "%s", e.msg);
    const char *end = NULL;
    for (int i = 0; i < N; i++) {
        const ses_tensor *w = ses_store_at(s, (size_t)i)->tensor;
        const char *data = ses_pack_get(w, SES_OUT_IN, &dev->k, &dev->exec).data;
        CHECK(data && (uintptr_t)data % SES_ALIGN == 0);
        CHECK(!end || (data >= end && data < end + SES_ALIGN));
        end = data + ses_pack_bytes(w->pack);
    }
    ses_store_free(s);
    ses_device_free(dev);
}

/* Embeddings that cannot be quantized are an error that names them, even if no product reads them. */
static void test_invalid_embeddings(void)
{
    static const ses_real odd[] = { (ses_real)NAN, (ses_real)INFINITY };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .embedding_dtype = SES_I8 }, NULL);
    for (size_t i = 0; i <= SES_LEN(odd); i++) {
        ses_err e = { 0 };
        ses_store *s = ses_store_new(dev, &e);
        ses_tensor *table =
            ses_store_add(s, "embed.position", (int64_t[SES_MAX_DIM]){ 4, 6 }, SES_INIT_NORMAL);
        ses_store_set_embedding(s, table);
        CHECK(ses_store_alloc_one(s, 0, &e));
        ses_store_init(s, 0.02, 1);
        if (i < SES_LEN(odd)) table->f[7] = odd[i];
        bool ok = ses_store_finalize(s, &e);
        CHECK_MSG(ok == (i == SES_LEN(odd)) &&
                      !ok == (strstr(e.msg, "embed.position: a weight is NaN or") != NULL),
                  "%s", e.msg);
        ses_store_free(s);
    }
    ses_device_free(dev);
}

int main(void)
{
    test_save();
    test_invalid_embeddings();
    test_contiguous_packs(SES_F16);
    test_contiguous_packs(SES_I8);
    for (int isa = SES_ISA_REF; isa <= (int)ses_isa_best(); isa++) {
        ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .isa = (ses_isa)isa }, NULL);
        test_quantized_files(dev, SES_F32, SES_F32);
        test_quantized_files(dev, SES_F16, SES_F32);
        test_quantized_files(dev, SES_BF16, SES_F32);
        test_quantized_files(dev, SES_I8, SES_F32);
        test_quantized_files(dev, SES_I8, SES_I8);
        ses_device_free(dev);
    }
    return check_report();
}
