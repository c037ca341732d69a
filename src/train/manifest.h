/* manifest.json of a folder: size and hash of every other file in it. Nothing is kept between calls. */
#ifndef SES_TRAIN_MANIFEST_H
#define SES_TRAIN_MANIFEST_H

#include "sesame/err.h"

bool ses_manifest_write(const char *dir, ses_err *e);
/* Fails with SES_EFORMAT on the first file that is missing, changed or not listed. Hidden files are
 * ignored. */
bool ses_manifest_check(const char *dir, ses_err *e);

#endif
