/* Invalid config.json files of models with a post_read function of their own. Other architectures under a
 * known model type: a key that changes the results is read or refused by name. */
#define _DEFAULT_SOURCE /* DT_DIR */
#include "check.h"
#include "model/model_desc.h"
#include "sesame/model.h"

#include <dirent.h>

#define XL                                                                                                 \
    "\"model_type\": \"transfo-xl\", \"vocab_size\": 50, \"d_model\": 16, \"n_layer\": 1, \"n_head\": 2, " \
    "\"d_head\": 8, \"d_inner\": 8, "
#define PLAIN                                                                                       \
    "\"model_type\": \"transformer\", \"vocab_size\": 50, \"d_model\": 16, \"encoder_layers\": 1, " \
    "\"encoder_attention_heads\": 2, \"encoder_ffn_dim\": 8, \"decoder_layers\": 1, "               \
    "\"decoder_attention_heads\": 2, \"decoder_ffn_dim\": 8, \"max_position_embeddings\": 8, "

#define BERT                                                                                          \
    "\"vocab_size\": 50, \"hidden_size\": 16, \"num_hidden_layers\": 1, \"num_attention_heads\": 2, " \
    "\"intermediate_size\": 8, \"max_position_embeddings\": 8, "
#define GPT2                                                                                        \
    "\"model_type\": \"gpt2\", \"vocab_size\": 50, \"n_embd\": 16, \"n_layer\": 1, \"n_head\": 2, " \
    "\"n_positions\": 8, "
#define T5                                                                                    \
    "\"model_type\": \"t5\", \"vocab_size\": 50, \"d_model\": 16, \"d_kv\": 8, \"d_ff\": 8, " \
    "\"num_layers\": 1, "                                                                     \
    "\"num_heads\": 2, "

