/* The computations of `sesame map` against scikit-learn and openTSNE (fixtures/map.f64, made by map.py),
 * approximations against plain sums, and equal bits on any number of threads. */
#include "analysis/map/map_layout.h"
#include "base/alloc.h"
#include "check.h"
#include "math/eigen.h"
#include "math/fft.h"
#include "math/projection/map_quality.h"
#include "math/projection/pca.h"
#include "math/projection/tsne.h"
#include "math/projection/umap.h"

#include <math.h>

enum { MOST = 12000 };

static uint64_t state;
static int below(int n)
{
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (int)((z ^ z >> 31) % (uint64_t)n);
}

static ses_real x[MOST * 8], y[MOST * 8];
static double px[MOST], py[MOST], qx[MOST], qy[MOST], want[4000], gx[MOST], gy[MOST];
static size_t have, at;

static void spread_points(uint64_t seed, int n, int width, int groups, double apart)
{
    state = seed;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < width; k++)
            x[i * width + k] = (ses_real)((below(2001) - 1000) / 500.0 +
                                          (i % groups == k % groups ? apart : 0) * (double)(k + 1) / width);
}

static void points(uint64_t seed, int n, int width, int groups) { spread_points(seed, n, width, groups, 4); }

static double worst(const double *got, int n) /* against the next n numbers of the fixture */
{
    double most = 0;
    for (int i = 0; i < n && at < have; i++, at++) most = fmax(most, fabs(got[i] - want[at]));
    return most;
}

static ses_affinities affinities(const ses_math *m, int n, int width, int k, double perplexity)
{
    ses_err e = { 0 };
    ses_neighbours nb = { 0 };
    ses_affinities a = { 0 };
    CHECK_MSG(ses_neighbours_find(&nb, m, x, n, width, k, NULL, 0, &e), "%s", e.msg);
    CHECK_MSG(ses_affinities_make(&a, m, &nb, perplexity, &e), "%s", e.msg);
    ses_neighbours_free(&nb);
    return a;
}

static void against_references(const ses_math *m)
{
    FILE *f = fopen("tests/fixtures/map.f64", "rb");
    ses_err e = { 0 };
    if (!CHECK(f)) return;
    have = fread(want, sizeof *want, SES_LEN(want), f);
    fclose(f);
    points(5, 40, 8, 3);
    ses_pca p;
    CHECK_MSG(ses_pca_fit(&p, m, x, 40, 8, 3, &e), "%s", e.msg);
    CHECK(worst(p.component, 24) < 1e-4 && worst(p.variance, 3) < 1e-4);
    CHECK(ses_pca_project(&p, m, x, 40, y, &e));
    for (int i = 0; i < 120; i++) gx[i] = (double)y[i];
    CHECK(worst(gx, 120) < 1e-4);
    for (int i = 0; i < 40; i++) px[i] = (double)y[3 * i], py[i] = (double)y[3 * i + 1];
    ses_map_quality q;
    CHECK(ses_map_quality_measure(&q, m, x, 40, 8, px, py, 1, &e) && q.neighbours == 10 && q.queries == 40);
    CHECK(worst(&q.trustworthiness, 1) < 1e-9);
    ses_pca_free(&p);
    ses_affinities a = affinities(m, 40, 8, 15, 5);
    static double dense[40 * 40];
    for (int i = 0; i < 40; i++)
        for (int64_t j = a.row[i]; j < a.row[i + 1]; j++) dense[40 * i + a.col[j]] = (double)a.value[j];
    double most = worst(dense, 1600);
    CHECK_MSG(most < 1e-6, "largest difference of an affinity: %g", most);
    ses_affinities_free(&a);
}

static void divergence(const ses_math *m)
{
    ses_err e = { 0 };
    double kl = 0;
    points(6, 400, 8, 5);
    ses_pca p;
    CHECK(ses_pca_fit(&p, m, x, 400, 8, 2, &e) && ses_pca_project(&p, m, x, 400, y, &e));
    ses_tsne_start(y, 400, 2, px, py);
    ses_affinities a = affinities(m, 400, 8, 90, 30);
    CHECK(ses_tsne_run(m, &a, NULL, px, py, &kl, &e));
    CHECK_MSG(at < have && kl < 1.02 * want[at], "divergence %g, openTSNE's is %g", kl, want[at]);
    at++;
    ses_affinities_free(&a);
    ses_pca_free(&p);
}

