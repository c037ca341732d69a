/* Model presets and their adaptation to a tokenizer. */
#include "model_presets.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "model/model_desc.h"

#include <string.h>

enum { FILE_MAX = 1 << 24 };

/* Keys shared by the BERT family. */
#define SIZE(hidden, layers, heads, inner)                                                               \
    "\"hidden_size\": " #hidden ", \"num_hidden_layers\": " #layers ", \"num_attention_heads\": " #heads \
    ", \"intermediate_size\": " #inner ", "
#define COMMON                                                                                        \
    "\"hidden_act\": \"gelu\", \"hidden_dropout_prob\": 0.1, \"attention_probs_dropout_prob\": 0.1, " \
    "\"initializer_range\": 0.02, "
#define BERT(hidden, layers, heads, inner)                                                      \
    "{\"model_type\": \"bert\", " SIZE(hidden, layers, heads, inner) COMMON                     \
        "\"max_position_embeddings\": 512, \"type_vocab_size\": 2, \"layer_norm_eps\": 1e-12, " \
        "\"vocab_size\": 30522, \"pad_token_id\": 0}"
#define ELECTRA(embedding, hidden, layers, heads, inner)                                                     \
    "{\"model_type\": \"electra\", \"embedding_size\": " #embedding ", " SIZE(hidden, layers, heads, inner)  \
        COMMON "\"max_position_embeddings\": 512, \"type_vocab_size\": 2, \"layer_norm_eps\": 1e-12, "       \
               "\"summary_type\": \"first\", \"summary_use_proj\": true, \"summary_activation\": \"gelu\", " \
               "\"vocab_size\": 30522, \"pad_token_id\": 0}"

#define ELMO(highways, units, proj)                                                                       \
    "{\"model_type\": \"elmo\", \"vocab_size\": 30000, \"char_embedding_dim\": 16, "                      \
    "\"max_characters_per_token\": 50, \"filters\": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], "     \
    "[6, 512], [7, 1024]], \"n_highway\": " #highways ", \"activation\": \"relu\", \"lstm_dim\": " #units \
    ", \"projection_dim\": " #proj ", \"num_hidden_layers\": 2, \"cell_clip\": 3.0, \"proj_clip\": 3.0, " \
    "\"use_skip_connections\": true, \"dropout\": 0.1, \"sampled_softmax\": 8192, \"bos_token_id\": 0, "  \
    "\"eos_token_id\": 1, \"unk_token_id\": 2}"

