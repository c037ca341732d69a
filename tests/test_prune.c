/* Removed attention heads: a written model without heads gives the outputs of the model with these heads
 * masked, for every architecture that supports it; heads of config.json are checked. */
#define _GNU_SOURCE
#include "analysis/prune/prune.h"
#include "base/alloc.h"
#include "check.h"
#include "random_batch.h"
#include "sesame/generate.h"

#include <dirent.h>
#include <math.h>

/* The outputs of the heads, or one of them; returns their number. */
static int64_t run(const ses_model *m, ses_device *dev, const ses_batch *b, const ses_edits *edits,
                   const char *name, ses_real *out, int64_t most)
{
    ses_err e = { 0 };
    ses_outputs o;
    int64_t n = 0;
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    ses_output_request r = { .logits = true, .edits = edits };
    bool ok = t && ses_model_forward(m, t, b, &r, &o, &e);
    CHECK_MSG(ok, "%s", e.msg);
    for (size_t i = 0; ok && i < o.n; i++) {
        int64_t count = ses_count(o.item[i].tensor);
        if (name && strcmp(o.item[i].name, name) != 0) continue;
        if (CHECK(n + count <= most) && CHECK(ses_tape_read(t, o.item[i].tensor, out + n))) n += count;
    }
    ses_tape_free(t);
    return n;
}

/* A few heads of every part: the first head of the first layer and the last head of the last layer. */
typedef struct removal {
    ses_prune_head head[6];
    const ses_prune_head *list[6];
    ses_head_edit edit[6];
    size_t n;
} removal;

static void choose_heads(const ses_model *m, removal *r)
{
    r->n = 0;
    for (ses_part part = SES_PART_MAIN; part <= SES_PART_CROSS; part++) {
        int64_t last = ses_model_part_layers(m, part) - 1;
        for (int i = 0; last >= 0 && i < 2; i++) {
            int64_t layer = i ? last : 0, heads = ses_model_part_heads(m, part, layer);
            if (heads < 2 || (last == 0 && (i || heads < 3))) continue;
            r->head[r->n] = (ses_prune_head){ .part = part, .layer = layer, .head = i ? heads - 1 : 0 };
            r->list[r->n] = &r->head[r->n];
            r->edit[r->n] = (ses_head_edit){ part, layer, i ? heads - 1 : 0, 0 };
            r->n++;
        }
    }
}

static double log_softmax(const ses_real *z, int64_t n, int64_t at)
{
    double top = -HUGE_VAL, sum = 0;
    for (int64_t i = 0; i < n; i++) top = fmax(top, (double)z[i]);
    for (int64_t i = 0; i < n; i++) sum += exp((double)z[i] - top);
    return (double)z[at] - top - log(sum);
}

/* A text that the small model generates with its KV cache has the log-probabilities that the model with
 * masked heads computes in one pass. Returns whether the model generates. */
static bool test_generation(const ses_model *m, const ses_model *small, ses_device *dev,
                            const ses_edits *edits)
{
    static ses_real logit[1 << 16];
    int32_t source[] = { 5, 9, 17, 30, 12 };
    ses_err e = { 0 };
    ses_generation_config *config = ses_generation_config_open(small, &e);
    if (!config) return false;
    ses_generate_options o = *ses_generation_config_options(config);
    o.do_sample = false, o.num_beams = 1, o.max_new_tokens = 6, o.min_new_tokens = 6;
    ses_generated *g = ses_generate(small, &(ses_prompt){ .ids = { source, 5 } }, 1, &o, &e);
    if (g && CHECK(g->n == 1)) {
        const ses_generated_sequence *q = &g->sequence[0];
        int32_t cu[] = { 0, 5 }, own[] = { 0, (int32_t)q->ids.n };
        bool two = ses_model_part_layers(m, SES_PART_DECODER) > 0;
        ses_batch b = { .seqs = 1, .tokens = two ? 5 : q->ids.n, .cu_seqlens = two ? cu : own };
        b.ids = two ? source : q->ids.id;
        if (two) b.target_cu_seqlens = own, b.target_ids = q->ids.id;
        int64_t n = run(m, dev, &b, edits, "logits", logit, (int64_t)SES_LEN(logit)),
                vocab = ses_model_vocab_size(m);
        CHECK_MSG(n == q->ids.n * vocab, "%lld logits", (long long)n);
        for (int64_t i = q->prompt_len; i < q->ids.n; i++) {
            double want = log_softmax(logit + (i - 1) * vocab, vocab, q->ids.id[i]),
                   got = (double)q->logprob[i - q->prompt_len];
            CHECK_MSG(fabs(want - got) < 1e-4, "token %lld: %g, expected %g", (long long)i, got, want);
        }
    }
    bool generates = g != NULL;
    ses_generated_free(g);
    ses_generation_config_free(config);
    return generates;
}

static void test_outputs(const char *dir, const ses_model *m, const ses_model *small, ses_device *dev,
                         const ses_edits *edits)
{
    static ses_real masked[1 << 16], removed[1 << 16];
    random_batch x;
    random_batch_draw(&x, m, ses_model_part_layers(m, SES_PART_DECODER) > 0, 7);
    int64_t n = run(m, dev, &x.batch, edits, NULL, masked, (int64_t)SES_LEN(masked)),
            k = run(small, dev, &x.batch, NULL, NULL, removed, (int64_t)SES_LEN(removed));
    double worst = n == k ? 0 : HUGE_VAL;
    for (int64_t i = 0; i < n && n == k; i++)
        worst = fmax(worst, fabs((double)masked[i] - (double)removed[i]));
    CHECK_MSG(worst < 1e-5, "%s: removed heads differ from masked heads by %g", dir, worst);
}

