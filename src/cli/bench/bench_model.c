/* bench model: forward passes and training steps of whole models. */
#include "base/alloc.h"
#include "bench.h"
#include "bench_batch.h"
#include "cli/ui/text_table.h"
#include "op/op.h"
#include "sesame/model.h"
#include "sesame/unstable/optim.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VOCAB = 30522, GPT2_VOCAB = 50257 };

typedef struct size {
    const char *name;
    int64_t layers, hidden, heads;
    bool train, quick; /* measure training steps; include in --quick */
    bool causal;       /* GPT-2 instead of BERT */
    int64_t vocab;     /* 0: default */
} size;

static const size sizes[] = {
    { "bert-mini", 4, 256, 4, true, true },
    { "MiniLM-L6", 6, 384, 12, false, false },
    { "bert-base", 12, 768, 12, true, false },
};

static const ses_bench_load workloads[] = {
    { 1, 8, NULL }, { 1, 128, NULL }, { 8, 128, NULL }, { 1, 512, NULL }
};
static const ses_bench_load train_workload = { 8, 128, NULL };

enum { QUANTILES = 32 };

/* Quantiles of sequence lengths: sentences as in SST-2 with the tokenizer of BERT; documents log-uniform
 * from 16 to 512. */
static const int16_t sentences[QUANTILES] = {
    7,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
    23, 24, 25, 26, 27, 27, 28, 30, 31, 33, 34, 35, 37, 39, 42, 49
};
static const int16_t documents[QUANTILES] = { 17,  19,  21,  23,  26,  29,  32,  36,  40,  45,  50,
                                              56,  62,  69,  77,  86,  96,  107, 119, 132, 147, 164,
                                              183, 204, 227, 253, 282, 314, 350, 390, 435, 485 };

/* On a GPU: fewer sizes, larger batches. */
static const struct gpu_row {
    size size;
    ses_bench_load workload;
    const int16_t *ragged; /* quantiles of the lengths; NULL: equal lengths */
} gpu_rows[] = {
    { { "bert-base", 12, 768, 12, true, true, false }, { 256, 128, NULL } },
    { { "bert-base", 12, 768, 12, true, false, false }, { 64, 512, NULL } },
    { { "bert-large", 24, 1024, 16, true, false, false }, { 128, 128, NULL } },
    { { "bert-256", 12, 256, 4, true, false, false }, { 512, 128, NULL } },
    { { "bert-384", 12, 384, 6, true, true, false, 16384 }, { 512, 128, NULL } },
    { { "gpt2", 12, 768, 12, true, false, true }, { 32, 1024, NULL } },
    { { "bert-base", 12, 768, 12, false, true, false }, { 1, 128, NULL } },
    { { "bert-base", 12, 768, 12, false, false, false }, { 32, 128, NULL } },
    { { "bert-base", 12, 768, 12, false, true, false }, { 256, 128, NULL } },
    { { "bert-base", 12, 768, 12, false, false, false }, { 64, 512, NULL } },
    { { "bert-large", 24, 1024, 16, false, false, false }, { 64, 128, NULL } },
    { { "bert-base", 12, 768, 12, true, false, false }, { 1024, 0, NULL }, sentences },
    { { "bert-base", 12, 768, 12, true, false, false }, { 192, 0, NULL }, documents },
    { { "bert-base", 12, 768, 12, false, false, false }, { 1024, 0, NULL }, sentences },
    { { "bert-base", 12, 768, 12, false, false, false }, { 192, 0, NULL }, documents },
};

/* ---- model and batch ---- */

typedef struct subject {
    ses_device *dev;
    ses_json_doc *config;
    ses_model *model;
    ses_tape *tape;
    ses_optim *optim; /* NULL: inference */
    ses_bench_batch batch;
    ses_err error; /* set by a failed forward pass */
    bool recompute;
} subject;

static void subject_free(subject *s)
{
    ses_optim_free(s->optim);
    ses_tape_free(s->tape);
    ses_model_free(s->model);
    ses_json_free(s->config);
    ses_bench_batch_free(&s->batch);
}

static int64_t vocab_size(const size *z) { return z->vocab ? z->vocab : z->causal ? GPT2_VOCAB : VOCAB; }

