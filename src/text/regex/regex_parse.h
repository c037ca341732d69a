/* Parser state, shared by regex_compile.c, regex_escape.c and regex_set.c. Lives on the compiler's stack. */
#ifndef SES_TEXT_REGEX_PARSE_H
#define SES_TEXT_REGEX_PARSE_H

#include "regex_program.h"

typedef struct ses_re_parser {
    const char *p; /* the pattern, valid UTF-8 */
    size_t n, i;
    bool fold; /* ignore case (option i) */
    bool dot;  /* . also matches a line feed (option m) */

    ses_char_set_item *item; /* items of all sets, one set after another */
    size_t items, cap_items;

    const char *unsupported; /* construct that the matcher does not support */
    ses_err *e;
} ses_re_parser;

/* Both return false. syntax_error: the pattern is malformed. unsupported: it is valid, but needs PCRE2. */
bool ses_re_syntax_error(ses_re_parser *r, const char *what);
bool ses_re_unsupported(ses_re_parser *r, const char *what);

/* A character escape after \ (\t, \x{..}, or a literal character); regex_escape.c. */
bool ses_re_char_escape(ses_re_parser *r, uint32_t *cp);

bool ses_char_set_add(ses_re_parser *r, ses_char_set_op op, uint32_t a, uint32_t b);
bool ses_char_set_add_case(ses_re_parser *r, uint32_t ascii); /* adds the other case of the letter */
/* \d, \p{..}, ...: after the \. bracket: inside [...]. */
bool ses_char_set_escape(ses_re_parser *r, bool bracket, bool *is_class);
bool ses_char_set_bracket(ses_re_parser *r); /* [...]: after the [ */

#endif
