/* Inputs of GPT-1: start, delimiter and extract tokens. */
#include "gpt_inputs.h"

#include "base/str.h"

#include <string.h>

static const char *const KIND = "gpt1";
const char *const ses_gpt_token_names[SES_GPT_TOKENS] = { "_start_", "_delimiter_", "_classify_" };

bool ses_gpt_inputs_find_tokens(ses_gpt_inputs *g, const ses_tokenizer *t)
{
    int32_t *const id[SES_GPT_TOKENS] = { &g->start, &g->delimiter, &g->extract };
    bool all = true;
    for (int i = 0; i < SES_GPT_TOKENS; i++) {
        *id[i] = ses_tokenizer_token_to_id(t, ses_gpt_token_names[i], strlen(ses_gpt_token_names[i]));
        all = all && *id[i] >= 0;
    }
    return all;
}

bool ses_gpt_inputs_read(const ses_json *config, const ses_tokenizer *t, ses_gpt_inputs *g, ses_err *e)
{
    const ses_json *v = ses_json_get(config, SES_GPT_INPUTS_KEY), *both = ses_json_get(v, "both_orders");
    *g = (ses_gpt_inputs){ .start = -1, .delimiter = -1, .extract = -1 };
    if (!v || ses_json_type_of(v) == SES_JSON_NULL) return true;
    const char *kind = ses_json_string(ses_json_get(v, "kind"), NULL);
    if (!kind || strcmp(kind, KIND) || (both && !ses_json_bool(both, &g->both_orders)))
        return ses_fail(e, SES_EFORMAT,
                        "config.json: \"" SES_GPT_INPUTS_KEY
                        "\": expected {\"kind\": \"gpt1\", \"both_orders\": true or false}");
    g->enabled = true;
    if (!t || ses_gpt_inputs_find_tokens(g, t)) return true;
    return ses_fail(e, SES_EFORMAT,
                    "config.json has the inputs of GPT-1, but the tokenizer lacks a token of them: expected "
                    "%s, %s and %s",
                    ses_gpt_token_names[0], ses_gpt_token_names[1], ses_gpt_token_names[2]);
}

void ses_gpt_inputs_put(const ses_gpt_inputs *g, ses_json_writer *w)
{
    ses_json_put_key(w, SES_GPT_INPUTS_KEY);
    ses_json_begin_object(w);
    ses_json_put_key(w, "kind"), ses_json_put_string(w, KIND);
    ses_json_put_key(w, "both_orders"), ses_json_put_bool(w, g->both_orders);
    ses_json_end_object(w);
}

bool ses_gpt_inputs_encode(ses_encode_ctx *k, const ses_input *in, int64_t max_tokens, size_t *n,
                           bool *truncated, ses_err *e)
{
    int64_t special = in->pair.p ? 3 : 2;
    if (max_tokens <= special)
        return ses_fail(e, SES_EARG,
                        "%lld tokens per sequence leave no space between start and extract token",
                        (long long)max_tokens);
    ses_encode_options o = { .no_special = true,
                             .full_overflow = true, /* to know whether tokens are left out */
                             .truncation = SES_TRUNCATE_LONGEST_FIRST,
                             .max_length = max_tokens - special };
    if (!ses_encode(k, in, &o, e)) return false;
    *n = ses_encode_ctx_result(k)->n + (size_t)special;
    *truncated = ses_encode_ctx_overflow_count(k) > 0;
    return true;
}

/* Appends the ids of text `which`. */
static int32_t *put_text(const ses_encoding *x, int8_t which, int32_t *id)
{
    for (size_t i = 0; i < x->n; i++)
        if (x->sequence_id[i] == which) *id++ = x->id[i];
    return id;
}

void ses_gpt_inputs_fill(const ses_gpt_inputs *g, const ses_encode_ctx *k, bool pair, bool swapped,
                         int32_t *id)
{
    const ses_encoding *x = ses_encode_ctx_result(k);
    *id++ = g->start;
    id = put_text(x, swapped, id);
    if (pair) *id++ = g->delimiter, id = put_text(x, !swapped, id);
    *id = g->extract;
}
