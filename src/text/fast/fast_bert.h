/* The shortcut for BERT's pipeline (BertNormalizer or none, BertPreTokenizer, WordPiece): what its files
 * share.
 *
 * A window of the text at a time: 64 bytes at once are sorted into words, punctuation and the rest, as bit
 * masks; the bits become the places where pieces begin and end: what lies between ASCII blanks and
 * punctuation. A piece's lower-cased bytes are looked up in caches that hold its tokens. One that is not
 * there is taken apart by tries of the vocabulary; one with characters beyond ASCII, which may be several
 * words, is normalized character by character from a table; what even that does not cover (added tokens,
 * control characters, marks that change places) goes to ses_encode_by_stages, between places where cutting
 * changes nothing. */
#ifndef SES_TEXT_FAST_BERT_H
#define SES_TEXT_FAST_BERT_H

#include "base/hash.h"
#include "text/stage/model_wordpiece.h"
#include "text/vocab/trie.h"
#include "word_cache.h"

#include <string.h>

enum {
    SES_BERT_WINDOW = 4096, /* bytes; a multiple of 64 */
    SES_BERT_BLOCKS = SES_BERT_WINDOW / 64,
    SES_BERT_BATCH = 32,      /* words looked up at a time */
    SES_BERT_SLACK = 8,       /* tokens an entry may write past its own */
    SES_BERT_SHORT = 15,      /* bytes of a word that fit a small entry */
    SES_BERT_LONG = 47,       /* and a large one */
    SES_BERT_MAX_TOKENS = 12, /* of a large one */
    SES_BERT_SMALL_BITS = 16, /* buckets of two small entries: 4 MiB */
    SES_BERT_LARGE_BITS = 14, /* of two large entries: 4 MiB */
    SES_BERT_MAX_WORD = 512,  /* bytes of a word taken apart here; longer ones go the exact way */
    SES_BERT_PAGES = 0x110000 >> 6
};

/* A piece of up to 47 bytes, its length in the last, and up to twelve tokens of any number of words. Short
 * ones are here too, where they have more tokens than a small entry takes. */
typedef struct ses_bert_large_entry {
    uint8_t key[48];
    int32_t id[SES_BERT_MAX_TOKENS];
    uint8_t begin[SES_BERT_MAX_TOKENS], end[SES_BERT_MAX_TOKENS], n, words;
    uint16_t starts; /* bit i: token i is the first of its word */
    uint8_t spare[4];
} ses_bert_large_entry;

/* What becomes of a character. */
typedef enum {
    SES_BERT_UNRESOLVED, /* not asked for yet */
    SES_BERT_LETTER,     /* part of a word */
    SES_BERT_SPACE,
    SES_BERT_SINGLE, /* a word of its own: punctuation, Chinese */
    SES_BERT_REMOVED,
    SES_BERT_BY_STAGES /* only the exact way will do */
} ses_bert_kind;

typedef struct ses_bert_char {
    uint8_t kind, n, chars;
    char byte[13]; /* UTF-8; three letters of a Hangul syllable take 9 */
    int32_t id;    /* of a word of its own */
} ses_bert_char;

/* One thread's caches. */
typedef struct ses_bert_work {
    char *caches; /* memory of the next two */
    /* [2 << SES_BERT_SMALL_BITS]. Words beyond ASCII are kept under their bytes in the text too (lower-cased
     * where ASCII), with the length's top bit set: then places are in the text. */
    ses_word_cache_entry *small;
    ses_bert_large_entry *large;         /* [2 << SES_BERT_LARGE_BITS], too */
    ses_bert_char *page[SES_BERT_PAGES]; /* characters by their upper bits; NULL: none asked for */
    ses_arena mem;

    /* a word beyond ASCII */
    char byte[SES_BERT_MAX_WORD + 64];
    ses_offset from[SES_BERT_MAX_WORD + 64];

    /* a window */
    uint64_t word[SES_BERT_BLOCKS + 1], mark[SES_BERT_BLOCKS + 1], check[SES_BERT_BLOCKS + 1];
    uint16_t begin[SES_BERT_WINDOW + 64], end[SES_BERT_WINDOW + 64];
    char key[SES_BERT_BATCH + 1][48]; /* of pieces for the large cache; the last: of a short one */
    char low[SES_BERT_WINDOW + 128];
} ses_bert_work;

typedef struct ses_bert_fast ses_bert_fast;

/* Sort n bytes (the text's end may come before the last block's) into masks and lower-case them. Bits
 * beyond n are clear. */
typedef void ses_bert_classify_fn(const ses_bert_fast *f, ses_bert_work *w, const char *text, size_t n);

/* The first n bytes of the window, which is at `base` of the text: their tokens to the run. */
typedef bool ses_bert_encode_window_fn(const ses_bert_fast *f, ses_bert_work *w, ses_tokens *k,
                                       const char *text, size_t base, size_t n, ses_err *e);

