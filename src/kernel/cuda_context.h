/* Execution context of one open NVIDIA GPU: stream, cuBLASLt, scratch memory, stream capture.
 * Owned by its device. Thread-safe. Kernels cannot return errors: the first failed launch or copy is recorded
 * here and reported by ses_cuda_ok. */
#ifndef SES_KERNEL_CUDA_CONTEXT_H
#define SES_KERNEL_CUDA_CONTEXT_H

#include "sesame/base.h"

#include <cuda_runtime_api.h>
#include <stdint.h>

typedef struct ses_cuda ses_cuda;

/* autotune_eagerly: see ses_device_options */
ses_cuda *ses_cuda_new(int index, bool autotune_eagerly, ses_err *e);
void ses_cuda_free(ses_cuda *g);
cudaStream_t ses_cuda_stream(ses_cuda *g); /* also makes the GPU current in the calling thread */
bool ses_cuda_ok(ses_cuda *g, ses_err *e);
void ses_cuda_to_bf16(ses_cuda *g, void *to, const float *from, int64_t n); /* f32 to bf16 */
/* records the first failure */
void ses_cuda_record(ses_cuda *g, cudaError_t code);

/* Stream capture, see ses_device_graphs. Work that the calling thread queues between begin and end becomes a
 * graph. */
bool ses_cuda_graph_begin(ses_cuda *g);
cudaGraphExec_t ses_cuda_graph_end(ses_cuda *g); /* NULL: the work cannot be captured */
bool ses_cuda_graph_run(ses_cuda *g, cudaGraphExec_t graph, uint64_t free_epoch);
bool ses_cuda_graph_capturing(const ses_cuda *g); /* true if the calling thread is capturing */
bool ses_cuda_graph_abort(ses_cuda *g);           /* like capturing; also discards the capture */
void ses_cuda_memory_freed(ses_cuda *g);          /* called after memory was freed */
uint64_t ses_cuda_free_epoch(const ses_cuda *g);

#endif
