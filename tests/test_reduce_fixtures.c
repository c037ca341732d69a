/* Pruned models against transformers (tests/fixtures/reduce.py): small and filled forms against models whose
 * parts are zero in transformers 5, and folders of transformers 4.57 with "pruned_heads". */
#include "check.h"
#include "model/model_desc.h"
#include "model/reduce.h"

#include <math.h>
#include <string.h>

enum { TOKENS = 32, LABELS = 8 };

static void check_logits(const char *what, const ses_model *m, const ses_json *ids, const ses_json *logits)
{
    int32_t id[TOKENS], cu[2] = { 0 };
    ses_real got[LABELS] = { 0 };
    double difference = 0, norm = 0;
    ses_err e = { 0 };
    ses_outputs o;
    for (size_t i = 0; i < ses_json_len(ids) && i < TOKENS; i++) {
        int64_t x = 0;
        CHECK(ses_json_int(ses_json_at(ids, i), &x));
        id[cu[1]++] = (int32_t)x;
    }
    ses_batch b = { .seqs = 1, .tokens = cu[1], .cu_seqlens = cu, .ids = id };
    ses_tape *t = ses_tape_new(m->dev, NULL, &e);
    bool ok = t && ses_model_forward(m, t, &b, &(ses_output_request){ .logits = true }, &o, &e);
    const ses_output *y = ok ? ses_outputs_find(&o, "logits") : NULL;
    if (CHECK_MSG(y, "%s: %s", what, e.msg) &&
        CHECK(ses_count(y->tensor) == (int64_t)ses_json_len(logits) && ses_json_len(logits) <= LABELS) &&
        CHECK(ses_tape_read(t, y->tensor, got)))
        for (size_t i = 0; i < ses_json_len(logits); i++) {
            double x = 0;
            CHECK(ses_json_real(ses_json_at(logits, i), &x));
            difference += pow((double)got[i] - x, 2), norm += x * x;
        }
    CHECK_MSG(norm > 0 && sqrt(difference) < 1e-5 * sqrt(norm), "%s: off by %g of %g", what, sqrt(difference),
              sqrt(norm));
    ses_tape_free(t);
}

/* {"layer": [units]}: marks them as removed. */
static void mark(const ses_json *by_layer, uint8_t *keep, int64_t width)
{
    for (size_t i = 0; i < ses_json_len(by_layer); i++) {
        long long layer = strtoll(ses_json_key(by_layer, i, NULL), NULL, 10);
        const ses_json *list = ses_json_at(by_layer, i);
        for (size_t j = 0; j < ses_json_len(list); j++) {
            int64_t unit = 0;
            if (CHECK(ses_json_int(ses_json_at(list, j), &unit) && unit < width))
                keep[layer * width + unit] = 0;
        }
    }
}

static void test_filled(const ses_json *x, ses_device *dev)
{
    ses_err e = { 0 };
    const char *dir = ses_json_string(ses_json_get(x, "dir"), NULL);
    const ses_json *stay = ses_json_get(x, "layers");
    ses_model *m = ses_model_open(dir, dev, &(ses_model_options){ .no_packing = true }, &e);
    ses_reduction *r = m ? ses_reduction_new(m, &e) : NULL;
    if (!CHECK_MSG(r, "%s: %s", dir, e.msg)) return;
    memset(r->layer, 0, (size_t)r->layers);
    for (size_t i = 0; i < ses_json_len(stay); i++) {
        int64_t l = 0;
        if (CHECK(ses_json_int(ses_json_at(stay, i), &l) && l < r->layers)) r->layer[l] = 1;
    }
    mark(ses_json_get(x, "heads"), r->head[0], r->heads[0]);
    mark(ses_json_get(x, "rows"), r->row, r->rows);
    for (int form = SES_REDUCED_SMALL; form <= SES_REDUCED_FILLED; form++) {
        ses_model *y = ses_model_reduce(m, r, (ses_reduced_form)form, &e);
        if (CHECK_MSG(y, "%s: %s", dir, e.msg))
            check_logits(dir, y, ses_json_get(x, "ids"), ses_json_get(x, "logits"));
        ses_model_free(y);
    }
    ses_reduction_free(r);
    ses_model_free(m);
}

/* A folder of transformers 4.57 after prune_heads. */
static void test_pruned_heads(const char *name, ses_device *dev)
{
    char dir[96], path[128];
    ses_err e = { 0 };
    snprintf(dir, sizeof dir, "tests/fixtures/reduce/%s", name);
    snprintf(path, sizeof path, "%s/logits.json", dir);
    ses_json_doc *doc = ses_json_load(path, 1 << 20, &e);
    ses_model *m = doc ? ses_model_open(dir, dev, NULL, &e) : NULL;
    if (CHECK_MSG(m, "%s", e.msg)) {
        CHECK(ses_model_part_heads(m, SES_PART_MAIN, 0) == 2 &&
              ses_model_part_heads(m, SES_PART_MAIN, 1) == 1);
        check_logits(dir, m, ses_json_get(ses_json_root(doc), "ids"),
                     ses_json_get(ses_json_root(doc), "logits"));
    }
    ses_model_free(m);
    ses_json_free(doc);
}

int main(void)
{
    static const char *const pruned[] = { "bert-classify", "roberta-classify", "distilbert-classify",
                                          "electra-classify" };
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 2 }, &e);
    ses_json_doc *doc = dev ? ses_json_load("tests/fixtures/reduce/fill.json", 1 << 20, &e) : NULL;
    const ses_json *cases = ses_json_get(ses_json_root(doc), "cases");
    CHECK_MSG(ses_json_len(cases) == 5, "%s", e.msg);
    for (size_t i = 0; i < ses_json_len(cases); i++) test_filled(ses_json_at(cases, i), dev);
    for (size_t i = 0; i < SES_LEN(pruned); i++) test_pruned_heads(pruned[i], dev);
    ses_json_free(doc);
    ses_device_free(dev);
    return check_report();
}
