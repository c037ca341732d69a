/* Influence of training examples against the loss after fitting without each of them. */
#include "base/rng.h"
#include "check.h"
#include "math/logistic/influence.h"

#include <math.h>

enum { N = 80, WIDTH = 6, MAX_CLASSES = 3 };

static double loss(const ses_logreg *m, const float *x, int32_t label)
{
    double p[MAX_CLASSES];
    ses_logreg_predict(m, x, p);
    return -log(p[label]);
}

static double correlation(const double *a, const double *b, int n)
{
    double ma = 0, mb = 0, ab = 0, aa = 0, bb = 0;
    for (int i = 0; i < n; i++) ma += a[i] / n, mb += b[i] / n;
    for (int i = 0; i < n; i++) {
        ab += (a[i] - ma) * (b[i] - mb);
        aa += (a[i] - ma) * (a[i] - ma);
        bb += (b[i] - mb) * (b[i] - mb);
    }
    return ab / sqrt(aa * bb);
}

static void test(size_t classes, double c)
{
    static float x[N * WIDTH], test_x[WIDTH];
    static int32_t y[N];
    static double effect[N], refit[N];
    ses_rng_key key = { .seed = 5 + classes };
    ses_err e = { 0 };
    ses_logreg m = { 0 };
    ses_logreg_options o = { .c = c, .tolerance = 1e-11, .iterations = 10000 };
    for (int i = 0; i < N * WIDTH; i++) x[i] = (float)(ses_rand32(key, (uint64_t)i) % 2001) / 1000 - 1;
    for (int j = 0; j < WIDTH; j++)
        test_x[j] = (float)(ses_rand32(key, 9000 + (uint64_t)j) % 2001) / 1000 - 1;
    for (int i = 0; i < N; i++) { /* noisy: a linear rule with exceptions */
        double s = (double)(x[i * WIDTH] + x[i * WIDTH + 1] - x[i * WIDTH + 2]);
        y[i] = (int32_t)(s < -0.4 ? 0 : s < 0.4 || classes == 2 ? 1 : 2);
        if (i % 9 == 0) y[i] = (int32_t)((y[i] + 1) % (int)classes);
    }
    CHECK(ses_logreg_fit(&m, x, y, NULL, N, WIDTH, classes, &o, &e));
    ses_influence_data d = { x, y, N, WIDTH, classes, c };
    CHECK_MSG(ses_influence(&m, &d, test_x, 1, effect, &e), "%s", e.msg);
    double before = loss(&m, test_x, 1);
    for (size_t left = 0; left < N; left++) {
        size_t pick[N], n = 0;
        ses_logreg without = { 0 };
        for (size_t i = 0; i < N; i++)
            if (i != left) pick[n++] = i;
        CHECK(ses_logreg_fit(&without, x, y, pick, n, WIDTH, classes, &o, &e));
        refit[left] = loss(&without, test_x, 1) - before;
        ses_logreg_free(&without);
    }
    double r = correlation(effect, refit, N);
    CHECK_MSG(r > 0.99, "%zu classes, C %g: r = %g", classes, c, r);
    ses_logreg_free(&m);
}

int main(void)
{
    test(2, 1);
    test(2, 0.1);
    test(3, 1);
    return check_report();
}