static void put_config(char *text, size_t n, const size *z, bool train)
{
    if (z->causal)
        snprintf(
            text, n,
            "{\"model_type\": \"gpt2\", \"architectures\": [\"GPT2LMHeadModel\"], \"vocab_size\": %" PRId64
            ", \"n_embd\": %" PRId64 ", \"n_layer\": %" PRId64 ", \"n_head\": %" PRId64
            ", \"n_positions\": 1024}",
            vocab_size(z), z->hidden, z->layers, z->heads);
    else
        snprintf(text, n,
                 "{\"model_type\": \"bert\", \"architectures\": [\"%s\"], \"vocab_size\": %" PRId64
                 ", \"hidden_size\": %" PRId64 ", \"num_hidden_layers\": %" PRId64
                 ", \"num_attention_heads\": %" PRId64 ", \"intermediate_size\": %" PRId64
                 ", \"max_position_embeddings\": 512}",
                 train ? "BertForMaskedLM" : "BertModel", vocab_size(z), z->hidden, z->layers, z->heads,
                 4 * z->hidden);
}

/* Creates the tape and the optimizer for s->model. */
static bool subject_prepare(subject *s, bool train, ses_err *e)
{
    static const ses_optim_options adamw = { .lr = 1e-4,
                                             .beta1 = 0.9,
                                             .beta2 = 0.999,
                                             .eps = 1e-8,
                                             .group = { { 1, 0.01 }, { 1, 0 } },
                                             .group_of = ses_group_by_decay };
    if (!s->model) return false;
    s->tape = ses_tape_new(s->dev, &(ses_tape_options){ .record = train, .train = train }, e);
    if (s->tape && train) s->optim = ses_optim_new(ses_model_store(s->model), &adamw, e);
    return s->tape && (s->optim || !train);
}

static bool subject_new(subject *s, const ses_bench *b, const size *z, bool train, ses_err *e)
{
    char text[512];
    *s = (subject){ .dev = b->dev, .recompute = b->recompute };
    put_config(text, sizeof text, z, train);
    s->config = ses_json_parse(text, strlen(text), e);
    if (s->config)
        s->model = ses_model_new(ses_json_root(s->config), b->dev,
                                 &(ses_model_options){ .train = train, .seed = 1 }, e);
    return subject_prepare(s, train, e);
}

static bool subject_open(subject *s, const ses_bench *b, ses_err *e)
{
    *s = (subject){ .dev = b->dev, .recompute = b->recompute };
    s->model = ses_model_open(b->model, b->dev, &(ses_model_options){ .train = b->train }, e);
    return subject_prepare(s, b->train, e);
}

static int64_t length_of(const ses_bench_load *l, int64_t i) { return l->lengths ? l->lengths[i] : l->len; }

static int64_t token_count(const ses_bench_load *l)
{
    int64_t T = 0;
    for (int64_t i = 0; i < l->seqs; i++) T += length_of(l, i);
    return T;
}

static bool fill_batch(subject *s, const ses_bench_load *l, bool train, ses_err *e)
{
    int64_t *length = ses_alloc_array((size_t)l->seqs, sizeof *length, e);
    for (int64_t i = 0; length && i < l->seqs; i++) length[i] = length_of(l, i);
    bool ok = length && ses_bench_batch_fill(&s->batch, s->model, length, l->seqs, train, e);
    ses_free(length);
    return ok;
}

/* A GPU runs asynchronously: reading a value waits until all work is done. */
static void synchronize(ses_device *dev, const ses_tensor *x)
{
    ses_real one;
    if (!dev->is_host && x) ses_device_read(dev, x, 0, 1, &one, NULL);
}

static void run_forward(void *ctx, int64_t call)
{
    subject *s = ctx;
    ses_outputs out;
    (void)call;
    ses_tape_reset(s->tape, NULL);
    if (ses_model_forward(s->model, s->tape, &s->batch.batch, &(ses_output_request){ .logits = true }, &out,
                          &s->error))
        synchronize(s->dev, out.item[0].tensor);
}

static void run_step(void *ctx, int64_t call)
{
    subject *s = ctx;
    ses_outputs out;
    ses_tape_options o = { .record = true, .train = true, .seed = 1, .step = (uint32_t)call };
    o.recompute = s->recompute;
    ses_tape_reset(s->tape, &o);
    ses_store_zero_grad(ses_model_store(s->model));
    if (!ses_model_forward(s->model, s->tape, &s->batch.batch, &(ses_output_request){ 0 }, &out, &s->error))
        return;
    if (!out.loss) {
        ses_fail(&s->error, SES_EUSAGE, "%s has no loss: --train needs a class with a head",
                 ses_model_class_name(s->model));
        return;
    }
    ses_backward(s->tape, out.loss);
    ses_optim_step(s->optim, -1, 1);
    synchronize(s->dev, out.loss);
}

