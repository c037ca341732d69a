/* Processors for where a text begins and ends. */
#include "logits_processor.h"

#include <math.h>

static bool want_min(const ses_generate_options *o)
{
    return (o->min_length > 0 || o->min_new_tokens > 0) && o->eos.n;
}
static void min_length(ses_logits_ctx *s)
{
    if (s->n < s->min_length) ses_logits_ban_all(s, s->o->eos);
}
const ses_logits_processor ses_process_min_length = { want_min, min_length };

static void force(ses_logits_ctx *s, ses_ids ids)
{
    for (int64_t i = 0; i < s->vocab; i++) s->score[i] = -INFINITY;
    for (int64_t i = 0; i < ids.n; i++)
        if (ids.id[i] >= 0 && ids.id[i] < s->vocab) s->score[ids.id[i]] = 0;
}

static bool want_bos(const ses_generate_options *o) { return o->forced_bos >= 0; }
static void forced_bos(ses_logits_ctx *s)
{
    if (s->n == 1) force(s, (ses_ids){ &s->o->forced_bos, 1 });
}
const ses_logits_processor ses_process_forced_bos = { want_bos, forced_bos };

static bool want_eos(const ses_generate_options *o) { return o->forced_eos.n > 0; }
static void forced_eos(ses_logits_ctx *s)
{
    if (s->n == s->max_length - 1) force(s, s->o->forced_eos);
}
const ses_logits_processor ses_process_forced_eos = { want_eos, forced_eos };

static bool want_decay(const ses_generate_options *o) { return o->decay_factor != 0; }
static void length_decay(ses_logits_ctx *s)
{
    int64_t beyond = s->n - (s->prompt_len + s->o->decay_start);
    float factor = (float)(pow(s->o->decay_factor, (double)beyond) - 1);
    for (int64_t i = 0; beyond > 0 && i < s->o->eos.n; i++) {
        if (s->o->eos.id[i] >= s->vocab) continue;
        float *x = &s->score[s->o->eos.id[i]];
        if (*x > -INFINITY) *x += fabsf(*x) * factor;
    }
}
const ses_logits_processor ses_process_length_decay = { want_decay, length_decay };
