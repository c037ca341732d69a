/* The shortcut for pipelines in which words between spaces do not know of each other (Unigram, BPE and
 * WordLevel behind white space or Metaspace, with any of the usual normalizers; SentencePiece's own): what
 * its files share.
 *
 * The text is cut before spaces, where that changes nothing: between two characters that are calm, which the
 * normalizers treat the same with anything behind a space next to them. Such a chunk's tokens depend on
 * its bytes alone, whatever the stages do inside; so they are looked up in a cache by those bytes as they
 * stand in the text, before any normalizer. What is not there goes the exact way and is kept. */
#ifndef SES_TEXT_FAST_WORDS_H
#define SES_TEXT_FAST_WORDS_H

#include "fast_added.h"
#include "word_cache.h"
#include "word_store.h"

enum {
    SES_WORDS_MAX_CHUNKS = 1024,            /* chunks listed at a time */
    SES_WORDS_BATCH = 32,                   /* looked up at a time */
    SES_WORDS_SLACK = SES_WORD_STORE_SLACK, /* tokens an entry may write past its own */
    SES_WORDS_SHORT = SES_WORD_STORE_SHORT, /* bytes of a chunk that fit an entry */
    SES_WORDS_EXTRA_TOKENS = 20,            /* tokens that a chunk in the store may have beyond one a byte */
    SES_WORDS_CACHE_BITS = 17,
    SES_WORDS_IN_STORE = 0x80 /* for an entry's shape: the store has it, id[0] is the place */
};

/* Where a chunk stands: Metaspace asks whether a text begins there, SentencePiece how large the sum is. */
typedef enum {
    SES_CHUNK_INNER,
    SES_CHUNK_SPAN_START,
    SES_CHUNK_TEXT_START,
    SES_CHUNK_LARGE_SUM
} ses_chunk_position;

/* SentencePiece: the sum of the best path to a token of the run, its mark, and where in the text that is. */
typedef struct ses_words_sum {
    float sum;
    size_t token, mark, byte;
} ses_words_sum;

/* One thread's caches and lists. */
typedef struct ses_words_work {
    /* [2 << SES_WORDS_CACHE_BITS] chunks, with their place << 4 beside the length. shape: tokens in bits 0-1;
     * words before the second token in bit 2, before the third in bits 3-4, in all in bits 5-6. */
    ses_word_cache_entry *cache;
    ses_word_store store; /* chunks that are longer, or have more tokens */
    bool prefetch_store;  /* the last batch had short chunks with many tokens */
    uint8_t *split_safe;  /* [65536] of the first characters of Unicode: 0: not asked yet, 1: yes, 2: no */
    ses_text text[5];     /* for asking the normalizers */
    size_t n;             /* bytes of the text at hand */
    ses_words_sum sum;
    ses_chunk_position inner; /* of chunks that are not the first */
    ses_token_list raw;
    uint32_t chunk_start[SES_WORDS_MAX_CHUNKS + 72];
} ses_words_work;

typedef struct ses_words_fast ses_words_fast;

/* A bit for each of 64 bytes that is a space. */
typedef uint64_t ses_words_spaces_fn(const char *p);

/* The chunks of text that begin at cut[from .. count) and end where the next begins, to the run. ends: where
 * the stretch they are of begins and ends. *odd: one of them is not for itself after all. */
typedef bool ses_words_put_fn(const ses_words_fast *f, ses_words_work *w, ses_tokens *k, const char *text,
                              const uint32_t ends[2], size_t from, size_t count, bool *odd, ses_err *e);

struct ses_words_fast {
    const ses_tokenizer *t;
    int32_t surface; /* the id whose tokens are called by their text */
    bool
        needs_context_check; /* a normalizer sees more than one character of white space: chunks are asked, too */
    bool may_create_spaces;          /* white space may come of ASCII that is calm */
    bool has_single_word;            /* some added token looks at the letters beside it */
    uint8_t split_safe[256];         /* of ASCII: 1 or 0; 2: decode the character */
    const struct ses_spm_model *spm; /* NULL: not SentencePiece's own pipeline */
    const struct ses_spm_norm *spm_norm;
    double max_abs_score;     /* of its pieces, without the sign */
    bool scores_not_positive; /* none is above 0: sums go down only */
    ses_word_hash hash;
    ses_added_first_bytes roots;
    ses_words_spaces_fn *spaces;
    ses_words_put_fn *put;
};

