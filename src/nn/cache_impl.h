/* Internals of the KV cache, and its part in a forward pass. Ownership and threads: as sesame/model.h. */
#ifndef SES_NN_CACHE_H
#define SES_NN_CACHE_H

#include "nn.h"
#include "sesame/model.h"

/* Keys and values of every layer, on the device: [layers][keys, values][heads][rows][dim], so that the rows
 * of a head are contiguous. */
typedef struct ses_kv_buffer {
    char *data;
    size_t elem_size; /* bytes per element */
    int64_t layers, heads, rows, dim;
} ses_kv_buffer;

typedef struct ses_cache_source {
    int64_t row, len, refcount; /* rows of the cross buffer; refcount 0: free */
} ses_cache_source;

struct ses_cache {
    const ses_model *model;
    ses_device *dev;
    int64_t slots;
    int64_t capacity;    /* tokens in every slot; 0: see ses_cache_reserve */
    ses_kv_buffer self;  /* slot s has rows first[s] ... first[s] + room[s] - 1 */
    ses_kv_buffer cross; /* sources, first fit */
    /* Virtual tokens of an adapter (prompt or prefix tuning) are the first rows of a slot that is not empty;
     * functions of sesame/model.h do not count them. prefix: virtual tokens whose keys and values are
     * parameters. */
    int64_t virtual_rows, prefix;
    int64_t *len;          /* [slots] */
    int64_t *first, *room; /* [slots] */
    /* [slots][slots]: number of leading rows known to be equal; the second array is scratch for
     * ses_cache_reorder. NULL: not tracked. */
    int32_t *shared_prefix[2];
    int32_t *source_of;       /* [slots]: index in source; -1: none */
    ses_cache_source *source; /* [slots] */
    char *staging;            /* rows on their way between slots */
    int64_t staging_rows;
};

/* length -1: a cache without rows, see ses_cache_new_shared. */
ses_cache *ses_cache_create(ses_device *dev, const ses_stack *k, int64_t width, int64_t slots, int64_t length,
                            ses_err *e);

/* Caches whose slots have rooms of different sizes in common rows. ses_cache_new_shared (model.c) makes one
 * without rows. ses_cache_reserve gives an empty slot room for `length` tokens (0: none) and returns false if
 * no free range of rows is that long. ses_cache_grow_rows adds rows; the contents stay. */
ses_cache *ses_cache_new_shared(const ses_model *m, int64_t slots, ses_err *e);
bool ses_cache_reserve(ses_cache *c, int64_t slot, int64_t length);
bool ses_cache_grow_rows(ses_cache *c, int64_t rows, ses_err *e);

/* Before a pass: sets p->past and p->source: rows of new keys, and all keys of each sequence. */
void ses_cache_begin(ses_forward_ctx *p);
/* The position of the first new token of sequence s; shift: the position of the first token of an empty
 * slot. */
int64_t ses_cache_position(const ses_forward_ctx *p, int64_t s, int64_t shift);
/* Stores keys and values of the new tokens of layer i, which has this many heads, and lets `in` read all
 * cached ones. prefix: keys and values of virtual tokens, for slots that are empty; NULL: none. */
void ses_cache_extend(ses_forward_ctx *p, const ses_virtual *v, ses_tensor *prefix, int i, int64_t heads,
                      ses_attention_inputs *in);
/* The same for cross attention; without keys in `in`, only reads the source. */
void ses_cache_cross(ses_forward_ctx *p, int i, int64_t heads, ses_attention_inputs *in);
/* After a pass: extends the slots, or drops the sources that the failed pass added. */
void ses_cache_end(ses_forward_ctx *p, bool ok);

#endif
