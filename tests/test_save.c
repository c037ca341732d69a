/* Saving a model and opening it again. */
#define _GNU_SOURCE
#include "check.h"
#include "model_fixture.h"

/* Saved and opened again: the same tensors, in f32 to the bit, sharded or not, for training or not. */
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
    CHECK(!ses_model_save(m, dir, &(ses_save_options){ 0 }, &e)); /* nothing is overwritten unasked */
    ses_err_clear(&e);
    for (int round = 0; round < 3; round++) {
        if (round == 2) /* shards of about 4 KB in place of the one file */
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
        CHECK_STR(back ? ses_model_surplus(back) : NULL, "");
        ses_model_free(back);
    }
    snprintf(cmd, sizeof cmd, "rm -r %s", dir);
    CHECK(system(cmd) == 0);
    ses_model_free(m);
    ses_json_free(doc);
    ses_device_free(dev);
}

int main(void)
{
    test_save();
    return check_report();
}
