/* FLOPs counted from the structure of models (model/flops/model_flops.h): against the counter of ELECTRA
 * (google-research/electra, flops_computation.py, run unchanged; its numbers are below), and against formulas
 * written out by hand. */
#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "check.h"
#include "model/model_desc.h"

#include <math.h>

/* ---- published counts ---- */

typedef struct part {
    const char *config; /* NULL: none */
    double length, target, labeled;
} part;

typedef struct reference {
    const char *name;
    part part[2]; /* models that are trained together */
    double batch, steps;
    double flops;     /* whole training, by ELECTRA's counter */
    double tolerance; /* relative */
    bool no_lookups;  /* counted by TensorFlow, without lookups */
} reference;

#define BERT(arch, type, h, l, i, heads, v)                                                      \
    "{\"model_type\": \"" type "\", \"architectures\": [\"" arch "\"], \"vocab_size\": " #v      \
    ", \"hidden_size\": " #h ", \"num_hidden_layers\": " #l ", \"num_attention_heads\": " #heads \
    ", \"intermediate_size\": " #i                                                               \
    ", \"max_position_embeddings\": 514, \"type_vocab_size\": 2, \"hidden_act\": "               \
    "\"gelu\""
#define ELECTRA(arch, h, l, i, heads, e) \
    BERT(arch, "electra", h, l, i, heads, 30522) ", \"embedding_size\": " #e "}"
#define MASKED (0.15625 * 512)

static const reference references[] = {
    { "BERT-base",
      { { BERT("BertForMaskedLM", "bert", 768, 12, 3072, 12, 30522) "}", 512, 0, MASKED } },
      256,
      1e6,
      6.428335104e19,
      0.002 },
    { "BERT-large",
      { { BERT("BertForMaskedLM", "bert", 1024, 24, 4096, 16, 30522) "}", 512, 0, MASKED } },
      256,
      1e6,
      1.91720905883648e20,
      0.002 },
    { "BERT-small", /* ELECTRA's: embeddings of 128 columns */
      { { ELECTRA("ElectraForMaskedLM", 256, 12, 1024, 4, 128), 128, 0, 0.15625 * 128 } },
      128,
      1.45e6,
      1.4187399146496e18,
      0.002 },
    { "ELECTRA-small",
      { { ELECTRA("ElectraForPreTraining", 256, 12, 1024, 4, 128), 128, 0, 0 },
        { ELECTRA("ElectraForMaskedLM", 64, 12, 256, 1, 128), 128, 0, 0.15625 * 128 } },
      128,
      1e6,
      1.293743798272e18,
      0.002 },
    { "ELECTRA-base",
      { { ELECTRA("ElectraForPreTraining", 768, 12, 3072, 12, 768), 512, 0, 0 },
        { ELECTRA("ElectraForMaskedLM", 256, 12, 1024, 4, 768), 512, 0, MASKED } },
      256,
      766000,
      6.424541834277683e19,
      0.002 },
    { "ELECTRA-large, 400k",
      { { ELECTRA("ElectraForPreTraining", 1024, 24, 4096, 16, 1024), 512, 0, 0 },
        { ELECTRA("ElectraForMaskedLM", 256, 24, 1024, 4, 1024), 512, 0, MASKED } },
      2048,
      400000,
      7.117606040895488e20,
      0.002 },
    { "ELECTRA-large, 1.75M",
      { { ELECTRA("ElectraForPreTraining", 1024, 24, 4096, 16, 1024), 512, 0, 0 },
        { ELECTRA("ElectraForMaskedLM", 256, 24, 1024, 4, 1024), 512, 0, MASKED } },
      2048,
      1750000,
      3.113952642891776e21,
      0.002 },
    { "RoBERTa-large",
      { { BERT("RobertaForMaskedLM", "roberta", 1024, 24, 4096, 16, 50265) ", \"pad_token_id\": 1}", 512, 0,
          MASKED } },
      8000,
      500000,
      3.187221435776e21,
      0.002 },
    { "ALBERT-xxlarge",
      { { BERT("AlbertForMaskedLM", "albert", 4096, 12, 16384, 64, 30000) ", \"embedding_size\": 128}", 512,
          0, MASKED } },
      4096,
      1.5e6,
      3.113923955392512e22,
      0.002 },
    /* ELECTRA's counter has BERT's dense layer before the output, which GPT lacks: 0.4 % */
    { "GPT",
      { { "{\"model_type\": \"openai-gpt\", \"architectures\": [\"OpenAIGPTLMHeadModel\"], \"vocab_size\": "
          "40000, "
          "\"n_embd\": 768, \"n_layer\": 12, \"n_head\": 12, \"n_positions\": 512}",
          512, 0, 512 } },
      128,
      960800,
      3.968752230785352e19,
      0.01 },
    /* ELECTRA's counter prints 4.5819e22, with the model's width for that of the heads in the weighted
     * sum and in the output projection; this is the sum of its formulas with the heads' width */
    { "T5-11B",
      { { "{\"model_type\": \"t5\", \"architectures\": [\"T5ForConditionalGeneration\"], \"vocab_size\": "
          "32000, "
          "\"d_model\": 1024, \"d_kv\": 128, \"d_ff\": 65536, \"num_layers\": 24, \"num_heads\": 128, "
          "\"relative_attention_num_buckets\": 32}",
          512, 512, 512 } },
      2048,
      1e6,
      5.294384e22,
      0.002 },
    /* 10 epochs of 768648884 words, by TensorFlow: 568093262680 for 20 texts of 128 words */
    { "ELMo",
      { { "{\"model_type\": \"elmo\", \"architectures\": [\"ElmoForPreTraining\"], \"vocab_size\": 20000, "
          "\"num_hidden_layers\": 2, \"lstm_dim\": 4096, \"projection_dim\": 512, \"char_embedding_dim\": "
          "16, "
          "\"max_characters_per_token\": 50, \"n_highway\": 2, \"filters\": [[1, 32], [2, 32], [3, 64], [4, "
          "128], "
          "[5, 256], [6, 512], [7, 1024]], \"sampled_softmax\": 8192}",
          128, 0, 128 } },
      20,
      10 * 768648884.0 / (20 * 128),
      3.4114394716164127e18,
      0.01,
      true },
    /* by TensorFlow: 15064773691518 for 32 texts, 85 of whose 512 tokens are predicted */
    { "XLNet-large",
      { { "{\"model_type\": \"xlnet\", \"architectures\": [\"XLNetLMHeadModel\"], \"vocab_size\": 32000, "
          "\"d_model\": 1024, \"n_layer\": 24, \"n_head\": 16, \"d_inner\": 4096, \"ff_activation\": "
          "\"gelu\"}",
          512, 85, 85 } },
      8192,
      500000,
      3.856582065028608e21,
      0.01,
      true },
};

