/* Logistic regression with an L1 penalty against scikit-learn: LogisticRegression(penalty="l1",
 * solver="saga", tol=1e-13) on the standardized features. */
#include "check.h"
#include "math/logistic/l1_logistic.h"

#include <math.h>

enum { N = 40, F = 12, CONSTANT = 7 };

static const struct {
    double c, weight[F], intercept;
    size_t right;
} want[] = {
    { 0.2, { 0, 0.50476562, 0, 0, -0.31870454, 0, 0, 0, 0, 0, 0, 0 }, -0.00136108756, 30 },
    { 0.5, { 0, 1.05692, 0, 0, -0.78979322, -0.21398551, 0, 0, 0, -0.087625748, 0, 0 }, -0.0187938498, 33 },
    { 5,
      { -0.46665123, 1.7463805, -0.28566993, -0.01769649, -1.3003634, -0.93167716, -0.20782777, 0,
        -0.15293794, -0.4662216, -0.20450905, -0.32797004 },
      -0.0769885143,
      34 },
};

static void fill(float *x, uint8_t *positive)
{
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < F; k++)
            x[k * N + i] =
                (float)((i * 1103 + k * 7919 + i * i * (k + 3) * 31 + i * k * k * 17) % 127 - 63) / 64;
        x[CONSTANT * N + i] = 2;
        double score = (double)x[N + i] - 0.8 * (double)x[4 * N + i] + ((i * 37) % 19 - 9) / 12.0;
        positive[i] = score > 0;
    }
}

static void check_weights(void)
{
    float x[F * N];
    uint8_t positive[N];
    double w[F], first[F];
    ses_err e = { 0 };
    fill(x, positive);
    for (size_t t = 0; t < SES_LEN(want); t++)
        for (int threads = 1; threads <= 2; threads++) {
            ses_thread_pool *pool = ses_thread_pool_new(threads, &e);
            ses_l1_fit fit = { .weight = w };
            ses_l1_problem p = { x, N, F, N, positive, want[t].c };
            CHECK_MSG(ses_l1_logistic(&p, pool, &fit, &e), "%s", e.msg);
            CHECK(fit.converged && fit.right == want[t].right);
            size_t nonzero = 0;
            for (int k = 0; k < F; k++) {
                CHECK_MSG(fabs(w[k] - want[t].weight[k]) < 1e-5, "C %g, weight %d: %.9g, expected %.9g",
                          want[t].c, k, w[k], want[t].weight[k]);
                CHECK((w[k] == 0) == (want[t].weight[k] == 0)); /* the same set */
                nonzero += w[k] != 0;
            }
            CHECK(fit.nonzero == nonzero && w[CONSTANT] == 0);
            CHECK(fabs(fit.intercept - want[t].intercept) < 1e-3); /* saga ends early here */
            if (threads == 1) memcpy(first, w, sizeof w);
            CHECK(!memcmp(first, w, sizeof w));
            ses_thread_pool_free(pool);
        }
}

/* The intercept without weights is the logarithm of the odds; bad input is refused. */
static void check_edges(void)
{
    float x[F * N];
    uint8_t positive[N];
    double w[F];
    ses_err e = { 0 };
    ses_thread_pool *pool = ses_thread_pool_new(1, &e);
    fill(x, positive);
    positive[0] = positive[1] = positive[2] = positive[3] = positive[4] = 1;
    size_t n = 0;
    for (int i = 0; i < N; i++) n += positive[i];
    ses_l1_fit fit = { .weight = w };
    ses_l1_problem p = { x, N, F, N, positive, 1e-4 };
    CHECK(ses_l1_logistic(&p, pool, &fit, &e) && fit.nonzero == 0 && fit.converged);
    CHECK(fabs(fit.intercept - log((double)n / (double)(N - n))) < 1e-4);
    x[3 * N + 1] = NAN;
    CHECK(!ses_l1_logistic(&p, pool, &fit, &e) && strstr(e.msg, "feature 3: a value is not finite"));
    e = (ses_err){ 0 };
    fill(x, positive);
    memset(positive, 1, sizeof positive);
    CHECK(!ses_l1_logistic(&p, pool, &fit, &e) && strstr(e.msg, "some, but not all"));
    /* samples that a line separates: the penalty keeps the weights finite */
    e = (ses_err){ 0 };
    fill(x, positive);
    for (int i = 0; i < N; i++) positive[i] = x[i] > 0;
    p.c = 1000;
    CHECK(ses_l1_logistic(&p, pool, &fit, &e) && fit.right == N && isfinite(w[0]));
    ses_thread_pool_free(pool);
}

int main(void)
{
    check_weights();
    check_edges();
    return check_report();
}
