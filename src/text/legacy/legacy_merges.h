/* Merges of a SentencePiece BPE model, which stores none: every split of a piece into two pieces is a
 * merge. */
#ifndef SES_TEXT_LEGACY_MERGES_H
#define SES_TEXT_LEGACY_MERGES_H

#include "legacy.h"

/* Write "model": a BPE model with the ids of o->vocab, and the merges of the first n pieces in order of
 * scores. */
bool ses_legacy_put_spm_bpe(ses_legacy_converter *o, const ses_string *name, const double *score, size_t n,
                            size_t unk, bool bytes, ses_err *e);

#endif
