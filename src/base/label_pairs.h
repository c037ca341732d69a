/* Names of labels, "0=negative,1=positive": pairs separated by ',' or '|'. Several labels may have the same
 * name. Strings are borrowed from the list. */
#ifndef SES_BASE_LABEL_PAIRS_H
#define SES_BASE_LABEL_PAIRS_H

#include "sesame/base.h"

bool ses_is_label_pairs(const char *list); /* its first item contains '='; NULL: false */
/* Fails unless every item is LABEL=NAME with different labels. */
bool ses_label_pairs_check(const char *list, ses_err *e);
/* Pair i of a checked list; false past the end. */
bool ses_label_pairs_at(const char *list, size_t i, ses_string *label, ses_string *name);

/* Name of label `index` of a model. */
typedef const char *ses_label_name_fn(const void *ctx, size_t index);
/* The new names of the n labels of a model; name[i].p is NULL: unchanged. A label in the list is a name or,
 * if no label has this name, a number from 0; another label is an error. */
bool ses_label_pairs_rename(const char *list, ses_label_name_fn *name_of, const void *ctx, size_t n,
                            ses_string *name, ses_err *e);

#endif
