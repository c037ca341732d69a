/* SVD by the eigenvectors of the product of the matrix with its transpose, of the size of the shorter side.
 * The values are lengths: |w' u| of an eigenvector u. The square roots of the eigenvalues would lose half of
 * the digits. */
#include "svd.h"

#include "base/alloc.h"
#include "eigen.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 256, ROWS = 64 }; /* columns, rows that stay in the cache */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void transpose(double *to, const double *from, int64_t rows, int64_t cols)
{
    enum { TILE = 16 };
    for (int64_t i = 0; i < rows; i += TILE)
        for (int64_t j = 0; j < cols; j += TILE)
            for (int64_t r = i; r < least(i + TILE, rows); r++)
                for (int64_t c = j; c < least(j + TILE, cols); c++) to[c * rows + r] = from[r * cols + c];
}

/* g = w w' */
static void self_product(const ses_kernels *k, double *g, const double *w, int64_t rows, int64_t cols)
{
    memset(g, 0, (size_t)(rows * rows) * sizeof *g);
    for (int64_t at = 0; at < cols; at += BLOCK)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j <= i; j++)
                g[i * rows + j] +=
                    k->dot_double(w + i * cols + at, w + j * cols + at, least(BLOCK, cols - at));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < i; j++) g[j * rows + i] = g[i * rows + j];
}

/* y = a b' [m, n], with a [m, depth] and b [n, depth] */
static void product(const ses_kernels *k, double *y, const double *a, int64_t m, const double *b, int64_t n,
                    int64_t depth)
{
    for (int64_t at = 0; at < n; at += ROWS)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = at; j < least(at + ROWS, n); j++)
                y[i * n + j] = k->dot_double(a + i * depth, b + j * depth, depth);
}

/* y = u w [count, cols], with `turned` = w' [cols, rows]; divides each row by its length, the singular value.
 */
static void other_side(const ses_kernels *k, double *y, double *value, const double *u, const double *turned,
                       int64_t rows, int64_t cols, int64_t count)
{
    product(k, y, u, count, turned, cols, rows);
    for (int64_t i = 0; i < count; i++) {
        value[i] = sqrt(k->dot_double(y + i * cols, y + i * cols, cols));
        for (int64_t j = 0; value[i] > 0 && j < cols; j++) y[i * cols + j] /= value[i];
    }
}

bool ses_svd(const ses_kernels *k, const double *w, int64_t rows, int64_t cols, int64_t count, double *value,
             double *left, double *right, ses_err *e)
{
    bool wide = rows <= cols;
    int64_t n = wide ? rows : cols;
    double *turned = ses_alloc_array((size_t)rows * (size_t)cols, sizeof *turned, e),
           *g = turned ? ses_alloc_array((size_t)n * (size_t)n, sizeof *g, e) : NULL;
    bool ok = g != NULL;
    if (ok) {
        transpose(turned, w, rows, cols);
        self_product(k, g, wide ? w : turned, n, wide ? cols : rows);
        ok = ses_eigen_symmetric(k, g, n, count, value, wide ? left : right, e);
    }
    if (ok && wide) other_side(k, right, value, left, turned, rows, cols, count);
    if (ok && !wide) other_side(k, left, value, right, w, cols, rows, count);
    ses_free(turned), ses_free(g);
    return ok;
}

/* rows <= cols: projects w on the eigenvectors of w s w'. */
static bool weighted_wide(const ses_kernels *k, const double *w, const double *s, int64_t rows, int64_t cols,
                          int64_t count, double *energy, double *all, double *left, double *right, ses_err *e)
{
    double *ws = ses_alloc_array((size_t)rows * (size_t)cols, sizeof *ws, e),
           *g = ws ? ses_alloc_array((size_t)rows * (size_t)rows, sizeof *g, e) : NULL;
    bool ok = g != NULL;
    if (ok) {
        product(k, ws, w, rows, s, cols, cols);
        product(k, g, ws, rows, w, rows, cols);
        *all = 0;
        for (int64_t i = 0; i < rows; i++) *all += g[i * rows + i];
        ok = ses_eigen_symmetric(k, g, rows, count, energy, left, e);
        transpose(ws, w, rows, cols);
        if (ok) product(k, right, left, count, ws, cols, rows);
    }
    ses_free(ws), ses_free(g);
    return ok;
}

/* cols < rows: the SVD of w r with s = r r', times the inverse of r. r = q' d with the eigenvectors q [cols,
 * cols] of s and the roots d of its eigenvalues. */
static bool weighted_tall(const ses_kernels *k, const double *w, const double *s, int64_t rows, int64_t cols,
                          int64_t count, double *energy, double *all, double *left, double *right, ses_err *e)
{
    size_t n = (size_t)cols, c = (size_t)count;
    double *block = ses_alloc_array(n * (2 * n + 1 + c + (size_t)rows) + c, sizeof *block, e);
    if (!block) return false;
    double *q = block, *turned = q + n * n, *root = turned + n * n, *part = root + n, *wr = part + c * n,
           *value = wr + n * (size_t)rows;
    memcpy(turned, s, n * n * sizeof *turned);
    bool ok = ses_eigen_symmetric(k, turned, cols, cols, root, q, e);
    for (int64_t i = 0; ok && i < cols; i++) root[i] = sqrt(fmax(root[i], 1e-14 * root[0]));
    if (ok) product(k, wr, w, rows, q, cols, cols);
    for (int64_t i = 0; ok && i < rows * cols; i++) wr[i] *= root[i % cols];
    *all = ok ? k->dot_double(wr, wr, rows * cols) : 0;
    ok = ok && ses_svd(k, wr, rows, cols, count, value, left, part, e);
    for (int64_t i = 0; ok && i < count; i++) {
        energy[i] = value[i] * value[i];
        for (int64_t j = 0; j < cols; j++) part[i * cols + j] *= root[j] > 0 ? value[i] / root[j] : 0;
    }
    if (ok) {
        transpose(turned, q, cols, cols);
        product(k, right, part, count, turned, cols, cols);
    }
    ses_free(block);
    return ok;
}

bool ses_svd_weighted(const ses_kernels *k, const double *w, const double *s, int64_t rows, int64_t cols,
                      int64_t count, double *energy, double *all, double *left, double *right, ses_err *e)
{
    return (rows <= cols ? weighted_wide : weighted_tall)(k, w, s, rows, cols, count, energy, all, left,
                                                          right, e);
}
