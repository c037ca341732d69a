/* manifest.json of a folder: size and hash of every other file in it. */
#ifndef SES_TRAIN_MANIFEST_H
#define SES_TRAIN_MANIFEST_H

#include "sesame/err.h"

bool ses_manifest_write(const char *dir, ses_err *e);
bool ses_manifest_check(const char *dir, ses_err *e); /* false: the first file that is not as it was */

#endif
