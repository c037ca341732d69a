/* Version of the library; CMake reads it from the header, too. */
#include "sesame/base.h"

const char *ses_version(void) { return SES_VERSION; }

int ses_version_number(void) { return SES_VERSION_NUMBER; }