/* Whether spaces may be cut at beside this character. */
bool ses_words_split_safe(const ses_words_fast *f, ses_words_work *w, uint32_t cp, bool *yes, ses_err *e);

/* Whether a chunk is normalized by itself as it is with another before it (left) and behind it (right). */
bool ses_words_context_free(const ses_words_fast *f, ses_words_work *w, ses_string chunk, bool left,
                            bool right, bool *yes, ses_err *e);

/* Whether plain words are left as they are, with the spaces between them. */
bool ses_words_unchanged(const ses_words_fast *f, ses_words_work *w, bool *yes, ses_err *e);

/* The last of a chunk's key, that says how long it is and where it stands. */
static inline uint8_t ses_words_tag(size_t len, ses_chunk_position place)
{
    return (uint8_t)(len | (size_t)place << 4);
}

static inline ses_chunk_position ses_chunk_position_of(const ses_words_work *w, uint32_t begin,
                                                       const uint32_t ends[2])
{
    return begin > ends[0] ? w->inner : begin ? SES_CHUNK_SPAN_START : SES_CHUNK_TEXT_START;
}

/* What tells a long chunk from others with its bytes: its place, and, for normalizers that look around,
 * whether it is all there is. */
static inline uint8_t ses_words_long_tag(const ses_words_fast *f, const ses_words_work *w, uint32_t begin,
                                         uint32_t end, const uint32_t ends[2])
{
    bool all = f->needs_context_check && begin == ends[0] && end == ends[1];
    return (uint8_t)(ses_chunk_position_of(w, begin, ends) | (all ? 4u : 0u));
}

/* SentencePiece's own pipeline (fast_words_spm.c): whether it is one to be cut; before a stretch; its chunks
 * cut[from .. count) to the run; and the tokens of one. *certain: the same whatever stands before it. */
bool ses_words_spm_open(ses_words_fast *f, const ses_tokenizer *t);
void ses_words_spm_begin(const ses_words_fast *f, ses_words_work *w, const ses_tokens *k, size_t begin);
ses_words_put_fn ses_words_spm_put;
bool ses_words_spm_chunk(const ses_words_fast *f, ses_words_work *w, ses_tokens *k, const char *text,
                         size_t begin, size_t end, const uint32_t ends[2], bool *certain, bool *odd,
                         ses_err *e);
/* Whether this character is nothing that white space is made of. */
bool ses_words_spm_split_safe(const ses_words_fast *f, ses_words_work *w, ses_string c, bool *yes,
                              ses_err *e);

uint64_t ses_words_spaces_ref(const char *p);
uint64_t ses_words_spaces_avx2(const char *p);
bool ses_words_put_ref(const ses_words_fast *f, ses_words_work *w, ses_tokens *k, const char *text,
                       const uint32_t ends[2], size_t from, size_t count, bool *odd, ses_err *e);
bool ses_words_put_avx2(const ses_words_fast *f, ses_words_work *w, ses_tokens *k, const char *text,
                        const uint32_t ends[2], size_t from, size_t count, bool *odd, ses_err *e);

/* Chunk i, which no cache has: its tokens to the run, and kept where that may be. bucket: where a short one
 * is kept; hash: of a long one. */
bool ses_words_encode_miss(const ses_words_fast *f, ses_words_work *w, ses_tokens *k, const char *text,
                           const uint32_t ends[2], size_t i, ses_word_cache_entry *bucket, uint64_t hash,
                           bool *odd, ses_err *e);
/* A record's tokens, some of which are called by their text. */
bool ses_words_put_surface(const ses_words_fast *f, const ses_word_record *x, ses_tokens *k, const char *text,
                           uint32_t at, ses_err *e);

#endif
