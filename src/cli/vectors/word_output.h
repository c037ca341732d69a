/* Words of vector files in the output of commands: they are bytes, output is UTF-8. Main thread only. */
#ifndef SES_CLI_WORD_OUTPUT_H
#define SES_CLI_WORD_OUTPUT_H

#include "base/str.h"
#include "sesame/json.h"

/* A word with invalid bytes replaced by U+FFFD; the text is scratch's. */
const char *ses_word_text(ses_buf *scratch, ses_string word);
void ses_json_put_word(ses_json_writer *w, ses_buf *scratch, ses_string word);

#endif
