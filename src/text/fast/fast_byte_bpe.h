/* The shortcut for byte-level BPE (no normalizer, ByteLevel with GPT-2's pattern, BPE): what its files
 * share.
 *
 * A window of the text at a time: 64 bytes at once are sorted into letters, numbers and white space, as
 * bit masks; the masks become the places where the pattern's matches begin, which tile the text; a
 * match's bytes, as they stand in the text, are looked up in a cache that holds its tokens. One that is
 * not there is merged, from the ids of its bytes, and kept. */
#ifndef SES_TEXT_FAST_BYTES_H
#define SES_TEXT_FAST_BYTES_H

#include "fast_added.h"
#include "text/stage/shared/byte_level.h"
#include "text/vocab/bpe_backtrack.h"
#include "word_cache.h"
#include "word_store.h"

enum {
    SES_BYTE_BPE_WINDOW = 4096, /* a multiple of 64 */
    SES_BYTE_BPE_BLOCKS = SES_BYTE_BPE_WINDOW / 64,
    SES_BYTE_BPE_EDGE = 8,   /* bytes at a window's end whose matches depend on what follows */
    SES_BYTE_BPE_BATCH = 32, /* words looked up at a time */
    SES_BYTE_BPE_SLACK = SES_WORD_STORE_SLACK, /* tokens an entry may write past its own */
    SES_BYTE_BPE_SHORT = SES_WORD_STORE_SHORT, /* bytes of a word that fit an entry */
    SES_BYTE_BPE_CACHE_BITS = 17,
    SES_BYTE_BPE_IN_STORE = 4, /* for the number of tokens: the store has them, id[0] is the place */
    SES_BYTE_BPE_BACKTRACK_AFTER = 1 << 14 /* bytes merged before another way is prepared */
};

/* One thread's caches, and a window. */
typedef struct ses_byte_bpe_work {
    ses_word_cache_entry *cache; /* [2 << SES_BYTE_BPE_CACHE_BITS] */
    ses_word_store store;        /* words that are longer, or have more tokens */
    bool prefetch_store;         /* the last batch had short words with many tokens */
    ses_bpe_backtrack backtrack; /* made when enough bytes have been merged to be worth it */
    enum { SES_BACKTRACK_LATER, SES_BACKTRACK_READY, SES_BACKTRACK_NEVER } backtrack_state;
    size_t merged; /* bytes */
    /* A bit for each byte: part of a letter, of a number, of white space; goes on in a character; and
     * where matches begin. */
    uint64_t letter[SES_BYTE_BPE_BLOCKS + 1], number[SES_BYTE_BPE_BLOCKS + 1], space[SES_BYTE_BPE_BLOCKS + 1];
    uint64_t high[SES_BYTE_BPE_BLOCKS + 1]; /* is beyond ASCII */
    uint64_t inner[SES_BYTE_BPE_BLOCKS + 1], start[SES_BYTE_BPE_BLOCKS + 1];
    uint64_t blank[SES_BYTE_BPE_BLOCKS + 1], quote[SES_BYTE_BPE_BLOCKS + 1]; /* is a space, an apostrophe */
    uint16_t begin[SES_BYTE_BPE_WINDOW + 64];
    char text[SES_BYTE_BPE_WINDOW + 128]; /* the window, and zeros */
} ses_byte_bpe_work;

typedef struct ses_byte_bpe_fast ses_byte_bpe_fast;

/* Masks of the first n bytes of w->text but start; bytes beyond ASCII are left out and their blocks
 * told in `wide`, a bit for each block. */
typedef uint64_t ses_byte_bpe_classify_fn(ses_byte_bpe_work *w, size_t n);

/* The tokens of count words, which begin at w->begin[i] and end where the next begins, to the run. */
typedef bool ses_byte_bpe_encode_words_fn(const ses_byte_bpe_fast *f, ses_byte_bpe_work *w, ses_tokens *k,
                                          size_t base, size_t count, ses_err *e);

struct ses_byte_bpe_fast {
    const ses_tokenizer *t;
    const ses_bpe *m;
    bool prefix_space;
    int32_t id[256];    /* of single bytes */
    ses_word_hash hash; /* of the caches */
    ses_added_first_bytes roots;
    const uint8_t *char_class; /* [65536] ses_byte_bpe_class of the first characters of Unicode */
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
bool ses_byte_bpe_encode_words_ref(const ses_byte_bpe_fast *f, ses_byte_bpe_work *w, ses_tokens *k,
                                   size_t base, size_t count, ses_err *e);
bool ses_byte_bpe_encode_words_avx2(const ses_byte_bpe_fast *f, ses_byte_bpe_work *w, ses_tokens *k,
                                    size_t base, size_t count, ses_err *e);

/* Where the matches of the window's first n bytes begin: their number, w->begin, and the end after the
 * last. last: the text ends with the window. More than a window without a match's end: 0. */
size_t ses_byte_bpe_find_matches(const ses_byte_bpe_fast *f, ses_byte_bpe_work *w, const char *text, size_t n,
                                 bool last);

/* A word that no cache has: its tokens to the run, and kept. bucket: where a short one is kept; hash: of a
 * long one. */
bool ses_byte_bpe_encode_miss(const ses_byte_bpe_fast *f, ses_byte_bpe_work *w, ses_tokens *k,
                              ses_string word, uint32_t at, ses_word_cache_entry *bucket, uint64_t hash,
                              ses_err *e);
/* A word of any length, which is not kept. */
bool ses_byte_bpe_encode_long(const ses_byte_bpe_fast *f, ses_byte_bpe_work *w, ses_tokens *k,
                              const char *word, size_t n, uint32_t at, ses_err *e);

#endif
