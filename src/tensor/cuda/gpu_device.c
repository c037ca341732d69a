/* The CUDA module: GPU memory and the CUDA kernels of kernels.def, over the C API of the CUDA runtime. */
#include "tensor/cuda_module.h"

#include "base/alloc.h"
#include "kernel/cuda_context.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Small uploads go through a ring of pinned memory, so that the host neither waits nor needs to keep the
 * source. */
enum { STAGING_BYTES = 8 << 20, SMALL_UPLOAD = STAGING_BYTES / 4 };

struct ses_device_extra {
    pthread_mutex_t lock;
    char *staging;
    size_t used;
};

static cudaStream_t stream_of(ses_device *d) { return ses_cuda_stream(d->exec.cuda); }
static void record(ses_device *d, cudaError_t code) { ses_cuda_record(d->exec.cuda, code); }

static void *gpu_alloc(ses_device *d, size_t size, ses_err *e)
{
    void *p = NULL;
    size_t free_bytes = 0, total = 0;
    stream_of(d);
    if (ses_cuda_graph_abort(d->exec.cuda)) {
        ses_fail(e, SES_ENOMEM, "cannot allocate GPU memory during stream capture");
        return NULL;
    }
    cudaError_t code = cudaMalloc(&p, size ? size : 1);
    if (code == cudaSuccess) return p;
    /* clears the error, so that the next call does not report it again */
    cudaGetLastError();
    if (code != cudaErrorMemoryAllocation) { /* an earlier kernel failed; memory is not short */
        ses_fail(e, SES_EIO, "GPU: %s", cudaGetErrorString(code));
        return NULL;
    }
    cudaMemGetInfo(&free_bytes, &total);
    ses_fail(e, SES_ENOMEM,
             "out of GPU memory: %zu bytes requested, %zu of %zu free; reduce the batch size, or train "
             "with gradient checkpointing (recompute)",
             size, free_bytes, total);
    return NULL;
}

static void gpu_free(ses_device *d, void *p)
{
    cudaStreamSynchronize(stream_of(d)); /* queued work may still use it */
    cudaFree(p);
    ses_cuda_memory_freed(d->exec.cuda);
}

static void gpu_zero(ses_device *d, void *p, size_t size)
{
    record(d, cudaMemsetAsync(p, 0, size, stream_of(d)));
}

static void gpu_upload(ses_device *d, void *to, const void *host, size_t size)
{
    ses_device_extra *x = d->extra;
    cudaStream_t stream = stream_of(d);
    if (ses_cuda_graph_abort(d->exec.cuda)) return;
    if (size > SMALL_UPLOAD) {
        record(d, cudaMemcpyAsync(to, host, size, cudaMemcpyHostToDevice, stream));
        record(d, cudaStreamSynchronize(stream));
        return;
    }
    pthread_mutex_lock(&x->lock);
    if (size > STAGING_BYTES - x->used) { /* full: wait until all copies are done, then start over */
        record(d, cudaStreamSynchronize(stream));
        x->used = 0;
    }
    memcpy(x->staging + x->used, host, size);
    record(d, cudaMemcpyAsync(to, x->staging + x->used, size, cudaMemcpyHostToDevice, stream));
    x->used += (size + SES_ALIGN - 1) / SES_ALIGN * SES_ALIGN;
    if (x->used > STAGING_BYTES) x->used = STAGING_BYTES;
    pthread_mutex_unlock(&x->lock);
}

static void gpu_download(ses_device *d, void *host, const void *from, size_t size)
{
    cudaStream_t stream = stream_of(d);
    if (ses_cuda_graph_abort(d->exec.cuda)) {
        memset(host, 0, size);
        return;
    }
    record(d, cudaMemcpyAsync(host, from, size, cudaMemcpyDeviceToHost, stream));
    record(d, cudaStreamSynchronize(stream));
}

static void copy(ses_device *d, void *to, const void *from, size_t size)
{
    record(d, cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, stream_of(d)));
}

/* Overlapping regions go through a temporary buffer. */
static void gpu_move(ses_device *d, void *to, const void *from, size_t size)
{
    void *temp = NULL;
    uintptr_t a = (uintptr_t)to, b = (uintptr_t)from, missing = a > b ? a - b : b - a;
    if (!missing || !size) return;
    if (missing >= size) {
        copy(d, to, from, size);
        return;
    }
    if (ses_cuda_graph_abort(d->exec.cuda)) return;
    record(d, cudaMallocAsync(&temp, size, stream_of(d)));
    if (!temp) return;
    copy(d, temp, from, size);
    copy(d, to, temp, size);
    record(d, cudaFreeAsync(temp, stream_of(d)));
}

static void gpu_to_bf16(ses_device *d, void *to, const ses_real *from, int64_t n)
{
    ses_cuda_to_bf16(d->exec.cuda, to, from, n);
}

static size_t gpu_used_bytes(ses_device *d)
{
    size_t free_bytes = 0, total = 0;
    stream_of(d);
    record(d, cudaMemGetInfo(&free_bytes, &total));
    return total - free_bytes;
}

static bool graph_begin(ses_device *d) { return ses_cuda_graph_begin(d->exec.cuda); }
static void *graph_end(ses_device *d) { return ses_cuda_graph_end(d->exec.cuda); }
static uint64_t graph_free_epoch(ses_device *d) { return ses_cuda_free_epoch(d->exec.cuda); }

