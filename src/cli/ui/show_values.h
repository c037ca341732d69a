/* What the commands that look at models share: labeled lines, numbers with commas, one-line JSON. */
#ifndef SES_CLI_SHOW_H
#define SES_CLI_SHOW_H

#include "sesame/json.h"
#include "term.h"

/* "12,403". Returns buf. */
const char *ses_grouped_text(char buf[SES_NUMBER_TEXT], int64_t n);
const char *ses_rate_text(char buf[SES_NUMBER_TEXT], int64_t n,
                          double seconds); /* n a second: "2,837", "5.3" */

/* "name   value": a bold name in a column of its own, the value wrapped to the terminal, at most 100 wide. */
void ses_show_line(const ses_term *t, const char *name, const char *fmt, ...) SES_PRINTF(3, 4);

/* "[24, 24]"; "[]" of a scalar. Returns buf. */
const char *ses_shape_text(char *buf, size_t size, const int64_t *dim, int rank);

/* A value for people: a text without quotes, anything else as JSON, "-" for null. Returns buf. */
const char *ses_json_value_text(char *buf, size_t size, const ses_json *v);

/* Writes the finished text as a line to stdout and frees the writer. */
bool ses_json_writer_print(ses_json_writer *w, ses_err *e);

#endif
