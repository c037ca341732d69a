/* What the computer is, as far as Linux tells; zero or "" where it does not. */
#ifndef SES_CLI_MACHINE_H
#define SES_CLI_MACHINE_H

#include "sesame/err.h"

typedef struct ses_machine {
    char cpu[128];
    char features[512];    /* those of interest, apart by blanks */
    int cores, usable;     /* online in the machine; this process may use */
    double quota;          /* CPUs the control group grants; 0: no limit */
    uint64_t memory, free; /* bytes; free: what programs can still get */
    uint64_t memory_limit; /* of the control group; 0: none */
    uint64_t page, huge;   /* bytes */
    char huge_mode[16];    /* transparent huge pages: always, madvise, never */
    char system[96];       /* "Linux 6.1.0 x86_64" */
} ses_machine;

ses_machine ses_machine_detect(void);

/* Bytes a second that all threads together read from memory, best of a few passes over a large buffer
 * in about `seconds`. Negative and an error when there is no memory for it. */
double ses_memory_bandwidth(int threads, double seconds, ses_err *e);

#endif
