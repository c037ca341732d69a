/* A store: the named parameters of a model. Parameters are declared first; then their values get memory once:
 *   ses_store_alloc_trainable   one flat buffer of values and one of gradients, both owned by the store;
 *   ses_store_bind              inference: a parameter may point into a mapped file, nothing is copied.
 *
 * Ownership: the caller frees a store with ses_store_free, before its device. Tensors and ses_param structs
 * that a store returns are borrowed and live until then.
 * Threads: declaring and filling belong to one thread; several may read a filled store. */
#ifndef SESAME_STORE_H
#define SESAME_STORE_H

#include "sesame/base.h"
#include "sesame/unstable/tensor.h"

SES_BEGIN_DECLS

typedef struct ses_store ses_store;

/* Initial values of a parameter that is not loaded. */
typedef enum {
    SES_INIT_ZERO,
    SES_INIT_ONE,
    SES_INIT_NORMAL,
    SES_INIT_FAN_IN, /* uniform in +-1 / sqrt(last axis) */
    SES_INIT_TENTH   /* uniform in +-0.1 */
} ses_init;

/* Who sets a parameter's values. */
typedef enum {
    SES_PARAM_TRAINED,
    SES_PARAM_BUFFER,   /* never trained; computed by the model if the file lacks it: sinusoidal positions */
    SES_PARAM_CONSTANT, /* keeps its initial values; no file contains it */
    SES_PARAM_SHARED,   /* another store's: see ses_store_share */
    SES_PARAM_BASE      /* LoRA: the base model's parameter, loaded, never trained or saved */
} ses_param_role;

typedef struct ses_param {
    const char *name; /* Sesame's name: "layer.0.attn.query.weight" */
    ses_tensor *tensor;
    ses_init init;
    ses_param_role role;
    bool decay;               /* weight decay applies by default: not to biases and norms */
    bool dense;               /* weight of a dense layer: products may read it quantized */
    ses_weight_layout layout; /* layout of a dense weight */
    bool embedding;           /* embedding lookups read it, too */
    bool keep_16bit;          /* never quantized below 16 bits (heads) */
    bool owned;               /* its values are in the store's memory: see ses_store_alloc_one */
    bool mapped;              /* its values are pages of a file */
    bool borrowed;            /* values and packed copies are another store's: see ses_store_borrow */
    int64_t parts;            /* projections of equal size in a dense weight: see ses_store_set_parts */
} ses_param;

/* Makes an empty store on a device, which must outlive it. NULL and an error: out of memory. */
ses_store *ses_store_new(ses_device *dev, ses_err *e);

/* Frees a store and its memory; s may be NULL. */
void ses_store_free(ses_store *s);

/* The device given to ses_store_new. */
ses_device *ses_store_device(const ses_store *s);

/* ---- declaring ---- */

/* Declares a parameter; the name is copied and must be new. Returns its tensor, without values yet. NULL:
 * this or an earlier declaration failed; ses_store_ok reports the first error. */
ses_tensor *ses_store_add(ses_store *s, const char *name, const int64_t dim[SES_MAX_DIM], ses_init init);

/* Sets the role of parameter t. Here and below t NULL has no effect. */
void ses_store_set_role(ses_store *s, const ses_tensor *t, ses_param_role role);

/* Marks t as the weight of a dense layer. */
void ses_store_set_dense(ses_store *s, const ses_tensor *t, ses_weight_layout layout);

/* Declares that the outputs of dense weight t are `parts` projections, one behind the other: queries, keys
 * and values, or gate and value of a gated unit. Optimizers of whole matrices treat them separately. */
void ses_store_set_parts(ses_store *s, const ses_tensor *t, int64_t parts);

/* Marks t as an embedding table; it may be a dense weight, too. */
void ses_store_set_embedding(ses_store *s, const ses_tensor *t);

/* Keeps parameters `from` and later (heads) at 16 bits or more. */
void ses_store_keep_16bit(ses_store *s, size_t from);

/* False and the first error if a declaration failed. */
bool ses_store_ok(const ses_store *s, ses_err *e);

/* ---- access ---- */

/* Number of parameters. */
size_t ses_store_count(const ses_store *s);

/* Parameter i < ses_store_count, in the order of declaration. */
const ses_param *ses_store_at(const ses_store *s, size_t i);

/* The parameter of this name; NULL: none. */
const ses_param *ses_store_find(const ses_store *s, const char *name);

/* Number of elements in all parameters. */
int64_t ses_store_element_count(const ses_store *s);

/* Number of elements with gradients. */
int64_t ses_store_trainable_count(const ses_store *s);

/* ---- values ---- */

/* Allocates zeroed values and gradients of all parameters except SES_PARAM_BASE. False and an error: out of
 * memory. */
bool ses_store_alloc_trainable(ses_store *s, ses_err *e);

/* Allocates the values of parameter i alone, for inference. False and an error: out of memory. */
bool ses_store_alloc_one(ses_store *s, size_t i, ses_err *e);

/* Makes parameter i an alias of another store's parameter: values and gradients are the same memory, and that
 * store's optimizer updates it. Both must have trainable memory and the same shape; `with` must outlive s. */
void ses_store_share(ses_store *s, size_t i, const ses_tensor *with);

/* Frees the values and gradients of a store whose parameters are all shared. */
void ses_store_free_shared(ses_store *s);

/* Inference: lets parameter i use the values and packed copies of the parameter of the same name in `from`,
 * which must outlive s. False: there is none of this shape and use, with values. */
bool ses_store_borrow(ses_store *s, size_t i, const ses_store *from);

/* Points parameter i to `data`, which is borrowed and read-only; mapped: data is in a mapped file. */
void ses_store_bind(ses_store *s, size_t i, const ses_real *data, bool mapped);

/* Updates the bf16 copies that ops read on a device with bf16 activations. Call it after changing values;
 * optimizers and functions that open or restore a model do so. */
void ses_store_sync_bf16(ses_store *s);

/* Declares the values final: weights may then be packed, and dense ones quantized to the device's dtype.
 * False and an error: out of memory, or a value that cannot be quantized. */
bool ses_store_finalize(ses_store *s, ses_err *e);

/* Random values for all parameters by their ses_init; deviation: of SES_INIT_NORMAL. The same seed gives the
 * same values on any number of threads. */
void ses_store_init(ses_store *s, double deviation, uint64_t seed);

/* Random values for parameter i: the same that ses_store_init sets. */
void ses_store_init_one(ses_store *s, size_t i, double deviation, uint64_t seed);

/* Sets all gradients to zero. */
void ses_store_zero_grad(ses_store *s);

/* L2 norm of all gradients. */
double ses_store_grad_norm(const ses_store *s);

SES_END_DECLS

#endif
