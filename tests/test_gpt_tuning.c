/* GPT-1's fine-tuning: loss L_task + 0.5 L_LM and its gradients against transformers
 * (fixtures/gpt_tuning.py), sequences of texts, tokenizers with new tokens. */
#include "check.h"
#include "model/model_desc.h"
#include "sesame/safetensors.h"
#include "text/tokenizer_extend.h"
#include "tune/gpt/gpt_tuning.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_VALUES = 1 << 14 };

typedef struct loss_case {
    const char *name, *model;
    const ses_finetune_task *task;
    bool both_orders;
    ses_batch batch;
} loss_case;

/* The largest difference of a gradient from transformers'. */
static double worst_gradient(const ses_model *m, const ses_safetensors *want, char *at, size_t n)
{
    static float value[MAX_VALUES];
    double worst = 0;
    for (size_t i = 0; i < ses_store_count(m->store); i++) {
        char name[160] = "grad.";
        const ses_param *p = ses_store_at(m->store, i);
        if (!ses_model_tensor_name(m, i, name + 5, sizeof name - 5)) continue;
        const ses_tensor_entry *x = ses_safetensors_find(want, name);
        CHECK_MSG(x && x->count == ses_count(p->tensor) && x->count <= MAX_VALUES, "%s", name);
        if (!x || !ses_tensor_entry_to_f32(x, value, NULL)) continue;
        for (int64_t k = 0; k < x->count; k++) {
            double d = fabs((double)p->tensor->grad[k] - (double)value[k]);
            if (!(d <= worst)) worst = d, snprintf(at, n, "%s", name);
        }
    }
    return worst;
}

static void check_loss(ses_device *dev, const loss_case *c)
{
    char path[128], at[160] = "";
    ses_err e = { 0 };
    float want = 0;
    snprintf(path, sizeof path, "tests/fixtures/gpt_tuning/%s.safetensors", c->name);
    ses_safetensors *file = ses_safetensors_open(path, &e);
    ses_model *m = ses_model_open(c->model, dev, &(ses_model_options){ .train = true }, &e);
    ses_tape *tape = ses_tape_new(dev, NULL, &e);
    if (!CHECK_MSG(file && m && tape, "%s", e.msg)) return;
    ses_finetuner t = { .task = ses_finetune_task_with_inputs(c->task, SES_INPUTS_GPT1, &e),
                        .settings = { .lm_loss = 0.5 },
                        .gpt = { .enabled = true, .both_orders = c->both_orders },
                        .model = m };
    CHECK_MSG(ses_gpt_open(&t, &e), "%s", e.msg);
    ses_tensor_entry_to_f32(ses_safetensors_find(file, "loss"), &want, &e);
    ses_tape_reset(tape, &(ses_tape_options){ .record = true });
    ses_store_zero_grad(m->store);
    ses_tensor *loss = ses_gpt_loss(&t, tape, &c->batch, &e);
    if (CHECK_MSG(loss, "%s", e.msg)) {
        ses_backward(tape, loss);
        CHECK_MSG(ses_tape_ok(tape, &e), "%s", e.msg);
        CHECK_MSG(fabs((double)loss->f[0] - (double)want) < 1e-5 * (1 + fabs((double)want)),
                  "%s: loss %.7g, expected %.7g", c->name, (double)loss->f[0], (double)want);
        double worst = worst_gradient(m, file, at, sizeof at);
        CHECK_MSG(worst < 1e-5, "%s: %s differs by %g", c->name, at, worst);
        t.settings.lm_loss = 0;
        ses_tape_reset(tape, &(ses_tape_options){ .record = true });
        loss = ses_gpt_loss(&t, tape, &c->batch, &e);
        CHECK_MSG(loss && (double)loss->f[0] < (double)want - 0.1, "%s: without L_LM", c->name);
    }
    ses_tape_free(tape);
    ses_model_free(m);
    ses_safetensors_free(file);
}

