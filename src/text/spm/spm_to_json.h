/* Conversion of SentencePiece .model files to tokenizer.json. Stateless; the model is borrowed. */
#ifndef SES_TEXT_SPM_TO_JSON_H
#define SES_TEXT_SPM_TO_JSON_H

#include "sesame/json.h"
#include "spm_proto.h"
#include "text/vocab/vocab.h"

/* Write a tokenizer.json that encodes and decodes exactly as the SentencePiece library. Its stages of type
 * "SentencePiece" are an extension of Sesame; other programs do not read them. */
bool ses_spm_write(const ses_spm *m, ses_json_writer *w, ses_err *e);

/* Write the same stages as members of an open object. vocab: ids of the pieces; pieces missing in it
 * become unk. NULL: ids of the model. */
bool ses_spm_write_stages(const ses_spm *m, const ses_vocab *vocab, ses_string unk, ses_json_writer *w,
                          ses_err *e);

/* checks that pieces are valid UTF-8 and scores are finite */
bool ses_spm_check(const ses_spm *m, ses_err *e);
/* Write the character map as a member, in base64. */
bool ses_spm_put_charsmap(ses_json_writer *w, const char *key, ses_string charsmap, ses_err *e);

#endif
