/* The CUDA module: the GPU code of the library, a separate file that is opened at run time. One build of the
 * library and command serves machines with and without a GPU.
 *
 * The module exports one constant, `ses_cuda_entry`. Its structs are internal, so library and module must
 * come from the same sources: `abi` is the version and a hash of the shared headers
 * (cmake/cuda_abi.cmake). */
#ifndef SES_TENSOR_CUDA_MODULE_H
#define SES_TENSOR_CUDA_MODULE_H

#include "device_impl.h"

#define SES_CUDA_MODULE_SYMBOL "ses_cuda_entry"
#define SES_CUDA_MODULE_FILE "sesame-cuda.so"

typedef struct ses_cuda_module {
    const char *abi; /* stays the first field in all versions; nothing else is read unless it is equal */
    bool (*describe)(int index, ses_gpu *out); /* false: no such GPU */
    /* Fills d but for name and pool. On failure d->mem->close may be called. */
    bool (*open)(ses_device *d, int index, const ses_device_options *o, ses_err *e);
} ses_cuda_module;

/* defined in modules only */
extern __attribute__((visibility("default"))) const ses_cuda_module ses_cuda_entry;

enum { SES_CUDA_PATH_SIZE = 4096 };

/* Opens the module; it stays loaded. Searched in this order: SESAME_CUDA_MODULE (a file; if set, the only
 * candidate), the folder of the library or command and its `sesame` subfolder, the library folder beside the
 * command's, the library folder of the installation. path, if not NULL, receives the path of the file.
 * SES_EUNSUPPORTED: not found. */
const ses_cuda_module *ses_cuda_module_open(char path[SES_CUDA_PATH_SIZE], ses_err *e);

#endif