static const struct {
    const char *settings, *message; /* NULL: valid */
} cases[] = {
    { XL "\"cutoffs\": [10, 20, 30], \"div_val\": 2", NULL },
    { XL "\"cutoffs\": [], \"div_val\": 1", NULL },
    { XL "\"tie_projs\": [true], \"cutoffs\": [], \"mem_len\": 0", NULL },
    { XL "\"cutoffs\": 10", "\"cutoffs\" is invalid, expected rising token ids" },
    { XL "\"cutoffs\": [10, 10]", "\"cutoffs\" is invalid" },
    { XL "\"cutoffs\": [50]", "\"cutoffs\" is invalid" },
    { XL "\"cutoffs\": [0]", "\"cutoffs\" is invalid" },
    { XL "\"cutoffs\": [1, 2, 3, 4, 5, 6, 7, 8]", "at most 7" },
    { XL "\"cutoffs\": [10, 20, 30], \"div_val\": 4",
      "\"div_val\" 4 leaves no columns for the last cluster" },
    { XL "\"cutoffs\": [10], \"tie_projs\": [true, true, false]", "\"tie_projs\" is invalid" },
    { XL "\"cutoffs\": [10], \"tie_projs\": [1]", "true or false for every cluster" },
    { XL "\"attn_type\": 2", "\"attn_type\" is 2: only 0 is supported" },
    { "\"model_type\": \"transfo-xl\", \"d_model\": 16, \"n_layer\": 1, \"n_head\": 2, \"d_head\": 8, "
      "\"d_inner\": 8",
      "\"vocab_size\" is missing" },
    { "\"model_type\": \"bertt\"", "did you mean 'bert'?" },
    { "\"model_type\": \"bertt\", \"architectures\": [\"BertModel\"]", "did you mean 'bert'?" },
    { "\"model_type\": \"longt5\", \"architectures\": [\"LongT5Model\"]", "tagger)" }, /* not mt5 */
    { "\"model_type\": \"grover\"", "\"grover\" is not supported (supported: bert, " },
    { "\"model_type\": \"mine\", \"auto_map\": {\"AutoModel\": \"modeling_mine.MyModel\"}",
      "\"auto_map\" names code (modeling_mine.MyModel), which is never run (supported: " },
    { PLAIN "\"sinusoids\": \"halves\", \"attention_bias\": true", NULL },
    { PLAIN "\"sinusoids\": \"interleaved\"", NULL },
    { PLAIN "\"sinusoids\": \"thirds\"", "\"sinusoids\" is \"thirds\", expected interleaved or halves" },
    { PLAIN "\"sinusoids\": 2", "key \"sinusoids\" must be a string, not an integer" },
    { BERT "\"model_type\": \"bert\", \"is_decoder\": null", NULL },
    { BERT "\"model_type\": \"bert\", \"is_decoder\": \"true\"",
      "key \"is_decoder\" must be true or false, not a string" },
    { BERT "\"model_type\": \"roberta\", \"add_cross_attention\": 1",
      "key \"add_cross_attention\" must be true or false, not an integer" },
    { BERT "\"model_type\": \"bert\", \"position_embedding_type\": []",
      "key \"position_embedding_type\" must be a string, not an array" },
    { BERT "\"model_type\": \"deberta-v2\", \"conv_groups\": 1.5",
      "key \"conv_groups\" must be an integer, not a number" },
    { GPT2 "\"scale_attn_weights\": \"false\"",
      "key \"scale_attn_weights\" must be true or false, not a string" },
    { T5 "\"feed_forward_proj\": 3", "key \"feed_forward_proj\" must be a string, not an integer" },
    { T5 "\"scale_decoder_outputs\": 0",
      "key \"scale_decoder_outputs\" must be true or false, not an integer" },
    { PLAIN "\"attention_bias\": \"no\"", "key \"attention_bias\" must be true or false, not a string" },
    /* a setting that the model type does not have */
    { BERT "\"model_type\": \"bert\", \"rope_scaling\": {\"type\": \"ntk\", \"factor\": 2.0}",
      "\"rope_scaling\" is {\"type\": \"ntk\", \"factor\": 2.0}: this changes the results, and Sesame's "
      "\"bert\" does not compute it (accepted: null, default)" },
    { BERT
      "\"model_type\": \"bert\", \"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 1000.0}",
      "\"rope_parameters\" is" }, /* nomic */
    { BERT "\"model_type\": \"bert\", \"rotary_emb_fraction\": 1.0", "\"rotary_emb_fraction\" is 1.0" },
    { BERT "\"model_type\": \"bert\", \"position_embedding_type\": \"alibi\"",
      "\"position_embedding_type\" is \"alibi\"" }, /* jina v2 */
    { BERT "\"model_type\": \"bert\", \"feed_forward_type\": \"geglu\"",
      "\"feed_forward_type\" is \"geglu\"" },
    { BERT "\"model_type\": \"bert\", \"alibi_starting_size\": 512", "\"alibi_starting_size\" is 512" },
    { BERT "\"model_type\": \"bert\", \"use_task_id\": true", "\"use_task_id\" is true" }, /* ERNIE */
    { BERT "\"model_type\": \"bert\", \"num_experts\": 8", "\"num_experts\" is 8" },
    { BERT "\"model_type\": \"bert\", \"logn_attention_scale\": true", "\"logn_attention_scale\" is true" },
    { BERT "\"model_type\": \"bert\", \"num_key_value_heads\": 1", "\"num_key_value_heads\" is 1" },
    { BERT "\"model_type\": \"bert\", \"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 4}",
      "\"quantization_config\" is {\"quant_method\": \"gptq\"" },
    { BERT "\"model_type\": \"bert\", \"use_bidirectional_attention\": \"no\"",
      "\"use_bidirectional_attention\" is \"no\"" },
    { BERT "\"model_type\": \"roberta\", \"attention_window\": [256, 256]",
      "\"attention_window\" is [256, 256]" }, /* Longformer */
    { BERT "\"model_type\": \"xlm-roberta\", \"position_embedding_type\": \"rotary\", "
           "\"rotary_emb_base\": 20000.0",
      "\"rotary_emb_base\" is 20000.0" }, /* jina v3 */
    { BERT "\"model_type\": \"xlm-roberta\", \"lora_adaptations\": [\"retrieval.query\"]",
      "\"lora_adaptations\" is" },
    { BERT "\"model_type\": \"modernbert\", \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 2.0}",
      NULL },
    { BERT "\"model_type\": \"modernbert\", \"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 4.0}",
      NULL },
    { BERT
      "\"model_type\": \"modernbert\", \"rope_parameters\": {\"rope_type\": \"longrope\", \"factor\": 4.0}",
      "\"rope_type\" is \"longrope\", expected default, linear" },
    { BERT "\"model_type\": \"modernbert\", \"rope_parameters\": {\"sliding_attention\": {\"rope_type\": "
           "\"proportional\"}}",
      "\"sliding_attention\": \"rope_type\" is \"proportional\"" },
    { BERT "\"model_type\": \"modernbert\", \"rope_parameters\": {\"chunked_attention\": {}, "
           "\"full_attention\": {}}",
      "\"rope_parameters\" has \"chunked_attention\"" },
    { BERT "\"model_type\": \"eurobert\", \"rope_parameters\": {\"rope_type\": \"yarn\", \"mine\": 1}",
      "\"mine\" of rotary positions is not known" },
    { BERT "\"model_type\": \"eurobert\", \"rope_scaling\": {\"type\": \"linear\"}",
      "\"factor\" is missing" },
    { BERT "\"model_type\": \"eurobert\", \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8.0}",
      "\"low_freq_factor\" is missing" },
    { BERT "\"model_type\": \"eurobert\", \"num_key_value_heads\": 3",
      "2 heads are not a multiple of 3 heads of keys" },
    { BERT "\"model_type\": \"qwen3\", \"rope_scaling\": {\"rope_type\": \"dynamic\", \"factor\": 2.0}",
      "\"rope_type\" is \"dynamic\": in a model that reads from left" },
    { BERT "\"model_type\": \"gemma3_text\", \"attn_logit_softcapping\": 50.0",
      "\"attn_logit_softcapping\" is 50.0" },
    { BERT "\"model_type\": \"gemma3_text\", \"final_logit_softcapping\": 30.0",
      "\"final_logit_softcapping\" is 30.0" },
    { BERT "\"model_type\": \"nomic_bert\", \"prenorm\": true", "\"prenorm\" is true" },
    { BERT "\"model_type\": \"nomic_bert\", \"norm_mlp\": true", "\"norm_mlp\" is true" },
    { BERT "\"model_type\": \"nomic_bert\", \"rotary_emb_scale_base\": 512",
      "\"rotary_emb_scale_base\" is 512" },
    { BERT "\"model_type\": \"nomic_bert\", \"rotary_emb_fraction\": 0.0", "\"rotary_emb_fraction\" is 0" },
    { BERT "\"model_type\": \"nomic_bert\", \"activation_function\": \"glu\"",
      "\"activation_function\" is \"glu\"" },
    { BERT "\"model_type\": \"nomic_bert\", \"num_experts\": 8, \"moe_every_n_layers\": 1, "
           "\"activation_function\": \"gelu\", \"moe_normalize_expert_weights\": true",
      "\"moe_normalize_expert_weights\" is true" },
    { BERT "\"model_type\": \"new\", \"logn_attention_scale\": true", "\"logn_attention_scale\" is true" },
    { BERT "\"model_type\": \"new\", \"layer_norm_type\": \"rms_norm\"",
      "\"layer_norm_type\" is \"rms_norm\"" },
    { BERT "\"model_type\": \"new\", \"position_embedding_type\": \"absolute\"",
      "\"position_embedding_type\" is \"absolute\"" },
    { BERT "\"model_type\": \"new\", \"rope_scaling\": {\"type\": \"ntk\", \"factor\": 2.0}", NULL },
    { BERT "\"model_type\": \"jina_embeddings_v3\", \"position_embedding_type\": \"absolute\"",
      "\"position_embedding_type\" is \"absolute\"" },
    { BERT "\"model_type\": \"jina_v2\", \"feed_forward_type\": \"original\"",
      "\"feed_forward_type\" is \"original\"" },
    { BERT "\"model_type\": \"modernbert\", \"rope_parameters\": {\"sliding_attention\": {\"rope_type\": "
           "\"default\", \"partial_rotary_factor\": 0.5}}",
      "\"partial_rotary_factor\" of one kind of layers is 0.5" },
    { BERT "\"model_type\": \"modernbert\", \"sliding_window\": 32",
      "\"sliding_window\" is 32, but \"local_attention\" is 128: expected twice as much" },
    { GPT2 "\"is_causal\": false", "\"is_causal\" is false" },
    { GPT2 "\"use_bidirectional_attention\": true", "\"use_bidirectional_attention\" is true" },
    { GPT2 "\"sliding_window\": 4096", "\"sliding_window\" is 4096" },
    { "\"model_type\": \"encoder-decoder\", \"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}",
      "\"rope_scaling\" is" },
    { "\"model_type\": \"encoder-decoder\", \"encoder\": {" BERT "\"model_type\": \"bert\", \"alibi\": true}",
      "\"encoder\": \"alibi\" is true" },
    /* values that mean the default */
    { BERT "\"model_type\": \"bert\", \"rope_parameters\": {\"rope_theta\": 10000.0}", NULL },
    { GPT2 "\"sliding_window\": 4096, \"use_sliding_window\": false", NULL },
    { GPT2 "\"sliding_window\": 4096, \"use_sliding_window\": true", "sliding_window\" is" },
    { BERT "\"model_type\": \"bert\", \"rope_parameters\": {\"rope_theta\": 10000.0, \"mine\": 1}",
      "\"rope_parameters\" is" },
    { BERT "\"model_type\": \"bert\", \"rope_scaling\": null, \"rope_parameters\": {\"rope_type\": "
           "\"default\"}, \"rope_theta\": 10000.0, \"rotary_scaling_factor\": 1.0, \"num_experts\": 0, "
           "\"alibi\": false, \"feed_forward_type\": \"original\", \"layer_types\": [\"full_attention\"], "
           "\"num_key_value_heads\": 2, \"quantization_config\": {}, \"use_bidirectional_attention\": true, "
           "\"is_causal\": false, \"scale_attn_weights\": true",
      NULL },
    { BERT "\"model_type\": \"modernbert\", \"sliding_window\": 64, \"rope_scaling\": {\"rope_type\": "
           "\"default\"}",
      NULL },
    { BERT "\"model_type\": \"bert\", \"quantization_config\": {\"quant_method\": \"sesame-int8\"}", NULL },
    { GPT2 "\"is_causal\": true, \"is_decoder\": true, \"summary_type\": \"cls_index\"", NULL },
    { T5 "\"is_decoder\": true", NULL },
};

