/* `sesame bench`: types and timing shared by the benchmarks. A benchmark is one file, bench_NAME.c, and
 * one line in the list of cmd_bench.c.
 *
 * Ownership: ses_bench borrows the call and the device. Threads: benchmarks run on the main thread; the
 * device has its own workers. */
#ifndef SES_CLI_BENCH_H
#define SES_CLI_BENCH_H

#include "cli/command.h"
#include "tensor/device_impl.h"

typedef struct ses_bench {
    const ses_call *call;
    bool json, quick;
    ses_isa isa;
    ses_dtype dtype; /* weight type of inference */
    int threads;     /* worker threads of dev */
    ses_device *dev; /* the device under test */
    double peak;     /* GFLOP/s of multiply-adds in registers on these threads; 0: unknown */
    ses_progress progress;
    int64_t done, total;                /* measurements, for the progress line */
    const char *only;                   /* gemm, rnn: rows whose "BENCH SHAPE" contains this; NULL: all */
    const char *model;                  /* model, generate: folder; NULL: built-in sizes, random weights */
    const ses_opt_list *batches;        /* batches for that folder */
    const ses_opt_list *prompts;        /* generate: texts to continue, instead of batches */
    int64_t beams, new_tokens;          /* generate: with a model folder */
    bool train;                         /* model: training steps instead of forward passes */
    bool also_dense;                    /* model: sparse int8 weights packed densely, too */
    bool recompute;                     /* model: gradient checkpointing, see ses_tape_options */
    bool rounds_on_request;             /* --turns: a round per line on standard input */
    const struct ses_serve_load *serve; /* serve: the load */
} ses_bench;

/* Options of `sesame bench serve`. */
typedef struct ses_serve_load {
    const char *url, *path, *bodies;
    double rate, seconds, warmup;
    int64_t connections, seed;
} ses_serve_load;
extern const ses_opt_table ses_serve_load_options;

typedef struct ses_bench_kind {
    const char *name;
    bool (*run)(ses_bench *b, ses_err *e);
    bool both_thread_counts; /* measure one thread and all threads, unless --threads is given */
    bool cpu_only;
} ses_bench_kind;

extern const ses_bench_kind ses_bench_gemm, ses_bench_ops, ses_bench_model, ses_bench_tokenizer,
    ses_bench_generate, ses_bench_pipelines, ses_bench_rnn, ses_bench_serve;

/* Whether Ctrl-C was pressed: finish the current measurement, show the results and end. */
bool ses_bench_stopped(void);

/* Measures the peak of the level and threads of b; keeps the maximum of this and earlier values. */
void ses_bench_peak(ses_bench *b);

/* One of several candidates that alternate, so that a slow phase of the machine affects all of them. */
typedef struct ses_bench_case {
    void (*fn)(void *ctx, int64_t call); /* call: counts up, to rotate over buffers */
    void (*prepare)(void *ctx);          /* before each call, not timed; may be NULL */
    void *ctx;
    double best; /* seconds of the fastest call; 0: not measured */
    int64_t calls;
    char name[64]; /* "BENCH SHAPE", printed for --turns; may be empty */
} ses_bench_case;

/* Runs a few rounds. In each, every one of the n cases runs for a short time, at least once. With --turns
 * it prints {"ready": [NAMES]}; then each line on standard input starts a round, answered with
 * {"seconds": [...]}, the fastest call of each case. The line "next", or the end of the input, ends the
 * measurement. */
void ses_bench_time(ses_bench *b, ses_bench_case *t, size_t n);

/* Writes a result as a JSON line; without --json nothing, as each benchmark prints its own table.
 * fraction: of the peak; negative: none. */
bool ses_bench_row(const ses_bench *b, const char *bench, const char *shape, double value, const char *unit,
                   double fraction, ses_err *e);

const char *ses_bench_dtype(const ses_bench *b); /* as in --dtype */

/* Fraction of the peak for a rate in GFLOP/s; negative if the peak is unknown. */
double ses_bench_fraction(const ses_bench *b, double rate);

/* Prints the heading of a table: the title in bold, then the formatted text. */
void ses_bench_heading(const ses_bench *b, const char *title, const char *fmt, ...) SES_PRINTF(3, 4);

/* Green from 0.8 of the peak, yellow below 0.5, plain if negative. */
ses_style ses_fraction_style(double fraction);

#endif