/* FLOPs: 2 per multiply-add of linear layers and attention; the backward pass takes twice the forward
 * pass. In masked-LM training the last layer computes only the labeled rows. */
static double flops(const size *z, const ses_bench_load *l, bool train)
{
    double T = (double)token_count(l), C = (double)z->hidden, L = (double)z->layers, pairs = 0;
    for (int64_t i = 0; i < l->seqs; i++) {
        double len = (double)length_of(l, i);
        pairs += len * len;
    }
    double rows = z->causal ? T : ceil(T / SES_BENCH_LABEL_EVERY), last_rows = train ? rows : T,
           layer = 12 * C * C, keys = 2 * C * C;
    double linear = 2 * (T * (L - 1) * layer + T * keys + last_rows * (layer - keys));
    double attention = 4 * pairs * C * (L - 1 + last_rows / T);
    double dense = z->causal ? 0 : C * C; /* before the decoder, or the pooler */
    double head = train ? 2 * rows * (dense + C * (double)vocab_size(z)) : 2 * (double)l->seqs * dense;
    return (train ? 3 : 1) * (linear + attention + head);
}

/* ---- measurement and output ---- */

/* Bytes of GPU memory in use, including the driver's; 0: unknown. */
static size_t used_memory(const subject *s)
{
    return s->dev->mem->used_bytes ? s->dev->mem->used_bytes(s->dev) : 0;
}

/* Writes the row of a measured subject. */
static bool put_row(const ses_bench *b, const subject *s, const size *z, const ses_bench_load *l,
                    const char *pass, const char *bench, const char *shape, const char *tokens,
                    double seconds, ses_text_table *t, ses_err *e)
{
    double rate = (double)s->batch.batch.tokens / seconds;
    double fraction = z->layers ? ses_bench_fraction(b, 1e-9 * flops(z, l, s->optim) / seconds) : -1;
    ses_text_table_cell(t, "%s", z->name);
    ses_text_table_cell(t, "%s", pass);
    ses_text_table_cell(t, "%s", tokens);
    ses_text_table_cell(t, "%.2f", 1e3 * seconds);
    ses_text_table_cell(t, "%.0f", rate);
    ses_text_table_cell(t, fraction < 0 ? "-" : "%.0f%%", 100 * fraction);
    ses_text_table_style(t, ses_fraction_style(fraction));
    double bytes = (double)used_memory(s);
    ses_text_table_cell(t, bytes ? "%.1f" : "-", 1e-9 * bytes);
    return (!bytes || ses_bench_row(b, bench, shape, bytes, "bytes", -1, e)) &&
           ses_bench_row(b, bench, shape, 1e3 * seconds, "ms", fraction, e) &&
           ses_bench_row(b, bench, shape, rate, "tokens/s", fraction, e);
}

/* Measures n subjects, 1 or 2, alternating; the second has its weights packed densely. */
static bool measure(ses_bench *b, subject *s, size_t n, const size *z, const ses_bench_load *l, bool train,
                    ses_text_table *t, ses_err *e)
{
    static const char *const passes[] = { "forward", "forward, dense" };
    static const char *const benches[] = { "model.forward", "model.forward_dense" };
    ses_bench_case timed[SES_LEN(passes)] = { 0 };
    char tokens[32], shape[48];
    if (l->lengths)
        snprintf(tokens, sizeof tokens, "%" PRId64 " in %" PRId64, token_count(l), l->seqs);
    else
        snprintf(tokens, sizeof tokens, "%" PRId64 "x%" PRId64, l->seqs, l->len);
    snprintf(shape, sizeof shape, "%s%s%s", z->name, *z->name ? " " : "", tokens);
    for (size_t i = 0; i < n; i++) {
        timed[i] = (ses_bench_case){ .fn = train ? run_step : run_forward, .ctx = &s[i] };
        snprintf(timed[i].name, sizeof timed[i].name, "%s %s", train ? "model.train" : benches[i], shape);
        if (!fill_batch(&s[i], l, train, e)) return false;
        for (int k = 0; k < 2; k++)
            timed[i].fn(&s[i], -1); /* packs the weights (on their second use) and touches the pages */
        if (s[i].error.code) return ses_fail(e, s[i].error.code, "%s: %s", shape, s[i].error.msg);
    }
    ses_bench_time(b, timed, n);
    for (size_t i = 0; i < n; i++) {
        if (s[i].error.code) return ses_fail(e, s[i].error.code, "%s: %s", shape, s[i].error.msg);
        if (!ses_tape_ok(s[i].tape, e)) return false;
        if (timed[i].best && !put_row(b, &s[i], z, l, train ? "training step" : passes[i],
                                      train ? "model.train" : benches[i], shape, tokens, timed[i].best, t, e))
            return false;
    }
    return true;
}

