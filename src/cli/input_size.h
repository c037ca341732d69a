/* Size of the input files of a command, for progress lines. Reads the file system only; safe in all
 * threads. */
#ifndef SES_CLI_INPUT_SIZE_H
#define SES_CLI_INPUT_SIZE_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of n files; "-" is standard input. 0: not all are regular files. */
int64_t ses_input_size(const char *const *file, size_t n);

#endif
