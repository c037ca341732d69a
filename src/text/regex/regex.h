/* Regular expressions of tokenizer.json: syntax and classes of Oniguruma, Unicode 16. A well-known pattern
 * has a hand-written scanner, linear in the text. Other patterns with common syntax are compiled to a
 * program for a backtracking matcher with a step limit. The rest (back references, grapheme clusters,
 * conditionals, ...) requires PCRE2; a build without PCRE2 rejects it with an error that names the
 * construct. A ses_regex is read-only after opening and may be shared between threads; a ses_regex_scan
 * belongs to one thread. */
#ifndef SES_TEXT_REGEX_H
#define SES_TEXT_REGEX_H

#include "base/arena.h"

typedef struct ses_regex ses_regex;

ses_regex *ses_regex_open(const char *pattern, size_t n, ses_arena *mem, ses_err *e);
/* Matches the text itself, as if all special characters were escaped. */
ses_regex *ses_regex_open_literal(const char *text, size_t n, ses_arena *mem, ses_err *e);
void ses_regex_close(ses_regex *r); /* frees everything that is not on mem */

/* Iterates over all matches in a text. An empty match right after another match is skipped. */
typedef struct ses_regex_scan {
    const ses_regex *regex;
    const char *text; /* valid UTF-8 */
    size_t n;
    bool found;        /* set by ses_regex_next: whether there is a match */
    size_t begin, end; /* its range */

    size_t from; /* start of the next search */
    bool any;    /* there was a previous match, which ended at `end` */
    struct ses_regex_work *work;
} ses_regex_scan;

bool ses_regex_start(ses_regex_scan *s, const ses_regex *r, const char *text, size_t n, ses_err *e);
bool ses_regex_next(ses_regex_scan *s, ses_err *e); /* false: out of memory or limit exceeded */
void ses_regex_stop(ses_regex_scan *s);

bool ses_regex_has_pcre2(void);

#endif