/* Parses "8x128" or "12+7+30". The caller frees *lengths. */
static bool run_model_folder(ses_bench *b, ses_text_table *t, ses_err *e)
{
    subject s[2] = { 0 };
    size_t n = b->also_dense ? 2 : 1;
    const size z = { .name = "" };
    bool ok = subject_open(&s[0], b, e);
    b->dev->exec.dense_i8 = true;
    if (ok && n > 1) ok = subject_open(&s[1], b, e);
    b->dev->exec.dense_i8 = false;
    for (size_t i = 0; ok && i < b->batches->n && !ses_bench_stopped(); i++) {
        int64_t *lengths = NULL;
        ses_bench_load l = { 0 };
        ok = ses_bench_load_parse(b->batches->item[i], &l, &lengths, e) &&
             measure(b, s, n, &z, &l, b->train, t, e);
        ses_free(lengths);
    }
    for (size_t i = 0; i < n; i++) subject_free(&s[i]);
    return ok;
}

static bool run_size(ses_bench *b, const size *z, ses_text_table *t, ses_err *e)
{
    subject s;
    ses_bench_peak(b);
    bool ok = subject_new(&s, b, z, false, e);
    for (size_t i = 0; ok && i < SES_LEN(workloads) && !ses_bench_stopped(); i++)
        ok = measure(b, &s, 1, z, &workloads[i], false, t, e);
    subject_free(&s);
    if (!ok || !z->train || ses_bench_stopped()) return ok;
    ok = subject_new(&s, b, z, true, e) && measure(b, &s, 1, z, &train_workload, true, t, e);
    subject_free(&s);
    return ok;
}

static bool run_gpu_row(ses_bench *b, const struct gpu_row *r, ses_text_table *t, ses_err *e)
{
    subject s = { 0 };
    ses_bench_load l = r->workload;
    int64_t *lengths = r->ragged ? ses_alloc_array((size_t)l.seqs, sizeof *lengths, e) : NULL;
    for (int64_t i = 0; lengths && i < l.seqs; i++) lengths[i] = r->ragged[i * 13 % QUANTILES];
    l.lengths = lengths;
    bool ok = (lengths || !r->ragged) && subject_new(&s, b, &r->size, r->size.train, e) &&
              measure(b, &s, 1, &r->size, &l, r->size.train, t, e);
    subject_free(&s);
    ses_free(lengths);
    return ok;
}

static bool run(ses_bench *b, ses_err *e)
{
    ses_text_table *t = ses_text_table_new("Model||>Tokens|>ms|>tokens/s|>peak|>GB", e);
    bool ok = t && (!b->model || run_model_folder(b, t, e)), sized = !b->model;
    for (size_t i = 0; ok && sized && b->dev->is_host && i < SES_LEN(sizes) && !ses_bench_stopped(); i++)
        if (sizes[i].quick || !b->quick) ok = run_size(b, &sizes[i], t, e);
    for (size_t i = 0; ok && sized && !b->dev->is_host && i < SES_LEN(gpu_rows) && !ses_bench_stopped(); i++)
        if (gpu_rows[i].size.quick || !b->quick) ok = run_gpu_row(b, &gpu_rows[i], t, e);
    ses_progress_end(&b->progress);
    if (ok && !b->json) {
        if (b->model)
            ses_bench_heading(b, "model", "  %s, %s, %d thread%s", b->model, ses_bench_dtype(b), b->threads,
                              b->threads == 1 ? "" : "s");
        else if (b->dev->is_host)
            ses_bench_heading(b, "model", "  random weights, %s, %d thread%s, peak %.0f GFLOP/s",
                              ses_isa_name(b->isa), b->threads, b->threads == 1 ? "" : "s", b->peak);
        else
            ses_bench_heading(b, "model", "  random weights, %s, %s", ses_device_name(b->dev),
                              ses_dtype_name(b->dev->activation_dtype));
        ok = ses_text_table_print(t, stdout, &b->call->out, 0, e);
        putchar('\n');
    }
    ses_text_table_free(t);
    return ok;
}

const ses_bench_kind ses_bench_model = { .name = "model", .run = run };
