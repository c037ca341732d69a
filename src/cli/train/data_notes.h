/* Notices about labeled files on standard error. Main thread only. */
#ifndef SES_CLI_DATA_NOTES_H
#define SES_CLI_DATA_NOTES_H

#include "cli/command.h"
#include "sesame/examples.h"

/* Prints the notices about the rows of a file (data/examples_notices.h), and with `labels` about its labels.
 * Nothing with --quiet. */
void ses_note_data(const ses_call *c, const ses_examples *d, const char *name, bool labels);
/* How the columns were found, if they have no usual names. */
void ses_note_columns(const ses_call *c, const ses_examples *d, const char *name);
/* About the labels found only. */
void ses_note_labels(const ses_call *c, const ses_examples *d, const char *name);

#endif
