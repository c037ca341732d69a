/* What kernels on an NVIDIA GPU run on: a stream, the matrix library, scratch. One for each open device.
 * Kernels cannot fail, launches can: the first failure stays here until ses_cuda_ok asks. */
#ifndef SES_KERNEL_CUDA_H
#define SES_KERNEL_CUDA_H

#include "sesame/err.h"

#include <cuda_runtime_api.h>
#include <stdint.h>

typedef struct ses_cuda ses_cuda;

ses_cuda *ses_cuda_new(int index, bool steady, ses_err *e); /* steady: see ses_device_options */
void ses_cuda_free(ses_cuda *g);
cudaStream_t ses_cuda_stream(ses_cuda *g); /* and makes the GPU the calling thread's */
bool ses_cuda_ok(ses_cuda *g, ses_err *e);
void ses_cuda_narrow(ses_cuda *g, void *to, const float *from, int64_t n); /* f32 to bf16 */
void ses_cuda_note(ses_cuda *g, cudaError_t code);                         /* keeps the first failure */

/* Between begin and end what the calling thread queues becomes a graph: see ses_device_graphs. */
bool ses_cuda_graph_begin(ses_cuda *g);
cudaGraphExec_t ses_cuda_graph_end(ses_cuda *g); /* NULL: it cannot be one */
bool ses_cuda_graph_run(ses_cuda *g, cudaGraphExec_t graph, uint64_t moves);
bool ses_cuda_graph_making(const ses_cuda *g); /* is this thread making one? */
bool ses_cuda_graph_spoil(ses_cuda *g);        /* the same; then it will be none */
void ses_cuda_moved(ses_cuda *g);              /* memory was given back */
uint64_t ses_cuda_moves(const ses_cuda *g);

#endif
