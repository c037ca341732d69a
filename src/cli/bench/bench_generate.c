/* bench generate: one decoding step with a KV cache, at short and long contexts, for one and several
 * sequences; with a model folder whole texts, their prompts and their further tokens timed separately. */
#include "base/alloc.h"
#include "base/arena.h"
#include "bench.h"
#include "bench_batch.h"
#include "cli/ui/text_table.h"
#include "run/pass.h"
#include "sesame/generate.h"

#include <inttypes.h>
#include <stdlib.h>
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

/* ---- a model folder ---- */

typedef struct texts {
    const ses_model *model;
    const ses_prompt *prompt;
    int64_t n;
    ses_generate_options options;
    int64_t made; /* tokens of the last call */
    bool failed;
    ses_err why;
} texts;

static void generate_texts(void *ctx, int64_t call)
{
    texts *s = ctx;
    (void)call;
    ses_generated *g = s->failed ? NULL : ses_generate(s->model, s->prompt, s->n, &s->options, &s->why);
    s->failed |= !g;
    s->made = g ? g->tokens_generated : 0;
    ses_generated_free(g);
}

/* Cases with one new token, and with all of them: the difference is the time of decoding. */
static bool measure_texts(ses_bench *b, const texts *of, const char *load, ses_text_table *t, ses_err *e)
{
    texts s[2] = { *of, *of };
    ses_bench_case timed[2] = { 0 };
    char shape[96];
    int64_t read = 0, n = b->new_tokens;
    for (int64_t i = 0; i < of->n; i++) read += of->prompt[i].ids.n;
    snprintf(shape, sizeof shape, "%s, %" PRId64 " beam%s", load, b->beams, b->beams == 1 ? "" : "s");
    for (int i = 0; i < 2; i++) {
        ses_generate_options *o = &s[i].options;
        o->max_length = o->min_length = 0;
        o->max_new_tokens = o->min_new_tokens = i ? n : 1;
        o->do_sample = false;
        o->num_beams = b->beams, o->num_beam_groups = o->num_return_sequences = 1;
        o->cache_tokens = (read + of->n * (n + 1)) * b->beams + 1;
        timed[i].fn = generate_texts, timed[i].ctx = &s[i];
        snprintf(timed[i].name, sizeof timed[i].name, "generate.%s %s", i ? "text" : "prefill", load);
        generate_texts(&s[i], 0); /* the first call packs weights */
        if (s[i].failed) return *e = s[i].why, false;
        if (s[i].made < of->n * o->max_new_tokens)
            return ses_fail(e, SES_EUSAGE,
                            "--new-tokens %" PRId64 ": more than fit: the context is %" PRId64 " tokens", n,
                            ses_model_max_tokens(of->model));
    }
    ses_bench_time(b, timed, 2);
    if (!timed[1].best) return true;
    double step = (timed[1].best - timed[0].best) / (double)(n - 1);
    double prefill = (double)read / timed[0].best, rate = step > 0 ? (double)of->n / step : 0;
    ses_text_table_cell(t, "%s", load);
    ses_text_table_cell(t, "%" PRId64, b->beams);
    ses_text_table_cell(t, "%.2f", 1e3 * timed[0].best);
    ses_text_table_cell(t, "%.0f", prefill);
    ses_text_table_cell(t, "%.2f", 1e3 * step);
    ses_text_table_cell(t, "%.0f", rate);
    return ses_bench_row(b, "generate.prefill", shape, 1e3 * timed[0].best, "ms", -1, e) &&
           ses_bench_row(b, "generate.prefill", shape, prefill, "tokens/s", -1, e) &&
           ses_bench_row(b, "generate.decode", shape, 1e3 * step, "ms", -1, e) &&
           ses_bench_row(b, "generate.decode", shape, rate, "tokens/s", -1, e);
}

