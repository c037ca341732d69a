/* SentencePiece .model files as tokenizers. */
#ifndef SES_TEXT_SPM_H
#define SES_TEXT_SPM_H

#include "sesame/json.h"
#include "spm_proto.h"
#include "text/vocab/vocab.h"

/* The tokenizer.json of a model that encodes and decodes as SentencePiece itself: stages of type
 * "SentencePiece", which no other program reads. */
bool ses_spm_write(const ses_spm *m, ses_json_writer *w, ses_err *e);

/* The same stages as members of an object. With a vocabulary, the pieces' ids are those it gives them,
 * and a piece it lacks is unknown; pass NULL for none. */
bool ses_spm_write_stages(const ses_spm *m, const ses_vocab *vocab, ses_string unk, ses_json_writer *w,
                          ses_err *e);

bool ses_spm_check(const ses_spm *m, ses_err *e); /* pieces are UTF-8 and scores are finite */
/* A member, in base64. */
bool ses_spm_put_charsmap(ses_json_writer *w, const char *key, ses_string charsmap, ses_err *e);

#endif
