/* One more token behind a cache of keys and values: what it costs early and late in a text, alone and
 * with others. */
#include "base/alloc.h"
#include "bench.h"
#include "cli/ui/text_table.h"
#include "sesame/cache.h"

#include <inttypes.h>
#include <string.h>

enum { VOCAB = 50257, ROOM = 512, MOST = 8 };

typedef struct size {
    const char *name;
    int64_t layers, hidden, heads;
    bool quick;
} size;

static const size sizes[] = { { "gpt2-mini", 4, 256, 4, true }, { "gpt2", 12, 768, 12, false } };
static const int64_t places[] = { 10, 500 }, counts[] = { 1, MOST };

typedef struct subject {
    ses_json_doc *config;
    ses_model *model;
    ses_tape *tape;
    ses_cache *cache;
    int64_t texts, place;
    bool failed;
} subject;

static void subject_free(subject *s)
{
    ses_cache_free(s->cache);
    ses_tape_free(s->tape);
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
    s->tape = s->model ? ses_tape_new(b->dev, NULL, e) : NULL;
    s->cache = s->tape ? ses_cache_new(s->model, MOST, ROOM, e) : NULL;
    return s->cache != NULL;
}

/* `more` tokens of each text. */
static bool feed(subject *s, int64_t more)
{
    static const int32_t slots[MOST] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    int32_t cu[MOST + 1], last[MOST], *ids = ses_alloc_array((size_t)(s->texts * more), sizeof *ids, NULL);
    ses_outputs out;
    for (int64_t i = 0; ids && i < s->texts * more; i++) ids[i] = (int32_t)(i * 7919 % VOCAB);
    for (int64_t i = 0; i <= s->texts; i++) cu[i] = (int32_t)(i * more);
    for (int64_t i = 0; i < s->texts; i++) last[i] = cu[i + 1] - 1;
    ses_batch b = { .seqs = s->texts,
                    .tokens = s->texts * more,
                    .cu_seqlens = cu,
                    .ids = ids,
                    .cache = s->cache,
                    .slots = slots };
    ses_output_request want = { .logits = true, .rows = last, .n_rows = s->texts };
    ses_tape_reset(s->tape, NULL);
    bool ok = ids && ses_model_forward(s->model, s->tape, &b, &want, &out, NULL);
    ses_free(ids);
    return ok;
}

static void one_token(void *ctx, int64_t call)
{
    subject *s = ctx;
    (void)call;
    s->failed |= !feed(s, 1);
}

static void back(void *ctx)
{
    subject *s = ctx;
    for (int64_t i = 0; i < s->texts; i++) ses_cache_trim(s->cache, i, s->place);
}

static bool measure(ses_bench *b, subject *s, const size *z, ses_text_table *t, double *first, ses_err *e)
{
    char shape[64];
    for (int64_t i = 0; i < MOST; i++) ses_cache_trim(s->cache, i, 0);
    s->failed = !feed(s, s->place);
    ses_bench_case timed = { .fn = one_token, .prepare = back, .ctx = s };
    if (!s->failed) ses_bench_time(b, &timed, 1);
    if (s->failed) return ses_fail(e, SES_EARG, "%s cannot be run", z->name);
    if (!timed.best) return true;
    if (!*first) *first = timed.best;
    ses_text_table_cell(t, "%s", z->name);
    ses_text_table_cell(t, "%" PRId64, s->texts);
    ses_text_table_cell(t, "%" PRId64, s->place);
    ses_text_table_cell(t, "%.2f", 1e3 * timed.best);
    ses_text_table_cell(t, "%.0f", (double)s->texts / timed.best);
    ses_text_table_cell(t, "%.2f", timed.best / *first);
    snprintf(shape, sizeof shape, "%s %" PRId64 "x1 at %" PRId64, z->name, s->texts, s->place);
    return ses_bench_row(b, "generate.token", shape, 1e3 * timed.best, "ms", -1, e) &&
           ses_bench_row(b, "generate.token", shape, (double)s->texts / timed.best, "tokens/s", -1, e);
}

static bool one_size(ses_bench *b, const size *z, ses_text_table *t, ses_err *e)
{
    subject s;
    bool ok = subject_new(&s, b, z, e);
    for (size_t c = 0; ok && c < SES_LEN(counts); c++) {
        double first = 0;
        for (size_t p = 0; ok && p < SES_LEN(places) && !ses_bench_stopped(); p++) {
            s.texts = counts[c], s.place = places[p];
            ok = measure(b, &s, z, t, &first, e);
        }
    }
    subject_free(&s);
    return ok;
}

static bool run(ses_bench *b, ses_err *e)
{
    ses_text_table *t = ses_text_table_new("Model|>Texts|>At token|>ms|>tokens/s|>to the first", e);
    bool ok = t != NULL;
    for (size_t i = 0; ok && i < SES_LEN(sizes) && !ses_bench_stopped(); i++)
        if (sizes[i].quick || !b->quick) ok = one_size(b, &sizes[i], t, e);
    ses_progress_end(&b->progress);
    if (ok && !b->json) {
        ses_bench_heading(b, "generate", "  one more token of each text, random weights, %s, %d thread%s",
                          b->dev->is_host ? ses_isa_name(b->isa) : ses_device_name(b->dev), b->threads,
                          b->threads == 1 ? "" : "s");
        ok = ses_text_table_print(t, stdout, &b->call->out, 0, e);
        putchar('\n');
    }
    ses_text_table_free(t);
    return ok;
}

const ses_bench_kind ses_bench_generate = { .name = "generate",
                                            .what = "one more token of GPT-2, early and late in a text",
                                            .run = run };
