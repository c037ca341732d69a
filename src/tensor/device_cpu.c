/* The CPU device: host memory and a thread pool. */
#include "base/alloc.h"
#include "device_impl.h"
#include "sesame/unstable/tensor.h"

#include <string.h>

static void *cpu_alloc(ses_device *d, size_t size, ses_err *e)
{
    (void)d;
    return ses_alloc_aligned(size, e);
}

static void cpu_free(ses_device *d, void *p)
{
    (void)d;
    ses_free(p);
}

enum { ZERO_BYTES = 1 << 20 }; /* size of a chunk */

typedef struct zeroing {
    char *p;
    size_t size;
} zeroing;

static void zero_chunk(void *ctx, int64_t index, void *scratch)
{
    (void)scratch;
    const zeroing *z = ctx;
    size_t begin = (size_t)index * ZERO_BYTES, left = z->size - begin;
    memset(z->p + begin, 0, left < ZERO_BYTES ? left : ZERO_BYTES);
}

/* All threads zero chunks: one thread does not use the whole memory bandwidth. */
static void cpu_zero(ses_device *d, void *p, size_t size)
{
    zeroing z = { p, size };
    ses_parallel_for(d->exec.pool, (int64_t)((size + ZERO_BYTES - 1) / ZERO_BYTES), zero_chunk, &z);
}

static void cpu_copy(ses_device *d, void *to, const void *from, size_t size)
{
    (void)d;
    memmove(to, from, size);
}

static const ses_device_memory memory = {
    .alloc = cpu_alloc,
    .free = cpu_free,
    .zero = cpu_zero,
    .upload = cpu_copy,
    .download = cpu_copy,
    .move = cpu_copy,
};

bool ses_device_open_cpu(ses_device *d, const ses_device_options *o, ses_err *e)
{
    if (o->dtype != SES_F32 && o->dtype != SES_F16 && o->dtype != SES_BF16 && o->dtype != SES_I8)
        return ses_fail(e, SES_EARG, "weights of type %s are not supported: expected f32, f16, bf16 or int8",
                        ses_dtype_name(o->dtype));
    if (o->embedding_dtype != SES_F32 && o->embedding_dtype != SES_I8)
        return ses_fail(e, SES_EARG,
                        "embeddings of type %s are not supported: expected F32 (unchanged) or I8",
                        ses_dtype_name(o->embedding_dtype));
    d->weight_dtype = o->dtype == SES_F32 ? SES_REAL : o->dtype;
    d->embedding_dtype = o->embedding_dtype;
    d->mem = &memory;
    d->is_host = true;
    d->isa = ses_isa_limit(o->isa);
    d->activation_dtype = SES_REAL;
    d->k = d->k_f32 = ses_kernels_cpu(d->isa);
    d->exec.bf16 = o->dtype == SES_BF16 && ses_isa_has_bf16(d->isa);
    d->exec.blocks = ses_blocks_of_caches(ses_cpu_caches_detect());
    d->exec.pool = ses_thread_pool_new(o->threads ? o->threads : ses_cpu_count(), e);
    return d->exec.pool != NULL;
}