/* Few points: the optimum of scikit-learn's exact method, whose probabilities have all pairs. */
static void optimum(const ses_math *m)
{
    static const struct {
        uint64_t seed;
        int n, groups;
        double apart;
    } set[] = { { 7, 121, 4, 20 },  { 7, 121, 3, 4 },   { 9, 400, 3, 4 },  { 10, 121, 5, 30 },
                { 20, 121, 6, 14 }, { 23, 121, 3, 40 }, { 25, 121, 7, 25 } };
    for (size_t i = 0; i < SES_LEN(set); i++, at++) {
        ses_err e = { 0 };
        ses_map_layout l = { 0 };
        spread_points(set[i].seed, set[i].n, 8, set[i].groups, set[i].apart);
        ses_map_settings s = { .method = SES_MAP_TSNE };
        CHECK_MSG(ses_map_layout_make(&l, m, x, set[i].n, 8, &s, &e), "%s", e.msg);
        CHECK_MSG(at < have && l.kl < 1.02 * want[at] && l.kl > 0.8 * want[at],
                  "%d points: divergence %g, scikit-learn's is %g", set[i].n, l.kl, want[at]);
        ses_map_layout_free(&l);
    }
}

/* The plain sums over all pairs. */
static double plain_gradient(const ses_affinities *a, int n, double f)
{
    double z = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) z += i == j ? 0 : 1 / (1 + pow(px[i] - px[j], 2) + pow(py[i] - py[j], 2));
    for (int i = 0; i < n; i++) {
        qx[i] = qy[i] = 0;
        int64_t k = a->row[i];
        for (int j = 0; j < n; j++) {
            double q = 1 / (1 + pow(px[i] - px[j], 2) + pow(py[i] - py[j], 2)), p = 0;
            if (k < a->row[i + 1] && a->col[k] == j) p = (double)a->value[k++];
            qx[i] += (f * p - q / z) * q * (px[i] - px[j]), qy[i] += (f * p - q / z) * q * (py[i] - py[j]);
        }
    }
    return z;
}

static void gradient(const ses_math *m, int n, double spread)
{
    static const struct {
        ses_tsne_method method;
        double tolerance, z_tolerance;
    } kind[] = { { SES_TSNE_EXACT, 1e-9, 1e-9 },
                 { SES_TSNE_TREE, 0.02, 0.02 },
                 { SES_TSNE_GRID, 0.02, 0.02 } };
    points(7, n, 8, 4);
    ses_affinities a = affinities(m, n, 8, 30, 10);
    for (int i = 0; i < n; i++) px[i] = spread * (below(2001) - 1000), py[i] = spread * (below(2001) - 1000);
    double z = plain_gradient(&a, n, 12), size = 0, got;
    for (int i = 0; i < n; i++) size += qx[i] * qx[i] + qy[i] * qy[i];
    for (size_t k = 0; k < SES_LEN(kind); k++) {
        ses_err e = { 0 };
        double miss = 0;
        CHECK_MSG(ses_tsne_gradient(m, &a, kind[k].method, 12, px, py, gx, gy, &got, &e), "%s", e.msg);
        for (int i = 0; i < n; i++) miss += pow(gx[i] - qx[i], 2) + pow(gy[i] - qy[i], 2);
        CHECK_MSG(sqrt(miss / size) < kind[k].tolerance && fabs(got / z - 1) < kind[k].z_tolerance,
                  "%s, %d points: error of the gradient %g, of z %g", ses_tsne_method_name(kind[k].method, n),
                  n, sqrt(miss / size), got / z - 1);
    }
    ses_affinities_free(&a);
}

static void transforms(const ses_math *m)
{
    static const int size[] = { 4, 12, 20, 60, 48, 100, 1, 2, 3, 5, 90 };
    for (size_t s = 0; s < SES_LEN(size); s++) {
        ses_err e = { 0 };
        ses_fft_plan plan;
        int n = size[s];
        CHECK(ses_fft_plan_make(&plan, n, &e));
        float *v = ses_alloc_array((size_t)n * 4 * SES_FFT_LANES, sizeof *v, &e), *re = v,
              *im = re + n * SES_FFT_LANES, *wr = im + n * SES_FFT_LANES, *wi = wr + n * SES_FFT_LANES;
        double a[100], b[100], most = 0;
        for (int j = 0; j < n; j++) {
            a[j] = (float)(below(2001) - 1000) / 1000, b[j] = (float)(below(2001) - 1000) / 1000;
            re[j * SES_FFT_LANES + 3] = (float)a[j], im[j * SES_FFT_LANES + 3] = (float)b[j];
        }
        bool moved = m->k.fft_lanes(&plan, re, im, wr, wi);
        for (int k = 0; k < n; k++) {
            double r = 0, i = 0;
            for (int j = 0; j < n; j++) {
                double t = -2 * 3.14159265358979323846 * j * k / n;
                r += a[j] * cos(t) - b[j] * sin(t), i += a[j] * sin(t) + b[j] * cos(t);
            }
            most = fmax(most, fabs(r - (double)(moved ? wr : re)[k * SES_FFT_LANES + 3]));
            most = fmax(most, fabs(i - (double)(moved ? wi : im)[k * SES_FFT_LANES + 3]));
        }
        CHECK_MSG(most < 1e-5 * n, "transform of length %d: error %g", n, most);
        ses_free(v);
        ses_free((void *)(uintptr_t)plan.turn);
    }
    CHECK(ses_fft_good_size(1) == 4 && ses_fft_good_size(97) == 100 && ses_fft_good_size(121) == 128);
}

