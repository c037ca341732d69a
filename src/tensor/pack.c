#include "pack.h"

#include "base/alloc.h"
#include "device.h"

#include <pthread.h>
#include <stdatomic.h>

struct ses_pack {
    ses_device *dev;
    pthread_mutex_t lock;     /* held while packing */
    _Atomic(ses_real *) data; /* NULL until done */
    size_t bytes;
};

ses_pack *ses_pack_new(ses_device *dev, ses_err *e)
{
    ses_pack *p = ses_alloc(sizeof *p, e);
    if (!p) return NULL;
    p->dev = dev;
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

void ses_pack_free(ses_pack *p)
{
    if (!p) return;
    ses_real *data = atomic_load(&p->data);
    if (data) p->dev->mem->free(p->dev, data);
    pthread_mutex_destroy(&p->lock);
    ses_free(p);
}

size_t ses_pack_bytes(const ses_pack *p) { return p && atomic_load(&p->data) ? p->bytes : 0; }

const ses_real *ses_packed(const ses_tensor *w, ses_weight order, const ses_kernels *k, ses_exec *x)
{
    ses_pack *p = w->pack;
    if (!p || !k->gemm_pack_size(1, 1)) return NULL; /* a device that packs nothing */
    ses_real *data = atomic_load_explicit(&p->data, memory_order_acquire);
    if (data) return data;
    pthread_mutex_lock(&p->lock);
    data = atomic_load(&p->data);
    if (!data) {
        bool in_out = order == SES_IN_OUT;
        int64_t N = ses_weight_dim(w, in_out), K = ses_weight_dim(w, !in_out);
        p->bytes = (size_t)k->gemm_pack_size(N, K) * sizeof(ses_real);
        data = p->dev->mem->alloc(p->dev, p->bytes, NULL);
        if (data) k->gemm_pack(x, data, w->f, in_out ? N : 1, in_out ? 1 : K, N, K);
        atomic_store_explicit(&p->data, data, memory_order_release);
    }
    pthread_mutex_unlock(&p->lock);
    return data;
}
