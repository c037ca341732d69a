/* Muon against torch.optim.Muon (tests/fixtures/muon.py): tall and wide matrices, parts of fused matrices,
 * batches of several matrices, the choice of matrices; the products of gemm_batch. */
#include "check.h"
#include "nn/store_impl.h"
#include "op/op.h"
#include "sesame/unstable/optim.h"
#include "tensor/device_impl.h"
#include "train/optim/optim_kind.h"

#include <math.h>

enum { SIZE = 24, STEPS = 4 };

static ses_device *dev;

/* Weights start with sin(1 + i) / 2 and have gradients cos(0.7 i + 0.05 i^2 + t) (0.1 + 0.05 t), t = 1 ..
 * 4. */
static const struct {
    const char *name;
    int64_t rows, cols, parts;
    ses_weight_layout layout;
    bool original, plain; /* plain: no Nesterov momentum */
    float after[SIZE];
} cases[] = {
    { "tall, original", 6, 4, 1, SES_OUT_IN, true, false, { 0.427830249f,    0.473209649f,  0.0921589211f,
                                                            -0.364145666f,   -0.491900533f, -0.146687225f,
                                                            0.33938998f,     0.507977128f,  0.213834465f,
                                                            -0.286544293f,   -0.495212138f, -0.254089713f,
                                                            0.196590468f,    0.485115886f,  0.33767873f,
                                                            -0.145032495f,   -0.491092652f, -0.355500698f,
                                                            0.0642782971f,   0.458952427f,  0.410603851f,
                                                            -0.00614135806f, -0.419996768f, -0.461449206f } },
    { "tall, no nesterov",
      6,
      4,
      1,
      SES_OUT_IN,
      false,
      true,
      { 0.421814889f,  0.461125135f, 0.0811296403f, -0.369674832f,   -0.4843072f,   -0.1447272f,
        0.330238312f,  0.499287903f, 0.210567951f,  -0.277638048f,   -0.497986168f, -0.260721564f,
        0.20480226f,   0.488612026f, 0.330150098f,  -0.142780274f,   -0.486061484f, -0.365790367f,
        0.0699540675f, 0.455125779f, 0.415352374f,  -0.00693631591f, -0.419174731f, -0.456595629f } },
    { "two parts", 6, 4, 2, SES_OUT_IN, false, false, { 0.421474814f,    0.458648473f,  0.0790448934f,
                                                        -0.375974268f,   -0.483929336f, -0.140636265f,
                                                        0.329811245f,    0.49755156f,   0.210883439f,
                                                        -0.276937753f,   -0.498227179f, -0.263453931f,
                                                        0.203892812f,    0.491173625f,  0.329703927f,
                                                        -0.142541915f,   -0.483870715f, -0.367988318f,
                                                        0.0723200142f,   0.455771625f,  0.415091604f,
                                                        -0.00439921487f, -0.420022726f, -0.457923621f } },
    { "three parts, [in, out]",
      4,
      6,
      3,
      SES_IN_OUT,
      true,
      false,
      { 0.426599354f,  0.463249713f, 0.0873823389f, -0.375220895f,  -0.499559641f, -0.151652202f,
        0.328635186f,  0.503434658f, 0.207259312f,  -0.288787782f,  -0.494708389f, -0.251806021f,
        0.199074477f,  0.483667046f, 0.342943877f,  -0.149376139f,  -0.485565394f, -0.361451536f,
        0.0505408533f, 0.458349198f, 0.41611433f,   -0.0108762411f, -0.413594335f, -0.452135533f } },
    { "wide by outputs, [in, out]",
      4,
      6,
      1,
      SES_IN_OUT,
      true,
      false,
      { 0.424077362f,  0.464998931f, 0.0853451043f, -0.372409105f,  -0.494133979f, -0.153794795f,
        0.328542143f,  0.508277595f, 0.200467944f,  -0.287622124f,  -0.491087675f, -0.250169307f,
        0.200415403f,  0.481664479f, 0.342409402f,  -0.149513334f,  -0.48771441f,  -0.362481087f,
        0.0563354827f, 0.461188406f, 0.420627207f,  -0.0167023204f, -0.410175472f, -0.461404383f } },
};

static ses_store *store_new(int copies, size_t c)
{
    ses_err e = { 0 };
    ses_store *s = ses_store_new(dev, &e);
    for (int i = 0; i < copies; i++) {
        char name[40];
        snprintf(name, sizeof name, "layer.%d.ffn.up.weight", i);
        ses_tensor *t = ses_store_add(s, name, SES_DIM(cases[c].rows, cases[c].cols), SES_INIT_NORMAL);
        ses_store_set_dense(s, t, cases[c].layout);
        ses_store_set_parts(s, t, cases[c].parts);
    }
    CHECK_MSG(ses_store_ok(s, &e) && ses_store_alloc_trainable(s, &e), "%s", e.msg);
    for (int j = 0; j < copies; j++)
        for (int i = 0; i < SIZE; i++) ses_store_at(s, (size_t)j)->tensor->f[i] = (float)(0.5 * sin(1 + i));
    return s;
}

static ses_optim_options options_of(size_t c)
{
    ses_err e = { 0 };
    ses_optim_options o;
    CHECK(ses_optim_defaults("muon", &o, &e));
    o.lr = 0.01, o.group[0].weight_decay = 0.1;
    o.nesterov = !cases[c].plain, o.muon_original = cases[c].original;
    return o;
}

static void train(ses_store *s, ses_optim *o)
{
    for (int t = 1; o && t <= STEPS; t++) {
        for (size_t j = 0; j < ses_store_count(s); j++)
            for (int i = 0; i < SIZE; i++)
                ses_store_at(s, j)->tensor->grad[i] =
                    (float)(cos(0.7 * i + 0.05 * i * i + t) * (0.1 + 0.05 * t));
        ses_optim_step(o, -1, 1);
    }
}

