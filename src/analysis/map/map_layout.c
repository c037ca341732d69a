/* Layouts: PCA to SES_MAP_COLUMNS columns, neighbours, then the method. */
#include "analysis/map/map_layout.h"

#include "base/alloc.h"
#include "math/projection/pca.h"
#include "math/projection/umap.h"

#include <math.h>

enum { MOST_POINTS = 250000, FEWEST = 4 };
static const double most_square = 1e36; /* squared lengths must not overflow in f32 */

bool ses_map_layout_check(const ses_map_settings *s, int64_t n, int64_t width, ses_err *e)
{
    const char *name = s->method == SES_MAP_TSNE ? "t-SNE" : "UMAP";
    if (s->method == SES_MAP_PCA) return true;
    if (n < FEWEST)
        return ses_fail(e, SES_EARG, "%lld point%s: %s needs at least %d; use --method pca", (long long)n,
                        n == 1 ? "" : "s", name, FEWEST);
    if (s->method == SES_MAP_TSNE && s->perplexity > 0 && 3 * s->perplexity > (double)(n - 1))
        return ses_fail(e, SES_EARG, "--perplexity %g needs %.0f points, the input has %lld; use at most %g",
                        s->perplexity, ceil(3 * s->perplexity) + 1, (long long)n,
                        floor((double)(n - 1) / 3 * 100) / 100);
    if (n <= MOST_POINTS) return true;
    /* 3e-9 s per pair of points for exact neighbours, 4e-4 s per point for the descent, on one core */
    double points = (double)n, hours = (points * points * 3e-9 + points * 4e-4) / 3600;
    double gigabytes = points * (90 * 24 + 4 * (double)width + 400) / 1e9;
    return ses_fail(
        e, SES_EARG,
        "%lld points: %s takes about %.0f hours of CPU time and %.0f GB of memory; the limit is %d "
        "points: take a sample by --points, or use --method pca",
        (long long)n, name, hours, gigabytes, MOST_POINTS);
}

/* Checks the numbers and subtracts the mean, which improves the precision of distances. */
static bool centre(ses_real *x, int64_t n, int64_t width, ses_err *e)
{
    double *mean = ses_alloc_array((size_t)width, sizeof *mean, e);
    if (!mean) return false;
    for (int64_t i = 0; i < n; i++) {
        double square = 0;
        for (int64_t j = 0; j < width; j++) {
            double v = (double)x[i * width + j];
            square += v * v;
            mean[j] += v / (double)n;
        }
        if (square < most_square) continue;
        ses_free(mean);
        return ses_fail(e, SES_EARG, "row %lld of the vectors: %s", (long long)i + 1,
                        isfinite(square) ? "numbers too large" : "not a finite number");
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < width; j++) x[i * width + j] = (ses_real)((double)x[i * width + j] - mean[j]);
    ses_free(mean);
    return true;
}

static bool run_tsne(ses_map_layout *l, const ses_math *m, const ses_real *z, int64_t n, int64_t cols,
                     const ses_map_settings *s, ses_err *e)
{
    ses_neighbours nb = { 0 };
    ses_affinities a = { 0 };
    l->perplexity = s->perplexity > 0 ? s->perplexity : fmin(30, (double)(n - 1) / 3);
    if (l->perplexity < 1) l->perplexity = 1;
    l->repulsion = ses_tsne_method_name(SES_TSNE_AUTO, n);
    ses_tsne_options o = { .late = s->iterations };
    ses_tsne_start(z, n, cols, l->x, l->y);
    bool ok = ses_neighbours_find(&nb, m, z, n, cols, ses_tsne_neighbours(n, l->perplexity), NULL, 0, e) &&
              ses_affinities_make(&a, m, &nb, l->perplexity, e) &&
              ses_tsne_run(m, &a, &o, l->x, l->y, &l->kl, e);
    ses_affinities_free(&a);
    ses_neighbours_free(&nb);
    return ok;
}

