/* Loads NCCL. */
#include "nccl_library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

/* ISO C has no conversion from void * to a function pointer; POSIX guarantees the representation. */
static bool load(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool load_all(ses_nccl *n, void *library)
{
    return load(library, "ncclGetVersion", &n->get_version) && load(library, "ncclGetUniqueId", &n->get_id) &&
           load(library, "ncclCommInitRankConfig", &n->init) &&
           load(library, "ncclCommGetAsyncError", &n->async_error) &&
           load(library, "ncclCommFinalize", &n->finalize) && load(library, "ncclCommDestroy", &n->destroy) &&
           load(library, "ncclCommAbort", &n->abort) && load(library, "ncclGroupStart", &n->group_start) &&
           load(library, "ncclGroupEnd", &n->group_end) && load(library, "ncclSend", &n->send) &&
           load(library, "ncclRecv", &n->recv) && load(library, "ncclGetErrorString", &n->error_string);
}

bool ses_nccl_load(ses_nccl *n, ses_err *e)
{
    static const char *const files[] = { "libnccl.so.2", "libnccl.so" };
    void *library = NULL;
    *n = (ses_nccl){ 0 };
    for (size_t i = 0; i < SES_LEN(files) && !library; i++)
        library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library)
        return ses_fail(e, SES_EUNSUPPORTED, "NCCL (%s) is not installed; NVIDIA's package is libnccl2",
                        files[0]);
    if (load_all(n, library) && n->get_version(&n->version) == SES_NCCL_SUCCESS &&
        n->version >= SES_NCCL_MIN_VERSION)
        return true;
    n->version = 0;
    return ses_fail(e, SES_EUNSUPPORTED, "NCCL is too old: expected version 2.18 or later");
}

ses_nccl_config ses_nccl_nonblocking(void)
{
    const unsigned magic = 0xcafebeef;
    return (ses_nccl_config){ .size = offsetof(ses_nccl_config, split_share) + sizeof(int), /* no padding */
                              .magic = magic,
                              .version = SES_NCCL_MIN_VERSION,
                              .blocking = 0,
                              .cluster_size = INT_MIN,
                              .min_blocks = INT_MIN,
                              .max_blocks = INT_MIN,
                              .split_share = INT_MIN };
}