static const struct {
    const char *name, *config;
} presets[] = {
    { "bert-tiny", BERT(128, 2, 2, 512) },
    { "bert-mini", BERT(256, 4, 4, 1024) },
    { "bert-small", BERT(512, 4, 8, 2048) },
    { "bert-medium", BERT(512, 8, 8, 2048) },
    { "bert-base", BERT(768, 12, 12, 3072) },
    { "bert-large", BERT(1024, 24, 16, 4096) },
    { "roberta-base", "{\"model_type\": \"roberta\", " SIZE(768, 12, 12, 3072) COMMON
      "\"max_position_embeddings\": 514, \"type_vocab_size\": 1, \"layer_norm_eps\": 1e-05, "
      "\"vocab_size\": 50265, \"pad_token_id\": 1, \"bos_token_id\": 0, \"eos_token_id\": 2}" },
    { "electra-small", ELECTRA(128, 256, 12, 4, 1024) },
    { "electra-base", ELECTRA(768, 768, 12, 12, 3072) },
    { "albert-base",
      "{\"model_type\": \"albert\", \"embedding_size\": 128, \"num_hidden_groups\": 1, \"inner_group_num\": "
      "1, " SIZE(
          768, 12, 12,
          3072) "\"hidden_act\": \"gelu_new\", \"hidden_dropout_prob\": 0, "
                "\"attention_probs_dropout_prob\": 0, \"classifier_dropout_prob\": 0.1, "
                "\"initializer_range\": 0.02, \"max_position_embeddings\": 512, \"type_vocab_size\": 2, "
                "\"layer_norm_eps\": 1e-12, \"vocab_size\": 30000, \"pad_token_id\": 0, "
                "\"bos_token_id\": 2, \"eos_token_id\": 3}" },
    { "distilbert",
      "{\"model_type\": \"distilbert\", \"dim\": 768, \"n_layers\": 6, \"n_heads\": 12, \"hidden_dim\": "
      "3072, "
      "\"activation\": \"gelu\", \"dropout\": 0.1, \"attention_dropout\": 0.1, \"initializer_range\": 0.02, "
      "\"max_position_embeddings\": 512, \"sinusoidal_pos_embds\": false, \"vocab_size\": 30522, "
      "\"pad_token_id\": 0}" },
    { "gpt2",
      "{\"model_type\": \"gpt2\", \"n_embd\": 768, \"n_layer\": 12, \"n_head\": 12, \"n_positions\": 1024, "
      "\"activation_function\": \"gelu_new\", \"resid_pdrop\": 0.1, \"embd_pdrop\": 0.1, \"attn_pdrop\": "
      "0.1, "
      "\"layer_norm_epsilon\": 1e-05, \"initializer_range\": 0.02, \"vocab_size\": 50257, "
      "\"bos_token_id\": 50256, \"eos_token_id\": 50256}" },
    { "t5-small",
      "{\"model_type\": \"t5\", \"d_model\": 512, \"d_kv\": 64, \"d_ff\": 2048, \"num_layers\": 6, "
      "\"num_decoder_layers\": 6, \"num_heads\": 8, \"relative_attention_num_buckets\": 32, "
      "\"relative_attention_max_distance\": 128, \"dropout_rate\": 0.1, \"layer_norm_epsilon\": 1e-06, "
      "\"initializer_factor\": 1.0, \"feed_forward_proj\": \"relu\", \"is_encoder_decoder\": true, "
      "\"tie_word_embeddings\": true, \"vocab_size\": 32128, \"pad_token_id\": 0, \"eos_token_id\": 1, "
      "\"decoder_start_token_id\": 0}" },
    { "bart-base",
      "{\"model_type\": \"bart\", \"d_model\": 768, \"encoder_layers\": 6, \"decoder_layers\": 6, "
      "\"encoder_attention_heads\": 12, \"decoder_attention_heads\": 12, \"encoder_ffn_dim\": 3072, "
      "\"decoder_ffn_dim\": 3072, \"activation_function\": \"gelu\", \"dropout\": 0.1, "
      "\"attention_dropout\": 0.1, \"activation_dropout\": 0.1, \"init_std\": 0.02, "
      "\"max_position_embeddings\": 1024, \"scale_embedding\": false, \"is_encoder_decoder\": true, "
      "\"vocab_size\": 50265, \"pad_token_id\": 1, \"bos_token_id\": 0, \"eos_token_id\": 2, "
      "\"decoder_start_token_id\": 2, \"forced_eos_token_id\": 2}" },
    { "cloze-base", /* Baevski et al. 2019 */
      "{\"model_type\": \"cloze\", \"hidden_size\": 768, \"num_tower_layers\": 6, \"num_attention_heads\": "
      "12, \"intermediate_size\": 3072, \"activation_function\": \"relu\", \"dropout\": 0.1, "
      "\"attention_dropout\": 0.1, \"initializer_range\": 0.02, \"max_position_embeddings\": 1024, "
      "\"layer_norm_eps\": 1e-05, \"scale_embedding\": true, \"tie_word_embeddings\": true, "
      "\"vocab_size\": 30522, \"pad_token_id\": 0}" },
    { "context2vec",
      "{\"model_type\": \"context2vec\", \"embedding_size\": 300, \"lstm_size\": 600, \"intermediate_size\": "
      "1200, \"hidden_size\": 600, \"dropout\": 0.0, \"initializer_range\": 0.1, \"vocab_size\": 30522, "
      "\"pad_token_id\": 0}" },
    { "nnlm",
      "{\"model_type\": \"nnlm\", \"embedding_size\": 100, \"hidden_size\": 200, \"context_size\": 4, "
      "\"direct_connections\": false, \"dropout\": 0.0, \"initializer_range\": 0.1, \"vocab_size\": 30522, "
      "\"pad_token_id\": 0}" },
    { "skip-thought",
      "{\"model_type\": \"rnn-encoder\", \"rnn_type\": \"gru\", \"bidirectional\": false, "
      "\"embedding_size\": 620, \"hidden_size\": 2400, \"num_hidden_layers\": 1, \"pooling\": \"ends\", "
      "\"embedding_dropout\": 0.0, \"hidden_dropout\": 0.0, \"classifier_dropout\": 0.0, "
      "\"initializer_range\": 0.1, \"vocab_size\": 30522, \"pad_token_id\": 0}" },
    { "bilstm",
      "{\"model_type\": \"rnn-encoder\", \"rnn_type\": \"lstm\", \"bidirectional\": true, "
      "\"embedding_size\": 100, \"hidden_size\": 256, \"num_hidden_layers\": 1, \"pooling\": \"max\", "
      "\"embedding_dropout\": 0.5, \"hidden_dropout\": 0.3, \"classifier_dropout\": 0.5, "
      "\"initializer_range\": 0.1, \"vocab_size\": 30522, \"pad_token_id\": 0}" },
    { "rnn-seq2seq",
      "{\"model_type\": \"rnn-seq2seq\", \"hidden_size\": 600, \"embedding_size\": 400, \"encoder_layers\": "
      "2, "
      "\"decoder_layers\": 2, \"rnn_type\": \"lstm\", \"bidirectional\": true, \"attention\": \"general\", "
      "\"input_feeding\": true, \"dropout\": 0.2, \"init_range\": 0.1, \"is_encoder_decoder\": true, "
      "\"share_encoder_decoder_embeddings\": true, \"tie_word_embeddings\": false, \"vocab_size\": 32000, "
      "\"pad_token_id\": 0, \"bos_token_id\": 1, \"eos_token_id\": 2, \"decoder_start_token_id\": 1}" },
    { "xlnet-base",
      "{\"model_type\": \"xlnet\", \"d_model\": 768, \"n_layer\": 12, \"n_head\": 12, \"d_inner\": 3072, "
      "\"d_head\": 64, \"ff_activation\": \"gelu\", \"untie_r\": true, \"attn_type\": \"bi\", "
      "\"initializer_range\": 0.02, \"layer_norm_eps\": 1e-12, \"dropout\": 0.1, \"vocab_size\": 32000, "
      "\"pad_token_id\": 5, \"bos_token_id\": 1, \"eos_token_id\": 2}" },
    { "awd-lstm", /* Merity et al. 2018 */
      "{\"model_type\": \"awd-lstm\", \"emb_sz\": 400, \"n_hid\": 1150, \"n_layers\": 3, \"output_p\": 0.4, "
      "\"hidden_p\": 0.3, \"input_p\": 0.65, \"embed_p\": 0.1, \"weight_p\": 0.5, \"alpha\": 2, \"beta\": 1, "
      "\"tie_weights\": true, \"vocab_size\": 10000}" },
    { "ulmfit", /* fastai */
      "{\"model_type\": \"awd-lstm\", \"emb_sz\": 400, \"n_hid\": 1152, \"n_layers\": 3, \"output_p\": 0.1, "
      "\"hidden_p\": 0.15, \"input_p\": 0.25, \"embed_p\": 0.02, \"weight_p\": 0.2, \"alpha\": 2, \"beta\": "
      "1, "
      "\"tie_weights\": true, \"vocab_size\": 60000}" },
    { "lstm", /* Dai and Le 2015 */
      "{\"model_type\": \"lstm\", \"embedding_size\": 512, \"hidden_size\": 1024, \"num_hidden_layers\": 1, "
      "\"dropout\": 0.0, \"token_dropout\": 0.0, \"classifier_dropout\": 0.5, \"label_gain\": false, "
      "\"tie_word_embeddings\": false, \"initializer_range\": 0.058, \"vocab_size\": 30522, "
      "\"pad_token_id\": 0}" },
    { "flair-lm", /* Akbik et al. 2018 */
      "{\"model_type\": \"flair-lm\", \"embedding_size\": 100, \"hidden_size\": 2048, \"nlayers\": 1, "
      "\"dropout\": "
      "0.1, \"is_forward_lm\": true, \"vocab_size\": 275}" },
    { "elmo-small", ELMO(1, 1024, 128) },
    { "elmo-original", ELMO(2, 4096, 512) },
};

