/* Processors for given words: biased, forbidden, suppressed. */
#include "logits_processor.h"

#include <math.h>
#include <string.h>

/* Does the text end with all but the last of these? */
static bool about_to(const ses_logits_ctx *s, ses_ids ids)
{
    return ids.n == 1 || (ids.n > 1 && ids.n <= s->n &&
                          !memcmp(s->id + s->n - (ids.n - 1), ids.id, (size_t)(ids.n - 1) * sizeof *ids.id));
}

static bool want_bias(const ses_generate_options *o) { return o->n_sequence_bias > 0; }
static void sequence_bias(ses_logits_ctx *s)
{
    for (int64_t i = 0; i < s->o->n_sequence_bias; i++) {
        ses_ids ids = s->o->sequence_bias[i].ids;
        if (about_to(s, ids)) s->score[ids.id[ids.n - 1]] += (float)s->o->sequence_bias[i].bias;
    }
}
const ses_logits_processor ses_process_sequence_bias = { want_bias, sequence_bias };

static bool is_eos(const ses_generate_options *o, ses_ids ids)
{
    bool is = false;
    for (int64_t i = 0; ids.n == 1 && i < o->eos.n; i++) is |= o->eos.id[i] == ids.id[0];
    return is;
}

static bool want_bad_words(const ses_generate_options *o) { return o->n_bad_words > 0; }
static void bad_words(ses_logits_ctx *s)
{
    for (int64_t i = 0; i < s->o->n_bad_words; i++) {
        ses_ids ids = s->o->bad_words[i];
        if (!is_eos(s->o, ids) && about_to(s, ids)) ses_logits_ban(s, ids.id[ids.n - 1]);
    }
}
const ses_logits_processor ses_process_bad_words = { want_bad_words, bad_words };

static bool want_suppress(const ses_generate_options *o) { return o->suppress.n > 0; }
static void suppress(ses_logits_ctx *s) { ses_logits_ban_all(s, s->o->suppress); }
const ses_logits_processor ses_process_suppress = { want_suppress, suppress };

static bool want_begin(const ses_generate_options *o) { return o->begin_suppress.n > 0; }
static void begin_suppress(ses_logits_ctx *s)
{
    /* Behind a forced token. */
    int64_t begin = s->prompt_len > 1 || s->o->forced_bos < 0 ? s->prompt_len : s->prompt_len + 1;
    if (s->n == begin) ses_logits_ban_all(s, s->o->begin_suppress);
}
const ses_logits_processor ses_process_begin_suppress = { want_begin, begin_suppress };
