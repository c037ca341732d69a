/* Fast path for word-local pipelines, whose words between spaces do not affect each other: Unigram, BPE
 * and WordLevel with a white space or Metaspace pre-tokenizer and common normalizers; and SentencePiece's
 * own pipeline. Declarations shared by its files. ses_words_fast is read-only and shared between threads;
 * ses_words_work belongs to one thread.
 *
 * The text is split into chunks before spaces, but only between two split-safe characters, which the
 * normalizers treat the same whatever is beyond the space. The tokens of such a chunk depend only on its
 * bytes, so they are looked up in a cache by the original bytes, before any normalizer. On a miss, the
 * chunk goes through ses_encode_by_stages and is cached. */
#ifndef SES_TEXT_FAST_WORDS_H
#define SES_TEXT_FAST_WORDS_H

#include "fast_added.h"
#include "word_cache.h"
#include "word_store.h"

enum {
    SES_WORDS_MAX_CHUNKS = 1024,            /* chunks per list */
    SES_WORDS_BATCH = 32,                   /* chunks per batch of lookups */
    SES_WORDS_SLACK = SES_WORD_STORE_SLACK, /* tokens that copying an entry may write past its end */
    SES_WORDS_SHORT = SES_WORD_STORE_SHORT, /* maximum bytes of a chunk in a cache entry */
    SES_WORDS_EXTRA_TOKENS = 20,            /* tokens of a chunk in the store, beyond one per byte */
    SES_WORDS_CACHE_BITS = 17,
    SES_WORDS_IN_STORE = 0x80 /* as layout of an entry: the tokens are in the store, at position id[0] */
};

/* Position of a chunk. Metaspace treats the start of a text or span differently; SentencePiece's float
 * sums depend on the magnitude reached (SES_CHUNK_LARGE_SUM). */
typedef enum {
    SES_CHUNK_INNER,
    SES_CHUNK_SPAN_START,
    SES_CHUNK_TEXT_START,
    SES_CHUNK_LARGE_SUM
} ses_chunk_position;

/* SentencePiece: sum of the best path up to a token, with the index of the next override and the byte
 * offset. */
typedef struct ses_words_sum {
    float sum;
    size_t token, override, byte;
} ses_words_sum;

/* Caches and lists of one thread. */
typedef struct ses_words_work {
    /* [2 << SES_WORDS_CACHE_BITS] chunks; the key has position << 4 | length. Entry layout: bits 0-1
     * number of tokens; bit 2 words before the second token; bits 3-4 before the third; bits 5-6 total
     * words. */
    ses_word_cache_entry *cache;
    ses_word_store store; /* longer chunks, or chunks with more tokens */
    bool prefetch_store;  /* the last batch had short chunks whose tokens are in the store: prefetch them */
    uint8_t *split_safe;  /* [65536] code points below U+10000: 0 not computed yet, 1 split-safe, 2 not */
    ses_text text[5];     /* scratch for running the normalizers */
    size_t n;             /* bytes of the current text */
    ses_words_sum sum;
    ses_chunk_position inner; /* position of all chunks but the first */
    ses_token_list raw;
    uint32_t chunk_start[SES_WORDS_MAX_CHUNKS + 72];
} ses_words_work;

typedef struct ses_words_fast ses_words_fast;

/* One bit for each of 64 bytes that is a space. */
typedef uint64_t ses_words_spaces_fn(const char *p);

/* Append the tokens of the chunks chunk_start[from .. count); each ends where the next starts. ends: start
 * and end of the span that contains them. *odd: a chunk turned out to depend on its neighbors. */
typedef bool ses_words_put_fn(const ses_words_fast *f, ses_words_work *w, ses_encode_ctx *k, const char *text,
                              const uint32_t ends[2], size_t from, size_t count, bool *dependent, ses_err *e);