static bool run_umap(ses_map_layout *l, const ses_math *m, const ses_real *z, int64_t n, int64_t cols,
                     const ses_map_settings *s, ses_err *e)
{
    ses_neighbours nb = { 0 };
    int64_t k = s->neighbours > 0 ? s->neighbours - 1 : 14;
    ses_umap_options o = { .min_dist = s->min_dist, .epochs = s->iterations, .seed = s->seed };
    double largest = 0;
    ses_tsne_start(z, n, cols, l->x, l->y);
    for (int64_t i = 0; i < n; i++) largest = fmax(largest, fmax(fabs(l->x[i]), fabs(l->y[i])));
    for (int64_t i = 0; largest > 0 && i < n; i++) l->x[i] *= 10 / largest, l->y[i] *= 10 / largest;
    bool ok = ses_neighbours_find(&nb, m, z, n, cols, k < n ? k : n - 1, NULL, 0, e) &&
              ses_umap_run(m, &nb, &o, l->x, l->y, e);
    ses_neighbours_free(&nb);
    return ok;
}

static bool lay_out(ses_map_layout *l, const ses_math *m, const ses_real *x, int64_t n, int64_t width,
                    const ses_map_settings *s, ses_err *e)
{
    int64_t want = s->method == SES_MAP_PCA ? 2 : SES_MAP_COLUMNS, cols = width < want ? width : want;
    ses_real *z = ses_alloc_array((size_t)n, (size_t)cols * sizeof *z, e);
    ses_pca p = { 0 };
    bool ok = z && ses_pca_fit(&p, m, x, n, width, cols, e) && ses_pca_project(&p, m, x, n, z, e);
    if (ok && s->method == SES_MAP_PCA) {
        double along = p.variance[0] + (cols > 1 ? p.variance[1] : 0);
        l->explained = p.all_variance > 0 ? along / p.all_variance : 1;
        for (int64_t i = 0; i < n; i++) {
            l->x[i] = (double)z[i * cols];
            l->y[i] = cols > 1 ? (double)z[i * cols + 1] : 0;
        }
    } else if (ok) {
        ok = (s->method == SES_MAP_TSNE ? run_tsne : run_umap)(l, m, z, n, cols, s, e);
    }
    ses_pca_free(&p);
    ses_free(z);
    return ok;
}

bool ses_map_layout_make(ses_map_layout *l, const ses_math *m, ses_real *x, int64_t n, int64_t width,
                         const ses_map_settings *s, ses_err *e)
{
    l->kl = l->explained = NAN;
    if (!ses_map_layout_check(s, n, width, e)) return false;
    l->x = ses_alloc_array((size_t)n, 2 * sizeof *l->x, e);
    if (!l->x) return false;
    l->y = l->x + n;
    bool ok = centre(x, n, width, e) && lay_out(l, m, x, n, width, s, e) &&
              ses_map_quality_measure(&l->quality, m, x, n, width, l->x, l->y, s->seed, e);
    if (!ok) ses_map_layout_free(l);
    return ok;
}

void ses_map_layout_align(ses_map_layout *l, const ses_map_layout *to, int64_t n)
{
    double ax = 0, ay = 0, bx = 0, by = 0, xx = 0, xy = 0, yx = 0, yy = 0;
    for (int64_t i = 0; i < n; i++) ax += l->x[i], ay += l->y[i], bx += to->x[i], by += to->y[i];
    ax /= (double)n, ay /= (double)n, bx /= (double)n, by /= (double)n;
    for (int64_t i = 0; i < n; i++) {
        double u = l->x[i] - ax, v = l->y[i] - ay, p = to->x[i] - bx, q = to->y[i] - by;
        xx += u * p, xy += u * q, yx += v * p, yy += v * q;
    }
    /* The best rotation, and the best one after exchanging the sign of y. */
    double turn = hypot(xx + yy, xy - yx), flip = hypot(xx - yy, xy + yx), sign = flip > turn ? -1 : 1;
    double c = xx + sign * yy, s = xy - sign * yx, r = hypot(c, s);
    if (r == 0) return;
    for (int64_t i = 0; i < n; i++) {
        double u = l->x[i] - ax, v = sign * (l->y[i] - ay);
        l->x[i] = (c * u - s * v) / r, l->y[i] = (s * u + c * v) / r;
    }
}

void ses_map_layout_free(ses_map_layout *l)
{
    ses_free(l->x);
    l->x = l->y = NULL;
}
