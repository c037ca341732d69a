/* SVD against singular values of NumPy (fixtures/low_rank.py): values, orthogonal vectors, the error of
 * truncated sums, low ranks, values of very different sizes. */
#include "check.h"

#include "math/svd.h"
#include "sesame/json.h"

#include <math.h>

static double element(int64_t i, int64_t j)
{
    return (double)((i * i * 31 + j * j * 17 + i * j * 7) % 101 - 50) / 40;
}

/* |w - the sum of the first n parts|^2 */
static double error_of(const double *w, int64_t rows, int64_t cols, int64_t n, const double *value,
                       const double *left, const double *right)
{
    double sum = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            double x = w[i * cols + j];
            for (int64_t r = 0; r < n; r++) x -= value[r] * left[r * rows + i] * right[r * cols + j];
            sum += x * x;
        }
    return sum;
}

static void check_orthonormal(const double *v, int64_t n, int64_t width)
{
    for (int64_t a = 0; a < n; a++)
        for (int64_t b = 0; b <= a; b++) {
            double sum = 0;
            for (int64_t i = 0; i < width; i++) sum += v[a * width + i] * v[b * width + i];
            CHECK_MSG(fabs(sum - (a == b)) < 1e-9, "vectors %d and %d: %g", (int)a, (int)b, sum);
        }
}

enum { MOST = 40 };

static void check_values(const ses_kernels *k, const ses_json *all, int64_t rows, int64_t cols)
{
    char key[24];
    ses_err e = { 0 };
    double w[MOST * MOST], value[MOST], left[MOST * MOST], right[MOST * MOST], expected[MOST], tail = 0;
    int64_t n = rows < cols ? rows : cols;
    snprintf(key, sizeof key, "%dx%d", (int)rows, (int)cols);
    const ses_json *list = ses_json_get(all, key);
    for (int64_t i = 0; i < rows * cols; i++) w[i] = element(i / cols, i % cols);
    if (!CHECK((int64_t)ses_json_len(list) == n)) return;
    for (int64_t i = 0; i < n; i++) CHECK(ses_json_real(ses_json_at(list, (size_t)i), &expected[i]));
    CHECK_MSG(ses_svd(k, w, rows, cols, n, value, left, right, &e), "%s", e.msg);
    for (int64_t i = 0; i < n; i++)
        CHECK_MSG(fabs(value[i] / expected[i] - 1) < 1e-9, "%s, value %d: %.15g, expected %.15g", key, (int)i,
                  value[i], expected[i]);
    check_orthonormal(left, n, rows);
    check_orthonormal(right, n, cols);
    CHECK(error_of(w, rows, cols, n, value, left, right) < 1e-20);
    /* the error of a truncated sum is that of the best approximation: the squares of the other values */
    for (int64_t r = n - 1; r > 0; r--) {
        double few[MOST], l[MOST * MOST], p[MOST * MOST];
        tail += expected[r] * expected[r];
        CHECK(ses_svd(k, w, rows, cols, r, few, l, p, &e));
        double error = error_of(w, rows, cols, r, few, l, p);
        CHECK_MSG(fabs(error / tail - 1) < 1e-8, "%s, rank %d: %g, expected %g", key, (int)r, error, tail);
    }
}

