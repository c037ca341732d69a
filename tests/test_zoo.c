/* Every architecture of tests/golden: a sequence has the same bits alone and in any batch, with and without
 * memory rewinding; saved models open with the same numbers; recomputed layers give the same gradients, as
 * does a last layer that computes labeled rows only. */
#define _GNU_SOURCE
#include "base/alloc.h"
#include "base/file.h"
#include "check.h"
#include "op/op.h"
#include "random_batch.h"
#include "sesame/model.h"
#include "train/lanes.h"

#include <dirent.h>
#include <math.h>

enum { TRIES = 200, OUT = 1 << 16 };

/* Sequence s of a batch as a batch of its own. */
static void single_sequence(random_batch *one, const random_batch *x, int64_t s)
{
    int32_t begin = x->cu[s], len = x->cu[s + 1] - begin;
    memset(one, 0, sizeof *one);
    one->cu[1] = len;
    memcpy(one->ids, x->ids + begin, (size_t)len * sizeof *one->ids);
    memcpy(one->target, x->target + begin, (size_t)len * sizeof *one->target);
    one->batch = (ses_batch){ .seqs = 1, .tokens = len, .cu_seqlens = one->cu, .ids = one->ids };
    if (x->batch.target_cu_seqlens)
        one->batch.target_cu_seqlens = one->cu, one->batch.target_ids = one->target;
}

/* Variants of a pass: with memory rewinding or not; the requested outputs. */
typedef struct variant {
    bool lean, but_hidden;
} variant;

/* The rows of sequence s in every output except attention; returns the number of elements. */
static int64_t result(ses_model *m, ses_tape *t, const ses_batch *b, int64_t s, variant w, ses_real *out)
{
    ses_err e = { 0 };
    ses_outputs o = { 0 };
    ses_tape_reset(t, NULL);
    ses_output_request want = { .logits = true, .hidden_states = !w.lean };
    if (!CHECK_MSG(ses_model_forward(m, t, b, &want, &o, &e), "%s", e.msg)) return 0;
    int64_t at = 0;
    for (size_t i = 0; i < o.n; i++) {
        const ses_output *x = &o.item[i];
        int64_t cols = ses_cols(x->tensor), from = s, n = 1;
        if (w.but_hidden && strstr(x->name, "hidden_states.")) continue;
        if (x->axis == SES_PER_TOKEN || x->axis == SES_PER_TARGET)
            from = b->cu_seqlens[s], n = b->cu_seqlens[s + 1] - b->cu_seqlens[s];
        if (!CHECK(at + n * cols <= OUT)) return 0;
        memcpy(out + at, x->tensor->f + from * cols, (size_t)(n * cols) * sizeof *out);
        at += n * cols;
    }
    return at;
}

/* config: replaces the folder's, with random weights; or NULL. */
static void test_batches(const char *dir, const ses_json *config, ses_device *dev)
{
    static ses_real with[OUT], by_itself[OUT];
    ses_err e = { 0 };
    ses_model *m =
        ses_model_open(dir, dev, &(ses_model_options){ .config = config, .random_init = config != NULL }, &e);
    ses_tape *t = m ? ses_tape_new(dev, NULL, &e) : NULL;
    if (!CHECK_MSG(t, "%s: %s", dir, e.msg)) return;
    bool pair = false, echo = strstr(ses_model_class_name(m), "SequenceClassification") != NULL ||
                              strstr(ses_model_class_name(m), "QuestionAnswering") != NULL;
    ses_json_bool(ses_json_get(ses_model_config(m), "is_encoder_decoder"), &pair);
    int bad = 0;
    for (uint32_t i = 0; i < TRIES; i++) {
        random_batch x, one;
        random_batch_draw(&x, m, pair && !echo, i);
        int64_t s = ses_rand32((ses_rng_key){ .seed = 12, .step = i }, 0) % x.batch.seqs;
        single_sequence(&one, &x, s);
        bool lean[] = { i & 1, i & 2 }, bare = lean[0] || lean[1];
        int64_t n = result(m, t, &x.batch, s, (variant){ lean[0], bare }, with);
        int64_t k = result(m, t, &one.batch, 0, (variant){ lean[1], bare }, by_itself);
        bad += !n || n != k || memcmp(with, by_itself, (size_t)n * sizeof *with) != 0;
    }
    CHECK_MSG(bad == 0, "%s: %d of %d batches changed a sequence's bits", dir, bad, TRIES);
    ses_tape_free(t);
    ses_model_free(m);
}

