/* Folders as versions 2 to 5 of transformers wrote them: other names of keys and tensors, the same model.
 * Invalid folders and their error messages. */
#define _GNU_SOURCE
#include "check.h"
#include "op/op.h"
#include "sesame/model.h"
#include "sesame/safetensors.h"

enum { TEXT = 1 << 14, NUMBERS = 1 << 14 };

static char tmp[] = "/tmp/sesame-ages-XXXXXX";
static ses_device *dev;

typedef struct edit {
    const char *from, *to; /* replacement in config.json; from "": to is inserted first */
} edit;

/* Renames a tensor into buf; false: omits it. */
typedef bool rename_fn(const char *name, char *buf, size_t n);

typedef struct variant {
    const char *golden;
    edit edits[6];
    rename_fn *rename;
    const char *duplicate, *duplicate_name; /* a tensor that is stored again under another name, */
    bool duplicate_differs;                 /* with one element changed */
    const char *class_name;
    bool strict, new_head;
} variant;

static bool same(const char *name, char *buf, size_t n) { return snprintf(buf, n, "%s", name) > 0; }

static bool old_norms(const char *name, char *buf, size_t n)
{
    size_t len = strlen(name);
    bool norm = strstr(name, "LayerNorm") || strstr(name, "layer_norm");
    if (norm && len > 7 && !strcmp(name + len - 7, ".weight"))
        return snprintf(buf, n, "%.*s.gamma", (int)len - 7, name) > 0;
    if (norm && len > 5 && !strcmp(name + len - 5, ".bias"))
        return snprintf(buf, n, "%.*s.beta", (int)len - 5, name) > 0;
    return same(name, buf, n);
}

static bool bare(const char *name, char *buf, size_t n)
{
    static const char *const prefix[] = { "bert.", "transformer.", "model.", "deberta." };
    for (size_t i = 0; i < SES_LEN(prefix); i++)
        if (!strncmp(name, prefix[i], strlen(prefix[i]))) return same(name + strlen(prefix[i]), buf, n);
    return same(name, buf, n);
}

static bool prefixed(const char *name, char *buf, size_t n) { return snprintf(buf, n, "bert.%s", name) > 0; }

static bool no_pooler(const char *name, char *buf, size_t n)
{
    return !strstr(name, "pooler") && same(name, buf, n);
}

static bool no_head(const char *name, char *buf, size_t n)
{
    return strncmp(name, "classifier", 10) != 0 && same(name, buf, n);
}

static bool fused_qkv(const char *name, char *buf, size_t n)
{
    const char *at = strstr(name, ".self.query.");
    if (!at) return !strstr(name, ".self.key.") && !strstr(name, ".self.value.") && same(name, buf, n);
    return snprintf(buf, n, "%.*s.self.Wqkv.%s", (int)(at - name), name, at + strlen(".self.query.")) > 0;
}

static bool no_layer(const char *name, char *buf, size_t n)
{
    return strcmp(name, "bert.encoder.layer.1.output.dense.weight") != 0 && same(name, buf, n);
}

/* keeps the second of two tied tensors */
static bool projection_only(const char *name, char *buf, size_t n)
{
    return same(strcmp(name, "transformer.wte.weight") ? name : "lm_head.weight", buf, n);
}

static void put_config(const variant *v, const char *from, const char *to)
{
    static char text[TEXT], next[TEXT];
    char path[600];
    snprintf(path, sizeof path, "%s/config.json", from);
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = 0;
    if (f) fclose(f);
    for (const edit *d = v->edits; d < v->edits + SES_LEN(v->edits) && d->from; d++) {
        char *at = *d->from ? strstr(text, d->from) : strchr(text, '{') + 1;
        if (!CHECK_MSG(at, "%s: no %s", from, d->from)) continue;
        snprintf(next, sizeof next, "%.*s%s%s", (int)(at - text), text, d->to, at + strlen(d->from));
        memcpy(text, next, sizeof text);
    }
    snprintf(path, sizeof path, "%s/config.json", to);
    f = fopen(path, "wb");
    CHECK(f && fputs(text, f) >= 0);
    if (f) fclose(f);
}