/* Start 38, delimiter 39, extract 40. */
static void check_losses(ses_device *dev)
{
    static const int32_t choose_ids[] = { 38, 5,  6,  7,  39, 8,  40, 38, 5,  6,  7,  39, 9, 10,
                                          11, 40, 38, 12, 39, 13, 14, 40, 38, 12, 39, 15, 40 },
                         choose_cu[] = { 0, 7, 16, 22, 27 }, choose_labels[] = { 1, 0 };
    static const int32_t pair_ids[] = { 38, 5,  6,  7,  39, 8,  40, 38, 8,  39, 5,  6,  7,  40, 38, 12,
                                        13, 39, 14, 15, 16, 17, 40, 38, 14, 15, 16, 17, 39, 12, 13, 40 },
                         pair_cu[] = { 0, 7, 14, 23, 32 }, pair_labels[] = { 2, 0 };
    static const int32_t real_ids[] = { 38, 5, 6, 7, 40, 38, 12, 13, 39, 14, 40 }, real_cu[] = { 0, 5, 11 };
    static const ses_real targets[] = { (ses_real)0.5, -1, 2, (ses_real)1.5, 0, (ses_real)0.25 };
    const loss_case cases[] = {
        { "choose",
          "tests/golden/gpt-double-heads",
          &ses_finetune_task_multiple_choice,
          false,
          { .seqs = 4,
            .tokens = 27,
            .cu_seqlens = choose_cu,
            .ids = choose_ids,
            .choices = 2,
            .labels = choose_labels } },
        { "similarity",
          "tests/golden/gpt2-classify",
          &ses_finetune_task_classify,
          true,
          { .seqs = 4,
            .tokens = 32,
            .cu_seqlens = pair_cu,
            .ids = pair_ids,
            .choices = 2,
            .labels = pair_labels } },
        { "regress",
          "tests/golden/gpt2-classify",
          &ses_finetune_task_regress,
          false,
          { .seqs = 2, .tokens = 11, .cu_seqlens = real_cu, .ids = real_ids, .targets = targets } },
    };
    for (size_t i = 0; i < SES_LEN(cases); i++) check_loss(dev, &cases[i]);
}

static const char vocabulary[] =
    "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, \"added_tokens\": [], \"normalizer\": "
    "null,"
    " \"pre_tokenizer\": {\"type\": \"WhitespaceSplit\"}, \"post_processor\": null, \"decoder\": null,"
    " \"model\": {\"type\": \"WordLevel\", \"unk_token\": \"u\", \"vocab\": {\"u\": 0, \"a\": 1, \"b\": 2, "
    "\"c\": 3}}}";

static void check_ids(const ses_gpt_inputs *g, ses_encode_ctx *k, const char *a, const char *b, int64_t max,
                      bool swapped, bool is_truncated, const char *want)
{
    int32_t id[32];
    char got[200] = "";
    size_t n = 0;
    bool truncated = !is_truncated;
    ses_err e = { 0 };
    ses_input in = { .text = { a, strlen(a) } };
    if (b) in.pair = (ses_string){ b, strlen(b) };
    if (!CHECK_MSG(ses_gpt_inputs_encode(k, &in, max, &n, &truncated, &e), "%s", e.msg)) return;
    ses_gpt_inputs_fill(g, k, b != NULL, swapped, id);
    for (size_t i = 0; i < n; i++) {
        size_t used = strlen(got);
        snprintf(got + used, sizeof got - used, "%s%d", i ? " " : "", (int)id[i]);
    }
    CHECK_STR(got, want);
    CHECK_MSG(truncated == is_truncated, "%s | %s", a, b ? b : "-");
}

