/* Time and energy of a model next to the original, on texts of the evaluation file.
 * Ownership: a test bench owns its device and texts; close frees them. One thread, in a child process. */
#ifndef SES_CLI_COMPRESS_TIMING_H
#define SES_CLI_COMPRESS_TIMING_H

#include "compress.h"

typedef struct ses_test_bench {
    const ses_compress *z;
    ses_device *dev;
    ses_examples *all, *texts; /* texts: a random part, which borrows from all */
} ses_test_bench;

typedef struct ses_timing {
    double latency, throughput, joules; /* as in ses_compress_costs */
    /* original / candidate: medians of the ratios of calls that followed each other */
    double speed, rate, energy_ratio;
    char energy_note[300]; /* why joules is NaN; "": it is measured */
} ses_timing;

/* Opens the CPU and reads the texts. Close it also after a failure. */
bool ses_test_bench_open(ses_test_bench *b, const ses_compress *z, ses_err *e);
void ses_test_bench_close(ses_test_bench *b);
ses_predictor *ses_test_bench_predictor(const ses_test_bench *b, size_t candidate, ses_err *e);
/* The same on the device of --device, which replaces the CPU; predictors there must be freed before. */
ses_predictor *ses_test_bench_move(ses_test_bench *b, size_t candidate, ses_err *e);
/* Predicts some texts, one at a time and all at once. */
bool ses_test_bench_visit(const ses_test_bench *b, ses_predictor *p, ses_err *e);
/* Alternates between the two models; p NULL: the original alone, with ratios 1. */
bool ses_test_bench_time(const ses_test_bench *b, ses_predictor *original, ses_predictor *p, size_t rounds,
                         ses_timing *out, ses_err *e);

#endif
