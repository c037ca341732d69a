/* A KV cache: keys and values of the tokens that a decoder has processed, so that a forward pass computes
 * new tokens only.
 *
 * A cache has slots; each holds one sequence. A batch that names a cache, and a slot for each of its
 * sequences, continues these sequences: its tokens are the new ones (any number per sequence), and positions
 * continue. On a CPU the results have the bits of a single pass over the whole text, however it is split.
 *
 * In an encoder-decoder a slot also holds keys and values of its source text for cross attention. The batch
 * that starts an empty slot provides the source (cu_seqlens and ids, with target_ids as the decoder's input);
 * later batches have ids NULL. Slots copied from each other share their source.
 *
 * Ownership: the caller frees a cache with ses_cache_free, before its model.
 * Threads: a cache belongs to one model and may be used by one thread at a time.
 * Caches are for inference: the tape must not record. */
#ifndef SESAME_CACHE_H
#define SESAME_CACHE_H

#include "sesame/model.h"

SES_BEGIN_DECLS

typedef struct ses_cache ses_cache;

/* Makes a cache with `slots` empty slots of `length` tokens each. NULL and an error: out of memory, or a
 * model that cannot have one (SES_EUNSUPPORTED): not a causal decoder, positions that skip padding (RoBERTa),
 * states of earlier tokens instead (XLNet). */
ses_cache *ses_cache_new(const ses_model *m, int64_t slots, int64_t length, ses_err *e);

/* Frees a cache; c may be NULL. */
void ses_cache_free(ses_cache *c);

/* Number of slots. */
int64_t ses_cache_slots(const ses_cache *c);

/* Tokens that each slot can hold. */
int64_t ses_cache_capacity(const ses_cache *c);

/* Memory of keys and values in bytes, on the device. */
size_t ses_cache_bytes(const ses_cache *c);

/* Enlarges the number of slots, their capacity, or both, and keeps their contents; smaller values are
 * ignored. False and an error: out of memory; the cache is unchanged. */
bool ses_cache_grow(ses_cache *c, int64_t slots, int64_t length, ses_err *e);

/* Tokens in a slot; slot must be below ses_cache_slots. */
int64_t ses_cache_len(const ses_cache *c, int64_t slot);

/* Removes all tokens of a slot after the first `len`; 0 also removes the source. */
void ses_cache_trim(ses_cache *c, int64_t slot, int64_t len);

/* Copies slot from[i] to slot to[i] for all i < n at once, as beam search needs it; the entries of `to` must
 * differ. Copies only the rows in which two slots may differ: beams that split a few tokens ago cost these
 * tokens. False and an error: invalid slot, or out of memory; the cache is unchanged. */
bool ses_cache_reorder(ses_cache *c, int64_t n, const int32_t *to, const int32_t *from, ses_err *e);

SES_END_DECLS

#endif
