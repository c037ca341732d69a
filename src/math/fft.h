/* Plans of Fourier transforms for the kernel fft_lanes. */
#ifndef SES_MATH_FFT_H
#define SES_MATH_FFT_H

#include "math_exec.h"

int64_t ses_fft_good_size(int64_t n); /* the smallest multiple of 4 of at least n with factors 2, 3 and 5 */
/* Plan for n with factors 2, 3 and 5. ses_free(turn) of the plan releases it. */
bool ses_fft_plan_make(ses_fft_plan *plan, int64_t n, ses_err *e);

#endif
