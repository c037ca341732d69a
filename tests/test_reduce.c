/* Removal of heads, feed-forward rows and layers (model/reduce.h), for every architecture that supports it:
 * the small model gives the outputs of the model with these parts masked, and of its zero-filled form; it is
 * saved, opened, quantized and reduced again. Widths of config.json are checked. */
#define _GNU_SOURCE
#include "base/alloc.h"
#include "check.h"
#include "model/reduce.h"
#include "random_batch.h"

#include <dirent.h>
#include <math.h>

enum { MOST = 1 << 16, EDITS = 4096 };

/* The outputs of the heads, or hidden states without heads; returns their number. */
static int64_t run(const ses_model *m, const ses_batch *b, const ses_edits *edits, ses_real *out)
{
    ses_err e = { 0 };
    ses_outputs o;
    int64_t n = 0;
    ses_tape *t = ses_tape_new(m->dev, NULL, &e);
    ses_output_request r = { .logits = true, .edits = edits };
    bool ok = t && ses_model_forward(m, t, b, &r, &o, &e);
    CHECK_MSG(ok, "%s", e.msg);
    for (size_t i = 0; ok && i < o.n; i++) {
        int64_t count = ses_count(o.item[i].tensor);
        if (CHECK(n + count <= MOST) && CHECK(ses_tape_read(t, o.item[i].tensor, out + n))) n += count;
    }
    ses_tape_free(t);
    return n;
}

static double distance(const ses_real *a, int64_t n, const ses_real *b, int64_t k)
{
    double sum = 0, norm = 0;
    for (int64_t i = 0; i < n && n == k; i++) {
        sum += pow((double)a[i] - (double)b[i], 2);
        norm += pow((double)b[i], 2);
    }
    return n == k && n ? sqrt(sum / (norm > 0 ? norm : 1)) : HUGE_VAL;
}

/* Removes heads and rows by a rule that differs from layer to layer, and the edits that mask them. */
typedef struct masks {
    ses_head_edit head[EDITS];
    ses_neuron_edit row[EDITS];
    ses_edits edits;
} masks;

static void choose(ses_reduction *r, const ses_model *m, masks *x)
{
    x->edits = (ses_edits){ 0 };
    for (int64_t l = 0; l < r->layers; l++) {
        int64_t heads = ses_model_part_heads(m, SES_PART_MAIN, l),
                rows = ses_model_layer_neurons(m, SES_PART_MAIN, l);
        if (heads > 1) {
            r->head[0][l * r->heads[0] + l % heads] = 0;
            x->head[x->edits.n_heads++] = (ses_head_edit){ SES_PART_MAIN, l, l % heads, 0 };
        }
        for (int64_t i = 1; i < rows && x->edits.n_neurons < EDITS; i++) {
            if ((i + l) % 3 && i % 5 != l) continue;
            r->row[l * r->rows + i] = 0;
            x->row[x->edits.n_neurons++] = (ses_neuron_edit){ SES_PART_MAIN, l, i, 0 };
        }
    }
    x->edits.heads = x->head, x->edits.neurons = x->row;
}

static ses_model *reopen(const ses_model *m, ses_dtype dtype)
{
    char dir[] = "/tmp/sesame-reduce-XXXXXX", cmd[64];
    ses_err e = { 0 };
    CHECK(mkdtemp(dir));
    bool saved = ses_model_save(m, dir, &(ses_save_options){ .dtype = dtype, .overwrite = true }, &e);
    ses_model_options o = { .class_name = m->class->name, .no_packing = dtype == SES_F32 };
    ses_model *again = saved ? ses_model_open(dir, m->dev, &o, &e) : NULL;
    CHECK_MSG(again, "%s", e.msg);
    snprintf(cmd, sizeof cmd, "rm -r %s", dir);
    CHECK(system(cmd) == 0);
    return again;
}

/* Outputs of a and b on one batch. */
static double compare(const ses_model *a, const ses_model *b, const ses_edits *edits_of_b, uint32_t round)
{
    static ses_real x[MOST], y[MOST];
    random_batch batch;
    random_batch_draw(&batch, b, false, round);
    int64_t n = run(a, &batch.batch, NULL, x), k = run(b, &batch.batch, edits_of_b, y);
    return distance(x, n, y, k);
}

