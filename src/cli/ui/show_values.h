/* Labeled lines, grouped numbers and JSON for the output of commands. Text functions write into a buffer
 * of the caller and return it. Not for concurrent use: stdout is shared. */
#ifndef SES_CLI_SHOW_VALUES_H
#define SES_CLI_SHOW_VALUES_H

#include "sesame/json.h"
#include "term.h"

/* n per second: "2,837", "5.3". */
const char *ses_rate_text(char buf[SES_NUMBER_TEXT], int64_t n, double seconds);

/* Prints "name   value": the name in bold, the value wrapped to the terminal width, at most 100 columns. */
void ses_show_line(const ses_term *t, const char *name, const char *fmt, ...) SES_PRINTF(3, 4);

const char *ses_elapsed_text(char buf[SES_NUMBER_TEXT], double seconds); /* "5.66 ms", "1.25 s" */

/* A string without quotes, "-" for null, other values as JSON. */
const char *ses_json_value_text(char *buf, size_t size, const ses_json *v);

/* Prints the text as a line and frees the writer, also on failure. */
bool ses_json_writer_print(ses_json_writer *w, ses_err *e);

#endif
