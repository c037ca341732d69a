/* Inputs of GPT-1 (Radford et al. 2018) for causal models: a text is [start] text [extract], a pair is
 * [start] a [delimiter] b [extract]; the head reads the last token, [extract]. For similarity a pair is also
 * read in the other order, and the scores of both are added: the head is linear without a bias, so that this
 * is the score of the sum of both states.
 *
 * The folder's config.json has "sesame_inputs": { "kind": "gpt1", "both_orders": true }. A
 * ses_gpt_inputs is a plain value. Functions keep nothing. */
#ifndef SES_TASK_GPT_INPUTS_H
#define SES_TASK_GPT_INPUTS_H

#include "sesame/json.h"
#include "sesame/tokenizer.h"

enum { SES_GPT_TOKENS = 3 };
typedef struct ses_gpt_inputs {
    int32_t start, delimiter, extract; /* ids */
    bool both_orders;
    bool enabled; /* false: the model has other inputs */
} ses_gpt_inputs;

/* Names of the three tokens, in the order of the struct. */
extern const char *const ses_gpt_token_names[SES_GPT_TOKENS];
#define SES_GPT_INPUTS_KEY "sesame_inputs"

/* The inputs of a config.json: enabled false if it has none. Fails if the entry is not valid or the
 * tokenizer lacks a token. t NULL: tokens are not looked up. */
bool ses_gpt_inputs_read(const ses_json *config, const ses_tokenizer *t, ses_gpt_inputs *out, ses_err *e);
/* Looks up the tokens; false: one is missing. */
bool ses_gpt_inputs_find_tokens(ses_gpt_inputs *g, const ses_tokenizer *t);
/* Writes the member of config.json. */
void ses_gpt_inputs_put(const ses_gpt_inputs *g, ses_json_writer *w);

/* Number of ids of a text or pair with at most max_tokens of them; the texts are encoded in k. *truncated:
 * tokens were left out. */
bool ses_gpt_inputs_encode(ses_encode_ctx *k, const ses_input *in, int64_t max_tokens, size_t *n,
                           bool *truncated, ses_err *e);
/* Fills id with the n ids of the last ses_gpt_inputs_encode. pair: its input was a pair; swapped: the second
 * text first. */
void ses_gpt_inputs_fill(const ses_gpt_inputs *g, const ses_encode_ctx *k, bool pair, bool swapped,
                         int32_t *id);

struct ses_pipeline;
struct ses_request;
/* gpt_request.c: adds the sequences of a text or pair to a request, one for each order. */
bool ses_gpt_inputs_add(const ses_gpt_inputs *g, struct ses_pipeline *p, struct ses_request *r,
                        const ses_input *in, int64_t tag, ses_err *e);

#endif
