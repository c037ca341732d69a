/* Notices about labeled examples, for a person before a run uses them. Nothing is kept; any thread. */
#ifndef SES_DATA_EXAMPLES_NOTICES_H
#define SES_DATA_EXAMPLES_NOTICES_H

#include "sesame/examples.h"

typedef void ses_data_notice_fn(void *ctx, const char *text);

/* Keeps a notice about the columns of the file, which ses_data_notices reports; "": none. */
bool ses_examples_note_columns(ses_examples *d, const char *notice, ses_err *e);
const char *ses_examples_columns_note(const ses_examples *d); /* NULL: none */
/* Calls fn about the rows: with an empty text, dropped, all with the same label. Each text begins with the
 * name of the file. */
bool ses_data_notices(const ses_examples *d, const char *name, ses_data_notice_fn *fn, void *ctx, ses_err *e);
/* Calls fn about labels that were found in the file: the separator of several labels, labels that differ only
 * in case or blanks, "NaN" and other words for a missing value. */
bool ses_data_label_notices(const ses_examples *d, const char *name, ses_data_notice_fn *fn, void *ctx,
                            ses_err *e);

/* "3 rows with an empty text (lines 4, 9, 12)". */
void ses_data_gap_text(const ses_data_gap *g, char *out, size_t size);

#endif
