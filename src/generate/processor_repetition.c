/* Processors against repetition of tokens and n-grams of the text or its source. */
#include "logits_processor.h"

#include <math.h>
#include <string.h>

/* Divides positive scores by the penalty and multiplies negative ones (Keskar et al. 2019), each token
 * once. */
static void penalize(ses_logits_ctx *c, ses_ids ids, float penalty)
{
    ses_ranked_token *old = c->rank; /* scores before: a repeated token is penalized once */
    for (int64_t i = 0; i < ids.n; i++)
        if (ids.id[i] < c->vocab_size) old[ids.id[i]].x = c->score[ids.id[i]];
    for (int64_t i = 0; i < ids.n; i++)
        if (ids.id[i] < c->vocab_size) {
            float x = old[ids.id[i]].x;
            c->score[ids.id[i]] = x < 0 ? x * penalty : x / penalty;
        }
}

static bool has_repetition(const ses_generate_options *o) { return o->repetition_penalty != 1; }
static void repetition(ses_logits_ctx *c)
{
    penalize(c, (ses_ids){ c->id, c->n }, (float)c->o->repetition_penalty);
}
const ses_logits_processor ses_processor_repetition = { has_repetition, repetition };

/* OpenAI's penalties by the number of times a token was generated; the prompt does not count. */
static bool has_token_counts(const ses_generate_options *o)
{
    return o->presence_penalty != 0 || o->frequency_penalty != 0;
}
static void token_counts(ses_logits_ctx *c)
{
    ses_ranked_token *count = c->rank; /* .id: times, of generated tokens only */
    const int32_t *id = c->id + c->prompt_len;
    int64_t n = c->n - c->prompt_len;
    for (int64_t i = 0; i < n; i++)
        if (id[i] < c->vocab_size) count[id[i]].id = 0;
    for (int64_t i = 0; i < n; i++)
        if (id[i] < c->vocab_size) count[id[i]].id++;
    for (int64_t i = 0; i < n; i++) {
        if (id[i] >= c->vocab_size || !count[id[i]].id) continue;
        double penalty = c->o->frequency_penalty * count[id[i]].id + c->o->presence_penalty;
        c->score[id[i]] = (float)((double)c->score[id[i]] - penalty);
        count[id[i]].id = 0; /* once for each token */
    }
}
const ses_logits_processor ses_processor_token_counts = { has_token_counts, token_counts };

static bool has_encoder_repetition(const ses_generate_options *o)
{
    return o->encoder_repetition_penalty != 1;
}
static void encoder_repetition(ses_logits_ctx *c)
{
    penalize(c, c->source, (float)(1 / c->o->encoder_repetition_penalty));
}
const ses_logits_processor ses_processor_encoder_repetition = { has_encoder_repetition, encoder_repetition };

/* Bans tokens that would complete an n-gram of `text` after the last n - 1 tokens. */
static void ban_ngrams(ses_logits_ctx *c, ses_ids text, int64_t n)
{
    if (c->n < n - 1) return;
    const int32_t *last = c->id + c->n - (n - 1);
    for (int64_t w = 0; w + n <= text.n; w++)
        if (!memcmp(text.id + w, last, (size_t)(n - 1) * sizeof *last)) ses_logits_ban(c, text.id[w + n - 1]);
}

static bool has_ngram(const ses_generate_options *o) { return o->no_repeat_ngram_size > 0; }
static void no_repeat_ngram(ses_logits_ctx *c)
{
    ban_ngrams(c, (ses_ids){ c->id, c->n }, c->o->no_repeat_ngram_size);
}
const ses_logits_processor ses_processor_no_repeat_ngram = { has_ngram, no_repeat_ngram };

static bool has_encoder_ngram(const ses_generate_options *o) { return o->encoder_no_repeat_ngram_size > 0; }
static void encoder_ngram(ses_logits_ctx *c) { ban_ngrams(c, c->source, c->o->encoder_no_repeat_ngram_size); }
const ses_logits_processor ses_processor_encoder_no_repeat_ngram = { has_encoder_ngram, encoder_ngram };