static void check_sequences(void)
{
    ses_err e = { 0 };
    ses_tokenizer *plain = ses_tokenizer_from_json(vocabulary, sizeof vocabulary - 1, &e);
    ses_gpt_inputs g = { .enabled = true };
    CHECK_MSG(plain && !ses_gpt_inputs_find_tokens(&g, plain), "%s", e.msg);
    ses_tokenizer *t = plain ? ses_tokenizer_extend(plain, ses_gpt_token_names, SES_GPT_TOKENS, &e) : NULL;
    ses_encode_ctx *k = t ? ses_encode_ctx_new(t, &e) : NULL;
    if (!CHECK_MSG(k, "%s", e.msg)) return;
    CHECK(ses_gpt_inputs_find_tokens(&g, t) && g.start == 4 && g.delimiter == 5 && g.extract == 6);
    CHECK(ses_tokenizer_vocab_size(t) == 7 && ses_tokenizer_is_special(t, 5));
    ses_tokenizer *again = ses_tokenizer_extend(t, ses_gpt_token_names, SES_GPT_TOKENS, &e);
    CHECK(again && ses_tokenizer_vocab_size(again) == 7); /* all tokens are there */
    ses_tokenizer_free(again);
    check_ids(&g, k, "a b", NULL, 16, false, false, "4 1 2 6");
    check_ids(&g, k, "", NULL, 16, false, false, "4 6");
    check_ids(&g, k, "a b", "c", 16, false, false, "4 1 2 5 3 6");
    check_ids(&g, k, "a b", "c", 16, true, false, "4 3 5 1 2 6");
    check_ids(&g, k, "a b a b", "c", 6, false, true, "4 1 2 5 3 6");
    check_ids(&g, k, "a b a b", NULL, 4, false, true, "4 1 2 6");
    size_t n;
    bool truncated;
    CHECK(!ses_gpt_inputs_encode(k, &(ses_input){ .text = { "a", 1 }, .pair = { "b", 1 } }, 3, &n, &truncated,
                                 &e));
    CHECK_MSG(strstr(e.msg, "leave no space"), "%s", e.msg);
    ses_encode_ctx_free(k);
    ses_tokenizer_free(t);
    ses_tokenizer_free(plain);
}

/* The entry of config.json. */
static void check_config(const char *text, bool ok, bool enabled, bool both, const char *message)
{
    ses_err e = { 0 };
    ses_gpt_inputs g;
    ses_json_doc *doc = ses_json_parse(text, strlen(text), &e);
    CHECK(doc && ses_gpt_inputs_read(ses_json_root(doc), NULL, &g, &e) == ok);
    CHECK(!ok || (g.enabled == enabled && g.both_orders == both));
    CHECK_MSG(!message || strstr(e.msg, message), "%s", e.msg);
    ses_json_free(doc);
}

static void check_configs(ses_device *dev)
{
    check_config("{}", true, false, false, NULL);
    check_config("{\"sesame_inputs\": {\"kind\": \"gpt1\"}}", true, true, false, NULL);
    check_config("{\"sesame_inputs\": {\"kind\": \"gpt1\", \"both_orders\": true}}", true, true, true, NULL);
    check_config("{\"sesame_inputs\": {\"kind\": \"gpt9\"}}", false, false, false,
                 "expected {\"kind\": \"gpt1\"");
    check_config("{\"sesame_inputs\": 5}", false, false, false, "expected {\"kind\": \"gpt1\"");
    check_config("{\"sesame_inputs\": {\"kind\": \"gpt1\", \"both_orders\": 1}}", false, false, false,
                 "true or false");
    ses_err e = { 0 };
    CHECK(!ses_finetune_task_with_inputs(&ses_finetune_task_tag, SES_INPUTS_GPT1, &e));
    CHECK_MSG(strstr(e.msg, "classify, regress and choose have them, not tag"), "%s", e.msg);
    e = (ses_err){ 0 };
    ses_model *m = ses_model_open("tests/golden/bert-classify", dev, NULL, &e);
    if (!m) m = ses_model_open("tests/golden/bert-masked-lm", dev, NULL, &e);
    ses_finetuner t = { .task = &ses_finetune_task_classify, .model = m };
    e = (ses_err){ 0 };
    CHECK(m && !ses_gpt_open(&t, &e));
    CHECK_MSG(strstr(e.msg, "is not a causal model"), "%s", e.msg);
    ses_model_free(m);
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    if (CHECK_MSG(dev, "%s", e.msg)) {
        check_losses(dev);
        check_configs(dev);
    }
    check_sequences();
    ses_device_free(dev);
    return check_report();
}
