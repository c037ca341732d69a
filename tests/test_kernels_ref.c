/* The reference kernels against values computed by hand. The other levels are tested against the reference
 * kernels. */
#include "check.h"
#include "kernel/kernel.h"
#include "kernel/ref/act_ref.h"

#include <math.h>

static ses_exec x;

static bool near(double got, double want) { return fabs(got - want) <= 2e-6 * (1 + fabs(want)); }

static bool all_near(const ses_real *got, const double *want, int n)
{
    bool ok = true;
    for (int i = 0; i < n; i++)
        if (!near(got[i], want[i])) {
            printf("    [%d] is %.9g, not %.9g\n", i, (double)got[i], want[i]);
            ok = false;
        }
    return ok;
}

#define ALL_NEAR(got, ...) \
    all_near(got, (const double[]){ __VA_ARGS__ }, sizeof((double[]){ __VA_ARGS__ }) / 8)

static ses_dst store(ses_real *p) { return (ses_dst){ p, false }; }
static ses_dst add_to(ses_real *p) { return (ses_dst){ p, true }; }

static void test_pointwise(void)
{
    ses_real a[] = { 1, -2, 3 }, b[] = { 10, 20, 30 }, y[6] = { 1, 1, 1, 1, 1, 1 };
    ses_k_add_ref(&x, y, a, b, 3);
    CHECK(ALL_NEAR(y, 11, 18, 33, 1));
    ses_k_scale_ref(&x, store(y), a, 2, 3);
    CHECK(ALL_NEAR(y, 2, -4, 6, 1));
    ses_k_scale_ref(&x, add_to(y), b, 0.5f, 3);
    CHECK(ALL_NEAR(y, 7, 6, 21, 1));
    ses_k_scale_ref(&x, (ses_dst){ NULL, true }, b, 0.5f, 3);

    ses_real wide[] = {
        1, 2, 3, 4, 5, 6, 7, 8
    }; /* [2][4]; columns 1 and 2 are copied to columns 0 and 1 of [2][3] */
    for (int i = 0; i < 6; i++) y[i] = 0.5f;
    ses_k_copy_cols_ref(&x, store(y), 3, wide + 1, 4, 2, 2);
    CHECK(ALL_NEAR(y, 2, 3, 0.5, 6, 7, 0.5));
    ses_k_copy_cols_ref(&x, add_to(y + 1), 3, wide, 4, 2, 2);
    CHECK(ALL_NEAR(y, 2, 4, 2.5, 6, 12, 6.5));
}

static void test_act(void)
{
    static const struct {
        ses_act act;
        double at_1, at_minus_2;
    } known[] = {
        { SES_ACT_NONE, 1, -2 },
        { SES_ACT_GELU, 0.8413447460685429, -0.04550026389635842 }, /* x Phi(x) */
        { SES_ACT_GELU_TANH, 0.8411919906082768, -0.04540230591222 },
        { SES_ACT_RELU, 1, 0 },
        { SES_ACT_SILU, 0.7310585786300049, -0.2384058440442351 },
        { SES_ACT_TANH, 0.7615941559557649, -0.9640275800758169 },
        { SES_ACT_SIGMOID, 0.7310585786300049, 0.11920292202211755 },
    };
    CHECK(SES_LEN(known) == SES_ACT_COUNT);
    for (size_t i = 0; i < SES_LEN(known); i++) {
        ses_real a[] = { 1, -2, 0 }, y[3], da[3], dy[] = { 2, 2, 2 };
        ses_k_act_ref(&x, y, a, 3, known[i].act);
        CHECK(ALL_NEAR(y, known[i].at_1, known[i].at_minus_2));
        ses_k_act_bwd_ref(&x, store(da), dy, a, 2, known[i].act);
        for (int j = 0; j < 2; j++) {
            double h = 1e-5, up = ses_act_ref(known[i].act, a[j] + h),
                   down = ses_act_ref(known[i].act, a[j] - h);
            CHECK(near(da[j], 2 * (up - down) / (2 * h)));
        }
    }
}

