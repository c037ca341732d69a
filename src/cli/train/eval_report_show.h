/* Evaluation reports on the terminal. */
#ifndef SES_CLI_EVAL_REPORT_SHOW_H
#define SES_CLI_EVAL_REPORT_SHOW_H

#include "cli/ui/term.h"
#include "sesame/finetune.h"

void ses_eval_report_show(const ses_eval_report *r, const ses_term *t); /* loss and scores, for a summary */
/* Tables on stdout: scores of each class, the confusion matrix or the most frequent confusions. */
bool ses_eval_report_show_classes(const ses_eval_report *r, const ses_term *t, ses_err *e);

#endif
