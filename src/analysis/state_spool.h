/* States of a corpus, written batch by batch and read back layer by layer: in memory up to a limit, beyond it
 * in a file without a name, which the system removes when the process ends.
 * Ownership: the caller frees a spool. Threads: one at a time. */
#ifndef SES_ANALYSIS_STATE_SPOOL_H
#define SES_ANALYSIS_STATE_SPOOL_H

#include "sesame/base.h"

typedef struct ses_state_spool ses_state_spool;

/* A spool for rows of `width` numbers in n_layers layers. memory: bytes kept in memory before the file
 * begins; dir: folder of the file, NULL: /tmp. */
ses_state_spool *ses_state_spool_new(size_t n_layers, size_t width, size_t memory, const char *dir,
                                     ses_err *e);
void ses_state_spool_free(ses_state_spool *s); /* s may be NULL */

/* Appends rows: x[k] is [rows, width] of layer k. */
bool ses_state_spool_add(ses_state_spool *s, const float *const *x, size_t rows, ses_err *e);

size_t ses_state_spool_rows(const ses_state_spool *s);

/* Copies rows first .. first + n - 1 of layer k to `to` [n, width]. */
bool ses_state_spool_read(ses_state_spool *s, size_t k, size_t first, size_t n, float *to, ses_err *e);

#endif
