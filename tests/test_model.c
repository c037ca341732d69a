/* Models: the same bits for any number of threads and any batch, save and load, invalid batches. */
#include "check.h"
#include "model_fixture.h"
#include "op/op.h"
#include "sesame/unstable/optim.h"

static ses_device *device(int threads, ses_isa isa)
{
    ses_err e = { 0 };
    ses_device *d = ses_device_open("cpu", &(ses_device_options){ .threads = threads, .isa = isa }, &e);
    CHECK_MSG(d, "%s", e.msg);
    return d;
}

static ses_model *random_model(const char *class_name, ses_device *dev, bool train, ses_json_doc **doc)
{
    ses_err e = { 0 };
    *doc = fixture_config(class_name, &e);
    ses_model *m =
        *doc ? ses_model_new(ses_json_root(*doc), dev, &(ses_model_options){ .train = train, .seed = 5 }, &e)
             : NULL;
    CHECK_MSG(m, "%s", e.msg);
    return m;
}

/* Three training steps with dropout on n threads; returns the parameters. */
static ses_real *train(int threads, ses_isa isa, int64_t *n)
{
    static const ses_optim_options o = { .lr = 1e-2,
                                         .beta1 = 0.9,
                                         .beta2 = 0.999,
                                         .eps = 1e-8,
                                         .group = { { 1, 0.01 }, { 1, 0 } },
                                         .group_of = ses_group_by_decay };
    ses_err e = { 0 };
    ses_json_doc *doc;
    ses_device *dev = device(threads, isa);
    ses_model *m = random_model("BertForPreTraining", dev, true, &doc);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    ses_optim *opt = ses_optim_new(ses_model_store(m), &o, &e);
    ses_batch b = fixture_batch(true);
    for (uint32_t i = 0; i < 3; i++) {
        ses_outputs out;
        ses_tape_reset(t, &(ses_tape_options){ .record = true, .train = true, .seed = 9, .step = i });
        ses_store_zero_grad(ses_model_store(m));
        CHECK_MSG(ses_model_forward(m, t, &b, &(ses_output_request){ 0 }, &out, &e), "%s", e.msg);
        ses_backward(t, out.loss);
        CHECK_MSG(ses_tape_ok(t, &e), "%s", e.msg);
        ses_optim_step(opt, -1, 1);
    }
    *n = ses_store_element_count(ses_model_store(m));
    ses_real *all = malloc((size_t)*n * sizeof *all), *at = all;
    for (size_t i = 0; i < ses_store_count(ses_model_store(m)); i++) {
        const ses_tensor *p = ses_store_at(ses_model_store(m), i)->tensor;
        memcpy(at, p->f, (size_t)ses_count(p) * sizeof *at);
        at += ses_count(p);
    }
    ses_optim_free(opt);
    ses_tape_free(t);
    ses_model_free(m);
    ses_json_free(doc);
    ses_device_free(dev);
    return all;
}

static void test_threads(void)
{
    for (int isa = SES_ISA_REF; isa <= (int)ses_isa_best(); isa++) {
        int64_t n, k;
        ses_real *one = train(1, (ses_isa)isa, &n);
        for (int threads = 2; threads <= 4; threads++) {
            ses_real *many = train(threads, (ses_isa)isa, &k);
            CHECK(n == k && !memcmp(one, many, (size_t)n * sizeof *one));
            free(many);
        }
        free(one);
    }
}

/* Last hidden state of sequence s of a batch. */
static void hidden(ses_model *m, ses_tape *t, const ses_batch *b, int64_t s, ses_real *out)
{
    ses_err e = { 0 };
    ses_outputs o = { 0 };
    ses_tape_reset(t, NULL);
    CHECK_MSG(ses_model_forward(m, t, b, &(ses_output_request){ .logits = true }, &o, &e), "%s", e.msg);
    int64_t cols = ses_cols(o.item[0].tensor), len = b->cu_seqlens[s + 1] - b->cu_seqlens[s];
    memcpy(out, o.item[0].tensor->f + b->cu_seqlens[s] * cols, (size_t)(len * cols) * sizeof *out);
}

/* The result of a text does not depend on the rest of its batch: random batches of random sequences. */
static void test_batches(ses_isa isa)
{
    enum { TRIES = 200, MOST = 12, LONG = 16 };
    ses_err e = { 0 };
    ses_json_doc *doc;
    ses_device *dev = device(2, isa);
    ses_model *m = random_model("BertModel", dev, false, &doc);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    ses_real alone[LONG * 20], with[LONG * 20];
    int bad = 0;
    for (uint32_t try = 0; try < TRIES; try++) {
        ses_rng_key key = { .seed = 3, .step = try };
        int32_t cu[MOST + 1] = { 0 }, ids[MOST * LONG];
        int64_t seqs = 1 + ses_rand32(key, 0) % MOST, pick = ses_rand32(key, 1) % seqs;
        for (int64_t s = 0; s < seqs; s++) {
            cu[s + 1] = cu[s] + 1 + (int32_t)(ses_rand32(key, 2 + (uint64_t)s) % LONG);
            for (int32_t i = cu[s]; i < cu[s + 1]; i++)
                ids[i] = (int32_t)(ses_rand32(key, 100 + (uint64_t)i) % 37);
        }
        int32_t len = cu[pick + 1] - cu[pick], one[] = { 0, len };
        ses_batch all = { .seqs = seqs, .tokens = cu[seqs], .cu_seqlens = cu, .ids = ids };
        ses_batch single = { .seqs = 1, .tokens = len, .cu_seqlens = one, .ids = ids + cu[pick] };
        hidden(m, t, &all, pick, with);
        hidden(m, t, &single, 0, alone);
        bad += memcmp(alone, with, (size_t)len * 20 * sizeof *alone) != 0;
    }
    CHECK_MSG(bad == 0, "%s: %d of %d batches changed a sequence's bits", ses_isa_name(isa), bad, TRIES);
    ses_tape_free(t);
    ses_model_free(m);
    ses_json_free(doc);
    ses_device_free(dev);
}

