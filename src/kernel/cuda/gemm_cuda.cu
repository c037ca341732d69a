/* Matrix products through cuBLASLt, opened at run time: the command starts as quickly as without it, and
 * runs where it is not installed. What the library chose for a shape is kept. Column-major as it is, it is
 * asked for C' = B' A'; the bias, one number a column of C, is then one a row. */
#include "act_cuda.cuh"
#include "gemm_cuda.cuh"

#include <chrono>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static double seconds(void)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool ses_blas_open(ses_cuda *g, ses_err *e)
{
    static const char *const places[] = { "libcublasLt.so.13", "libcublasLt.so",
                                          SES_CUDA_LIBRARIES "/libcublasLt.so" };
    ses_blas *b = (ses_blas *)calloc(1, sizeof *b);
    if (!b) return ses_fail(e, SES_ENOMEM, "out of memory");
    g->blas = b;
    b->born = seconds();
    for (size_t i = 0; i < SES_LEN(places) && !b->library; i++)
        b->library = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
    if (!b->library)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "libcublasLt.so is not found: install the CUDA toolkit, or set LD_LIBRARY_PATH");
    const char *missing = NULL;
#define FIND(name) \
    if (!(b->name = (decltype(b->name))dlsym(b->library, "cublasLt" #name))) missing = "cublasLt" #name;
    BLAS_FUNCTIONS(FIND)
#undef FIND
    if (missing) return ses_fail(e, SES_EUNSUPPORTED, "libcublasLt.so has no %s", missing);
    if (b->Create(&b->handle) != CUBLAS_STATUS_SUCCESS)
        return ses_fail(e, SES_EIO, "cuBLASLt does not start");
    if (cudaMalloc(&b->workspace, WORKSPACE) != cudaSuccess)
        return ses_fail(e, SES_ENOMEM, "out of GPU memory: %d bytes wanted", (int)WORKSPACE);
    if (cudaEventCreate(&b->begin) != cudaSuccess || cudaEventCreate(&b->end) != cudaSuccess)
        return ses_fail(e, SES_EIO, "%s", cudaGetErrorString(cudaGetLastError()));
    return true;
}

void ses_blas_drop(ses_blas *b, plan *p)
{
    if (p->a) b->MatrixLayoutDestroy(p->a);
    if (p->b) b->MatrixLayoutDestroy(p->b);
    if (p->c) b->MatrixLayoutDestroy(p->c);
    if (p->desc) b->MatmulDescDestroy(p->desc);
    memset(p, 0, sizeof *p);
}

void ses_blas_free(ses_blas *b)
{
    if (!b) return;
    for (int i = 0; i < PLANS; i++) ses_blas_drop(b, &b->plans[i]);
    if (b->handle) b->Destroy(b->handle);
    cudaFree(b->workspace);
    if (b->begin) cudaEventDestroy(b->begin);
    if (b->end) cudaEventDestroy(b->end);
    if (b->library) dlclose(b->library);
    free(b);
}

/* ---- plans ---- */

static uint8_t alignment(const void *p)
{
    uintptr_t at = (uintptr_t)p;
    return at % 16 == 0 ? 16 : at % 8 == 0 ? 8 : at % 4 == 0 ? 4 : 2;
}

/* A [m, k] whose columns are neighbors lies as it is (col 1), one whose rows are neighbors lies turned. */
static bool lies(int64_t row, int64_t col, int64_t rows, int64_t cols, bool *turned, int64_t *ld)
{
    *turned = col != 1 && row == 1;
    *ld = *turned ? col : row;
    if (!*turned && col != 1 && cols > 1) return false;
    int64_t least = *turned ? rows : cols;
    if (*ld < least) *ld = least; /* a single row or column: its step is never taken */
    return true;
}

static bool key_of(const ses_gemm *g, bool narrow, plan_key *key)
{
    memset(key, 0, sizeof *key);
    key->m = g->m, key->n = g->n, key->k = g->k, key->ldc = g->ldc;
    key->bias = g->bias != NULL, key->accumulate = g->accumulate;
    key->narrow = narrow, key->c_is_f32 = !narrow || g->is_f32;
    key->act = (uint8_t)g->act, key->pre_act = g->pre_act != NULL;
    key->align_a = alignment(g->a), key->align_b = alignment(g->b), key->align_c = alignment(g->c);
    return g->k > 0 && lies(g->a_row, g->a_col, g->m, g->k, &key->a_turned, &key->lda) &&
           lies(g->b_row, g->b_col, g->k, g->n, &key->b_turned, &key->ldb);
}

static bool set(ses_blas *b, plan *p, cublasLtMatmulDescAttributes_t what, const void *value, size_t size)
{
    return b->MatmulDescSetAttribute(p->desc, what, value, size) == CUBLAS_STATUS_SUCCESS;
}

/* What is done to the product before it is written. Bits, as cublasLt.h has them. */
static cublasLtEpilogue_t epilogue_of(const plan_key *k)
{
    int e = k->act == SES_ACT_NONE   ? 0
            : k->act == SES_ACT_RELU ? CUBLASLT_EPILOGUE_RELU
            : k->pre_act             ? CUBLASLT_EPILOGUE_GELU_AUX
                                     : CUBLASLT_EPILOGUE_GELU;
    if (k->bias) e |= CUBLASLT_EPILOGUE_BIAS;
    return e ? (cublasLtEpilogue_t)e : CUBLASLT_EPILOGUE_DEFAULT;
}

/* Of the library's first operand our B, of its second our A. */
bool ses_blas_describe(ses_blas *b, plan *p)
{
    const plan_key *k = &p->key;
    cublasOperation_t op_b = k->b_turned ? CUBLAS_OP_T : CUBLAS_OP_N,
                      op_a = k->a_turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = epilogue_of(k);
    cudaDataType_t in = k->narrow ? CUDA_R_16BF : CUDA_R_32F, out = k->c_is_f32 ? CUDA_R_32F : CUDA_R_16BF;
    uint64_t b_rows = (uint64_t)(k->b_turned ? k->k : k->n), b_cols = (uint64_t)(k->b_turned ? k->n : k->k);
    uint64_t a_rows = (uint64_t)(k->a_turned ? k->m : k->k), a_cols = (uint64_t)(k->a_turned ? k->k : k->m);
    return b->MatmulDescCreate(&p->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS &&
           set(b, p, CUBLASLT_MATMUL_DESC_TRANSA, &op_b, sizeof op_b) &&
           set(b, p, CUBLASLT_MATMUL_DESC_TRANSB, &op_a, sizeof op_a) &&
           set(b, p, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue) &&
           (!k->pre_act || set(b, p, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &k->ldc, sizeof k->ldc)) &&
           b->MatrixLayoutCreate(&p->b, in, b_rows, b_cols, k->ldb) == CUBLAS_STATUS_SUCCESS &&
           b->MatrixLayoutCreate(&p->a, in, a_rows, a_cols, k->lda) == CUBLAS_STATUS_SUCCESS &&
           b->MatrixLayoutCreate(&p->c, out, (uint64_t)k->n, (uint64_t)k->m, k->ldc) == CUBLAS_STATUS_SUCCESS;
}

int ses_blas_ways(ses_blas *b, const plan *p, cublasLtMatmulAlgo_t *ways, int most)
{
    cublasLtMatmulPreference_t want = NULL;
    cublasLtMatmulHeuristicResult_t result[WAYS] = {};
    size_t bytes = WORKSPACE;
    uint32_t align_a = p->key.align_b, align_b = p->key.align_a, align_c = p->key.align_c;
    int found = 0, good = 0;
    if (b->MatmulPreferenceCreate(&want) != CUBLAS_STATUS_SUCCESS) return 0;
    b->MatmulPreferenceSetAttribute(want, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes);
    b->MatmulPreferenceSetAttribute(want, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &align_a,
                                    sizeof align_a);
    b->MatmulPreferenceSetAttribute(want, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &align_b,
                                    sizeof align_b);
    b->MatmulPreferenceSetAttribute(want, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &align_c,
                                    sizeof align_c);
    b->MatmulPreferenceSetAttribute(want, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &align_c,
                                    sizeof align_c);
    if (b->MatmulAlgoGetHeuristic(b->handle, p->desc, p->b, p->a, p->c, p->c, want, most, result, &found) !=
        CUBLAS_STATUS_SUCCESS)
        found = 0;
    b->MatmulPreferenceDestroy(want);
    for (int i = 0; i < found; i++)
        if (result[i].state == CUBLAS_STATUS_SUCCESS) ways[good++] = result[i].algo;
    return good;
}

/* The plan of a shape; where all its places are taken, the least used goes. */
static plan *plan_for(ses_blas *b, const plan_key *key)
{
    uint64_t hash = 1469598103934665603u;
    for (size_t i = 0; i < sizeof *key; i++) hash = (hash ^ ((const unsigned char *)key)[i]) * 1099511628211u;
    plan *p = NULL;
    for (uint64_t i = 0; i < PLACES; i++) {
        plan *at = &b->plans[(hash + i) % PLANS];
        if (at->ready && !memcmp(&at->key, key, sizeof *key)) return at;
        if (!p || at->uses < p->uses) p = at;
    }
    ses_blas_drop(b, p);
    p->key = *key;
    p->ready = true;
    p->none = !ses_blas_describe(b, p) || !ses_blas_ways(b, p, &p->algo, 1);
    return p;
}

/* Bias and what stands before the activation go by pointers. */
static bool point(ses_blas *b, plan *p, const ses_gemm *g)
{
    return (!g->bias || set(b, p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &g->bias, sizeof g->bias)) &&
           (!g->pre_act ||
            set(b, p, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &g->pre_act, sizeof g->pre_act));
}

bool ses_blas_run(ses_cuda *gpu, const plan *p, const ses_gemm *g, const cublasLtMatmulAlgo_t *way, void *c)
{
    ses_blas *b = gpu->blas;
    float one = 1, beta = g->accumulate ? 1 : 0;
    return b->Matmul(b->handle, p->desc, &one, g->b, p->b, g->a, p->a, &beta, g->c, p->c, c, p->c, way,
                     b->workspace, WORKSPACE, ses_cuda_stream(gpu)) == CUBLAS_STATUS_SUCCESS;
}

/* Tuning a product takes as long as some hundred of it: where it is not asked for at once, a small share of
 * all time, so that what ends soon ends no later for it. */
static bool affordable(const ses_cuda *gpu)
{
    static const double first = 0.1, share = 0.05;
    const ses_blas *b = gpu->blas;
    return gpu->steady || b->spent <= first + share * (seconds() - b->born);
}

/* Shapes are tuned that come again: of batches without padding few do. A graph has the way of its making for
 * good, so one that would keep a plan as it was chosen unseen is none; the next will be. */
static void tune_seen(ses_cuda *gpu, plan *p, const ses_gemm *g)
{
    enum { OFTEN = 48, LEAST = 1 << 16 }; /* numbers of a result that tell apart how they were summed up */
    bool worth = p->key.narrow && g->m * g->n >= LEAST, making = ses_cuda_graph_making(gpu);
    if (p->tuned || !worth || !(making || p->wanted || p->uses >= OFTEN) || !affordable(gpu)) return;
    p->wanted = making && ses_cuda_graph_spoil(gpu);
    p->tuned = !making;
    if (making) return;
    double begin = seconds();
    ses_blas_tune(gpu, p, g);
    gpu->blas->spent += seconds() - begin;
}

static bool by_library(ses_cuda *gpu, const ses_gemm *g, bool narrow)
{
    ses_blas *b = gpu->blas;
    plan_key key;
    if (!key_of(g, narrow, &key)) return false;
    ses_cuda_stream(gpu); /* for the device it chooses: the library is asked first */
    pthread_mutex_lock(&gpu->lock);
    plan *p = plan_for(b, &key);
    bool ok = !p->none && point(b, p, g);
    p->uses++;
    if (ok) tune_seen(gpu, p, g);
    ok = ok && ses_blas_run(gpu, p, g, &p->algo, g->c);
    pthread_mutex_unlock(&gpu->lock);
    return ok;
}

/* ---- without the library: any strides ---- */

enum { SIDE = 16 };

template <class T> __global__ void product(ses_gemm g, sink<T> c)
{
    __shared__ float a[SIDE][SIDE + 1], b[SIDE][SIDE + 1];
    int64_t i = (int64_t)blockIdx.y * SIDE + threadIdx.y, j = (int64_t)blockIdx.x * SIDE + threadIdx.x;
    float sum = 0;
    for (int64_t p = 0; p < g.k; p += SIDE) {
        int64_t pa = p + threadIdx.x, pb = p + threadIdx.y;
        a[threadIdx.y][threadIdx.x] =
            i < g.m && pa < g.k ? num(((const T *)(const void *)g.a)[i * g.a_row + pa * g.a_col]) : 0;
        b[threadIdx.y][threadIdx.x] =
            j < g.n && pb < g.k ? num(((const T *)(const void *)g.b)[pb * g.b_row + j * g.b_col]) : 0;
        __syncthreads();
        for (int t = 0; t < SIDE; t++) sum += a[threadIdx.y][t] * b[t][threadIdx.x];
        __syncthreads();
    }
    if (i >= g.m || j >= g.n) return;
    if (g.bias) sum += num(((const T *)(const void *)g.bias)[j]);
    put(c, i * g.ldc + j, sum);
}

template <class T> static void by_hand(ses_cuda *gpu, const ses_gemm *g, T *c)
{
    dim3 grid((unsigned)ceil_div(g->n, SIDE), (unsigned)ceil_div(g->m, SIDE)), block(SIDE, SIDE);
    if (grid.y > 65535) return fail(gpu, "gemm: too many rows for strides the library does not take");
    sink<T> to = { c, g->accumulate, g->is_f32 };
    product<T><<<grid, block, 0, ses_cuda_stream(gpu)>>>(*g, to);
    launched(gpu);
}

/* ---- the kernels ---- */

/* The library reads weights in any order: nothing is packed. */
static int64_t gemm_pack_size(int64_t n, int64_t k)
{
    (void)n, (void)k;
    return 0;
}

static void gemm_pack(ses_exec *x, void *packed, ses_dtype as, const ses_real *b, int64_t b_row,
                      int64_t b_col, int64_t n, int64_t k)
{
    (void)x, (void)packed, (void)as, (void)b, (void)b_row, (void)b_col, (void)n, (void)k;
}

/* The library's GELU is the one by tanh, at most 4.8e-4 from erf's; bf16 rounds values near 1 by 2e-3, so
 * there it serves for both. It wants rows of `pre` on multiples of 8. */
static bool in_epilogue(const ses_gemm *g, bool narrow)
{
    if (!narrow || g->is_f32 || g->accumulate) return false;
    if (g->act == SES_ACT_RELU) return !g->pre_act;
    bool gelu = g->act == SES_ACT_GELU || g->act == SES_ACT_GELU_TANH;
    return gelu && (!g->pre_act || (g->ldc % 8 == 0 && g->n % 8 == 0 && whole_packs(g->pre_act)));
}

/* Other activations are a pass of their own. */
template <class T> static void gemm(ses_exec *x, const ses_gemm *g)
{
    const bool narrow = sizeof(T) < sizeof(float);
    T *c = cells<T>(g->pre_act ? g->pre_act : g->c), *to = cells<T>(g->c);
    int64_t n = g->n, ldc = g->ldc;
    ses_act act = g->act;
    if (g->m <= 0 || g->n <= 0) return;
    if (in_epilogue(g, narrow) && by_library(x->cuda, g, narrow)) return;
    ses_gemm plain = *g;
    plain.c = g->pre_act ? g->pre_act : g->c, plain.pre_act = NULL, plain.act = SES_ACT_NONE;
    if (!by_library(x->cuda, &plain, narrow)) by_hand<T>(x->cuda, &plain, c);
    if (c == to && act == SES_ACT_NONE) return;
    if (ldc == n) {
        act_fwd<T>(x, g->c, plain.c, g->m * n, act);
    } else {
        each_row(x, g->m, n, [=] __device__(int64_t row, int64_t j) {
            to[row * ldc + j] = cell<T>(act_for<T>(act, num(c[row * ldc + j])));
        });
    }
}

void ses_cuda_gemm(ses_kernels *k, bool narrow)
{
    k->gemm_pack_size = gemm_pack_size, k->gemm_pack = gemm_pack;
    k->gemm = narrow ? gemm<bf16> : gemm<float>;
}
