/* Adapters of other kinds than LoRA against the peft library (fixtures/adapter_kinds, made by
 * adapter_kinds.py), and bottleneck adapters against the package adapters (fixtures/adapter_hub, made by
 * adapter_hub.py): adapters open with their outputs, training takes the same steps, and saved adapters have
 * the same bytes. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "adapter_fixture.h"
#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "sesame/model.h"

#include <unistd.h>

static char tmp[] = "/tmp/sesame-kinds-XXXXXX";

typedef struct kind_case {
    const char *name, *base;
    ses_adapter_options o;
    bool is_hub; /* a folder of adapter_hub */
} kind_case;

static const kind_case cases[] = {
    { "ia3-bert", "adapters/bert/base", { .kind = "ia3" } },
    { "ia3-gpt2", "adapters/gpt2/base", { .kind = "ia3" } },
    { "ia3-t5", "adapters/t5/base", { .kind = "ia3" } },
    { "bitfit-bert", "adapters/bert/base", { .kind = "bitfit" } },
    { "prompt-bert", "adapters/bert/base", { .kind = "prompt", .virtual_tokens = 3 } },
    { "prompt-gpt2", "adapters/gpt2/base", { .kind = "prompt", .virtual_tokens = 3 } },
    { "prompt-t5", "adapters/t5/base", { .kind = "prompt", .virtual_tokens = 3 } },
    { "ptuning-bert", "adapters/bert/base", { .kind = NULL } },
    { "prefix-bert", "adapters/bert/base", { .kind = "prefix", .virtual_tokens = 3 } },
    { "prefix-roberta", "adapters/roberta/base", { .kind = "prefix", .virtual_tokens = 3 } },
    { "prefix-gpt2", "adapters/gpt2/base", { .kind = "prefix", .virtual_tokens = 3 } },
    { "prefix-bart", "adapter_kinds/bart-base", { .kind = "prefix", .virtual_tokens = 3 } },
    { "prefix-t5", "adapters/t5/base", { .kind = "prefix", .virtual_tokens = 3 } },
    { "projection-bert", "adapters/bert/base", { .kind = NULL } },
    { "seq", "adapters/bert/base", { .kind = "bottleneck", .reduction = 4 }, true },
    { "double", "adapters/bert/base", { .kind = "bottleneck", .reduction = 4, .placement = "double" }, true },
    { "parallel",
      "adapters/bert/base",
      { .kind = "bottleneck", .reduction = 4, .placement = "parallel" },
      true },
    { "seq-hub", "adapters/bert/base", { .kind = NULL }, true },
};

/* The path of a file, of adapter-hub if the folder has one. */
static const char *file_in(const char *dir, int i, char path[160])
{
    static const char *const name[] = { "adapter_model.safetensors", "adapter.safetensors",
                                        "model_head.safetensors" };
    snprintf(path, 160, "%s/%s", dir, name[1]);
    snprintf(path, 160, "%s/%s", dir, name[ses_path_exists(path) ? 1 + i : 0]);
    return path;
}

static char *file_of(const char *dir, int i, size_t *n, ses_err *e)
{
    char path[160];
    return ses_file_read(file_in(dir, i, path), 1 << 20, n, e);
}

/* The class that peft has trained; the base model's config names another. */
static const char *class_of(const char *adapter)
{
    return strstr(adapter, "prompt-gpt2") || strstr(adapter, "prefix-gpt2") ? "GPT2LMHeadModel" : NULL;
}

