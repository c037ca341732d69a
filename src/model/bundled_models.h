/* Models by name: the search path, and the models that are bundled with Sesame. The public functions are
 * ses_model_resolve and ses_model_default (sesame/model.h).
 *
 * Ownership: free a ses_bundled_dirs with ses_bundled_dirs_free. Threads: no shared state; the environment
 * must not be changed meanwhile. */
#ifndef SES_MODEL_BUNDLED_MODELS_H
#define SES_MODEL_BUNDLED_MODELS_H

#include "sesame/model.h"

enum { SES_BUNDLED_MAX_DIRS = 16 };

/* Existing folders of models, in search order, each once. */
typedef struct ses_bundled_dirs {
    char *dir[SES_BUNDLED_MAX_DIRS];
    size_t n;
} ses_bundled_dirs;

/* Finds the folders that ses_model_resolve searches; search_path NULL: SESAME_MODELS. */
bool ses_bundled_find_dirs(ses_bundled_dirs *d, const char *search_path, ses_err *e);
void ses_bundled_dirs_free(ses_bundled_dirs *d);

/* The i-th task whose default is this model; NULL: no more. */
const char *ses_bundled_task(const char *name, int i);

/* The folder of the model `name` in the search path, even if a file of that name exists in the current
 * folder; free it with free(). */
char *ses_bundled_find(const char *name, const char *search_path, ses_err *e);

/* How a user names a resolved folder: ORG/NAME of the hub, the name of a model in the search path, else the
 * path. Cut to the size of out. */
void ses_model_spelling(const char *dir, char *out, size_t size);

#endif
