/* Parts of a store for nn and model: quantized weights, and LoRA while layers are declared. Ownership and
 * threads: as sesame/store.h. */
#ifndef SES_NN_STORE_IMPL_H
#define SES_NN_STORE_IMPL_H

#include "kernel/kernel.h"
#include "sesame/store.h"

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

/* LoRA: called for each dense layer as it is declared. While a store has a hook, parameters added to it are
 * SES_PARAM_BASE, except the LoRA matrices; if the adapter will be merged, they are trained as usual. */
typedef struct ses_lora_hook {
    bool merged;
    int64_t rank;
    double scale, dropout; /* y = x W' + scale (dropout(x) A') B' */
    bool (*is_target)(void *ctx, const char *dense, ses_weight_layout layout); /* "layer.0.attn.query" */
    void *ctx;
} ses_lora_hook;

/* Sets the hook, which must outlive its use; NULL: none. */
void ses_store_set_lora_hook(ses_store *s, const ses_lora_hook *hook);
const ses_lora_hook *ses_store_lora_hook(const ses_store *s);

#endif
