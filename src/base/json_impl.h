/* What a parsed document looks like in memory: shared by the reader and the accessors. */
#ifndef SES_BASE_JSON_NODE_H
#define SES_BASE_JSON_NODE_H

#include "sesame/json.h"

#include "arena.h"
#include "hash.h"

#include <string.h>

/* A value takes 16 bytes. Children of a container lie side by side: elements, or key and value in turn.
 *
 * All nodes of a document are one array whose size is known before parsing: each value and each key but
 * the root follows one of  , : [ {  so counting those bounds it. Values read but not yet inside a closed
 * container are a stack growing from the array's low end; closing a container moves its children to their
 * final place, growing down from the high end. A node is in one place at a time, so the two never meet. */
struct ses_json {
    union {
        bool b;
        int64_t i;
        uint64_t u;
        double d;
        const char *str;
        const ses_json *kid;
        const struct ses_json_lookup *lookup; /* only in the node before the first key of a large object */
    };
    uint32_t pos;
    uint32_t type : 3;
    uint32_t len : 29; /* bytes, elements or members */
};

enum {
    SES_JSON_MAX_BYTES = (1 << 29) - 1, /* bytes of text */
    SES_JSON_LINEAR = 8,                /* members found by comparing; more get a lookup */
    SES_JSON_WAS_INTEGER = 1            /* len of a real whose text was an integer too large for 64 bits */
};

typedef struct ses_json_lookup {
    ses_hash_key key;
    uint32_t mask;
    uint32_t slot[]; /* open addressing; 0: free, else member + 1 and above it five bits of the key's hash */
} ses_json_lookup;

struct ses_json_doc {
    ses_json *node;
    char *str;       /* all strings, each ended by NUL; the text has two quotes around each and is longer */
    ses_arena arena; /* lookups */
};

enum { SES_JSON_SLOT = (1 << 27) - 1 /* the member in a slot: a text has room for fewer than 2^27 */ };

static inline uint32_t ses_json_tag(uint64_t hash)
{
    return (uint32_t)(hash >> 32) & ~(uint32_t)SES_JSON_SLOT;
}

/* Whether a string node holds these bytes. */
static inline bool ses_json_same(const ses_json *v, const char *s, size_t n)
{
    return v->len == n && memcmp(v->str, s, n) == 0;
}

#endif
