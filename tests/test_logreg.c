/* Logistic regression against scikit-learn's (fixtures/logreg.f64, made by logreg.py), matrices from
 * files, and what both refuse. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "check.h"
#include "io/matrix.h"
#include "math/lbfgs.h"
#include "sesame/base.h"
#include "sesame/unstable/logreg.h"

#include <math.h>
#include <unistd.h>

enum { CASES = 60, MOST = 100 };

static uint64_t state;
static int below(int n)
{
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (int)((z ^ z >> 31) % (uint64_t)n);
}

static float x[MOST * 8];
static int32_t y[MOST];

static void against_reference(void)
{
    static double want[4000];
    FILE *f = fopen("tests/fixtures/logreg.f64", "rb");
    if (!CHECK(f)) return;
    size_t have = fread(want, sizeof *want, SES_LEN(want), f), at = 0;
    fclose(f);
    double worst = 0;
    for (int c = 0; c < CASES; c++) {
        static const double strength[] = { 0.01, 0.3, 1, 10 };
        state = 77 * 1000003 + (uint64_t)c;
        int classes = 2 + below(4), width = 1 + below(8), n = 20 + below(60);
        ses_logreg_options o = { .c = strength[below(4)], .tolerance = 1e-9 };
        o.no_bias = below(4) == 0;
        o.balanced = below(3) == 0;
        for (int i = 0; i < n; i++) {
            y[i] = i >= classes ? below(classes) : i;
            for (int k = 0; k < width; k++)
                x[i * width + k] = (float)((below(2001) - 1000) / 500.0 + (y[i] == k % classes));
        }
        ses_logreg m = { 0 };
        ses_err e = { 0 };
        bool ok = ses_logreg_fit(&m, x, y, NULL, (size_t)n, (size_t)width, (size_t)classes, &o, &e);
        CHECK_MSG(ok && m.converged, "case %d: %s, %d iterations", c, e.msg, (int)m.iterations);
        for (size_t k = 0; ok && k < m.rows * (m.width + 1) && at < have; k++, at++)
            worst = fmax(worst, fabs(m.weight[k] - want[at]));
        ses_logreg_free(&m);
    }
    CHECK(at == have);
    CHECK_MSG(worst < 1e-5, "largest difference of a coefficient: %g", worst);
}

/* On a device: the weights of the fit in double, with the same bits for any number of threads. */
static void on_devices(void)
{
    enum { N = 5000, WIDTH = 24, CLASSES = 7 };
    ses_err e = { 0 };
    float *v = malloc(N * WIDTH * sizeof *v);
    int32_t *label = malloc(N * sizeof *label);
    size_t *pick = malloc(N * sizeof *pick);
    state = 5;
    for (size_t i = 0; i < N; i++) {
        label[i] = i < CLASSES ? (int32_t)i : below(CLASSES) * below(2);
        pick[i] = (i * 7 + 3) % N;
        for (int k = 0; k < WIDTH; k++)
            v[i * WIDTH + (size_t)k] = (float)((below(2001) - 1000) / 400.0 + (label[i] == k % CLASSES));
    }
    for (int classes = CLASSES; classes >= 2; classes -= CLASSES - 2) {
        for (size_t i = 0; i < N; i++) label[i] = label[i] < classes ? label[i] : 1;
        ses_logreg fit[3] = { 0 };
        for (int i = 0; i < 3; i++) {
            ses_device *dev =
                i ? ses_device_open("cpu", &(ses_device_options){ .threads = 2 * i - 1 }, &e) : NULL;
            ses_logreg_options o = { .c = 0.3, .tolerance = i ? 3e-8 : 1e-9, .device = dev };
            CHECK_MSG(ses_logreg_fit(&fit[i], v, label, pick, N - 1, WIDTH, (size_t)classes, &o, &e) &&
                          fit[i].converged,
                      "%s", e.msg);
            ses_device_free(dev);
        }
        double worst = 0;
        for (size_t k = 0; k < fit[0].rows * (WIDTH + 1); k++)
            worst = fmax(worst, fabs(fit[0].weight[k] - fit[1].weight[k]));
        CHECK_MSG(worst < 1e-4, "%d classes: largest difference of a coefficient: %g", classes, worst);
        CHECK(!memcmp(fit[1].weight, fit[2].weight, fit[1].rows * (WIDTH + 1) * sizeof(double)));
        for (int i = 0; i < 3; i++) ses_logreg_free(&fit[i]);
    }
    free(v), free(label), free(pick);
}

