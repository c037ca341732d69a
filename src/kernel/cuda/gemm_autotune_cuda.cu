/* Which of cuBLASLt's ways is the quickest for a shape: they are run and timed. Only those count that give
 * the bits of the first, so that the clock decides about time and about nothing else: a step in 16 numbers of
 * k after the other is the same sum in tiles of any size, while sums in parts are left to the first way's
 * number of parts, and what the numbers themselves say. */
#include "gemm_cuda.cuh"

#include <string.h>

enum { LISTS = 4, TRIED = LISTS * WAYS, ROUNDS = 3, COLD_ROUNDS = 9 };

/* Of a result: a sum over all words that tells one from another, and how many are neither 0 nor infinite. */
struct traits {
    unsigned long long bits, telling;
};

struct trial {
    cublasLtMatmulAlgo_t way;
    traits seen;
    float best; /* milliseconds */
};

/* Sums of integers: their order is nothing to the result. */
template <class T> __global__ void look(traits *to, const T *x, int64_t rows, int64_t cols, int64_t ld)
{
    unsigned long long bits = 0, telling = 0;
    for (int64_t i = blockIdx.x; i < rows; i += gridDim.x)
        for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) {
            T v = x[i * ld + j];
            uint64_t word = sizeof v == 2 ? *(const uint16_t *)&v : *(const uint32_t *)&v;
            word = (word + (uint64_t)(i * cols + j) * 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;
            bits += (word ^ word >> 32) * 0xd6e8feb86659fd93u;
            telling += num(v) != 0 && isfinite(num(v));
        }
    atomicAdd(&to->bits, bits);
    atomicAdd(&to->telling, telling);
}

template <class T> static void look_at(ses_cuda *gpu, traits *to, const void *x, const ses_gemm *g)
{
    unsigned blocks = (unsigned)(g->m < gpu->cores * 8 ? g->m : gpu->cores * 8);
    look<T><<<blocks, BLOCK, 0, ses_cuda_stream(gpu)>>>(to, (const T *)x, g->m, g->n, g->ldc);
}

static int config(ses_blas *b, const cublasLtMatmulAlgo_t *way, cublasLtMatmulAlgoConfigAttributes_t what)
{
    uint32_t value = 0;
    size_t size = 0;
    b->MatmulAlgoConfigGetAttribute(way, what, &value, sizeof value, &size);
    return (int)value;
}

