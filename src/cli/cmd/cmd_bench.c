/* bench: how fast this machine multiplies matrices, runs each op, and runs whole models. */
#define _POSIX_C_SOURCE 200809L
#include "cli/bench/bench.h"
#include "cli/compute_args.h"

#include "base/thread_pool.h"

#include <signal.h>
#include <string.h>

typedef struct args {
    ses_compute_args compute;
    bool quick, train, recompute, turns;
    const char *only, *model;
    ses_opt_list loads;
} args;

static const ses_opt opt[] = {
    { .name = "quick",
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, quick),
      .help = "fewer sizes, shorter measurements: seconds, and rougher numbers" },
    { .name = "only",
      .type = SES_OPT_TEXT,
      .offset = offsetof(args, only),
      .value = "TEXT",
      .help = "gemm: rows with this in their name and shape, as \"gemm_gelu 128x3072x768\"" },
    { .name = "model",
      .letter = 'm',
      .type = SES_OPT_TEXT,
      .offset = offsetof(args, model),
      .value = "DIR",
      .is_model = true,
      .help = "model: this folder, in place of sizes with random weights" },
    { .name = "load",
      .letter = 'l',
      .type = SES_OPT_LIST,
      .offset = offsetof(args, loads),
      .value = "BATCH",
      .help = "--model: 8x128 for 8 sequences of 128 tokens, or the length of each, as 12+7+30" },
    { .name = "train",
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, train),
      .help = "--model: steps of training in place of passes" },
    { .name = "recompute",
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, recompute),
      .help = "model: training runs layers again on the way back, as pretrain --recompute" },
    { .name = "turns",
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, turns),
      .help = "take turns with another program: a round for each line on standard input" },
    SES_OPT_INCLUDE(args, compute, ses_compute_options),
};

static const ses_bench_kind *const kinds[] = {
    &ses_bench_gemm,      &ses_bench_ops,      &ses_bench_model,
    &ses_bench_tokenizer, &ses_bench_generate, &ses_bench_pipelines
};

static volatile sig_atomic_t stopped; /* a signal has no other way to tell */

static void stop(int sig)
{
    (void)sig;
    stopped = 1;
}

bool ses_bench_stopped(void) { return stopped != 0; }

static const ses_bench_kind *find(const char *name, ses_err *e)
{
    for (size_t i = 0; i < SES_LEN(kinds); i++)
        if (!strcmp(kinds[i]->name, name)) return kinds[i];
    ses_fail(e, SES_EUSAGE,
             "nothing is known to measure as '%s': gemm, ops, model, tokenizer, generate or pipelines", name);
    return NULL;
}

static bool run_on(ses_bench *b, const ses_bench_kind *k, int threads, const char *device, ses_err *e)
{
    ses_device_options o = { .threads = threads, .isa = b->isa, .dtype = b->dtype, .autotune_eagerly = true };
    b->threads = threads;
    b->peak = 0;
    b->dev = ses_device_open(device, &o, e);
    if (!b->dev) return false;
    if (k->host && !b->dev->is_host) {
        ses_device_free(b->dev);
        return ses_fail(e, SES_EUNSUPPORTED, "bench %s runs on a CPU only, not on %s", k->name, device);
    }
    b->progress = ses_progress_start(stderr, &b->call->err, b->call->quiet, k->name, 0);
    b->done = 0;
    bool ok = k->run(b, e);
    ses_progress_end(&b->progress);
    ses_device_free(b->dev);
    b->dev = NULL;
    return ok;
}

static bool run_kind(ses_bench *b, const ses_bench_kind *k, const args *a, ses_err *e)
{
    int all = ses_compute_threads(&a->compute);
    bool alone = k->both && !a->compute.threads && all > 1;
    if (alone && !run_on(b, k, 1, a->compute.device, e)) return false;
    return ses_bench_stopped() || run_on(b, k, all, a->compute.device, e);
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_bench b = {
        .call = c, .json = a->compute.json, .quick = a->quick, .isa = ses_compute_isa(&a->compute)
    };
    b.dtype = ses_compute_device_options(&a->compute).dtype;
    b.only = a->only, b.model = a->model, b.loads = &a->loads, b.train = a->train, b.turns = a->turns;
    b.recompute = a->recompute;
    if (!a->model != !a->loads.n || (a->train && !a->model))
        return ses_fail(e, SES_EUSAGE, "--model, --load and --train go together: a folder and its batches");
    if (a->recompute && a->model && !a->train)
        return ses_fail(e, SES_EUSAGE, "--recompute is of training: give --train, too");
    bool ok = true;
    for (int i = 0; i < c->n_operands; i++) /* before minutes of measuring */
        if (!find(c->operands[i], e)) return false;
    struct sigaction once = { .sa_handler = stop, .sa_flags = (int)SA_RESETHAND }, before;
    sigaction(SIGINT, NULL, &before);
    if (before.sa_handler != SIG_IGN) sigaction(SIGINT, &once, NULL); /* a second Ctrl-C ends at once */
    for (int i = 0; ok && i < c->n_operands && !ses_bench_stopped(); i++)
        ok = run_kind(&b, find(c->operands[i], e), a, e);
    sigaction(SIGINT, &before, NULL);
    if (!ok || !ses_bench_stopped()) return ok;
    if (!c->quiet) fputs("Stopped; what was measured is shown.\n", stderr);
    return false;
}

static const ses_usage_example examples[] = {
    { "sesame bench gemm", "matrix products of BERT's shapes on one thread and on all" },
    { "sesame bench model --threads 2 --json", "whole models, a JSON object a row" },
    { "sesame bench gemm ops model --quick", "a first look" },
    { "sesame bench model --model bert-base-uncased --load 1x128 --load 12+7+30 --dtype int8",
      "a folder: one text of 128 tokens, and three of different lengths" },
    { 0 },
};

const ses_command ses_command_bench = {
    .name = "bench",
    .usage = "gemm|ops|model|tokenizer|generate|pipelines...",
    .summary = "benchmark kernels, models, tokenizers, pipelines",
    .description =
        "gemm: products of M tokens with weights N x K as BERT has them, forward with weights packed before "
        "(from the cache, and cold: rotating over weights too many for it), packed on the way, with bias "
        "and GELU, and the two products of a backward pass, dX and dW. A row's shape is MxNxK. OpenBLAS and "
        "oneDNN, where they are installed, take turns with Sesame.\n\n"
        "ops: every op at the sizes BERT-base gives it, forward and backward.\n\n"
        "model: BERT in three sizes with random weights: latency, tokens a second, training steps; with "
        "--model the folder's own, on batches of made-up ids.\n\n"
        "tokenizer: megabytes of text a second, ids and offsets.\n\n"
        "generate: one more token of a text behind a cache of keys and values, early and late in it.\n\n"
        "pipelines: texts and tokens a second, from text to answer, of a small BERT with random weights.\n\n"
        "Times are the best of several rounds in which all contestants take turns. The share of the peak "
        "compares with multiply-adds in registers, measured in the same run on as many threads. With --json "
        "each row is an object with the keys bench, shape, threads, isa, dtype, value, unit and peak_share "
        "(null where the measure is not FLOP/s). Ctrl-C shows what there is and ends.\n\n"
        "With --turns what is measured is told by {\"ready\": [NAME...]}; each line on standard input is "
        "then a short round, answered by {\"seconds\": [...]}, the fastest call of each, and the line "
        "\"next\" goes on to what is measured next. So another program can alternate with this one.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = -1,
    .operand_words = "gemm|ops|model|tokenizer|generate|pipelines",
    .run = run,
};
