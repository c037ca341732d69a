/* Early exits against transformers and PyTorch (fixtures/exits, made by exits.py): losses, gradients, scores
 * and the layers at which texts leave. A batch that shrinks gives each text the bits it gets alone, in every
 * architecture with exits; a rule that never applies gives the bits of the model without exits. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "base/dir.h"
#include "base/json/json_helpers.h"
#include "check.h"
#include "model/model_desc.h"
#include "sesame/base.h"
#include "sesame/safetensors.h"

#include <math.h>

enum { TEXTS = 20, LAYERS = 4, LABELS = 3 };

static char tmp[] = "/tmp/sesame-exits-XXXXXX";

typedef struct fixture {
    char dir[64];
    ses_safetensors *want;
    int32_t ids[512], cu[TEXTS + 1], labels[TEXTS];
    ses_batch batch;
} fixture;

static void ints(const fixture *f, const char *name, int32_t *to)
{
    const ses_tensor_entry *x = ses_safetensors_find(f->want, name);
    if (CHECK_MSG(x && x->bytes == (size_t)x->count * sizeof *to, "%s", name)) memcpy(to, x->data, x->bytes);
}

static const float *reals(const fixture *f, const char *name)
{
    const ses_tensor_entry *x = ses_safetensors_find(f->want, name);
    return x ? x->data : NULL;
}

static bool fixture_open(fixture *f, const char *name, ses_err *e)
{
    char path[96];
    snprintf(f->dir, sizeof f->dir, "tests/fixtures/exits/%s", name);
    snprintf(path, sizeof path, "%s/expected.safetensors", f->dir);
    f->want = ses_safetensors_open(path, e);
    if (!f->want) return false;
    ints(f, "ids", f->ids), ints(f, "cu_seqlens", f->cu), ints(f, "labels", f->labels);
    f->batch = (ses_batch){ .seqs = TEXTS, .tokens = f->cu[TEXTS], .cu_seqlens = f->cu, .ids = f->ids };
    return true;
}

typedef struct result {
    ses_real scores[TEXTS * LABELS], layers[TEXTS], loss;
    bool ok, has_layers;
} result;

/* rule NULL: no early exit. */
static result run(const ses_model *m, ses_device *dev, const ses_batch *b, const char *rule, ses_err *e)
{
    static result r;
    ses_exit_policy p = { 0 };
    ses_outputs out;
    r = (result){ .loss = NAN };
    ses_tape *t = ses_tape_new(dev, NULL, e);
    ses_output_request want = { .logits = true, .exit = rule ? &p : NULL };
    r.ok = t && (!rule || ses_exit_policy_parse(rule, &p, e)) && ses_model_forward(m, t, b, &want, &out, e);
    const ses_output *y = r.ok ? ses_outputs_find(&out, "logits") : NULL,
                     *n = r.ok ? ses_outputs_find(&out, "exit_layers") : NULL;
    r.ok = y && ses_rows(y->tensor) == b->seqs && ses_tape_read(t, y->tensor, r.scores);
    r.has_layers = n && ses_count(n->tensor) == b->seqs && ses_tape_read(t, n->tensor, r.layers);
    if (r.ok && out.loss) r.ok = ses_tape_read(t, out.loss, &r.loss);
    ses_tape_free(t);
    return r;
}

/* Text i alone. */
static ses_batch text_of(const ses_batch *b, int64_t i, int32_t cu[2])
{
    cu[0] = 0, cu[1] = b->cu_seqlens[i + 1] - b->cu_seqlens[i];
    return (ses_batch){ .seqs = 1, .tokens = cu[1], .cu_seqlens = cu, .ids = b->ids + b->cu_seqlens[i] };
}

/* Each text gets the same bits alone and in the batch. Returns the number of texts that left early. */
static int check_alone(const ses_model *m, ses_device *dev, const ses_batch *b, const char *rule,
                       const char *name)
{
    ses_err e = { 0 };
    result all = run(m, dev, b, rule, &e);
    int different = 0, early = 0;
    if (!CHECK_MSG(all.ok && all.has_layers, "%s, %s: %s", name, rule, e.msg)) return 0;
    for (int64_t i = 0; i < b->seqs; i++) {
        int32_t cu[2];
        ses_batch one = text_of(b, i, cu);
        result r = run(m, dev, &one, rule, &e);
        different += !r.ok || r.layers[0] != all.layers[i] ||
                     memcmp(r.scores, all.scores + i * ses_model_label_count(m),
                            (size_t)ses_model_label_count(m) * sizeof *r.scores);
        early += all.layers[i] < (ses_real)ses_model_layer_count(m);
    }
    CHECK_MSG(!different, "%s, %s: %d texts differ", name, rule, different);
    return early;
}

