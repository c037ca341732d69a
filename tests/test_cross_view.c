/* Cross-View Training against PyTorch (fixtures/cross_view.json, made by cross_view.py): the loss of a batch
 * without labels, its gradients, six steps of SGD on labeled and unlabeled batches in turns; models without
 * views. */
#include "base/str.h"
#include "check.h"
#include "model/model_desc.h"
#include "tune/cross_view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX = 16 };

typedef struct sentences {
    int64_t seqs, tokens;
    int32_t cu[MAX], ids[MAX], tags[MAX];
} sentences;

static double number(const ses_json *v)
{
    double d = NAN;
    ses_json_real(v, &d);
    return d;
}

static int32_t integer(const ses_json *v)
{
    int64_t n = -1;
    ses_json_int(v, &n);
    return (int32_t)n;
}

static sentences read_sentences(const ses_json *rows, const ses_json *tags)
{
    sentences s = { .seqs = (int64_t)ses_json_len(rows) };
    for (size_t r = 0; r < ses_json_len(rows); r++) {
        for (size_t i = 0; i < ses_json_len(ses_json_at(rows, r)); i++, s.tokens++) {
            s.ids[s.tokens] = integer(ses_json_at(ses_json_at(rows, r), i));
            if (tags) s.tags[s.tokens] = integer(ses_json_at(ses_json_at(tags, r), i));
        }
        s.cu[r + 1] = (int32_t)s.tokens;
    }
    return s;
}

static ses_batch batch_of(const sentences *s, bool labels)
{
    return (ses_batch){ .seqs = s->seqs,
                        .tokens = s->tokens,
                        .cu_seqlens = s->cu,
                        .ids = s->ids,
                        .labels = labels ? s->tags : NULL };
}

static ses_json_doc *config_of(const ses_json *f, const char *more)
{
    ses_buf b = { 0 };
    ses_err e = { 0 };
    ses_buf_appendf(
        &b,
        "{\"model_type\": \"rnn-encoder\", \"architectures\": [\"RnnEncoderForTokenClassification\"], "
        "\"vocab_size\": %d, \"embedding_size\": %d, \"hidden_size\": %d, \"num_hidden_layers\": 2, "
        "\"embedding_dropout\": 0, \"hidden_dropout\": 0, \"classifier_dropout\": 0, "
        "\"num_labels\": %d%s}",
        integer(ses_json_get(f, "vocab")), integer(ses_json_get(f, "width")),
        integer(ses_json_get(f, "size")), integer(ses_json_get(f, "labels")), more);
    ses_json_doc *d = ses_json_parse(b.data, b.len, &e);
    CHECK_MSG(d, "%s", e.msg);
    ses_buf_free(&b);
    return d;
}

/* Sets all parameters, or returns the largest difference of their values or gradients from the fixture's. */
static double each_param(const ses_model *m, const ses_store *views, const ses_json *want, bool set,
                         bool grad)
{
    double worst = 0;
    const ses_store *store[] = { m->store, views };
    for (int s = 0; s < 2; s++)
        for (size_t p = 0; p < ses_store_count(store[s]); p++) {
            char name[128];
            const ses_param *x = ses_store_at(store[s], p);
            if (s)
                snprintf(name, sizeof name, "%s", x->name);
            else
                CHECK_MSG(ses_name_to_hf(m, x->name, name, sizeof name), "%s", x->name);
            const ses_json *list = ses_json_get(want, name);
            CHECK_MSG(list && (int64_t)ses_json_len(list) == ses_count(x->tensor), "%s", name);
            for (int64_t i = 0; list && i < ses_count(x->tensor); i++) {
                ses_real *value = (grad ? x->tensor->grad : x->tensor->f) + i;
                double w = number(ses_json_at(list, (size_t)i));
                if (set) *value = (ses_real)w;
                double d = fabs((double)*value - w);
                if (!(d <= worst)) worst = d;
            }
        }
    return worst;
}

