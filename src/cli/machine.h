/* The computer as Linux describes it; 0 or "" for unknown values.
 * Plain data, no ownership. Safe in all threads. */
#ifndef SES_CLI_MACHINE_H
#define SES_CLI_MACHINE_H

#include "sesame/base.h"

struct ses_thread_pool;

typedef struct ses_machine {
    char cpu[128];
    char features[512];    /* relevant CPU flags, separated by spaces */
    int cores, usable;     /* online; usable by this process */
    double quota;          /* CPUs granted by the control group; 0: no limit */
    uint64_t memory, free; /* bytes; free: available to programs */
    uint64_t memory_limit; /* limit of the control group, bytes; 0: none */
    uint64_t page, huge;   /* page sizes in bytes */
    char huge_mode[16];    /* transparent huge pages: always, madvise, never */
    char system[96];       /* "Linux 6.1.0 x86_64" */
} ses_machine;

ses_machine ses_machine_detect(void);

/* Read bandwidth of all threads together, in bytes per second: the best of several passes over a large buffer
 * within about `seconds`. Negative on failure (out of memory). */
double ses_memory_bandwidth(int threads, double seconds, ses_err *e);

/* Multiply-adds in registers, the upper bound of any matrix product: sum over the threads of the pool,
 * which run at the same time for `seconds`, in GFLOP/s. threads: at most 1024. */
double ses_machine_peak_gflops(struct ses_thread_pool *pool, ses_isa isa, int threads, double seconds);
/* The same of products of tiles, int8 or bf16; 0 if the level has no tiles. */
double ses_machine_peak_tiles(struct ses_thread_pool *pool, ses_isa isa, bool bf16, int threads,
                              double seconds);

#endif