/* ---- against PyTorch ---- */

static double apart(const float *want, const ses_real *got, int64_t n)
{
    double diff = 0, norm = 0;
    for (int64_t i = 0; i < n; i++) {
        diff += pow((double)got[i] - (double)want[i], 2);
        norm += pow((double)want[i], 2);
    }
    return sqrt(diff) / fmax(sqrt(norm), 1e-6);
}

/* Leaving layers and scores by one rule; key: "entropy.0.5". */
static void check_rule(const fixture *f, const ses_model *m, ses_device *dev, const char *key)
{
    int32_t layers[TEXTS];
    char rule[32];
    ses_err e = { 0 };
    int wrong = 0, early = 0;
    double worst = 0;
    snprintf(rule, sizeof rule, "%s", key);
    *strchr(rule, '.') = ':';
    ints(f, key, layers);
    ses_batch b = f->batch;
    b.labels = f->labels;
    result r = run(m, dev, &b, rule, &e);
    if (!CHECK_MSG(r.ok && r.has_layers, "%s: %s", rule, e.msg)) return;
    double loss = 0;
    for (int i = 0; i < TEXTS; i++) {
        char name[32];
        snprintf(name, sizeof name, "logits.%d", (int)layers[i]);
        const float *y = reals(f, name) + i * LABELS;
        double sum = 0;
        wrong += (int)r.layers[i] != layers[i], early += layers[i] < LAYERS;
        worst = fmax(worst, apart(y, r.scores + i * LABELS, LABELS));
        for (int k = 0; k < LABELS; k++) sum += exp((double)y[k]);
        loss += (log(sum) - (double)y[f->labels[i]]) / TEXTS;
    }
    CHECK_MSG(!wrong, "%s %s: %d texts leave at another layer", f->dir, rule, wrong);
    CHECK_MSG(worst < 1e-5, "%s %s: scores %g apart", f->dir, rule, worst);
    CHECK_MSG(fabs((double)r.loss - loss) < 1e-5, "loss %g, expected %g", (double)r.loss, loss);
    CHECK(check_alone(m, dev, &f->batch, rule, f->dir) == early);
}

static void check_loss(const fixture *f, ses_device *dev, ses_exits_loss kind, bool from_last,
                       const char *key)
{
    ses_err e = { 0 };
    ses_outputs out;
    ses_real loss = 0;
    double worst = 0;
    ses_model *m = ses_model_open(f->dir, dev, &(ses_model_options){ .train = true, .strict = true }, &e);
    ses_tape *t = ses_tape_new(dev, &(ses_tape_options){ .record = true, .train = true }, &e);
    ses_batch b = f->batch;
    b.labels = f->labels;
    if (m) ses_model_train_exits(m, kind, from_last);
    bool ok = m && t && ses_model_forward(m, t, &b, NULL, &out, &e) && ses_tape_read(t, out.loss, &loss);
    if (CHECK_MSG(ok, "%s", e.msg)) {
        CHECK_MSG(fabs((double)loss - (double)*reals(f, key)) < 1e-5, "%s %s: %g, expected %g", f->dir, key,
                  (double)loss, (double)*reals(f, key));
        ses_backward(t, out.loss);
        ok = ses_tape_ok(t, &e);
        CHECK_MSG(ok, "%s", e.msg);
    }
    for (size_t i = 0; ok && kind == SES_EXITS_JOINT && i < ses_store_count(ses_model_store(m)); i++) {
        char name[256], grad[264];
        const ses_tensor *x = ses_store_at(ses_model_store(m), i)->tensor;
        if (ses_store_at(ses_model_store(m), i)->role != SES_PARAM_TRAINED) continue; /* zeros */
        CHECK(ses_model_tensor_name(m, i, name, sizeof name));
        snprintf(grad, sizeof grad, "grad.%s", name);
        const float *want = reals(f, grad);
        if (!CHECK_MSG(want, "%s", grad)) continue;
        double norm = 0;
        for (int64_t k = 0; k < ses_count(x); k++) norm += pow((double)want[k], 2);
        if (sqrt(norm) > 1e-4) worst = fmax(worst, apart(want, x->grad, ses_count(x)));
    }
    CHECK_MSG(worst < 1e-5, "%s: gradients %g apart", f->dir, worst);
    ses_tape_free(t);
    ses_model_free(m);
}

