/* Parts of a store for nn and model: quantized weights, and adapters while layers are declared. Ownership and
 * threads: as sesame/unstable/store.h. */
#ifndef SES_NN_STORE_IMPL_H
#define SES_NN_STORE_IMPL_H

#include "kernel/kernel.h"
#include "sesame/unstable/store.h"

/* The flat buffers of a store opened for training: its parameters in the order of declaration, padded. */
typedef struct ses_flat {
    ses_real *value, *grad;
    char *copy; /* bf16 copies of the values, on devices with bf16 activations; NULL: none */
    int64_t n;  /* elements; 0: the store is not open for training */
} ses_flat;
ses_flat ses_store_flat(const ses_store *s);

/* The first element of parameter i in the flat buffers; -1: its values have other memory (shared, or a LoRA
 * base). */
int64_t ses_store_flat_offset(const ses_store *s, size_t i);

/* ses_store_sync_bf16 for elements begin .. end - 1 of the flat buffers. */
void ses_store_sync_bf16_range(ses_store *s, int64_t begin, int64_t end);

/* Copies the values of parameter i to memory of the store unless they are there, so that they can be changed:
 * they may be pages of a file. On the CPU in f32, for stores that are not open for training; not for borrowed
 * or packed parameters. False and an error: out of memory, and the parameter has no values. */
bool ses_store_make_writable(ses_store *s, size_t i, ses_err *e);

/* How a parameter is initialized, instead of as it was added. */
void ses_store_set_init(ses_store *s, const ses_tensor *t, ses_init init);

/* Random values for parameter i, uniform in +- range. */
void ses_store_init_uniform(ses_store *s, size_t i, double range, uint64_t seed);

/* Quantizes dense weight i to the device's dtype, or to `as` if that is smaller; its f32 values may be freed
 * afterwards. */
bool ses_store_quantize(ses_store *s, size_t i, ses_dtype as, ses_err *e);

/* Packs dense weight i from a file's quantized values, if products can read them as they are; else *packed is
 * false. */
bool ses_store_load_quantized(ses_store *s, size_t i, const ses_quant_rows *from, bool mapped, bool *packed,
                              ses_err *e);

/* Lets embedding i read a file's quantized rows: SES_F16, SES_BF16, or SES_I8 with one float per row at
 * `scale`, which may be unaligned. data and scale are borrowed. */
bool ses_store_bind_quantized(ses_store *s, size_t i, const void *data, ses_dtype as, const void *scale,
                              ses_err *e);

/* Adapters, while layers are declared: a hook decides which parameters are trained, the others become
 * SES_PARAM_BASE, and adds parameters to layers. */
struct ses_dense;
struct ses_layer;
typedef struct ses_adapter_hook {
    bool (*is_trained)(void *ctx, const char *name); /* "layer.0.attn.query.bias" */
    /* a dense layer has been declared: "layer.0.attn.query" */
    void (*dense)(void *ctx, ses_store *s, struct ses_dense *d, const char *name, int64_t out, int64_t in);
    /* the layers of a stack have been declared: "layer.0" */
    void (*layer)(void *ctx, ses_store *s, struct ses_layer *l, const char *name, int64_t width);
    void *ctx;
} ses_adapter_hook;

/* Factorized dense layers, while layers are declared: a hook chooses the rank of each. */
typedef struct ses_low_rank_hook {
    /* rank of the dense layer "layer.0.attn.query", [out, in]; 0: it is not factorized */
    int64_t (*rank)(void *ctx, const char *name, int64_t out, int64_t in);
    void *ctx;
} ses_low_rank_hook;
void ses_store_set_low_rank_hook(ses_store *s, const ses_low_rank_hook *hook);
const ses_low_rank_hook *ses_store_low_rank_hook(const ses_store *s);

/* Sets the hook, which must outlive its use; NULL: none. */
void ses_store_set_adapter_hook(ses_store *s, const ses_adapter_hook *hook);
const ses_adapter_hook *ses_store_adapter_hook(const ses_store *s);

#endif