static void expect_error(const ses_model *m, ses_tape *t, ses_batch b, const char *want)
{
    ses_err e = { 0 };
    ses_outputs out;
    ses_tape_reset(t, NULL);
    CHECK(!ses_model_forward(m, t, &b, &(ses_output_request){ 0 }, &out, &e));
    CHECK_STR(e.msg, want);
}

static void test_bad_batches(void)
{
    static const int32_t big[] = { 2, 9, 4, 37, 3, 2, 2, 7, 7, 11, 30, 8, 3 }, negative[] = { -1 },
                         one[] = { 0, 1 };
    static const int32_t hole[] = { 0, 5, 5, 13 }, labels[] = { 1, 2, 0 }, longer[] = { 0, 17 };
    static const int32_t many[17] = { 1 };
    ses_err e = { 0 };
    ses_json_doc *doc;
    ses_device *dev = device(1, SES_ISA_REF);
    ses_model *m = random_model("BertForNextSentencePrediction", dev, false, &doc);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    ses_batch b = fixture_batch(false);
    b.ids = big;
    expect_error(m, t, b, "token id 37 at index 3, expected 0 to 36");
    expect_error(m, t, (ses_batch){ .seqs = 1, .tokens = 1, .cu_seqlens = one, .ids = negative },
                 "token id -1 at index 0, expected 0 to 36");
    b = fixture_batch(false);
    b.cu_seqlens = hole;
    expect_error(m, t, b, "sequence 1 is empty");
    b = fixture_batch(false);
    b.labels = labels;
    expect_error(m, t, b, "label 2 at index 1, expected 0 to 1");
    expect_error(m, t, (ses_batch){ .seqs = 1, .tokens = 17, .cu_seqlens = longer, .ids = many },
                 "sequence 0 has 17 tokens, the model's maximum is 16");
    expect_error(m, t, (ses_batch){ 0 }, "empty batch");
    b = fixture_batch(false);
    b.choices = 2;
    expect_error(m, t, b, "3 sequences are not a multiple of 2 choices");
    ses_tape_free(t);
    ses_model_free(m);
    ses_json_free(doc);
    ses_device_free(dev);
}

/* Requested rows have the bits of all rows; an invalid row is an error. */
static void test_requested_rows(void)
{
    static const int32_t rows[] = { 12, 0, 7 }, bad[] = { 3, 13 };
    ses_err e = { 0 };
    ses_json_doc *doc;
    ses_device *dev = device(1, SES_ISA_BEST);
    ses_model *m = random_model("BertForMaskedLM", dev, false, &doc);
    ses_tape *t = ses_tape_new(dev, NULL, &e), *u = ses_tape_new(dev, NULL, &e);
    ses_batch b = fixture_batch(true);
    ses_outputs all, some;
    CHECK(ses_model_forward(m, t, &b, &(ses_output_request){ .logits = true }, &all, &e));
    CHECK(ses_model_forward(m, u, &b, &(ses_output_request){ .logits = true, .rows = rows, .n_rows = 3 },
                            &some, &e));
    const ses_tensor *x = all.item[0].tensor, *y = some.item[0].tensor;
    CHECK(some.item[0].axis == SES_PER_ROW && ses_rows(y) == 3 && ses_cols(y) == 37);
    for (int i = 0; i < 3; i++) CHECK(!memcmp(y->f + 37 * i, x->f + 37 * rows[i], 37 * sizeof *x->f));
    ses_tape_reset(u, NULL);
    CHECK(!ses_model_forward(m, u, &b, &(ses_output_request){ .logits = true, .rows = bad, .n_rows = 2 },
                             &some, &e));
    CHECK_STR(e.msg, "masked-lm head: requested row 13, but there are 13");
    ses_tape_free(u);
    ses_tape_free(t);
    ses_model_free(m);
    ses_json_free(doc);
    ses_device_free(dev);
}

int main(void)
{
    test_threads();
    for (int isa = SES_ISA_REF; isa <= (int)ses_isa_best(); isa++) test_batches((ses_isa)isa);
    test_bad_batches();
    test_requested_rows();
    return check_report();
}
