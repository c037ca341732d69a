/* Autotuning of cuBLASLt algorithms: runs and times the candidates of a shape. Only algorithms that give the
 * same bits as the first are considered, so timing changes the speed only. Tile sizes do not change a sum,
 * which advances in steps of 16 along k; split-K does, so the number of splits stays that of the first
 * algorithm, and the results are compared. */
#include "gemm_cuda.cuh"

#include <string.h>

enum { HEURISTICS = 4, MAX_TRIALS = HEURISTICS * MAX_ALGOS, ROUNDS = 3, COLD_ROUNDS = 9 };

/* Fingerprint of a result: a hash over all words, and the number of finite non-zero elements. */
struct fingerprint {
    unsigned long long bits, nonzero;
};

struct trial {
    cublasLtMatmulAlgo_t algo;
    fingerprint result;
    float best; /* milliseconds */
};

/* Integer sums: independent of their order. */
template <class T>
__global__ void fingerprint_kernel(fingerprint *to, const T *x, int64_t rows, int64_t cols, int64_t ld)
{
    unsigned long long bits = 0, nonzero = 0;
    for (int64_t i = blockIdx.x; i < rows; i += gridDim.x)
        for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) {
            T v = x[i * ld + j];
            uint64_t word = sizeof v == 2 ? *(const uint16_t *)&v : *(const uint32_t *)&v;
            word = (word + (uint64_t)(i * cols + j) * 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;
            bits += (word ^ word >> 32) * 0xd6e8feb86659fd93u;
            nonzero += to_float(v) != 0 && isfinite(to_float(v));
        }
    atomicAdd(&to->bits, bits);
    atomicAdd(&to->nonzero, nonzero);
}

template <class T>
static void add_fingerprint(ses_cuda *gpu, fingerprint *to, const void *x, const ses_gemm *g)
{
    unsigned blocks = (unsigned)(g->m < gpu->sm_count * 8 ? g->m : gpu->sm_count * 8);
    fingerprint_kernel<T><<<blocks, BLOCK, 0, ses_cuda_stream(gpu)>>>(to, (const T *)x, g->m, g->n, g->ldc);
}

static int config(ses_blas *b, const cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoConfigAttributes_t what)
{
    uint32_t value = 0;
    size_t size = 0;
    b->MatmulAlgoConfigGetAttribute(algo, what, &value, sizeof value, &size);
    return (int)value;
}