static double step(ses_cross_view *v, ses_model *m, ses_tape *t, const ses_batch *b)
{
    ses_err e = { 0 };
    ses_tape_reset(t, &(ses_tape_options){ .record = true });
    ses_tensor *loss = ses_cross_view_loss(v, t, b, &e);
    CHECK_MSG(loss, "%s", e.msg);
    if (!loss) return NAN;
    ses_store_zero_grad(m->store);
    ses_store_zero_grad(ses_cross_view_store(v));
    ses_backward(t, loss);
    CHECK_MSG(ses_tape_ok(t, &e), "%s", e.msg);
    return (double)loss->f[0];
}

static void check_training(ses_model *m, ses_device *dev, const ses_json *f)
{
    ses_err e = { 0 };
    sentences with = read_sentences(ses_json_get(f, "labeled"), ses_json_get(f, "tags")),
              without = read_sentences(ses_json_get(f, "unlabeled"), NULL);
    ses_batch labeled = batch_of(&with, true), unlabeled = batch_of(&without, false);
    ses_cross_view *v = ses_cross_view_new(m, 1, &e);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    CHECK_MSG(v && t, "%s", e.msg);
    if (!v || !t) return;
    const ses_store *views = ses_cross_view_store(v);
    each_param(m, views, ses_json_get(f, "params"), true, false);
    double loss = step(v, m, t, &unlabeled), want = number(ses_json_get(f, "loss"));
    CHECK_MSG(fabs(loss - want) < 1e-5, "%g, expected %g", loss, want);
    double grads = each_param(m, views, ses_json_get(f, "grads"), false, true);
    CHECK_MSG(grads < 1e-5, "gradients: %g", grads);
    double rate = number(ses_json_get(f, "rate"));
    for (int i = 0; i < 6; i++) {
        loss = step(v, m, t, i % 2 ? &unlabeled : &labeled);
        want = number(ses_json_at(ses_json_get(f, "losses"), (size_t)i));
        CHECK_MSG(fabs(loss - want) < 1e-5, "step %d: %g, expected %g", i, loss, want);
        for (int s = 0; s < 2; s++) {
            const ses_store *store = s ? views : m->store;
            for (size_t p = 0; p < ses_store_count(store); p++) {
                const ses_tensor *x = ses_store_at(store, p)->tensor;
                for (int64_t k = 0; k < ses_count(x); k++) x->f[k] -= (ses_real)(rate * (double)x->grad[k]);
            }
        }
    }
    double after = each_param(m, views, ses_json_get(f, "after"), false, false);
    CHECK_MSG(after < 1e-5, "after six steps: %g", after);
    ses_tape_free(t);
    ses_cross_view_free(v);
}

static ses_model *model_of(const ses_json_doc *config, ses_device *dev)
{
    ses_err e = { 0 };
    ses_model *m = config ? ses_model_new(ses_json_root(config), dev,
                                          &(ses_model_options){ .train = true, .seed = 1 }, &e)
                          : NULL;
    CHECK_MSG(m, "%s", e.msg);
    return m;
}

int main(void)
{
    ses_err e = { 0 };
    ses_json_doc *d = ses_json_load("tests/fixtures/cross_view.json", 1 << 20, &e);
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    if (!d || !dev) return fprintf(stderr, "%s\n", e.msg), 1;
    ses_json_doc *config = config_of(ses_json_root(d), "");
    ses_model *m = model_of(config, dev);
    if (m) check_training(m, dev, ses_json_root(d));
    ses_model_free(m);
    ses_json_free(config);
    static const struct {
        const char *more, *why;
    } bad[] = { { ", \"bidirectional\": false", "needs a tagger with a bidirectional LSTM" },
                { ", \"sesame_crf\": \"none\"", "leave out crf" } };
    for (size_t i = 0; i < SES_LEN(bad); i++) {
        config = config_of(ses_json_root(d), bad[i].more);
        m = model_of(config, dev);
        e = (ses_err){ 0 };
        CHECK_MSG(m && !ses_cross_view_new(m, 1, &e) && strstr(e.msg, bad[i].why), "%s", e.msg);
        ses_model_free(m);
        ses_json_free(config);
    }
    ses_json_free(d);
    ses_device_free(dev);
    return check_report();
}
