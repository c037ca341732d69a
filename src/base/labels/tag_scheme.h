/* Label schemes of spans: BIO (IOB2) and BIOES labels, the sequences they allow, and conversion.
 * Plain data; any thread. */
#ifndef SES_BASE_TAG_SCHEME_H
#define SES_BASE_TAG_SCHEME_H

#include "sesame/base.h"

typedef enum {
    SES_TAGS_PLAIN, /* any label may follow any other */
    SES_TAGS_BIO,   /* B- begins a span, I- continues it */
    SES_TAGS_BIOES  /* S- is a span of one token; B- begins, I- continues and E- ends a longer one */
} ses_tag_scheme;

/* The names "none", "bio", "bioes", in this order. */
extern const char *const ses_tag_scheme_names[3];

/* A label "B-PER": its prefix and type. */
typedef struct ses_tag {
    char prefix;      /* O, B, I, E or S (BILOU's L and U are E and S); 0: another label */
    const char *type; /* borrowed; of another label the whole label */
    size_t n;
} ses_tag;

ses_tag ses_tag_parse(const char *label, size_t n);

/* May `to` follow `from`? from NULL: at the start of a sequence, to NULL: at its end. */
bool ses_tag_allowed(ses_tag_scheme s, const ses_tag *from, const ses_tag *to);

/* Rewrites the prefixes of a sequence to the scheme. A span begins as in conlleval: at B- and S-, at I- and
 * E- without a span before them, and where the type changes; IOB1 and invalid sequences are so repaired.
 * Labels without a prefix stay. bioes: the input has E- or S- labels. Returns the number of labels that break
 * the rules of BIOES then: E- without a beginning, B- or I- without an end. */
size_t ses_tags_convert(ses_tag *tag, size_t n, ses_tag_scheme to, bool bioes);

#endif
