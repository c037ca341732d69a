/* Writes the loss curves of a training run, of updates and evaluations, as SVG.
 * Ownership: arguments are borrowed. Safe in all threads. */
#ifndef SES_CLI_LOSS_CURVE_SVG_H
#define SES_CLI_LOSS_CURVE_SVG_H

#include "sesame/err.h"

/* log: the log.jsonl of a run. */
bool ses_loss_curve_svg(const char *log, const char *path, const char *title, ses_err *e);

#endif
