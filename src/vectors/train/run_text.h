/* The description of a run: everything that its weights depend on, in words. Checkpoints store it. */
#ifndef SES_VECTORS_RUN_TEXT_H
#define SES_VECTORS_RUN_TEXT_H

#include "vector_trainer.h"

/* The settings (without the ones that `not`, a list "a|b", names), the level of the kernels, the words and n
 * ids of the text. NULL: out of memory. Free with ses_free. */
char *ses_vector_run_text(const ses_vector_job *job, const ses_word_vocab *v, const int32_t *id, int64_t n,
                          const char * not, ses_err *e);

#endif
