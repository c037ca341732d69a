/* Fast path for byte-level BPE: no normalizer, ByteLevel with GPT-2's pattern, BPE. Declarations shared by
 * its files. ses_byte_bpe_fast is read-only and shared between threads; ses_byte_bpe_work belongs to one
 * thread.
 *
 * The text is processed in windows. 64 bytes at a time are classified as letter, number or white space, as
 * bit masks. The masks yield the start of each match of the pattern; the matches cover the text. The bytes
 * of a match are looked up in a cache of tokens. On a miss, the word is encoded by merging and cached. */
#ifndef SES_TEXT_FAST_BYTE_BPE_H
#define SES_TEXT_FAST_BYTE_BPE_H

#include "fast_added.h"
#include "text/stage/shared/byte_level.h"
#include "text/vocab/bpe_backtrack.h"
#include "word_cache.h"
#include "word_store.h"

enum {
    SES_BYTE_BPE_WINDOW = 4096, /* a multiple of 64 */
    SES_BYTE_BPE_BLOCKS = SES_BYTE_BPE_WINDOW / 64,
    SES_BYTE_BPE_EDGE = 8,   /* bytes at the end of a window whose matches depend on the next window */
    SES_BYTE_BPE_BATCH = 32, /* words per batch of lookups */
    SES_BYTE_BPE_SLACK = SES_WORD_STORE_SLACK, /* tokens that copying an entry may write past its end */
    SES_BYTE_BPE_SHORT = SES_WORD_STORE_SHORT, /* maximum bytes of a word in a cache entry */
    SES_BYTE_BPE_CACHE_BITS = 17,
    SES_BYTE_BPE_IN_STORE =
        4, /* as token count of an entry: the tokens are in the store, at position id[0] */
    SES_BYTE_BPE_BACKTRACK_AFTER = 1 << 14 /* bytes to merge before the backtracking encoder is built */
};

/* Caches of one thread, and a window. */
typedef struct ses_byte_bpe_work {
    ses_word_cache_entry *cache; /* [2 << SES_BYTE_BPE_CACHE_BITS] */
    ses_word_store store;        /* longer words, or words with more tokens */
    bool prefetch_store; /* the last batch had short words whose tokens are in the store: prefetch them */
    ses_bpe_backtrack backtrack; /* built once enough bytes were merged */
    enum { SES_BACKTRACK_LATER, SES_BACKTRACK_READY, SES_BACKTRACK_NEVER } backtrack_state;
    size_t merged; /* bytes merged so far */
    /* One bit per byte: part of a letter, number, white space; UTF-8 continuation byte; start of a match. */
    uint64_t letter[SES_BYTE_BPE_BLOCKS + 1], number[SES_BYTE_BPE_BLOCKS + 1], space[SES_BYTE_BPE_BLOCKS + 1];
    uint64_t non_ascii[SES_BYTE_BPE_BLOCKS + 1]; /* non-ASCII */
    uint64_t continuation[SES_BYTE_BPE_BLOCKS + 1], start[SES_BYTE_BPE_BLOCKS + 1];
    uint64_t is_space[SES_BYTE_BPE_BLOCKS + 1], apostrophe[SES_BYTE_BPE_BLOCKS + 1]; /* space, apostrophe */
    uint16_t begin[SES_BYTE_BPE_WINDOW + 64];
    char text[SES_BYTE_BPE_WINDOW + 128]; /* the window, followed by zeros */
} ses_byte_bpe_work;

typedef struct ses_byte_bpe_fast ses_byte_bpe_fast;

/* Compute all masks of the first n bytes of w->text except `start`. Non-ASCII bytes get no class; the
 * result has one bit per block that contains some. */
typedef uint64_t ses_byte_bpe_classify_fn(ses_byte_bpe_work *w, size_t n);

/* Append the tokens of `count` words; word i is [w->begin[i], w->begin[i + 1]). */
typedef bool ses_byte_bpe_encode_words_fn(const ses_byte_bpe_fast *f, ses_byte_bpe_work *w, ses_encode_ctx *k,
                                          size_t base, size_t count, ses_err *e);

struct ses_byte_bpe_fast {
    const ses_tokenizer *t;
    const ses_bpe *m;
    bool prefix_space;
    int32_t id[256];    /* ids of single bytes */
    ses_word_hash hash; /* hash function of the caches */
    ses_added_first_bytes roots;
    const uint8_t *char_class; /* [65536] ses_byte_bpe_class of the code points below U+10000 */
    ses_byte_bpe_classify_fn *classify;
    ses_byte_bpe_encode_words_fn *encode_words;
};

typedef enum {
    SES_BYTE_BPE_OTHER,
    SES_BYTE_BPE_LETTER,
    SES_BYTE_BPE_NUMBER,
    SES_BYTE_BPE_SPACE
} ses_byte_bpe_class;

uint64_t ses_byte_bpe_classify_ref(ses_byte_bpe_work *w, size_t n);
uint64_t ses_byte_bpe_classify_avx2(ses_byte_bpe_work *w, size_t n);
uint64_t ses_byte_bpe_classify_avx512(ses_byte_bpe_work *w, size_t n);
bool ses_byte_bpe_encode_words_ref(const ses_byte_bpe_fast *f, ses_byte_bpe_work *w, ses_encode_ctx *k,
                                   size_t base, size_t count, ses_err *e);
bool ses_byte_bpe_encode_words_avx2(const ses_byte_bpe_fast *f, ses_byte_bpe_work *w, ses_encode_ctx *k,
                                    size_t base, size_t count, ses_err *e);

/* Find the matches in the first n bytes of the window: fills w->begin, including the end of the last
 * match, and returns their number. last: the text ends with the window. 0: no match ends in the window. */
size_t ses_byte_bpe_find_matches(const ses_byte_bpe_fast *f, ses_byte_bpe_work *w, const char *text, size_t n,
                                 bool last);

/* A word that is not cached: append its tokens and cache them. bucket: for a short word; hash: of a long
 * one. */
bool ses_byte_bpe_encode_miss(const ses_byte_bpe_fast *f, ses_byte_bpe_work *w, ses_encode_ctx *k,
                              ses_string word, uint32_t at, ses_word_cache_entry *bucket, uint64_t hash,
                              ses_err *e);
/* Encode a word of any length without caching it. */
bool ses_byte_bpe_encode_long(const ses_byte_bpe_fast *f, ses_byte_bpe_work *w, ses_encode_ctx *k,
                              const char *word, size_t n, uint32_t at, ses_err *e);

#endif
