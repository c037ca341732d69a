/* predict --submission: predictions of a test set as the file that the server of GLUE or SuperGLUE takes. */
#ifndef SES_CLI_SUBMISSION_H
#define SES_CLI_SUBMISSION_H

#include "predictor_args.h"

/* Values of --submission; negative: not given. */
#define SES_SUBMISSION_SUITES "glue|superglue"
typedef enum { SES_SUBMISSION_glue, SES_SUBMISSION_superglue } ses_submission_suite;

/* Predicts the last operand and writes its file into the folder a->rows.to. Checks the number and the order
 * of the rows. */
bool ses_submission_run(ses_call *c, const ses_predictor_args *a, ses_err *e);

#endif
