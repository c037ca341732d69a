/* Matrix products on a GPU: what plans of the library consist of. gemm_cuda.cu makes and runs them,
 * gemm_autotune_cuda.cu finds the quickest way. */
#ifndef SES_KERNEL_GEMM_CUDA_CUH
#define SES_KERNEL_GEMM_CUDA_CUH

#include "cuda_common.cuh"

#include <cublasLt.h>

enum {
    PLANS = 1024,
    PLACES = 4 /* of a plan */,
    WORKSPACE = 64 << 20,
    WAYS = 8 /* of a shape: the library tells no more */
};

/* The functions of cublasLt.h that are used, without their prefix. */
#define BLAS_FUNCTIONS(f)                                                                                  \
    f(Create) f(Destroy) f(Matmul) f(MatmulAlgoCheck) f(MatmulAlgoGetHeuristic)                            \
        f(MatmulAlgoConfigGetAttribute) f(MatmulDescCreate) f(MatmulDescDestroy) f(MatmulDescSetAttribute) \
            f(MatrixLayoutCreate) f(MatrixLayoutDestroy) f(MatmulPreferenceCreate)                         \
                f(MatmulPreferenceDestroy) f(MatmulPreferenceSetAttribute)

/* A shape, and how its operands lie. */
struct plan_key {
    int64_t m, n, k, lda, ldb, ldc;
    bool a_turned, b_turned, bias, accumulate;
    bool narrow, c_is_f32;             /* a, b and c are bf16; but c is float */
    bool pre_act;                      /* what stood before the activation is written, too */
    uint8_t act;                       /* a ses_act, of those the library has */
    uint8_t align_a, align_b, align_c; /* of the addresses, in bytes, up to 16 */
};

struct plan {
    plan_key key;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulAlgo_t algo;
    bool ready, none; /* none: the library has nothing for it */
    int64_t uses;
    bool tuned, wanted; /* wanted: somebody would keep it in a graph */
};

struct ses_blas {
    void *library;
#define FIELD(name) decltype(&cublasLt##name) name;
    BLAS_FUNCTIONS(FIELD)
#undef FIELD
    cublasLtHandle_t handle;
    void *workspace;
    cudaEvent_t begin, end;
    double born, spent; /* seconds: when this was, and all that tuning took */
    plan plans[PLANS];
};

/* The library's first ways for the plan's shape, up to `most`; returns how many. The plan's key and matrices
 * are all that counts. */
int ses_blas_ways(ses_blas *b, const plan *p, cublasLtMatmulAlgo_t *ways, int most);
bool ses_blas_describe(ses_blas *b, plan *p); /* fills in the rest from the key */
void ses_blas_drop(ses_blas *b, plan *p);

/* p's product by `way` to c, which is g's or, of one that adds, another. */
bool ses_blas_run(ses_cuda *gpu, const plan *p, const ses_gemm *g, const cublasLtMatmulAlgo_t *way, void *c);

/* The quickest way that gives the same bits becomes the plan's; g's result may be written on the way. The
 * lock is held, nothing is captured. */
void ses_blas_tune(ses_cuda *gpu, plan *p, const ses_gemm *g);

#endif