static void test_dropout(void)
{
    enum { N = 20000 };
    static ses_real a[N], y[N];
    ses_rng_key key = { 1, 2, 3 };
    for (int i = 0; i < N; i++) a[i] = 1;
    ses_k_dropout_ref(&x, store(y), a, N, 0.25, key);
    int kept = 0, right = 0;
    for (int i = 0; i < N; i++) {
        bool keep = ses_dropout_draw(key, (uint64_t)i) >= 0x4000;
        right += near(y[i], keep ? 4.0 / 3 : 0);
        kept += keep;
    }
    CHECK(right == N && abs(kept - 3 * N / 4) < 300);
    ses_k_dropout_ref(&x, store(y), a, N, 0, key);
    CHECK(!memcmp(y, a, sizeof y));
    ses_k_dropout_ref(&x, store(y), a, N, 1, key);
    double sum = 0;
    for (int i = 0; i < N; i++) sum += y[i];
    CHECK(sum == 0);
}

static void test_scatter_heads(void)
{
    /* rows of two heads [query key value] of size 2; the keys go to rows 2 and 0 of three per head */
    ses_real a[24], y[12] = { 0 };
    const int32_t row[] = { 2, 0 };
    for (int i = 0; i < 24; i++) a[i] = (ses_real)i;
    ses_k_scatter_heads_ref(&x, y, 6, row, a + 2, 12, 6, 2, 2, 2);
    CHECK(ALL_NEAR(y, 14, 15, 0, 0, 2, 3, 20, 21, 0, 0, 8, 9));
}

static void test_norm(void)
{
    ses_real a[] = { 1, 2, 3, 4, 5, 5, 5, 5 }, res[] = { 0, 0, 0, 0, 1, 2, 3, 4 }, y[8], s[8], stat[4];
    ses_real gain[] = { 1, 1, 2, 1 }, bias[] = { 0, 0, 0, 10 };
    ses_k_norm_ref(&x, y, NULL, stat, a, NULL, gain, bias, 2, 4, 0.0001, NULL);
    double r = 1 / sqrt(1.25 + 0.0001);
    CHECK(ALL_NEAR(y, -1.5 * r, -0.5 * r, 2 * 0.5 * r, 1.5 * r + 10, 0, 0, 0, 10));
    CHECK(ALL_NEAR(stat, 2.5, r, 5, 100));
    ses_k_norm_ref(&x, y, s, NULL, a, res, gain, bias, 2, 4, 0.0001, NULL);
    CHECK(ALL_NEAR(s, 1, 2, 3, 4, 6, 7, 8, 9));
    CHECK(ALL_NEAR(y, -1.5 * r, -0.5 * r, r, 1.5 * r + 10, -1.5 * r, -0.5 * r, r, 1.5 * r + 10));
}

/* Two values always normalize to { -1, 1 }, so their gradient is 0. Three values have one. */
static void test_norm_bwd(void)
{
    ses_real s[] = { 0, 2 }, stat[] = { 1, 1 }, gain[] = { 1, 1, 1 }, dy[] = { 3, 5 };
    ses_real da[3], dres[3] = { 1, 1, 1 }, dgain[3] = { 100, 100, 100 }, dbias[3] = { 0 };
    ses_k_norm_bwd_ref(&x, store(da), add_to(dres), dgain, dbias, dy, s, stat, gain, 1, 2, NULL);
    CHECK(ALL_NEAR(da, 0, 0) && ALL_NEAR(dres, 1, 1));
    CHECK(ALL_NEAR(dgain, 97, 105) && ALL_NEAR(dbias, 3, 5));

    ses_real s3[] = { -1, 0, 1 }, stat3[] = { 0, (ses_real)sqrt(1.5) }, dy3[] = { 0, 1, 0 };
    ses_k_norm_bwd_ref(&x, store(da), (ses_dst){ NULL, false }, NULL, dbias, dy3, s3, stat3, gain, 1, 3,
                       NULL);
    double r = sqrt(1.5); /* g - mean(g) - xhat mean(g xhat); the last mean is 0 */
    CHECK(ALL_NEAR(da, -r / 3, r * 2 / 3, -r / 3) && ALL_NEAR(dbias, 3, 6, 0));
}

static void test_softmax(void)
{
    ses_real a[] = { 0, (ses_real)log(2), (ses_real)log(3), 1000, 1000, 1000 }, y[6], da[6],
             dy[] = { 1, 0, 0, 1, 2, 3 };
    ses_k_softmax_ref(&x, y, a, 2, 3);
    CHECK(ALL_NEAR(y, 1. / 6, 2. / 6, 3. / 6, 1. / 3, 1. / 3, 1. / 3));
    ses_k_softmax_bwd_ref(&x, store(da), dy, y, 2, 3);
    CHECK(ALL_NEAR(da, 5. / 36, -2. / 36, -3. / 36, -1. / 3, 0, 1. / 3));
}

