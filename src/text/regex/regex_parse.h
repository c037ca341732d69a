/* A pattern being read; shared by regex_compile.c, regex_escape.c and regex_set.c. */
#ifndef SES_TEXT_REGEX_PARSE_H
#define SES_TEXT_REGEX_PARSE_H

#include "regex_program.h"

typedef struct ses_re_parser {
    const char *p; /* the pattern, valid UTF-8 */
    size_t n, i;
    bool fold; /* without regard to case */
    bool dot;  /* . is a line feed too */

    ses_char_set_item *item; /* of all sets, one after the other */
    size_t items, cap_items;

    const char *unsupported; /* what the machine cannot do */
    ses_err *e;
} ses_re_parser;

/* Both return false: the pattern is not well-formed; it is, but not for this machine. */
bool ses_re_syntax_error(ses_re_parser *r, const char *what);
bool ses_re_unsupported(ses_re_parser *r, const char *what);

/* A character after \ that stands for itself or by a code (\t, \x{..}); regex_escape.c. */
bool ses_re_char_escape(ses_re_parser *r, uint32_t *cp);

bool ses_char_set_add(ses_re_parser *r, ses_char_set_op op, uint32_t a, uint32_t b);
bool ses_char_set_add_case(ses_re_parser *r, uint32_t ascii); /* its other cases */
/* \d, \p{..}, ...: after the \; inside of [...] or not. */
bool ses_char_set_escape(ses_re_parser *r, bool bracket, bool *is_class);
bool ses_char_set_bracket(ses_re_parser *r); /* [...]: after the [ */

#endif
