/* A list of stages of one kind: shared by the Sequence normalizer, pre-tokenizer, post-processor and
 * decoder. */
#ifndef SES_TEXT_SEQUENCE_H
#define SES_TEXT_SEQUENCE_H

#include "text/stage.h"

void *ses_sequence_open(ses_stage_kind kind, const ses_json *settings, const char *key, ses_arena *mem,
                        ses_err *e);
void ses_sequence_close(void *self);
void ses_sequence_save(const void *self, const char *key, ses_json_writer *w);
/* nested sequences are flattened */
const ses_stage_instance *ses_sequence_steps(const void *self, size_t *n);

#endif