static void test_gather(void)
{
    ses_real words[] = { 1, 2, 3, 4, 5, 6 }, positions[] = { 10, 20, 30, 40 }, y[6]; /* [3][2], [2][2] */
    int32_t word[] = { 2, 0, 2 }, position[] = { 0, 1, 1 };
    const ses_real *tables[] = { words, positions };
    const int32_t *ids[] = { word, position };
    ses_k_gather_ref(&x, y, tables, ids, 2, 3, 2);
    CHECK(ALL_NEAR(y, 15, 26, 31, 42, 35, 46));
    ses_real dy[] = { 1, 2, 3, 4, 5, 6 };
    ses_k_scatter_add_ref(&x, (ses_dst){ words, true }, dy, word, 3, 2, -1);
    CHECK(ALL_NEAR(words, 4, 6, 3, 4, 11, 14));
    ses_k_scatter_add_ref(&x, (ses_dst){ words, true }, dy, word, 3, 2, 2);
    CHECK(ALL_NEAR(words, 7, 10, 3, 4, 11, 14));
}

static void test_pool(void)
{
    ses_real a[] = { 1, 8, 5, 2, 3, 5, 7, 7 }, y[6], da[8]; /* sequences of 3, 0 and 1 rows, 2 columns */
    int32_t cu[] = { 0, 3, 3, 4 }, arg[6];
    ses_k_pool_ref(&x, y, arg, a, cu, 3, 2, SES_POOL_FIRST);
    CHECK(ALL_NEAR(y, 1, 8, 0, 0, 7, 7));
    ses_k_pool_ref(&x, y, arg, a, cu, 3, 2, SES_POOL_MEAN);
    CHECK(ALL_NEAR(y, 3, 5, 0, 0, 7, 7));
    ses_k_pool_ref(&x, y, arg, a, cu, 3, 2, SES_POOL_MAX);
    CHECK(ALL_NEAR(y, 5, 8, 0, 0, 7, 7));
    CHECK(!memcmp(arg, (int32_t[]){ 1, 0, -1, -1, 3, 3 }, sizeof arg));
    ses_real dy[] = { 3, 6, 9, 9, 1, 2 };
    ses_k_pool_bwd_ref(&x, store(da), dy, arg, cu, 3, 2, SES_POOL_MAX);
    CHECK(ALL_NEAR(da, 0, 6, 3, 0, 0, 0, 1, 2));
    ses_k_pool_bwd_ref(&x, add_to(da), dy, NULL, cu, 3, 2, SES_POOL_MEAN);
    CHECK(ALL_NEAR(da, 1, 8, 4, 2, 1, 2, 2, 4));
    ses_k_pool_bwd_ref(&x, store(da), dy, NULL, cu, 3, 2, SES_POOL_FIRST);
    CHECK(ALL_NEAR(da, 3, 6, 0, 0, 0, 0, 1, 2));
}

static void test_xent(void)
{
    ses_real a[] = {
        0, 0, 0, 0, 9, 9, 9, 9, 1, 1, 1, (ses_real)(1 + log(5))
    }; /* the middle row is ignored */
    int32_t label[] = { 1, SES_IGNORE_INDEX, 3 },
            none[] = { SES_IGNORE_INDEX, SES_IGNORE_INDEX, SES_IGNORE_INDEX };
    ses_real row_loss[3], lse[3], loss[2], da[12], dloss[] = { 4 };
    ses_k_xent_rows_ref(&x, row_loss, lse, a, label, 3, 4, 4);
    CHECK(ALL_NEAR(row_loss, log(4), 0, log(8. / 5)));
    CHECK(near(lse[0], log(4)) && near(lse[2], 1 + log(8)));
    ses_k_xent_mean_ref(&x, loss, row_loss, label, 3);
    CHECK(ALL_NEAR(loss, (log(4) + log(8. / 5)) / 2, 0.5));
    ses_k_xent_bwd_ref(&x, store(da), dloss, loss, lse, a, label, 3, 4, 4);
    CHECK(ALL_NEAR(da, 0.5, -1.5, 0.5, 0.5, 0, 0, 0, 0, 0.25, 0.25, 0.25, -0.75));
    ses_k_xent_bwd_ref(&x, add_to(da), dloss, loss, lse, a, label, 3, 4, 4);
    CHECK(ALL_NEAR(da, 1, -3, 1, 1, 0, 0, 0, 0, 0.5, 0.5, 0.5, -1.5));
    ses_k_xent_mean_ref(&x, loss, row_loss, none, 3);
    CHECK(loss[0] == 0 && loss[1] == 0);
}