struct ses_bert_fast {
    const ses_tokenizer *t;
    const ses_wordpiece *m;
    /* Sets of ASCII: by the low four bits, a bit for each upper three. */
    uint8_t space[16], mark[16], check[16];
    bool lower;        /* A to Z become a to z */
    bool normal;       /* there are added tokens that are sought in the normal form */
    bool wide;         /* or that begin beyond ASCII: every character there is checked */
    bool hard;         /* there are added tokens that look at what is around them, or hold blanks */
    uint8_t kind[128]; /* ses_bert_kind of ASCII */
    uint64_t key[3];
    ses_trie first, next; /* tokens that begin a word, that go on in it (without the prefix) */
    ses_bert_classify_fn *classify;
    ses_bert_encode_window_fn *encode_window;
};

static inline uint64_t ses_bert_hash(const ses_bert_fast *f, uint64_t a, uint64_t b)
{
    uint64_t h = (a ^ f->key[0]) * 0x9E3779B97F4A7C15u + (b ^ f->key[1]) * 0xC2B2AE3D27D4EB4Fu;
    return (h ^ h >> 32) * f->key[2];
}

/* The bucket of a large entry's key; its products do not wait for each other. */
static inline uint32_t ses_bert_large_slot(const ses_bert_fast *f, const char *key)
{
    uint64_t a[6], h = 0;
    memcpy(a, key, sizeof a);
    for (size_t i = 0; i < 6; i++)
        h += (a[i] ^ f->key[i & 1]) * (0x9E3779B97F4A7C15u + i * 0x632BE59BD9B4E01Au);
    return 2 * (uint32_t)((h ^ h >> 32) * f->key[2] >> (64 - SES_BERT_LARGE_BITS));
}

static inline size_t ses_bert_bit_positions(uint64_t bits, size_t base, uint16_t *out)
{
    size_t n = (size_t)__builtin_popcountll(bits);
    while (bits) {
        for (int i = 0; i < 4; i++) { /* too many do no harm */
            *out++ = (uint16_t)(base + (bits ? (size_t)__builtin_ctzll(bits) : 0));
            bits &= bits - 1;
        }
    }
    return n;
}

/* Begins and ends of the words and marks in the first n bytes of the window. */
static inline size_t ses_bert_find_pieces(ses_bert_work *w, size_t n)
{
    size_t begins = 0, ends = 0, blocks = (n + 63) / 64;
    uint64_t before = 0;
    for (size_t i = 0; i < blocks; i++) {
        uint64_t inside = n - 64 * i < 64 ? ((uint64_t)1 << (n - 64 * i)) - 1 : ~(uint64_t)0;
        uint64_t run = w->word[i] & inside, mark = w->mark[i] & inside;
        uint64_t after = 64 * (i + 1) < n ? w->word[i + 1] & 1 : 0;
        begins += ses_bert_bit_positions((run & ~(run << 1 | before)) | mark, 64 * i, w->begin + begins);
        ends += ses_bert_bit_positions((run & ~(run >> 1 | after << 63)) | mark, 64 * i, w->end + ends);
        before = run >> 63;
    }
    return begins;
}

void ses_bert_classify_ref(const ses_bert_fast *f, ses_bert_work *w, const char *text, size_t n);
bool ses_bert_encode_window_ref(const ses_bert_fast *f, ses_bert_work *w, ses_tokens *k, const char *text,
                                size_t base, size_t n, ses_err *e);
void ses_bert_classify_avx2(const ses_bert_fast *f, ses_bert_work *w, const char *text, size_t n);
bool ses_bert_encode_window_avx2(const ses_bert_fast *f, ses_bert_work *w, ses_tokens *k, const char *text,
                                 size_t base, size_t n, ses_err *e);
void ses_bert_classify_avx512(const ses_bert_fast *f, ses_bert_work *w, const char *text, size_t n);

/* What the normalizer makes of one character alone. Marks that NFD may move are odd: they have neighbors. */
bool ses_bert_normalize_char(const ses_bert_fast *f, uint32_t cp, ses_bert_char *c, ses_err *e);

/* A piece of at most 47 bytes that is in neither cache: its tokens to the run, and to a cache. It may be
 * several words, or none. key: of a large entry, whose bucket is at slot; small: the piece's bucket, NULL
 * where it is too long for one. False with k->bad: not UTF-8. */
bool ses_bert_encode_miss(const ses_bert_fast *f, ses_bert_work *w, ses_tokens *k, const char *text,
                          size_t begin, size_t n, const char *key, uint32_t slot, ses_word_cache_entry *small,
                          ses_err *e);
/* A longer one, which is kept in none: bytes [at, at + n) of the window, at `base` of the text. */
bool ses_bert_encode_long(const ses_bert_fast *f, ses_bert_work *w, ses_tokens *k, const char *text,
                          size_t base, size_t at, size_t n, ses_err *e);
/* Bytes [begin, end) of the text between ASCII white space or punctuation, with characters beyond ASCII. */
bool ses_bert_encode_non_ascii(const ses_bert_fast *f, ses_bert_work *w, ses_tokens *k, const char *text,
                               size_t begin, size_t end, ses_err *e);

#endif
