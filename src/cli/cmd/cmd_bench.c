/* bench: benchmarks matrix products, ops, models, tokenizers, generation and pipelines. */
#define _POSIX_C_SOURCE 200809L
#include "cli/bench/bench.h"
#include "cli/compute_args.h"

#include "base/thread_pool.h"

#include <signal.h>
#include <string.h>

typedef struct args {
    ses_compute_args compute;
    bool quick, train, recompute, turns, also_dense;
    const char *only, *model;
    ses_opt_list loads, prompts;
    int64_t beams, new_tokens;
    ses_serve_load serve;
} args;

static const ses_opt opt[] = {
    SES_OPT_FLAG(args, quick, "quick", "fewer sizes and shorter measurements; less precise"),
    SES_OPT_TEXT(
        args, only, "only", "TEXT",
        "gemm, rnn: only rows whose name and shape contain TEXT, such as \"gemm_gelu 128x3072x768\""),
    SES_OPT_TEXT(args, model, "model", "DIR",
                 "model, generate: benchmark this folder instead of random weights; serve: serve it",
                 .letter = 'm', .is_model = true),
    SES_OPT_LIST(args, loads, "load", "BATCH",
                 "with --model: batch, as 8x128 (8 sequences of 128 tokens) or the lengths 12+7+30",
                 .letter = 'l'),
    SES_OPT_LIST(args, prompts, "prompt", "TEXT", "generate: text to continue, instead of --load"),
    SES_OPT_INT(args, beams, "beams", "1", 1, 64, "generate: beams of each text; 1: greedy decoding"),
    SES_OPT_INT(args, new_tokens, "new-tokens", "64", 2, 100000, "generate: new tokens of each text"),
    SES_OPT_FLAG(args, train, "train", "with --model: training steps instead of forward passes"),
    SES_OPT_FLAG(args, recompute, "recompute",
                 "model: train with gradient checkpointing, as pretrain --recompute"),
    SES_OPT_FLAG(args, also_dense, "also-dense",
                 "with --model: alternate with sparse int8 weights packed densely"),
    SES_OPT_FLAG(args, turns, "turns", "alternate with another program: a round per line on standard input"),
    SES_OPT_INCLUDE(args, serve, ses_serve_load_options),
    SES_OPT_INCLUDE(args, compute, ses_compute_options),
};

static const ses_bench_kind *const kinds[] = { &ses_bench_gemm,     &ses_bench_ops,
                                               &ses_bench_model,    &ses_bench_tokenizer,
                                               &ses_bench_generate, &ses_bench_pipelines,
                                               &ses_bench_rnn,      &ses_bench_serve };

static volatile sig_atomic_t stopped; /* set by the signal handler */

static void on_signal(int sig)
{
    (void)sig;
    stopped = 1;
}

bool ses_bench_stopped(void) { return stopped != 0; }

static const ses_bench_kind *find_kind(const char *name, ses_err *e)
{
    for (size_t i = 0; i < SES_LEN(kinds); i++)
        if (!strcmp(kinds[i]->name, name)) return kinds[i];
    ses_fail(e, SES_EUSAGE,
             "unknown benchmark '%s', choose gemm, ops, model, tokenizer, generate, pipelines, rnn or serve",
             name);
    return NULL;
}

static bool run_on(ses_bench *b, const ses_bench_kind *k, int threads, const char *device, ses_err *e)
{
    ses_device_options o = { .threads = threads, .isa = b->isa, .dtype = b->dtype, .autotune_eagerly = true };
    b->threads = threads;
    b->peak = 0;
    b->dev = ses_device_open(device, &o, e);
    if (!b->dev) return false;
    if (k->cpu_only && !b->dev->is_host) {
        ses_device_free(b->dev);
        return ses_fail(e, SES_EUNSUPPORTED, "bench %s runs only on a CPU, not on %s", k->name, device);
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
    bool also_single = k->both_thread_counts && !a->compute.threads && all > 1;
    if (also_single && !run_on(b, k, 1, a->compute.device, e)) return false;
    return ses_bench_stopped() || run_on(b, k, all, a->compute.device, e);
}

static bool has_operand(const ses_call *c, const char *name)
{
    for (int i = 0; i < c->n_operands; i++)
        if (!strcmp(c->operands[i], name)) return true;
    return false;
}

/* The options of a model folder belong to `bench model` and `bench generate`; --model alone also to `bench
 * serve`. */
static bool check_options(const args *a, const ses_call *c, ses_err *e)
{
    bool one = c->n_operands == 1, model = has_operand(c, "model"),
         generate = one && has_operand(c, "generate");
    bool serve = one && has_operand(c, "serve");
    const char *of_both = a->loads.n ? "--load" : a->model && !serve ? "--model" : NULL;
    const char *of_model = a->train        ? "--train"
                           : a->also_dense ? "--also-dense"
                           : a->recompute  ? "--recompute"
                                           : NULL;
    const char *of_generate = a->prompts.n          ? "--prompt"
                              : a->beams != 1       ? "--beams"
                              : a->new_tokens != 64 ? "--new-tokens"
                                                    : NULL;
    const char *given = model ? NULL : of_model ? of_model : generate ? NULL : of_both;
    if (given)
        return ses_fail(e, SES_EUSAGE,
                        "%s applies to bench model, as in `sesame bench model --model DIR --load 8x128`, "
                        "not to bench %s",
                        given, c->operands[0]);
    if (of_generate && !generate)
        return ses_fail(
            e, SES_EUSAGE,
            "%s applies to bench generate, as in `sesame bench generate --model DIR --load 8x32`, "
            "not to bench %s",
            of_generate, c->operands[0]);
    if (generate && (a->model ? !a->loads.n == !a->prompts.n : a->loads.n || of_generate))
        return ses_fail(
            e, SES_EUSAGE,
            "bench generate --model DIR needs --load 8x32 or --prompt TEXT; without --model it measures "
            "built-in sizes, and takes none of --load, --prompt, --beams and --new-tokens");
    if (model && (!a->model != !a->loads.n || (a->train && !a->model)))
        return ses_fail(e, SES_EUSAGE, "--model and --load require each other; --train requires both");
    if (a->also_dense && (!a->model || a->train))
        return ses_fail(e, SES_EUSAGE, "--also-dense requires --model, without --train");
    return !a->recompute || !a->model || a->train || ses_fail(e, SES_EUSAGE, "--recompute requires --train");
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_bench b = {
        .call = c, .json = a->compute.json, .quick = a->quick, .isa = ses_compute_isa(&a->compute)
    };
    b.dtype = ses_compute_device_options(&a->compute).dtype;
    b.only = a->only, b.model = a->model, b.batches = &a->loads, b.train = a->train,
    b.rounds_on_request = a->turns;
    b.recompute = a->recompute, b.also_dense = a->also_dense;
    b.prompts = &a->prompts, b.beams = a->beams, b.new_tokens = a->new_tokens;
    b.serve = &a->serve;
    bool ok = true;
    for (int i = 0; i < c->n_operands; i++) /* check all names first */
        if (!find_kind(c->operands[i], e)) return false;
    if (!check_options(a, c, e)) return false;
    struct sigaction once = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND }, before;
    sigaction(SIGINT, NULL, &before);
    if (before.sa_handler != SIG_IGN) sigaction(SIGINT, &once, NULL); /* a second Ctrl-C ends at once */
    for (int i = 0; ok && i < c->n_operands && !ses_bench_stopped(); i++)
        ok = run_kind(&b, find_kind(c->operands[i], e), a, e);
    sigaction(SIGINT, &before, NULL);
    if (!ok || !ses_bench_stopped()) return ok;
    if (!c->quiet) fputs("Stopped; results are incomplete.\n", stderr);
    return false;
}