static void test_save(const char *dir, ses_device *dev)
{
    char to[] = "/tmp/sesame-zoo-XXXXXX", cmd[64];
    ses_err e = { 0 };
    ses_model *m = ses_model_open(dir, dev, &(ses_model_options){ .no_packing = true }, &e), *back = NULL;
    CHECK(mkdtemp(to));
    if (m && ses_model_save(m, to, &(ses_save_options){ .shard_bytes = 20000 }, &e))
        back = ses_model_open(to, dev, &(ses_model_options){ .train = true }, &e);
    CHECK_MSG(back, "%s: %s", dir, e.msg);
    for (size_t i = 0; back && i < ses_store_count(ses_model_store(m)); i++) {
        const ses_tensor *x = ses_store_at(ses_model_store(m), i)->tensor;
        const ses_tensor *y = ses_store_at(ses_model_store(back), i)->tensor;
        CHECK(ses_same_shape(x, y) && !memcmp(x->f, y->f, (size_t)ses_count(x) * sizeof *x->f));
    }
    snprintf(cmd, sizeof cmd, "rm -r %s", to);
    CHECK(system(cmd) == 0);
    ses_model_free(back);
    ses_model_free(m);
}

/* Maximum number of elements that copy_gradients writes. */
static int64_t gradients(const ses_model *m)
{
    int64_t n = 1;
    for (size_t i = 0; i < ses_store_count(ses_model_store(m)); i++)
        n += ses_count(ses_store_at(ses_model_store(m), i)->tensor);
    return n;
}

static void copy_gradients(const ses_store *s, ses_real loss, ses_real *grad)
{
    *grad++ = loss;
    for (size_t i = 0; i < ses_store_count(s); i++) {
        const ses_tensor *w = ses_store_at(s, i)->tensor;
        if (!w->grad) continue;
        memcpy(grad, w->grad, (size_t)ses_count(w) * sizeof *grad);
        grad += ses_count(w);
    }
}

/* Gradients of the mean square of the first output, with dropout, into `grad`; compared bit by bit, as is the
 * loss. */
static bool compute_grads(ses_model *m, ses_tape *t, const ses_batch *b, bool recompute, ses_real *grad,
                          ses_err *e)
{
    ses_store *s = ses_model_store(m);
    ses_outputs o = { 0 };
    ses_tape_options how = { .record = true, .train = true, .recompute = recompute, .seed = 3, .step = 9 };
    ses_store_zero_grad(s);
    ses_tape_reset(t, &how);
    if (!ses_model_forward(m, t, b, &(ses_output_request){ .logits = true }, &o, e)) return false;
    ses_tensor *x = o.item[0].tensor;
    ses_real *zeros = ses_tape_host_alloc(t, (size_t)ses_count(x), sizeof *zeros);
    ses_tensor *loss = ses_target_loss(t, x, ses_tape_input(t, zeros, x->dim), SES_LOSS_MSE);
    ses_backward(t, loss);
    if (!ses_tape_ok(t, e)) return false;
    copy_gradients(s, *loss->f, grad);
    return true;
}

