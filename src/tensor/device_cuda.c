/* An NVIDIA GPU: its memory, and the cuda column of kernels.def. A device opens only when that column has
 * no gap, so nothing ever falls back to the host. Built with SESAME_CUDA; the runtime's C interface is
 * all it needs. */
#include "device_impl.h"

#ifdef SES_CUDA

#include "base/alloc.h"
#include "base/thread_pool.h"
#include "kernel/cuda_context.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Small uploads go by way of pinned memory that is used in turns, so that nobody waits for the GPU: the
 * host's memory may go as soon as an upload returns. */
enum { STAGING = 8 << 20, SMALL = STAGING / 4 };

struct ses_device_extra {
    pthread_mutex_t lock;
    char *staging;
    size_t used;
};

static cudaStream_t stream_of(ses_device *d) { return ses_cuda_stream(d->exec.cuda); }
static void note(ses_device *d, cudaError_t code) { ses_cuda_note(d->exec.cuda, code); }

static void *gpu_alloc(ses_device *d, size_t size, ses_err *e)
{
    void *p = NULL;
    size_t free_bytes = 0, total = 0;
    stream_of(d);
    if (ses_cuda_graph_spoil(d->exec.cuda)) {
        ses_fail(e, SES_ENOMEM, "a graph cannot ask for memory");
        return NULL;
    }
    cudaError_t code = cudaMalloc(&p, size ? size : 1);
    if (code == cudaSuccess) return p;
    cudaGetLastError();                      /* the failure is told here, not at the next call */
    if (code != cudaErrorMemoryAllocation) { /* of a kernel before: there is memory */
        ses_fail(e, SES_EIO, "GPU: %s", cudaGetErrorString(code));
        return NULL;
    }
    cudaMemGetInfo(&free_bytes, &total);
    ses_fail(e, SES_ENOMEM,
             "out of GPU memory: %zu bytes wanted, %zu of %zu free; a smaller batch needs less, training "
             "with --recompute too",
             size, free_bytes, total);
    return NULL;
}

static void gpu_free(ses_device *d, void *p)
{
    cudaStreamSynchronize(stream_of(d)); /* what still runs may use it */
    cudaFree(p);
    ses_cuda_moved(d->exec.cuda);
}

static void gpu_zero(ses_device *d, void *p, size_t size)
{
    note(d, cudaMemsetAsync(p, 0, size, stream_of(d)));
}

static void gpu_upload(ses_device *d, void *to, const void *host, size_t size)
{
    ses_device_extra *x = d->extra;
    cudaStream_t stream = stream_of(d);
    if (ses_cuda_graph_spoil(d->exec.cuda)) return;
    if (size > SMALL) {
        note(d, cudaMemcpyAsync(to, host, size, cudaMemcpyHostToDevice, stream));
        note(d, cudaStreamSynchronize(stream));
        return;
    }
    pthread_mutex_lock(&x->lock);
    if (size > STAGING - x->used) { /* all taken: wait until it has gone over, and begin again */
        note(d, cudaStreamSynchronize(stream));
        x->used = 0;
    }
    memcpy(x->staging + x->used, host, size);
    note(d, cudaMemcpyAsync(to, x->staging + x->used, size, cudaMemcpyHostToDevice, stream));
    x->used += (size + SES_ALIGN - 1) / SES_ALIGN * SES_ALIGN;
    if (x->used > STAGING) x->used = STAGING;
    pthread_mutex_unlock(&x->lock);
}

static void gpu_download(ses_device *d, void *host, const void *from, size_t size)
{
    cudaStream_t stream = stream_of(d);
    if (ses_cuda_graph_spoil(d->exec.cuda)) {
        memset(host, 0, size);
        return;
    }
    note(d, cudaMemcpyAsync(host, from, size, cudaMemcpyDeviceToHost, stream));
    note(d, cudaStreamSynchronize(stream));
}

static void copy(ses_device *d, void *to, const void *from, size_t size)
{
    note(d, cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, stream_of(d)));
}

/* Where the regions overlap, by way of a buffer of their own. */
static void gpu_move(ses_device *d, void *to, const void *from, size_t size)
{
    void *between = NULL;
    uintptr_t a = (uintptr_t)to, b = (uintptr_t)from, gap = a > b ? a - b : b - a;
    if (!gap || !size) return;
    if (gap >= size) {
        copy(d, to, from, size);
        return;
    }
    if (ses_cuda_graph_spoil(d->exec.cuda)) return;
    note(d, cudaMallocAsync(&between, size, stream_of(d)));
    if (!between) return;
    copy(d, between, from, size);
    copy(d, to, between, size);
    note(d, cudaFreeAsync(between, stream_of(d)));
}

static void gpu_narrow(ses_device *d, void *to, const ses_real *from, int64_t n)
{
    ses_cuda_narrow(d->exec.cuda, to, from, n);
}

