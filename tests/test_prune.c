/* Removed attention heads: a written model without heads gives the outputs of the model with these heads
 * masked, for every architecture that supports it; heads of config.json are checked. */
#define _GNU_SOURCE
#include "analysis/prune/prune.h"
#include "base/alloc.h"
#include "check.h"
#include "random_batch.h"

#include <dirent.h>
#include <math.h>

/* The outputs of the heads; returns their number. */
static int64_t run(const ses_model *m, ses_device *dev, const ses_batch *b, const ses_edits *edits,
                   ses_real *out, int64_t most)
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
        if (CHECK(n + count <= most) && CHECK(ses_tape_read(t, o.item[i].tensor, out + n))) n += count;
    }
    ses_tape_free(t);
    return n;
}

/* Writes the model without the first head of layer 0 and the last one of the last layer, twice. Returns
 * whether the model supports it. */
static bool test_model(const char *dir, ses_device *dev)
{
    static ses_real masked[1 << 16], removed[1 << 16];
    char to[2][32] = { "/tmp/sesame-prune-XXXXXX", "/tmp/sesame-prune-XXXXXX" }, cmd[96];
    ses_err e = { 0 };
    ses_model *m = ses_model_open(dir, dev, &(ses_model_options){ .no_packing = true }, &e), *small = NULL;
    if (!CHECK_MSG(m, "%s: %s", dir, e.msg)) return false;
    CHECK(mkdtemp(to[0]) && mkdtemp(to[1]));
    int64_t last = ses_model_layer_count(m) - 1, heads = ses_model_part_heads(m, SES_PART_MAIN, last);
    ses_prune_head head[] = { { .layer = 0, .head = 0 }, { .layer = last, .head = heads - 1 } };
    const ses_prune_head *without[] = { &head[0], &head[1] };
    ses_analysis_call call = { .dev = dev, .model_dir = dir, .overwrite = true };
    ses_prune p = { .call = &call, .m = m };
    bool supported = !ses_pruned_heads_unsupported(m->desc, &m->c);
    bool ok = ses_prune_write(&p, without, 2, to[0], &e);
    CHECK_MSG(ok == supported, "%s: %s", dir, e.msg);
    if (!supported) CHECK_MSG(strstr(e.msg, "cannot be removed"), "%s", e.msg);
    if (ok) small = ses_model_open(to[0], dev, NULL, &e);
    if (ok && CHECK_MSG(small, "%s: %s", dir, e.msg)) {
        random_batch x;
        random_batch_draw(&x, m, false, 7);
        ses_head_edit edit[] = { { 0, 0, 0, 0 }, { 0, last, heads - 1, 0 } };
        ses_edits edits = { .heads = edit, .n_heads = 2 };
        int64_t n = run(m, dev, &x.batch, &edits, masked, (int64_t)SES_LEN(masked)),
                k = run(small, dev, &x.batch, NULL, removed, (int64_t)SES_LEN(removed));
        double worst = n == k ? 0 : HUGE_VAL;
        for (int64_t i = 0; i < n && n == k; i++)
            worst = fmax(worst, fabs((double)masked[i] - (double)removed[i]));
        CHECK_MSG(worst < 1e-5, "%s: removed heads differ from masked heads by %g", dir, worst);
        CHECK(ses_model_part_heads(small, SES_PART_MAIN, last) == heads - 1 - (last == 0));
        /* again: the next head of layer 0 is head 1 of the original */
        ses_prune again = { .call = &call, .m = small };
        if (last > 0 && heads > 2 && CHECK_MSG(ses_prune_write(&again, without, 1, to[1], &e), "%s", e.msg)) {
            ses_model *twice = ses_model_open(to[1], dev, NULL, &e);
            int64_t second = -1;
            if (CHECK_MSG(twice, "%s", e.msg)) {
                const ses_json *list =
                    ses_json_get(ses_json_get(ses_model_config(twice), "pruned_heads"), "0");
                CHECK(ses_json_len(list) == 2 && ses_json_int(ses_json_at(list, 1), &second) && second == 1);
            }
            ses_model_free(twice);
        }
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
    int supported = 0;
    CHECK(dev && d);
    for (struct dirent *f; d && (f = readdir(d));) {
        char path[300];
        if (f->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "tests/golden/%s", f->d_name);
        supported += test_model(path, dev);
    }
    if (d) closedir(d);
    CHECK_MSG(supported >= 50, "%d", supported);
    refuse("{}", NULL, dev);
    refuse("{\"1\": [0, 3]}", NULL, dev);
    refuse("{\"2\": [0]}", "expected 0 to 1", dev);
    refuse("{\"x\": [0]}", "expected 0 to 1", dev);
    refuse("{\"0\": [4]}", "expected different heads", dev);
    refuse("{\"0\": [1, 1]}", "expected different heads", dev);
    refuse("{\"0\": [0, 1, 2, 3]}", "no head left", dev);
    refuse("{\"0\": 1}", "expected a list", dev);
    refuse("[0]", "pruned_heads", dev);
    ses_device_free(dev);
    return check_report();
}
