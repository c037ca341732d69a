/* The curves of a training run as a picture: loss over updates, and the evaluations' losses. */
#ifndef SES_CLI_RUN_SVG_H
#define SES_CLI_RUN_SVG_H

#include "sesame/err.h"

/* log: the JSON lines a run has written (train_monitor.h). The picture is SVG. */
bool ses_loss_curve_svg(const char *log, const char *path, const char *title, ses_err *e);

#endif