/* The reduced model, its zero-filled form, its saved and its quantized form. */
static void test_forms(const char *dir, const ses_model *m, const ses_reduction *r, const ses_edits *masked)
{
    ses_err e = { 0 };
    ses_model *small = ses_model_reduce(m, r, SES_REDUCED_SMALL, &e),
              *filled = small ? ses_model_reduce(m, r, SES_REDUCED_FILLED, &e) : NULL;
    if (!CHECK_MSG(filled, "%s: %s", dir, e.msg)) {
        ses_model_free(small);
        return;
    }
    CHECK(ses_store_element_count(small->store) < ses_store_element_count(filled->store));
    CHECK(!ses_json_get(filled->config, "pruned_heads") &&
          !ses_json_get(filled->config, "sesame_ffn_widths"));
    double d = compare(small, filled, NULL, 3);
    CHECK_MSG(d < 1e-5, "%s: the small and the filled form differ by %g", dir, d);
    if (masked) d = compare(small, m, masked, 4);
    CHECK_MSG(d < 1e-5, "%s: removed and masked parts differ by %g", dir, d);
    for (int64_t l = 0, now = 0; l < r->layers; l++) {
        if (!r->layer[l]) continue;
        CHECK(ses_model_part_heads(small, SES_PART_MAIN, now) == ses_reduction_heads(r, m, SES_PART_MAIN, l));
        CHECK(ses_model_layer_neurons(small, SES_PART_MAIN, now) == ses_reduction_rows(r, m, l));
        CHECK(ses_model_part_heads(filled, SES_PART_MAIN, now++) == m->stack[0].heads);
    }
    ses_model *saved = reopen(small, SES_F32), *quantized = reopen(small, SES_I8);
    CHECK_MSG(saved && compare(saved, small, NULL, 5) == 0, "%s: another function after saving", dir);
    d = quantized ? compare(quantized, small, NULL, 6) : HUGE_VAL;
    CHECK_MSG(d < 0.2, "%s: int8 differs by %g", dir, d);
    ses_model_free(saved), ses_model_free(quantized);
    ses_model_free(filled), ses_model_free(small);
}

/* Removes more from a reduced model: as if all had been removed at once, also in the filled form. */
static void test_again(const char *dir, const ses_model *m, const ses_reduction *first)
{
    ses_err e = { 0 };
    ses_model *small = ses_model_reduce(m, first, SES_REDUCED_SMALL, &e);
    ses_reduction *r = small ? ses_reduction_new(small, &e) : NULL;
    if (CHECK_MSG(r, "%s: %s", dir, e.msg)) {
        int64_t last = r->layers - 1;
        if (ses_model_part_heads(small, SES_PART_MAIN, last) > 1) r->head[0][last * r->heads[0]] = 0;
        r->row[0] = 0;
        ses_head_edit head = { SES_PART_MAIN, last, 0, 0 };
        ses_neuron_edit row = { SES_PART_MAIN, 0, 0, 0 };
        ses_edits edits = { .heads = &head, .neurons = &row, .n_neurons = 1 };
        edits.n_heads = ses_model_part_heads(small, SES_PART_MAIN, last) > 1;
        test_forms(dir, small, r, &edits);
    }
    ses_reduction_free(r);
    ses_model_free(small);
}

/* Removes layer 1. Pre-norm layers are the identity if their last projections are zero. */
static void test_layers(const char *dir, const ses_model *m)
{
    ses_err e = { 0 };
    ses_reduction *r = ses_reduction_new(m, &e);
    if (!CHECK(r) || r->layers < 2) {
        ses_reduction_free(r);
        return;
    }
    r->layer[1] = 0;
    ses_model *small = ses_model_reduce(m, r, SES_REDUCED_SMALL, &e);
    bool listed = strstr(e.msg, "cannot list local") || strstr(e.msg, "\"sesame_head\"");
    if (!CHECK_MSG(small || listed, "%s: %s", dir, e.msg) || !small) {
        ses_reduction_free(r);
        return;
    }
    CHECK(ses_model_part_layers(small, SES_PART_MAIN) == r->layers - 1);
    static const char *const last[] = { "attn.out", "ffn.down" };
    for (int i = 0; i < 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "layer.1.%s.%s", last[i / 2], i % 2 ? "bias" : "weight");
        const ses_param *p = ses_store_find(m->store, name);
        if (p) memset(p->tensor->f, 0, (size_t)ses_count(p->tensor) * sizeof(ses_real));
    }
    if (m->c.norm.placement == SES_PRE_NORM && !m->c.norm.residual_post_norm &&
        !m->c.attention.scale_by_layer) {
        double d = compare(small, m, NULL, 8);
        CHECK_MSG(d < 1e-5, "%s: without layer 1: off by %g", dir, d);
    }
    ses_model *saved = reopen(small, SES_F32);
    CHECK_MSG(saved && compare(saved, small, NULL, 9) == 0, "%s: another function after saving", dir);
    ses_model_free(saved), ses_model_free(small);
    ses_reduction_free(r);
}

/* m is changed: its values are not mapped. */
static ses_model *open_copy(const char *dir, ses_device *dev, ses_err *e)
{
    ses_model *mapped = ses_model_open(dir, dev, &(ses_model_options){ .no_packing = true }, e), *m = NULL;
    ses_reduction *all = mapped ? ses_reduction_new(mapped, e) : NULL;
    if (all) m = ses_model_reduce(mapped, all, SES_REDUCED_SMALL, e);
    ses_reduction_free(all);
    ses_model_free(mapped);
    return m;
}

