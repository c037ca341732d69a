/* The models a server should have: given on the command line and in a file. */
#ifndef SES_SERVE_MODEL_LIST_H
#define SES_SERVE_MODEL_LIST_H

#include "registry.h"

typedef struct ses_model_list ses_model_list;

/* file: one model per line, as FOLDER, NAME or NAME=FOLDER; lines that begin with # are skipped. NULL:
 * none. */
ses_model_list *ses_model_list_new(const char *const *specs, size_t n, const char *file, ses_err *e);
void ses_model_list_free(ses_model_list *l); /* l may be NULL */

/* Loads all models of the list into the registry, then unloads models that the list no longer contains.
 * reload: also the ones that are loaded. On failure the models loaded so far stay. */
bool ses_model_list_apply(ses_model_list *l, ses_registry *r, bool reload, ses_err *e);

#endif
