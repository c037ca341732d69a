/* Reference matrix product: sums over k in double; with ses_exec.bf16, of operands rounded to bf16. */
#include "act_ref.h"
#include "base/half.h"
#include "kernel/chunking.h"

enum { COLS = 16 }; /* columns per chunk */

/* packed[j * k + p] = B(p, j) */
int64_t ses_k_gemm_pack_size_ref(int64_t n, int64_t k) { return n * k; }

void ses_k_gemm_pack_ref(ses_exec *x, void *packed, ses_dtype dtype, const ses_real *b, int64_t b_row,
                         int64_t b_col, int64_t n, int64_t k)
{
    (void)x;
    for (int64_t p = 0; p < k; p++)
        for (int64_t j = 0; j < n; j++) {
            ses_real v = b[p * b_row + j * b_col];
            if (dtype == SES_REAL)
                ((ses_real *)packed)[j * k + p] = v;
            else
                ((uint16_t *)packed)[j * k + p] = dtype == SES_F16 ? ses_f64_to_f16(v) : ses_f64_to_bf16(v);
        }
}

typedef struct job {
    ses_gemm g;
    bool round; /* operands to bf16 */
} job;

static double operand(double v, bool round) { return round ? ses_bf16_to_f32(ses_f64_to_bf16(v)) : v; }

/* B(p, j), from the packed copy if there is one. */
static double b_at(const job *c, int64_t p, int64_t j)
{
    const ses_gemm *g = &c->g;
    if (!g->packed) return operand(g->b[p * g->b_row + j * g->b_col], c->round);
    if (g->packed_dtype == SES_REAL) return ((const ses_real *)g->packed)[j * g->k + p];
    uint16_t h = ((const uint16_t *)g->packed)[j * g->k + p];
    return g->packed_dtype == SES_F16 ? ses_f16_to_f32(h) : ses_bf16_to_f32(h);
}

/* Epilogue of row i: C(i, j) for the columns in r, from the sums over k. */
static void store_row(const ses_gemm *g, int64_t i, ses_range r, const double *sum)
{
    for (int64_t j = r.begin; j < r.end; j++) {
        ses_real *c = g->c + i * g->ldc + j;
        double z = sum[j - r.begin] + (g->bias ? (double)g->bias[j] : 0);
        if (g->pre_act) g->pre_act[i * g->ldc + j] = (ses_real)z;
        *c = (ses_real)(g->accumulate ? *c + z : ses_act_ref(g->act, z));
    }
}

static void chunk(void *ctx, int64_t index, void *scratch)
{
    (void)scratch;
    const job *c = ctx;
    const ses_gemm *g = &c->g;
    ses_range r = ses_chunk(g->n, COLS, index);
    for (int64_t i = 0; i < g->m; i++) {
        double sum[COLS] = { 0 };
        for (int64_t p = 0; p < g->k; p++) {
            double a = operand(g->a[i * g->a_row + p * g->a_col], c->round);
            for (int64_t j = r.begin; j < r.end; j++) sum[j - r.begin] += a * b_at(c, p, j);
        }
        store_row(g, i, r, sum);
    }
}

void ses_k_gemm_ref(ses_exec *x, const ses_gemm *g)
{
    job c = { *g, x->bf16 && (!g->packed || g->packed_dtype == SES_BF16) };
    ses_parallel_for(x->pool, ses_chunks(g->n, COLS), chunk, &c);
}

void ses_k_gemm_batch_ref(ses_exec *x, const ses_gemm_batch *b) { ses_gemm_one_by_one(x, b, ses_k_gemm_ref); }