static bool test_model(const char *dir, ses_device *dev)
{
    ses_err e = { 0 };
    static masks x;
    ses_model *m = open_copy(dir, dev, &e);
    if (!m) {
        CHECK_MSG(strstr(e.msg, "parameter") || strstr(e.msg, "tensor"), "%s: %s", dir, e.msg);
        return false;
    }
    ses_reduction *r = ses_reduction_new(m, &e);
    const char *why = ses_ffn_widths_unsupported(m->desc, &m->c);
    if (!why) why = ses_pruned_heads_unsupported(m->desc, &m->c);
    bool has_layers = CHECK(r) && r->rows > 0;
    if (has_layers) choose(r, m, &x);
    if (has_layers && why) {
        CHECK_MSG(!ses_model_reduce(m, r, SES_REDUCED_SMALL, &e) && strstr(e.msg, m->desc->name), "%s: %s",
                  dir, e.msg);
    } else if (has_layers) {
        test_forms(dir, m, r, &x.edits);
        test_again(dir, m, r);
        test_layers(dir, m);
    }
    ses_reduction_free(r);
    ses_model_free(m);
    return has_layers && !why;
}

static ses_model *from_text(const char *extra, ses_json_doc **doc, ses_device *dev, ses_err *e)
{
    char text[512];
    int n = snprintf(text, sizeof text,
                     "{\"architectures\": [\"BertModel\"], \"model_type\": \"bert\", \"vocab_size\": 37, "
                     "\"hidden_size\": 20, \"num_hidden_layers\": 3, \"num_attention_heads\": 4, "
                     "\"intermediate_size\": 28, \"max_position_embeddings\": 16%s%s}",
                     *extra ? ", \"sesame_ffn_widths\": " : "", extra);
    *doc = ses_json_parse(text, (size_t)n, e);
    return *doc ? ses_model_new(ses_json_root(*doc), dev, &(ses_model_options){ .no_packing = true }, e)
                : NULL;
}

static void check_widths(const char *widths, const char *message, ses_device *dev)
{
    ses_err e = { 0 };
    ses_json_doc *doc;
    ses_model *m = from_text(widths, &doc, dev, &e);
    CHECK_MSG(message ? !m && strstr(e.msg, message) : m != NULL, "%s: %s", widths, e.msg);
    ses_model_free(m);
    ses_json_free(doc);
}

/* Keys of the config, and errors. */
static void test_config(ses_device *dev)
{
    ses_err e = { 0 };
    ses_json_doc *doc;
    int64_t width = 0, layers = 0;
    ses_model *m = from_text("", &doc, dev, &e);
    ses_reduction *r = m ? ses_reduction_new(m, &e) : NULL;
    if (!CHECK_MSG(r, "%s", e.msg)) return;
    r->layer[1] = 0, r->head[0][2 * r->heads[0] + 3] = 0;
    for (int64_t l = 0; l < 3; l++) memset(r->row + l * r->rows, 0, 12);
    ses_model *small = ses_model_reduce(m, r, SES_REDUCED_SMALL, &e);
    if (CHECK_MSG(small, "%s", e.msg)) {
        const ses_json *heads = ses_json_get(small->config, "pruned_heads");
        CHECK(ses_json_int(ses_json_get(small->config, "intermediate_size"), &width) && width == 16);
        CHECK(ses_json_int(ses_json_get(small->config, "num_hidden_layers"), &layers) && layers == 2);
        CHECK(ses_json_len(heads) == 1 && ses_json_len(ses_json_get(heads, "1")) == 1);
        CHECK(!ses_json_get(small->config, "sesame_ffn_widths")); /* one width: its own key */
    }
    ses_model_free(small);
    memset(r->head[0], 0, 4);
    CHECK(!ses_model_reduce(m, r, SES_REDUCED_SMALL, &e) && strstr(e.msg, "layer 0 would have no head left"));
    memset(r->head[0], 1, 4), memset(r->row, 0, 28), e = (ses_err){ 0 };
    CHECK(!ses_model_reduce(m, r, SES_REDUCED_SMALL, &e) && strstr(e.msg, "no feed-forward row left"));
    memset(r->layer, 0, 3), e = (ses_err){ 0 };
    CHECK(!ses_model_reduce(m, r, SES_REDUCED_SMALL, &e) && strstr(e.msg, "all 3 layers"));
    ses_reduction_free(r);
    ses_model_free(m);
    ses_json_free(doc);
    check_widths("[28, 1, 16]", NULL, dev);
    check_widths("[28, 16]", "2 entries for 3 layers", dev);
    check_widths("[28, 0, 16]", "entry 1", dev);
    check_widths("[28, 16, 29]", "from 1 to 28", dev);
    check_widths("[28, 16, 1.5]", "entry 2", dev);
    check_widths("28", "an array of integers", dev);
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
    CHECK_MSG(supported >= 50, "%d supported", supported);
    test_config(dev);
    ses_device_free(dev);
    return check_report();
}
