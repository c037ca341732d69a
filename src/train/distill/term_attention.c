/* Squared error of attention scores before the softmax, layer by layer (TinyBERT). */
#include "distill_impl.h"

static void request(ses_output_request *want) { want->attention_scores = true; }

static bool check(const ses_distill *d, ses_err *e)
{
    int64_t ours = ses_model_part_heads(d->student, SES_PART_MAIN, 0),
            theirs = ses_model_part_heads(d->teacher, SES_PART_MAIN, 0);
    if (!ours || !theirs || ours == theirs) return true;
    return ses_fail(
        e, SES_EARG,
        "attention scores: the student has %lld heads, the teacher %lld; models with different heads can "
        "be compared by relations (relation-weight)",
        (long long)ours, (long long)theirs);
}

static bool add(ses_distill_step *s)
{
    return ses_distill_add_layers(s, "attention_scores", "attention scores", 0, s->d->o.attention);
}

const ses_distill_term ses_distill_term_attention = {
    .weight = offsetof(ses_distill_options, attention), .check = check, .request = request, .add = add
};
