/* Settings of Replace, for fast paths that need to know the pattern. Read-only, owned by the stage. */
#ifndef SES_TEXT_NORM_REPLACE_H
#define SES_TEXT_NORM_REPLACE_H

#include "text/stage/shared/pattern.h"

typedef struct ses_replace {
    ses_pattern pattern;
    ses_string content;
} ses_replace;

#endif