/* Rank 2 of 12 x 10: the sum of two parts, one 1e7 times as large as the other. */
static void low_rank(const ses_kernels *k)
{
    enum { ROWS = 12, COLS = 10 };
    double w[ROWS * COLS], value[COLS], left[COLS * ROWS], right[COLS * COLS];
    ses_err e = { 0 };
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t j = 0; j < COLS; j++)
            w[i * COLS + j] = (i == 3) * (j == 4) * 1e4 + (i == 7) * (j == 1) * 1e-3;
    CHECK(ses_svd(k, w, ROWS, COLS, COLS, value, left, right, &e));
    CHECK_MSG(fabs(value[0] / 1e4 - 1) < 1e-12 && fabs(value[1] / 1e-3 - 1) < 1e-5, "%g %g", value[0],
              value[1]);
    CHECK(value[2] < 1e-9 && error_of(w, ROWS, COLS, COLS, value, left, right) < 1e-18);
    memset(w, 0, sizeof w);
    CHECK(ses_svd(k, w, ROWS, COLS, 2, value, left, right, &e) && value[0] == 0 && left[0] == left[0]);
    w[5] = NAN;
    CHECK(!ses_svd(k, w, ROWS, COLS, 2, value, left, right, &e));
    CHECK(!ses_svd(k, w, ROWS, COLS, COLS + 1, value, left, right, &e));
}

/* The error of rank 3 on inputs is the least one. */
static void weighted(const ses_kernels *k, const ses_json *all, int64_t rows, int64_t cols)
{
    enum { RANK = 3, WIDE = 12, INPUTS = WIDE + 5 };
    double w[WIDE * WIDE], x[INPUTS * WIDE], s[WIDE * WIDE], energy[WIDE], left[WIDE * WIDE],
        right[WIDE * WIDE], sum = 0, expected[2] = { 0 }, error = 0, kept = 0;
    ses_err e = { 0 };
    char key[24];
    for (int64_t i = 0; i < rows * cols; i++) w[i] = element(i / cols, i % cols);
    for (int64_t i = 0; i < (cols + 5) * cols; i++) x[i] = pow(element(i / cols, i % cols), 2);
    for (int64_t i = 0; i < cols * cols; i++) {
        s[i] = 0;
        for (int64_t r = 0; r < cols + 5; r++) s[i] += x[r * cols + i / cols] * x[r * cols + i % cols];
    }
    snprintf(key, sizeof key, "%dx%d", (int)rows, (int)cols);
    for (size_t i = 0; i < 2; i++) CHECK(ses_json_real(ses_json_at(ses_json_get(all, key), i), &expected[i]));
    CHECK_MSG(ses_svd_weighted(k, w, s, rows, cols, RANK, energy, &sum, left, right, &e), "%s", e.msg);
    for (int64_t i = 0; i < rows; i++) /* w becomes the difference */
        for (int64_t j = 0; j < cols; j++)
            for (int64_t r = 0; r < RANK; r++) w[i * cols + j] -= left[r * rows + i] * right[r * cols + j];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t a = 0; a < cols; a++)
            for (int64_t b = 0; b < cols; b++) error += w[i * cols + a] * s[a * cols + b] * w[i * cols + b];
    for (int64_t r = 0; r < RANK; r++) kept += energy[r];
    CHECK_MSG(fabs(error / expected[0] - 1) < 1e-6, "%s: %.12g, expected %.12g", key, error, expected[0]);
    CHECK_MSG(fabs(sum / expected[1] - 1) < 1e-9 && fabs((sum - kept) / expected[0] - 1) < 1e-6,
              "%s: %.12g, %.12g", key, sum, kept);
}

int main(void)
{
    ses_err e = { 0 };
    ses_kernels k = ses_kernels_cpu(SES_ISA_BEST), ref = ses_kernels_cpu(SES_ISA_REF);
    ses_json_doc *doc = ses_json_load("tests/fixtures/low_rank.json", 1 << 20, &e);
    const ses_json *all = doc ? ses_json_get(ses_json_root(doc), "svd") : NULL;
    CHECK_MSG(all, "%s", e.msg);
    check_values(&k, all, 6, 4);
    check_values(&k, all, 9, 23);
    check_values(&k, all, 40, 24);
    check_values(&ref, all, 24, 24);
    low_rank(&k);
    all = ses_json_get(ses_json_root(doc), "weighted");
    weighted(&k, all, 6, 9);
    weighted(&k, all, 12, 7);
    weighted(&ref, all, 8, 8);
    ses_json_free(doc);
    return check_report();
}