/* Many rows, two and three classes: threads compute blocks of rows apart, and the bits stay the same. */
static void on_threads(void)
{
    enum { N = 45000, WIDTH = 5 };
    float *row = malloc(N * WIDTH * sizeof *row);
    int32_t *label = malloc(N * sizeof *label);
    for (int classes = 2; classes <= 3; classes++) {
        ses_logreg m[3] = { 0 };
        for (int32_t i = 0; i < N; i++) {
            label[i] = (i * i + i / 3) % classes;
            for (int k = 0; k < WIDTH; k++)
                row[i * WIDTH + k] = (float)(sin(i * (k + 0.3)) + (k == label[i]));
        }
        for (int i = 0; i < 3; i++) {
            ses_err e = { 0 };
            ses_device *dev =
                i ? ses_device_open("cpu", &(ses_device_options){ .threads = i == 1 ? 1 : 4 }, &e) : NULL;
            ses_logreg_options o = { .c = 0.01, .tolerance = 1e-6, .device = dev };
            CHECK_MSG(ses_logreg_fit(&m[i], row, label, NULL, N, WIDTH, (size_t)classes, &o, &e), "%s",
                      e.msg);
            ses_device_free(dev);
        }
        size_t n = m[0].rows * (WIDTH + 1);
        CHECK(m[1].iterations == m[2].iterations && !memcmp(m[1].weight, m[2].weight, n * sizeof(double)));
        for (size_t i = 0; i < n; i++)
            CHECK_MSG(fabs(m[0].weight[i] - m[1].weight[i]) < 1e-3, "%g, %g", m[0].weight[i], m[1].weight[i]);
        for (int i = 0; i < 3; i++) ses_logreg_free(&m[i]);
    }
    free(row), free(label);
}

/* A class that the first rows lack keeps a probability, and a fit of all rows that continues from the first
 * rows ends at the fit of all rows. */
static void rare_class(void)
{
    enum { N = 3000, FIRST = 400, WIDTH = 3, CLASSES = 3 };
    float *row = malloc(N * WIDTH * sizeof *row);
    int32_t *label = malloc(N * sizeof *label);
    for (int32_t i = 0; i < N; i++) {
        label[i] = i > FIRST && i % 150 == 0 ? 2 : i % 2;
        for (int k = 0; k < WIDTH; k++) row[i * WIDTH + k] = (float)(sin(i * (k + 0.3)) + (k == label[i]));
    }
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    ses_logreg_options o = { .c = 1, .tolerance = 1e-5, .device = dev };
    ses_logreg m[2] = { 0 };
    double p[CLASSES];
    CHECK_MSG(ses_logreg_fit(&m[0], row, label, NULL, FIRST, WIDTH, CLASSES, &o, &e), "%s", e.msg);
    ses_logreg_predict(&m[0], row, p);
    CHECK_MSG(p[2] > 1e-9 && p[2] < 0.02, "%g", p[2]);
    for (int i = 0; i < 2; i++)
        CHECK_MSG(ses_logreg_fit(&m[i], row, label, NULL, N, WIDTH, CLASSES, &o, &e), "%s", e.msg);
    for (int32_t i = FIRST; i < N; i += 7) {
        double q[CLASSES];
        ses_logreg_predict(&m[0], row + i * WIDTH, p), ses_logreg_predict(&m[1], row + i * WIDTH, q);
        for (int k = 0; k < CLASSES; k++) CHECK_MSG(fabs(p[k] - q[k]) < 0.05, "%d: %g, %g", k, p[k], q[k]);
    }
    for (int i = 0; i < 2; i++) ses_logreg_free(&m[i]);
    ses_device_free(dev);
    free(row), free(label);
}

