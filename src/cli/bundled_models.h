/* Models that come with Sesame, by name. A folder that exists is meant as it is; a name without '/' that is
 * none is looked for in SESAME_MODELS (folders apart by ':'), then beside the program: models/ of the source
 * folder it was built in, share/sesame/models of the prefix it was installed to. */
#ifndef SES_CLI_SHIPPED_H
#define SES_CLI_SHIPPED_H

#include "command.h"

enum { SES_BUNDLED_MAX_ARGS = 8, SES_BUNDLED_MAX_DIRS = 16 };

/* The folders that are looked in, as far as they exist; ses_bundled_dirs_free. */
typedef struct ses_bundled_dirs {
    char *dir[SES_BUNDLED_MAX_DIRS];
    size_t n;
} ses_bundled_dirs;

bool ses_bundled_find_dirs(ses_bundled_dirs *p, ses_err *e);
void ses_bundled_dirs_free(ses_bundled_dirs *p);

const char *ses_bundled_default(const char *task);     /* NULL: none ships for it */
const char *ses_bundled_task(const char *name, int i); /* the i-th task a folder serves; NULL past the end */

/* The folder of a model by its name or path; what is neither is an error that tells what to do. */
char *ses_bundled_resolve(const char *name, ses_err *e);

/* Options and operands that are models (ses_opt.model, ses_command.model_first), by name or, of a pipeline,
 * by default, become folders. The strings made are put into own. */
bool ses_bundled_resolve_args(const ses_command *cmd, void *args, char **rest,
                              char *own[SES_BUNDLED_MAX_ARGS], ses_err *e);

#endif
