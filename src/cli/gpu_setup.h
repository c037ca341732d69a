/* Requirements of a GPU: the CUDA module, the driver, cuBLASLt. For `sesame doctor`. */
#ifndef SES_CLI_GPU_SETUP_H
#define SES_CLI_GPU_SETUP_H

#include "tensor/cuda_module.h"

typedef struct ses_gpu_setup {
    char module[SES_CUDA_PATH_SIZE]; /* file; "": not found */
    ses_err module_error;            /* code 0: the module is usable */
    int driver;                      /* CUDA version of the driver, 1000 * major + 10 * minor; 0: no driver */
    int gpus;                        /* that the driver knows */
    ses_err device_error; /* why "cuda" does not open; code 0: it does, or there is nothing to open */
} ses_gpu_setup;

/* Opens the GPU, if there is one: takes a second. */
void ses_gpu_setup_detect(ses_gpu_setup *out);
bool ses_gpu_ready(const ses_gpu_setup *s);

/* One line each: "version 13.0", "not found: install ..." */
void ses_gpu_module_text(const ses_gpu_setup *s, char *out, size_t size);
void ses_gpu_driver_text(const ses_gpu_setup *s, char *out, size_t size);

#endif
