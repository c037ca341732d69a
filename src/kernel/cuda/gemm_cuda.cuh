/* cuBLASLt plans. gemm_cuda.cu creates and runs them, gemm_autotune_cuda.cu selects the fastest algorithm. */
#ifndef SES_KERNEL_GEMM_CUDA_CUH
#define SES_KERNEL_GEMM_CUDA_CUH

#include "cuda_common.cuh"

#include <cublasLt.h>

enum {
    PLANS = 1024,
    PLAN_PROBES = 4 /* slots per hash value */,
    WORKSPACE = 64 << 20,
    MAX_ALGOS = 8 /* the heuristic returns no more */
};

/* The functions of cublasLt.h in use, without prefix. */
#define BLAS_FUNCTIONS(f)                                                                                  \
    f(Create) f(Destroy) f(Matmul) f(MatmulAlgoCheck) f(MatmulAlgoGetHeuristic)                            \
        f(MatmulAlgoConfigGetAttribute) f(MatmulDescCreate) f(MatmulDescDestroy) f(MatmulDescSetAttribute) \
            f(MatrixLayoutCreate) f(MatrixLayoutDestroy) f(MatrixLayoutSetAttribute)                       \
                f(MatmulPreferenceCreate) f(MatmulPreferenceDestroy) f(MatmulPreferenceSetAttribute)

/* A shape and its memory layout. */
struct plan_key {
    int64_t m, n, k, lda, ldb, ldc;
    int64_t splits, split_a, split_b, split_c; /* parts of k, see ses_gemm_split; 0: not split */
    bool trans_a, trans_b, bias, accumulate;
    bool is_bf16, c_is_f32;            /* a, b and c are bf16; c is f32 */
    bool pre_act;                      /* the pre-activation is stored, too */
    uint8_t act;                       /* a ses_act that cuBLASLt supports */
    uint8_t align_a, align_b, align_c; /* alignment of the addresses in bytes, up to 16 */
};

struct plan {
    plan_key key;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulAlgo_t algo;
    bool ready, unsupported; /* unsupported: cuBLASLt has no algorithm for it */
    int64_t uses;
    bool tuned, tune_next; /* tune_next: a capture was aborted for it */
};

struct ses_blas {
    void *library;
#define FIELD(name) decltype(&cublasLt##name) name;
    BLAS_FUNCTIONS(FIELD)
#undef FIELD
    cublasLtHandle_t handle;
    void *workspace;
    cudaEvent_t begin, end;
    double opened_at, tuning_seconds; /* seconds: time of opening, total autotuning time */
    plan plans[PLANS];
};

/* The heuristic's first algorithms for the plan's shape, at most max; returns their number. Reads key and
 * matrices of the plan only. */
int ses_blas_algos(ses_blas *b, const plan *p, cublasLtMatmulAlgo_t *algos, int max);
bool ses_blas_describe(ses_blas *b, plan *p); /* creates the descriptors from the key */
void ses_blas_plan_free(ses_blas *b, plan *p);

/* Runs g with `algo`; the result goes to c, which may differ from g->c if g accumulates. */
bool ses_blas_run(ses_cuda *gpu, const plan *p, const ses_gemm *g, const cublasLtMatmulAlgo_t *algo, void *c);

/* Sets the plan's algorithm to the fastest one that gives the same bits. May overwrite g->c. The caller holds
 * the lock and is not capturing. */
void ses_blas_autotune(ses_cuda *gpu, plan *p, const ses_gemm *g);

/* C = A B in parts of k / splits: part s is stored s c_stride numbers behind c, which is f32. k must be a
 * multiple of splits. */
void ses_gemm_split(ses_exec *x, const ses_gemm *g, int splits, int64_t c_stride, bool is_bf16);

#endif