static void put_weights(const variant *v, const char *from, const char *to)
{
    static float other[NUMBERS];
    ses_err e = { 0 };
    char name[256];
    ses_safetensors *in = ses_checkpoint_open(from, &e);
    ses_safetensors_writer *w = ses_safetensors_writer_new(&e);
    for (size_t i = 0; in && w && i < ses_safetensors_count(in); i++) {
        const ses_tensor_entry *x = ses_safetensors_at(in, i);
        const void *data = x->data;
        if ((v->rename ? v->rename : same)(x->name, name, sizeof name))
            CHECK(ses_safetensors_writer_add(w, name, x->dtype, x->rank, x->dim, x->data, &e));
        if (!v->duplicate || strcmp(v->duplicate, x->name)) continue;
        CHECK(x->bytes <= sizeof other);
        memcpy(other, x->data, x->bytes);
        other[1] += 1;
        if (v->duplicate_differs) data = other;
        CHECK(ses_safetensors_writer_add(w, v->duplicate_name, x->dtype, x->rank, x->dim, data, &e));
    }
    snprintf(name, sizeof name, "%s/model.safetensors", to);
    CHECK_MSG(in && w && ses_safetensors_save(w, name, true, &e), "%s", e.msg);
    ses_safetensors_writer_free(w);
    ses_safetensors_free(in);
}

static ses_model *open_variant(const variant *v, ses_err *e)
{
    char from[300];
    snprintf(from, sizeof from, "tests/golden/%s", v->golden);
    put_config(v, from, tmp);
    put_weights(v, from, tmp);
    return ses_model_open(
        tmp, dev,
        &(ses_model_options){
            .class_name = v->class_name, .strict = v->strict, .new_heads = v->new_head, .seed = 3 },
        e);
}

/* All outputs of a small batch, concatenated. */
static int64_t numbers(ses_model *m, ses_real *out)
{
    static const int32_t cu[] = { 0, 4, 9 }, ids[] = { 7, 9, 11, 30, 8, 6, 6, 12, 33 };
    ses_err e = { 0 };
    ses_outputs o = { 0 };
    int64_t n = 0;
    ses_batch b = { .seqs = 2, .tokens = 9, .cu_seqlens = cu, .ids = ids };
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    if (!strncmp(ses_model_class_name(m), "T5", 2) || !strncmp(ses_model_class_name(m), "MT5", 3))
        b.target_cu_seqlens = cu, b.target_ids = ids;
    if (CHECK_MSG(t && ses_model_forward(m, t, &b, &(ses_output_request){ .logits = true }, &o, &e), "%s",
                  e.msg))
        for (size_t i = 0; i < o.n; i++) {
            int64_t k = ses_count(o.item[i].tensor);
            if (!CHECK(n + k <= NUMBERS)) break;
            memcpy(out + n, o.item[i].tensor->f, (size_t)k * sizeof *out);
            n += k;
        }
    ses_tape_free(t);
    return n;
}