static bool in_as_many_parts(ses_blas *b, const cublasLtMatmulAlgo_t *x, const cublasLtMatmulAlgo_t *y)
{
    return config(b, x, CUBLASLT_ALGO_CONFIG_SPLITK_NUM) == config(b, y, CUBLASLT_ALGO_CONFIG_SPLITK_NUM) &&
           config(b, x, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME) ==
               config(b, y, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
}

/* Can the plan's shape be multiplied so? */
static bool suits(ses_blas *b, const plan *p, const cublasLtMatmulAlgo_t *way)
{
    cublasLtMatmulHeuristicResult_t r = {};
    return b->MatmulAlgoCheck(b->handle, p->desc, p->b, p->a, p->c, p->c, way, &r) == CUBLAS_STATUS_SUCCESS &&
           r.state == CUBLAS_STATUS_SUCCESS && r.workspaceSize <= WORKSPACE;
}

/* The plan's way first, then the library's for its shape and for ones of a half, a quarter, an eighth of the
 * rows: its list is short, and what is quickest may be in another. */
static int gather(ses_blas *b, const plan *p, trial *to)
{
    cublasLtMatmulAlgo_t ways[TRIED];
    int n = ses_blas_ways(b, p, ways, WAYS), tried = 1;
    for (int i = 1; i < LISTS; i++) {
        plan fewer = {};
        fewer.key = p->key;
        fewer.key.m = p->key.m >> i;
        if (fewer.key.m > 0 && ses_blas_describe(b, &fewer)) n += ses_blas_ways(b, &fewer, ways + n, WAYS);
        ses_blas_drop(b, &fewer);
    }
    to[0].way = p->algo;
    for (int i = 0; i < n; i++) {
        bool takes = in_as_many_parts(b, &ways[i], &p->algo) && suits(b, p, &ways[i]) && tried < TRIED;
        for (int j = 0; j < tried; j++) takes = takes && memcmp(&to[j].way, &ways[i], sizeof ways[i]);
        if (takes) to[tried++].way = ways[i];
    }
    return tried;
}

/* What the way gives; false: it gives nothing. */
static bool try_bits(ses_cuda *gpu, const plan *p, const ses_gemm *g, trial *t, void *c, traits *at)
{
    cudaStream_t stream = ses_cuda_stream(gpu);
    cudaMemsetAsync(at, 0, sizeof *at, stream);
    if (!ses_blas_run(gpu, p, g, &t->way, c)) return false;
    p->key.c_is_f32 ? look_at<float>(gpu, at, c, g) : look_at<bf16>(gpu, at, c, g);
    if (g->pre_act) look_at<bf16>(gpu, at, g->pre_act, g);
    cudaMemcpyAsync(&t->seen, at, sizeof *at, cudaMemcpyDeviceToHost, stream);
    return cudaStreamSynchronize(stream) == cudaSuccess;
}

/* The best of a few rounds in which all take turns, for clocks change; who is far behind drops out. Few rows
 * find nothing in the cache: what takes their time is the weight, and in a model others' come between. */
static int race(ses_cuda *gpu, const plan *p, const ses_gemm *g, trial *t, int n, void *c)
{
    ses_blas *b = gpu->blas;
    cudaStream_t stream = ses_cuda_stream(gpu);
    bool brief = 2.0 * (double)g->m * (double)g->n * (double)g->k < 2e10,
         cold = brief && g->m < g->n && g->m < g->k;
    int best = 0, rounds = cold ? COLD_ROUNDS : ROUNDS, times = cold ? 1 : brief ? 12 : 3;
    for (int i = 0; i < n * rounds; i++) {
        trial *at = &t[i % n];
        float ms = 0;
        if (i >= n && at->best > 1.15f * t[best].best) continue;
        if (cold) cudaMemsetAsync(gpu->scratch, 0, gpu->scratch_size, stream);
        cudaEventRecord(b->begin, stream);
        for (int k = 0; k < times; k++) ses_blas_run(gpu, p, g, &at->way, c);
        cudaEventRecord(b->end, stream);
        if (cudaEventSynchronize(b->end) != cudaSuccess || cudaEventElapsedTime(&ms, b->begin, b->end))
            return 0;
        if (i < n || ms < at->best) at->best = ms;
        if (at->best < t[best].best) best = i % n;
    }
    return best;
}

void ses_blas_tune(ses_cuda *gpu, plan *p, const ses_gemm *g)
{
    size_t bytes = (size_t)((g->m - 1) * g->ldc + g->n) * (p->key.c_is_f32 ? 4 : 2);
    traits *at = (traits *)gpu->scratch;
    void *c = g->accumulate ? at + 16 : (void *)g->c; /* what is added to stays as it is */
    trial t[TRIED] = {};
    if (!gpu->scratch || (g->accumulate && bytes + 16 * sizeof *at > gpu->scratch_size)) return;
    int tried = gather(gpu->blas, p, t), n = 1;
    if (tried < 2 || !try_bits(gpu, p, g, &t[0], c, at)) return;
    if (t[0].seen.telling < (unsigned long long)(g->m * g->n / 8)) return; /* zeros are alike */
    for (int i = 1; i < tried; i++)
        if (try_bits(gpu, p, g, &t[i], c, at) && !memcmp(&t[i].seen, &t[0].seen, sizeof t[0].seen))
            t[n++].way = t[i].way;
    if (n > 1) p->algo = t[race(gpu, p, g, t, n, c)].way;
}