static const ses_usage_example examples[] = {
    { "sesame bench gemm", "matrix products in the shapes of BERT, on one thread and on all" },
    { "sesame bench model --threads 2 --json", "whole models, a JSON line per result" },
    { "sesame bench gemm ops model --quick", "a quick overview" },
    { "sesame bench model --model bert-base-uncased --load 1x128 --load 12+7+30 --dtype int8",
      "a model folder: one sequence of 128 tokens, and three of different lengths" },
    { "sesame bench generate --model t5-small --load 8x32 --beams 4",
      "eight prompts of 32 tokens, four beams, 64 new tokens" },
    { "sesame bench serve --url http://127.0.0.1:8080 --rate 100",
      "a server under a load of 100 requests/s" },
    { 0 },
};

const ses_command ses_command_bench = {
    .name = "bench",
    .usage = "gemm|ops|model|tokenizer|generate|pipelines|...",
    .summary = "benchmark kernels, models, tokenizers, pipelines, servers",
    .description =
        "gemm: products of M tokens with N x K weights in the shapes of BERT: forward with packed "
        "weights (in cache, and cold by rotating over more weights than fit the cache), with weights "
        "packed in the call, with bias and GELU, and both products of the backward pass, dX and dW. "
        "The shape of a row is MxNxK. OpenBLAS and oneDNN, if installed, alternate with Sesame.\n\n"
        "ops: every op at the sizes of BERT-base, forward and backward.\n\n"
        "model: BERT in three sizes with random weights: latency, tokens per second, training steps; "
        "with --model the model folder, on batches of invented ids and labels; an encoder-decoder also "
        "decodes "
        "as many tokens as it encodes, which do not count.\n\n"
        "tokenizer: megabytes of text per second, ids and offsets.\n\n"
        "generate: one decoding step with a KV cache, at a short and at a long context; with --model a "
        "folder "
        "that generates text, encoder-decoders included: --load has prompts of invented ids, --prompt texts. "
        "Prefill is the time until all prompts are read and each has its first token, decoding the time of "
        "each further one; with --beams of all beams.\n\n"
        "pipelines: texts and tokens per second from text to result, with a small BERT of random "
        "weights.\n\n"
        "rnn: recurrent networks with random weights, LSTM and GRU: forward passes and training steps.\n\n"
        "serve: requests per second and latency of an HTTP server, with --url; with --model of a server that "
        "the command starts, compared with the same texts in this process. --rate sends requests at random "
        "times, whether or not earlier ones have been answered; latency counts from the time a request was "
        "due.\n\n"
        "Times are the best of several rounds in which all candidates alternate. The fraction of the "
        "peak refers to multiply-adds in registers, measured in the same run on the same number of "
        "threads. With --json each row is an object with the keys bench, shape, threads, isa, dtype, "
        "value, unit and peak_share (null if the unit is not FLOP/s). Ctrl-C prints the results so far "
        "and ends.\n\n"
        "--turns lets another program alternate with this one: {\"ready\": [NAME...]} lists the "
        "candidates; each line on standard input starts a short round, answered by {\"seconds\": "
        "[...]} with the fastest call of each; the line \"next\" moves to the next measurement.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = -1,
    .operand_words = "gemm|ops|model|tokenizer|generate|pipelines|serve",
    .run = run,
};
