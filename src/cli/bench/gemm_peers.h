/* Matrix products of other libraries, loaded at run time, for comparison only. The libraries stay loaded:
 * their threads do not survive dlclose. Main thread only (sets the environment). */
#ifndef SES_CLI_GEMM_PEERS_H
#define SES_CLI_GEMM_PEERS_H

#include "sesame/base.h"

/* C [m, n] = A B; A is [m, k], or [k, m] if ta; B is [k, n], or [n, k] if tb. */
typedef struct ses_gemm_problem {
    bool ta, tb;
    int64_t m, n, k;
    const float *a, *b;
    float *c;
} ses_gemm_problem;

typedef struct ses_gemm_peer {
    const char *name, *key; /* "OpenBLAS", "openblas" */
    void *lib, *call;       /* call NULL: not installed */
    void (*multiply)(const struct ses_gemm_peer *o, const ses_gemm_problem *p);
} ses_gemm_peer;

enum { SES_GEMM_PEERS = 2 };

/* Opens the installed libraries for this many threads and at most this instruction set. */
void ses_gemm_peers_open(ses_gemm_peer out[SES_GEMM_PEERS], int threads, ses_isa isa);

#endif
