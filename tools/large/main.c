/* large [--packed] DIR: the largest checkpoints of the generation, as sparse files made in DIR: opening one
 * touches no page it does not need, and one forward pass stays below 1.15 x weights + activations. Outside
 * `make check`: 11 GB of holes become page cache. */
#define _GNU_SOURCE
#include "sesame/model.h"
#include "sesame/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TOKENS = 64, HEADER = 1 << 20, MB = 1 << 20 };

static const struct {
    const char *name, *config;
    bool pair;
} shapes[] = {
    { "T5-large",
      "{\"architectures\": [\"T5ForConditionalGeneration\"], \"model_type\": \"t5\", \"vocab_size\": 32128, "
      "\"d_model\": 1024, \"d_kv\": 64, \"d_ff\": 4096, \"num_layers\": 24, \"num_heads\": 16}",
      true },
    { "XLM-R-large",
      "{\"architectures\": [\"XLMRobertaForMaskedLM\"], \"model_type\": \"xlm-roberta\", \"vocab_size\": "
      "250002, \"hidden_size\": 1024, \"num_hidden_layers\": 24, \"num_attention_heads\": 16, "
      "\"intermediate_size\": 4096, \"max_position_embeddings\": 514, \"type_vocab_size\": 1}",
      false },
    { "GPT-2-xl",
      "{\"architectures\": [\"GPT2LMHeadModel\"], \"model_type\": \"gpt2\", \"vocab_size\": 50257, "
      "\"n_embd\": 1600, \"n_layer\": 48, \"n_head\": 25, \"n_positions\": 1024}",
      false },
};

/* A line of /proc/self/status in bytes. */
static double status(const char *key)
{
    char line[256];
    double kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, key, strlen(key))) kb = strtod(line + strlen(key) + 1, NULL);
    if (f) fclose(f);
    return 1024 * kb;
}

/* The header of a file with all the model's tensors; how many bytes they have. */
static size_t describe(const ses_model *m, char *text, size_t n, size_t *bytes)
{
    size_t at = 0;
    *bytes = 0;
    for (size_t i = 0; i < ses_store_count(ses_model_store(m)) && at < n; i++) {
        const ses_tensor *t = ses_store_at(ses_model_store(m), i)->tensor;
        char name[256];
        if (!ses_model_tensor_name(m, i, name, sizeof name)) continue;
        size_t size = (size_t)ses_count(t) * sizeof(float);
        at += (size_t)snprintf(text + at, n - at, "%s\"%s\": {\"dtype\": \"F32\", \"shape\": [%lld",
                               at ? ", " : "{", name, (long long)t->dim[0]);
        for (int d = 1; d < ses_rank(t) && at < n; d++)
            at += (size_t)snprintf(text + at, n - at, ", %lld", (long long)t->dim[d]);
        if (at < n)
            at += (size_t)snprintf(text + at, n - at, "], \"data_offsets\": [%zu, %zu]}", *bytes,
                                   *bytes + size);
        *bytes += size;
    }
    if (at < n) at += (size_t)snprintf(text + at, n - at, "}");
    while (at < n && at % 8) text[at++] = ' ';
    return at < n ? at : 0;
}

static bool put(const char *dir, const char *file, const void *a, size_t na, const void *b, size_t nb,
                size_t hole)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, file);
    FILE *f = fopen(path, "wb");
    bool ok = f && fwrite(a, 1, na, f) == na && fwrite(b, 1, nb, f) == nb && !fflush(f) &&
              !ftruncate(fileno(f), (off_t)(na + nb + hole));
    if (f) ok &= !fclose(f);
    return ok;
}

/* A folder of this shape, its weights a hole. */
static bool make(const char *dir, const char *config, ses_device *dev, size_t *bytes, ses_err *e)
{
    static char text[HEADER];
    uint8_t size[8];
    ses_json_doc *doc = ses_json_parse(config, strlen(config), e);
    ses_model *m =
        doc ? ses_model_new(ses_json_root(doc), dev, &(ses_model_options){ .check_only = true }, e) : NULL;
    size_t n = m ? describe(m, text, sizeof text, bytes) : 0;
    for (int i = 0; i < 8; i++) size[i] = (uint8_t)(n >> 8 * i);
    bool ok = n && (!mkdir(dir, 0777) || access(dir, W_OK) == 0) &&
              put(dir, "config.json", config, strlen(config), "", 0, 0) &&
              put(dir, "model.safetensors", size, 8, text, n, *bytes);
    if (m && !ok) ses_fail(e, SES_EIO, "%s: cannot be written", dir);
    ses_model_free(m);
    ses_json_free(doc);
    return ok;
}

static bool pass(const ses_model *m, ses_tape *t, bool pair, ses_err *e)
{
    static int32_t ids[TOKENS];
    const int32_t cu[] = { 0, TOKENS };
    ses_outputs out;
    for (int i = 0; i < TOKENS; i++) ids[i] = 5 + i;
    ses_batch b = { .seqs = 1, .tokens = TOKENS, .cu_seqlens = cu, .ids = ids };
    if (pair) b.target_cu_seqlens = cu, b.target_ids = ids;
    return ses_model_forward(m, t, &b, &(ses_output_request){ .logits = true }, &out, e);
}

static bool measure(const char *dir, size_t shape, bool packed, ses_err *e)
{
    size_t bytes = 0;
    ses_device *dev = ses_device_open("cpu", NULL, e);
    if (!dev || !make(dir, shapes[shape].config, dev, &bytes, e)) return false;
    double start = status("VmRSS:");
    ses_model *m = ses_model_open(dir, dev, &(ses_model_options){ .no_packing = !packed }, e);
    ses_tape *t = m ? ses_tape_new(dev, NULL, e) : NULL;
    double opened = status("VmRSS:") - start;
    if (!t || !pass(m, t, shapes[shape].pair, e)) return false;
    double most = status("VmHWM:"), limit = 1.15 * (double)bytes + (double)ses_tape_bytes(t);
    bool ok = opened < 8 * MB && most < limit;
    printf("%-12s weights %6.0f MB, opening touches %.1f MB, activations %.0f MB, peak %.0f MB: %.3f x "
           "weights + activations %s\n",
           shapes[shape].name, (double)bytes / MB, opened / MB, (double)ses_tape_bytes(t) / MB, most / MB,
           (most - (double)ses_tape_bytes(t)) / (double)bytes, ok ? "PASS" : "FAIL");
    return ok || ses_fail(e, SES_EARG, "%s is above its limits", shapes[shape].name);
}

int main(int argc, char **argv)
{
    bool packed = argc == 3 && !strcmp(argv[1], "--packed"), ok = true;
    if (argc != 2 + packed) return fprintf(stderr, "usage: large [--packed] DIR\n"), 2;
    for (size_t i = 0; i < SES_LEN(shapes); i++) {
        pid_t child = fork(); /* a peak of its own */
        if (child == 0) {
            ses_err e = { 0 };
            bool fine = measure(argv[1 + packed], i, packed, &e);
            if (!fine) fprintf(stderr, "large: %s\n", e.msg);
            fflush(NULL);
            _exit(!fine);
        }
        int code = 1;
        ok &= child > 0 && waitpid(child, &code, 0) == child && code == 0;
    }
    return !ok;
}
