/* Symmetric eigenproblem: Householder reduction to a tridiagonal matrix, then implicit QL iterations (Golub
 * and Van Loan, Matrix Computations, chapter 8). */
#include "eigen.h"

#include "base/alloc.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MAX_SWEEPS = 60 };

typedef struct tridiagonal {
    const ses_kernels *k;
    int64_t n;
    double *a;          /* [n, n]; row i keeps the reflection i in columns 0 .. i - 1 */
    double *diag, *off; /* off[i] couples i and i - 1 */
    double *scale;      /* 2 / |v|^2 of reflection i; 0: none */
    double *p;          /* [n] scratch */
    double *z;          /* [n, n] rows become the eigenvectors of the tridiagonal matrix */
} tridiagonal;

/* Reflection i makes row i zero left of column i - 1; the leading block of size i is then transformed. */
static void reduce(tridiagonal *t)
{
    for (int64_t i = t->n - 1; i >= 1; i--) {
        double *v = t->a + i * t->n, norm2 = t->k->dot_double(v, v, i), last = v[i - 1];
        t->off[i] = last;
        t->scale[i] = 0;
        if (norm2 - last * last <= DBL_MIN) continue; /* already tridiagonal */
        double alpha = last > 0 ? -sqrt(norm2) : sqrt(norm2);
        t->off[i] = alpha;
        v[i - 1] = last - alpha;
        double scale = t->scale[i] = 1 / (norm2 - last * alpha), half;
        for (int64_t r = 0; r < i; r++) t->p[r] = scale * t->k->dot_double(t->a + r * t->n, v, i);
        half = 0.5 * scale * t->k->dot_double(t->p, v, i);
        for (int64_t r = 0; r < i; r++) t->p[r] -= half * v[r];
        for (int64_t r = 0; r < i; r++) t->k->rank2_double(t->a + r * t->n, v, t->p, v[r], t->p[r], i);
    }
    for (int64_t i = 0; i < t->n; i++) t->diag[i] = t->a[i * t->n + i];
}

/* One implicit QL sweep over rows first .. last with Wilkinson's shift; next[i] couples i and i + 1. */
static void sweep(tridiagonal *t, double *next, int64_t first, int64_t last, bool vectors)
{
    double *d = t->diag, g = (d[first + 1] - d[first]) / (2 * next[first]), s = 1, c = 1, p = 0;
    g = d[last] - d[first] + next[first] / (g + copysign(hypot(g, 1), g));
    for (int64_t i = last - 1; i >= first; i--) {
        double bulge = s * next[i], b = c * next[i], r = hypot(bulge, g);
        next[i + 1] = r;
        if (r == 0) { /* the matrix falls into two parts here */
            d[i + 1] -= p;
            next[last] = 0;
            return;
        }
        s = bulge / r, c = g / r;
        g = d[i + 1] - p;
        r = (d[i] - g) * s + 2 * c * b;
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
        if (vectors) t->k->rotate_double(t->z + i * t->n, t->z + (i + 1) * t->n, c, s, t->n);
    }
    d[first] -= p;
    next[first] = g;
    next[last] = 0;
}

/* Finds the eigenvalues; vectors: their eigenvectors in z too. */
static bool diagonalize(tridiagonal *t, bool vectors, ses_err *e)
{
    double *next = t->off; /* shifted by one: next[i] couples i and i + 1 */
    memmove(next, next + 1, (size_t)(t->n - 1) * sizeof *next);
    next[t->n - 1] = 0;
    for (int64_t i = 0; vectors && i < t->n; i++) t->z[i * t->n + i] = 1;
    for (int64_t first = 0; first < t->n; first++)
        for (int sweeps = 0;; sweeps++) {
            int64_t last = first;
            while (last + 1 < t->n &&
                   fabs(next[last]) > DBL_EPSILON * (fabs(t->diag[last]) + fabs(t->diag[last + 1])))
                last++;
            if (last == first) break;
            if (sweeps == MAX_SWEEPS)
                return ses_fail(e, SES_EARG, "no eigenvalue %lld after %d sweeps; expected finite numbers",
                                (long long)first + 1, MAX_SWEEPS);
            sweep(t, next, first, last, vectors);
        }
    return true;
}

/* v = H_1 ... H_(n-1) z: back to the coordinates of the given matrix. */
static void reflect_back(const tridiagonal *t, double *v)
{
    for (int64_t i = 1; i < t->n; i++) {
        if (t->scale[i] == 0) continue;
        const double *u = t->a + i * t->n;
        double f = t->scale[i] * t->k->dot_double(u, v, i);
        for (int64_t j = 0; j < i; j++) v[j] -= f * u[j];
    }
}

/* ---- a few eigenvectors by inverse iteration ---- */

/* The tridiagonal matrix minus an eigenvalue, as L U with row exchanges. */
typedef struct factors {
    double *pivot, *upper, *second, *lower; /* [n] each; second: the diagonal two above */
    bool *exchanged;
} factors;

static void factor(const factors *f, const double *diag, const double *next, int64_t n, double value,
                   double least)
{
    double a = diag[0] - value, b = n > 1 ? next[0] : 0;
    for (int64_t i = 0; i + 1 < n; i++) {
        double c = next[i], d = diag[i + 1] - value, up = i + 2 < n ? next[i + 1] : 0;
        f->exchanged[i] = fabs(c) > fabs(a);
        if (f->exchanged[i]) {
            f->pivot[i] = c, f->upper[i] = d, f->second[i] = up;
            f->lower[i] = a / c;
            a = b - f->lower[i] * d, b = -f->lower[i] * up;
        } else {
            f->pivot[i] = fabs(a) > least ? a : least;
            f->upper[i] = b, f->second[i] = 0;
            f->lower[i] = c / f->pivot[i];
            a = d - f->lower[i] * b, b = up;
        }
    }
    f->pivot[n - 1] = fabs(a) > least ? a : least;
    f->upper[n - 1] = f->second[n - 1] = 0;
}

