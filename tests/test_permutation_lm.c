/* Permutation LMs: permutation masks, positions to predict and mems, alone and in a batch; a text in two
 * parts with mems; invalid batches. */
#include "check.h"
#include "families.h"
#include "model_fixture.h"
#include "op/op.h"

#include <math.h>

static const family one_way = { "xlnet",
                                "XLNetModel",
                                true,
                                true,
                                NULL,
                                "\"d_model\": 20, \"n_layer\": 2, \"n_head\": 4, \"d_inner\": 28, "
                                "\"mem_len\": null, \"attn_type\": \"uni\"" };
static const family any_way = { "xlnet", "XLNetLMHeadModel",
                                true,    true,
                                NULL,    "\"d_model\": 20, \"n_layer\": 2, \"n_head\": 4, \"d_inner\": 28" };

typedef struct rig {
    ses_device *dev;
    ses_json_doc *doc;
    ses_model *m;
    ses_tape *t;
} rig;

static rig rig_new(const family *f, ses_isa isa)
{
    ses_err e = { 0 };
    rig r = { .dev = ses_device_open("cpu", &(ses_device_options){ .threads = 2, .isa = isa }, &e) };
    r.doc = family_config(f, &e);
    r.m = r.doc ? ses_model_new(ses_json_root(r.doc), r.dev, &(ses_model_options){ .seed = 5 }, &e) : NULL;
    r.t = ses_tape_new(r.dev, NULL, &e);
    CHECK_MSG(r.m && r.t, "%s", e.msg);
    return r;
}

static void rig_free(rig *r)
{
    ses_tape_free(r->t);
    ses_model_free(r->m);
    ses_json_free(r->doc);
    ses_device_free(r->dev);
}

/* The named output of a pass. */
static const ses_tensor *output(rig *r, const ses_batch *b, const char *name)
{
    ses_err e = { 0 };
    ses_outputs o = { 0 };
    ses_tape_reset(r->t, NULL);
    ses_output_request want = { .logits = true, .hidden_states = true, .mems = true };
    CHECK_MSG(ses_model_forward(r->m, r->t, b, &want, &o, &e), "%s", e.msg);
    const ses_output *found = ses_outputs_find(&o, name);
    CHECK_MSG(found, "no output %s", name);
    return found ? found->tensor : NULL;
}

/* Each sequence of the fixture has the same bits alone and in the batch. */
static void test_alone(ses_isa isa)
{
    enum { C = 20, V = 37 };
    uint8_t mask[FIXTURE_PAIRS];
    ses_real mems[FIXTURE_MEMS], own[FIXTURE_MEMS], with[5 * V];
    rig r = rig_new(&any_way, isa);
    ses_batch all = fixture_permutation(mask, mems);
    const ses_tensor *x = output(&r, &all, "logits");
    CHECK(ses_rows(x) == 5 && ses_cols(x) == V);
    if (x) memcpy(with, x->f, sizeof with);
    for (int s = 0, pairs = 0; s < 3; s++) {
        int32_t len = all.cu_seqlens[s + 1] - all.cu_seqlens[s], cu[] = { 0, len },
                targets[] = { 0, all.target_cu_seqlens[s + 1] - all.target_cu_seqlens[s] };
        int32_t before[] = { 0, all.mem_cu_seqlens[s + 1] - all.mem_cu_seqlens[s] };
        for (int l = 0; l < 2; l++)
            memcpy(own + l * before[1] * C, mems + (l * 5 + all.mem_cu_seqlens[s]) * C,
                   (size_t)(before[1] * C) * sizeof *own);
        ses_batch b = { .seqs = 1,
                        .tokens = len,
                        .cu_seqlens = cu,
                        .ids = all.ids + all.cu_seqlens[s],
                        .segments = all.segments + all.cu_seqlens[s] };
        b.perm_mask = mask + pairs, b.target_cu_seqlens = targets,
        b.predict_positions = all.predict_positions + all.target_cu_seqlens[s];
        b.mem_cu_seqlens = before, b.mems = own;
        x = output(&r, &b, "logits");
        CHECK(x &&
              !memcmp(x->f, with + all.target_cu_seqlens[s] * V, (size_t)(targets[1] * V) * sizeof *with));
        pairs += len * len;
    }
    rig_free(&r);
}

/* A text processed in two parts, the second with the mems of the first, has the same states as in one
 * part. */