static void check_fixture(const char *name, ses_device *dev)
{
    static const char *const rules[] = { "entropy.0.5", "entropy.0.6", "entropy.0.7", "entropy.0.8",
                                         "entropy.0.9", "patience.1",  "patience.2",  "patience.3" };
    fixture f = { 0 };
    ses_err e = { 0 };
    ses_model *m = fixture_open(&f, name, &e)
                       ? ses_model_open(f.dir, dev, &(ses_model_options){ .strict = true }, &e)
                       : NULL;
    if (CHECK_MSG(m, "%s", e.msg)) {
        CHECK(ses_model_exit_count(m) == LAYERS - 1 && ses_model_exit_layer(m, 2) == 3);
        for (size_t i = 0; i < SES_LEN(rules); i++) check_rule(&f, m, dev, rules[i]);
        for (int i = 1; i <= LAYERS; i++) {
            char rule[24], key[24];
            snprintf(rule, sizeof rule, "layer:%d", i), snprintf(key, sizeof key, "logits.%d", i);
            result r = run(m, dev, &f.batch, rule, &e);
            CHECK_MSG(r.ok && apart(reals(&f, key), r.scores, TEXTS * LABELS) < 1e-5, "%s", rule);
        }
        result plain = run(m, dev, &f.batch, NULL, &e), none = run(m, dev, &f.batch, "entropy:0", &e);
        CHECK(plain.ok && none.ok && !plain.has_layers);
        CHECK(!memcmp(plain.scores, none.scores, sizeof plain.scores));
        check_loss(&f, dev, SES_EXITS_JOINT, false, "joint.loss");
        check_loss(&f, dev, SES_EXITS_FROZEN, false, "frozen.loss");
        check_loss(&f, dev, SES_EXITS_FROZEN, true, "last.loss");
    }
    ses_model_free(m);
    ses_safetensors_free(f.want);
}

/* ---- files ---- */

/* Saved in every dtype, the model has its exits; in f32 the same bits. */
static void check_saved(ses_device *dev)
{
    static const ses_dtype dtypes[] = { SES_F32, SES_F16, SES_I8 };
    fixture f = { 0 };
    ses_err e = { 0 };
    CHECK_MSG(fixture_open(&f, "bert", &e), "%s", e.msg);
    ses_model *m = ses_model_open(f.dir, dev, &(ses_model_options){ .no_packing = true }, &e);
    result before = m ? run(m, dev, &f.batch, "entropy:0.7", &e) : (result){ 0 };
    for (size_t i = 0; m && i < SES_LEN(dtypes); i++) {
        char dir[64];
        snprintf(dir, sizeof dir, "%s/saved-%zu", tmp, i);
        ses_save_options o = { .dtype = dtypes[i] };
        ses_model *again = ses_model_save(m, dir, &o, &e)
                               ? ses_model_open(dir, dev, &(ses_model_options){ .strict = true }, &e)
                               : NULL;
        if (!CHECK_MSG(again, "%s", e.msg)) continue;
        CHECK(ses_model_exit_count(again) == LAYERS - 1);
        check_alone(again, dev, &f.batch, "entropy:0.7", "saved");
        result r = run(again, dev, &f.batch, "entropy:0.7", &e);
        if (!i) CHECK(!memcmp(r.scores, before.scores, sizeof r.scores));
        result plain = run(again, dev, &f.batch, NULL, &e), none = run(again, dev, &f.batch, "entropy:0", &e);
        CHECK(plain.ok && !memcmp(plain.scores, none.scores, sizeof plain.scores));
        ses_model_free(again);
    }
    ses_model_free(m);
    /* another class has no exits, and loses them when it is saved */
    ses_model_options tag = { .class_name = "BertForTokenClassification", .train = true, .new_heads = true };
    char dir[64], path[96];
    snprintf(dir, sizeof dir, "%s/tag", tmp), snprintf(path, sizeof path, "%s/config.json", dir);
    m = ses_model_open(f.dir, dev, &tag, &e);
    CHECK_MSG(m && !ses_model_exit_count(m) && ses_model_save(m, dir, NULL, &e), "%s", e.msg);
    ses_json_doc *c = ses_json_load(path, 1 << 20, &e);
    CHECK(c && !ses_json_get(ses_json_root(c), SES_EXITS_KEY));
    ses_json_free(c);
    ses_model_free(m);
    ses_safetensors_free(f.want);
}