/* The model of a config, without values. */
static ses_model *model_of(const char *config, ses_device *dev, ses_json_doc **doc)
{
    ses_err e = { 0 };
    *doc = ses_json_parse(config, strlen(config), &e);
    ses_model *m =
        *doc ? ses_model_new(ses_json_root(*doc), dev, &(ses_model_options){ .check_only = true }, &e) : NULL;
    CHECK_MSG(m, "%s: %s", config, e.msg);
    return m;
}

static double forward(const part *p, ses_device *dev, bool no_lookups)
{
    ses_json_doc *doc;
    ses_model *m = model_of(p->config, dev, &doc);
    if (!m) return NAN;
    ses_flops_units u = ses_model_flops_units(m, 1, p->length, p->target, p->labeled);
    ses_flops f = ses_model_flops(m, &u, true);
    ses_model_free(m);
    ses_json_free(doc);
    return ses_flops_sum(&f) - (no_lookups ? f.kind[SES_FLOP_LOOKUP] : 0);
}

static void test_references(ses_device *dev)
{
    for (size_t i = 0; i < SES_LEN(references); i++) {
        const reference *r = &references[i];
        double flops = 0;
        for (size_t k = 0; k < SES_LEN(r->part) && r->part[k].config; k++)
            flops += ses_train_passes(false) * r->batch * r->steps * forward(&r->part[k], dev, r->no_lookups);
        double off = flops / r->flops - 1;
        CHECK_MSG(fabs(off) < r->tolerance, "%s: %.6e, expected %.6e: %+.3f %%", r->name, flops, r->flops,
                  100 * off);
        if (getenv("SESAME_VERBOSE"))
            printf("%-22s %.6e %.6e %+.3f %%\n", r->name, flops, r->flops, 100 * off);
    }
}

