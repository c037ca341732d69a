/* Training of GloVe on a device: weights and pairs are in its memory; the kernel glove_tiles trains the tiles
 * of a phase.
 *
 * Ownership: borrows device and pairs until it is freed. */
#ifndef SES_VECTORS_GLOVE_DEVICE_H
#define SES_VECTORS_GLOVE_DEVICE_H

#include "glove_model.h"
#include "sesame/base.h"

typedef struct ses_glove_device ses_glove_device;

/* Copies weights and pairs to the device. Pairs that do not fit are copied phase by phase. */
ses_glove_device *ses_glove_device_new(ses_device *d, const ses_glove_model *m, const ses_glove_pairs *pairs,
                                       ses_err *e);
void ses_glove_device_free(ses_glove_device *g);
ses_glove_engine ses_glove_on_device(ses_glove_device *g);

#endif
