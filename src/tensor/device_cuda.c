/* Opens the CUDA device; the CUDA module has its memory functions and kernels. */
#include "cuda_module.h"

#include <stdlib.h>
#include <string.h>

bool ses_gpu_describe(int i, ses_gpu *out)
{
    const ses_cuda_module *m = ses_cuda_module_open(NULL, NULL);
    return m && m->describe(i, out);
}

/* Index of "cuda" (0) or "cuda:N" (N); -1: malformed name. */
static int index_of(const char *name)
{
    char *end;
    if (!strcmp(name, "cuda")) return 0;
    if (name[4] != ':' || name[5] < '0' || name[5] > '9') return -1;
    long i = strtol(name + 5, &end, 10);
    return *end || i > 1024 ? -1 : (int)i;
}

bool ses_device_open_cuda(ses_device *d, const ses_device_options *o, ses_err *e)
{
    ses_gpu gpu;
    int index = index_of(d->name);
    if (index < 0) return ses_fail(e, SES_EARG, "expected cuda or cuda:N");
    if (o->dtype != SES_BF16 && o->dtype != SES_F32)
        return ses_fail(e, SES_EUNSUPPORTED, "%s is not supported on a GPU: expected f32 or bf16",
                        ses_dtype_name(o->dtype));
    const ses_cuda_module *m = ses_cuda_module_open(NULL, e);
    if (!m) return false;
    if (!m->describe(index, &gpu))
        return ses_fail(e, SES_EARG, "no such GPU: `sesame doctor` lists the available GPUs");
    if (!m->open(d, index, o, e)) return false;
    const char *missing = ses_kernels_missing(&d->k);
    if (missing) return ses_fail(e, SES_EUNSUPPORTED, "kernel \"%s\" has no CUDA variant: use cpu", missing);
    /* for host-side preparation of batches */
    d->exec.pool = ses_thread_pool_new(o->threads ? o->threads : ses_cpu_count(), e);
    return d->exec.pool != NULL;
}
