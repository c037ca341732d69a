/* Version of the headers and of the library, by semantic versioning. While MAJOR is 0, a MINOR release may
 * change the API; the library is libsesame.so.0 until then, so compare ses_version_number at run time. */
#ifndef SESAME_VERSION_H
#define SESAME_VERSION_H

#include "sesame/export.h"

#define SES_VERSION_MAJOR 0
#define SES_VERSION_MINOR 1
#define SES_VERSION_PATCH 0
#define SES_VERSION "0.1.0"

/* MAJOR * 10000 + MINOR * 100 + PATCH, for #if. */
#define SES_VERSION_NUMBER (SES_VERSION_MAJOR * 10000 + SES_VERSION_MINOR * 100 + SES_VERSION_PATCH)

SES_BEGIN_DECLS

/* Version of the linked library ("0.1.0"), a static string. It differs from SES_VERSION if a program runs
 * with another libsesame.so than it was compiled for. Thread-safe; cannot fail. */
const char *ses_version(void);

/* The same as a number, comparable with SES_VERSION_NUMBER. Thread-safe; cannot fail. */
int ses_version_number(void);

SES_END_DECLS

#endif
