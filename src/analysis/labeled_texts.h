/* Labeled texts of a table, for analyses of classifiers. Ownership: the caller frees the examples. */
#ifndef SES_ANALYSIS_LABELED_TEXTS_H
#define SES_ANALYSIS_LABELED_TEXTS_H

#include "sesame/examples.h"

/* Opens a table. text NULL: the column "text", or "sentence" as in GLUE; pair NULL: no second text; label
 * NULL: the column "label". */
ses_examples *ses_labeled_texts_open(const char *path, const char *text, const char *pair, const char *label,
                                     ses_err *e);

#endif
