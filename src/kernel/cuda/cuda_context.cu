/* CUDA context of one GPU: opening, stream capture, errors, scratch memory. */
#include "cuda_common.cuh"

#include <stdlib.h>

enum { SCRATCH = 64 << 20 }; /* initial bytes */

ses_cuda *ses_cuda_new(int index, bool autotune_eagerly, ses_err *e)
{
    ses_cuda *g = (ses_cuda *)calloc(1, sizeof *g);
    if (!g) return ses_fail(e, SES_ENOMEM, "out of memory"), (ses_cuda *)NULL;
    g->index = index;
    g->autotune_eagerly = autotune_eagerly;
    pthread_mutex_init(&g->lock, NULL);
    pthread_mutex_init(&g->capture_lock, NULL);
    cudaError_t code = cudaSetDevice(index);
    if (!code) code = cudaStreamCreateWithFlags(&g->stream, cudaStreamNonBlocking);
    if (!code) code = cudaStreamCreateWithFlags(&g->capture_stream, cudaStreamNonBlocking);
    if (!code) code = cudaDeviceGetAttribute(&g->sm_count, cudaDevAttrMultiProcessorCount, index);
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
    if (g->capture_stream) cudaStreamDestroy(g->capture_stream);
    pthread_mutex_destroy(&g->lock);
    pthread_mutex_destroy(&g->capture_lock);
    free(g);
}

bool ses_cuda_graph_capturing(const ses_cuda *g)
{
    /* only this thread writes its own id */
    return __atomic_load_n(&g->capturer, __ATOMIC_RELAXED) == pthread_self();
}

cudaStream_t ses_cuda_stream(ses_cuda *g)
{
    cudaSetDevice(g->index);
    return ses_cuda_graph_capturing(g) ? g->capture_stream : g->stream;
}

static cudaError_t first_error(const ses_cuda *g)
{
    return (cudaError_t)__atomic_load_n(&g->failed, __ATOMIC_ACQUIRE);
}

/* ---- stream capture ---- */

bool ses_cuda_graph_begin(ses_cuda *g)
{
    if (first_error(g) || pthread_mutex_trylock(&g->capture_lock)) return false;
    cudaSetDevice(g->index);
    if (cudaStreamBeginCapture(g->capture_stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess) {
        cudaGetLastError();
        pthread_mutex_unlock(&g->capture_lock);
        return false;
    }
    g->aborted = false;
    __atomic_store_n(&g->capturer, pthread_self(), __ATOMIC_RELAXED);
    return true;
}

cudaGraphExec_t ses_cuda_graph_end(ses_cuda *g)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    __atomic_store_n(&g->capturer, 0, __ATOMIC_RELAXED);
    cudaError_t code = cudaStreamEndCapture(g->capture_stream, &graph);
    bool ok = !code && graph && !g->aborted && !first_error(g);
    if (ok && cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess) exec = NULL;
    if (graph) cudaGraphDestroy(graph);
    if (!exec) cudaGetLastError(); /* nothing was executed, so nothing has failed */
    pthread_mutex_unlock(&g->capture_lock);
    return exec;
}

/* Takes the lock: a graph must not run between the launches of another thread's kernel, which may use or
 * reallocate the scratch memory. */
bool ses_cuda_graph_run(ses_cuda *g, cudaGraphExec_t graph, uint64_t free_epoch)
{
    cudaSetDevice(g->index);
    pthread_mutex_lock(&g->lock);
    bool same = ses_cuda_free_epoch(g) == free_epoch;
    if (same) ses_cuda_record(g, cudaGraphLaunch(graph, g->stream));
    pthread_mutex_unlock(&g->lock);
    return same;
}

bool ses_cuda_graph_abort(ses_cuda *g)
{
    bool capturing = ses_cuda_graph_capturing(g);
    if (capturing) g->aborted = true;
    return capturing;
}

void ses_cuda_memory_freed(ses_cuda *g) { __atomic_add_fetch(&g->free_epoch, 1, __ATOMIC_RELAXED); }
uint64_t ses_cuda_free_epoch(const ses_cuda *g) { return __atomic_load_n(&g->free_epoch, __ATOMIC_RELAXED); }

/* ---- errors ---- */

/* A failure during capture aborts the capture only. */
void ses_cuda_record(ses_cuda *g, cudaError_t code)
{
    int none = cudaSuccess;
    if (code && !ses_cuda_graph_abort(g))
        __atomic_compare_exchange_n(&g->failed, &none, (int)code, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

void record_failure(ses_cuda *g, const char *message)
{
    const char *none = NULL;
    if (ses_cuda_graph_abort(g)) return;
    __atomic_compare_exchange_n(&g->message, &none, message, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    ses_cuda_record(g, cudaErrorUnknown);
}

bool ses_cuda_ok(ses_cuda *g, ses_err *e)
{
    ses_cuda_record(g, cudaGetLastError());
    cudaError_t code = first_error(g);
    if (!code) return true;
    const char *message = __atomic_load_n(&g->message, __ATOMIC_RELAXED);
    return ses_fail(e, SES_EIO, "GPU: %s", message ? message : cudaGetErrorString(code));
}

void *scratch_lock(ses_cuda *g, size_t bytes)
{
    pthread_mutex_lock(&g->lock);
    if (g->scratch && bytes <= g->scratch_size) return g->scratch;
    if (!bytes) bytes = 1; /* NULL means out of memory */
    if (ses_cuda_graph_abort(g)) {
        pthread_mutex_unlock(&g->lock);
        return NULL;
    }
    ses_cuda_memory_freed(g);
    cudaStreamSynchronize(g->stream);
    cudaFree(g->scratch);
    g->scratch = NULL;
    g->scratch_size = 0;
    if (cudaMalloc(&g->scratch, bytes) == cudaSuccess) {
        g->scratch_size = bytes;
        return g->scratch;
    }
    cudaGetLastError();
    record_failure(g, "out of GPU memory for scratch space; reduce the batch size");
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

void scratch_unlock(ses_cuda *g) { pthread_mutex_unlock(&g->lock); }

ses_kernels ses_kernels_cuda(bool is_bf16)
{
    ses_kernels k = {};
    ses_cuda_additive(&k, is_bf16);
    ses_cuda_attention(&k, is_bf16);
    ses_cuda_copy_loss(&k, is_bf16);
    ses_cuda_crf(&k, is_bf16);
    ses_cuda_sample(&k, is_bf16);
    ses_cuda_elementwise(&k, is_bf16);
    ses_cuda_fake_quantize(&k, is_bf16);
    ses_cuda_gather(&k, is_bf16);
    ses_cuda_gemm(&k, is_bf16);
    ses_cuda_loss(&k, is_bf16);
    ses_cuda_teacher_loss(&k, is_bf16);
    ses_cuda_muon(&k, is_bf16);
    ses_cuda_norm(&k, is_bf16);
    ses_cuda_optim(&k);
    ses_cuda_block(&k);
    ses_cuda_reduce(&k, is_bf16);
    ses_cuda_relative(&k, is_bf16);
    ses_cuda_rms(&k, is_bf16);
    ses_cuda_batch_norm(&k, is_bf16);
    ses_cuda_rnn(&k, is_bf16);
    ses_cuda_rotary(&k, is_bf16);
    ses_cuda_softmax(&k, is_bf16);
    ses_cuda_glove(&k);
    ses_cuda_word_rounds(&k);
    return k;
}
