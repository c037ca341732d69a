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
static void sweep(tridiagonal *t, double *next, int64_t first, int64_t last)
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
        t->k->rotate_double(t->z + i * t->n, t->z + (i + 1) * t->n, c, s, t->n);
    }
    d[first] -= p;
    next[first] = g;
    next[last] = 0;
}

static bool diagonalize(tridiagonal *t, ses_err *e)
{
    double *next = t->off; /* shifted by one: next[i] couples i and i + 1 */
    memmove(next, next + 1, (size_t)(t->n - 1) * sizeof *next);
    next[t->n - 1] = 0;
    for (int64_t i = 0; i < t->n; i++) t->z[i * t->n + i] = 1;
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
            sweep(t, next, first, last);
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

static void take_largest(tridiagonal *t, int64_t count, double *value, double *vector)
{
    for (int64_t c = 0; c < count; c++) {
        int64_t best = -1;
        for (int64_t i = 0; i < t->n; i++)
            if (t->p[i] == 0 && (best < 0 || t->diag[i] > t->diag[best])) best = i;
        t->p[best] = 1; /* taken */
        value[c] = t->diag[best];
        memcpy(vector + c * t->n, t->z + best * t->n, (size_t)t->n * sizeof *vector);
        reflect_back(t, vector + c * t->n);
    }
}

bool ses_eigen_symmetric(const ses_math *m, double *a, int64_t n, int64_t count, double *value,
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
    tridiagonal t = { &m->k, n, a, block, block + n, block + 2 * n, block + 3 * n, block + 4 * n };
    reduce(&t);
    bool ok = diagonalize(&t, e);
    memset(t.p, 0, (size_t)n * sizeof *t.p);
    if (ok) take_largest(&t, count, value, vector);
    ses_free(block);
    return ok;
}
