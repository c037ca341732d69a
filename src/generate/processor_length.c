/* Processors for the beginning, the end and the length of a text. */
#include "logits_processor.h"

#include <math.h>

static bool has_min(const ses_generate_options *o)
{
    return (o->min_length > 0 || o->min_new_tokens > 0) && o->eos.n;
}
static void min_length(ses_logits_ctx *c)
{
    if (c->n < c->min_length) ses_logits_ban_all(c, c->o->eos);
}
const ses_logits_processor ses_processor_min_length = { has_min, min_length };

static void force(ses_logits_ctx *c, ses_ids ids)
{
    for (int64_t i = 0; i < c->vocab_size; i++) c->score[i] = -INFINITY;
    for (int64_t i = 0; i < ids.n; i++)
        if (ids.id[i] >= 0 && ids.id[i] < c->vocab_size) c->score[ids.id[i]] = 0;
}

static bool has_bos(const ses_generate_options *o) { return o->forced_bos >= 0; }
static void forced_bos(ses_logits_ctx *c)
{
    if (c->n == 1) force(c, (ses_ids){ &c->o->forced_bos, 1 });
}
const ses_logits_processor ses_processor_forced_bos = { has_bos, forced_bos };

static bool has_eos(const ses_generate_options *o) { return o->forced_eos.n > 0; }
static void forced_eos(ses_logits_ctx *c)
{
    if (c->n == c->max_length - 1) force(c, c->o->forced_eos);
}
const ses_logits_processor ses_processor_forced_eos = { has_eos, forced_eos };

static bool has_decay(const ses_generate_options *o) { return o->decay_factor != 0; }
static void length_decay(ses_logits_ctx *c)
{
    int64_t excess = c->n - (c->prompt_len + c->o->decay_start);
    float factor = (float)(pow(c->o->decay_factor, (double)excess) - 1);
    for (int64_t i = 0; excess > 0 && i < c->o->eos.n; i++) {
        if (c->o->eos.id[i] >= c->vocab_size) continue;
        float *x = &c->score[c->o->eos.id[i]];
        if (*x > -INFINITY) *x += fabsf(*x) * factor;
    }
}
const ses_logits_processor ses_processor_length_decay = { has_decay, length_decay };
