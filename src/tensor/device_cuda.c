/* An NVIDIA GPU: its memory, and the cuda column of kernels.def. A device opens only when that column has
 * no gap, so nothing ever falls back to the host. Built with SESAME_CUDA; the runtime's C interface is
 * all it needs. */
#include "device.h"

#ifdef SES_CUDA

#include "base/alloc.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

static void *gpu_alloc(ses_device *d, size_t size, ses_err *e)
{
    void *p = NULL;
    size_t free_bytes = 0, total = 0;
    (void)d;
    if (cudaMalloc(&p, size ? size : 1) == cudaSuccess) return p;
    cudaGetLastError(); /* the failure is told here, not at the next call */
    cudaMemGetInfo(&free_bytes, &total);
    ses_fail(e, SES_ENOMEM,
             "out of GPU memory: %zu bytes wanted, %zu of %zu free; a smaller batch needs less", size,
             free_bytes, total);
    return NULL;
}

static void gpu_free(ses_device *d, void *p)
{
    (void)d;
    cudaFree(p);
}

static void gpu_zero(ses_device *d, void *p, size_t size) { cudaMemsetAsync(p, 0, size, d->exec.stream); }

static void gpu_upload(ses_device *d, void *to, const void *host, size_t size)
{
    cudaMemcpyAsync(to, host, size, cudaMemcpyHostToDevice, d->exec.stream);
    cudaStreamSynchronize(d->exec.stream); /* the host's memory may go as soon as this returns */
}

static void gpu_download(ses_device *d, void *host, const void *from, size_t size)
{
    cudaMemcpyAsync(host, from, size, cudaMemcpyDeviceToHost, d->exec.stream);
    cudaStreamSynchronize(d->exec.stream);
}

/* The regions may overlap: by way of a buffer of their own. */
static void gpu_move(ses_device *d, void *to, const void *from, size_t size)
{
    void *between = NULL;
    if (to == from || cudaMallocAsync(&between, size, d->exec.stream) != cudaSuccess) return;
    cudaMemcpyAsync(between, from, size, cudaMemcpyDeviceToDevice, d->exec.stream);
    cudaMemcpyAsync(to, between, size, cudaMemcpyDeviceToDevice, d->exec.stream);
    cudaFreeAsync(between, d->exec.stream);
}

static void gpu_close(ses_device *d)
{
    if (d->exec.stream) cudaStreamDestroy(d->exec.stream);
}

static const ses_device_memory memory = {
    .alloc = gpu_alloc,
    .free = gpu_free,
    .zero = gpu_zero,
    .upload = gpu_upload,
    .download = gpu_download,
    .move = gpu_move,
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

bool ses_device_open_cuda(ses_device *d, const ses_device_options *o, ses_err *e)
{
    size_t n;
    ses_gpu gpu;
    const ses_kernel_info *k = ses_kernel_list(&n);
    long index = d->name[4] == ':' ? strtol(d->name + 5, NULL, 10) : 0;
    (void)o;
    if (!ses_gpu_describe((int)index, &gpu)) return ses_fail(e, SES_EARG, "no such GPU");
    for (size_t i = 0; i < n; i++)
        if (!k[i].cuda)
            return ses_fail(e, SES_EUNSUPPORTED,
                            "%s is there, but kernel \"%s\" has no CUDA variant yet: use cpu", gpu.name,
                            k[i].name);
    d->mem = &memory;
    if (cudaSetDevice((int)index) != cudaSuccess ||
        cudaStreamCreate((cudaStream_t *)&d->exec.stream) != cudaSuccess)
        return ses_fail(e, SES_EIO, "%s", cudaGetErrorString(cudaGetLastError()));
    return true;
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
