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

/* y = u w [count, cols], with `turned` = w' [cols, rows]; divides each row by its length, the singular value.
 */
static void other_side(const ses_kernels *k, double *y, double *value, const double *u, const double *turned,
                       int64_t rows, int64_t cols, int64_t count)
{
    for (int64_t at = 0; at < cols; at += ROWS)
        for (int64_t i = 0; i < count; i++)
            for (int64_t j = at; j < least(at + ROWS, cols); j++)
                y[i * cols + j] = k->dot_double(u + i * rows, turned + j * rows, rows);
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