/* Returns whether the model supports it. */
static bool test_recompute(const char *dir, ses_device *dev)
{
    ses_err e = { 0 }, why = { 0 };
    ses_model *m = ses_model_open(dir, dev, &(ses_model_options){ .train = true }, &e);
    if (!CHECK_MSG(m, "%s: %s", dir, e.msg)) return false;
    bool pair = false;
    ses_json_bool(ses_json_get(ses_model_config(m), "is_encoder_decoder"), &pair);
    int64_t n = gradients(m);
    ses_real *plain = ses_alloc((size_t)n * sizeof *plain, &e),
             *again = ses_alloc((size_t)n * sizeof *again, &e);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    for (uint32_t i = 0; i < 3; i++) {
        random_batch x;
        random_batch_draw(&x, m, pair, i);
        memset(plain, 0, (size_t)n * sizeof *plain), memset(again, 0, (size_t)n * sizeof *again);
        if (!compute_grads(m, t, &x.batch, false, plain, &e)) break; /* an output without gradient */
        ses_err_clear(&why);
        bool ok = compute_grads(m, t, &x.batch, true, again, &why);
        if (!ok && strstr(why.msg, "cannot recompute its layers")) break; /* not supported */
        CHECK_MSG(ok && !memcmp(plain, again, (size_t)n * sizeof *plain), "%s: %s", dir,
                  ok ? "other gradients" : why.msg);
    }
    ses_free(plain), ses_free(again);
    ses_tape_free(t);
    ses_model_free(m);
    return !e.code && !why.code;
}

/* The parameters that ops read in f32 on a device with bf16 activations. */
typedef struct f32_reads {
    const ses_store *store;
    const char *dir;
    int n;
} f32_reads;

static void see_f32_reads(void *ctx, const ses_node *n)
{
    f32_reads *r = ctx;
    for (int i = 0; i < n->n_in; i++)
        for (size_t k = 0; n->op->f32_inputs >> i & 1 && n->in[i] && k < ses_store_count(r->store); k++) {
            const ses_param *p = ses_store_at(r->store, k);
            if (p->tensor->data != n->in[i]->data) continue; /* or a view of it */
            CHECK_MSG(ses_lanes_sends_f32(p), "%s: %s reads \"%s\" in f32, ranks would not send it", r->dir,
                      n->op->name, p->name);
            r->n++;
        }
}

/* Ranks send every parameter that an op reads in f32 as f32, not as a bf16 copy alone. Returns the number of
 * these reads. */
static int test_f32_reads(const char *dir, ses_device *dev)
{
    ses_err e = { 0 };
    ses_model *m = ses_model_open(dir, dev, &(ses_model_options){ .train = true }, &e);
    ses_tape *t = m ? ses_tape_new(dev, &(ses_tape_options){ .record = true }, &e) : NULL;
    if (!CHECK_MSG(t, "%s: %s", dir, e.msg)) return 0;
    bool pair = false;
    ses_json_bool(ses_json_get(ses_model_config(m), "is_encoder_decoder"), &pair);
    f32_reads r = { ses_model_store(m), dir, 0 };
    ses_tape_watch watch = { .ctx = &r, .computed = see_f32_reads };
    ses_outputs o;
    random_batch x;
    random_batch_draw(&x, m, pair, 0);
    ses_tape_set_watch(t, &watch);
    CHECK_MSG(ses_model_forward(m, t, &x.batch, &(ses_output_request){ .logits = true }, &o, &e), "%s: %s",
              dir, e.msg);
    ses_tape_free(t);
    ses_model_free(m);
    return r.n;
}

