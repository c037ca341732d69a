/* A bounded cache from words to their tokens: records of any size, end to end in a ring, where a new one
 * takes the place of the oldest. A record is known by its place, which counts on from round to round, so
 * that a place tells whether its record is still there; words are found by an index, or by a place that
 * another cache has kept for them. */
#ifndef SES_TEXT_WORD_STORE_H
#define SES_TEXT_WORD_STORE_H

#include "sesame/tokenizer.h"
#include "word_hash.h"

#include <string.h>

enum {
    SES_WORD_STORE_BITS = 21,       /* the ring, in units of 8 bytes */
    SES_WORD_STORE_INDEX_BITS = 17, /* buckets of four */
    SES_WORD_STORE_SHORT = 15,      /* words in the index are longer */
    SES_WORD_STORE_LONG = 1000,     /* bytes of a word, and tokens, at most */
    SES_WORD_STORE_NARROW = 255,    /* bytes of a word whose offsets take one byte each; else two */
    SES_WORD_STORE_SLACK = 64       /* bytes past a record that may be read, tokens that may be written */
};

/* Followed by: id[n], the word's bytes, begin[n], end[n], word[n] if `split`, and `names` bytes. tiles: a
 * token ends where the next begins; then end is begin + 1, and there are n + 1 of both. */
typedef struct ses_word_record {
    uint16_t len, n;    /* bytes of the word, and its tokens */
    uint16_t names;     /* bytes of names: for each token called by one a length, of two, and the name */
    uint8_t tag, words; /* what else tells the word from others; words that the tokens are of */
    bool tiles : 1, split : 1;
    bool surface : 1; /* tokens are called by a text: a name, or what stands there if there are no names */
    uint8_t spare[3]; /* so that ids are aligned */
} ses_word_record;

typedef struct ses_word_store {
    uint64_t *ring;  /* [1 << SES_WORD_STORE_BITS], and slack */
    uint64_t *index; /* [4 << SES_WORD_STORE_INDEX_BITS] hash's lower half << 32 | place; 0: free */
    uint32_t head;   /* the next place */
} ses_word_store;

/* The record's parts. Offsets are of `wide` bytes each. */
typedef struct ses_word_record_parts {
    int32_t *id;
    char *key;
    uint8_t *begin, *end, *word, *names;
    size_t wide;
} ses_word_record_parts;

bool ses_word_store_open(ses_word_store *s, ses_err *e);
void ses_word_store_close(ses_word_store *s);
/* Places have run out: all of them are to be forgotten, and ses_word_store_clear called. */
static inline bool ses_word_store_exhausted(const ses_word_store *s) { return s->head >> 31; }
void ses_word_store_clear(ses_word_store *s);

static inline ses_word_record_parts ses_word_record_parts_of(const ses_word_record *x)
{
    ses_word_record_parts p = { .id = (int32_t *)(x + 1) };
    p.key = (char *)(p.id + x->n);
    p.wide = x->len > SES_WORD_STORE_NARROW ? 2 : 1;
    p.begin = (uint8_t *)p.key + x->len;
    p.end = p.begin + p.wide * (x->tiles ? 1 : x->n);
    p.word = p.end + p.wide * x->n;
    p.names = p.word + (x->split ? x->n : 0);
    return p;
}

static inline ses_offset ses_word_record_offset(const ses_word_record_parts *p, size_t i)
{
    uint16_t o[2];
    if (p->wide == 1) return (ses_offset){ p->begin[i], p->end[i] };
    memcpy(&o[0], p->begin + 2 * i, sizeof o[0]);
    memcpy(&o[1], p->end + 2 * i, sizeof o[1]);
    return (ses_offset){ o[0], o[1] };
}

static inline void ses_word_record_set_offset(const ses_word_record_parts *p, size_t i, ses_offset o)
{
    uint16_t x[2] = { (uint16_t)o.begin, (uint16_t)o.end };
    if (p->wide == 1) {
        p->begin[i] = (uint8_t)o.begin;
        p->end[i] = (uint8_t)o.end;
        return;
    }
    memcpy(p->begin + 2 * i, &x[0], sizeof x[0]);
    memcpy(p->end + 2 * i, &x[1], sizeof x[1]);
}

/* Room for a record like this, which the caller fills but for the word; *place: what it is known by. NULL:
 * places have run out. */
ses_word_record *ses_word_store_put(ses_word_store *s, const ses_word_record *like, const char *word,
                                    uint32_t *place);
/* Have the index lead there. */
void ses_word_store_add_index(ses_word_store *s, uint64_t hash, uint32_t place);

/* NULL: overwritten since. */
static inline const ses_word_record *ses_word_store_at(const ses_word_store *s, uint32_t place)
{
    if (!place || s->head - place > 1u << SES_WORD_STORE_BITS) return NULL;
    return (const ses_word_record *)&s->ring[place & ((1u << SES_WORD_STORE_BITS) - 1)];
}

static inline void ses_word_store_prefetch(const ses_word_store *s, uint32_t place)
{
    const char *p = (const char *)&s->ring[place & ((1u << SES_WORD_STORE_BITS) - 1)];
    __builtin_prefetch(p);
    __builtin_prefetch(p + 64);
}

/* Of a word of more than 15 bytes. */
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

/* The place of the record that may be the word's; 0: there is none. */
static inline uint32_t ses_word_store_find(const ses_word_store *s, uint64_t hash)
{
    const uint64_t *b = ses_word_store_bucket(s, hash);
    for (int i = 0; i < 4; i++)
        if (b[i] >> 32 == (uint32_t)hash) return (uint32_t)b[i];
    return 0;
}

/* Whether a record is of this word, of more than 15 bytes. */
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