static ses_device *dev;

/* A copy of a config with one key set to a text that no model knows. */
static ses_json_doc *with_nonsense(const ses_json *config, const char *key, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (!w) return NULL;
    ses_json_begin_object(w);
    ses_json_member_string(w, key, "nonsense");
    for (size_t i = 0; i < ses_json_len(config); i++) {
        const char *own = ses_json_key(config, i, NULL);
        if (!strcmp(own, key)) continue;
        ses_json_put_key(w, own);
        ses_json_put_value(w, ses_json_at(config, i));
    }
    ses_json_end_object(w);
    size_t n;
    const char *text = ses_json_writer_text(w, &n, e);
    ses_json_doc *doc = text ? ses_json_parse(text, n, e) : NULL;
    ses_json_writer_free(w);
    return doc;
}

/* No model ignores any of these keys. */
static void test_every_key(const char *folder)
{
    char path[400], quoted[80];
    const char *key;
    ses_err e = { 0 };
    snprintf(path, sizeof path, "tests/golden/%s", folder);
    ses_json_doc *doc = ses_model_config_open(path, NULL, &e);
    if (!CHECK_MSG(doc, "%s", e.msg)) return;
    for (size_t i = 0; (key = ses_changing_key_at(i)); i++) {
        ses_err_clear(&e);
        ses_json_doc *changed = with_nonsense(ses_json_root(doc), key, &e);
        ses_model *m = changed ? ses_model_new(ses_json_root(changed), dev,
                                               &(ses_model_options){ .check_only = true }, &e)
                               : NULL;
        snprintf(quoted, sizeof quoted, "\"%s\"", key);
        CHECK_MSG(!m && strstr(e.msg, quoted), "%s, %s: %s", folder, key, e.msg);
        ses_model_free(m);
        ses_json_free(changed);
    }
    ses_json_free(doc);
}

static void test_folders(void)
{
    DIR *d = opendir("tests/golden");
    int n = 0;
    if (!CHECK(d)) return;
    for (struct dirent *x; (x = readdir(d));)
        if (*x->d_name != '.') test_every_key(x->d_name), n++;
    closedir(d);
    CHECK(n > 100);
}

int main(void)
{
    ses_err e = { 0 };
    dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    CHECK(dev);
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        char text[1024];
        ses_err_clear(&e);
        int n = snprintf(text, sizeof text, "{%s}", cases[i].settings);
        ses_json_doc *doc = ses_json_parse(text, (size_t)n, &e);
        ses_model *m = doc ? ses_model_new(ses_json_root(doc), dev, NULL, &e) : NULL;
        if (strstr(cases[i].settings, "longt5")) CHECK(!strstr(e.msg, "did you mean"));
        if (cases[i].message)
            CHECK_MSG(!m && strstr(e.msg, cases[i].message), "case %zu: %s", i, e.msg);
        else
            CHECK_MSG(m, "case %zu: %s", i, e.msg);
        ses_model_free(m);
        ses_json_free(doc);
    }
    test_folders();
    ses_device_free(dev);
    return check_report();
}
