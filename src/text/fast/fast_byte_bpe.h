/* The shortcut for byte-level BPE (no normalizer, ByteLevel with GPT-2's pattern, BPE): what its files
 * share.
 *
 * A window of the text at a time: 64 bytes at once are sorted into letters, numbers and white space, as
 * bit masks; the masks become the places where the pattern's matches begin, which tile the text; a
 * match's bytes, as they stand in the text, are looked up in a cache that holds its tokens. One that is
 * not there is merged, from the ids of its bytes, and kept. */
#ifndef SES_TEXT_FAST_BYTES_H
#define SES_TEXT_FAST_BYTES_H

#include "text/vocab/bpe_backtrack.h"
#include "text/stage/shared/byte_level.h"
#include "fast_added.h"
#include "word_cache.h"
#include "word_store.h"

enum {
    SES_BYTES_WINDOW = 4096, /* a multiple of 64 */
    SES_BYTES_BLOCKS = SES_BYTES_WINDOW / 64,
    SES_BYTES_EDGE = 8,                     /* bytes at a window's end whose matches depend on what follows */
    SES_BYTES_BATCH = 32,                   /* words looked up at a time */
    SES_BYTES_SLACK = SES_WORD_STORE_SLACK, /* tokens an entry may write past its own */
    SES_BYTES_SHORT = SES_WORD_STORE_SHORT, /* bytes of a word that fit an entry */
    SES_BYTES_SMALL_BITS = 17,
    SES_BYTES_ELSEWHERE = 4,   /* for the number of tokens: the store has them, id[0] is the place */
    SES_BYTES_MERGED = 1 << 14 /* bytes merged before another way is prepared */
};

/* One thread's caches, and a window. */
typedef struct ses_bytes_work {
    ses_small_entry *small; /* [2 << SES_BYTES_SMALL_BITS] */
    ses_word_store store;   /* words that are longer, or have more tokens */
    bool far;               /* the last batch had short words with many tokens */
    ses_bpe_walk walk;      /* made when enough bytes have been merged to be worth it */
    enum { SES_WALK_LATER, SES_WALK_READY, SES_WALK_NEVER } walks;
    size_t merged; /* bytes */
    /* A bit for each byte: part of a letter, of a number, of white space; goes on in a character; and
     * where matches begin. */
    uint64_t letter[SES_BYTES_BLOCKS + 1], number[SES_BYTES_BLOCKS + 1], space[SES_BYTES_BLOCKS + 1];
    uint64_t high[SES_BYTES_BLOCKS + 1]; /* is beyond ASCII */
    uint64_t inner[SES_BYTES_BLOCKS + 1], start[SES_BYTES_BLOCKS + 1];
    uint64_t blank[SES_BYTES_BLOCKS + 1], quote[SES_BYTES_BLOCKS + 1]; /* is a space, an apostrophe */
    uint16_t begin[SES_BYTES_WINDOW + 64];
    char text[SES_BYTES_WINDOW + 128]; /* the window, and zeros */
} ses_bytes_work;

typedef struct ses_bytes_fast ses_bytes_fast;

/* Masks of the first n bytes of w->text but start; bytes beyond ASCII are left out and their blocks
 * told in `wide`, a bit for each block. */
typedef uint64_t ses_bytes_sort_fn(ses_bytes_work *w, size_t n);

/* The tokens of count words, which begin at w->begin[i] and end where the next begins, to the run. */
typedef bool ses_bytes_words_fn(const ses_bytes_fast *f, ses_bytes_work *w, ses_tokens *k, size_t base,
                                size_t count, ses_err *e);

struct ses_bytes_fast {
    const ses_tokenizer *t;
    const ses_bpe *m;
    bool prefix_space;
    int32_t id[256];    /* of single bytes */
    ses_word_hash hash; /* of the caches */
    ses_roots roots;
    const uint8_t *plane; /* [65536] ses_bytes_class of the first characters of Unicode */
    ses_bytes_sort_fn *sort;
    ses_bytes_words_fn *words;
};

typedef enum { SES_BYTES_OTHER, SES_BYTES_LETTER, SES_BYTES_NUMBER, SES_BYTES_SPACE } ses_bytes_class;

uint64_t ses_bytes_sort_ref(ses_bytes_work *w, size_t n);
uint64_t ses_bytes_sort_avx2(ses_bytes_work *w, size_t n);
uint64_t ses_bytes_sort_avx512(ses_bytes_work *w, size_t n);
bool ses_bytes_words_ref(const ses_bytes_fast *f, ses_bytes_work *w, ses_tokens *k, size_t base, size_t count,
                         ses_err *e);
bool ses_bytes_words_avx2(const ses_bytes_fast *f, ses_bytes_work *w, ses_tokens *k, size_t base,
                          size_t count, ses_err *e);

/* Where the matches of the window's first n bytes begin: their number, w->begin, and the end after the
 * last. last: the text ends with the window. More than a window without a match's end: 0. */
size_t ses_bytes_list(const ses_bytes_fast *f, ses_bytes_work *w, const char *text, size_t n, bool last);

/* A word that no cache has: its tokens to the run, and kept. bucket: where a short one is kept; hash: of a
 * long one. */
bool ses_bytes_new(const ses_bytes_fast *f, ses_bytes_work *w, ses_tokens *k, ses_string word, uint32_t at,
                   ses_small_entry *bucket, uint64_t hash, ses_err *e);
/* A word of any length, which is not kept. */
bool ses_bytes_whole(const ses_bytes_fast *f, ses_bytes_work *w, ses_tokens *k, const char *word, size_t n,
                     uint32_t at, ses_err *e);

#endif