/* The adapter of a folder, opened to be trained further and saved again: the same bytes. */
static void round_trip(const char *from, ses_device *dev)
{
    ses_err e = { 0 };
    char out[64];
    size_t n = 0, m = 0;
    ses_adapter_options any = { .kind = "lora" }; /* the folder has its own kind */
    ses_model *model = ses_model_open(
        from, dev,
        &(ses_model_options){ .train = true, .adapter_options = &any, .class_name = class_of(from) }, &e);
    snprintf(out, sizeof out, "%s/again", tmp);
    CHECK_MSG(model &&
                  ses_model_save(model, out, &(ses_save_options){ .dtype = SES_F32, .overwrite = true }, &e),
              "%s", e.msg);
    for (int i = 0; i < 2; i++) {
        char *a = file_of(from, i, &n, &e), *b = file_of(out, i, &m, &e);
        CHECK_MSG(a && b && n == m && !memcmp(a, b, n), "%s: %zu bytes, %zu after a round trip", from, n, m);
        ses_free(a), ses_free(b);
    }
    ses_model_free(model);
    ses_dir_remove(out, &e);
}

/* The largest difference between the tensors of two adapters. */
static double files_apart(const char *dir, const char *other, int file, ses_err *e)
{
    char path[2][160];
    double worst = 0;
    ses_safetensors *a = ses_safetensors_open(file_in(dir, file, path[0]), e),
                    *b = ses_safetensors_open(file_in(other, file, path[1]), e);
    for (size_t i = 0; a && b && i < ses_safetensors_count(b); i++) {
        const ses_tensor_entry *y = ses_safetensors_at(b, i), *x = ses_safetensors_find(a, y->name);
        if (!x || x->count != y->count) worst = INFINITY;
        if (strstr(y->name, ".key.bias")) continue;
        for (int64_t k = 0; x && k < y->count && x->count == y->count; k++)
            worst =
                fmax(worst, fabs((double)((const float *)x->data)[k] - (double)((const float *)y->data)[k]));
    }
    if (!a || !b) worst = INFINITY;
    ses_safetensors_free(a), ses_safetensors_free(b);
    return worst;
}

/* Trains from the values in `from` to the values in `to`. Cases without a kind, and cases in adapter-hub's
 * format, where each adapter has a name, train the folder `from` further. */
static void train(const kind_case *c, const char *base, const char *from, const char *to, const run *r,
                  ses_device *dev)
{
    ses_err e = { 0 };
    double apart;
    char out[64];
    bool renamed = c->is_hub && !c->o.kind; /* heads of adapter-hub's classes get transformers' names */
    ses_model_options o = {
        .train = true, .new_heads = true, .adapter_options = &c->o, .class_name = class_of(to)
    };
    ses_model *m = ses_model_open(c->o.kind && !c->is_hub ? base : from, dev, &o, &e);
    if (!CHECK_MSG(m, "%s", e.msg)) return;
    if (c->o.kind && !c->is_hub)
        CHECK_MSG(pass(m, from, true, &apart, &e) && apart == 0, "apart %g %s", apart, e.msg);
    ses_optim_options options;
    ses_optim_defaults("adamw", &options, &e);
    options.lr = r->rate;
    ses_optim *opt = ses_optim_new(ses_model_store(m), &options, &e);
    ses_tape *t = ses_tape_new(dev, &(ses_tape_options){ .record = true }, &e);
    for (size_t i = 0; opt && t && i < ses_json_len(r->losses); i++) step(m, t, opt, r, i, &e);
    snprintf(out, sizeof out, "%s/out", tmp);
    CHECK_MSG(ses_model_save(m, out, &(ses_save_options){ .dtype = SES_F32, .overwrite = true }, &e), "%s",
              e.msg);
    for (int i = 0; i < 2 && !renamed; i++) {
        apart = files_apart(out, to, i, &e);
        CHECK_MSG(apart < 1e-4, "%s: tensors %g apart %s", c->name, apart, e.msg);
    }
    ses_model *again = ses_model_open(out, dev, NULL, &e);
    double d = again ? logits_apart(again, dev, r, &e) : INFINITY;
    CHECK_MSG(d < 2e-4, "%s: logits %g apart: %s", c->name, d, e.msg);
    ses_model_free(again);
    ses_dir_remove(out, &e);
    ses_tape_free(t);
    ses_optim_free(opt);
    ses_model_free(m);
}