static void predictions(void)
{
    const float v[] = { 0, 1, 2, 3, 4, 5 };
    const int32_t l[] = { 0, 0, 1, 1, 2, 2 };
    ses_logreg m = { 0 };
    ses_err e = { 0 };
    double p[3];
    CHECK(ses_logreg_fit(&m, v, l, NULL, 6, 1, 3, &(ses_logreg_options){ .c = 100 }, &e));
    for (int i = 0; i < 6; i++) {
        ses_logreg_predict(&m, &v[i], p);
        CHECK(fabs(p[0] + p[1] + p[2] - 1) < 1e-12 && p[l[i]] > 0.5);
    }
    /* pick selects rows; a second fit starts from the first. */
    ses_logreg one = { 0 }, two = { 0 };
    const float few[] = { 0, 5, 3 };
    const int32_t few_labels[] = { 0, 2, 1 };
    CHECK(ses_logreg_fit(&one, v, l, (size_t[]){ 0, 5, 3 }, 3, 1, 3, NULL, &e));
    CHECK(ses_logreg_fit(&two, few, few_labels, NULL, 3, 1, 3, NULL, &e));
    CHECK(!memcmp(one.weight, two.weight, 6 * sizeof *one.weight));
    CHECK(ses_logreg_fit(&one, few, few_labels, NULL, 3, 1, 3, NULL, &e) && one.iterations <= 1);
    const int32_t binary[] = { 0, 0, 0, 1, 1, 1 };
    CHECK(ses_logreg_fit(&two, v, binary, NULL, 6, 1, 2, NULL, &e) && two.rows == 1);
    ses_logreg_predict(&two, &v[5], p);
    CHECK(p[1] > 0.9 && fabs(p[0] + p[1] - 1) < 1e-12);

    const float bad[] = { 0, NAN };
    const int32_t same[] = { 1, 1 }, out[] = { 0, 2 };
    CHECK(!ses_logreg_fit(&m, bad, out + 0, NULL, 2, 1, 3, NULL, &e) &&
          strstr(e.msg, "row 2, column 1: not a finite"));
    e = (ses_err){ 0 };
    CHECK(!ses_logreg_fit(&m, v, same, NULL, 2, 1, 2, NULL, &e) && strstr(e.msg, "have the same class"));
    e = (ses_err){ 0 };
    CHECK(!ses_logreg_fit(&m, v, out, NULL, 2, 1, 2, NULL, &e) && strstr(e.msg, "row 2: label 2 of 2"));
    e = (ses_err){ 0 };
    CHECK(!ses_logreg_fit(&m, v, l, NULL, 6, 1, 3, &(ses_logreg_options){ .c = -1 }, &e) &&
          strstr(e.msg, "C is -1"));
    ses_logreg_free(&m);
    ses_logreg_free(&one);
    ses_logreg_free(&two);
}

/* Rosenbrock's valley: hard for plain gradient descent. */
static double valley(void *ctx, const double *p, double *g)
{
    (void)ctx;
    double a = 1 - p[0], b = p[1] - p[0] * p[0];
    g[0] = -2 * a - 400 * p[0] * b;
    g[1] = 200 * b;
    return a * a + 100 * b * b;
}

static void least_value(void)
{
    double p[2] = { -1.2, 1 };
    ses_lbfgs_result r;
    ses_err e = { 0 };
    CHECK(ses_lbfgs_minimize(p, 2, &(ses_lbfgs_problem){ .value = valley }, 1e-9, 200, &r, &e) &&
          r.converged && r.iterations < 60);
    CHECK(fabs(p[0] - 1) < 1e-8 && fabs(p[1] - 1) < 1e-8);
    p[0] = NAN;
    CHECK(!ses_lbfgs_minimize(p, 2, &(ses_lbfgs_problem){ .value = valley }, 1e-9, 200, &r, &e) &&
          strstr(e.msg, "not a finite"));
}