struct ses_words_fast {
    const ses_tokenizer *t;
    int32_t surface; /* id whose token string is the source text; -1: none */
    /* a normalizer looks at more than one white space character: check each chunk in context */
    bool needs_context_check;
    bool may_create_spaces;          /* a split-safe ASCII character may become white space */
    bool has_single_word;            /* some added token has single_word */
    uint8_t split_safe[256];         /* ASCII: 1 split-safe, 0 not; 2: decode the character */
    const struct ses_spm_model *spm; /* NULL: not SentencePiece's own pipeline */
    const struct ses_spm_norm *spm_norm;
    double max_abs_score;     /* largest magnitude of a piece score */
    bool scores_not_positive; /* no score is positive: sums only decrease */
    ses_word_hash hash;
    ses_added_first_bytes roots;
    ses_words_spaces_fn *spaces;
    ses_words_put_fn *put;
};

/* Whether the text may be split at a space next to this character. */
bool ses_words_split_safe(const ses_words_fast *f, ses_words_work *w, uint32_t cp, bool *yes, ses_err *e);

/* Whether a chunk is normalized the same alone as with another chunk before it (left) and after it
 * (right). */
bool ses_words_context_free(const ses_words_fast *f, ses_words_work *w, ses_string chunk, bool left,
                            bool right, bool *yes, ses_err *e);

/* Whether plain words and the spaces between them stay unchanged. */
bool ses_words_unchanged(const ses_words_fast *f, ses_words_work *w, bool *yes, ses_err *e);

/* Last byte of a chunk's key: its length and position. */
static inline uint8_t ses_words_tag(size_t len, ses_chunk_position position)
{
    return (uint8_t)(len | (size_t)position << 4);
}

static inline ses_chunk_position ses_chunk_position_of(const ses_words_work *w, uint32_t begin,
                                                       const uint32_t ends[2])
{
    return begin > ends[0] ? w->inner : begin ? SES_CHUNK_SPAN_START : SES_CHUNK_TEXT_START;
}

/* Tag of a long chunk: its position and, if context matters, whether it is the whole span. */
static inline uint8_t ses_words_long_tag(const ses_words_fast *f, const ses_words_work *w, uint32_t begin,
                                         uint32_t end, const uint32_t ends[2])
{
    bool all = f->needs_context_check && begin == ends[0] && end == ends[1];
    return (uint8_t)(ses_chunk_position_of(w, begin, ends) | (all ? 4u : 0u));
}

/* SentencePiece's own pipeline (fast_words_spm.c): whether it can be split; start of a span; append the
 * chunks chunk_start[from .. count); tokens of one chunk. *certain: the result does not depend on the text
 * before. */
bool ses_words_spm_open(ses_words_fast *f, const ses_tokenizer *t);
void ses_words_spm_begin(const ses_words_fast *f, ses_words_work *w, const ses_encode_ctx *k, size_t begin);
ses_words_put_fn ses_words_spm_put;
bool ses_words_spm_chunk(const ses_words_fast *f, ses_words_work *w, ses_encode_ctx *k, const char *text,
                         size_t begin, size_t end, const uint32_t ends[2], bool *certain, bool *dependent,
                         ses_err *e);
/* Whether this character never becomes white space. */
bool ses_words_spm_split_safe(const ses_words_fast *f, ses_words_work *w, ses_string c, bool *yes,
                              ses_err *e);

uint64_t ses_words_spaces_ref(const char *p);
uint64_t ses_words_spaces_avx2(const char *p);
bool ses_words_put_ref(const ses_words_fast *f, ses_words_work *w, ses_encode_ctx *k, const char *text,
                       const uint32_t ends[2], size_t from, size_t count, bool *dependent, ses_err *e);
bool ses_words_put_avx2(const ses_words_fast *f, ses_words_work *w, ses_encode_ctx *k, const char *text,
                        const uint32_t ends[2], size_t from, size_t count, bool *dependent, ses_err *e);

/* Chunk i, which is not cached: append its tokens and cache them if possible. bucket: for a short chunk;
 * hash: of a long one. */
bool ses_words_encode_miss(const ses_words_fast *f, ses_words_work *w, ses_encode_ctx *k, const char *text,
                           const uint32_t ends[2], size_t i, ses_word_cache_entry *bucket, uint64_t hash,
                           bool *dependent, ses_err *e);
/* Append the tokens of a record that has token strings of its own. */
bool ses_words_put_surface(const ses_words_fast *f, const ses_word_record *x, ses_encode_ctx *k,
                           const char *text, uint32_t at, ses_err *e);

#endif
