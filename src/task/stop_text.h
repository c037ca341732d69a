/* Stop strings in generated text that is shown without them. Nothing is owned; any thread may call. */
#ifndef SES_TASK_STOP_TEXT_H
#define SES_TASK_STOP_TEXT_H

#include "sesame/generate.h"

/* Length of a finished text before the first stop string in it, which begins at `from` or later; n: none. */
size_t ses_stop_text_find(const ses_generate_options *o, const char *text, size_t n, size_t from);

/* Length of a text in progress without the end that may be the beginning of a stop string; at least
 * `from`. */
size_t ses_stop_text_final(const ses_generate_options *o, const char *text, size_t n, size_t from);

#endif