const char *ses_preset_name(size_t i) { return i < SES_LEN(presets) ? presets[i].name : NULL; }

ses_json_doc *ses_preset_load(const char *name, ses_err *e)
{
    for (size_t i = 0; i < SES_LEN(presets); i++)
        if (!strcmp(name, presets[i].name))
            return ses_json_parse(presets[i].config, strlen(presets[i].config), e);
    if (!ses_path_exists(name)) {
        ses_fail(e, SES_EUSAGE, "\"%s\" is neither a config.json nor a preset; presets: " SES_PRESETS, name);
        return NULL;
    }
    return ses_json_load_object(name, FILE_MAX, e);
}

/* ---- adapting to a tokenizer ---- */

typedef struct fit {
    const ses_json *config;
    const ses_special_tokens *x; /* NULL: no tokenizer */
    const char *const *set;
    size_t n_set;
    int64_t vocab, unk; /* unk: id of unknown words; -1: none */
} fit;

static int64_t int_of(const ses_json *config, const char *key)
{
    int64_t n;
    return ses_json_int(ses_json_get(config, key), &n) ? n : -1;
}

static const char *set_value(const fit *f, const char *key, size_t n)
{
    for (size_t i = f->n_set; i-- > 0;) {
        const char *s = f->set[i], *is = strchr(s, '=');
        if (is && (size_t)(is - s) == n && !memcmp(s, key, n)) return is + 1;
    }
    return NULL;
}

