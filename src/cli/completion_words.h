/* Words that shell completion offers for the values of options: models, tasks, devices. The completion
 * scripts call `sesame completion KIND`. Not for concurrent use: stdout is shared. */
#ifndef SES_CLI_COMPLETION_WORDS_H
#define SES_CLI_COMPLETION_WORDS_H

#include "sesame/base.h"

/* Prints the words of a kind, one per line. *known is false, and nothing is printed, for other kinds. */
bool ses_completion_words_print(const char *kind, bool *known, ses_err *e);

#endif
