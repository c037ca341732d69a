/* Reference int8 rounding of floats; gemm_i8_ref.c has the same rounding for int8 products. */
#include "kernel/chunking.h"

#include <math.h>

typedef struct fake_args {
    ses_real *y;
    const ses_real *a;
    int64_t count, size; /* vectors, and their numbers */
    int64_t next, step;  /* from a vector to the next, from a number to the next */
} fake_args;

static void fake_vectors(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const fake_args *f = ctx;
    ses_range r = ses_chunk(f->count, ses_chunk_rows(f->size), chunk);
    for (int64_t v = r.begin; v < r.end; v++) {
        const ses_real *a = f->a + v * f->next;
        ses_real *y = f->y + v * f->next, max = 0, nonfinite = 0; /* NaN if a number is not finite */
        for (int64_t i = 0; i < f->size; i++) {
            max = (ses_real)fmax(max, fabs(a[i * f->step]));
            nonfinite += a[i * f->step] - a[i * f->step];
        }
        ses_real by = 127 / max, scale = max / 127 + nonfinite;
        bool rounds = isfinite(max) && isfinite(by);
        for (int64_t i = 0; i < f->size; i++)
            y[i * f->step] = (rounds ? (ses_real)rint(a[i * f->step] * by) : 0) * scale;
    }
}

void ses_k_fake_quantize_ref(ses_exec *x, ses_real *y, const ses_real *a, int64_t rows, int64_t cols,
                             bool by_col)
{
    fake_args f = { y, a, rows, cols, cols, 1 };
    if (by_col) f = (fake_args){ y, a, cols, rows, 1, cols };
    ses_parallel_for(x->pool, ses_chunks(f.count, ses_chunk_rows(f.size)), fake_vectors, &f);
}
