/* Schemas of requests to a task of a loaded model, from the tables of the task: {"inputs", "parameters",
 * "stream"} of POST /models/NAME. */
#ifndef SES_SERVE_TASK_SCHEMA_H
#define SES_SERVE_TASK_SCHEMA_H

#include "model_schema.h"

/* A schema of the body. with_parameters: "parameters" must be given. */
void ses_task_schema_put(const ses_schema_context *x, ses_served_model *m, const ses_task_entry *t,
                         bool with_parameters);

/* The member "Models-analyze" of "components/schemas": models, analyses and options for POST /analyze. */
void ses_analysis_schema_put(const ses_schema_context *x);

#endif