/* Puts a JSON value; a value that does not parse is a string. */
static bool put_set(ses_json_writer *w, const char *value, ses_err *e)
{
    ses_err bad = { 0 };
    ses_json_doc *d = ses_json_parse(value, strlen(value), &bad);
    if (d)
        ses_json_put_value(w, ses_json_root(d));
    else
        ses_json_put_string(w, value);
    ses_json_free(d);
    return bad.code != SES_ENOMEM || ses_fail(e, SES_ENOMEM, "%s", bad.msg);
}

/* The tokenizer's id for a key; -1: keep the config's. decoder_start_token_id follows the config's pad, eos
 * or bos. */
static int64_t tokenizer_value(const fit *f, const char *key)
{
    if (!f->x) return -1;
    int64_t end = f->x->eos >= 0 ? f->x->eos : f->x->sep, begin = f->x->bos >= 0 ? f->x->bos : f->x->cls;
    if (!strcmp(key, "vocab_size")) return f->vocab;
    if (!strcmp(key, "pad_token_id")) return f->x->pad;
    if (!strcmp(key, "bos_token_id")) return begin >= 0 ? begin : end;
    if (!strcmp(key, "eos_token_id") || !strcmp(key, "forced_eos_token_id")) return end;
    if (!strcmp(key, "unk_token_id")) return f->unk;
    if (strcmp(key, "decoder_start_token_id")) return -1;
    int64_t start = int_of(f->config, key);
    return start == int_of(f->config, "pad_token_id")   ? f->x->pad
           : start == int_of(f->config, "eos_token_id") ? end
           : start == int_of(f->config, "bos_token_id") ? begin
                                                        : -1;
}