/* Prompts of invented ids. */
static bool measure_load(ses_bench *b, texts *s, const char *load, ses_text_table *t, ses_err *e)
{
    ses_bench_load l = { 0 };
    int64_t *lengths = NULL, vocab = ses_model_vocab_size(s->model);
    ses_arena mem = { 0 };
    bool ok = ses_bench_load_parse(load, &l, &lengths, e);
    ses_prompt *p = ok ? ses_arena_array(&mem, (size_t)l.seqs, sizeof *p, e) : NULL;
    for (int64_t i = 0, at = 0; p && i < l.seqs; i++) {
        int64_t n = l.lengths ? l.lengths[i] : l.len;
        int32_t *id = ses_arena_array(&mem, (size_t)n, sizeof *id, e);
        for (int64_t j = 0; id && j < n; j++) id[j] = (int32_t)(at++ * 7919 % vocab);
        p[i] = (ses_prompt){ .ids = { id, n } };
        if (!id) p = NULL;
    }
    s->prompt = p, s->n = l.seqs;
    ok = p && measure_texts(b, s, load, t, e);
    ses_free(lengths);
    ses_arena_free(&mem);
    return ok;
}

static bool measure_prompts(ses_bench *b, texts *s, ses_text_table *t, ses_err *e)
{
    ses_arena mem = { 0 };
    char name[48];
    size_t n = b->prompts->n;
    char *dir = ses_model_resolve(b->model, NULL, e);
    ses_tokenizer *tok = dir ? ses_tokenizer_open(dir, e) : NULL;
    ses_encode_ctx *k = tok ? ses_encode_ctx_new(tok, e) : NULL;
    ses_prompt *p = k ? ses_arena_array(&mem, n, sizeof *p, e) : NULL;
    bool ok = p != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        const int32_t *id;
        size_t len;
        const char *text = b->prompts->item[i];
        int32_t *copy = ses_encode_ids(k, text, strlen(text), true, &id, &len, e)
                            ? ses_arena_array(&mem, len, sizeof *copy, e)
                            : NULL;
        ok = copy != NULL;
        if (ok) memcpy(copy, id, len * sizeof *copy), p[i] = (ses_prompt){ .ids = { copy, (int64_t)len } };
    }
    snprintf(name, sizeof name, "%zu text%s", n, n == 1 ? "" : "s");
    s->prompt = p, s->n = (int64_t)n;
    ok = ok && measure_texts(b, s, name, t, e);
    ses_encode_ctx_free(k);
    ses_tokenizer_free(tok);
    free(dir);
    ses_arena_free(&mem);
    return ok;
}

static bool run_folder(ses_bench *b, ses_err *e)
{
    texts s = { 0 };
    ses_text_table *t =
        ses_text_table_new("Prompts|>Beams|>Prefill ms|>tokens/s|>Decoding ms a token|>tokens/s", e);
    ses_model *m = t ? ses_model_open(b->model, b->dev, NULL, e) : NULL;
    ses_generation_config *config = m ? ses_generation_config_open(m, e) : NULL;
    bool ok = config != NULL;
    s.model = m;
    if (ok) s.options = *ses_generation_config_options(config);
    for (size_t i = 0; ok && i < b->batches->n && !ses_bench_stopped(); i++)
        ok = measure_load(b, &s, b->batches->item[i], t, e);
    if (ok && b->prompts->n && !ses_bench_stopped()) ok = measure_prompts(b, &s, t, e);
    ses_progress_end(&b->progress);
    if (ok && !b->json) {
        ses_bench_heading(b, "generate", "  %s, %" PRId64 " new tokens, %s, %d thread%s", b->model,
                          b->new_tokens, ses_bench_dtype(b), b->threads, b->threads == 1 ? "" : "s");
        ok = ses_text_table_print(t, stdout, &b->call->out, 0, e);
        putchar('\n');
    }
    ses_generation_config_free(config);
    ses_model_free(m);
    ses_text_table_free(t);
    return ok;
}

static bool run(ses_bench *b, ses_err *e)
{
    if (b->model) return run_folder(b, e);
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
