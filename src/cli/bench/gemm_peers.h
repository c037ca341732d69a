/* Other libraries' matrix products, found at run time: to compare with, never to use. */
#ifndef SES_CLI_OPPONENTS_H
#define SES_CLI_OPPONENTS_H

#include "sesame/types.h"

/* C [m, n] = A B; A is [m, k], or stored [k, m] when ta; B is [k, n], or stored [n, k] when tb. */
typedef struct ses_product {
    bool ta, tb;
    int64_t m, n, k;
    const float *a, *b;
    float *c;
} ses_product;

typedef struct ses_opponent {
    const char *name, *key; /* "OpenBLAS", "openblas" */
    void *lib, *call;       /* call NULL: not here */
    void (*multiply)(const struct ses_opponent *o, const ses_product *p);
} ses_opponent;

enum { SES_OPPONENTS = 2 };

/* Opens what is there, for so many threads and at most this level. The libraries stay loaded: their threads
 * do not survive being taken out. */
void ses_opponents_open(ses_opponent out[SES_OPPONENTS], int threads, ses_isa isa);

#endif
