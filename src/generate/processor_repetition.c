/* Processors against repetition: of tokens, of n-grams, of the source. */
#include "logits_processor.h"

#include <math.h>
#include <string.h>

/* A token's score is divided by the penalty where positive, multiplied where negative; each token once. */
static void penalize(ses_logits_ctx *s, ses_ids ids, float penalty)
{
    ses_ranked_token *old =
        s->rank; /* scores as they were, so that a token that occurs twice is penalized once */
    for (int64_t i = 0; i < ids.n; i++)
        if (ids.id[i] < s->vocab) old[ids.id[i]].x = s->score[ids.id[i]];
    for (int64_t i = 0; i < ids.n; i++)
        if (ids.id[i] < s->vocab) {
            float x = old[ids.id[i]].x;
            s->score[ids.id[i]] = x < 0 ? x * penalty : x / penalty;
        }
}

static bool want_repetition(const ses_generate_options *o) { return o->repetition_penalty != 1; }
static void repetition(ses_logits_ctx *s)
{
    penalize(s, (ses_ids){ s->id, s->n }, (float)s->o->repetition_penalty);
}
const ses_logits_processor ses_process_repetition = { want_repetition, repetition };

static bool want_encoder_repetition(const ses_generate_options *o)
{
    return o->encoder_repetition_penalty != 1;
}
static void encoder_repetition(ses_logits_ctx *s)
{
    penalize(s, s->source, (float)(1 / s->o->encoder_repetition_penalty));
}
const ses_logits_processor ses_process_encoder_repetition = { want_encoder_repetition, encoder_repetition };

/* Tokens that would complete an n-gram of `seen` after the text's last n - 1 tokens. */
static void ban_ngrams(ses_logits_ctx *s, ses_ids seen, int64_t n)
{
    if (s->n < n - 1) return;
    const int32_t *last = s->id + s->n - (n - 1);
    for (int64_t w = 0; w + n <= seen.n; w++)
        if (!memcmp(seen.id + w, last, (size_t)(n - 1) * sizeof *last)) ses_logits_ban(s, seen.id[w + n - 1]);
}

static bool want_ngram(const ses_generate_options *o) { return o->no_repeat_ngram_size > 0; }
static void no_repeat_ngram(ses_logits_ctx *s)
{
    ban_ngrams(s, (ses_ids){ s->id, s->n }, s->o->no_repeat_ngram_size);
}
const ses_logits_processor ses_process_no_repeat_ngram = { want_ngram, no_repeat_ngram };

static bool want_encoder_ngram(const ses_generate_options *o) { return o->encoder_no_repeat_ngram_size > 0; }
static void encoder_ngram(ses_logits_ctx *s) { ban_ngrams(s, s->source, s->o->encoder_no_repeat_ngram_size); }
const ses_logits_processor ses_process_encoder_no_repeat_ngram = { want_encoder_ngram, encoder_ngram };
