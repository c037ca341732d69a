/* Texts in generation, of all jobs: used by the computing thread only. */
#ifndef SES_SERVE_GENERATION_H
#define SES_SERVE_GENERATION_H

#include "job.h"

typedef struct ses_generations ses_generations;

ses_generations *ses_generations_new(ses_err *e);
void ses_generations_free(ses_generations *g); /* g may be NULL */

/* Starts a prompt of a job. False: it cannot start; the error is in r->error or j->error. */
bool ses_generations_start(ses_generations *g, ses_job *j, ses_request *r);
/* One step of every text. */
void ses_generations_step(ses_generations *g);
bool ses_generations_active(const ses_generations *g);
/* The job of a sequence that has ended since the last call; once for each of its sequences. NULL: none. */
ses_job *ses_generations_take_finished(ses_generations *g);

#endif
