/* Fast path for BERT's pipeline: BertNormalizer or none, BertPreTokenizer, WordPiece. Declarations shared
 * by its files. ses_bert_fast is read-only and shared between threads; ses_bert_work belongs to one
 * thread.
 *
 * The text is processed in windows. 64 bytes at a time are classified as word, punctuation or other, as
 * bit masks. The masks yield the positions of pieces: runs between ASCII spaces and punctuation. The
 * lower-cased bytes of a piece are looked up in a cache of tokens. On a miss, the piece is split with
 * tries of the vocabulary. A piece with non-ASCII characters, which may be several words, is normalized
 * character by character from a table. Everything else (added tokens, control characters, reordered
 * combining marks) goes through ses_encode_by_stages, split off at positions that do not change the
 * result. */
#ifndef SES_TEXT_FAST_BERT_H
#define SES_TEXT_FAST_BERT_H

#include "bit_positions.h"
#include "text/stage/model_wordpiece.h"
#include "text/vocab/trie.h"
#include "word_cache.h"
#include "word_hash.h"

#include <string.h>

enum {
    SES_BERT_WINDOW = 4096, /* bytes; a multiple of 64 */
    SES_BERT_BLOCKS = SES_BERT_WINDOW / 64,
    SES_BERT_BATCH = 32,      /* words per batch of lookups */
    SES_BERT_SLACK = 8,       /* tokens that copying an entry may write past its end */
    SES_BERT_SHORT = 15,      /* maximum bytes of a word in a small entry */
    SES_BERT_LONG = 47,       /* maximum bytes in a large entry */
    SES_BERT_MAX_TOKENS = 12, /* maximum tokens in a large entry */
    SES_BERT_SMALL_BITS = 16, /* buckets of two small entries: 4 MiB */
    SES_BERT_LARGE_BITS = 14, /* buckets of two large entries: 4 MiB */
    SES_BERT_MAX_WORD = 512,  /* maximum bytes of a word split here; longer ones go through the stages */
    SES_BERT_PAGES = 0x110000 >> 6
};

/* A piece of up to 47 bytes (its length is in the last byte) with up to twelve tokens of any number of
 * words. Also short pieces with more tokens than fit a small entry. */
typedef struct ses_bert_large_entry {
    uint8_t key[48];
    int32_t id[SES_BERT_MAX_TOKENS];
    uint8_t begin[SES_BERT_MAX_TOKENS], end[SES_BERT_MAX_TOKENS], n, words;
    uint16_t starts; /* bit i: token i is the first of its word */
    uint8_t spare[4];
} ses_bert_large_entry;

/* Class of a character after normalization. */
typedef enum {
    SES_BERT_UNRESOLVED, /* not computed yet */
    SES_BERT_LETTER,     /* part of a word */
    SES_BERT_SPACE,
    SES_BERT_SINGLE, /* a word by itself: punctuation, CJK */
    SES_BERT_REMOVED,
    SES_BERT_BY_STAGES /* needs ses_encode_by_stages */
} ses_bert_kind;

typedef struct ses_bert_char {
    uint8_t kind, n, chars;
    char byte[13]; /* UTF-8; the three letters of a Hangul syllable take 9 bytes */
    int32_t id;    /* SES_BERT_SINGLE only */
} ses_bert_char;

/* Caches of one thread. */
typedef struct ses_bert_work {
    char *caches; /* memory of `small` and `large` */
    /* [2 << SES_BERT_SMALL_BITS]. Words with non-ASCII characters are also cached under their original
     * bytes (ASCII lower-cased) with the top bit of the length set; their ranges then refer to the text. */
    ses_word_cache_entry *small;
    ses_bert_large_entry *large;         /* [2 << SES_BERT_LARGE_BITS] */
    ses_bert_char *page[SES_BERT_PAGES]; /* characters by their upper bits; NULL: none computed yet */
    ses_arena mem;

    /* a word with non-ASCII characters */
    char byte[SES_BERT_MAX_WORD + 64];
    ses_offset from[SES_BERT_MAX_WORD + 64];

    /* a window */
    uint64_t word[SES_BERT_BLOCKS + 1], punct[SES_BERT_BLOCKS + 1], check[SES_BERT_BLOCKS + 1];
    uint16_t begin[SES_BERT_WINDOW + 64], end[SES_BERT_WINDOW + 64];
    char key[SES_BERT_BATCH + 1][48]; /* keys for the large cache; the last one is for a short piece */
    char lowered[SES_BERT_WINDOW + 128];
} ses_bert_work;

typedef struct ses_bert_fast ses_bert_fast;

/* Classify n bytes into masks and lower-case them. Mask bits beyond n are 0. */
typedef void ses_bert_classify_fn(const ses_bert_fast *f, ses_bert_work *w, const char *text, size_t n);