/* Models without head: requested rows of the last hidden state, in any order, have the bits of all rows. */
static void test_rows(const char *dir, const ses_json *config, ses_device *dev)
{
    ses_err e = { 0 };
    ses_outputs o = { 0 };
    ses_model *m = ses_model_open(
        dir, dev, &(ses_model_options){ .no_head = true, .config = config, .random_init = config != NULL },
        &e);
    ses_tape *t = m ? ses_tape_new(dev, NULL, &e) : NULL, *some = m ? ses_tape_new(dev, NULL, &e) : NULL;
    for (uint32_t i = 0; t && some && i < 4; i++) {
        random_batch x;
        random_batch_draw(&x, m, false, i); /* no_head: encoder only */
        int32_t T = x.cu[x.batch.seqs], row[] = { T - 1, 0, T / 2, 0 }, beyond[] = { T };
        ses_tape_reset(t, NULL), ses_tape_reset(some, NULL);
        if (!ses_model_forward(m, t, &x.batch, &(ses_output_request){ 0 }, &o, &e)) break;
        const ses_output *last = ses_outputs_find(&o, "last_hidden_state");
        const ses_tensor *all = last ? last->tensor : o.item[0].tensor;
        int64_t C = ses_cols(all);
        if (!ses_model_forward(m, some, &x.batch, &(ses_output_request){ .rows = row, .n_rows = 4 }, &o, &e))
            break;
        int bad = 0;
        for (size_t j = 0; j < o.n; j++)
            for (int k = 0; o.item[j].axis == SES_PER_ROW && k < 4; k++)
                bad +=
                    memcmp(o.item[j].tensor->f + k * C, all->f + row[k] * C, (size_t)C * sizeof *all->f) != 0;
        CHECK_MSG(!bad && o.item[o.n - 1].axis == SES_PER_ROW, "%s: %d rows differ", dir, bad);
        ses_tape_reset(some, NULL);
        CHECK(!ses_model_forward(m, some, &x.batch, &(ses_output_request){ .rows = beyond, .n_rows = 1 }, &o,
                                 &e));
        CHECK(strstr(e.msg, "requested row"));
        ses_err_clear(&e);
    }
    bool refused =
        strstr(e.msg, "has no encoder-only class") || /* a decoder alone, or one of another vocabulary */
        strstr(e.msg, "it can be opened as") || strstr(e.msg, "but config.json ties them");
    CHECK_MSG(!e.code || refused, "%s: %s", dir, e.msg);
    ses_tape_free(t), ses_tape_free(some);
    ses_model_free(m);
}

/* Products with fewer rows than there are tokens. */
static int short_products(ses_tape *t, int64_t tokens)
{
    int n = 0;
    for (const ses_node *i = ses_tape_last_node(t); i; i = i->prev)
        n += !strcmp(i->op->name, "linear") && ses_rows(i->out) < tokens;
    return n;
}

/* Loss and gradients with few labels; requesting hidden states makes the last layer compute all rows. */
static bool compute_label_grads(ses_model *m, ses_tape *t, const ses_batch *b, bool all, ses_real *grad,
                                int *products, ses_err *e)
{
    ses_store *s = ses_model_store(m);
    ses_outputs o = { 0 };
    ses_store_zero_grad(s);
    ses_tape_reset(t, &(ses_tape_options){ .record = true });
    if (!ses_model_forward(m, t, b, &(ses_output_request){ .hidden_states = all }, &o, e) || !o.loss)
        return false;
    *products = short_products(t, b->tokens);
    ses_backward(t, o.loss);
    if (!ses_tape_ok(t, e)) return false;
    copy_gradients(s, *o.loss->f, grad);
    return true;
}

/* Returns the number of products of the last layer with fewer rows. Gradients are equal up to the order of
 * sums. */
