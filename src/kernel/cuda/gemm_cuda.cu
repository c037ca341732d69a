/* Matrix products through cuBLASLt. The library is loaded at run time, so that the command starts quickly and
 * runs on machines where cuBLASLt is not installed. Algorithms are cached per shape. cuBLASLt is
 * column-major, so it computes C' = B' A'; the bias per column of C becomes one per row. */
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
    static const char *const paths[] = { "libcublasLt.so.13", "libcublasLt.so",
                                         SES_CUDA_LIBRARIES "/libcublasLt.so" };
    ses_blas *b = (ses_blas *)calloc(1, sizeof *b);
    if (!b) return ses_fail(e, SES_ENOMEM, "out of memory");
    g->blas = b;
    b->opened_at = seconds();
    for (size_t i = 0; i < SES_LEN(paths) && !b->library; i++)
        b->library = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
    if (!b->library)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "libcublasLt.so not found: install the CUDA toolkit, or set LD_LIBRARY_PATH");
    const char *missing = NULL;
#define FIND(name) \
    if (!(b->name = (decltype(b->name))dlsym(b->library, "cublasLt" #name))) missing = "cublasLt" #name;
    BLAS_FUNCTIONS(FIND)
#undef FIND
    if (missing) return ses_fail(e, SES_EUNSUPPORTED, "libcublasLt.so lacks %s", missing);
    if (b->Create(&b->handle) != CUBLAS_STATUS_SUCCESS)
        return ses_fail(e, SES_EIO, "cannot initialize cuBLASLt");
    if (cudaMalloc(&b->workspace, WORKSPACE) != cudaSuccess)
        return ses_fail(e, SES_ENOMEM, "out of GPU memory: %d bytes requested", (int)WORKSPACE);
    if (cudaEventCreate(&b->begin) != cudaSuccess || cudaEventCreate(&b->end) != cudaSuccess)
        return ses_fail(e, SES_EIO, "%s", cudaGetErrorString(cudaGetLastError()));
    return true;
}

void ses_blas_plan_free(ses_blas *b, plan *p)
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
    for (int i = 0; i < PLANS; i++) ses_blas_plan_free(b, &b->plans[i]);
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

/* Finds transposition and leading dimension of a matrix with unit column stride (not transposed) or unit row
 * stride (transposed). False: neither. */
static bool find_layout(int64_t row, int64_t col, int64_t rows, int64_t cols, bool *transposed, int64_t *ld)
{
    *transposed = col != 1 && row == 1;
    *ld = *transposed ? col : row;
    if (!*transposed && col != 1 && cols > 1) return false;
    int64_t min_ld = *transposed ? rows : cols;
    if (*ld < min_ld) *ld = min_ld; /* a single row or column: the stride is never used */
    return true;
}

static bool make_key(const ses_gemm *g, bool is_bf16, plan_key *key)
{
    memset(key, 0, sizeof *key);
    key->m = g->m, key->n = g->n, key->k = g->k, key->ldc = g->ldc;
    key->bias = g->bias != NULL, key->accumulate = g->accumulate;
    key->is_bf16 = is_bf16, key->c_is_f32 = !is_bf16 || g->is_f32;
    key->act = (uint8_t)g->act, key->pre_act = g->pre_act != NULL;
    key->align_a = alignment(g->a), key->align_b = alignment(g->b), key->align_c = alignment(g->c);
    return g->k > 0 && find_layout(g->a_row, g->a_col, g->m, g->k, &key->trans_a, &key->lda) &&
           find_layout(g->b_row, g->b_col, g->k, g->n, &key->trans_b, &key->ldb);
}

static bool set(ses_blas *b, plan *p, cublasLtMatmulDescAttributes_t what, const void *value, size_t size)
{
    return b->MatmulDescSetAttribute(p->desc, what, value, size) == CUBLAS_STATUS_SUCCESS;
}

/* Epilogue flags of cublasLt.h. */
static cublasLtEpilogue_t epilogue_of(const plan_key *k)
{
    int e = k->act == SES_ACT_NONE   ? 0
            : k->act == SES_ACT_RELU ? CUBLASLT_EPILOGUE_RELU
            : k->pre_act             ? CUBLASLT_EPILOGUE_GELU_AUX
                                     : CUBLASLT_EPILOGUE_GELU;
    if (k->bias) e |= CUBLASLT_EPILOGUE_BIAS;
    return e ? (cublasLtEpilogue_t)e : CUBLASLT_EPILOGUE_DEFAULT;
}

static bool set_parts(ses_blas *b, cublasLtMatrixLayout_t x, int64_t parts, int64_t offset)
{
    int32_t count = (int32_t)parts;
    return b->MatrixLayoutSetAttribute(x, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count) ==
               CUBLAS_STATUS_SUCCESS &&
           b->MatrixLayoutSetAttribute(x, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &offset,
                                       sizeof offset) == CUBLAS_STATUS_SUCCESS;
}

/* cuBLASLt's first operand is our B, its second is our A. */
bool ses_blas_describe(ses_blas *b, plan *p)
{
    const plan_key *k = &p->key;
    cublasOperation_t op_b = k->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                      op_a = k->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = epilogue_of(k);
    cudaDataType_t in = k->is_bf16 ? CUDA_R_16BF : CUDA_R_32F, out = k->c_is_f32 ? CUDA_R_32F : CUDA_R_16BF;
    uint64_t b_rows = (uint64_t)(k->trans_b ? k->k : k->n), b_cols = (uint64_t)(k->trans_b ? k->n : k->k);
    uint64_t a_rows = (uint64_t)(k->trans_a ? k->m : k->k), a_cols = (uint64_t)(k->trans_a ? k->k : k->m);
    return b->MatmulDescCreate(&p->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS &&
           set(b, p, CUBLASLT_MATMUL_DESC_TRANSA, &op_b, sizeof op_b) &&
           set(b, p, CUBLASLT_MATMUL_DESC_TRANSB, &op_a, sizeof op_a) &&
           set(b, p, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue) &&
           (!k->pre_act || set(b, p, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &k->ldc, sizeof k->ldc)) &&
           b->MatrixLayoutCreate(&p->b, in, b_rows, b_cols, k->ldb) == CUBLAS_STATUS_SUCCESS &&
           b->MatrixLayoutCreate(&p->a, in, a_rows, a_cols, k->lda) == CUBLAS_STATUS_SUCCESS &&
           b->MatrixLayoutCreate(&p->c, out, (uint64_t)k->n, (uint64_t)k->m, k->ldc) ==
               CUBLAS_STATUS_SUCCESS &&
           (!k->splits ||
            (set_parts(b, p->a, k->splits, k->split_a) && set_parts(b, p->b, k->splits, k->split_b) &&
             set_parts(b, p->c, k->splits, k->split_c)));
}

int ses_blas_algos(ses_blas *b, const plan *p, cublasLtMatmulAlgo_t *algos, int max)
{
    cublasLtMatmulPreference_t pref = NULL;
    cublasLtMatmulHeuristicResult_t result[MAX_ALGOS] = {};
    size_t bytes = WORKSPACE;
    uint32_t align_a = p->key.align_b, align_b = p->key.align_a, align_c = p->key.align_c;
    int found = 0, usable = 0;
    if (b->MatmulPreferenceCreate(&pref) != CUBLAS_STATUS_SUCCESS) return 0;
    b->MatmulPreferenceSetAttribute(pref, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes);
    b->MatmulPreferenceSetAttribute(pref, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &align_a,
                                    sizeof align_a);
    b->MatmulPreferenceSetAttribute(pref, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &align_b,
                                    sizeof align_b);
    b->MatmulPreferenceSetAttribute(pref, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &align_c,
                                    sizeof align_c);
    b->MatmulPreferenceSetAttribute(pref, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &align_c,
                                    sizeof align_c);
    if (b->MatmulAlgoGetHeuristic(b->handle, p->desc, p->b, p->a, p->c, p->c, pref, max, result, &found) !=
        CUBLAS_STATUS_SUCCESS)
        found = 0;
    b->MatmulPreferenceDestroy(pref);
    for (int i = 0; i < found; i++)
        if (result[i].state == CUBLAS_STATUS_SUCCESS) algos[usable++] = result[i].algo;
    return usable;
}

/* Plan of a shape. If all its slots are taken, the least used plan is replaced. */
static plan *plan_for(ses_blas *b, const plan_key *key)
{
    uint64_t hash = 1469598103934665603u;
    for (size_t i = 0; i < sizeof *key; i++) hash = (hash ^ ((const unsigned char *)key)[i]) * 1099511628211u;
    plan *p = NULL;
    for (uint64_t i = 0; i < PLAN_PROBES; i++) {
        plan *at = &b->plans[(hash + i) % PLANS];
        if (at->ready && !memcmp(&at->key, key, sizeof *key)) return at;
        if (!p || at->uses < p->uses) p = at;
    }
    ses_blas_plan_free(b, p);
    p->key = *key;
    p->ready = true;
    p->unsupported = !ses_blas_describe(b, p) || !ses_blas_algos(b, p, &p->algo, 1);
    return p;
}

/* Bias and pre-activation are passed as pointers. */
static bool set_pointers(ses_blas *b, plan *p, const ses_gemm *g)
{
    return (!g->bias || set(b, p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &g->bias, sizeof g->bias)) &&
           (!g->pre_act ||
            set(b, p, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &g->pre_act, sizeof g->pre_act));
}

/* c = alpha A B + beta d */
static bool multiply(ses_cuda *gpu, const plan *p, const ses_gemm *g, const cublasLtMatmulAlgo_t *algo,
                     float alpha, float beta, const void *d, void *c)
{
    ses_blas *b = gpu->blas;
    return b->Matmul(b->handle, p->desc, &alpha, g->b, p->b, g->a, p->a, &beta, d, p->c, c, p->c, algo,
                     b->workspace, WORKSPACE, ses_cuda_stream(gpu)) == CUBLAS_STATUS_SUCCESS;
}

bool ses_blas_run(ses_cuda *gpu, const plan *p, const ses_gemm *g, const cublasLtMatmulAlgo_t *algo, void *c)
{
    return multiply(gpu, p, g, algo, 1, g->accumulate ? 1 : 0, g->c, c);
}

/* Autotuning a shape takes as long as a few hundred products. Unless eager, it is limited to 5 % of the
 * elapsed time, so short runs are not slowed down. */
static bool within_budget(const ses_cuda *gpu)
{
    static const double first = 0.1, budget = 0.05;
    const ses_blas *b = gpu->blas;
    return gpu->autotune_eagerly || b->tuning_seconds <= first + budget * (seconds() - b->opened_at);
}

/* Autotunes shapes that recur; unpadded batches have many shapes that do not. Graphs fix their algorithm, so
 * the capture of an untuned plan is aborted and the plan is tuned at its next use. */
static void autotune_recurring(ses_cuda *gpu, plan *p, const ses_gemm *g)
{
    /* MIN_USES: uses before autotuning; MIN_ELEMS: enough elements of C to detect a different summation
     * order */
    enum { MIN_USES = 48, MIN_ELEMS = 1 << 16 };
    bool is_large = p->key.is_bf16 && g->m * g->n >= MIN_ELEMS, capturing = ses_cuda_graph_capturing(gpu);
    if (p->tuned || !is_large || !(capturing || p->tune_next || p->uses >= MIN_USES) || !within_budget(gpu))
        return;
    p->tune_next = capturing && ses_cuda_graph_abort(gpu);
    p->tuned = !capturing;
    if (capturing) return;
    double begin = seconds();
    ses_blas_autotune(gpu, p, g);
    gpu->blas->tuning_seconds += seconds() - begin;
}

static bool run_plan(ses_cuda *gpu, const ses_gemm *g, const plan_key *key)
{
    ses_blas *b = gpu->blas;
    ses_cuda_stream(gpu); /* sets the CUDA device before the library is called */
    pthread_mutex_lock(&gpu->lock);
    plan *p = plan_for(b, key);
    bool ok = !p->unsupported && set_pointers(b, p, g);
    p->uses++;
    if (ok) autotune_recurring(gpu, p, g);
    ok = ok && ses_blas_run(gpu, p, g, &p->algo, g->c);
    pthread_mutex_unlock(&gpu->lock);
    return ok;
}

static bool run_cublas(ses_cuda *gpu, const ses_gemm *g, bool is_bf16)
{
    plan_key key;
    return make_key(g, is_bf16, &key) && run_plan(gpu, g, &key);
}

/* ---- generic kernel for strides that cuBLASLt does not support ---- */

enum { SIDE = 16 };

template <class T> __global__ void product(ses_gemm g, dst<T> c)
{
    __shared__ float a[SIDE][SIDE + 1], b[SIDE][SIDE + 1];
    int64_t i = (int64_t)blockIdx.y * SIDE + threadIdx.y, j = (int64_t)blockIdx.x * SIDE + threadIdx.x;
    float sum = 0;
    for (int64_t p = 0; p < g.k; p += SIDE) {
        int64_t pa = p + threadIdx.x, pb = p + threadIdx.y;
        a[threadIdx.y][threadIdx.x] =
            i < g.m && pa < g.k ? to_float(((const T *)(const void *)g.a)[i * g.a_row + pa * g.a_col]) : 0;
        b[threadIdx.y][threadIdx.x] =
            j < g.n && pb < g.k ? to_float(((const T *)(const void *)g.b)[pb * g.b_row + j * g.b_col]) : 0;
        __syncthreads();
        for (int t = 0; t < SIDE; t++) sum += a[threadIdx.y][t] * b[t][threadIdx.x];
        __syncthreads();
    }
    if (i >= g.m || j >= g.n) return;
    if (g.bias) sum += to_float(((const T *)(const void *)g.bias)[j]);
    store(c, i * g.ldc + j, sum);
}

template <class T> static void run_generic(ses_cuda *gpu, const ses_gemm *g, T *c)
{
    dim3 grid((unsigned)ceil_div(g->n, SIDE), (unsigned)ceil_div(g->m, SIDE)), block(SIDE, SIDE);
    if (grid.y > 65535)
        return record_failure(gpu, "gemm: too many rows for strides that cuBLASLt does not support");
    dst<T> to = { c, g->accumulate, g->is_f32 };
    product<T><<<grid, block, 0, ses_cuda_stream(gpu)>>>(*g, to);
    check_launch(gpu);
}

/* ---- the kernels ---- */

/* cuBLASLt reads weights in either order: nothing is packed. */
static int64_t gemm_pack_size(int64_t n, int64_t k)
{
    (void)n, (void)k;
    return 0;
}

static void gemm_pack(ses_exec *x, void *packed, ses_dtype dtype, const ses_real *b, int64_t b_row,
                      int64_t b_col, int64_t n, int64_t k)
{
    (void)x, (void)packed, (void)dtype, (void)b, (void)b_row, (void)b_col, (void)n, (void)k;
}

/* cuBLASLt's GELU is the tanh approximation, at most 4.8e-4 from the erf form. bf16 rounds values near 1 by
 * 2e-3, so it serves for both. Rows of pre_act must be multiples of 8 elements. */
static bool fits_epilogue(const ses_gemm *g, bool is_bf16)
{
    if (!is_bf16 || g->is_f32 || g->accumulate) return false;
    if (g->act == SES_ACT_RELU) return !g->pre_act;
    bool gelu = g->act == SES_ACT_GELU || g->act == SES_ACT_GELU_TANH;
    return gelu && (!g->pre_act || (g->ldc % 8 == 0 && g->n % 8 == 0 && aligned16(g->pre_act)));
}

/* Activations that cuBLASLt lacks run as a second kernel. */
template <class T> static void gemm(ses_exec *x, const ses_gemm *g)
{
    const bool is_bf16 = sizeof(T) < sizeof(float);
    T *c = elems<T>(g->pre_act ? g->pre_act : g->c), *to = elems<T>(g->c);
    int64_t n = g->n, ldc = g->ldc;
    ses_act act = g->act;
    if (g->m <= 0 || g->n <= 0) return;
    if (fits_epilogue(g, is_bf16) && run_cublas(x->cuda, g, is_bf16)) return;
    ses_gemm plain = *g;
    plain.c = g->pre_act ? g->pre_act : g->c, plain.pre_act = NULL, plain.act = SES_ACT_NONE;
    if (!run_cublas(x->cuda, &plain, is_bf16)) run_generic<T>(x->cuda, &plain, c);
    if (c == to && act == SES_ACT_NONE) return;
    if (ldc == n) {
        act_fwd<T>(x, g->c, plain.c, g->m * n, act);
    } else {
        for_each_row(x, g->m, n, [=] __device__(int64_t row, int64_t j) {
            to[row * ldc + j] = from_float<T>(act_for<T>(act, to_float(c[row * ldc + j])));
        });
    }
}

/* The smaller alignment of an address and of `step` bytes. */
static uint8_t common_alignment(uint8_t of_address, int64_t step)
{
    uint8_t of_step = alignment((const void *)(uintptr_t)step);
    return of_step < of_address ? of_step : of_address;
}

/* All products as one of cuBLASLt. */
static bool run_batch(ses_cuda *gpu, const ses_gemm_batch *b, bool is_bf16)
{
    plan_key key;
    int64_t size = is_bf16 ? 2 : 4;
    if (!make_key(&b->g, is_bf16, &key) || b->count > INT32_MAX) return false;
    key.splits = b->count, key.split_a = b->a_step, key.split_b = b->b_step, key.split_c = b->c_step;
    key.align_a = common_alignment(key.align_a, size * b->a_step);
    key.align_b = common_alignment(key.align_b, size * b->b_step);
    key.align_c = common_alignment(key.align_c, size * b->c_step);
    if (b->d && alignment(b->d) < key.align_c) key.align_c = alignment(b->d);
    ses_cuda_stream(gpu);
    pthread_mutex_lock(&gpu->lock);
    plan *p = plan_for(gpu->blas, &key);
    p->uses++;
    bool ok = !p->unsupported && multiply(gpu, p, &b->g, &p->algo, (float)b->alpha, b->d ? (float)b->beta : 0,
                                          b->d ? b->d : b->g.c, b->g.c);
    pthread_mutex_unlock(&gpu->lock);
    return ok;
}

template <class T> static void gemm_batch(ses_exec *x, const ses_gemm_batch *b)
{
    const bool is_bf16 = sizeof(T) < sizeof(float);
    float alpha = (float)b->alpha, beta = (float)b->beta;
    int64_t n = b->g.n, ldc = b->g.ldc;
    if (b->count <= 0 || b->g.m <= 0 || n <= 0 || run_batch(x->cuda, b, is_bf16)) return;
    for (int64_t i = 0; i < b->count; i++) {
        ses_gemm one = b->g;
        T *c = elems<T>(b->g.c) + i * b->c_step;
        const T *d = b->d ? elems<T>(b->d) + i * b->c_step : NULL;
        one.a = (const ses_real *)(const void *)(elems<T>(b->g.a) + i * b->a_step);
        one.b = (const ses_real *)(const void *)(elems<T>(b->g.b) + i * b->b_step);
        one.c = (ses_real *)(void *)c;
        gemm<T>(x, &one);
        for_each_row(x, b->g.m, n, [=] __device__(int64_t row, int64_t j) {
            int64_t at = row * ldc + j;
            c[at] = from_float<T>(alpha * to_float(c[at]) + (d ? beta * to_float(d[at]) : 0));
        });
    }
}

void ses_gemm_split(ses_exec *x, const ses_gemm *g, int splits, int64_t c_stride, bool is_bf16)
{
    plan_key key;
    ses_gemm part = *g;
    int64_t size = is_bf16 ? 2 : 4;
    part.k = g->k / splits, part.is_f32 = true;
    if (splits > 1 && make_key(&part, is_bf16, &key)) {
        key.splits = splits, key.split_a = part.k * g->a_col, key.split_b = part.k * g->b_row;
        key.split_c = c_stride;
        if (run_plan(x->cuda, &part, &key)) return;
    }
    for (int s = 0; s < splits; s++) {
        is_bf16 ? gemm<bf16>(x, &part) : gemm<float>(x, &part);
        part.a = (const ses_real *)((const char *)part.a + part.k * g->a_col * size);
        part.b = (const ses_real *)((const char *)part.b + part.k * g->b_row * size);
        part.c += c_stride;
    }
}

void ses_cuda_gemm(ses_kernels *k, bool is_bf16)
{
    k->gemm_pack_size = gemm_pack_size, k->gemm_pack = gemm_pack;
    k->gemm = is_bf16 ? gemm<bf16> : gemm<float>;
    k->gemm_batch = is_bf16 ? gemm_batch<bf16> : gemm_batch<float>;
}
