/* `sesame info` for the folder of a classifier of texts (finetune --method): method, labels, features, size.
 * Nothing is kept. Main thread only: stdout is shared. */
#ifndef SES_CLI_CLASSIFIER_INFO_H
#define SES_CLI_CLASSIFIER_INFO_H

#include "cli/ui/term.h"

#include "sesame/base.h"

bool ses_classifier_info_show(const char *dir, const ses_term *t, ses_err *e);
bool ses_classifier_info_print_json(const char *dir, ses_err *e);

#endif
