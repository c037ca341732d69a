/* Devices: memory, kernels and the threads or stream that run them.
 *
 * Ownership: the application frees a device, after all stores, models and tapes made on it.
 * Threads: a device may be shared between threads; parallel kernels of several callers run in turn.
 * Errors: a function that can fail takes a ses_err, see err.h. */
#ifndef SESAME_DEVICE_H
#define SESAME_DEVICE_H

#include "sesame/err.h"

SES_BEGIN_DECLS

typedef struct ses_device ses_device;

/* Options of ses_device_open. Zero-initialized: all cores, the best level, f32. */
typedef struct ses_device_options {
    int threads; /* CPU threads; 0: one per core available to the process */
    ses_isa isa; /* highest instruction set level; SES_ISA_BEST (0): the best available */
    /* CPU: dtype of dense weights in inference. SES_F32: unchanged; SES_F16 or SES_BF16: rounded; SES_I8:
     * quantized, with activations quantized for each product. At levels with bf16 products, SES_BF16 rounds
     * both operands of every matrix product, in training too; sums, activations in memory and parameters stay
     * f32. Other levels do not train with SES_BF16. GPU: dtype of activations in inference and training,
     * SES_F32 or SES_BF16; parameters and statistics stay f32. */
    ses_dtype dtype;
    /* CPU: SES_I8 also quantizes embedding tables in inference. SES_F32: unchanged. */
    ses_dtype embedding_dtype;
    /* GPU: autotune matrix products at once, as benchmarks do. Otherwise autotuning is limited to 5 % of the
     * elapsed time. The results have the same bits. */
    bool autotune_eagerly;
} ses_device_options;

/* Opens "cpu", or "cuda" / "cuda:N" in builds with CUDA. options NULL: all cores, best level, f32. Returns
 * NULL on failure: unknown name, no such GPU, unsupported dtype, out of memory. The caller frees the
 * device. */
ses_device *ses_device_open(const char *name, const ses_device_options *options, ses_err *e);

/* Frees the device; NULL is allowed. Stores, models and tapes on it must be freed before. */
void ses_device_free(ses_device *d);

/* The name the device was opened with. Borrowed; valid until the device is freed. */
const char *ses_device_name(const ses_device *d);
/* PCI bus id of a GPU, "0000:65:00.0"; "" for a CPU. Borrowed from d. */
const char *ses_device_pci_bus_id(const ses_device *d);

/* Number of CPU threads, at least 1; on a GPU they prepare batches. */
int ses_device_threads(const ses_device *d);

/* Instruction set level of the CPU kernels in use; SES_ISA_REF on a GPU. */
ses_isa ses_device_isa(const ses_device *d);
/* Name of a level, as options spell it: "ref", "avx2", ...; "unknown" if isa is not a level. */
const char *ses_isa_name(ses_isa isa);

/* dtype of dense weights in inference; SES_REAL: unchanged. Always SES_REAL on a GPU. */
ses_dtype ses_device_dtype(const ses_device *d);

SES_END_DECLS

#endif