/* Sequences of 2 and 3 rows, start and end as columns; the second end is outside its sequence and ignored. */
static void test_xent_seg(void)
{
    ses_real a[] = { 0, 0, 0, (ses_real)log(3), 0, 0, 0, 0, (ses_real)log(2), 0 };
    int32_t cu[] = { 0, 2, 5 }, label[] = { 0, 1, 2, 3 };
    ses_real loss[3], lse[4], da[10], dloss[] = { 1 };
    ses_k_xent_span_ref(&x, loss, lse, a, cu, label, 2, 2);
    double starts = (log(2) + log(4. / 2)) / 2, ends = log(4. / 3);
    CHECK(ALL_NEAR(loss, (starts + ends) / 2, 0.25, 0.5));
    CHECK(near(lse[0], log(2)) && near(lse[1], log(4)) && near(lse[2], log(4)));
    ses_k_xent_span_bwd_ref(&x, store(da), dloss, loss, lse, a, cu, label, 2, 2);
    CHECK(ALL_NEAR(da, -0.125, 0.125, 0.125, -0.125, 0.0625, 0, 0.0625, 0, -0.125, 0));
}

static void test_targets(void)
{
    ses_real a[] = { 0, 100, -100, 2 }, t[] = { 1, 1, 1, 0 }, loss[1], da[4], dloss[] = { 2 };
    ses_k_bce_ref(&x, loss, a, t, 4);
    CHECK(near(loss[0], (log(2) + 0 + 100 + 2 + log1p(exp(-2))) / 4));
    ses_k_bce_bwd_ref(&x, store(da), dloss, a, t, 4);
    CHECK(ALL_NEAR(da, -0.25, 0, -0.5, 0.5 / (1 + exp(-2))));
    ses_k_mse_ref(&x, loss, a, t, 4);
    CHECK(near(loss[0], (1 + 99. * 99 + 101. * 101 + 4) / 4));
    ses_k_mse_bwd_ref(&x, store(da), dloss, a, t, 4);
    CHECK(ALL_NEAR(da, -1, 99, -101, 2));
}

/* Rounded to nearest even; the smallest steps above 1 are 2^-7. */
static void test_bf16(void)
{
    ses_real a[] = { 1, 1 + 1 / 256.f, 1 + 3 / 256.f, -0.1f, 3e38f }, back[5];
    uint16_t half[5];
    ses_k_pack_bf16_ref(&x, half, a, 5);
    ses_k_unpack_bf16_ref(&x, back, half, 5);
    CHECK(back[0] == 1 && back[1] == 1 && back[2] == 1 + 4 / 256.f && half[3] == 0xbdcd);
    CHECK(fabs((double)back[3] + 0.1) < 0.1 / 256 && fabs((double)back[4] / 3e38 - 1) < 1 / 256.);
}

static void test_reduce(void)
{
    ses_real a[] = { 1, 2, 3, 4, 5, 6 }, y[] = { 100, 200, 300 };
    ses_k_col_sum_ref(&x, (ses_dst){ y, true }, a, 2, 3, 3);
    CHECK(ALL_NEAR(y, 105, 207, 309));
    CHECK(near(ses_k_sum_squares_ref(&x, a, 6), 91));
    double part[2] = { 0 };
    ses_k_sum_squares_parts_ref(&x, part, a, 6, 4);
    CHECK(near(part[0], 30) && near(part[1], 61));
    enum { N = 50000 };
    static ses_real many[N];
    for (int i = 0; i < N; i++) many[i] = (ses_real)(i % 3);
    CHECK(near(ses_k_sum_squares_ref(&x, many, N), N / 3 * 5 + 1));
    ses_real huge[] = { 1e30f, 1e30f };
    CHECK(near(ses_k_sum_squares_ref(&x, huge, 2) / 2e60, 1));
}

