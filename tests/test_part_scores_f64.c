/* Importance of heads and feed-forward rows in double precision: the absolute derivative of the loss by a
 * factor, against differences of the loss with changed factors. */
#include "check.h"
#include "model/model_desc.h"
#include "tune/prune/part_pruning_impl.h"

#include <math.h>
#include <string.h>

static const double STEP = 1e-4;

static double loss_of(const ses_model *m, ses_tape *t, const ses_batch *b, const ses_edits *edits)
{
    ses_err e = { 0 };
    ses_outputs o;
    ses_real loss = 0;
    ses_output_request r = { .logits = true, .edits = edits };
    ses_tape_reset(t, NULL);
    CHECK_MSG(ses_model_forward(m, t, b, &r, &o, &e) && o.loss && ses_tape_read(t, o.loss, &loss), "%s",
              e.msg);
    return (double)loss;
}

static double by_head(const ses_model *m, ses_tape *t, const ses_batch *b, int64_t layer, int64_t head)
{
    double loss[2];
    for (int i = 0; i < 2; i++) {
        ses_head_edit h = { SES_PART_MAIN, layer, head, 1 + (i ? STEP : -STEP) };
        loss[i] = loss_of(m, t, b, &(ses_edits){ .heads = &h, .n_heads = 1 });
    }
    return fabs(loss[1] - loss[0]) / (2 * STEP);
}

/* A factor of the activation is a factor of the column of the weight that reads it. */
static double by_row(const ses_model *m, ses_tape *t, const ses_batch *b, int64_t layer, int64_t row)
{
    char name[64];
    double loss[2];
    snprintf(name, sizeof name, "layer.%d.ffn.down.weight", (int)layer);
    const ses_param *w = ses_store_find(m->store, name);
    if (!CHECK(w)) return 0;
    int64_t width = ses_model_layer_neurons(m, SES_PART_MAIN, layer), C = ses_count(w->tensor) / width;
    ses_real before[256];
    if (!CHECK(C <= (int64_t)SES_LEN(before))) return 0;
    for (int i = 0; i < 2; i++) {
        for (int64_t c = 0; c < C; c++) {
            ses_real *x = w->tensor->f + (w->layout == SES_OUT_IN ? c * width + row : row * C + c);
            if (!i) before[c] = *x;
            *x = before[c] * (ses_real)(1 + (i ? STEP : -STEP));
        }
        loss[i] = loss_of(m, t, b, NULL);
    }
    for (int64_t c = 0; c < C; c++)
        w->tensor->f[w->layout == SES_OUT_IN ? c * width + row : row * C + c] = before[c];
    return fabs(loss[1] - loss[0]) / (2 * STEP);
}

static void compare(const char *what, const char *dir, int64_t layer, int64_t i, double got, double want)
{
    CHECK_MSG(fabs(got - want) <= 1e-6 * (1 + fabs(want)), "%s: layer %d, %s %d: %.10g, expected %.10g", dir,
              (int)layer, what, (int)i, got, want);
}

/* Values of its own instead of the mapped file's. */
static ses_model *open_copy(const char *dir, ses_device *dev, ses_err *e)
{
    ses_model *mapped = ses_model_open(dir, dev, &(ses_model_options){ .no_packing = true }, e);
    ses_reduction *all = mapped ? ses_reduction_new(mapped, e) : NULL;
    ses_model *m = all ? ses_model_reduce(mapped, all, SES_REDUCED_SMALL, e) : NULL;
    ses_reduction_free(all);
    ses_model_free(mapped);
    return m;
}

/* Two sequences: the score is the mean over both of the absolute derivative. */
static void test_model(const char *dir, bool tags, ses_device *dev)
{
    int32_t cu[] = { 0, 5, 9 }, ids[] = { 5, 9, 33, 30, 12, 17, 2, 8, 21 },
            labels[] = { 1, 0, 1, -100, 0, 1, -100, 0, 0 };
    ses_err e = { 0 };
    ses_batch both = { .seqs = 2, .tokens = 9, .cu_seqlens = cu, .ids = ids, .labels = labels };
    int32_t one_cu[2][2] = { { 0, 5 }, { 0, 4 } };
    ses_batch one[2];
    for (int i = 0; i < 2; i++)
        one[i] = (ses_batch){ .seqs = 1,
                              .tokens = one_cu[i][1],
                              .cu_seqlens = one_cu[i],
                              .ids = ids + cu[i],
                              .labels = labels + (tags ? cu[i] : i) };
    ses_model *m = open_copy(dir, dev, &e);
    ses_tape *t = m ? ses_tape_new(dev, NULL, &e) : NULL;
    ses_part_scores s = { 0 };
    bool ok = t && ses_part_scores_begin(&s, m, &e) && ses_part_scores_add(&s, m, t, &both, &e);
    if (CHECK_MSG(ok, "%s: %s", dir, e.msg)) {
        ses_part_scores_finish(&s);
        CHECK(s.examples == 2);
        for (int64_t l = 0; l < s.layers; l++) {
            double length = 0;
            for (int64_t h = 0; h < ses_model_part_heads(m, SES_PART_MAIN, l); h++) {
                double want = (by_head(m, t, &one[0], l, h) + by_head(m, t, &one[1], l, h)) / 2;
                compare("head", dir, l, h, s.raw_head[l * s.heads + h], want);
                length += pow(s.head[l * s.heads + h], 2);
            }
            CHECK(fabs(length - 1) < 1e-12);
            for (int64_t r = 0; r < ses_model_layer_neurons(m, SES_PART_MAIN, l); r += 3)
                compare("row", dir, l, r, s.raw_row[l * s.rows + r],
                        (by_row(m, t, &one[0], l, r) + by_row(m, t, &one[1], l, r)) / 2);
        }
    }
    ses_part_scores_free(&s);
    ses_tape_free(t);
    ses_model_free(m);
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 2 }, &e);
    CHECK(dev);
    test_model("tests/golden/bert-classify", false, dev);
    test_model("tests/golden/gpt2-classify", false, dev);
    test_model("tests/golden/modernbert-classify-mean", false, dev);
    test_model("tests/golden/modernbert-biases-tag", true, dev);
    test_model("tests/golden/electra-tag", true, dev);
    ses_device_free(dev);
    return check_report();
}
