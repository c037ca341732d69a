/* A tape: the activations of one step, and the record for the backward pass.
 *
 * Ops (sesame/unstable/ops.h) run at once and return tensors that live until the tape is reset. The first
 * error sticks: later ops do nothing and return NULL, so that model code needs no checks; call ses_tape_ok
 * once a step.
 *
 * Ownership: the caller frees a tape with ses_tape_free, before its device. A tape owns its tensors.
 * Threads: a tape belongs to one thread at a time. Several tapes may share a device and a model. */
#ifndef SESAME_TAPE_H
#define SESAME_TAPE_H

#include "sesame/base.h"
#include "sesame/unstable/tensor.h"

SES_BEGIN_DECLS

typedef struct ses_tape ses_tape;

typedef struct ses_tape_options {
    bool record;      /* keep the data that backward needs; false: inference */
    bool train;       /* dropout is active */
    bool recompute;   /* gradient checkpointing: layers keep their input only and run again in backward */
    size_t max_bytes; /* memory limit for activations; 0: none */
    uint64_t seed;    /* dropout depends on seed, step and the call within the step */
    uint32_t step;
} ses_tape_options;

/* Makes a tape; options NULL: inference. NULL and an error: out of memory. */
ses_tape *ses_tape_new(ses_device *dev, const ses_tape_options *options, ses_err *e);

/* Frees a tape and its tensors; t may be NULL. */
void ses_tape_free(ses_tape *t);

/* Drops all tensors, the record and the error, and keeps the memory for the next step. options NULL: as
 * before. */
void ses_tape_reset(ses_tape *t, const ses_tape_options *options);

/* True if no op has failed since the last reset; otherwise false and the first error in e (may be NULL). */
bool ses_tape_ok(const ses_tape *t, ses_err *e);

/* Device memory that the tape holds, in bytes. */
size_t ses_tape_bytes(const ses_tape *t);

/* Does the tape record for a backward pass? */
bool ses_tape_recording(const ses_tape *t);

/* A new real tensor with undefined values; dim ends with 0 after the last axis. NULL: the tape has failed. */
ses_tensor *ses_tape_tensor(ses_tape *t, const int64_t dim[SES_MAX_DIM]);

/* A real tensor with a copy of the host's values. NULL: the tape has failed. */
ses_tensor *ses_tape_input(ses_tape *t, const ses_real *host, const int64_t dim[SES_MAX_DIM]);

/* An integer tensor with a copy of n host values. NULL: the tape has failed. */
ses_tensor *ses_tape_ints(ses_tape *t, const int32_t *host, int64_t n);

/* Waits for the device and copies x to host, which has ses_count(x) elements. bf16 becomes ses_real; an
 * integer tensor is copied as int32_t values, not converted. False: x is NULL, or the tape has failed. */
bool ses_tape_read(ses_tape *t, const ses_tensor *x, ses_real *host);

/* A point in the tape's memory. */
typedef struct ses_tape_mark {
    void *block[2];
    size_t used[2];
} ses_tape_mark;

/* The current point, for ses_tape_rewind. */
ses_tape_mark ses_tape_get_mark(const ses_tape *t);

/* Frees everything made since the mark except `keep`, and returns a new header for it: its data stays in
 * memory, or moves to the mark, until the tape is rewound to this mark again or to an earlier one. The old
 * header is invalid. On a recording tape it does nothing and returns keep. */
ses_tensor *ses_tape_rewind(ses_tape *t, ses_tape_mark m, ses_tensor *keep);

/* Computes the gradients of the scalar `loss`; gradients of parameters are added to the store's. Errors
 * (the tape does not record, the loss depends on no parameter, out of memory) stick to the tape. */
void ses_backward(ses_tape *t, ses_tensor *loss);

/* Prepends "text: " to the tape's error, if it has one and it was not prefixed by this level before: for use
 * when a part of a model ends. */
void ses_tape_wrap_error(ses_tape *t, const char *fmt, ...) SES_PRINTF(2, 3);

/* Sets the tape's error; ignored if it has one. */
void ses_tape_fail(ses_tape *t, ses_code code, const char *fmt, ...) SES_PRINTF(3, 4);

SES_END_DECLS

#endif