/* The loss and both slopes of a row that copies its input token with probability D = sigmoid(a), against
 * their definitions in extended precision: relatively, also of predictions that are nearly certain. */
static void test_copy(void)
{
    static const ses_real as[] = { -30, -5, -0.7f, 0, 0.3f, 2, 12, 60 },
                          nlls[] = { 0, 1e-7f, 1e-4f, 0.02f, 0.7f, 9, 80, 200 };
    const int32_t input[] = { 3, 3, 3 }, label[] = { 3, 5, SES_IGNORE_INDEX };
    const ses_real dloss = 2, loss[] = { 0, 0.25f };
    for (size_t i = 0; i < SES_LEN(as); i++)
        for (size_t k = 0; k < SES_LEN(nlls); k++) {
            long double D = 1 / (1 + expl(-(long double)as[i])), draw = 1 / (1 + expl((long double)as[i])),
                        p = expl(-(long double)nlls[k]), all = D + draw * p;
            ses_real row[] = { nlls[k], nlls[k], 7 }, weight[3], a[] = { as[i], as[i], as[i] }, da[3];
            ses_k_copy_rows_ref(&x, row, weight, a, input, label, 3);
            long double sure = draw * -expm1l(-(long double)nlls[k]),
                        want = sure < 0.5L ? -log1pl(-sure) : -logl(all);
            CHECK_MSG(fabsl(row[0] - want) <= 1e-6L * want, "a %g nll %g: loss %.9g, not %.9Lg",
                      (double)as[i], (double)nlls[k], (double)row[0], want);
            CHECK(near(row[1], (double)(nlls[k] - logl(draw))) && row[2] == 0);
            ses_k_copy_bwd_ref(&x, store(da), weight, &dloss, loss, a, input, label, 3);
            want = D * draw * expm1l(-(long double)nlls[k]) / all * 0.5L; /* d/da -log p(label) */
            CHECK_MSG(fabsl(da[0] - want) <= 1e-6L * fabsl(want), "a %g nll %g: slope %.9g, not %.9Lg",
                      (double)as[i], (double)nlls[k], (double)da[0], want);
            CHECK_MSG(fabsl(da[1] - D / 2) <= 1e-6L * D, "a %g: %.9g", (double)as[i], (double)da[1]);
            CHECK(da[2] == 0 && weight[1] == 1 && weight[2] == 0);
            CHECK(fabsl(weight[0] - draw * p / all) <= 1e-6L);
        }
    ses_real row[] = { 0.5f }, weight[1], a[] = { 0.3f };
    ses_k_copy_rows_ref(&x, row, weight, a, input, label, 1);
    ses_k_copy_bwd_ref(&x, (ses_dst){ NULL, false }, weight, &dloss, loss, a, input, label, 1);
    CHECK(weight[0] > 0 && weight[0] < 0.5f); /* the weight is needed without a gradient of a, too */
}

/* Two steps with a constant gradient: both moments, bias-corrected, are the gradient and its square. */
static void test_adamw(void)
{
    ses_real w[] = { 1, -1 }, g[] = { 0.5f, -0.001f }, m[2] = { 0 }, v[2] = { 0 };
    double want[] = { 1, -1 }, lr = 0.1, decay = 0.01, eps = 1e-8;
    for (int t = 1; t <= 2; t++) {
        ses_adamw o = { lr, 0.9, 0.999, eps, decay, 1 / (1 - pow(0.9, t)), 1 / (1 - pow(0.999, t)), 1 };
        ses_k_adamw_ref(&x, w, g, m, v, 2, &o);
        for (int i = 0; i < 2; i++) want[i] -= lr * decay * want[i] + lr * g[i] / (fabs((double)g[i]) + eps);
        CHECK(all_near(w, want, 2));
    }
    CHECK(ALL_NEAR(m, 0.5 * 0.19, -0.001 * 0.19));
    CHECK(ALL_NEAR(v, 0.25 * 0.001999, 0));
}

int main(void)
{
    x.pool = ses_thread_pool_new(2, NULL);
    test_pointwise();
    test_act();
    test_dropout();
    test_scatter_heads();
    test_norm();
    test_norm_bwd();
    test_softmax();
    test_gather();
    test_pool();
    test_xent();
    test_xent_seg();
    test_copy();
    test_targets();
    test_bf16();
    test_reduce();
    test_adamw();
    ses_thread_pool_free(x.pool);
    return check_report();
}
