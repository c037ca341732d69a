/* The layers of a frozen model that a tagger reads, after the last '@' of its path:
 *     DIR@-2            one layer: 0 is the embeddings, 1 the first layer, -1 the last
 *     DIR@-4..-1+concat several layers side by side; all: every layer without the embeddings
 *     DIR@all+mix       the same, of which the tagger learns a weighted sum; also +mean (the default), +sum
 * Other texts after '@' belong to the path: a revision of a model, for example; so does the end of a folder's
 * name.
 *
 * Pure functions. */
#ifndef SES_TASK_LAYER_SUFFIX_H
#define SES_TASK_LAYER_SUFFIX_H

#include "nn/config.h"

/* The suffix of a path, behind '@'; NULL: none. */
const char *ses_layer_suffix(const char *path);
/* The layers that a suffix names, as numbers from 0, for a model of `depth` layers. */
bool ses_layer_suffix_parse(const char *suffix, int64_t depth, ses_layer_choice *out, ses_err *e);

#endif
