/* Opening a GPU, its failures and its scratch. */
#include "cuda_common.cuh"

#include <stdlib.h>

enum { SCRATCH = 64 << 20 }; /* bytes to begin with */

ses_cuda *ses_cuda_new(int index, bool steady, ses_err *e)
{
    ses_cuda *g = (ses_cuda *)calloc(1, sizeof *g);
    if (!g) return ses_fail(e, SES_ENOMEM, "out of memory"), (ses_cuda *)NULL;
    g->index = index;
    g->steady = steady;
    pthread_mutex_init(&g->lock, NULL);
    pthread_mutex_init(&g->making, NULL);
    cudaError_t code = cudaSetDevice(index);
    if (!code) code = cudaStreamCreateWithFlags(&g->stream, cudaStreamNonBlocking);
    if (!code) code = cudaStreamCreateWithFlags(&g->side, cudaStreamNonBlocking);
    if (!code) code = cudaDeviceGetAttribute(&g->cores, cudaDevAttrMultiProcessorCount, index);
    if (!code) code = cudaDeviceGetAttribute(&g->major, cudaDevAttrComputeCapabilityMajor, index);
    if (!code) code = cudaMalloc(&g->scratch, SCRATCH);
    if (!code) g->scratch_size = SCRATCH;
    if (code) ses_fail(e, SES_EIO, "%s", cudaGetErrorString(code));
    if (!code && ses_blas_open(g, e)) return g;
    ses_cuda_free(g);
    return NULL;
}

void ses_cuda_free(ses_cuda *g)
{
    if (!g) return;
    cudaSetDevice(g->index);
    if (g->stream) cudaStreamSynchronize(g->stream);
    ses_blas_free(g->blas);
    cudaFree(g->scratch);
    if (g->stream) cudaStreamDestroy(g->stream);
    if (g->side) cudaStreamDestroy(g->side);
    pthread_mutex_destroy(&g->lock);
    pthread_mutex_destroy(&g->making);
    free(g);
}

bool ses_cuda_graph_making(const ses_cuda *g)
{
    return __atomic_load_n(&g->maker, __ATOMIC_RELAXED) == pthread_self(); /* nobody else writes this one's */
}

cudaStream_t ses_cuda_stream(ses_cuda *g)
{
    cudaSetDevice(g->index);
    return ses_cuda_graph_making(g) ? g->side : g->stream;
}

static cudaError_t failure(const ses_cuda *g)
{
    return (cudaError_t)__atomic_load_n(&g->failed, __ATOMIC_ACQUIRE);
}

/* ---- graphs ---- */

bool ses_cuda_graph_begin(ses_cuda *g)
{
    if (failure(g) || pthread_mutex_trylock(&g->making)) return false;
    cudaSetDevice(g->index);
    if (cudaStreamBeginCapture(g->side, cudaStreamCaptureModeThreadLocal) != cudaSuccess) {
        cudaGetLastError();
        pthread_mutex_unlock(&g->making);
        return false;
    }
    g->spoiled = false;
    __atomic_store_n(&g->maker, pthread_self(), __ATOMIC_RELAXED);
    return true;
}

cudaGraphExec_t ses_cuda_graph_end(ses_cuda *g)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t ready = NULL;
    __atomic_store_n(&g->maker, 0, __ATOMIC_RELAXED);
    cudaError_t code = cudaStreamEndCapture(g->side, &graph);
    bool ok = !code && graph && !g->spoiled && !failure(g);
    if (ok && cudaGraphInstantiate(&ready, graph, 0) != cudaSuccess) ready = NULL;
    if (graph) cudaGraphDestroy(graph);
    if (!ready) cudaGetLastError(); /* nothing of it has run: nothing has failed */
    pthread_mutex_unlock(&g->making);
    return ready;
}

/* Not between the launches of another thread's kernel, which may use the scratch, or get a larger one. */
bool ses_cuda_graph_run(ses_cuda *g, cudaGraphExec_t graph, uint64_t moves)
{
    cudaSetDevice(g->index);
    pthread_mutex_lock(&g->lock);
    bool same = ses_cuda_moves(g) == moves;
    if (same) ses_cuda_note(g, cudaGraphLaunch(graph, g->stream));
    pthread_mutex_unlock(&g->lock);
    return same;
}

bool ses_cuda_graph_spoil(ses_cuda *g)
{
    bool mine = ses_cuda_graph_making(g);
    if (mine) g->spoiled = true;
    return mine;
}

void ses_cuda_moved(ses_cuda *g) { __atomic_add_fetch(&g->moves, 1, __ATOMIC_RELAXED); }
uint64_t ses_cuda_moves(const ses_cuda *g) { return __atomic_load_n(&g->moves, __ATOMIC_RELAXED); }

/* ---- failures ---- */

/* What fails in the making of a graph spoils that alone. */
void ses_cuda_note(ses_cuda *g, cudaError_t code)
{
    int none = cudaSuccess;
    if (code && !ses_cuda_graph_spoil(g))
        __atomic_compare_exchange_n(&g->failed, &none, (int)code, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

void fail(ses_cuda *g, const char *why)
{
    const char *none = NULL;
    if (ses_cuda_graph_spoil(g)) return;
    __atomic_compare_exchange_n(&g->why, &none, why, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    ses_cuda_note(g, cudaErrorUnknown);
}

bool ses_cuda_ok(ses_cuda *g, ses_err *e)
{
    ses_cuda_note(g, cudaGetLastError());
    cudaError_t code = failure(g);
    if (!code) return true;
    const char *why = __atomic_load_n(&g->why, __ATOMIC_RELAXED);
    return ses_fail(e, SES_EIO, "GPU: %s", why ? why : cudaGetErrorString(code));
}

void *scratch_lock(ses_cuda *g, size_t bytes)
{
    pthread_mutex_lock(&g->lock);
    if (g->scratch && bytes <= g->scratch_size) return g->scratch;
    if (!bytes) bytes = 1; /* NULL says that there is none */
    if (ses_cuda_graph_spoil(g)) {
        pthread_mutex_unlock(&g->lock);
        return NULL;
    }
    ses_cuda_moved(g);
    cudaStreamSynchronize(g->stream);
    cudaFree(g->scratch);
    g->scratch = NULL;
    g->scratch_size = 0;
    if (cudaMalloc(&g->scratch, bytes) == cudaSuccess) {
        g->scratch_size = bytes;
        return g->scratch;
    }
    cudaGetLastError();
    fail(g, "out of memory for a kernel's scratch; a smaller batch needs less");
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

void scratch_unlock(ses_cuda *g) { pthread_mutex_unlock(&g->lock); }

ses_kernels ses_kernels_cuda(bool narrow)
{
    ses_kernels k = {};
    ses_cuda_attention(&k, narrow);
    ses_cuda_draw(&k, narrow);
    ses_cuda_elementwise(&k, narrow);
    ses_cuda_gather(&k, narrow);
    ses_cuda_gemm(&k, narrow);
    ses_cuda_loss(&k, narrow);
    ses_cuda_match(&k, narrow);
    ses_cuda_norm(&k, narrow);
    ses_cuda_optim(&k);
    ses_cuda_reduce(&k, narrow);
    ses_cuda_relative(&k, narrow);
    ses_cuda_rms(&k, narrow);
    ses_cuda_rotary(&k, narrow);
    ses_cuda_softmax(&k, narrow);
    return k;
}
