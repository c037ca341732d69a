/* Attention masks of sequences (prefix_len): logits, loss and gradients against transformers
 * (fixtures/attention_masks.json, made by attention_masks.py), in lengths that fill no block. */
#include "base/json/json_helpers.h"
#include "check.h"
#include "model/model_desc.h"
#include "sesame/json.h"

#include <math.h>
#include <string.h>

enum { VOCAB = 71, STEP = 5, MAX_TOKENS = 32, SEQS = 3 };

static int32_t ids[MAX_TOKENS], labels[MAX_TOKENS], cu[SEQS + 1], prefix[SEQS];

static double number(const ses_json *list, size_t i)
{
    double d = NAN;
    CHECK(ses_json_real(ses_json_at(list, i), &d));
    return d;
}

static void read_ints(const ses_json *list, int32_t *out)
{
    for (size_t i = 0; i < ses_json_len(list); i++) out[i] = (int32_t)number(list, i);
}

/* The largest difference between x[i * step] and a list. */
static double apart(const ses_json *list, const ses_real *x, int64_t n, int64_t cols, int64_t step)
{
    double worst = 0;
    size_t k = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < cols; j += step)
            worst = fmax(worst, fabs((double)x[i * cols + j] - number(list, k++)));
    CHECK(k == ses_json_len(list));
    return worst;
}

static void check_case(ses_model *m, ses_tape *t, const char *name, const ses_json *c,
                       const char *gradient_of)
{
    ses_err e = { 0 };
    ses_outputs out;
    double loss = NAN;
    read_ints(ses_json_get(c, "prefix_len"), prefix);
    ses_batch b = {
        .seqs = SEQS, .tokens = cu[SEQS], .cu_seqlens = cu, .ids = ids, .labels = labels, .prefix_len = prefix
    };
    ses_tape_reset(t, &(ses_tape_options){ .record = true });
    if (!CHECK_MSG(ses_model_forward(m, t, &b, &(ses_output_request){ .logits = true }, &out, &e), "%s",
                   e.msg))
        return;
    ses_store_zero_grad(m->store);
    ses_backward(t, out.loss);
    CHECK_MSG(ses_tape_ok(t, &e), "%s", e.msg);
    const ses_tensor *y = ses_outputs_find(&out, "logits")->tensor;
    double worst = apart(ses_json_get(c, "logits"), y->f, b.tokens, VOCAB, STEP);
    CHECK_MSG(worst < 1e-5, "%s: logits %g", name, worst);
    CHECK(ses_json_real(ses_json_get(c, "loss"), &loss));
    CHECK_MSG(fabs(loss - (double)out.loss->f[0]) < 1e-5, "%s: loss", name);
    const ses_param *p = ses_store_find(m->store, gradient_of);
    if (!CHECK(p)) return;
    worst = apart(ses_json_get(c, "gradient"), p->tensor->grad, 1, ses_count(p->tensor), 1);
    CHECK_MSG(worst < 1e-5, "%s: gradient %g", name, worst);
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    ses_json_doc *doc = ses_json_load("tests/fixtures/attention_masks.json", 1 << 20, &e);
    ses_model *m =
        ses_model_open("tests/golden/bert-masked-lm", dev, &(ses_model_options){ .train = true }, &e);
    if (CHECK_MSG(doc && m && t, "%s", e.msg)) {
        const ses_json *f = ses_json_root(doc), *cases = ses_json_get(f, "cases");
        read_ints(ses_json_get(f, "ids"), ids);
        read_ints(ses_json_get(f, "labels"), labels);
        for (size_t i = 0; i < SEQS; i++) cu[i + 1] = cu[i] + (int32_t)number(ses_json_get(f, "lengths"), i);
        CHECK(ses_json_len(cases) == 5);
        for (size_t i = 0; i < ses_json_len(cases); i++)
            check_case(m, t, ses_json_key(cases, i, NULL), ses_json_at(cases, i),
                       "layer.0.attn.query.weight");
        /* other numbers below 0 are refused */
        ses_outputs out;
        ses_batch b = { .seqs = SEQS,
                        .tokens = cu[SEQS],
                        .cu_seqlens = cu,
                        .ids = ids,
                        .prefix_len = (int32_t[]){ 0, -2, 0 } };
        CHECK(!ses_model_forward(m, t, &b, &(ses_output_request){ .logits = true }, &out, &e));
        CHECK_STR(e.msg, "prefix_len -2 in sequence 1 of 1 tokens");
    }
    ses_model_free(m);
    ses_json_free(doc);
    ses_tape_free(t);
    ses_device_free(dev);
    return check_report();
}
