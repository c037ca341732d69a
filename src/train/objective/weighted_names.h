/* Lists of names with weights, "mlm:1,nsp:0.5": objectives, mask units. */
#ifndef SES_TRAIN_WEIGHTED_NAMES_H
#define SES_TRAIN_WEIGHTED_NAMES_H

#include "sesame/base.h"

/* Reads NAME or NAME:WEIGHT at *p and moves *p behind it and its comma; NULL: it was the last. name borrows
 * from *p. The default weight is 1. what: for errors, "objective". */
bool ses_weighted_name_next(const char **p, const char *what, ses_string *name, double *weight, ses_err *e);

#endif
