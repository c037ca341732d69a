/* Second moments of the inputs of a model's dense layers on texts: S = mean of x' x.
 *
 * Ownership: the caller's. Threads: one thread; _of may be called from several. */
#ifndef SES_TUNE_INPUT_MOMENTS_H
#define SES_TUNE_INPUT_MOMENTS_H

#include "model/model_desc.h"
#include "sesame/finetune.h"

typedef struct ses_input_moment ses_input_moment;

typedef struct ses_input_moments {
    ses_input_moment *item;
    size_t n;
    int64_t examples; /* that were read */
} ses_input_moments;

/* Runs the model of p over at most `most` examples of a file, chosen at random; labels are not needed. An
 * error: the file, a model that is not on a CPU or has int8 weights. */
bool ses_input_moments_collect(ses_input_moments *x, ses_predictor *p, const char *path, int64_t most,
                               ses_err *e);
void ses_input_moments_free(ses_input_moments *x);

/* S [in, in] of the layer whose weight has this name in the store, and a hundredth of its mean diagonal on
 * the diagonal, since the texts are a sample. Free with ses_free. NULL and an error: out of memory, or no
 * such layer. */
double *ses_input_moments_of(const ses_input_moments *x, const char *weight, int64_t in, ses_err *e);

#endif
