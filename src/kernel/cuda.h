/* What kernels on an NVIDIA GPU run on: a stream, the matrix library, scratch. One for each open device.
 * Kernels cannot fail, launches can: the first failure stays here until ses_cuda_ok asks. */
#ifndef SES_KERNEL_CUDA_H
#define SES_KERNEL_CUDA_H

#include "sesame/err.h"

#include <cuda_runtime_api.h>

typedef struct ses_cuda ses_cuda;

ses_cuda *ses_cuda_new(int index, ses_err *e);
void ses_cuda_free(ses_cuda *g);
cudaStream_t ses_cuda_stream(ses_cuda *g); /* and makes the GPU the calling thread's */
bool ses_cuda_ok(ses_cuda *g, ses_err *e);
void ses_cuda_narrow(ses_cuda *g, void *to, const float *from, int64_t n); /* f32 to bf16 */
void ses_cuda_note(ses_cuda *g, cudaError_t code);                         /* keeps the first failure */

#endif
