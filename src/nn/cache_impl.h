/* A cache inside: where keys and values lie, and what a pass asks of it. */
#ifndef SES_NN_CACHE_H
#define SES_NN_CACHE_H

#include "nn.h"
#include "sesame/cache.h"

/* Keys and values of every layer, on the device: [layers][keys, values][heads][rows][dim], so that what a
 * head reads lies in one piece. */
typedef struct ses_kv_buffer {
    char *data;
    size_t elem_size; /* bytes of a number */
    int64_t layers, heads, rows, dim;
} ses_kv_buffer;

typedef struct ses_cache_source {
    int64_t row, len, refcount; /* rows of the cross shelf; users 0: free */
} ses_cache_source;

struct ses_cache {
    const ses_model *model;
    ses_device *dev;
    int64_t slots, capacity;
    ses_kv_buffer self;  /* slot s has rows s * room .. */
    ses_kv_buffer cross; /* sources stand where there was room */
    int64_t *len;        /* [slots] */
    /* [slots][slots]: leading rows known to be equal; the second while one becomes another. NULL: nothing
     * is known. */
    int32_t *shared_prefix[2];
    int32_t *source_of;       /* [slots]: -1 none */
    ses_cache_source *source; /* [slots] */
    char *staging;            /* rows on their way from slot to slot */
    int64_t staging_rows;
};

ses_cache *ses_cache_create(ses_device *dev, const ses_stack *k, int64_t width, int64_t slots, int64_t length,
                            ses_err *e);

/* Before a pass: where new keys go and all of them lie, in p->past and p->source. */
void ses_cache_begin(ses_forward_ctx *p);
/* Keys and values of new tokens in layer i are stored, and in is made to see all there are. */
void ses_cache_extend(ses_forward_ctx *p, int i, ses_attention_inputs *in);
/* The same of a source; without keys in `in` it is only read. */
void ses_cache_cross(ses_forward_ctx *p, int i, ses_attention_inputs *in);
/* After a pass: slots are longer, or what the pass began is given up. */
void ses_cache_end(ses_forward_ctx *p, bool ok);

#endif