/* Logits of the decoder's tokens to rows from `row` on of [tokens, vocabulary]. cache NULL: none. */
static bool cached_logits(const ses_model *m, ses_device *dev, ses_cache *cache, ses_batch b, ses_real *to,
                          int64_t row, ses_err *e)
{
    ses_outputs out;
    ses_tape *t = ses_tape_new(dev, NULL, e);
    b.cache = cache;
    bool ok = t && ses_model_forward(m, t, &b, &(ses_output_request){ .logits = true }, &out, e);
    const ses_output *logits = ok ? ses_outputs_find(&out, "logits") : NULL;
    int64_t width = ses_model_vocab_size(m);
    if (logits) memcpy(to + row * width, logits->tensor->f, (size_t)ses_count(logits->tensor) * sizeof *to);
    ses_tape_free(t);
    return logits != NULL;
}

/* Feeds the first sequence of the run to a cache in pieces, twice with a trim between, beside another
 * sequence's slot: the logits have the bits of one pass. */
static void cached(const ses_model *m, ses_device *dev, const run *r)
{
    enum { FIRST = 2, LEN = 5, VOCAB = 20 };
    static const int32_t ids[LEN] = { 2, 6, 4, 9, 3 }, one_token[] = { 0, 1 }, first[] = { 0, FIRST },
                         whole[] = { 0, LEN }, slot[] = { 1 };
    ses_err e = { 0 };
    bool pair = r->batch.target_cu_seqlens != NULL;
    ses_real want[LEN * VOCAB], got[LEN * VOCAB];
    ses_cache *a = ses_cache_new(m, 2, LEN, &e), *b = ses_cache_new(m, 2, LEN, &e);
    if (!CHECK_MSG(a && b, "%s", e.msg)) return;
    CHECK(ses_cache_capacity(a) == LEN);
    ses_batch x = { .seqs = 1, .slots = slot };
    x.tokens = LEN, x.cu_seqlens = whole, x.ids = ids;
    if (pair) x.target_cu_seqlens = whole, x.target_ids = ids;
    CHECK_MSG(cached_logits(m, dev, NULL, x, want, 0, &e) && cached_logits(m, dev, a, x, got, 0, &e), "%s",
              e.msg);
    CHECK(!memcmp(got, want, sizeof got)); /* without and with a cache */
    CHECK(ses_cache_len(a, 1) == LEN && !ses_cache_len(a, 0));
    for (int turn = 0; turn < 2; turn++) {
        memset(got, 0, sizeof got);
        for (int32_t at = 0; at < LEN; at += at ? 1 : FIRST) {
            const int32_t *cu = at ? one_token : first;
            ses_batch y = { .seqs = 1, .slots = slot, .tokens = cu[1], .cu_seqlens = cu, .ids = ids + at };
            if (pair) {
                y.target_cu_seqlens = cu, y.target_ids = ids + at, y.cu_seqlens = whole, y.tokens = LEN;
                y.ids = at ? NULL : ids;
            }
            CHECK_MSG(cached_logits(m, dev, b, y, got, at, &e), "%s", e.msg);
            CHECK(ses_cache_len(b, 1) == at + cu[1]);
        }
        CHECK(!memcmp(got, want, sizeof got));
        ses_cache_trim(b, 1, 0);
        CHECK(!ses_cache_len(b, 1));
    }
    /* beams: a slot copied to another continues as the first would */
    static const int32_t to[] = { 0 }, from[] = { 1 };
    CHECK_MSG(ses_cache_reorder(a, 1, to, from, &e) && ses_cache_len(a, 0) == LEN, "%s", e.msg);
    ses_cache_free(a), ses_cache_free(b);
}

