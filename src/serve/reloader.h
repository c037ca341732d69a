/* Loads models again in a thread of its own: workers stay free for requests.
 *
 * Ownership: the caller frees a reloader before the registry and after the workers. Threads: any thread may
 * ask for a reload. */
#ifndef SES_SERVE_RELOADER_H
#define SES_SERVE_RELOADER_H

#include "job.h"
#include "model_list.h"

#include <stdio.h>

typedef struct ses_reloader ses_reloader;

/* All arguments are borrowed. log: messages about reloads of all models; NULL: none. */
ses_reloader *ses_reloader_new(struct ses_server *server, ses_model_list *models, ses_registry *registry,
                               FILE *log, ses_err *e);
void ses_reloader_free(ses_reloader *r); /* finishes the reload in progress; r may be NULL */

/* Reads the list of models and all models; requests during a reload cause one more, after it. */
void ses_reloader_load_all(ses_reloader *r);
/* Loads the job's model again and calls `done`, which answers; j->error: it failed. False and j->error: the
 * thread cannot start; the job stays the caller's. */
bool ses_reloader_load(ses_reloader *r, ses_job *j, ses_job_fn *done);

#endif