static int test_few_labels(const char *dir, ses_device *dev)
{
    ses_err e = { 0 };
    ses_model *m = ses_model_open(dir, dev, &(ses_model_options){ .train = true }, &e);
    const char *head = m ? ses_model_head_name(m) : NULL;
    bool words = head && (!strcmp(head, "masked-lm") || !strcmp(head, "causal-lm")), pair = false;
    if (m) ses_json_bool(ses_json_get(ses_model_config(m), "is_encoder_decoder"), &pair);
    if (!CHECK_MSG(m, "%s: %s", dir, e.msg) || !words || pair) {
        ses_model_free(m);
        return 0;
    }
    int64_t n = gradients(m);
    ses_real *some = ses_alloc((size_t)n * sizeof *some, &e),
             *every = ses_alloc((size_t)n * sizeof *every, &e);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    int fewer = 0;
    for (uint32_t i = 0; i < 4; i++) {
        random_batch x;
        random_batch_draw(&x, m, false, i);
        for (int32_t j = 0; j < x.batch.tokens; j++)
            x.target[j] = j % 5 == 3 && i ? x.target[j] : SES_IGNORE_INDEX;
        x.batch.labels = x.target; /* none in the first batch */
        memset(some, 0, (size_t)n * sizeof *some), memset(every, 0, (size_t)n * sizeof *every);
        int products[2] = { 0 };
        bool ok = compute_label_grads(m, t, &x.batch, false, some, &products[0], &e) &&
                  compute_label_grads(m, t, &x.batch, true, every, &products[1], &e);
        fewer += products[0] - products[1];
        double off = 0, size = 0;
        for (int64_t j = 1; j < n; j++)
            off += pow((double)some[j] - (double)every[j], 2), size += pow((double)every[j], 2);
        CHECK_MSG(ok && some[0] == every[0] && sqrt(off) <= 1e-5 * sqrt(size),
                  "%s: %s: losses %g %g, off by %g", dir, e.msg, (double)some[0], (double)every[0],
                  sqrt(off / size));
    }
    ses_free(some), ses_free(every);
    ses_tape_free(t);
    ses_model_free(m);
    return fewer;
}

/* Custom heads: some read all tokens, some one. */
static void test_custom_heads(const char *dir, ses_device *dev)
{
    static const char *const kind[] = { "linear", "mlp", "lstm", "gru" };
    ses_err e = { 0 };
    ses_json_doc *base = ses_model_config_open(dir, NULL, &e);
    for (size_t i = 0; CHECK(base) && i < SES_LEN(kind); i++) {
        ses_config_patch c = SES_CONFIG_PATCH_NONE;
        c.head = kind[i], c.sizes[0] = 5, c.n_sizes = i > 0;
        ses_json_doc *doc = ses_model_config_patch(ses_json_root(base), &c, &e);
        if (CHECK_MSG(doc, "%s", e.msg)) test_batches(dir, ses_json_root(doc), dev);
        ses_json_free(doc);
    }
    ses_json_free(base);
}

/* A single layer: both first and last. */
static void test_one_layer(const char *dir, ses_device *dev)
{
    static const char key[] = "\"num_hidden_layers\": ";
    char path[300];
    size_t n;
    ses_err e = { 0 };
    snprintf(path, sizeof path, "%s/config.json", dir);
    char *text = ses_file_read(path, 1 << 16, &n, &e), *at = text ? strstr(text, key) : NULL;
    if (CHECK_MSG(at, "%s", e.msg)) at[sizeof key - 1] = '1';
    ses_json_doc *doc = at ? ses_json_parse(text, n, &e) : NULL;
    if (CHECK_MSG(doc, "%s", e.msg)) test_rows(dir, ses_json_root(doc), dev);
    ses_json_free(doc);
    ses_free(text);
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 2 }, &e);
    int learned = 0, fewer = 0, read_f32 = 0;
    DIR *d = opendir("tests/golden");
    CHECK(dev && d);
    for (struct dirent *f; d && (f = readdir(d));) {
        char path[300];
        if (f->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "tests/golden/%s", f->d_name);
        test_batches(path, NULL, dev);
        test_save(path, dev);
        learned += test_recompute(path, dev);
        fewer += test_few_labels(path, dev);
        test_rows(path, NULL, dev);
        read_f32 += test_f32_reads(path, dev);
    }
    if (d) closedir(d);
    test_custom_heads("tests/golden/bert-classify", dev);
    test_one_layer("tests/golden/bert-model", dev);
    test_one_layer("tests/golden/deberta-v2-conv", dev);
    CHECK(learned >= 75);
    CHECK_MSG(fewer >= 424, "%d", fewer);
    CHECK_MSG(read_f32 >= 1000, "%d", read_f32);
    ses_device_free(dev);
    return check_report();
}
