/* A bounded cache from words to tokens: variable-size records in a ring buffer, where new records
 * overwrite the oldest. A record is identified by its position, which keeps increasing across rounds, so a
 * position tells whether its record still exists. Words are found through the index, or by a position
 * stored in another cache. A store belongs to one thread. */
#ifndef SES_TEXT_WORD_STORE_H
#define SES_TEXT_WORD_STORE_H

#include "sesame/tokenizer.h"
#include "word_hash.h"

#include <string.h>

enum {
    SES_WORD_STORE_BITS = 21,       /* size of the ring, in units of 8 bytes */
    SES_WORD_STORE_INDEX_BITS = 17, /* buckets of four entries */
    SES_WORD_STORE_SHORT = 15,      /* bytes; words in the index are longer */
    SES_WORD_STORE_LONG = 1000,     /* maximum bytes of a word, and maximum tokens */
    SES_WORD_STORE_NARROW = 255, /* up to this many bytes in the word, offsets take one byte each; else two */
    SES_WORD_STORE_SLACK = 64    /* bytes readable past a record; tokens writable past the end */
};

/* Followed by: id[n], the word's bytes, begin[n], end[n], word[n] if `split`, and `names` bytes. tiles:
 * each token ends where the next starts; then end is begin + 1, and both share n + 1 entries. */
typedef struct ses_word_record {
    uint16_t len, n;    /* bytes of the word, number of tokens */
    uint16_t names;     /* bytes of token strings: for each such token a u16 length and the string */
    uint8_t tag, words; /* distinguishes equal words in different contexts; number of words */
    bool tiles : 1, split : 1;
    /* some tokens have their own string: from `names`, or the source text if names is 0 */
    bool surface : 1;
    uint8_t spare[3]; /* aligns the ids */
} ses_word_record;

typedef struct ses_word_store {
    uint64_t *ring;  /* [1 << SES_WORD_STORE_BITS] plus slack */
    uint64_t *index; /* [4 << SES_WORD_STORE_INDEX_BITS] lower half of the hash << 32 | position; 0: free */
    uint32_t head;   /* next position */
} ses_word_store;

/* Pointers into a record. Each offset takes `width` bytes. */
typedef struct ses_word_record_parts {
    int32_t *id;
    char *key;
    uint8_t *begin, *end, *word, *names;
    size_t width;
} ses_word_record_parts;

bool ses_word_store_open(ses_word_store *s, ses_err *e);
void ses_word_store_close(ses_word_store *s);
/* Positions are exhausted: discard all of them and call ses_word_store_clear. */
static inline bool ses_word_store_exhausted(const ses_word_store *s) { return s->head >> 31; }
void ses_word_store_clear(ses_word_store *s);

static inline ses_word_record_parts ses_word_record_parts_of(const ses_word_record *x)
{
    ses_word_record_parts p = { .id = (int32_t *)(x + 1) };
    p.key = (char *)(p.id + x->n);
    p.width = x->len > SES_WORD_STORE_NARROW ? 2 : 1;
    p.begin = (uint8_t *)p.key + x->len;
    p.end = p.begin + p.width * (x->tiles ? 1 : x->n);
    p.word = p.end + p.width * x->n;
    p.names = p.word + (x->split ? x->n : 0);
    return p;
}

static inline ses_offset ses_word_record_offset(const ses_word_record_parts *p, size_t i)
{
    uint16_t o[2];
    if (p->width == 1) return (ses_offset){ p->begin[i], p->end[i] };
    memcpy(&o[0], p->begin + 2 * i, sizeof o[0]);
    memcpy(&o[1], p->end + 2 * i, sizeof o[1]);
    return (ses_offset){ o[0], o[1] };
}

static inline void ses_word_record_set_offset(const ses_word_record_parts *p, size_t i, ses_offset o)
{
    uint16_t x[2] = { (uint16_t)o.begin, (uint16_t)o.end };
    if (p->width == 1) {
        p->begin[i] = (uint8_t)o.begin;
        p->end[i] = (uint8_t)o.end;
        return;
    }
    memcpy(p->begin + 2 * i, &x[0], sizeof x[0]);
    memcpy(p->end + 2 * i, &x[1], sizeof x[1]);
}

/* Allocate a record with the header `like`, and copy the word; the caller fills in the rest. *position: its
 * position. NULL: positions are exhausted. */
ses_word_record *ses_word_store_put(ses_word_store *s, const ses_word_record *like, const char *word,
                                    uint32_t *position);
/* Add the position to the index. */
void ses_word_store_add_index(ses_word_store *s, uint64_t hash, uint32_t position);

/* NULL: overwritten. */
static inline const ses_word_record *ses_word_store_at(const ses_word_store *s, uint32_t position)
{
    if (!position || s->head - position > 1u << SES_WORD_STORE_BITS) return NULL;
    return (const ses_word_record *)&s->ring[position & ((1u << SES_WORD_STORE_BITS) - 1)];
}

static inline void ses_word_store_prefetch(const ses_word_store *s, uint32_t position)
{
    const char *p = (const char *)&s->ring[position & ((1u << SES_WORD_STORE_BITS) - 1)];
    __builtin_prefetch(p);
    __builtin_prefetch(p + 64);
}

/* For words of more than 15 bytes. */
static inline uint64_t ses_word_store_hash(const ses_word_hash *h, const char *p, size_t n, uint8_t tag)
{
    uint64_t x = n << 8 | tag, a[2];
    for (size_t i = 0; i + 16 < n; i += 16) {
        memcpy(a, p + i, sizeof a);
        x = ses_word_hash16(h, a[0] ^ x, a[1]);
    }
    memcpy(a, p + n - 16, sizeof a);
    return ses_word_hash16(h, a[0] ^ x, a[1]);
}

static inline uint64_t *ses_word_store_bucket(const ses_word_store *s, uint64_t hash)
{
    return &s->index[hash >> (64 - SES_WORD_STORE_INDEX_BITS) << 2];
}

/* Position of the record with this hash; 0: none. The word itself must still be compared. */
static inline uint32_t ses_word_store_find(const ses_word_store *s, uint64_t hash)
{
    const uint64_t *b = ses_word_store_bucket(s, hash);
    for (int i = 0; i < 4; i++)
        if (b[i] >> 32 == (uint32_t)hash) return (uint32_t)b[i];
    return 0;
}

/* Whether the record belongs to this word of more than 15 bytes. */
static inline bool ses_word_record_matches(const ses_word_record *x, const char *p, size_t n, uint8_t tag)
{
    const char *key = (const char *)((const int32_t *)(x + 1) + x->n);
    uint64_t a[2], b[2], differ = 0;
    if (x->len != n || x->tag != tag) return false;
    for (size_t i = 0; i + 16 < n; i += 16) {
        memcpy(a, key + i, sizeof a), memcpy(b, p + i, sizeof b);
        differ |= (a[0] ^ b[0]) | (a[1] ^ b[1]);
    }
    memcpy(a, key + n - 16, sizeof a), memcpy(b, p + n - 16, sizeof b);
    return !(differ | (a[0] ^ b[0]) | (a[1] ^ b[1]));
}

#endif