static void one(const kind_case *c, ses_device *dev)
{
    char base[96], start[96], adapter[96], path[96];
    ses_err e = { 0 };
    run r = { 0 };
    snprintf(base, sizeof base, "tests/fixtures/%s", c->base);
    const char *in = c->is_hub ? "adapter_hub" : "adapter_kinds";
    snprintf(start, sizeof start, "tests/fixtures/%s/%s/start", in, c->name);
    snprintf(adapter, sizeof adapter, "tests/fixtures/%s/%s/adapter", in, c->name);
    snprintf(path, sizeof path, "tests/fixtures/%s/%s/run.json", in, c->name);
    printf("%s\n", c->name);
    if (!CHECK_MSG(read_run(&r, path, &e), "%s", e.msg)) return;
    ses_model *m = ses_model_open(adapter, dev, &(ses_model_options){ .class_name = class_of(adapter) }, &e);
    double d = m ? logits_apart(m, dev, &r, &e) : INFINITY;
    CHECK_MSG(d < 1e-5, "%s: logits %g apart: %s", c->name, d, e.msg);
    if (m && (class_of(adapter) || r.batch.target_cu_seqlens)) cached(m, dev, &r);
    ses_model_free(m);
    train(c, base, start, adapter, &r, dev);
    if (!c->is_hub || c->o.kind) round_trip(adapter, dev);
    ses_json_free(r.doc);
}

/* ---- several adapters ---- */

#define KINDS "tests/fixtures/adapter_kinds/"
#define HUB "tests/fixtures/adapter_hub/"
#define LORA "tests/fixtures/adapters/bert/"

static void several(ses_device *dev)
{
    static const struct {
        const char *first, *second, *run;
    } pairs[] = {
        { LORA "start", LORA "adapter", KINDS "two-lora.json" },
        { KINDS "ia3-bert/start", KINDS "ia3-bert/adapter", KINDS "two-ia3.json" },
        { LORA "adapter", KINDS "ia3-bert/adapter", KINDS "lora-ia3.json" },
        { HUB "double/adapter", HUB "seq/adapter", HUB "stack.json" },
    };
    for (size_t i = 0; i < SES_LEN(pairs); i++) {
        ses_err e = { 0 };
        run r = { 0 };
        if (!CHECK_MSG(read_run(&r, pairs[i].run, &e), "%s", e.msg)) continue;
        ses_model *m = ses_model_open(
            pairs[i].first, dev, &(ses_model_options){ .adapters = &pairs[i].second, .n_adapters = 1 }, &e);
        double d = m ? logits_apart(m, dev, &r, &e) : INFINITY;
        CHECK_MSG(d < 1e-5, "%s: logits %g apart: %s", pairs[i].run, d, e.msg);
        ses_model_free(m);
        ses_json_free(r.doc);
    }
}

/* Two adapters that cannot be combined. */
static void refuse_pair(const char *first, const char *second, ses_device *dev, const char *message)
{
    ses_err e = { 0 };
    ses_model *m =
        ses_model_open(first, dev, &(ses_model_options){ .adapters = &second, .n_adapters = 1 }, &e);
    CHECK(!m);
    CHECK_MSG(strstr(e.msg, message), "got \"%s\"", e.msg);
    ses_model_free(m);
}

/* A folder with the tensors of `from` and this config. */
static void refuse_config(const char *from, const char *config, ses_device *dev, const char *message)
{
    char path[96], dir[64];
    size_t n = 0;
    ses_err e = { 0 };
    snprintf(dir, sizeof dir, "%s/bad", tmp);
    char *data = file_of(from, 0, &n, &e);
    CHECK(data && ses_dir_make(dir, &e));
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", dir);
    CHECK(ses_file_write(path, data, n, true, &e));
    snprintf(path, sizeof path, "%s/adapter_config.json", dir);
    CHECK(ses_file_write(path, config, strlen(config), true, &e));
    ses_model *m = ses_model_open(dir, dev, &(ses_model_options){ .base = LORA "base" }, &e);
    CHECK(!m);
    CHECK_MSG(strstr(e.msg, message), "got \"%s\"", e.msg);
    ses_model_free(m);
    ses_free(data);
    ses_dir_remove(dir, &e);
}

/* P-tuning by an LSTM: peft's files have the computed vectors alone. The adapter has its outputs, and is
 * written with its config. */
