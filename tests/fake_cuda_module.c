/* A CUDA module with one GPU that cannot be opened: for tests of how modules are found. */
#include "tensor/cuda_module.h"

#include <stdio.h>

static bool describe(int index, ses_gpu *out)
{
    if (index) return false;
    *out = (ses_gpu){ .name = "Simulated GPU", .major = 9, .sm_count = 1, .memory_bytes = 1 << 30 };
    return true;
}

static bool open_gpu(ses_device *d, int index, const ses_device_options *o, ses_err *e)
{
    (void)d, (void)index, (void)o;
    if (!e) return false;
    e->code = SES_EIO;
    snprintf(e->msg, sizeof e->msg, "the simulated GPU computes nothing");
    return false;
}

const ses_cuda_module ses_cuda_entry = { .abi = SES_CUDA_ABI, .describe = describe, .open = open_gpu };
