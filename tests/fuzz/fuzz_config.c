/* config.json to a declared model without values: sizes are bounded before anything is allocated, and every
 * layer keeps a head ("pruned_heads") and a row ("sesame_ffn_widths"). */
#include "fuzz.h"
#include "sesame/hooks.h"
#include "sesame/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    ses_json_doc *doc = dev ? ses_json_parse((const char *)data, n, &e) : NULL;
    if (doc) {
        ses_model *m = ses_model_new(ses_json_root(doc), dev, &(ses_model_options){ .check_only = true }, &e);
        MUST((m != NULL) == (e.code == SES_OK));
        if (m) {
            MUST(ses_model_vocab_size(m) > 0 && ses_model_max_tokens(m) > 0 && ses_model_label_count(m) > 0);
            MUST(ses_store_element_count(ses_model_store(m)) > 0);
            for (ses_part part = SES_PART_MAIN; part <= SES_PART_CROSS; part++)
                for (int64_t i = 0; i < ses_model_part_layers(m, part); i++)
                    MUST(ses_model_part_heads(m, part, i) > 0 &&
                         (part == SES_PART_CROSS || !ses_model_part_neurons(m, part) ||
                          ses_model_layer_neurons(m, part, i) > 0));
        }
        ses_model_free(m);
    }
    ses_json_free(doc);
    ses_device_free(dev);
    return 0;
}
