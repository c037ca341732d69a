/* Processors for given token sequences: bias, bad words, suppressed tokens. */
#include "logits_processor.h"

#include <math.h>
#include <string.h>

/* Does the text end with all of ids but the last? */
static bool ends_with_prefix(const ses_logits_ctx *c, ses_ids ids)
{
    return ids.n == 1 || (ids.n > 1 && ids.n <= c->n &&
                          !memcmp(c->id + c->n - (ids.n - 1), ids.id, (size_t)(ids.n - 1) * sizeof *ids.id));
}

static bool has_bias(const ses_generate_options *o) { return o->n_sequence_bias > 0; }
static void sequence_bias(ses_logits_ctx *c)
{
    for (int64_t i = 0; i < c->o->n_sequence_bias; i++) {
        ses_ids ids = c->o->sequence_bias[i].ids;
        if (ends_with_prefix(c, ids)) c->score[ids.id[ids.n - 1]] += (float)c->o->sequence_bias[i].bias;
    }
}
const ses_logits_processor ses_processor_sequence_bias = { has_bias, sequence_bias };

static bool is_eos(const ses_generate_options *o, ses_ids ids)
{
    bool is = false;
    for (int64_t i = 0; ids.n == 1 && i < o->eos.n; i++) is |= o->eos.id[i] == ids.id[0];
    return is;
}

static bool has_bad_words(const ses_generate_options *o) { return o->n_bad_words > 0; }
static void bad_words(ses_logits_ctx *c)
{
    for (int64_t i = 0; i < c->o->n_bad_words; i++) {
        ses_ids ids = c->o->bad_words[i];
        if (!is_eos(c->o, ids) && ends_with_prefix(c, ids)) ses_logits_ban(c, ids.id[ids.n - 1]);
    }
}
const ses_logits_processor ses_processor_bad_words = { has_bad_words, bad_words };

static bool has_suppress(const ses_generate_options *o) { return o->suppress.n > 0; }
static void suppress(ses_logits_ctx *c) { ses_logits_ban_all(c, c->o->suppress); }
const ses_logits_processor ses_processor_suppress = { has_suppress, suppress };

static bool has_begin(const ses_generate_options *o) { return o->begin_suppress.n > 0; }
static void begin_suppress(ses_logits_ctx *c)
{
    /* the first position that is not forced */
    int64_t begin = c->prompt_len > 1 || c->o->forced_bos < 0 ? c->prompt_len : c->prompt_len + 1;
    if (c->n == begin) ses_logits_ban_all(c, c->o->begin_suppress);
}
const ses_logits_processor ses_processor_begin_suppress = { has_begin, begin_suppress };
