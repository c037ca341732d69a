/* Keys and values of what a decoder has read, so that it goes on from there and reads new tokens only.
 *
 * A cache has slots, each with what one sequence has read so far. A batch that names a cache, and a slot for
 * each of its sequences, continues them: its tokens are the new ones, any number of each sequence, and
 * positions count on. On a CPU the results are the bits of one pass over everything, however it was cut.
 *
 * Of an encoder-decoder a slot also has its source. It is read by the batch that begins an empty slot (cu and
 * ids as ever, target_ids what the decoder reads); later batches leave ids NULL. Slots taken from each other
 * share their source.
 *
 * A cache belongs to one model and one thread, and is for inference: the tape must not record. */
#ifndef SESAME_CACHE_H
#define SESAME_CACHE_H

#include "sesame/model.h"

SES_BEGIN_DECLS

typedef struct ses_cache ses_cache;

/* Room for `length` tokens in each slot. Models that read in both directions have none: refused. */
ses_cache *ses_cache_new(const ses_model *m, int64_t slots, int64_t length, ses_err *e);
void ses_cache_free(ses_cache *c);
int64_t ses_cache_slots(const ses_cache *c);
int64_t ses_cache_capacity(const ses_cache *c);
size_t ses_cache_bytes(const ses_cache *c);
/* More slots, longer ones, or both; neither number may be less than it is. */
bool ses_cache_grow(ses_cache *c, int64_t slots, int64_t length, ses_err *e);

int64_t ses_cache_len(const ses_cache *c, int64_t slot);
void ses_cache_trim(ses_cache *c, int64_t slot, int64_t len); /* forget what follows; 0: the source too */

/* Slot to[i] becomes what slot from[i] is, for all i < n at once. Only rows in which the two may differ are
 * copied: beams that parted a few tokens ago cost those tokens. */
bool ses_cache_reorder(ses_cache *c, int64_t n, const int32_t *to, const int32_t *from, ses_err *e);

SES_END_DECLS

#endif
