/* Tokenizers in other files than tokenizer.json: each is turned into the text of one. */
#ifndef SES_TEXT_OLD_FILES_H
#define SES_TEXT_OLD_FILES_H

#include "sesame/json.h"

/* The text of the tokenizer.json that a path stands for: a folder, a tokenizer.json, a .model or a
 * vocab.txt. ses_free. exact: a .model alone follows SentencePiece in every detail; else it is written
 * in the stages of the reference, as for a folder. */
char *ses_tokenizer_read_json(const char *path, bool exact, size_t *n, ses_err *e);

#endif