#define THETAS "\"global_rope_theta\": 160000.0, \"local_rope_theta\": 10000.0, "
static const variant ages[] = {
    { .golden = "bert-classify", .edits = { { "\"dtype\"", "\"torch_dtype\"" } } },
    { .golden = "bert-pretraining", .rename = old_norms },
    { .golden = "bert-pretraining", .rename = bare },
    { .golden = "bert-model", .rename = prefixed },
    { .golden = "roberta-masked-lm", .rename = old_norms },
    { .golden = "gpt2-lm", .rename = bare },
    { .golden = "gpt2-lm", .rename = projection_only },
    { .golden = "gpt2-lm", .duplicate = "transformer.wte.weight", .duplicate_name = "lm_head.weight" },
    { .golden = "bert-masked-lm",
      .duplicate = "cls.predictions.bias",
      .duplicate_name = "cls.predictions.decoder.bias" },
    { .golden = "bart-causal-lm", .rename = bare },
    { .golden = "t5-v1.0", .duplicate = "shared.weight", .duplicate_name = "encoder.embed_tokens.weight" },
    { .golden = "t5-v1.0", .edits = { { "\"scale_decoder_outputs\": true,", "" } } },
    { .golden = "t5-v1.1",
      .edits = { { "\"scale_decoder_outputs\": false,", "" },
                 { "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false" } },
      .duplicate = "shared.weight",
      .duplicate_name = "lm_head.weight" },
    { .golden = "modernbert-masked-lm",
      .edits = { { "\"layer_types\"", "\"older_layer_types\"" },
                 { "\"rope_parameters\"", THETAS "\"older_rope_parameters\"" } } },
    { .golden = "modernbert-masked-lm", .edits = { { "\"global_attn_every_n_layers\": 2,", "" } } },
    { .golden = "deberta-v2-masked-lm",
      .edits = { { "\"pos_att_type\"", "\"pos_att_type\": \"p2c|c2p\", \"older_pos_att_type\"" } } },
    { .golden = "deberta-masked-lm",
      .edits = { { "\"pos_att_type\"", "\"pos_att_type\": \"c2p|p2c\", \"older_pos_att_type\"" } } },
};
#undef THETAS

static void test_ages(void)
{
    static ses_real then[NUMBERS], now[NUMBERS];
    for (size_t i = 0; i < SES_LEN(ages); i++) {
        ses_err e = { 0 };
        ses_model *old = open_variant(&ages[i], &e);
        CHECK_MSG(old, "%s (%d): %s", ages[i].golden, (int)i, e.msg);
        int64_t n = old ? numbers(old, then) : 0;
        ses_model_free(old);
        ses_err_clear(&e);
        ses_model *m = open_variant(&(variant){ .golden = ages[i].golden }, &e);
        int64_t k = m ? numbers(m, now) : 0;
        CHECK_MSG(n && n == k && !memcmp(now, then, (size_t)n * sizeof *now), "%s (%d): other numbers",
                  ages[i].golden, (int)i);
        ses_model_free(m);
    }
}

