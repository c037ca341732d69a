/* Errors: one struct that the failing call fills.
 *
 * A function that can fail returns bool or a pointer and takes `ses_err *e` as its last parameter. On
 * failure it returns false or NULL and describes the reason in *e. e may be NULL if the reason does not
 * matter. Start with `ses_err e = { 0 };`. The function that detects an error reports the cause; each
 * caller may prepend a location:
 *     model.safetensors: tensor "x": offset 96 past the end
 *
 * Ownership: the caller owns the struct; it holds no pointers.
 * Threads: one ses_err per thread. */
#ifndef SESAME_ERR_H
#define SESAME_ERR_H

#include "sesame/types.h"

SES_BEGIN_DECLS

typedef enum {
    SES_OK,
    SES_ENOMEM,       /* out of memory, or above a limit that the caller set */
    SES_EIO,          /* a system call failed: open, read, write, rename */
    SES_EFORMAT,      /* input bytes violate their format */
    SES_EARG,         /* an argument or a value in a file is out of range or does not fit */
    SES_EUNSUPPORTED, /* valid input that Sesame does not implement */
    SES_EUSAGE        /* invalid command line */
} ses_code;

typedef struct ses_err {
    char msg[1024]; /* "" while code is SES_OK; before `code`, so that { 0 } is valid C++ too */
    ses_code code;
} ses_err;

/* Sets code and message, unless *e already holds an error: the first error wins. e may be NULL. Always
 * returns false, so that a function can `return ses_fail(...)`. Messages longer than msg are truncated. */
bool ses_fail(ses_err *e, ses_code code, const char *fmt, ...) SES_PRINTF(3, 4);

/* Prepends "location: " to the message. Does nothing if e is NULL or holds no error. Always returns false. */
bool ses_wrap(ses_err *e, const char *fmt, ...) SES_PRINTF(2, 3);

/* Resets *e to SES_OK. e may be NULL. */
void ses_err_clear(ses_err *e);

SES_END_DECLS

#endif
