/* Names of the files a tokenizer may have in a model folder. Constants: any thread. */
#ifndef SES_TEXT_TOKENIZER_FILES_H
#define SES_TEXT_TOKENIZER_FILES_H

#include "sesame/base.h"

enum { SES_TOKENIZER_FILES = 20 };

extern const char *const ses_tokenizer_file_names[SES_TOKENIZER_FILES];

/* Other names of a file in the original releases, for i = 0, 1, ...: vocab.bpe for merges.txt. NULL past
 * the last. */
const char *ses_tokenizer_other_name(const char *name, size_t i);

bool ses_dir_has_tokenizer(const char *dir); /* at least one of them exists */

/* The path of the tokenizer of a model: the folder of the base model if `path` is an adapter folder without
 * tokenizer files, else `path`. base: the base model's folder; NULL: the one that the adapter names. Free the
 * result with free(). */
char *ses_tokenizer_home(const char *path, const char *base, ses_err *e);

#endif
