/* A tape: one step's activations, and how to go back through them.
 *
 * Ops (sesame/ops.h) run at once and return tensors that live until the tape is reset. The first error
 * sticks: later ops do nothing and return NULL, so model code needs no checks; ask ses_tape_ok once a step.
 * A tape belongs to one thread. */
#ifndef SESAME_TAPE_H
#define SESAME_TAPE_H

#include "sesame/device.h"
#include "sesame/tensor.h"

SES_BEGIN_DECLS

typedef struct ses_tape ses_tape;

typedef struct ses_tape_options {
    bool record;      /* keep what backward needs; else inference */
    bool train;       /* dropout is on */
    bool recompute;   /* layers keep their input alone and run again on the way back; the batch lives on */
    size_t max_bytes; /* most memory for activations; 0: no limit */
    uint64_t seed;    /* dropout draws from (seed, step, place in the step) */
    uint32_t step;
} ses_tape_options;

ses_tape *ses_tape_new(ses_device *dev, const ses_tape_options *options, ses_err *e);
void ses_tape_free(ses_tape *t);
void ses_tape_reset(ses_tape *t, const ses_tape_options *options); /* options NULL: as before */
bool ses_tape_ok(const ses_tape *t, ses_err *e);                   /* false: the first error goes to e */
size_t ses_tape_bytes(const ses_tape *t);                          /* memory the tape holds */
bool ses_tape_recording(const ses_tape *t);

/* New tensors on the tape. ses_tape_input copies host data to the device. */
ses_tensor *ses_tape_tensor(ses_tape *t, const int64_t dim[SES_MAX_DIM]);
ses_tensor *ses_tape_input(ses_tape *t, const ses_real *host, const int64_t dim[SES_MAX_DIM]);
ses_tensor *ses_tape_ints(ses_tape *t, const int32_t *host, int64_t n);
bool ses_tape_read(ses_tape *t, const ses_tensor *x, ses_real *host); /* waits; copies to the host */

/* Scratch for a forward pass without recording: everything made since the mark goes, except `keep`, which
 * stays where it is, or is moved down to the mark, until the tape is rewound to this mark once more or to an
 * earlier one. Its old header is gone. Does nothing on a recording tape. */
typedef struct ses_tape_mark {
    void *block[2];
    size_t used[2];
} ses_tape_mark;
ses_tape_mark ses_tape_get_mark(const ses_tape *t);
ses_tensor *ses_tape_rewind(ses_tape *t, ses_tape_mark m, ses_tensor *keep);

/* Gradients of the scalar `loss` by everything that wants them; parameters' are added to the store's. */
void ses_backward(ses_tape *t, ses_tensor *loss);

/* Put "where: " before the tape's error, once, when leaving a part of a model. */
void ses_tape_wrap_error(ses_tape *t, const char *fmt, ...) SES_PRINTF(2, 3);
void ses_tape_fail(ses_tape *t, ses_code code, const char *fmt, ...) SES_PRINTF(3, 4);

SES_END_DECLS

#endif
