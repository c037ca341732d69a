/* generation_config.json: read, then used to generate. */
#include "fuzz.h"
#include "sesame/sesame.h"

#define CONFIG                                                                                              \
    "{\"model_type\": \"gpt2\", \"architectures\": [\"GPT2LMHeadModel\"], \"vocab_size\": 23, \"n_embd\": " \
    "8, "                                                                                                   \
    "\"n_layer\": 1, \"n_head\": 2, \"n_positions\": 16, \"initializer_range\": 1}"

static int64_t at_most(int64_t x, int64_t most) { return x > most ? most : x; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const int32_t id[3] = { 3, 4, 3 };
    ses_err e = { 0 };
    ses_json_doc *doc = ses_json_parse((const char *)data, n, &e);
    ses_json_doc *config = doc ? ses_json_parse(CONFIG, strlen(CONFIG), &e) : NULL;
    if (!config) {
        ses_json_free(doc);
        return 0;
    }
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    ses_model *m = ses_model_new(ses_json_root(config), dev, &(ses_model_options){ .seed = 1 }, &e);
    ses_generation_config *g = m ? ses_generation_config_open(m, &e) : NULL;
    MUST(g);
    ses_generate_options o = *ses_generation_config_options(g);
    if (ses_generation_config_read(g, ses_json_root(doc), &o, &e)) {
        o.num_beams = at_most(o.num_beams, 6), o.num_return_sequences = at_most(o.num_return_sequences, 6);
        o.n_stop_strings = 0; /* no tokenizer */
        ses_generated *r = ses_generate(m, &(ses_prompt){ .ids = { id, 3 } }, 1, &o, &e);
        for (int64_t i = 0; r && i < r->n; i++)
            for (int64_t t = 0; t < r->sequence[i].ids.n; t++)
                MUST(r->sequence[i].ids.id[t] >= 0 && r->sequence[i].ids.id[t] < 23);
        ses_generated_free(r);
    }
    ses_generation_config_free(g);
    ses_model_free(m);
    ses_device_free(dev);
    ses_json_free(config);
    ses_json_free(doc);
    return 0;
}
