/* Errors: one struct, filled by the call that fails, read by the caller that cares.
 * A function that can fail returns bool or a pointer and takes ses_err *e last; e may be NULL.
 * The low level says what went wrong, each caller adds where:
 *     model.safetensors: tensor "x": offset 96 past the end */
#ifndef SESAME_ERR_H
#define SESAME_ERR_H

#include "sesame/types.h"

SES_BEGIN_DECLS

typedef enum {
    SES_OK,
    SES_ENOMEM,       /* out of memory, or over a limit the caller set */
    SES_EIO,          /* the system refused: open, read, write, rename */
    SES_EFORMAT,      /* bytes from outside break their format */
    SES_EARG,         /* a value from outside is out of range or does not fit */
    SES_EUNSUPPORTED, /* well-formed, but not something Sesame does */
    SES_EUSAGE        /* the command line is wrong */
} ses_code;

typedef struct ses_err {
    ses_code code;
    char msg[1024];
} ses_err;

/* Write code and message unless an error is already there; returns false, so `return ses_fail(...)`. */
bool ses_fail(ses_err *e, ses_code code, const char *fmt, ...) SES_PRINTF(3, 4);

/* Put "where: " in front of the message. Returns false. */
bool ses_wrap(ses_err *e, const char *fmt, ...) SES_PRINTF(2, 3);

void ses_err_clear(ses_err *e);

SES_END_DECLS

#endif
