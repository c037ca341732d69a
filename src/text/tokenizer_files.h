/* Names of the files a tokenizer may have in a model folder. Constants: any thread. */
#ifndef SES_TEXT_TOKENIZER_FILES_H
#define SES_TEXT_TOKENIZER_FILES_H

#include <stdbool.h>

enum { SES_TOKENIZER_FILES = 12 };

extern const char *const ses_tokenizer_file_names[SES_TOKENIZER_FILES];

bool ses_dir_has_tokenizer(const char *dir); /* at least one of them exists */

#endif
