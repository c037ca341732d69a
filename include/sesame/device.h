/* A device: memory, kernels and what they run on. Outlives the stores and tapes made on it.
 * May be shared between threads; parallel kernels of several callers take turns. */
#ifndef SESAME_DEVICE_H
#define SESAME_DEVICE_H

#include "sesame/err.h"

SES_BEGIN_DECLS

typedef struct ses_device ses_device;

typedef struct ses_device_options {
    int threads; /* 0: one for each core this process may use */
    ses_isa isa; /* highest instruction set to use; SES_ISA_COUNT or more: the best there is */
    /* What dense weights are rounded to where nothing is trained, and read as in every product: SES_F32 (as
     * they are), SES_F16, SES_BF16, or SES_I8 with the other factor rounded, too. On a GPU SES_BF16 is what
     * activations are held in, trained or not; parameters and statistics stay f32. */
    ses_dtype dtype;
    /* SES_I8: tables of embeddings are rounded to it, too, where nothing is trained. */
    ses_dtype embedding_dtype;
    /* On a GPU: the quickest way of a product whose shape comes often is looked for at once, as benchmarks
     * want it; else as time allows, a twentieth of what has gone by. Results have the same bits either
     * way. */
    bool autotune_eagerly;
} ses_device_options;

/* name: "cpu", or "cuda" / "cuda:N" where the build has it. options may be NULL. */
ses_device *ses_device_open(const char *name, const ses_device_options *options, ses_err *e);
void ses_device_free(ses_device *d);
const char *ses_device_name(const ses_device *d);
int ses_device_threads(const ses_device *d);
ses_isa ses_device_isa(const ses_device *d);
ses_dtype ses_device_dtype(const ses_device *d);

SES_END_DECLS

#endif