/* The next head of layer 0 is head 1 of the original. */
static void test_again(const ses_model *small, const ses_analysis_call *call, const removal *r,
                       const char *to)
{
    ses_err e = { 0 };
    ses_prune again = { .call = call, .m = small };
    if (!CHECK_MSG(ses_prune_write(&again, r->list, 1, to, &e), "%s", e.msg)) return;
    ses_model *twice = ses_model_open(to, call->dev, NULL, &e);
    int64_t second = -1;
    if (CHECK_MSG(twice, "%s", e.msg)) {
        const ses_json *all = ses_json_get(ses_model_config(twice), "pruned_heads"),
                       *part = ses_json_get(all, twice->class->decoder_only ? "decoder" : "encoder"),
                       *list = ses_json_get(part ? part : all, "0");
        CHECK(ses_json_len(list) == 2 && ses_json_int(ses_json_at(list, 1), &second) && second == 1);
    }
    ses_model_free(twice);
}

/* Writes the model without some heads, twice. Returns whether the model supports it. */
static bool test_model(const char *dir, ses_device *dev, int *generates)
{
    char to[2][32] = { "/tmp/sesame-prune-XXXXXX", "/tmp/sesame-prune-XXXXXX" }, cmd[96];
    ses_err e = { 0 };
    ses_model *m = ses_model_open(dir, dev, &(ses_model_options){ .no_packing = true }, &e), *small = NULL;
    if (!CHECK_MSG(m, "%s: %s", dir, e.msg)) return false;
    CHECK(mkdtemp(to[0]) && mkdtemp(to[1]));
    removal r;
    choose_heads(m, &r);
    ses_edits edits = { .heads = r.edit, .n_heads = r.n };
    ses_analysis_call call = { .dev = dev, .model_dir = dir, .overwrite = true };
    ses_prune p = { .call = &call, .m = m };
    bool supported = !ses_pruned_heads_unsupported(m->desc, &m->c);
    bool ok = ses_prune_write(&p, r.list, r.n, to[0], &e);
    CHECK_MSG(ok == supported, "%s: %s", dir, e.msg);
    if (!supported) CHECK_MSG(strstr(e.msg, "cannot be removed"), "%s", e.msg);
    if (ok) small = ses_model_open(to[0], dev, NULL, &e);
    if (ok && CHECK_MSG(small, "%s: %s", dir, e.msg)) {
        test_outputs(dir, m, small, dev, &edits);
        *generates += test_generation(m, small, dev, &edits);
        for (size_t i = 0; i < r.n; i++) {
            int64_t before = ses_model_part_heads(m, r.head[i].part, r.head[i].layer),
                    now = ses_model_part_heads(small, r.head[i].part, r.head[i].layer);
            CHECK_MSG(now < before && now >= before - 2, "%s: %lld of %lld heads", dir, (long long)now,
                      (long long)before);
        }
        if (r.n && ses_model_part_heads(m, SES_PART_MAIN, 0) > 2) test_again(small, &call, &r, to[1]);
    }
    snprintf(cmd, sizeof cmd, "rm -r %s %s", to[0], to[1]);
    CHECK(system(cmd) == 0);
    ses_model_free(small);
    ses_model_free(m);
    return supported;
}

static void refuse(const char *pruned, const char *message, ses_device *dev)
{
    char text[512];
    ses_err e = { 0 };
    int n = snprintf(text, sizeof text,
                     "{\"architectures\": [\"BertModel\"], \"model_type\": \"bert\", \"vocab_size\": 37, "
                     "\"hidden_size\": 20, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "
                     "\"intermediate_size\": 28, \"max_position_embeddings\": 16, \"pruned_heads\": %s}",
                     pruned);
    ses_json_doc *doc = ses_json_parse(text, (size_t)n, &e);
    ses_model *m = doc ? ses_model_new(ses_json_root(doc), dev, NULL, &e) : NULL;
    CHECK_MSG(message ? !m && strstr(e.msg, message) : m != NULL, "%s: %s", pruned, e.msg);
    ses_model_free(m);
    ses_json_free(doc);
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 2 }, &e);
    DIR *d = opendir("tests/golden");
    int supported = 0, generates = 0;
    CHECK(dev && d);
    for (struct dirent *f; d && (f = readdir(d));) {
        char path[300];
        if (f->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "tests/golden/%s", f->d_name);
        supported += test_model(path, dev, &generates);
    }
    if (d) closedir(d);
    CHECK_MSG(supported >= 72 && generates >= 19, "%d supported, %d generate", supported, generates);
    refuse("{}", NULL, dev);
    refuse("{\"1\": [0, 3]}", NULL, dev);
    refuse("{\"2\": [0]}", "expected 0 to 1", dev);
    refuse("{\"x\": [0]}", "expected 0 to 1", dev);
    refuse("{\"0\": [4]}", "expected different heads", dev);
    refuse("{\"0\": [1, 1]}", "expected different heads", dev);
    refuse("{\"0\": [0, 1, 2, 3]}", "no head left", dev);
    refuse("{\"0\": 1}", "expected a list", dev);
    refuse("[0]", "pruned_heads", dev);
    refuse("{\"0\": [0, 1], \"0\": [2, 3]}", "", dev);
    refuse("{\"encoder\": {\"0\": [0]}}", "the number of a layer", dev);
    ses_device_free(dev);
    return check_report();
}