static bool same_split_k(ses_blas *b, const cublasLtMatmulAlgo_t *x, const cublasLtMatmulAlgo_t *y)
{
    return config(b, x, CUBLASLT_ALGO_CONFIG_SPLITK_NUM) == config(b, y, CUBLASLT_ALGO_CONFIG_SPLITK_NUM) &&
           config(b, x, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME) ==
               config(b, y, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
}

/* True if the algorithm supports the plan's shape. */
static bool is_supported(ses_blas *b, const plan *p, const cublasLtMatmulAlgo_t *algo)
{
    cublasLtMatmulHeuristicResult_t r = {};
    return b->MatmulAlgoCheck(b->handle, p->desc, p->b, p->a, p->c, p->c, algo, &r) ==
               CUBLAS_STATUS_SUCCESS &&
           r.state == CUBLAS_STATUS_SUCCESS && r.workspaceSize <= WORKSPACE;
}

/* Candidates: the plan's algorithm first, then the heuristic's lists for the shape and for a half, a quarter
 * and an eighth of the rows. Each list is short, and the fastest algorithm may be in another one. */
static int collect_algos(ses_blas *b, const plan *p, trial *to)
{
    cublasLtMatmulAlgo_t algos[MAX_TRIALS];
    int n = ses_blas_algos(b, p, algos, MAX_ALGOS), tried = 1;
    for (int i = 1; i < HEURISTICS; i++) {
        plan smaller = {};
        smaller.key = p->key;
        smaller.key.m = p->key.m >> i;
        if (smaller.key.m > 0 && ses_blas_describe(b, &smaller))
            n += ses_blas_algos(b, &smaller, algos + n, MAX_ALGOS);
        ses_blas_plan_free(b, &smaller);
    }
    to[0].algo = p->algo;
    for (int i = 0; i < n; i++) {
        bool is_new =
            same_split_k(b, &algos[i], &p->algo) && is_supported(b, p, &algos[i]) && tried < MAX_TRIALS;
        for (int j = 0; j < tried; j++) is_new = is_new && memcmp(&to[j].algo, &algos[i], sizeof algos[i]);
        if (is_new) to[tried++].algo = algos[i];
    }
    return tried;
}

/* Runs an algorithm and computes the fingerprint of its result; false: it failed. */
static bool run_trial(ses_cuda *gpu, const plan *p, const ses_gemm *g, trial *t, void *c, fingerprint *at)
{
    cudaStream_t stream = ses_cuda_stream(gpu);
    cudaMemsetAsync(at, 0, sizeof *at, stream);
    if (!ses_blas_run(gpu, p, g, &t->algo, c)) return false;
    p->key.c_is_f32 ? add_fingerprint<float>(gpu, at, c, g) : add_fingerprint<bf16>(gpu, at, c, g);
    if (g->pre_act) add_fingerprint<bf16>(gpu, at, g->pre_act, g);
    cudaMemcpyAsync(&t->result, at, sizeof *at, cudaMemcpyDeviceToHost, stream);
    return cudaStreamSynchronize(stream) == cudaSuccess;
}

/* Best time of a few rounds in which all candidates take turns, because clocks change; slow ones are dropped.
 * A product of few rows is dominated by loading the weight, which in a model is not cached: the cache is
 * flushed before each run. */
static int time_algos(ses_cuda *gpu, const plan *p, const ses_gemm *g, trial *t, int n, void *c)
{
    ses_blas *b = gpu->blas;
    cudaStream_t stream = ses_cuda_stream(gpu);
    bool is_short = 2.0 * (double)g->m * (double)g->n * (double)g->k < 2e10,
         flush_cache = is_short && g->m < g->n && g->m < g->k;
    int best = 0, rounds = flush_cache ? COLD_ROUNDS : ROUNDS, times = flush_cache ? 1 : is_short ? 12 : 3;
    for (int i = 0; i < n * rounds; i++) {
        trial *at = &t[i % n];
        float ms = 0;
        if (i >= n && at->best > 1.15f * t[best].best) continue;
        if (flush_cache) cudaMemsetAsync(gpu->scratch, 0, gpu->scratch_size, stream);
        cudaEventRecord(b->begin, stream);
        for (int k = 0; k < times; k++) ses_blas_run(gpu, p, g, &at->algo, c);
        cudaEventRecord(b->end, stream);
        if (cudaEventSynchronize(b->end) != cudaSuccess || cudaEventElapsedTime(&ms, b->begin, b->end))
            return 0;
        if (i < n || ms < at->best) at->best = ms;
        if (at->best < t[best].best) best = i % n;
    }
    return best;
}

void ses_blas_autotune(ses_cuda *gpu, plan *p, const ses_gemm *g)
{
    size_t bytes = (size_t)((g->m - 1) * g->ldc + g->n) * (p->key.c_is_f32 ? 4 : 2);
    fingerprint *at = (fingerprint *)gpu->scratch;
    /* keeps the matrix that the product is added to */
    void *c = g->accumulate ? at + 16 : (void *)g->c;
    trial t[MAX_TRIALS] = {};
    if (!gpu->scratch || (g->accumulate && bytes + 16 * sizeof *at > gpu->scratch_size)) return;
    int tried = collect_algos(gpu->blas, p, t), n = 1;
    if (tried < 2 || !run_trial(gpu, p, g, &t[0], c, at)) return;
    /* zeros do not distinguish algorithms */
    if (t[0].result.nonzero < (unsigned long long)(g->m * g->n / 8)) return;
    for (int i = 1; i < tried; i++)
        if (run_trial(gpu, p, g, &t[i], c, at) && !memcmp(&t[i].result, &t[0].result, sizeof t[0].result))
            t[n++].algo = t[i].algo;
    if (n > 1) p->algo = t[time_algos(gpu, p, g, t, n, c)].algo;
}