static void by_lstm(ses_device *dev)
{
    const char *adapter = KINDS "ptuning-lstm-bert/adapter";
    ses_err e = { 0 };
    run r = { 0 };
    char path[96];
    size_t n = 0;
    CHECK_MSG(read_run(&r, KINDS "ptuning-lstm-bert/run.json", &e), "%s", e.msg);
    ses_adapter_options any = { .kind = "lora" }; /* the folder has its own kind */
    ses_model *m = ses_model_open(adapter, dev, NULL, &e);
    double d = m ? logits_apart(m, dev, &r, &e) : INFINITY;
    CHECK_MSG(d < 1e-5, "logits %g apart: %s", d, e.msg);
    ses_model_free(m);
    round_trip(adapter, dev);
    m = ses_model_open(adapter, dev, &(ses_model_options){ .train = true, .adapter_options = &any }, &e);
    snprintf(path, sizeof path, "%s/lstm", tmp);
    CHECK_MSG(m && ses_model_save(m, path, NULL, &e), "%s", e.msg);
    ses_model_free(m);
    snprintf(path, sizeof path, "%s/lstm/adapter_config.json", tmp);
    char *config = ses_file_read(path, 1 << 20, &n, &e);
    CHECK(config && strstr(config, "\"encoder_reparameterization_type\": \"LSTM\"") &&
          strstr(config, "\"encoder_hidden_size\": 6"));
    ses_free(config);
    snprintf(path, sizeof path, "%s/lstm", tmp);
    ses_dir_remove(path, &e);
    ses_json_free(r.doc);
    refuse_config(adapter,
                  "{\"peft_type\": \"P_TUNING\", \"num_virtual_tokens\": 3, "
                  "\"encoder_reparameterization_type\": \"GRU\"}",
                  dev, "\"encoder_reparameterization_type\" is \"GRU\", expected \"MLP\" or \"LSTM\"");
}

static void refusals(ses_device *dev)
{
    refuse_pair(KINDS "prompt-bert/adapter", KINDS "prefix-bert/adapter", dev,
                "two adapters with virtual tokens");
    refuse_pair(KINDS "bitfit-bert/start", KINDS "bitfit-bert/adapter", dev, "both replace tensor");
    refuse_pair(HUB "seq/adapter", HUB "parallel/adapter", dev, "parallel ones cannot");
    refuse_pair(LORA "adapter", LORA "base", dev, "not an adapter");
    const char *prefix = KINDS "prefix-bert/adapter";
    refuse_config(prefix, "{\"peft_type\": \"PREFIX_TUNING\"}", dev, "\"num_virtual_tokens\" is missing");
    refuse_config(prefix, "{\"peft_type\": \"PREFIX_TUNING\", \"num_virtual_tokens\": 0}", dev,
                  "not a number from 1");
    refuse_config(prefix, "{\"peft_type\": \"PREFIX_TUNING\", \"num_virtual_tokens\": 16}", dev,
                  "leave no room for text: bert has 16 positions");
    refuse_config(prefix, "{\"peft_type\": \"PREFIX_TUNING\", \"num_virtual_tokens\": 4}", dev,
                  "\"prompt_embeddings\": shape [3, 32]");
    refuse_config(prefix, "{\"peft_type\": \"PROMPT_TUNING\", \"num_virtual_tokens\": 3}", dev,
                  "\"prompt_embeddings\": shape [3, 32]");
    refuse_config(prefix, "{\"peft_type\": \"IA3\"}", dev, "does not belong to");
    refuse_config(KINDS "ia3-bert/adapter", "{\"peft_type\": \"PREFIX_TUNING\", \"num_virtual_tokens\": 3}",
                  dev, "tensor \"prompt_embeddings\" [3, 32] is missing");
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    if (!dev || !mkdtemp(tmp)) return 1;
    for (size_t i = 0; i < SES_LEN(cases); i++) one(&cases[i], dev);
    several(dev);
    by_lstm(dev);
    refusals(dev);
    ses_dir_remove(tmp, &e);
    ses_device_free(dev);
    return check_report();
}
