/* Shapes as text, see shape_text.h. */
#include "shape_text.h"

#include <inttypes.h>
#include <stdio.h>

const char *ses_shape_text(char *buf, size_t size, const int64_t *dim, int rank)
{
    size_t at = (size_t)snprintf(buf, size, "[");
    for (int i = 0; i < rank && at < size; i++)
        at += (size_t)snprintf(buf + at, size - at, "%s%" PRId64, i ? ", " : "", dim[i]);
    if (at < size) snprintf(buf + at, size - at, "]");
    return buf;
}
