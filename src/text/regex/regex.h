/* Regular expressions as tokenizer.json holds them: Oniguruma's syntax and classes, Unicode 16.  A
 * pattern known by its text has a hand-written scanner, linear in the text. Any other that keeps to the
 * usual syntax is compiled to a program for a backtracking machine whose work is limited; what is left
 * (references back, clusters, conditions, ...) goes to PCRE2 where Sesame was built with it and is
 * refused by name where not.  A ses_regex does not change once open and may be shared between threads; a
 * ses_regex_scan is one thread's. */
#ifndef SES_TEXT_REGEX_H
#define SES_TEXT_REGEX_H

#include "base/arena.h"

typedef struct ses_regex ses_regex;

ses_regex *ses_regex_open(const char *pattern, size_t n, ses_arena *mem, ses_err *e);
/* Matches the text itself, as if every special character were escaped. */
ses_regex *ses_regex_open_literal(const char *text, size_t n, ses_arena *mem, ses_err *e);
void ses_regex_close(ses_regex *r); /* what mem does not hold */

/* All matches in a text, one after the other. An empty match right after another match is none. */
typedef struct ses_regex_scan {
    const ses_regex *regex;
    const char *text; /* valid UTF-8 */
    size_t n;
    bool found;        /* set by ses_regex_next: is there a match, */
    size_t begin, end; /* and where */

    size_t from; /* where to look next */
    bool any;    /* there was a match before, that ended at `end` */
    struct ses_regex_work *work;
} ses_regex_scan;

bool ses_regex_start(ses_regex_scan *s, const ses_regex *r, const char *text, size_t n, ses_err *e);
bool ses_regex_next(ses_regex_scan *s, ses_err *e); /* false: memory, or a limit was hit */
void ses_regex_stop(ses_regex_scan *s);

bool ses_regex_has_pcre2(void);

#endif
