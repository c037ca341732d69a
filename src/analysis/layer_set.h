/* A choice of layers: "0-6,12", "all", "last". Layer 0 is the output of the embeddings, layer N that of the
 * N-th Transformer layer, as in "hidden_states.N". Plain data; safe in all threads. */
#ifndef SES_ANALYSIS_LAYER_SET_H
#define SES_ANALYSIS_LAYER_SET_H

#include "sesame/base.h"

enum { SES_LAYER_SET_MAX = 256 };

typedef struct ses_layer_set {
    uint64_t bit[SES_LAYER_SET_MAX / 64];
    bool given; /* false: the user chose none, and the analysis takes its default */
} ses_layer_set;

/* Parses a list of numbers and ranges; a negative number counts from the last layer (-1). last: the last
 * layer of the model. text NULL: every layer, not `given`. */
bool ses_layer_set_parse(ses_layer_set *s, const char *text, int64_t last, ses_err *e);
bool ses_layer_set_has(const ses_layer_set *s, int64_t layer);
int64_t ses_layer_set_count(const ses_layer_set *s);
int64_t ses_layer_set_at(const ses_layer_set *s, int64_t i); /* the i-th layer, in ascending order; -1 */

#endif