/* ---- other architectures, random weights ---- */

/* The config of a golden case with exits after all inner layers; layers NULL: these. */
static ses_json_doc *config_of(const char *golden, const char *exits, ses_err *e)
{
    char path[96];
    snprintf(path, sizeof path, "tests/golden/%s/config.json", golden);
    ses_json_doc *c = ses_json_load(path, 1 << 20, e);
    const ses_json *root = ses_json_root(c);
    ses_json_doc *given = exits ? ses_json_parse(exits, strlen(exits), e) : NULL;
    ses_json_writer *w = c ? ses_json_writer_new(0, e) : NULL;
    if (!w) return NULL;
    int64_t layers = 0;
    static const char *const keys[] = { "num_hidden_layers", "n_layers", "n_layer" };
    for (size_t i = 0; i < SES_LEN(keys) && !layers; i++) ses_json_int(ses_json_get(root, keys[i]), &layers);
    ses_json_begin_object(w);
    for (size_t i = 0; i < ses_json_len(root); i++) {
        ses_json_put_key(w, ses_json_key(root, i, NULL));
        ses_json_put_value(w, ses_json_at(root, i));
    }
    ses_json_put_key(w, SES_EXITS_KEY);
    if (given)
        ses_json_put_value(w, ses_json_root(given));
    else {
        ses_json_begin_object(w);
        ses_json_member_array(w, "layers");
        for (int64_t i = 1; i < layers; i++) ses_json_put_int(w, i);
        ses_json_end_array(w);
        ses_json_end_object(w);
    }
    ses_json_end_object(w);
    ses_json_doc *d = ses_json_writer_parse(w, e);
    ses_json_free(c), ses_json_free(given);
    return d;
}

static void check_random(const char *golden, ses_device *dev)
{
    enum { SHORTEST = 4, TOKENS = 9 };
    ses_err e = { 0 };
    ses_json_doc *c = config_of(golden, NULL, &e);
    const char *class = c ? ses_model_class_for_head(ses_json_root(c), "classify", &e) : NULL;
    ses_model *m =
        class ? ses_model_new(ses_json_root(c), dev, &(ses_model_options){ .class_name = class }, &e) : NULL;
    int32_t ids[TEXTS * TOKENS], cu[TEXTS + 1] = { 0 }, n = 0;
    for (int s = 0; m && s < TEXTS; s++) {
        for (int i = 0; i < SHORTEST + s % (TOKENS - SHORTEST + 1); i++)
            ids[n] = 4 + (n * 7 + s * 3) % ((int32_t)ses_model_vocab_size(m) - 4), n++;
        cu[s + 1] = n;
    }
    ses_batch b = { .seqs = TEXTS, .tokens = n, .cu_seqlens = cu, .ids = ids };
    if (!CHECK_MSG(m && ses_model_exit_count(m), "%s: %s", golden, e.msg)) return;
    /* the median entropy of the first exit separates the texts, whatever the random scores are */
    result first = run(m, dev, &b, "layer:1", &e);
    double entropy[TEXTS];
    for (int s = 0; s < TEXTS; s++)
        entropy[s] = ses_exit_entropy(first.scores + s * ses_model_label_count(m), ses_model_label_count(m));
    for (int i = 0; i < TEXTS; i++)
        for (int k = i + 1; k < TEXTS; k++)
            if (entropy[k] < entropy[i]) {
                double x = entropy[i];
                entropy[i] = entropy[k], entropy[k] = x;
            }
    char rule[64];
    snprintf(rule, sizeof rule, "entropy:%.17g", (entropy[TEXTS / 2 - 1] + entropy[TEXTS / 2]) / 2);
    CHECK_MSG(check_alone(m, dev, &b, rule, golden) >= TEXTS / 4, "%s: no text leaves", golden);
    check_alone(m, dev, &b, "patience:1", golden);
    result plain = run(m, dev, &b, NULL, &e), none = run(m, dev, &b, "entropy:0", &e);
    CHECK_MSG(plain.ok && !memcmp(plain.scores, none.scores, sizeof plain.scores), "%s", golden);
    ses_model_free(m);
    ses_json_free(c);
}

