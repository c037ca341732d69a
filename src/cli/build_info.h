/* What this build is: version, compiler, and the parts it can use. */
#ifndef SES_CLI_VERSION_H
#define SES_CLI_VERSION_H

#include "sesame/types.h"

/* A library or device Sesame works without and uses where it is. */
typedef struct ses_build_feature {
    const char *name, *use;
    bool here;
    const char *how; /* "libopenblas.so.0", "not in this build", ... */
} ses_build_feature;

enum { SES_MAX_PARTS = 12 };

size_t ses_build_features(ses_build_feature out[SES_MAX_PARTS]); /* looks for libraries: milliseconds */
const char *ses_compiler(void);
bool ses_isa_built(ses_isa isa);

#endif
