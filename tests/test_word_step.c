/* Steps of word vectors: every level against plain loops in double precision, at odd sizes; repeated inputs;
 * bytes around the rows; NaN. */
#include "base/alloc.h"
#include "base/rng.h"
#include "check.h"
#include "kernel/kernel.h"

#include <math.h>

enum { MAX = SES_WORD_STEP_MAX, GUARD = 5 };

typedef struct rows {
    float *data, *x[MAX], *y[MAX], label[MAX];
    int64_t n, m, cols, size;
} rows;

static rows rows_new(int64_t n, int64_t m, int64_t cols, float scale)
{
    rows r = { .n = n, .m = m, .cols = cols, .size = (n + m) * (cols + GUARD) + GUARD };
    r.data = ses_alloc_array((size_t)r.size, sizeof *r.data, NULL);
    for (int64_t i = 0; i < r.size; i++)
        r.data[i] = scale * (ses_rand_unit((ses_rng_key){ 7, 1, 2 }, (uint64_t)i) - 0.5f);
    for (int64_t i = 0; i < n; i++) r.x[i] = r.data + GUARD + i * (cols + GUARD);
    for (int64_t j = 0; j < m; j++)
        r.y[j] = r.data + GUARD + (n + j) * (cols + GUARD), r.label[j] = j % 3 == 0;
    return r;
}

static ses_word_step step_of(const rows *r)
{
    return (ses_word_step){
        .x = r->x, .y = r->y, .label = r->label, .n = r->n, .m = r->m, .cols = r->cols, .rate = 0.1f
    };
}

/* One step in double precision, from the formulas; want has the layout of r->data. Returns the loss. */
static double plain(const rows *r, bool bag, double *want)
{
    double loss = 0;
    int64_t n = bag ? 1 : r->n;
    double *x = calloc((size_t)(n * r->cols), sizeof *x), *dx = calloc((size_t)(n * r->cols), sizeof *dx);
    for (int64_t i = 0; i < r->size; i++) want[i] = (double)r->data[i];
    for (int64_t i = 0; i < r->n; i++)
        for (int64_t c = 0; c < r->cols; c++)
            x[(bag ? 0 : i) * r->cols + c] += (double)r->x[i][c] / (bag ? (double)r->n : 1);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < r->m; j++) {
            double f = 0, label = (double)r->label[j];
            for (int64_t c = 0; c < r->cols; c++) f += x[i * r->cols + c] * (double)r->y[j][c];
            double s = 1 / (1 + exp(-f)), g = (double)0.1f * (label - s);
            loss -= log(label > 0 ? s : 1 - s);
            for (int64_t c = 0; c < r->cols; c++) {
                want[r->y[j] - r->data + c] += g * x[i * r->cols + c];
                dx[i * r->cols + c] += g * (double)r->y[j][c];
            }
        }
    for (int64_t i = 0; i < r->n; i++)
        for (int64_t c = 0; c < r->cols; c++) want[r->x[i] - r->data + c] += dx[(bag ? 0 : i) * r->cols + c];
    free(x);
    free(dx);
    return loss;
}

static void compare(ses_isa isa, int64_t n, int64_t m, int64_t cols, bool bag, int64_t repeated)
{
    ses_kernels k = ses_kernels_cpu(isa);
    rows r = rows_new(n, m, cols, 1.5f);
    double *want = calloc((size_t)r.size, sizeof *want), worst = 0;
    float *before = calloc((size_t)r.size, sizeof *before), scratch[2 * 300];
    if (repeated && n > 1) r.x[n - 1] = r.x[0];
    memcpy(before, r.data, (size_t)r.size * sizeof *before);
    double loss = plain(&r, bag, want);
    ses_word_step s = step_of(&r);
    double got = bag ? k.bag_step(&s, scratch) : k.word_step(&s);
    for (int64_t i = 0; i < r.size; i++) worst = fmax(worst, fabs((double)r.data[i] - want[i]));
    CHECK_MSG(worst < (repeated ? 0.05 : 3e-6), "%s: n %d, m %d, cols %d, bag %d: %g", ses_isa_name(isa),
              (int)n, (int)m, (int)cols, bag, worst);
    CHECK_MSG(fabs(got - loss) < 1e-4 * loss, "loss %g, expected %g", got, loss);
    bool kept = !memcmp(r.data, before, GUARD * sizeof *before);
    for (int64_t i = 0; i < n + m; i++) {
        int64_t at = GUARD + i * (cols + GUARD) + cols;
        kept = kept && !memcmp(r.data + at, before + at, GUARD * sizeof *before);
    }
    CHECK(kept);
    free(want);
    free(before);
    ses_free(r.data);
}

static void sizes(ses_isa isa)
{
    static const int64_t cols[] = { 1, 7, 16, 33, 100, 300 }, m[] = { 1, 2, 3, 5, 6, 8, 9, 15, 21, 64 };
    for (size_t c = 0; c < SES_LEN(cols); c++)
        for (size_t j = 0; j < SES_LEN(m); j++) {
            for (int64_t n = 1; n <= 11; n++) compare(isa, n, m[j], cols[c], false, 0);
            compare(isa, MAX, m[j], cols[c], false, 0);
            compare(isa, 1, m[j], cols[c], true, 0);
            compare(isa, 7, m[j], cols[c], true, 0);
        }
    compare(isa, 6, 6, 100, false, 1);
    compare(isa, 6, 12, 100, false, 1);
    compare(isa, 6, 6, 100, true, 1);
}

static void extremes(ses_isa isa)
{
    ses_kernels k = ses_kernels_cpu(isa);
    rows r = rows_new(3, 6, 40, 200);
    ses_word_step s = step_of(&r);
    CHECK(isfinite(k.word_step(&s)));
    r.x[1][3] = NAN;
    CHECK(isnan(k.word_step(&s)));
    ses_free(r.data);
}

/* Copies of a row, of odd sizes. */
static void merges(ses_isa isa)
{
    static const int64_t cols[] = { 1, 16, 33, 112 };
    ses_kernels k = ses_kernels_cpu(isa);
    for (size_t i = 0; i < SES_LEN(cols); i++)
        for (int64_t n = 1; n <= 8; n++) {
            rows r = rows_new(n, 1, cols[i], 1);
            float old[112 + 1];
            double worst = 0;
            memcpy(old, r.y[0], (size_t)(cols[i] + 1) * sizeof *old);
            k.merge_rows(r.y[0], (const float *const *)r.x, n, 0.3f, cols[i]);
            for (int64_t c = 0; c < cols[i]; c++) {
                double want = (double)old[c];
                for (int64_t j = 0; j < n; j++) want += (double)0.3f * ((double)r.x[j][c] - (double)old[c]);
                worst = fmax(worst, fabs((double)r.y[0][c] - want));
            }
            CHECK_MSG(worst < 1e-6, "%s: %d copies of %d columns: %g", ses_isa_name(isa), (int)n,
                      (int)cols[i], worst);
            CHECK(memcmp(&r.y[0][cols[i]], &old[cols[i]], sizeof *old) == 0);
            ses_free(r.data);
        }
}

int main(void)
{
    for (int isa = SES_ISA_REF; isa <= (int)ses_isa_best(); isa++) {
        sizes((ses_isa)isa);
        extremes((ses_isa)isa);
        merges((ses_isa)isa);
    }
    return check_report();
}