/* Append the tokens of the first n bytes of the window, which is at `base` in the text. */
typedef bool ses_bert_encode_window_fn(const ses_bert_fast *f, ses_bert_work *w, ses_encode_ctx *k,
                                       const char *text, size_t base, size_t n, ses_err *e);

struct ses_bert_fast {
    const ses_tokenizer *t;
    const ses_wordpiece *m;
    /* Sets of ASCII characters: indexed by the low four bits, one bit per value of the upper three. */
    uint8_t space[16], punct[16], check[16];
    bool lower;  /* A-Z are lower-cased */
    bool normal; /* some added tokens match normalized text */
    /* `normal`, or some added token starts with a non-ASCII byte: check every non-ASCII character */
    bool check_non_ascii;
    bool context_tokens;  /* some added tokens depend on the text around them, or contain spaces */
    uint8_t kind[128];    /* ses_bert_kind of each ASCII character */
    ses_word_hash hash;   /* hash function of the caches */
    ses_trie first, next; /* tokens at the start of a word; tokens inside a word, without the prefix */
    ses_bert_classify_fn *classify;
    ses_bert_encode_window_fn *encode_window;
};

/* Bucket of a key in the large cache. The multiplications are independent of each other. */
static inline uint32_t ses_bert_large_slot(const ses_bert_fast *f, const char *key)
{
    uint64_t a[6], h = 0;
    memcpy(a, key, sizeof a);
    for (size_t i = 0; i < 6; i++)
        h += (a[i] ^ f->hash.key[i & 1]) * (0x9E3779B97F4A7C15u + i * 0x632BE59BD9B4E01Au);
    return 2 * (uint32_t)((h ^ h >> 32) * f->hash.key[2] >> (64 - SES_BERT_LARGE_BITS));
}

/* Find start and end of all words and punctuation in the first n bytes of the window; returns their
 * number. */
static inline size_t ses_bert_find_pieces(ses_bert_work *w, size_t n)
{
    size_t begins = 0, ends = 0, blocks = (n + 63) / 64;
    uint64_t before = 0;
    for (size_t i = 0; i < blocks; i++) {
        uint64_t inside = n - 64 * i < 64 ? ((uint64_t)1 << (n - 64 * i)) - 1 : ~(uint64_t)0;
        uint64_t run = w->word[i] & inside, punct = w->punct[i] & inside;
        uint64_t after = 64 * (i + 1) < n ? w->word[i + 1] & 1 : 0;
        begins += ses_bit_positions((run & ~(run << 1 | before)) | punct, 64 * i, w->begin + begins);
        ends += ses_bit_positions((run & ~(run >> 1 | after << 63)) | punct, 64 * i, w->end + ends);
        before = run >> 63;
    }
    return begins;
}

void ses_bert_classify_ref(const ses_bert_fast *f, ses_bert_work *w, const char *text, size_t n);
bool ses_bert_encode_window_ref(const ses_bert_fast *f, ses_bert_work *w, ses_encode_ctx *k, const char *text,
                                size_t base, size_t n, ses_err *e);
void ses_bert_classify_avx2(const ses_bert_fast *f, ses_bert_work *w, const char *text, size_t n);
bool ses_bert_encode_window_avx2(const ses_bert_fast *f, ses_bert_work *w, ses_encode_ctx *k,
                                 const char *text, size_t base, size_t n, ses_err *e);
void ses_bert_classify_avx512(const ses_bert_fast *f, ses_bert_work *w, const char *text, size_t n);

/* Normalize a single character. Marks that NFD may reorder are SES_BERT_BY_STAGES: they depend on
 * neighbors. */
bool ses_bert_normalize_char(const ses_bert_fast *f, uint32_t cp, ses_bert_char *c, ses_err *e);

/* A piece of at most 47 bytes that is in neither cache: append its tokens and cache them. It may be
 * several words, or none. key: key for the large cache, with bucket `slot`; small: bucket of the small
 * cache, NULL: too long for it. Returns false and sets k->invalid_utf8 for invalid UTF-8. */
bool ses_bert_encode_miss(const ses_bert_fast *f, ses_bert_work *w, ses_encode_ctx *k, const char *text,
                          size_t begin, size_t n, const char *key, uint32_t slot, ses_word_cache_entry *small,
                          ses_err *e);
/* A longer piece, which is not cached: bytes [at, at + n) of the window, which is at `base` in the text. */
bool ses_bert_encode_long(const ses_bert_fast *f, ses_bert_work *w, ses_encode_ctx *k, const char *text,
                          size_t base, size_t at, size_t n, ses_err *e);
/* Bytes [begin, end) of the text, between ASCII white space or punctuation, with non-ASCII characters. */
bool ses_bert_encode_non_ascii(const ses_bert_fast *f, ses_bert_work *w, ses_encode_ctx *k, const char *text,
                               size_t begin, size_t end, ses_err *e);

#endif