/* ---- matrices ---- */

static bool npy(const char *header, const void *data, size_t n, ses_matrix *m, ses_err *e)
{
    unsigned char file[512] = "\x93NUMPY\1";
    size_t len = strlen(header);
    file[8] = (unsigned char)len;
    memcpy(file + 10, header, len);
    memcpy(file + 10 + len, data, n);
    *e = (ses_err){ 0 };
    *m = (ses_matrix){ 0 };
    return ses_matrix_from_npy(m, file, 10 + len + n, e);
}

static void npy_files(void)
{
    ses_matrix m;
    ses_err e;
    const float f[] = { 1, 2.5f, -3, 4 };
    const double d[] = { 1, 2.5 };
    const int64_t i[] = { 7, -1 };
    const uint16_t h[] = { 0x3C00, 0xC100 };
    CHECK(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n", f, 16, &m, &e));
    CHECK(m.rows == 2 && m.cols == 2 && !memcmp(m.x, f, 16));
    ses_matrix_free(&m);
    CHECK(npy("{'shape': (2,), 'descr': '<f8', 'fortran_order': False}", d, 16, &m, &e) && m.rows == 2 &&
          m.cols == 1 && m.x[1] == 2.5f);
    ses_matrix_free(&m);
    CHECK(npy("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", i, 16, &m, &e) && m.x[1] == -1);
    ses_matrix_free(&m);
    CHECK(npy("{'descr': '<f2', 'fortran_order': False, 'shape': (2,), }", h, 4, &m, &e) && m.x[0] == 1 &&
          m.x[1] == -2.5f);
    ses_matrix_free(&m);
    CHECK(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }", "\1\xff", 2, &m, &e) &&
          m.x[1] == 255);
    ses_matrix_free(&m);
    static const char *const bad[][2] = {
        { "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", "Fortran order" },
        { "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 2), }", "little-endian" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2, 1), }", "one or two axes" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }",
          "16 bytes of data, expected 3 x 2 elements of 4 bytes" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 2), }", "axes" },
        { "{'descr': '<c8', 'fortran_order': False, 'shape': (2,), }", "unsupported dtype" },
        { "{'descr': '<f4', 'fortran_order': False, }", "is missing" },
        { "{'descr': [('a', '<f4')], }", "unsupported .npy header" },
        { "", "no .npy header" },
    };
    for (size_t k = 0; k < SES_LEN(bad); k++)
        CHECK_MSG(!npy(bad[k][0], f, 16, &m, &e) && strstr(e.msg, bad[k][1]), "\"%s\" lacks \"%s\"", e.msg,
                  bad[k][1]);
    const float odd[] = { 1, INFINITY };
    CHECK(!npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }", odd, 8, &m, &e) &&
          strstr(e.msg, "row 1, column 2: not a finite number"));
    CHECK(!ses_matrix_from_npy(&m, "\x93NUMPY\1\0\xff\xff ab", 13, &e) && e.code);
}

static void table_files(void)
{
    char path[] = "/tmp/sesame-matrix-XXXXXX";
    int fd = mkstemp(path);
    const char *text = "1\t-2.5\n3e1\t4\n";
    ses_matrix m;
    ses_err e = { 0 };
    if (!CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text))) return;
    CHECK(ses_matrix_read(&m, path, &(ses_records_options){ .no_header = true }, &e) && m.rows == 2 &&
          m.cols == 2 && m.x[1] == -2.5f && m.x[2] == 30);
    ses_matrix_free(&m);
    CHECK(write(fd, "5\tx\n", 4) == 4);
    CHECK(!ses_matrix_read(&m, path, &(ses_records_options){ .no_header = true }, &e) && !m.x);
    CHECK_MSG(strstr(e.msg, "line 3, field 2: \"x\" is not a finite number"), "%s", e.msg);
    close(fd);
    unlink(path);
}

int main(void)
{
    against_reference();
    on_devices();
    on_threads();
    rare_class();
    predictions();
    least_value();
    npy_files();
    table_files();
    return check_report();
}
