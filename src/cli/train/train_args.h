/* Stored options of resumed training runs. Strings are borrowed from argv. */
#ifndef SES_CLI_TRAIN_ARGS_H
#define SES_CLI_TRAIN_ARGS_H

#include "sesame/json.h"
#include "train/train_options.h"

/* The stored options of the run in a->run.output, for --resume. A length given in this call (steps or epochs)
 * replaces every stored length. Free with ses_json_free. */
ses_json_doc *ses_train_args_open_stored(const ses_train_args *a, ses_err *e);

#endif
