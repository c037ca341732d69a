/* Settings of a tokenizer beside tokenizer.json: tokenizer_config.json and special_tokens_map.json.
 * A ses_tokenizer_config is a plain value; it owns nothing. Functions only read their arguments. */
#ifndef SES_TEXT_TOKENIZER_CONFIG_H
#define SES_TEXT_TOKENIZER_CONFIG_H

#include "sesame/json.h"
#include "sesame/tokenizer.h"

typedef enum {
    SES_ROLE_BOS,
    SES_ROLE_EOS,
    SES_ROLE_UNK,
    SES_ROLE_SEP,
    SES_ROLE_PAD,
    SES_ROLE_CLS,
    SES_ROLE_MASK,
    SES_ROLE_COUNT
} ses_token_role;

typedef struct ses_tokenizer_config {
    int32_t role[SES_ROLE_COUNT];  /* ids of the special tokens; -1: none */
    int64_t model_max_length;      /* 0: not given */
    int64_t truncation_max_length; /* max_length of the truncation stored in tokenizer.json; 0: none */
    bool clean_up_spaces;          /* decoding removes spaces before punctuation */
    bool may_clean_up_spaces;      /* false for BPE: transformers never cleans up its texts */
    bool sets_segments;            /* the tokenizer gives the model segment ids (token_type_ids) */
    bool truncate_left;
    bool has_subword_prefix; /* tokens inside a word are marked: "##" */
    bool pad_left;           /* padding_side */
} ses_tokenizer_config;

/* Does the tokenizer class, NULL: the one of model_type, give segment ids? See ses_model_sets_segments. */
typedef bool ses_sets_segments_fn(const char *tokenizer_class, const char *model_type);

/* config, map: the parsed files; NULL: absent. sets_segments decides if config does not list its inputs
 * (model_input_names); NULL: no segment ids. */
void ses_tokenizer_config_from_json(ses_tokenizer_config *c, const ses_json *config, const ses_json *map,
                                    const char *model_type, ses_sets_segments_fn *sets_segments,
                                    const ses_tokenizer *t);
/* The same from a folder. Fails if a file exists and cannot be parsed. */
bool ses_tokenizer_config_read(ses_tokenizer_config *c, const char *dir, const char *model_type,
                               ses_sets_segments_fn *sets_segments, const ses_tokenizer *t, ses_err *e);

#endif