static bool put_member(const fit *f, ses_json_writer *w, size_t i, ses_err *e)
{
    size_t n;
    const char *key = ses_json_key(f->config, i, &n), *set = set_value(f, key, n);
    const ses_json *value = ses_json_at(f->config, i);
    int64_t id = tokenizer_value(f, key);
    ses_json_put_keyn(w, key, n);
    if (set) return put_set(w, set, e);
    if (id >= 0 && ses_json_type_of(value) == SES_JSON_INT)
        ses_json_put_int(w, id);
    else
        ses_json_put_value(w, value);
    return true;
}

/* Puts set[i] if its key is not in the config and no later entry sets it. */
static bool put_new_key(const fit *f, ses_json_writer *w, size_t i, ses_err *e)
{
    size_t n = strcspn(f->set[i], "=");
    const char *value = f->set[i] + n + 1;
    char *key = ses_strndup(f->set[i], n, e);
    bool is_new = key && !ses_json_get(f->config, key) && set_value(f, key, n) == value, ok = key != NULL;
    if (is_new) ses_json_put_key(w, key), ok = put_set(w, value, e);
    ses_free(key);
    return ok;
}

static bool check_sets(const char *const *set, size_t n, ses_err *e)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr(set[i], '=') || set[i][0] == '=')
            return ses_fail(e, SES_EUSAGE, "set %s: expected KEY=VALUE, e.g. hidden_size=128", set[i]);
    return true;
}

/* The config as JSON with all changes. */
static ses_json_doc *changed(const fit *f, ses_err *e)
{
    size_t n;
    bool ok = true;
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    for (size_t i = 0; ok && i < ses_json_len(f->config); i++) ok = put_member(f, w, i, e);
    for (size_t i = 0; ok && i < f->n_set; i++) ok = put_new_key(f, w, i, e);
    ses_json_end_object(w);
    const char *text = ok ? ses_json_writer_text(w, &n, e) : NULL;
    ses_json_doc *out = text ? ses_json_parse(text, n, e) : NULL;
    ses_json_writer_free(w);
    return out;
}

bool ses_preset_set(ses_json_doc **config, const char *const *set, size_t n, ses_err *e)
{
    if (!n) return true;
    fit f = { .config = ses_json_root(*config), .set = set, .n_set = n, .unk = -1 };
    ses_json_doc *out = check_sets(set, n, e) ? changed(&f, e) : NULL;
    if (!out) return false;
    ses_json_free(*config);
    *config = out;
    return true;
}

static int64_t find_unknown(const ses_tokenizer *t)
{
    static const char *const names[] = { "[UNK]", "<unk>", "<UNK>" };
    int64_t id = -1;
    for (size_t i = 0; i < SES_LEN(names) && id < 0; i++)
        id = ses_tokenizer_token_to_id(t, names[i], strlen(names[i]));
    return id;
}

ses_json_doc *ses_preset_fit(const ses_json *config, const ses_tokenizer *t, const char *const *set,
                             size_t n_set, ses_err *e)
{
    fit f = { .config = config, .set = set, .n_set = n_set, .vocab = ses_tokenizer_vocab_size(t) };
    const ses_model_desc *d = ses_config_find_model(config, e);
    if (!d) return NULL;
    f.unk = find_unknown(t);
    ses_special_tokens *x = check_sets(set, n_set, e) ? ses_special_tokens_new(t, f.vocab, e) : NULL;
    f.x = x;
    if (x && !x->n_sentinels) f.vocab += d->sentinels;
    ses_json_doc *out = x ? changed(&f, e) : NULL;
    ses_special_tokens_free(x);
    return out;
}
