/* A file of fastText as the folder of a classifier: what its config.json would be. Nothing is kept. */
#ifndef SES_VECTORS_FASTTEXT_CONFIG_H
#define SES_VECTORS_FASTTEXT_CONFIG_H

#include "sesame/json.h"

/* Whether a regular file begins as a model of fastText. */
bool ses_fasttext_is_file(const char *path);
/* Labels without __label__, in the order of the file; words end at blanks. Fails for a model without labels,
 * and for one-vs-all, whose probabilities of labels are independent. */
ses_json_doc *ses_fasttext_config(const char *path, int format, ses_err *e);

#endif
