/* String functions for decoders. Results are on the caller's arena. */
#ifndef SES_TEXT_REWRITE_STRINGS_H
#define SES_TEXT_REWRITE_STRINGS_H

#include "text/stage.h"

/* Replace each occurrence of `from` in s, leftmost first, by `to`. An empty `from` matches before every
 * character and at the end. A changed string is allocated on mem. p NULL: out of memory. */
ses_string ses_replace_all(ses_string s, ses_string from, ses_string to, ses_arena *mem, ses_err *e);

/* Read a required setting that is a string of one character. */
bool ses_setting_char(const ses_json *settings, const char *key, uint32_t *out, ses_err *e);
void ses_setting_put_char(ses_json_writer *w, const char *key, uint32_t c);

#endif
