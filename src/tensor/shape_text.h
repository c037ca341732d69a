/* Shapes as text. */
#ifndef SES_TENSOR_SHAPE_TEXT_H
#define SES_TENSOR_SHAPE_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* "[24, 24]"; "[]" for a scalar. Returns buf. */
const char *ses_shape_text(char *buf, size_t size, const int64_t *dim, int rank);

#endif
