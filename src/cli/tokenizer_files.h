/* The files a tokenizer may have in a model folder. */
#ifndef SES_CLI_TOKENIZER_FILES_H
#define SES_CLI_TOKENIZER_FILES_H

#include <stdbool.h>

enum { SES_TOKENIZER_FILES = 12 };

extern const char *const ses_tokenizer_file_names[SES_TOKENIZER_FILES];

bool ses_dir_has_tokenizer(const char *dir); /* any of them */

#endif
