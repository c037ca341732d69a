/* The lens: the last layer gives the model's own logits, bit for bit, in every family; other layers differ. A
 * lens with zero translators is the logit lens. */
#include "analysis/lens/lens.h"
#include "base/alloc.h"
#include "check.h"

#include <math.h>

static const char *const models[] = { "bert-masked-lm",
                                      "roberta-masked-lm",
                                      "albert-masked-lm",
                                      "gpt2-lm",
                                      "opt-lm",
                                      "modernbert-masked-lm",
                                      "bart-lm",
                                      "mt5",
                                      "electra-generator",
                                      "distilbert-masked-lm",
                                      "bloom-lm",
                                      "deberta-masked-lm" };

/* A sequence of which rows 1 and 3 are read. */
static void add(ses_lens *l, const int32_t *id, const int32_t *segment, int64_t n)
{
    ses_batch_builder *b = &l->pass.in;
    ses_err e = { 0 };
    CHECK(ses_batch_builder_add(b, id, segment, n, &e));
    if (l->decoder) CHECK(ses_ints_append(&b->target_ids, id, n, &e) && ses_batch_builder_end_target(b, &e));
    CHECK(ses_ints_push(&b->rows, 1, &e) && ses_ints_push(&b->rows, 3, &e));
}

static void check_model(ses_device *dev, const char *name)
{
    enum { N = 5 };
    static const int32_t id[N] = { 2, 7, 4, 9, 3 };
    char dir[96];
    ses_err e = { 0 };
    snprintf(dir, sizeof dir, "tests/golden/%s", name);
    ses_model *m = ses_model_open(dir, dev, NULL, &e);
    if (!CHECK_MSG(m, "%s: %s", name, e.msg)) return;
    ses_lens l = { .m = m, .decoder = m->stack[1].layer != NULL };
    l.head = ses_model_lens_head(m, &e);
    l.layers = m->stack[l.decoder].depth, l.width = m->c.hidden, l.vocab = m->c.vocab;
    CHECK(ses_pass_open(&l.pass, m, &e));
    ses_real **state = ses_alloc_array((size_t)l.layers + 1, sizeof *state, &e);
    ses_real *model = ses_alloc_array((size_t)(2 * l.vocab), sizeof *model, &e);
    ses_real *lens = ses_alloc_array((size_t)(2 * l.vocab), sizeof *lens, &e);
    ses_real *zero = ses_alloc_array((size_t)(2 * l.vocab), sizeof *zero, &e);
    ses_translators t = { 0 };
    for (int64_t i = 0; i <= l.layers; i++)
        state[i] = ses_alloc_array((size_t)(2 * l.width), sizeof **state, &e);
    add(&l, id, NULL, N);
    size_t bytes = (size_t)(2 * l.vocab) * sizeof *lens;
    if (CHECK_MSG(ses_lens_states(&l, state, model, &e), "%s: %s", name, e.msg)) {
        CHECK(ses_lens_read(&l, NULL, l.layers, state[l.layers], 2, lens, &e));
        CHECK_MSG(!memcmp(lens, model, bytes), "%s: the last layer", name);
        CHECK(ses_lens_read(&l, NULL, 0, state[0], 2, lens, &e) && memcmp(lens, model, bytes));
        CHECK(ses_translators_alloc(&t, l.layers, l.width, &e));
        CHECK(ses_lens_read(&l, &t, 0, state[0], 2, zero, &e));
        CHECK_MSG(!memcmp(lens, zero, bytes), "%s: zero translators", name);
        t.b[0] = 1;
        CHECK(ses_lens_read(&l, &t, 0, state[0], 2, zero, &e) && memcmp(lens, zero, bytes));
    }
    for (int64_t i = 0; i <= l.layers; i++) ses_free(state[i]);
    ses_translators_free(&t);
    ses_free(state), ses_free(model), ses_free(lens), ses_free(zero);
    ses_pass_close(&l.pass);
    ses_model_free(m);
}

/* Token type ids change the logits, and the logits are the same as of a plain pass. */
static void check_segments(ses_device *dev)
{
    enum { N = 5 };
    static const int32_t id[N] = { 2, 7, 4, 9, 3 }, segment[N] = { 0, 0, 1, 1, 1 }, cu[] = { 0, N };
    static const int32_t row[] = { 1, 3 };
    ses_err e = { 0 };
    ses_model *m = ses_model_open("tests/golden/bert-masked-lm", dev, NULL, &e);
    if (!CHECK_MSG(m, "%s", e.msg)) return;
    ses_lens l = { .m = m, .head = ses_model_lens_head(m, &e), .layers = m->stack[0].depth };
    l.width = m->c.hidden, l.vocab = m->c.vocab;
    CHECK(ses_pass_open(&l.pass, m, &e));
    size_t n = (size_t)(2 * l.vocab);
    ses_real **state = ses_alloc_array((size_t)l.layers + 1, sizeof *state, &e), *logits[2], *want;
    for (int64_t i = 0; i <= l.layers; i++)
        state[i] = ses_alloc_array((size_t)(2 * l.width), sizeof **state, &e);
    want = ses_alloc_array(n, sizeof *want, &e);
    for (int i = 0; i < 2; i++) {
        add(&l, id, i ? segment : NULL, N);
        logits[i] = ses_alloc_array(n, sizeof **logits, &e);
        CHECK(ses_lens_states(&l, state, logits[i], &e));
    }
    CHECK(memcmp(logits[0], logits[1], n * sizeof *want));
    ses_batch in = { .seqs = 1, .tokens = N, .cu_seqlens = cu, .ids = id, .segments = segment };
    ses_output_request request = { .logits = true, .rows = row, .n_rows = 2 };
    ses_outputs out;
    ses_tape_reset(l.pass.tape, NULL);
    CHECK(ses_model_forward(m, l.pass.tape, &in, &request, &out, &e));
    CHECK(ses_tape_read(l.pass.tape, ses_outputs_find(&out, l.head->output)->tensor, want));
    for (size_t i = 0; i < n; i++) CHECK(fabs((double)(want[i] - logits[1][i])) < 1e-5);
    for (int64_t i = 0; i <= l.layers; i++) ses_free(state[i]);
    ses_free(state), ses_free(want), ses_free(logits[0]), ses_free(logits[1]);
    ses_pass_close(&l.pass);
    ses_model_free(m);
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 2 }, &e);
    check_segments(dev);
    for (size_t i = 0; i < SES_LEN(models); i++) check_model(dev, models[i]);
    ses_device_free(dev);
    return check_report();
}
