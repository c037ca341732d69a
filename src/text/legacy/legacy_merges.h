/* The merges of a SentencePiece BPE model, which has none: every way to cut a piece in two pieces is one. */
#ifndef SES_TEXT_OLD_MERGES_H
#define SES_TEXT_OLD_MERGES_H

#include "legacy.h"

/* Write "model": BPE, ids as they stand (o->vocab knows them); merges of the first n pieces in the order of
 * scores. */
bool ses_legacy_put_spm_bpe(ses_legacy_converter *o, const ses_string *name, const double *score, size_t n,
                            size_t unk, bool bytes, ses_err *e);

#endif