static void neighbours(const ses_math *m)
{
    enum { N = 700, K = 12 };
    ses_err e = { 0 };
    ses_neighbours nb;
    points(8, N, 5, 7);
    for (int k = 0; k < 5; k++) x[5 * 9 + k] = x[5 * 400 + k]; /* a pair of identical points */
    CHECK(ses_neighbours_find(&nb, m, x, N, 5, K, NULL, 0, &e));
    int wrong = 0;
    for (int i = 0; i < N; i++)
        for (int r = 0; r < K; r++) {
            int nearer = 0, self = nb.index[i * K + r] == i;
            double d = nb.distance[i * K + r];
            for (int j = 0; j < N; j++) {
                double s = 0;
                for (int k = 0; k < 5; k++) s += pow((double)x[5 * i + k] - (double)x[5 * j + k], 2);
                nearer += j != i && sqrt(s) < d * (1 - 1e-12);
            }
            wrong += self || nearer > r;
        }
    CHECK_MSG(wrong == 0, "%d wrong neighbours", wrong);
    CHECK(nb.index[9 * K] == 400 && nb.distance[9 * K] == 0);
    ses_neighbours_free(&nb);
    CHECK(!ses_neighbours_find(&nb, m, x, 5, 5, 5, NULL, 0, &e));
}

static void eigenvalues(const ses_math *m)
{
    enum { N = 40 };
    static double a[N * N], b[N * N], value[N], vector[N * N];
    ses_err e = { 0 };
    for (int i = 0; i < N; i++)
        for (int j = 0; j <= i; j++) a[i * N + j] = a[j * N + i] = (below(2001) - 1000) / 300.0;
    memcpy(b, a, sizeof a);
    CHECK(ses_eigen_symmetric(&m->k, b, N, N, value, vector, &e));
    double most = 0, trace = 0;
    for (int v = 0; v < N; v++)
        for (int i = 0; i < N; i++) {
            double s = -value[v] * vector[v * N + i], dot = -(double)(i == v);
            for (int j = 0; j < N; j++)
                s += a[i * N + j] * vector[v * N + j], dot += vector[v * N + j] * vector[i * N + j];
            most = fmax(most, fmax(fabs(s), fabs(dot)));
        }
    for (int i = 0; i < N; i++) trace += a[i * N + i] - value[i];
    CHECK_MSG(most < 1e-12 * N * 10 && fabs(trace) < 1e-10, "residual %g, trace %g", most, trace);
    memcpy(b, a, sizeof a); /* a few by inverse iteration */
    most = 0;
    static double few[N * N], few_value[N];
    CHECK(ses_eigen_symmetric(&m->k, b, N, 10, few_value, few, &e));
    for (int v = 0; v < 10; v++)
        for (int i = 0; i < N; i++) {
            double s = -few_value[v] * few[v * N + i], dot = -(double)(i == v);
            for (int j = 0; j < N; j++)
                s += a[i * N + j] * few[v * N + j], dot += i < 10 ? few[v * N + j] * few[i * N + j] : 0;
            most = fmax(most, fmax(fabs(s), i < 10 ? fabs(dot) : 0));
        }
    CHECK_MSG(most < 1e-10 && fabs(few_value[9] - value[9]) < 1e-10, "residual of a few vectors %g", most);
    memset(b, 0, sizeof b); /* equal eigenvalues: two of 2, the others 1 */
    for (int i = 0; i < N; i++) b[i * N + i] = i == 5 || i == 30 ? 2 : 1;
    CHECK(ses_eigen_symmetric(&m->k, b, N, 4, few_value, few, &e) && fabs(few_value[1] - 2) < 1e-12);
    CHECK(fabs(few[5] * few[5] + few[30] * few[30] - 1) < 1e-12 &&
          fabs(few[5 + N] * few[5] + few[30 + N] * few[30]) < 1e-12);
    memset(b, 0, sizeof b); /* all eigenvalues equal */
    CHECK(ses_eigen_symmetric(&m->k, b, N, 3, value, vector, &e) && value[0] == 0);
    b[3] = NAN;
    CHECK(!ses_eigen_symmetric(&m->k, b, N, 3, value, vector, &e) && strstr(e.msg, "row 1"));
}

