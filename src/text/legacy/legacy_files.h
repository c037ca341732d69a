/* Conversion of any tokenizer path to the text of a tokenizer.json. Stateless. */
#ifndef SES_TEXT_LEGACY_FILES_H
#define SES_TEXT_LEGACY_FILES_H

#include "sesame/json.h"

/* Text of the tokenizer.json for a path: a folder, a tokenizer.json, a .model or a vocab.txt. Free with
 * ses_free. exact: a single .model file is encoded exactly as by SentencePiece; else with stages of HF
 * Tokenizers, as in a folder. */
char *ses_tokenizer_read_json(const char *path, bool exact, size_t *n, ses_err *e);

/* Writes the tokenizer of an original TensorFlow checkpoint (vocab.txt, 30k-clean.model, encoder.json and
 * others) to folder `to` as tokenizer.json and tokenizer_config.json. *done: `from` is such a folder; else
 * nothing is written. */
bool ses_tokenizer_convert_original(const char *from, const char *to, bool overwrite, bool *done, ses_err *e);

/* The same for the target language of a folder with target.spm. */
char *ses_tokenizer_read_target_json(const char *path, size_t *n, ses_err *e);

#endif
