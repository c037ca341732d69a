/* Kernels and threads of a CPU for the computations of this folder. A result does not depend on the number of
 * threads. */
#ifndef SES_MATH_MATH_EXEC_H
#define SES_MATH_MATH_EXEC_H

#include "kernel/kernel.h"

typedef struct ses_math {
    ses_kernels k;
    ses_exec exec;
    void (*progress)(void *ctx, const char *label, int64_t done, int64_t total); /* NULL: none is shown */
    void *progress_ctx;
} ses_math;

/* The kernels of the CPU with `threads` threads; free with ses_math_close. */
bool ses_math_open(ses_math *m, int threads, ses_err *e);
void ses_math_close(ses_math *m);
void ses_math_step(const ses_math *m, const char *label, int64_t done, int64_t total); /* shows progress */

#endif