static double worst(const ses_store *s, size_t j, const float *want)
{
    double d = 0;
    for (int i = 0; i < SIZE; i++)
        d = fmax(d, fabs((double)ses_store_at(s, j)->tensor->f[i] - (double)want[i]));
    return d;
}

/* 1 and 200 equal parameters: more than a batch has. */
static void test_steps(void)
{
    for (size_t c = 0; c < SES_LEN(cases); c++)
        for (int copies = 1; copies <= 200; copies += 199) {
            ses_err e = { 0 };
            ses_optim_options o = options_of(c);
            ses_store *s = store_new(copies, c);
            ses_optim *opt = ses_optim_new(s, &o, &e);
            CHECK_MSG(opt, "%s", e.msg);
            train(s, opt);
            for (int j = 0; j < copies; j++) {
                double d = worst(s, (size_t)j, cases[c].after);
                CHECK_MSG(d < 3e-7, "%s, parameter %d of %d: %g", cases[c].name, j, copies, d);
            }
            CHECK(ses_optim_state_count(opt) == (size_t)copies);
            ses_optim_free(opt);
            ses_store_free(s);
        }
}

/* muon_whole ignores parts; muon_ratio is a factor of the rate. */
static void test_options(void)
{
    ses_err e = { 0 };
    size_t parts = 3, whole = 4; /* cases of one shape */
    ses_optim_options o = options_of(parts);
    o.muon_whole = true, o.lr = 0.005, o.muon_ratio = 2;
    ses_store *s = store_new(1, parts);
    ses_optim *opt = ses_optim_new(s, &o, &e);
    train(s, opt);
    CHECK(worst(s, 0, cases[whole].after) < 3e-7);
    ses_optim_free(opt);
    ses_store_free(s);
}

/* Which parameters have a momentum, and which Adam's moments. */
static void test_choice(void)
{
    static const struct {
        const char *name;
        bool dense, embedding, vector, hidden;
    } list[] = { { "layer.0.attn.qkv.weight", true, false, false, true },
                 { "decoder.layer.3.ffn.down.weight", true, false, false, true },
                 { "embed.token", true, true, false, false },
                 { "lm.dense.weight", true, false, false, false },
                 { "layer.0.attn.norm.weight", false, false, true, false },
                 { "layer.0.attn.distance", false, true, false, false } };
    ses_err e = { 0 };
    ses_store *s = ses_store_new(dev, &e);
    for (size_t i = 0; i < SES_LEN(list); i++) {
        ses_tensor *t =
            ses_store_add(s, list[i].name, list[i].vector ? SES_DIM(8) : SES_DIM(4, 8), SES_INIT_NORMAL);
        if (list[i].dense) ses_store_set_dense(s, t, SES_OUT_IN);
        if (list[i].embedding) ses_store_set_embedding(s, t);
    }
    ses_optim_options o;
    CHECK(ses_optim_defaults("muon", &o, &e) && ses_store_alloc_trainable(s, &e));
    ses_optim *opt = ses_optim_new(s, &o, &e);
    CHECK_MSG(opt, "%s", e.msg);
    size_t at = 0;
    for (size_t i = 0; opt && i < SES_LEN(list); i++) {
        ses_optim_state x = ses_optim_state_at(opt, at);
        CHECK_MSG(!strcmp(x.param, list[i].name) && !strcmp(x.kind, list[i].hidden ? "momentum" : "m"),
                  "%s: %s", x.param, x.kind);
        at += list[i].hidden ? 1 : 2;
    }
    CHECK(opt && at == ses_optim_state_count(opt));
    ses_optim_free(opt);
    ses_store_free(s);
}

/* gemm_batch against sums in double. */
static void test_products(void)
{
    enum { COUNT = 3, M = 17, N = 21, K = 13 };
    ses_real a[COUNT * M * K], b[COUNT * K * N], d[COUNT * M * N], c[COUNT * M * N];
    for (int i = 0; i < COUNT * M * K; i++) a[i] = (ses_real)sin(i);
    for (int i = 0; i < COUNT * K * N; i++) b[i] = (ses_real)cos(2 * i);
    for (int i = 0; i < COUNT * M * N; i++) d[i] = (ses_real)sin(3 * i);
    for (int add = 0; add < 2; add++) {
        ses_gemm_batch all = { .g = ses_gemm_nn(c, a, b, M, N, K),
                               .count = COUNT,
                               .a_step = M * K,
                               .b_step = K * N,
                               .c_step = M * N,
                               .d = add ? d : NULL,
                               .alpha = 0.5,
                               .beta = -3 };
        dev->k.gemm_batch(&dev->exec, &all);
        for (int64_t i = 0; i < COUNT * M * N; i++) {
            int64_t p = i / (M * N), row = i / N % M, col = i % N;
            double sum = 0;
            for (int64_t k = 0; k < K; k++)
                sum += (double)a[(p * M + row) * K + k] * (double)b[(p * K + k) * N + col];
            double want = 0.5 * sum - (add ? 3 * (double)d[i] : 0);
            CHECK_MSG(fabs((double)c[i] - want) < 1e-5, "%d: %g, not %g", (int)i, (double)c[i], want);
        }
    }
}

int main(void)
{
    ses_err e = { 0 };
    dev = ses_device_open("cpu", &(ses_device_options){ .threads = 2 }, &e);
    CHECK_MSG(dev, "%s", e.msg);
    test_steps();
    test_options();
    test_choice();
    test_products();
    ses_device_free(dev);
    return check_report();
}