static void solve(const factors *f, int64_t n, double *v)
{
    for (int64_t i = 0; i + 1 < n; i++) {
        double x = v[i], y = v[i + 1];
        v[i] = f->exchanged[i] ? y : x;
        v[i + 1] = f->exchanged[i] ? x - f->lower[i] * y : y - f->lower[i] * x;
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        double sum = v[i];
        if (i + 1 < n) sum -= f->upper[i] * v[i + 1];
        if (i + 2 < n) sum -= f->second[i] * v[i + 2];
        v[i] = sum / f->pivot[i];
    }
}

/* Makes v orthogonal to the rows of `before` and of length 1. */
static void orthonormalize(const tridiagonal *t, double *v, const double *before, int64_t rows)
{
    double largest = 0;
    for (int64_t i = 0; i < t->n; i++) largest = fmax(largest, fabs(v[i]));
    for (int64_t i = 0; largest > 0 && i < t->n; i++) v[i] /= largest; /* no overflow below */
    for (int pass = 0; pass < 2; pass++)
        for (int64_t r = 0; r < rows; r++) {
            double f = t->k->dot_double(v, before + r * t->n, t->n);
            for (int64_t i = 0; i < t->n; i++) v[i] -= f * before[r * t->n + i];
        }
    double length = sqrt(t->k->dot_double(v, v, t->n));
    for (int64_t i = 0; i < t->n; i++) v[i] /= length;
}

/* The tridiagonal matrix is in diag, next; its eigenvalues are in t->diag. */
static bool iterate_vectors(tridiagonal *t, const double *diag, const double *next, int64_t count,
                            double *value, double *vector, ses_err *e)
{
    size_t n = (size_t)t->n;
    double *block = ses_alloc_array(n, 4 * sizeof *block + sizeof(bool), e), norm = 0;
    if (!block) return false;
    factors f = { block, block + n, block + 2 * n, block + 3 * n, (bool *)(block + 4 * n) };
    for (int64_t i = 0; i < t->n; i++) norm = fmax(norm, fabs(diag[i]) + 2 * fabs(next[i]));
    for (int64_t c = 0; c < count; c++) {
        int64_t best = -1;
        for (int64_t i = 0; i < t->n; i++)
            if (t->p[i] == 0 && (best < 0 || t->diag[i] > t->diag[best])) best = i;
        t->p[best] = 1; /* taken */
        value[c] = t->diag[best];
        double *v = vector + c * t->n;
        ses_rng_key key = { 1, (uint32_t)c, 0x656967 };
        for (int64_t i = 0; i < t->n; i++) v[i] = (double)ses_rand_unit(key, (uint64_t)i) - 0.5;
        factor(&f, diag, next, t->n, value[c], DBL_EPSILON * norm + DBL_MIN);
        for (int step = 0; step < 4; step++) {
            if (norm > 0) solve(&f, t->n, v);
            orthonormalize(t, v, vector, c);
        }
    }
    ses_free(block);
    return true;
}

static void take_largest(tridiagonal *t, int64_t count, double *value, double *vector)
{
    for (int64_t c = 0; c < count; c++) {
        int64_t best = -1;
        for (int64_t i = 0; i < t->n; i++)
            if (t->p[i] == 0 && (best < 0 || t->diag[i] > t->diag[best])) best = i;
        t->p[best] = 1; /* taken */
        value[c] = t->diag[best];
        memcpy(vector + c * t->n, t->z + best * t->n, (size_t)t->n * sizeof *vector);
    }
}

/* Values and vectors of the reduced matrix: all by QL, or a few by inverse iteration. */
static bool find_pairs(tridiagonal *t, int64_t count, double *value, double *vector, ses_err *e)
{
    bool few = 3 * count <= t->n;
    size_t n = (size_t)t->n;
    double *saved = ses_alloc_array(n, 2 * sizeof *saved, e);
    if (!saved) return false;
    memcpy(saved, t->diag, n * sizeof *saved);
    memcpy(saved + n, t->off + 1, (n - 1) * sizeof *saved);
    bool ok = diagonalize(t, !few, e);
    memset(t->p, 0, n * sizeof *t->p);
    if (ok && few) ok = iterate_vectors(t, saved, saved + n, count, value, vector, e);
    if (ok && !few) take_largest(t, count, value, vector);
    ses_free(saved);
    for (int64_t c = 0; ok && c < count; c++) reflect_back(t, vector + c * t->n);
    return ok;
}

bool ses_eigen_symmetric(const ses_kernels *k, double *a, int64_t n, int64_t count, double *value,
                         double *vector, ses_err *e)
{
    if (n < 1 || count < 1 || count > n)
        return ses_fail(e, SES_EARG, "%lld eigenvalues of a matrix of size %lld", (long long)count,
                        (long long)n);
    for (int64_t i = 0; i < n * n; i++)
        if (!isfinite(a[i]))
            return ses_fail(e, SES_EARG, "row %lld of the matrix: not a finite number",
                            (long long)(i / n) + 1);
    double *block = ses_alloc_array((size_t)n, (4 + (size_t)n) * sizeof *block, e);
    if (!block) return false;
    tridiagonal t = { k, n, a, block, block + n, block + 2 * n, block + 3 * n, block + 4 * n };
    reduce(&t);
    bool ok = find_pairs(&t, count, value, vector, e);
    ses_free(block);
    return ok;
}