/* ---- models of all types against the products of a pass ---- */

typedef struct watched {
    const ses_model *m;
    double products; /* with weights of layers */
} watched;

/* The tensors of an op over a tape may be copies of a parameter: they share its data. */
static const ses_param *layer_weight(const ses_model *m, const ses_tensor *t)
{
    for (size_t i = 0; t && i < m->first_head_param; i++) {
        const ses_param *p = ses_store_at(m->store, i);
        if (p->tensor->f != t->f || ses_rows(t) < 2 || ses_cols(t) < 2) continue;
        bool outside = strstr(p->name, "embed.") || strstr(p->name, "chars.") || strstr(p->name, "table");
        return outside || p->embedding ? NULL : p;
    }
    return NULL;
}

static void computed(void *ctx, const ses_node *n)
{
    watched *w = ctx;
    static const char *const products[] = { "linear", "feed_forward", "rnn" };
    bool is_product = false;
    for (size_t i = 0; i < SES_LEN(products); i++)
        is_product |= !strncmp(n->op->name, products[i], strlen(products[i]));
    for (int i = 1; is_product && i < n->n_in; i++)
        if (n->in[i] && layer_weight(w->m, n->in[i]))
            w->products += 2 * (double)ses_rows(n->in[0]) * (double)ses_count(n->in[i]);
}

/* Models whose products are not linear in the numbers of a batch: distances are projected once per pass, or
 * the last layer attends twice; a convolution is not a product here. */
static bool is_inexact(const char *name)
{
    static const char *const names[] = { "transfo-xl", "xlnet", "cloze", "deberta-v2-conv" };
    for (size_t i = 0; i < SES_LEN(names); i++)
        if (!strncmp(name, names[i], strlen(names[i]))) return true;
    return false;
}

static int n_compared;

/* Two texts of 4 and 6 tokens, targets of 3 and 5. */
static void check_products(const char *name, const char *folder, ses_device *dev)
{
    static const int32_t cu[] = { 0, 4, 10 }, target_cu[] = { 0, 3, 8 },
                         ids[] = { 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 };
    ses_err e = { 0 };
    ses_json_doc *doc = ses_model_config_open(folder, NULL, &e);
    ses_model *m = doc ? ses_model_new(ses_json_root(doc), dev, NULL, &e) : NULL;
    ses_tape *t = m ? ses_tape_new(dev, NULL, &e) : NULL;
    watched w = { .m = m };
    ses_tape_watch watch = { .ctx = &w, .computed = computed };
    ses_batch b = { .seqs = 2, .tokens = 10, .cu_seqlens = cu, .ids = ids };
    if (m && m->stack[1].c) b.target_cu_seqlens = target_cu, b.target_ids = ids;
    ses_outputs out;
    if (t) ses_tape_reset(t, NULL), ses_tape_set_watch(t, &watch);
    if (t && ses_model_forward(m, t, &b, &(ses_output_request){ .hidden_states = true }, &out, &e)) {
        ses_flops_units u = { .n = { [SES_UNIT_TOKEN] = 10,
                                     [SES_UNIT_TARGET] = m->stack[1].c ? 8 : 0,
                                     [SES_UNIT_DISTANCE] = fmin(2 * 6 - 1, (double)m->flops.distances) } };
        ses_flops f = ses_model_flops(m, &u, false);
        double off = w.products / f.kind[SES_FLOP_WEIGHT] - 1;
        CHECK_MSG(fabs(off) < (is_inexact(name) ? 0.5 : 1e-12), "%s: %.0f products, counted %.0f", name,
                  w.products, f.kind[SES_FLOP_WEIGHT]);
        n_compared++;
    } else {
        printf("%s: %s\n", name, e.msg);
    }
    ses_tape_free(t);
    ses_model_free(m);
    ses_json_free(doc);
}

static bool check_case(void *ctx, const char *name)
{
    char path[300];
    snprintf(path, sizeof path, "tests/golden/%s", name);
    if (name[0] != '.' && ses_path_exists(path)) check_products(name, path, ctx);
    return true;
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    CHECK_MSG(dev, "%s", e.msg);
    test_references(dev);
    CHECK(ses_dir_each("tests/golden", check_case, dev, &e) && n_compared > 100);
    ses_device_free(dev);
    return check_report();
}
