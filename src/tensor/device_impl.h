/* Implementation of devices: a vtable for memory, a kernel table and the execution resources of kernels.
 * A device is immutable after opening and may be shared between threads. */
#ifndef SES_TENSOR_DEVICE_IMPL_H
#define SES_TENSOR_DEVICE_IMPL_H

#include "base/arena.h"
#include "kernel/kernel.h"
#include "sesame/base.h"
#include "sesame/unstable/tensor.h"

/* Stream capture. Work that the calling thread queues between begin and end is recorded, not executed; run
 * executes it, any number of times. begin returns false while another thread captures. end returns NULL if
 * the work cannot be captured: it allocated, uploaded or downloaded. free_epoch grows when memory is freed:
 * addresses in older graphs may then be invalid. run does nothing and returns false if free_epoch is not the
 * given one. */
typedef struct ses_device_graphs {
    bool (*begin)(ses_device *d);
    void *(*end)(ses_device *d);
    bool (*run)(ses_device *d, void *graph, uint64_t free_epoch);
    void (*free)(ses_device *d, void *graph);
    uint64_t (*free_epoch)(ses_device *d);
} ses_device_graphs;

/* A second stream beside that of the device, for transfers between ranks. Events order the two. */
typedef struct ses_device_streams {
    void *(*open)(ses_device *d, ses_err *e);
    void (*close)(ses_device *d, void *stream); /* its work is done */
    void *(*handle)(void *stream);              /* the cudaStream_t */
    /* Work queued on `stream` from now on waits for the work that the device has queued so far. */
    void (*after_device)(ses_device *d, void *stream);
    /* Work that the device queues from now on waits for the work on `stream`. */
    void (*before_device)(ses_device *d, void *stream);
    bool (*is_busy)(ses_device *d, void *stream); /* false: its work is done, or failed */
} ses_device_streams;

typedef struct ses_device_memory {
    void *(*alloc)(ses_device *d, size_t size, ses_err *e); /* SES_ALIGN aligned */
    void (*free)(ses_device *d, void *p);
    void (*zero)(ses_device *d, void *p, size_t size);
    void (*upload)(ses_device *d, void *to, const void *host, size_t size);
    void (*download)(ses_device *d, void *host, const void *from, size_t size); /* blocks until done */
    void (*move)(ses_device *d, void *to, const void *from, size_t size);       /* may overlap */
    /* converts; only if activation_dtype is bf16 */
    void (*to_bf16)(ses_device *d, void *to, const ses_real *from, int64_t n);
    size_t (*used_bytes)(ses_device *d);   /* bytes in use by all processes; NULL: unknown */
    bool (*ok)(ses_device *d, ses_err *e); /* false: queued work failed; NULL: nothing can fail */
    const ses_device_graphs *graphs;       /* NULL: not supported */
    const ses_device_streams *streams;     /* NULL: not supported */
    void (*close)(ses_device *d);          /* the thread pool is freed already; NULL: nothing to do */
} ses_device_memory;

typedef struct ses_device_extra ses_device_extra; /* private data of the backend */

struct ses_device {
    const ses_device_memory *mem;
    char name[16];
    char pci_bus_id[32]; /* the GPU's, "0000:65:00.0"; "": a CPU */
    bool is_host;        /* host memory: files can be mapped, tensors read in place */
    ses_isa isa;
    ses_dtype weight_dtype;     /* dense weights; SES_REAL: unchanged */
    ses_dtype embedding_dtype;  /* embedding tables; SES_I8, or unchanged */
    ses_dtype activation_dtype; /* SES_REAL or SES_BF16 */
    ses_kernels k;              /* kernels on activation_dtype */
    /* Kernels on ses_real, for losses, parameters and optimizers. Equal to k unless activations are bf16. */
    ses_kernels k_f32;
    ses_exec exec;
    ses_device_extra *extra;
};

/* The dtype of the operands of products in training: f32 or bf16. */
static inline ses_dtype ses_device_operand_dtype(const ses_device *d)
{
    return d->exec.bf16 ? SES_BF16 : d->activation_dtype;
}

/* The resources of the device for products with f32 operands, whatever its dtype: of parameters, analyses. */
static inline ses_exec ses_exec_f32(const ses_device *d)
{
    ses_exec x = d->exec;
    x.bf16 = false;
    return x;
}

bool ses_device_open_cpu(ses_device *d, const ses_device_options *o, ses_err *e);
bool ses_device_open_cuda(ses_device *d, const ses_device_options *o, ses_err *e);

/* Properties of GPU i. False: no such GPU, or no CUDA module (cuda_module.h). */
typedef struct ses_gpu {
    char name[256];
    int major, minor, sm_count;
    size_t memory_bytes;
} ses_gpu;
bool ses_gpu_describe(int i, ses_gpu *out);
/* Copies elements first .. first + n - 1 of a real tensor to host memory as ses_real. */
bool ses_device_read(ses_device *d, const ses_tensor *x, int64_t first, int64_t n, ses_real *host,
                     ses_err *e);
/* allocator of device memory for arenas; borrows d */
ses_allocator ses_device_allocator(ses_device *d);

#endif
