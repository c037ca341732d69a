/* Columns sampled from rows of scores: frequencies match softmax, results are the same on any number of
 * threads. */
#include "check.h"

#include "kernel/kernel.h"

#include <math.h>
#include <string.h>

enum { ROWS = 200000, COLS = 5, WIDE = 1027 };

static const double score[COLS] = { 0.3, -1, 2, 0, -INFINITY };

static void test_shares(ses_exec *x, double temperature)
{
    static ses_real a[ROWS * COLS];
    static int32_t sampled[ROWS];
    double sum = 0;
    int64_t count[COLS] = { 0 };
    for (int64_t i = 0; i < ROWS * COLS; i++) a[i] = (ses_real)score[i % COLS];
    ses_kernels k = ses_kernels_cpu(SES_ISA_COUNT - 1);
    k.sample(x, sampled, a, ROWS, COLS, temperature, (ses_rng_key){ 7, 1, 2 });
    for (int64_t i = 0; i < ROWS; i++) count[sampled[i]]++;
    for (int j = 0; j < COLS; j++) sum += exp(score[j] / temperature);
    for (int j = 0; j < COLS; j++) {
        double p = exp(score[j] / temperature) / sum, off = fabs((double)count[j] / ROWS - p);
        CHECK_MSG(off <= 4 * sqrt(p * (1 - p) / ROWS), "temperature %g, column %d: off by %g", temperature, j,
                  off);
    }
}

int main(void)
{
    static ses_real a[3 * WIDE];
    int32_t one[3], four[3], other[3];
    ses_exec x1 = { .pool = ses_thread_pool_new(1, NULL) }, x4 = { .pool = ses_thread_pool_new(4, NULL) };
    ses_kernels k = ses_kernels_cpu(SES_ISA_REF);
    test_shares(&x4, 1);
    test_shares(&x4, 0.5);
    for (int i = 0; i < 3 * WIDE; i++) a[i] = (ses_real)(i % 7) / 100;
    k.sample(&x1, one, a, 3, WIDE, 1, (ses_rng_key){ 7, 1, 2 });
    k.sample(&x4, four, a, 3, WIDE, 1, (ses_rng_key){ 7, 1, 2 });
    k.sample(&x4, other, a, 3, WIDE, 1, (ses_rng_key){ 7, 2, 2 });
    CHECK(!memcmp(one, four, sizeof one) && memcmp(one, other, sizeof one) != 0);
    a[WIDE + 500] = 1e4; /* certain */
    k.sample(&x4, four, a, 3, WIDE, 1, (ses_rng_key){ 7, 1, 2 });
    CHECK(four[0] == one[0] && four[1] == 500 && four[2] == one[2]);
    ses_thread_pool_free(x1.pool);
    ses_thread_pool_free(x4.pool);
    return check_report();
}
