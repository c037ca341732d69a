/* Values chosen when the build is configured: one generated file has them (cmake/configured.c.in). */
#ifndef SES_TENSOR_CONFIGURED_H
#define SES_TENSOR_CONFIGURED_H

extern const char ses_configured_models[];       /* the folder of the installed models */
extern const char ses_configured_lib[];          /* the folder of the installed libraries */
extern const char ses_configured_lib_from_bin[]; /* the same, relative to the installed command's folder */
extern const char
    ses_configured_cuda_abi[]; /* the CUDA module that fits this library: cmake/cuda_abi.cmake */

#endif
