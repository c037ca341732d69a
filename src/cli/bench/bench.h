/* `sesame bench`: what kinds of measurement share. A kind is one file, bench_NAME.c, and one line in the list
 * of cmd_bench.c. */
#ifndef SES_CLI_BENCH_H
#define SES_CLI_BENCH_H

#include "cli/command.h"
#include "tensor/device_impl.h"

typedef struct ses_bench {
    const ses_call *call;
    bool json, quick;
    ses_isa isa;
    ses_dtype dtype; /* of weights where nothing is trained */
    int threads;     /* of dev, and of the rows */
    ses_device *dev; /* the one being measured */
    double peak; /* GFLOP/s of multiply-adds in registers on these threads, measured just now; 0: not known */
    ses_progress progress;
    int64_t done, total;       /* measurements, for the progress line */
    const char *only;          /* gemm: rows with this in "BENCH SHAPE"; NULL: all */
    const char *model;         /* model: this folder; NULL: sizes of its own, at random */
    const ses_opt_list *loads; /* model: batches of that folder */
    bool train;                /* model: and steps of training in place of passes */
    bool recompute;            /* model: of training steps, see ses_tape_options */
    bool turns;                /* rounds are asked for on standard input */
} ses_bench;

typedef struct ses_bench_kind {
    const char *name, *what;
    bool (*run)(ses_bench *b, ses_err *e);
    bool both; /* measured on one thread and on all, where nobody says how many */
    bool host; /* on a CPU only */
} ses_bench_kind;

extern const ses_bench_kind ses_bench_gemm, ses_bench_ops, ses_bench_model, ses_bench_tokenizer,
    ses_bench_generate, ses_bench_pipelines;

/* Whether Ctrl-C was pressed: finish what is begun, show what is there, go. */
bool ses_bench_stopped(void);

/* Measures the peak of b's level and threads; the best of this and what is known. */
void ses_bench_peak(ses_bench *b);

/* One of several that take turns, so that a slow spell of the machine meets them all. */
typedef struct ses_bench_case {
    void (*fn)(void *ctx, int64_t call); /* call: counts up, for those who rotate over buffers */
    void (*prepare)(void *ctx);          /* before each call, not timed; may be NULL */
    void *ctx;
    double best; /* seconds of the fastest call; 0: not measured */
    int64_t calls;
    char name[64]; /* "BENCH SHAPE", told to who takes turns; may be empty */
} ses_bench_case;

/* A few rounds; in each, every one of n runs for a short while, at least once. With turns: {"ready": [NAMES]}
 * is printed; then each line on standard input is a round, answered with {"seconds": [...]}, the fastest call
 * of each, and the line "next" ends the measurement, as does the end of the input. */
void ses_bench_time(ses_bench *b, ses_bench_case *t, size_t n);

/* A result. In JSON it is a line with exactly these keys; as text each kind prints its own table.
 * share: of the peak, below 0: none. */
bool ses_bench_row(const ses_bench *b, const char *bench, const char *shape, double value, const char *unit,
                   double share, ses_err *e);

const char *ses_bench_dtype(const ses_bench *b); /* as --dtype has it */

/* What share of the peak this rate (GFLOP/s) is; below 0 where no peak is known. */
double ses_bench_fraction(const ses_bench *b, double rate);

/* A heading over a table: bold, then the rest. */
void ses_bench_heading(const ses_bench *b, const char *title, const char *fmt, ...) SES_PRINTF(3, 4);

/* Green from 0.8 of the peak, yellow below 0.5, plain without one. */
ses_style ses_fraction_style(double share);

#endif
