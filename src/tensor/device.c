/* Opening devices by name and reading tensors from them. */
#include "device_impl.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

ses_device *ses_device_open(const char *name, const ses_device_options *options, ses_err *e)
{
    ses_device_options o = options ? *options : (ses_device_options){ 0 };
    ses_device *d = ses_alloc(sizeof *d, e);
    if (!d) return NULL;
    snprintf(d->name, sizeof d->name, "%s", name);
    if (!strcmp(name, "cpu")) {
        if (ses_device_open_cpu(d, &o, e)) return d;
    } else if (!strncmp(name, "cuda", 4)) {
        if (ses_device_open_cuda(d, &o, e)) return d;
    } else {
        ses_fail(e, SES_EARG, "unknown device: expected cpu, cuda or cuda:N");
    }
    ses_wrap(e, "device \"%s\"", name);
    ses_device_free(d);
    return NULL;
}

void ses_device_free(ses_device *d)
{
    if (d) ses_thread_pool_free(d->exec.pool);
    if (d && d->mem && d->mem->close) d->mem->close(d);
    ses_free(d);
}

const char *ses_device_name(const ses_device *d) { return d->name; }
const char *ses_device_pci_bus_id(const ses_device *d) { return d->pci_bus_id; }
int ses_device_threads(const ses_device *d) { return d->exec.pool ? ses_thread_pool_size(d->exec.pool) : 1; }
ses_isa ses_device_isa(const ses_device *d) { return d->isa; }
ses_dtype ses_device_dtype(const ses_device *d) { return d->weight_dtype; }

bool ses_device_read(ses_device *d, const ses_tensor *x, int64_t first, int64_t n, ses_real *host, ses_err *e)
{
    size_t size = ses_dtype_size(x->dtype), count = (size_t)n;
    if (!x->data)
        return ses_fail(e, SES_EARG,
                        "the weight is stored quantized: open the model without packing to read it");
    if (x->master || x->dtype == SES_REAL) {
        d->mem->download(d, host, ses_master_data(x) + first, count * sizeof *host);
        return true;
    }
    void *raw = ses_alloc_array(count, size, e);
    if (!raw) return false;
    d->mem->download(d, raw, (const char *)x->data + (size_t)first * size, count * size);
    bool ok = ses_convert(host, SES_REAL, raw, x->dtype, count, e);
    ses_free(raw);
    return ok;
}

static void *allocator_alloc(void *ctx, size_t size, ses_err *e)
{
    ses_device *d = ctx;
    return d->mem->alloc(d, size, e);
}

static void allocator_free(void *ctx, void *p)
{
    ses_device *d = ctx;
    d->mem->free(d, p);
}

ses_allocator ses_device_allocator(ses_device *d)
{
    return (ses_allocator){ .alloc = allocator_alloc, .free = allocator_free, .ctx = d };
}
