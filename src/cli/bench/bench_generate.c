/* bench generate: one decoding step with a KV cache, at short and long contexts, for one and several
 * sequences. */
#include "base/alloc.h"
#include "bench.h"
#include "cli/ui/text_table.h"
#include "run/pass.h"

#include <inttypes.h>
#include <string.h>

enum { VOCAB = 50257, CAPACITY = 512, MAX_SEQS = 8 };

typedef struct size {
    const char *name;
    int64_t layers, hidden, heads;
    bool quick;
} size;

static const size sizes[] = { { "gpt2-mini", 4, 256, 4, true }, { "gpt2", 12, 768, 12, false } };
static const int64_t contexts[] = { 10, 500 }, counts[] = { 1, MAX_SEQS };

typedef struct subject {
    ses_json_doc *config;
    ses_model *model;
    ses_pass pass;
    ses_cache *cache;
    int64_t seqs, context;
    bool failed;
} subject;

static void subject_free(subject *s)
{
    ses_cache_free(s->cache);
    ses_pass_close(&s->pass);
    ses_model_free(s->model);
    ses_json_free(s->config);
}

static bool subject_new(subject *s, const ses_bench *b, const size *z, ses_err *e)
{
    char text[512];
    *s = (subject){ 0 };
    snprintf(text, sizeof text,
             "{\"model_type\": \"gpt2\", \"architectures\": [\"GPT2LMHeadModel\"], \"vocab_size\": %d, "
             "\"n_embd\": "
             "%" PRId64 ", \"n_layer\": %" PRId64 ", \"n_head\": %" PRId64 ", \"n_positions\": 1024}",
             VOCAB, z->hidden, z->layers, z->heads);
    s->config = ses_json_parse(text, strlen(text), e);
    s->model = s->config
                   ? ses_model_new(ses_json_root(s->config), b->dev, &(ses_model_options){ .seed = 1 }, e)
                   : NULL;
    bool ok = s->model && ses_pass_open(&s->pass, s->model, e);
    s->cache = ok ? ses_cache_new(s->model, MAX_SEQS, CAPACITY, e) : NULL;
    return s->cache != NULL;
}

/* Feeds n tokens to each sequence. */
static bool feed(subject *s, int64_t n)
{
    static const int32_t slots[MAX_SEQS] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    static const ses_output_request want = { .logits = true };
    ses_pass *p = &s->pass;
    bool ok = ses_ints_append(&p->in.slots, slots, s->seqs, NULL);
    for (int64_t i = 0; ok && i < s->seqs * n; i++) {
        ok = ses_ints_push(&p->in.ids, (int32_t)(i * 7919 % VOCAB), NULL);
        if ((i + 1) % n == 0)
            ok = ok && ses_ints_push(&p->in.rows, (int32_t)i, NULL) &&
                 ses_batch_builder_end_sequence(&p->in, NULL);
    }
    ses_pass_begin(p, &want);
    p->batch.cache = s->cache;
    return ok && ses_model_forward(s->model, p->tape, &p->batch, &p->request, &p->out, NULL);
}

static void decode_step(void *ctx, int64_t call)
{
    subject *s = ctx;
    (void)call;
    s->failed |= !feed(s, 1);
}

static void trim_cache(void *ctx)
{
    subject *s = ctx;
    for (int64_t i = 0; i < s->seqs; i++) ses_cache_trim(s->cache, i, s->context);
}

static bool measure(ses_bench *b, subject *s, const size *z, ses_text_table *t, double *first, ses_err *e)
{
    char shape[64];
    for (int64_t i = 0; i < MAX_SEQS; i++) ses_cache_trim(s->cache, i, 0);
    s->failed = !feed(s, s->context);
    ses_bench_case timed = { .fn = decode_step, .prepare = trim_cache, .ctx = s };
    if (!s->failed) ses_bench_time(b, &timed, 1);
    if (s->failed) return ses_fail(e, SES_EARG, "%s: the forward pass failed", z->name);
    if (!timed.best) return true;
    if (!*first) *first = timed.best;
    ses_text_table_cell(t, "%s", z->name);
    ses_text_table_cell(t, "%" PRId64, s->seqs);
    ses_text_table_cell(t, "%" PRId64, s->context);
    ses_text_table_cell(t, "%.2f", 1e3 * timed.best);
    ses_text_table_cell(t, "%.0f", (double)s->seqs / timed.best);
    ses_text_table_cell(t, "%.2f", timed.best / *first);
    snprintf(shape, sizeof shape, "%s %" PRId64 "x1 at %" PRId64, z->name, s->seqs, s->context);
    return ses_bench_row(b, "generate.token", shape, 1e3 * timed.best, "ms", -1, e) &&
           ses_bench_row(b, "generate.token", shape, (double)s->seqs / timed.best, "tokens/s", -1, e);
}

static bool run_size(ses_bench *b, const size *z, ses_text_table *t, ses_err *e)
{
    subject s;
    bool ok = subject_new(&s, b, z, e);
    for (size_t c = 0; ok && c < SES_LEN(counts); c++) {
        double first = 0;
        for (size_t p = 0; ok && p < SES_LEN(contexts) && !ses_bench_stopped(); p++) {
            s.seqs = counts[c], s.context = contexts[p];
            ok = measure(b, &s, z, t, &first, e);
        }
    }
    subject_free(&s);
    return ok;
}

static bool run(ses_bench *b, ses_err *e)
{
    ses_text_table *t = ses_text_table_new("Model|>Sequences|>Context|>ms|>tokens/s|>relative", e);
    bool ok = t != NULL;
    for (size_t i = 0; ok && i < SES_LEN(sizes) && !ses_bench_stopped(); i++)
        if (sizes[i].quick || !b->quick) ok = run_size(b, &sizes[i], t, e);
    ses_progress_end(&b->progress);
    if (ok && !b->json) {
        ses_bench_heading(b, "generate", "  one token per sequence, random weights, %s, %d thread%s",
                          b->dev->is_host ? ses_isa_name(b->isa) : ses_device_name(b->dev), b->threads,
                          b->threads == 1 ? "" : "s");
        ok = ses_text_table_print(t, stdout, &b->call->out, 0, e);
        putchar('\n');
    }
    ses_text_table_free(t);
    return ok;
}

const ses_bench_kind ses_bench_generate = { .name = "generate", .run = run };