#define AUTO_MAP "\"auto_map\": {\"AutoModel\": \"modeling_mine.MyModel\"}, "
static const struct {
    variant v;
    const char *expected[3]; /* expected parts of the message */
} wrong[] = {
    { { .golden = "gpt2-lm",
        .duplicate = "transformer.wte.weight",
        .duplicate_name = "lm_head.weight",
        .duplicate_differs = true },
      { "\"lm_head.weight\" differs from \"transformer.wte.weight\"", "tie_word_embeddings" } },
    { { .golden = "t5-v1.0",
        .duplicate = "shared.weight",
        .duplicate_name = "encoder.embed_tokens.weight",
        .duplicate_differs = true },
      { "\"encoder.embed_tokens.weight\" differs from \"shared.weight\"" } },
    { { .golden = "bert-masked-lm", .class_name = "BertForSequenceClassification" },
      { "tensor \"bert.pooler.dense.weight\" [24, 24] is missing", "random",
        "as BertForMaskedLM, BertLMHeadModel" } },
    { { .golden = "bert-classify", .rename = no_head },
      { "tensor \"classifier.weight\" [3, 24] is missing", "would be random",
        "can be opened as BertModel" } },
    { { .golden = "bert-classify", .rename = no_layer },
      { "tensor \"bert.encoder.layer.1.output.dense.weight\" [24, 44] is missing" } },
    { { .golden = "bert-classify", .edits = { { "", AUTO_MAP }, { "\"bert\"", "\"bret\"" } } },
      { "auto_map", "modeling_mine.MyModel", "never run" } },
    { { .golden = "bert-classify", .edits = { { "\"bert\"", "\"bret\"" } } },
      { "\"model_type\" \"bret\" is not supported", "'bert'" } },
    { { .golden = "bert-masked-lm", .class_name = "BertModel", .rename = no_pooler, .strict = true },
      { "tensor \"pooler.dense.weight\" [24, 24] is missing" } },
    { { .golden = "gpt2-lm",
        .class_name = "GPT2Model",
        .strict = true,
        .duplicate = "transformer.wpe.weight",
        .duplicate_name = "score.weight" },
      { "GPT2Model does not use: score.weight" } },
    /* parts of other architectures: ERNIE, jina, adapters, UMT5, a bias of GPT-2 that is not its mask */
    { { .golden = "bert-masked-lm",
        .duplicate = "bert.embeddings.token_type_embeddings.weight",
        .duplicate_name = "bert.embeddings.task_type_embeddings.weight" },
      { "tensors that no \"bert\" has: bert.embeddings.task_type_embeddings.weight",
        "another architecture" } },
    { { .golden = "xlm-roberta-masked-lm",
        .duplicate = "roberta.encoder.layer.0.output.LayerNorm.weight",
        .duplicate_name = "roberta.encoder.layer.0.attention.self.layer_norm_q.weight" },
      { "no \"xlm-roberta\" has: roberta.encoder.layer.0.attention.self.layer_norm_q.weight" } },
    { { .golden = "bert-classify",
        .duplicate = "bert.encoder.layer.1.output.dense.weight",
        .duplicate_name = "encoder.layer.1.output.adapters.mine.adapter_down.0.weight" },
      { "no \"bert\" has: encoder.layer.1.output.adapters.mine.adapter_down.0.weight" } },
    { { .golden = "t5-v1.0",
        .duplicate = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
        .duplicate_name = "encoder.block.1.layer.0.SelfAttention.relative_attention_bias.weight" },
      { "no \"t5\" has: encoder.block.1.layer.0.SelfAttention.relative_attention_bias.weight" } },
    { { .golden = "gpt2-lm",
        .duplicate = "transformer.h.0.ln_1.bias",
        .duplicate_name = "transformer.h.0.attn.bias" },
      { "no \"gpt2\" has: transformer.h.0.attn.bias" } },
    { { .golden = "bert-classify",
        .duplicate = "bert.encoder.layer.1.output.dense.bias",
        .duplicate_name = "bert.encoder.layer.0.attention.self.query.gate" },
      { "no \"bert\" has: bert.encoder.layer.0.attention.self.query.gate" } },
    { { .golden = "bert-classify",
        .duplicate = "bert.encoder.layer.1.output.dense.bias",
        .duplicate_name = "bert.encoder.layer.0.attention.self.rotary_emb.inv_freq" },
      { "no \"bert\" has: bert.encoder.layer.0.attention.self.rotary_emb.inv_freq" } },
    { { .golden = "bert-classify", .rename = fused_qkv },
      { "tensor \"bert.encoder.layer.0.attention.self.query.weight\" [24, 24] is missing",
        "tensors that no such model has: bert.encoder.layer.0.attention.self.Wqkv.bias",
        "another architecture" } },
    { { .golden = "deberta-v2-masked-lm",
        .edits = { { "\"relative_attention\": true", "\"relative_attention\": false" } } },
      { "\"relative_attention\" is false", "\"position_buckets\" needs it" } },
    { { .golden = "deberta-masked-lm",
        .edits = { { "\"relative_attention\": true", "\"relative_attention\": false" } } },
      { "\"relative_attention\" is false", "\"pos_att_type\" needs it" } },
    { { .golden = "deberta-v2-masked-lm",
        .edits = { { "\"position_buckets\": 8", "\"position_buckets\": 256" } } },
      { "cannot fill 256 buckets" } },
    { { .golden = "t5-v1.0",
        .edits = { { "\"relative_attention_num_buckets\": 8", "\"relative_attention_num_buckets\": 0" } } },
      { "\"relative_attention_num_buckets\" is 0" } },
    { { .golden = "t5-v1.0",
        .edits = { { "\"relative_attention_num_buckets\": 8", "\"relative_attention_num_buckets\": 512" } } },
      { "leaves no room for 512 buckets" } },
};
#undef AUTO_MAP