static void test_parts(void)
{
    enum { LEN = 11, CUT = 6, C = 20 };
    static const int32_t ids[LEN] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 35, 8 }, whole[] = { 0, LEN },
                         first[] = { 0, CUT }, rest[] = { 0, LEN - CUT };
    ses_real mems[2 * CUT * C], want[LEN * C];
    rig r = rig_new(&one_way, SES_ISA_COUNT - 1);
    const ses_tensor *x = output(
        &r, &(ses_batch){ .seqs = 1, .tokens = LEN, .cu_seqlens = whole, .ids = ids }, "last_hidden_state");
    if (x) memcpy(want, x->f, sizeof want);
    for (int l = 0; l < 2; l++) {
        x = output(&r, &(ses_batch){ .seqs = 1, .tokens = CUT, .cu_seqlens = first, .ids = ids },
                   l ? "mems.1" : "mems.0");
        CHECK(ses_count(x) == CUT * C);
        if (x) memcpy(mems + l * CUT * C, x->f, CUT * C * sizeof *mems);
    }
    ses_batch b = { .seqs = 1,
                    .tokens = LEN - CUT,
                    .cu_seqlens = rest,
                    .ids = ids + CUT,
                    .mem_cu_seqlens = first,
                    .mems = mems };
    x = output(&r, &b, "last_hidden_state");
    double worst = 0;
    for (int i = 0; x && i < (LEN - CUT) * C; i++)
        worst = fmax(worst, fabs((double)x->f[i] - (double)want[CUT * C + i]));
    CHECK_MSG(worst < 1e-5, "%g", worst);
    rig_free(&r);
}

static void expect_error(rig *r, ses_batch b, const char *want)
{
    ses_err e = { 0 };
    ses_outputs out;
    ses_tape_reset(r->t, NULL);
    CHECK(!ses_model_forward(r->m, r->t, &b, &(ses_output_request){ 0 }, &out, &e));
    CHECK_STR(e.msg, want);
}

static void test_bad(void)
{
    static const int32_t far[] = { 1, 4, 0, 2, 7 }, falls[] = { 0, 3, 2, 5 },
                         labels[] = { 9, 3, -100, 37, 36 };
    uint8_t mask[FIXTURE_PAIRS];
    ses_real mems[FIXTURE_MEMS];
    rig r = rig_new(&any_way, SES_ISA_REF);
    ses_batch good = fixture_permutation(mask, mems), b = good;
    b.predict_positions = far;
    expect_error(&r, b, "predicted position 7 in sequence 2 of 7 tokens");
    b = good, b.target_cu_seqlens = falls;
    expect_error(&r, b, "target_cu_seqlens must rise from 0");
    b = good, b.mem_cu_seqlens = falls;
    expect_error(&r, b, "mem_cu_seqlens must rise from 0");
    b = good, b.mems = NULL;
    expect_error(&r, b, "mems and mem_cu_seqlens must be set together");
    b = good, b.labels = labels;
    expect_error(&r, b, "label 37 at index 3, expected 0 to 36");
    b = good, b.target_cu_seqlens = NULL;
    expect_error(&r, b, "predict_positions needs target_cu_seqlens and no target_ids");
    rig_free(&r);

    static const family both = { "xlnet",
                                 "XLNetModel",
                                 true,
                                 true,
                                 NULL,
                                 "\"d_model\": 20, \"n_layer\": 2, \"n_head\": 4, \"d_inner\": 28, "
                                 "\"bi_data\": true" };
    r = rig_new(&both, SES_ISA_REF);
    expect_error(&r, fixture_batch(true),
                 "\"bi_data\" is true: the second half of a batch is reversed, but 3 sequences are an odd "
                 "number");
    rig_free(&r);

    ses_err e = { 0 };
    rig other = { .dev = ses_device_open("cpu", NULL, &e) };
    other.doc = fixture_config("BertForMaskedLM", &e);
    other.m = ses_model_new(ses_json_root(other.doc), other.dev, NULL, &e);
    other.t = ses_tape_new(other.dev, NULL, &e);
    expect_error(&other, good, "bert does not support perm_mask, predict_positions or mems");
    rig_free(&other);
}

int main(void)
{
    for (int isa = SES_ISA_REF; isa <= (int)ses_isa_best(); isa++) test_alone((ses_isa)isa);
    test_parts();
    test_bad();
    return check_report();
}
