/* tokenizer_config.json, or special_tokens_map.json, beside a small tokenizer. */
#include "fuzz.h"
#include "model/model_desc.h"
#include "text/tokenizer_config.h"

#define TOKENIZER                                                                                            \
    "{\"added_tokens\": [{\"id\": 0, \"content\": \"[PAD]\", \"special\": true}], \"pre_tokenizer\": "       \
    "{\"type\": \"Whitespace\"}, \"model\": {\"type\": \"WordLevel\", \"unk_token\": \"[UNK]\", \"vocab\": " \
    "{\"[PAD]\": 0, \"[UNK]\": 1, \"[MASK]\": 2, \"a\": 3}}}"

static void read_as(const ses_json *config, const ses_json *map, const ses_tokenizer *t)
{
    ses_tokenizer_config f;
    ses_tokenizer_config_from_json(&f, config, map, "bert", ses_model_sets_segments, t);
    for (int i = 0; i < SES_ROLE_COUNT; i++) MUST(f.role[i] >= -1 && f.role[i] < ses_tokenizer_vocab_size(t));
    MUST(f.model_max_length >= 0 && f.truncation_max_length == 0 &&
         (!f.clean_up_spaces || f.may_clean_up_spaces));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ses_err e = { 0 };
    ses_json_doc *doc = ses_json_parse((const char *)data, n, &e);
    if (!doc) return 0;
    ses_tokenizer *t = ses_tokenizer_from_json(TOKENIZER, strlen(TOKENIZER), &e);
    MUST(t);
    read_as(ses_json_root(doc), NULL, t);
    read_as(NULL, ses_json_root(doc), t);
    ses_tokenizer_free(t);
    ses_json_free(doc);
    return 0;
}