static void test_wrong(void)
{
    for (size_t i = 0; i < SES_LEN(wrong); i++) {
        ses_err e = { 0 };
        ses_model *m = open_variant(&wrong[i].v, &e);
        CHECK_MSG(!m, "%s (%d) opened", wrong[i].v.golden, (int)i);
        for (size_t k = 0; k < SES_LEN(wrong[i].expected) && wrong[i].expected[k]; k++)
            CHECK_MSG(strstr(e.msg, wrong[i].expected[k]), "(%d) no \"%s\" in: %s", (int)i,
                      wrong[i].expected[k], e.msg);
        ses_model_free(m);
    }
}

/* Unused tensors: heads are listed, buffers are not. */
static void test_unused(void)
{
    static const struct {
        variant v;
        const char *listed;
    } cases[] = {
        { { .golden = "gpt2-lm", .duplicate = "transformer.wpe.weight", .duplicate_name = "score.weight" },
          "score.weight" },
        { { .golden = "gpt2-lm",
            .duplicate = "transformer.wpe.weight",
            .duplicate_name = "transformer.h.0.attn.bias",
            .strict = true },
          "" },
        { { .golden = "bert-masked-lm",
            .duplicate = "cls.predictions.bias",
            .duplicate_name = "bert.embeddings.position_ids",
            .strict = true },
          "" },
        { { .golden = "roberta-masked-lm",
            .duplicate = "lm_head.bias",
            .duplicate_name = "roberta.embeddings.token_type_ids",
            .strict = true },
          "" },
        { { .golden = "modernbert-masked-lm",
            .duplicate = "decoder.bias",
            .duplicate_name = "model.layers.0.attn.rotary_emb.inv_freq",
            .strict = true },
          "" },
        { { .golden = "t5-v1.0",
            .duplicate = "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
            .duplicate_name = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",
            .strict = true },
          "" },
        { { .golden = "bloom-lm",
            .duplicate = "transformer.ln_f.bias",
            .duplicate_name = "transformer.h.0.self_attention.scale_mask_softmax.causal_mask",
            .strict = true },
          "" },
        { { .golden = "marian-mt",
            .duplicate = "final_logits_bias",
            .duplicate_name = "model.encoder.embed_positions.weights",
            .strict = true },
          "" },
    };
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        ses_err e = { 0 };
        ses_model *m = open_variant(&cases[i].v, &e);
        if (CHECK_MSG(m, "%zu: %s", i, e.msg)) CHECK_STR(ses_model_unexpected_keys(m), cases[i].listed);
        ses_model_free(m);
    }
}

/* A missing head may be initialized at random, determined by the seed alone. */
static void test_odd_heads(void)
{
    static ses_real one[NUMBERS], two[NUMBERS];
    ses_err e = { 0 };
    variant v = { .golden = "bert-masked-lm",
                  .class_name = "BertForSequenceClassification",
                  .new_head = true };
    ses_model *m = open_variant(&v, &e);
    if (CHECK_MSG(m, "%s", e.msg)) {
        CHECK_STR(ses_model_missing_keys(m),
                  "bert.pooler.dense.weight, bert.pooler.dense.bias, classifier.weight, classifier.bias");
        numbers(m, one);
    }
    ses_model_free(m);
    m = open_variant(&v, &e);
    if (CHECK_MSG(m, "%s", e.msg)) {
        int64_t n = numbers(m, two);
        CHECK(n > 0 && !memcmp(one, two, (size_t)n * sizeof *one));
        CHECK(one[0] != 0);
    }
    ses_model_free(m);
}

int main(void)
{
    char cmd[64];
    ses_err e = { 0 };
    dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    CHECK(dev && mkdtemp(tmp));
    test_ages();
    test_wrong();
    test_unused();
    test_odd_heads();
    snprintf(cmd, sizeof cmd, "rm -r %s", tmp);
    CHECK(system(cmd) == 0);
    ses_device_free(dev);
    return check_report();
}
