/* Conversion of any tokenizer path to the text of a tokenizer.json. Stateless. */
#ifndef SES_TEXT_LEGACY_FILES_H
#define SES_TEXT_LEGACY_FILES_H

#include "sesame/json.h"

/* Text of the tokenizer.json for a path: a folder, a tokenizer.json, a .model or a vocab.txt. Free with
 * ses_free. exact: a single .model file is encoded exactly as by SentencePiece; else with stages of HF
 * Tokenizers, as in a folder. */
char *ses_tokenizer_read_json(const char *path, bool exact, size_t *n, ses_err *e);

#endif
