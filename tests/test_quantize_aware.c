/* Quantization-aware training: rounded operands against the int8 kernels at every level (the same integers,
 * the same product up to f32 sums), straight-through gradients, and whole models against int8 inference. */
#include "base/alloc.h"
#include "base/rng.h"
#include "check.h"
#include "model/model_desc.h"
#include "op/op.h"
#include "tensor/device_impl.h"
#include "train/quantize_aware.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static float *normals(int64_t n, uint64_t seed, double scale)
{
    float *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(scale * ses_rand_normal((ses_rng_key){ .seed = seed }, (uint64_t)i));
    return x;
}

static double distance(const float *a, const float *b, int64_t n)
{
    double error = 0, norm = 0;
    for (int64_t i = 0; i < n; i++)
        error += pow((double)a[i] - (double)b[i], 2), norm += pow((double)b[i], 2);
    return sqrt(error) / fmax(sqrt(norm), 1e-30);
}

/* The integers of quantize_rows times their scales are what fake_quantize gives, bit for bit. */
static void test_integers(ses_device *dev, const char *level, int64_t rows, int64_t cols, double scale)
{
    ses_exec *x = &dev->exec;
    int64_t width = 4 * ses_quad_count(cols), differ = 0;
    float *a = normals(rows * cols, 3, scale), *y = malloc((size_t)(rows * cols) * sizeof *y);
    uint8_t *q = malloc((size_t)(rows * width));
    float *by = malloc((size_t)rows * sizeof *by);
    memset(a, 0, (size_t)cols * sizeof *a); /* a row of zeros */
    dev->k.quantize_rows(x, (ses_i8_rows){ q, by }, a, rows, cols);
    dev->k.fake_quantize(x, y, a, rows, cols, false);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            differ += y[r * cols + j] != (float)(q[r * width + j] - SES_I8_ZERO) * by[r];
    CHECK_MSG(!differ, "%s %dx%d: %d numbers differ", level, (int)rows, (int)cols, (int)differ);
    free(a), free(y), free(q), free(by);
}

/* A dense layer with rounded operands against the int8 product. */
static void test_product(ses_device *dev, const char *level, int64_t m, int64_t n, int64_t k,
                         ses_weight_layout layout)
{
    ses_err e = { 0 };
    float *a = normals(m * k, 5, 1), *w = normals(n * k, 6, 0.05), *bias = normals(n, 7, 1);
    float *want = malloc((size_t)(m * n) * sizeof *want), *got = malloc((size_t)(m * n) * sizeof *got);
    uint8_t *q = malloc((size_t)(m * 4 * ses_quad_count(k)));
    float *by = malloc((size_t)m * sizeof *by);
    void *packed = ses_alloc_aligned((size_t)dev->k.gemm_i8_pack_size(n, k), &e);
    bool in_out = layout == SES_IN_OUT;
    dev->k.gemm_i8_pack(&dev->exec, packed, w, in_out ? n : 1, in_out ? 1 : k, n, k);
    dev->k.quantize_rows(&dev->exec, (ses_i8_rows){ q, by }, a, m, k);
    ses_gemm g = { .m = m, .n = n, .k = k, .c = want, .ldc = n, .bias = bias, .packed = packed };
    g.packed_dtype = SES_I8;
    dev->k.gemm_i8(&dev->exec, &g, 1, (ses_i8_rows){ q, by }, NULL);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    ses_tensor *weight = ses_tape_input(t, w, in_out ? SES_DIM(k, n) : SES_DIM(n, k));
    weight->rounds_i8 = true;
    ses_tensor *y = ses_linear(t, ses_tape_input(t, a, SES_DIM(m, k)), weight,
                               ses_tape_input(t, bias, SES_DIM(n)), SES_ACT_NONE, layout);
    CHECK_MSG(y && ses_tape_read(t, y, got), "%s", e.msg);
    CHECK_MSG(distance(got, want, m * n) < 1e-5, "%s %dx%dx%d: %g", level, (int)m, (int)n, (int)k,
              distance(got, want, m * n));
    /* the layer without rounding is further away: the test can fail */
    weight->rounds_i8 = false;
    y = ses_linear(t, ses_tape_input(t, a, SES_DIM(m, k)), weight, ses_tape_input(t, bias, SES_DIM(n)),
                   SES_ACT_NONE, layout);
    CHECK(y && ses_tape_read(t, y, got) && distance(got, want, m * n) > 1e-4);
    ses_tape_free(t);
    ses_free(packed);
    free(a), free(w), free(bias), free(want), free(got), free(q), free(by);
}

