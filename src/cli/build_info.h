/* Describes this build: compiler, instruction sets, optional libraries and devices.
 * All strings are static. Safe in all threads. */
#ifndef SES_CLI_BUILD_INFO_H
#define SES_CLI_BUILD_INFO_H

#include "sesame/base.h"

/* An optional library or device. */
typedef struct ses_build_feature {
    const char *name, *use;
    bool available;
    const char *status; /* "libopenblas.so.0", "not in this build", ... */
} ses_build_feature;

enum { SES_MAX_BUILD_FEATURES = 12 };

/* Opens libraries: takes milliseconds. */
size_t ses_build_features(ses_build_feature out[SES_MAX_BUILD_FEATURES]);
const char *ses_compiler(void);

#endif
