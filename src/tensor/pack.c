#include "pack.h"

#include "base/alloc.h"
#include "device.h"

#include <pthread.h>
#include <stdatomic.h>

struct ses_pack {
    ses_device *dev;
    ses_dtype as;
    pthread_mutex_t lock; /* held while packing */
    _Atomic(void *) data; /* NULL until done */
    size_t bytes;
};

ses_pack *ses_pack_new(ses_device *dev, ses_dtype as, ses_err *e)
{
    ses_pack *p = ses_alloc(sizeof *p, e);
    if (!p) return NULL;
    p->dev = dev;
    p->as = as;
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

void ses_pack_free(ses_pack *p)
{
    if (!p) return;
    void *data = atomic_load(&p->data);
    if (data) p->dev->mem->free(p->dev, data);
    pthread_mutex_destroy(&p->lock);
    ses_free(p);
}

size_t ses_pack_bytes(const ses_pack *p) { return p && atomic_load(&p->data) ? p->bytes : 0; }

static void *make(ses_pack *p, const ses_tensor *w, ses_weight order, const ses_kernels *k, ses_exec *x,
                  ses_err *e)
{
    bool in_out = order == SES_IN_OUT;
    int64_t N = ses_weight_dim(w, in_out), K = ses_weight_dim(w, !in_out);
    int64_t b_row = in_out ? N : 1, b_col = in_out ? 1 : K;
    bool bytes = p->as == SES_I8;
    p->bytes =
        bytes ? (size_t)k->gemm8_pack_size(N, K) : (size_t)k->gemm_pack_size(N, K) * ses_dtype_size(p->as);
    void *data = p->dev->mem->alloc(p->dev, p->bytes, e);
    if (data && bytes) k->gemm8_pack(x, data, w->f, b_row, b_col, N, K);
    if (data && !bytes) k->gemm_pack(x, data, p->as, w->f, b_row, b_col, N, K);
    return data;
}

ses_packed_weight ses_packed(const ses_tensor *w, ses_weight order, const ses_kernels *k, ses_exec *x)
{
    ses_pack *p = w->pack;
    if (!p || !k->gemm_pack_size(1, 1))
        return (ses_packed_weight){ NULL, SES_REAL }; /* nothing is packed here */
    void *data = atomic_load_explicit(&p->data, memory_order_acquire);
    if (!data && p->as == SES_REAL) {
        pthread_mutex_lock(&p->lock);
        data = atomic_load(&p->data);
        if (!data) data = make(p, w, order, k, x, NULL);
        atomic_store_explicit(&p->data, data, memory_order_release);
        pthread_mutex_unlock(&p->lock);
    }
    return (ses_packed_weight){ data, p->as };
}

bool ses_pack_make(const ses_tensor *w, ses_weight order, const ses_kernels *k, ses_exec *x, ses_err *e)
{
    void *data = make(w->pack, w, order, k, x, e);
    atomic_store_explicit(&w->pack->data, data, memory_order_release);
    return data != NULL;
}