/* Gradients of x and w equal the gradients of a product of the rounded numbers. */
static void test_gradients(ses_device *dev)
{
    enum { M = 5, N = 7, K = 19 };
    ses_err e = { 0 };
    float *a = normals(M * K, 8, 1), *w = normals(N * K, 9, 1), ra[M * K], rw[N * K],
          *grad[2][2] = { { NULL } };
    dev->k.fake_quantize(&dev->exec, ra, a, M, K, false);
    dev->k.fake_quantize(&dev->exec, rw, w, N, K, false);
    ses_tape *t = ses_tape_new(dev, &(ses_tape_options){ .record = true }, &e);
    for (int rounded = 0; rounded < 2; rounded++) {
        ses_tape_reset(t, &(ses_tape_options){ .record = true });
        ses_tensor *x = ses_tape_input(t, rounded ? a : ra, SES_DIM(M, K));
        ses_tensor *v = ses_tape_input(t, rounded ? w : rw, SES_DIM(N, K));
        x->requires_grad = v->requires_grad = true;
        v->rounds_i8 = rounded;
        ses_tensor *y = ses_linear(t, x, v, NULL, SES_ACT_GELU, SES_OUT_IN);
        ses_tensor *loss = ses_target_loss(t, ses_reshape(t, y, SES_DIM(M * N)), NULL, SES_LOSS_MSE);
        ses_backward(t, loss);
        CHECK_MSG(ses_tape_ok(t, &e) && x->grad && v->grad, "%s", e.msg);
        for (int i = 0; i < 2; i++) {
            size_t bytes = (size_t)(i ? N * K : M * K) * sizeof(float);
            grad[rounded][i] = memcpy(malloc(bytes), (i ? v : x)->grad, bytes);
        }
    }
    CHECK(!memcmp(grad[0][0], grad[1][0], M * K * sizeof(float)));
    CHECK(!memcmp(grad[0][1], grad[1][1], N * K * sizeof(float)));
    for (int i = 0; i < 4; i++) free(grad[i / 2][i % 2]);
    ses_tape_free(t);
    free(a), free(w);
}

static const int32_t cu[] = { 0, 9, 16, 18 };
static const int32_t ids[] = { 2, 9, 4, 36, 3, 8, 2, 7, 11, 30, 8, 3, 5, 5, 6, 20, 21, 3 };
static const ses_batch batch = { .seqs = 3, .tokens = 18, .cu_seqlens = cu, .ids = ids };

static int64_t states(const ses_model *m, ses_device *dev, float *out)
{
    ses_err e = { 0 };
    ses_outputs o;
    int64_t n = 0;
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    bool ok = t && ses_model_forward(m, t, &batch, &(ses_output_request){ .hidden_states = true }, &o, &e);
    for (size_t i = 0; ok && i < o.n; i++) /* the last layer's */
        if (!strncmp(o.item[i].name, "hidden_states.", 14) && ses_tape_read(t, o.item[i].tensor, out))
            n = ses_count(o.item[i].tensor);
    CHECK_MSG(n > 0, "%s", e.msg);
    ses_tape_free(t);
    return n;
}

/* Rounding brings the hidden states of a model much closer to int8 inference. */
static void test_model(const char *dir, double limit)
{
    static float plain[8192], rounded[8192], int8[8192];
    ses_err e = { 0 };
    ses_device *f32 = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    ses_device *i8 = ses_device_open("cpu", &(ses_device_options){ .threads = 1, .dtype = SES_I8 }, &e);
    ses_model *m = f32 ? ses_model_open(dir, f32, &(ses_model_options){ .train = true }, &e) : NULL;
    ses_model *q = i8 ? ses_model_open(dir, i8, NULL, &e) : NULL;
    CHECK_MSG(m && q, "%s: %s", dir, e.msg);
    if (m && q) {
        int64_t n = states(m, f32, plain);
        CHECK_MSG(ses_model_round_i8(m, &e), "%s", e.msg);
        CHECK(states(m, f32, rounded) == n && states(q, i8, int8) == n);
        double far = distance(plain, int8, n), near = distance(rounded, int8, n);
        CHECK_MSG(far > 0 && near < limit * far, "%s: f32 %g, rounded %g", dir, far, near);
        printf("%s: distance to int8: f32 %.2g, rounded %.2g\n", dir, far, near);
    }
    ses_model_free(m);
    ses_model_free(q);
    ses_device_free(f32);
    ses_device_free(i8);
}

static void test_refused(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    ses_model *m =
        ses_model_open("tests/golden/rnn-encoder-classify", dev, &(ses_model_options){ .train = true }, &e);
    CHECK_MSG(m && !ses_model_round_i8(m, &e) && strstr(e.msg, "has no Transformer layers"), "%s", e.msg);
    ses_model_free(m);
    ses_device_free(dev);
}

int main(void)
{
    for (int isa = SES_ISA_REF; isa <= (int)ses_isa_best(); isa++) {
        ses_err e = { 0 };
        ses_device *dev =
            ses_device_open("cpu", &(ses_device_options){ .threads = 2, .isa = (ses_isa)isa }, &e);
        const char *level = ses_isa_name((ses_isa)isa);
        CHECK_MSG(dev, "%s", e.msg);
        if (!dev) continue;
        test_integers(dev, level, 37, 130, 1);
        test_integers(dev, level, 3, 7, 1e-6);
        test_integers(dev, level, 200, 768, 30);
        test_product(dev, level, 33, 50, 130, SES_OUT_IN);
        test_product(dev, level, 33, 50, 130, SES_IN_OUT);
        test_product(dev, level, 4, 3, 768, SES_OUT_IN);
        test_gradients(dev);
        ses_device_free(dev);
    }
    test_model("tests/golden/modernbert-masked-lm", 1e-3);
    /* int8 products approximate GELU with an error of up to 2e-4, 1 % of the activations of these small
     * models */
    test_model("tests/golden/bert-model", 0.6);
    test_model("tests/golden/roberta-classify", 0.6);
    test_model("tests/golden/distilbert-classify", 0.6);
    test_model("tests/golden/electra-classify", 0.6);
    test_refused();
    return check_report();
}
