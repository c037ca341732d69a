/* In-memory representation of parsed JSON, shared by parser, accessors and writer. */
#ifndef SES_BASE_JSON_NODE_H
#define SES_BASE_JSON_NODE_H

#include "sesame/json.h"

#include "base/arena.h"
#include "base/hash.h"

#include <string.h>

/* A value takes 16 bytes. The children of a container are contiguous: elements, or alternating keys and
 * values.
 *
 * All nodes of a document are in one array whose size is known before parsing: each value and each key but
 * the root follows one of  , : [ {  so counting these bounds it. Values whose container is still open form a
 * stack that grows from the low end of the array; closing a container moves its children to the final area,
 * which grows down from the high end. A node is in one of the two at a time, so they never overlap. */
struct ses_json {
    union {
        bool b;
        int64_t i;
        uint64_t u;
        double d;
        const char *str;
        const ses_json *kid;
        const struct ses_json_lookup *lookup; /* in the node before the first key of a large object */
    };
    uint32_t pos;
    uint32_t type : 3;
    uint32_t len : 29; /* bytes, elements or members */
};

enum {
    SES_JSON_MAX_BYTES = (1 << 29) - 1, /* bytes of text */
    SES_JSON_LINEAR = 8,                /* members searched linearly; larger objects have a lookup table */
    SES_JSON_WAS_INTEGER = 1            /* `len` of a real whose text was an integer too large for 64 bits */
};

typedef struct ses_json_lookup {
    ses_hash_key key;
    uint32_t mask;
    uint32_t slot[]; /* open addressing; 0: free, else member + 1 in 27 bits, 5 bits of the hash above */
} ses_json_lookup;

struct ses_json_doc {
    ses_json *node;
    char *str;       /* all strings, NUL-terminated; each takes less than its quoted text */
    ses_arena arena; /* lookup tables */
};

enum { SES_JSON_SLOT = (1 << 27) - 1 /* mask of the member in a slot: a text has fewer than 2^27 */ };

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