/* Every method on one and on three threads. */
static void same_bits(void)
{
    static const struct {
        int n;
        ses_tsne_method method;
    } kind[] = { { 500, SES_TSNE_EXACT }, { 3000, SES_TSNE_TREE }, { 12000, SES_TSNE_GRID } };
    for (size_t k = 0; k < SES_LEN(kind); k++) {
        double kl[2];
        int n = kind[k].n;
        points(11, n, 8, 5);
        for (int run = 0; run < 2; run++) {
            ses_err e = { 0 };
            ses_math m;
            ses_pca p;
            ses_tsne_options o = { .method = kind[k].method, .early = 5, .late = 5 };
            double *to_x = run ? qx : px, *to_y = run ? qy : py;
            CHECK(ses_math_open(&m, run ? 3 : 1, &e));
            CHECK(ses_pca_fit(&p, &m, x, n, 8, 2, &e) && ses_pca_project(&p, &m, x, n, y, &e));
            ses_tsne_start(y, n, 2, to_x, to_y);
            ses_affinities a = affinities(&m, n, 8, 30, 10);
            CHECK(ses_tsne_run(&m, &a, &o, to_x, to_y, &kl[run], &e));
            ses_affinities_free(&a);
            ses_pca_free(&p);
            ses_math_close(&m);
        }
        CHECK(kl[0] == kl[1] && !memcmp(px, qx, (size_t)n * sizeof *px) &&
              !memcmp(py, qy, (size_t)n * sizeof *py));
    }
}

static void umap(const ses_math *m)
{
    enum { N = 300 };
    double a, b, before = 0;
    ses_umap_curve(0.1, &a, &b); /* umap-learn: find_ab_params(1.0, 0.1) */
    CHECK_MSG(fabs(a - 1.5769434604) < 1e-3 && fabs(b - 0.8950608781) < 1e-3, "a %.7f b %.7f", a, b);
    ses_err e = { 0 };
    ses_neighbours nb;
    ses_map_quality q;
    points(12, N, 8, 5);
    CHECK(ses_neighbours_find(&nb, m, x, N, 8, 14, NULL, 0, &e));
    for (int run = 0; run < 2; run++) {
        for (int i = 0; i < N; i++) px[i] = 10 * sin(i), py[i] = 10 * cos(3 * i);
        CHECK(ses_umap_run(m, &nb, &(ses_umap_options){ .seed = 3 }, px, py, &e));
        CHECK(ses_map_quality_measure(&q, m, x, N, 8, px, py, 1, &e));
        CHECK_MSG(q.trustworthiness > 0.75 && (!run || px[7] == before), "trustworthiness %g",
                  q.trustworthiness);
        before = px[7];
    }
    ses_neighbours_free(&nb);
}

static void bad_input(const ses_math *m)
{
    ses_err e = { 0 };
    ses_pca p;
    points(13, 100, 4, 2);
    x[4 * 41 + 2] = (ses_real)NAN;
    CHECK(!ses_pca_fit(&p, m, x, 100, 4, 2, &e));
    CHECK_STR(e.msg, "row 42, column 3: not a finite number");
    memset(x, 0, sizeof x); /* identical points */
    double kl = 1;
    ses_affinities a = affinities(m, 50, 4, 15, 5);
    ses_tsne_start(x, 50, 4, px, py);
    CHECK(ses_tsne_run(m, &a, NULL, px, py, &kl, &e) && isfinite(kl) && isfinite(px[0]));
    ses_tsne_options o = { .method = SES_TSNE_GRID, .early = 3, .late = 3 };
    CHECK(ses_tsne_run(m, &a, &o, px, py, &kl, &e) && isfinite(kl));
    o.method = SES_TSNE_TREE;
    CHECK(ses_tsne_run(m, &a, &o, px, py, &kl, &e) && isfinite(kl));
    ses_affinities_free(&a);
}

int main(void)
{
    ses_err e = { 0 };
    ses_math m;
    if (!CHECK(ses_math_open(&m, 2, &e))) return check_report();
    against_references(&m);
    divergence(&m);
    optimum(&m);
    gradient(&m, 100, 0.01);
    gradient(&m, 900, 0.03);
    gradient(&m, 700, 1e-6);
    transforms(&m);
    neighbours(&m);
    eigenvalues(&m);
    same_bits();
    umap(&m);
    bad_input(&m);
    ses_isa isa[] = { SES_ISA_REF, SES_ISA_REF + 1 };
    for (size_t i = 0; i < SES_LEN(isa); i++) { /* other levels of the kernels */
        m.k = ses_kernels_cpu(isa[i]);
        gradient(&m, 500, 0.02);
        transforms(&m);
        eigenvalues(&m);
    }
    ses_math_close(&m);
    return check_report();
}