static bool graph_run(ses_device *d, void *graph, uint64_t free_epoch)
{
    return ses_cuda_graph_run(d->exec.cuda, graph, free_epoch);
}

static void graph_free(ses_device *d, void *graph)
{
    cudaStreamSynchronize(stream_of(d));
    cudaGraphExecDestroy(graph);
}

static const ses_device_graphs graphs = { .begin = graph_begin,
                                          .end = graph_end,
                                          .run = graph_run,
                                          .free = graph_free,
                                          .free_epoch = graph_free_epoch };

static bool gpu_ok(ses_device *d, ses_err *e) { return ses_cuda_ok(d->exec.cuda, e); }

static void gpu_close(ses_device *d)
{
    ses_cuda_free(d->exec.cuda);
    if (!d->extra) return;
    cudaFreeHost(d->extra->staging);
    pthread_mutex_destroy(&d->extra->lock);
    ses_free(d->extra);
}

/* ---- a stream for transfers ---- */

typedef struct transfers {
    cudaStream_t stream;
    cudaEvent_t event;
} transfers;

static void streams_close(ses_device *d, void *stream)
{
    transfers *t = stream;
    stream_of(d);
    if (t->event) cudaEventDestroy(t->event);
    if (t->stream) cudaStreamDestroy(t->stream);
    ses_free(t);
}

static void *streams_open(ses_device *d, ses_err *e)
{
    int least = 0, greatest = 0;
    transfers *t = ses_alloc(sizeof *t, e);
    if (!t) return NULL;
    stream_of(d);
    cudaError_t code = cudaDeviceGetStreamPriorityRange(&least, &greatest);
    if (code == cudaSuccess) code = cudaStreamCreateWithPriority(&t->stream, cudaStreamNonBlocking, greatest);
    if (code == cudaSuccess) code = cudaEventCreateWithFlags(&t->event, cudaEventDisableTiming);
    if (code == cudaSuccess) return t;
    ses_fail(e, SES_EIO, "GPU: %s", cudaGetErrorString(code));
    streams_close(d, t);
    return NULL;
}

static void *streams_handle(void *stream) { return ((transfers *)stream)->stream; }

static void streams_after_device(ses_device *d, void *stream)
{
    transfers *t = stream;
    record(d, cudaEventRecord(t->event, stream_of(d)));
    record(d, cudaStreamWaitEvent(t->stream, t->event, 0));
}

static void streams_before_device(ses_device *d, void *stream)
{
    transfers *t = stream;
    cudaStream_t main_stream = stream_of(d);
    record(d, cudaEventRecord(t->event, t->stream));
    record(d, cudaStreamWaitEvent(main_stream, t->event, 0));
}

static bool streams_is_busy(ses_device *d, void *stream)
{
    transfers *t = stream;
    stream_of(d);
    cudaError_t code = cudaStreamQuery(t->stream);
    if (code == cudaErrorNotReady) {
        cudaGetLastError(); /* it is not an error */
        return true;
    }
    record(d, code);
    return false;
}

static const ses_device_streams streams = { .open = streams_open,
                                            .close = streams_close,
                                            .handle = streams_handle,
                                            .after_device = streams_after_device,
                                            .before_device = streams_before_device,
                                            .is_busy = streams_is_busy };

static const ses_device_memory memory = {
    .alloc = gpu_alloc,
    .free = gpu_free,
    .zero = gpu_zero,
    .upload = gpu_upload,
    .download = gpu_download,
    .move = gpu_move,
    .to_bf16 = gpu_to_bf16,
    .used_bytes = gpu_used_bytes,
    .ok = gpu_ok,
    .graphs = &graphs,
    .streams = &streams,
    .close = gpu_close,
};

static bool describe(int i, ses_gpu *out)
{
    struct cudaDeviceProp p;
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || i >= count ||
        cudaGetDeviceProperties(&p, i) != cudaSuccess)
        return false;
    *out = (ses_gpu){ .major = p.major,
                      .minor = p.minor,
                      .sm_count = p.multiProcessorCount,
                      .memory_bytes = p.totalGlobalMem };
    snprintf(out->name, sizeof out->name, "%s", p.name);
    return true;
}

static bool open_staging(ses_device *d, ses_err *e)
{
    d->extra = ses_alloc(sizeof *d->extra, e);
    if (!d->extra) return false;
    pthread_mutex_init(&d->extra->lock, NULL);
    if (cudaMallocHost((void **)&d->extra->staging, STAGING_BYTES) == cudaSuccess) return true;
    return ses_fail(e, SES_ENOMEM, "%s", cudaGetErrorString(cudaGetLastError()));
}

static bool open_gpu(ses_device *d, int index, const ses_device_options *o, ses_err *e)
{
    d->mem = &memory;
    d->isa = SES_ISA_REF;
    d->weight_dtype = SES_REAL;
    d->activation_dtype = o->dtype;
    d->k = ses_kernels_cuda(o->dtype == SES_BF16);
    d->k_f32 = ses_kernels_cuda(false);
    if (cudaDeviceGetPCIBusId(d->pci_bus_id, sizeof d->pci_bus_id, index) != cudaSuccess)
        snprintf(d->pci_bus_id, sizeof d->pci_bus_id, "unknown");
    d->exec.cuda = ses_cuda_new(index, o->autotune_eagerly, e);
    return d->exec.cuda && open_staging(d, e);
}

const ses_cuda_module ses_cuda_entry = { .abi = SES_CUDA_ABI, .describe = describe, .open = open_gpu };