/* ---- bad input ---- */

static void check_config_error(ses_device *dev, const char *golden, const char *exits, const char *message)
{
    ses_err e = { 0 };
    ses_json_doc *c = config_of(golden, exits, &e);
    const char *class = c ? ses_model_class_for_head(ses_json_root(c), "classify", &e) : NULL;
    ses_model_options o = { .class_name = class, .check_only = true };
    ses_model *m = class ? ses_model_new(ses_json_root(c), dev, &o, &e) : NULL;
    CHECK_MSG(!m && strstr(e.msg, message), "%s: got \"%s\"", golden, e.msg);
    ses_model_free(m);
    ses_json_free(c);
}

static void check_rule_error(const ses_model *m, ses_device *dev, const ses_batch *b, const char *rule,
                             const char *message)
{
    ses_err e = { 0 };
    result r = run(m, dev, b, rule, &e);
    CHECK_MSG(!r.ok && strstr(e.msg, message), "%s: got \"%s\"", rule, e.msg);
}

static void check_errors(ses_device *dev)
{
    fixture f = { 0 };
    ses_err e = { 0 };
    check_config_error(dev, "bert-classify", "[]", "must be an object");
    check_config_error(dev, "bert-classify", "{\"layers\":[]}", "expected a list of layers");
    check_config_error(dev, "bert-classify", "{\"layers\":[1,1]}", "not a layer from 2");
    check_config_error(dev, "bert-classify", "{\"layers\":[99]}", "not a layer from 1");
    check_config_error(dev, "bert-classify", "{\"layers\":[1],\"head\":\"big\"}",
                       "expected pooled or linear");
    check_config_error(dev, "gpt2-classify", "{\"layers\":[1]}", "it is a decoder");
    check_config_error(dev, "bart-classify", "{\"layers\":[1]}", "reads a decoder");
    CHECK_MSG(fixture_open(&f, "bert", &e), "%s", e.msg);
    ses_model *m = ses_model_open(f.dir, dev, NULL, &e),
              *plain = ses_model_open("tests/golden/bert-classify", dev,
                                      &(ses_model_options){ .random_init = true }, &e);
    if (CHECK_MSG(m && plain, "%s", e.msg)) {
        check_rule_error(m, dev, &f.batch, "entropy:1.5", "from 0 to 1");
        check_rule_error(m, dev, &f.batch, "entropy:-0.1", "from 0 to 1");
        check_rule_error(m, dev, &f.batch, "entropy:nan", "from 0 to 1");
        check_rule_error(m, dev, &f.batch, "entropy:", "is not a rule");
        check_rule_error(m, dev, &f.batch, "entropy:0.3x", "is not a rule");
        check_rule_error(m, dev, &f.batch, "soon", "is not a rule");
        check_rule_error(m, dev, &f.batch, "patience:0", "expected a number from 1");
        check_rule_error(m, dev, &f.batch, "patience:4", "expected 1 to 3");
        check_rule_error(m, dev, &f.batch, "layer:5", "has 4 layers");
        check_rule_error(plain, dev, &f.batch, "entropy:0.3", "no classifiers after inner layers");
        CHECK(run(plain, dev, &f.batch, "never", &e).ok);
    }
    ses_model_free(m), ses_model_free(plain);
    ses_safetensors_free(f.want);
}

int main(void)
{
    static const char *const random[] = { "bert-classify",   "albert-classify",         "distilbert-classify",
                                          "deberta-v2-conv", "bert-relative-key",       "mobilebert-wide",
                                          "mpnet-masked-lm", "roberta-classify",        "electra-classify",
                                          "xlm-masked-lm",   "modernbert-classify-mean" };
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 2 }, &e);
    if (!CHECK_MSG(dev && mkdtemp(tmp), "%s", e.msg)) return check_report();
    check_fixture("bert", dev);
    check_fixture("modernbert", dev);
    check_saved(dev);
    for (size_t i = 0; i < SES_LEN(random); i++) check_random(random[i], dev);
    check_errors(dev);
    ses_dir_remove_all(tmp, &e);
    ses_device_free(dev);
    return check_report();
}
