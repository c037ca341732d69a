/* Named parameters of a model. Declare everything, then give the numbers a home once:
 *   ses_store_alloc_trainable    one flat buffer of values and one of gradients, both owned by the store;
 *   ses_store_bind     inference: a parameter may stand where a file is mapped, nothing is copied.
 * Tensors the store hands out are borrowed and live until ses_store_free. Declaring and filling belong to one
 * thread; a filled store may be read by several. */
#ifndef SESAME_STORE_H
#define SESAME_STORE_H

#include "sesame/device.h"
#include "sesame/tensor.h"

SES_BEGIN_DECLS

typedef struct ses_store ses_store;

/* How a parameter begins when it is not loaded. */
typedef enum {
    SES_INIT_ZERO,
    SES_INIT_ONE,
    SES_INIT_NORMAL,
    SES_INIT_FAN_IN /* uniform, up to 1 / sqrt(last axis) either way */
} ses_init;

/* Who makes a parameter's numbers. */
typedef enum {
    SES_PARAM_TRAINED,
    SES_PARAM_BUFFER,   /* never trained; made by the model where the file lacks it: a table of sines */
    SES_PARAM_CONSTANT, /* stays as it begins: no file holds it */
    SES_PARAM_SHARED,   /* another store's: see ses_store_share */
    SES_PARAM_BASE      /* of a model that an adapter is trained beside: read, never trained or written */
} ses_param_role;

typedef struct ses_param {
    const char *name; /* Sesame's name: "layer.0.attn.query.weight" */
    ses_tensor *tensor;
    ses_init init;
    ses_param_role role;
    bool decay; /* by convention weight decay applies: false for biases and norms */
    bool dense; /* a dense layer's weight, in this order: products may read it rounded */
    ses_weight_layout layout;
    bool embedding;  /* embeddings, too, which read it as it is */
    bool keep_16bit; /* of a head: never rounded to less than 16 bits */
    bool owned;      /* its values are in memory of the store's: see ses_store_alloc_one */
    bool mapped;     /* they are pages of a file */
} ses_param;

ses_store *ses_store_new(ses_device *dev, ses_err *e);
void ses_store_free(ses_store *s);
ses_device *ses_store_device(const ses_store *s);

/* The first error of ses_store_add sticks; ses_store_ok tells. Returns NULL then. */
ses_tensor *ses_store_add(ses_store *s, const char *name, const int64_t dim[SES_MAX_DIM], ses_init init);
void ses_store_set_role(ses_store *s, const ses_tensor *t, ses_param_role role);
void ses_store_set_dense(ses_store *s, const ses_tensor *t,
                         ses_weight_layout order);               /* t is a dense layer's weight */
void ses_store_set_embedding(ses_store *s, const ses_tensor *t); /* and a table of embeddings, or only that */
void ses_store_keep_16bit(ses_store *s, size_t from); /* parameters from this one on are of heads */
bool ses_store_ok(const ses_store *s, ses_err *e);

/* Low-rank adapters (LoRA) beside dense layers, asked about as each is declared. While a store is told of
 * them, what is added to it is SES_PARAM_BASE, the adapters apart. */
typedef struct ses_lora_hook {
    int64_t rank;
    double scale, dropout; /* y = x W' + scale (drop(x) A') B' */
    bool (*is_target)(void *ctx, const char *dense, ses_weight_layout order); /* "layer.0.attn.query" */
    void *ctx;
} ses_lora_hook;
void ses_store_set_lora_hook(ses_store *s,
                             const ses_lora_hook *a); /* NULL: no more; a must outlive that call */
const ses_lora_hook *ses_store_lora_hook(const ses_store *s);

size_t ses_store_count(const ses_store *s);
const ses_param *ses_store_at(const ses_store *s, size_t i);           /* in the order declared */
const ses_param *ses_store_find(const ses_store *s, const char *name); /* NULL when there is none */
int64_t ses_store_element_count(const ses_store *s);                   /* how many in all, */
int64_t ses_store_trainable_count(const ses_store *s);                 /* how many of them have gradients */

bool ses_store_alloc_trainable(ses_store *s,
                               ses_err *e); /* values and gradients, zeroed; not of SES_PARAM_BASE */
bool ses_store_alloc_one(ses_store *s, size_t i, ses_err *e); /* memory for one parameter */
/* Parameter i is another store's from now on: values and gradients. Both are trained; who steps is the
 * other's optimizer. */
void ses_store_share(ses_store *s, size_t i, const ses_tensor *with);
/* Borrowed from elsewhere; mapped: from a map of a file. */
void ses_store_bind(ses_store *s, size_t i, const ses_real *data, bool mapped);
/* After values changed: what ops read of them, where the device's reals are narrow. Optimizers do it, and all
 * that opens or restores. */
void ses_store_sync_bf16(ses_store *s);
/* Rounds a dense weight to the device's dtype, or to `as` where that is narrower; its values may go
 * afterwards. */
bool ses_store_quantize(ses_store *s, size_t i, ses_dtype as, ses_err *e);
/* Dense weight i from a file's numbers in fewer bits, with the scale of each output, where products may read
 * them as they are: else *taken is false. */
struct ses_quant_rows;
bool ses_store_load_quantized(ses_store *s, size_t i, const struct ses_quant_rows *from, bool mapped,
                              bool *taken, ses_err *e);
/* Table i stays where a file has it in fewer bits: SES_F16, SES_BF16, or SES_I8 with a float a row at
 * `scale`, which may be unaligned. */
bool ses_store_bind_quantized(ses_store *s, size_t i, const void *data, ses_dtype as, const void *scale,
                              ses_err *e);
bool ses_store_finalize(ses_store *s, ses_err *e); /* values stay: may be packed, and dense ones rounded */

void ses_store_init(ses_store *s, double deviation, uint64_t seed); /* random, by each one's ses_init */
void ses_store_init_one(ses_store *s, size_t i, double deviation, uint64_t seed);
void ses_store_zero_grad(ses_store *s);
double ses_store_grad_norm(const ses_store *s);

SES_END_DECLS

#endif
