/* Terminal output: color, width, wrapping, bars, human-readable sizes, a progress line.
 * Text functions write into a buffer of the caller and return it. No state is shared between threads. */
#ifndef SES_CLI_TERM_H
#define SES_CLI_TERM_H

#include "base/clock.h"
#include "base/number_text.h"
#include "sesame/base.h"

#include <stdio.h>

typedef enum { SES_COLOR_AUTO, SES_COLOR_ALWAYS, SES_COLOR_NEVER } ses_color_when;
typedef enum {
    SES_PLAIN,
    SES_BOLD,
    SES_DIM,
    SES_RED,
    SES_GREEN,
    SES_YELLOW,
    SES_BLUE,
    SES_STYLE_COUNT
} ses_style;

typedef struct ses_term {
    bool tty, color, unicode;
    int width; /* columns; 80 if unknown */
} ses_term;

/* auto: color on a terminal unless NO_COLOR is set or TERM is dumb; CLICOLOR_FORCE forces it. */
ses_term ses_term_of(FILE *f, ses_color_when when);

/* The escape sequence that starts a style; SES_PLAIN ends it. "" if color is off. */
const char *ses_style_on(const ses_term *t, ses_style s);

/* Columns of a UTF-8 string, one per code point. */
size_t ses_text_width(const char *s);

/* Writes s with control characters as \xNN, so that names from files cannot control the terminal. */
void ses_put_escaped(FILE *f, const char *s);
void ses_escape_controls(char *out, size_t size, const char *s); /* the same into memory, truncated to size */

/* Wraps text at spaces to `width` columns and indents every line but the first, which starts at column
 * `at`. */
void ses_put_wrapped(FILE *f, const char *text, int at, int indent, int width);

enum { SES_BAR_MAX = 64, SES_BAR_SIZE = 3 * SES_BAR_MAX + 1, SES_PERCENT_SIZE = SES_BAR_SIZE + 40 };

/* A bar for a fraction (0 to 1) of `width` columns, in eighths of blocks, or in '#' without Unicode. */
const char *ses_bar_text(const ses_term *t, char buf[SES_BAR_SIZE], double fraction, int width);

/* Columns left for a bar after `used` others: 8 to 40. */
int ses_bar_width(const ses_term *t, int used);

/* " 45% [#########           ]": a percentage and a bar of 20 columns, or 10 on a narrow terminal. */
const char *ses_percent_text(const ses_term *t, char buf[SES_PERCENT_SIZE], double fraction);

const char *ses_bytes_text(char buf[SES_NUMBER_TEXT], uint64_t n); /* "417.6 MiB" */
const char *ses_count_text(char buf[SES_NUMBER_TEXT], uint64_t n); /* "109.5 M" */

/* A progress line on a terminal, redrawn at most ten times a second; elsewhere a line every 10 s and at each
 * tenth of a job that takes longer than that. If the total is known: percentage, bar and time left. */
typedef struct ses_progress {
    FILE *f; /* NULL: disabled */
    ses_term term;
    const char *label;
    int64_t total;              /* 0: unknown */
    int64_t first;              /* done at the first call; -1: none yet */
    double start, begun, drawn; /* begun: time of the first call */
    int tenths;                 /* tenths of the job at the last line elsewhere */
} ses_progress;

ses_progress ses_progress_start(FILE *f, const ses_term *t, bool quiet, const char *label, int64_t total);
void ses_progress_show(ses_progress *p, int64_t done);
void ses_progress_end(ses_progress *p); /* clears the line */

#endif