static size_t gpu_used(ses_device *d)
{
    size_t free_bytes = 0, total = 0;
    stream_of(d);
    note(d, cudaMemGetInfo(&free_bytes, &total));
    return total - free_bytes;
}

static bool graph_begin(ses_device *d) { return ses_cuda_graph_begin(d->exec.cuda); }
static void *graph_end(ses_device *d) { return ses_cuda_graph_end(d->exec.cuda); }
static uint64_t graph_moves(ses_device *d) { return ses_cuda_moves(d->exec.cuda); }

static bool graph_run(ses_device *d, void *graph, uint64_t moves)
{
    return ses_cuda_graph_run(d->exec.cuda, graph, moves);
}

static void graph_free(ses_device *d, void *graph)
{
    cudaStreamSynchronize(stream_of(d));
    cudaGraphExecDestroy(graph);
}

static const ses_device_graphs graphs = {
    .begin = graph_begin, .end = graph_end, .run = graph_run, .free = graph_free, .moves = graph_moves
};

static bool gpu_ok(ses_device *d, ses_err *e) { return ses_cuda_ok(d->exec.cuda, e); }

static void gpu_close(ses_device *d)
{
    ses_thread_pool_free(d->exec.pool);
    ses_cuda_free(d->exec.cuda);
    if (!d->extra) return;
    cudaFreeHost(d->extra->staging);
    pthread_mutex_destroy(&d->extra->lock);
    ses_free(d->extra);
}

static const ses_device_memory memory = {
    .alloc = gpu_alloc,
    .free = gpu_free,
    .zero = gpu_zero,
    .upload = gpu_upload,
    .download = gpu_download,
    .move = gpu_move,
    .narrow = gpu_narrow,
    .used = gpu_used,
    .ok = gpu_ok,
    .graphs = &graphs,
    .close = gpu_close,
};

bool ses_gpu_describe(int i, ses_gpu *out)
{
    struct cudaDeviceProp p;
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || i >= count ||
        cudaGetDeviceProperties(&p, i) != cudaSuccess)
        return false;
    *out = (ses_gpu){
        .major = p.major, .minor = p.minor, .cores = p.multiProcessorCount, .memory = p.totalGlobalMem
    };
    snprintf(out->name, sizeof out->name, "%s", p.name);
    return true;
}

/* "cuda" is the first GPU, "cuda:N" number N; -1: neither. */
static int index_of(const char *name)
{
    char *end;
    if (!strcmp(name, "cuda")) return 0;
    if (name[4] != ':' || name[5] < '0' || name[5] > '9') return -1;
    long i = strtol(name + 5, &end, 10);
    return *end || i > 1024 ? -1 : (int)i;
}

static bool stage(ses_device *d, ses_err *e)
{
    d->extra = ses_alloc(sizeof *d->extra, e);
    if (!d->extra) return false;
    pthread_mutex_init(&d->extra->lock, NULL);
    if (cudaMallocHost((void **)&d->extra->staging, STAGING) == cudaSuccess) return true;
    return ses_fail(e, SES_ENOMEM, "%s", cudaGetErrorString(cudaGetLastError()));
}

bool ses_device_open_cuda(ses_device *d, const ses_device_options *o, ses_err *e)
{
    ses_gpu gpu;
    int index = index_of(d->name);
    bool narrow = o->dtype == SES_BF16;
    if (index < 0) return ses_fail(e, SES_EARG, "expected cuda or cuda:NUMBER");
    if (!narrow && o->dtype != SES_F32)
        return ses_fail(e, SES_EUNSUPPORTED, "%s is not computed in; f32 and bf16 are",
                        ses_dtype_name(o->dtype));
    if (!ses_gpu_describe(index, &gpu))
        return ses_fail(e, SES_EARG, "no such GPU: `sesame doctor` shows what is there");
    d->mem = &memory;
    d->isa = SES_ISA_REF;
    d->dtype = SES_REAL;
    d->real = o->dtype;
    d->k = ses_kernels_cuda(narrow);
    d->wide = ses_kernels_cuda(false);
    const char *gap = ses_kernels_missing(&d->k);
    if (gap) return ses_fail(e, SES_EUNSUPPORTED, "kernel \"%s\" has no CUDA variant: use cpu", gap);
    d->exec.cuda = ses_cuda_new(index, o->steady, e);
    if (!d->exec.cuda || !stage(d, e)) return false;
    /* For what the host prepares. */
    d->exec.pool = ses_thread_pool_new(o->threads ? o->threads : ses_cpu_count(), e);
    return d->exec.pool != NULL;
}

#else

bool ses_gpu_describe(int i, ses_gpu *out)
{
    (void)i, (void)out;
    return false;
}

bool ses_device_open_cuda(ses_device *d, const ses_device_options *o, ses_err *e)
{
    (void)d, (void)o;
    return ses_fail(e, SES_EUNSUPPORTED, "this build has no CUDA: use cpu");
}

#endif
