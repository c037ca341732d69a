/* What decoders do to strings. */
#ifndef SES_TEXT_REWRITE_H
#define SES_TEXT_REWRITE_H

#include "text/stage.h"

/* s with each `from`, leftmost first, replaced by `to`; an empty `from` stands before every character and
 * at the end. What is new lies on mem. p NULL: out of memory. */
ses_string ses_replace_all(ses_string s, ses_string from, ses_string to, ses_arena *mem, ses_err *e);

/* A setting of one character, required. */
bool ses_setting_char(const ses_json *settings, const char *key, uint32_t *out, ses_err *e);
void ses_setting_put_char(ses_json_writer *w, const char *key, uint32_t c);

#endif
