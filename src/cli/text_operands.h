/* The rule for texts on the command line: arguments are texts, "-" is standard input, -f FILE reads files.
 *
 * Ownership: operands are borrowed. Main thread only: hints go to stderr. */
#ifndef SES_CLI_TEXT_OPERANDS_H
#define SES_CLI_TEXT_OPERANDS_H

#include "base/str.h"
#include "command.h"
#include "sesame/unstable/table.h"

bool ses_operand_is_stdin(const char *operand);

/* Prints a hint for the first operand that names an existing file, because its name is used as text. advice:
 * how to read the file. Nothing with --quiet. */
void ses_hint_file_operand(const ses_call *c, const char *advice);

/* Prints a hint for a table whose lines are read as texts. Nothing with --quiet. */
void ses_hint_table_lines(const ses_call *c, const char *path);

/* Fails if an operand, expected to be a file, does not exist. first: number of operands before the files.
 * advice: how to pass text. */
bool ses_operands_require_files(const ses_call *c, int first, const char *advice, ses_err *e);

/* Fails if standard input is given twice. */
bool ses_operands_check_stdin(const ses_call *c, ses_err *e);

/* Appends standard input, decompressed, at most SES_MAX_LINE bytes (cli/line_limit.h). */
bool ses_read_stdin(ses_buf *text, ses_text_encoding encoding, ses_err *e);

#endif
