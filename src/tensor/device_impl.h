/* What a device is inside: a vtable for memory, a kernel table, and what kernels run on. */
#ifndef SES_TENSOR_DEVICE_H
#define SES_TENSOR_DEVICE_H

#include "base/arena.h"
#include "kernel/kernel.h"
#include "sesame/device.h"
#include "sesame/tensor.h"

/* What the calling thread queues between begin and end is kept, not run; run does it any number of times.
 * begin: false where somebody else is at it. end: NULL where something in it cannot be kept: memory that was
 * asked for, an upload, a download. moves: grows when memory is given back; addresses in a graph made before
 * may be others' then. run: false, and nothing is run, where it is no longer what is given. */
typedef struct ses_device_graphs {
    bool (*begin)(ses_device *d);
    void *(*end)(ses_device *d);
    bool (*run)(ses_device *d, void *graph, uint64_t moves);
    void (*free)(ses_device *d, void *graph);
    uint64_t (*free_epoch)(ses_device *d);
} ses_device_graphs;

typedef struct ses_device_memory {
    void *(*alloc)(ses_device *d, size_t size, ses_err *e); /* SES_ALIGN aligned */
    void (*free)(ses_device *d, void *p);
    void (*zero)(ses_device *d, void *p, size_t size);
    void (*upload)(ses_device *d, void *to, const void *host, size_t size);
    void (*download)(ses_device *d, void *host, const void *from, size_t size); /* waits */
    void (*move)(ses_device *d, void *to, const void *from, size_t size);       /* may overlap */
    void (*to_bf16)(ses_device *d, void *to, const ses_real *from, int64_t n);  /* where reals are narrow */
    size_t (*used_bytes)(ses_device *d);   /* bytes of it in use, by anyone; NULL: not told */
    bool (*ok)(ses_device *d, ses_err *e); /* has nothing failed that was queued so far? NULL: nothing can */
    const ses_device_graphs *graphs;       /* NULL: it has none */
    void (*close)(ses_device *d);
} ses_device_memory;

typedef struct ses_device_extra ses_device_extra; /* what a kind of device keeps beside */

struct ses_device {
    const ses_device_memory *mem;
    char name[16];
    bool is_host; /* its memory is the host's: files may be mapped, no copies */
    ses_isa isa;
    ses_dtype weight_dtype;     /* of dense weights in products; SES_REAL: as they are */
    ses_dtype embedding_dtype;  /* of embeddings: SES_I8, or as they are */
    ses_dtype activation_dtype; /* of activations: SES_REAL, or narrower */
    ses_kernels k;              /* over such reals, */
    /* Over ses_real: losses, parameters, optimizers; the same as k where reals are not narrow. */
    ses_kernels k_f32;
    ses_exec exec;
    ses_device_extra *extra;
};

bool ses_device_open_cpu(ses_device *d, const ses_device_options *o, ses_err *e);
bool ses_device_open_cuda(ses_device *d, const ses_device_options *o, ses_err *e);

/* What GPU i is; false when there is none, or no CUDA in this build. */
typedef struct ses_gpu {
    char name[256];
    int major, minor, sm_count;
    size_t memory_bytes;
} ses_gpu;
bool ses_gpu_describe(int i, ses_gpu *out);
/* Numbers first .. first + n - 1 of a tensor of reals, as the host reads them. */
bool ses_device_read(ses_device *d, const ses_tensor *x, int64_t first, int64_t n, ses_real *host,
                     ses_err *e);
ses_allocator ses_device_allocator(ses_device *d); /* an arena of device memory */

#endif
