/* Invalid config.json files of models with a post_read function of their own. */
#include "check.h"
#include "sesame/model.h"

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
};

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    CHECK(dev);
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        char text[1024];
        ses_err_clear(&e);
        int n = snprintf(text, sizeof text, "{%s}", cases[i].settings);
        ses_json_doc *doc = ses_json_parse(text, (size_t)n, &e);
        ses_model *m = doc ? ses_model_new(ses_json_root(doc), dev, NULL, &e) : NULL;
        if (cases[i].message)
            CHECK_MSG(!m && strstr(e.msg, cases[i].message), "case %zu: %s", i, e.msg);
        else
            CHECK_MSG(m, "case %zu: %s", i, e.msg);
        ses_model_free(m);
        ses_json_free(doc);
    }
    ses_device_free(dev);
    return check_report();
}
