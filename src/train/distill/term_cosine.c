/* 1 - cos of the last hidden states (DistilBERT). */
#include "distill_impl.h"

static void request(ses_output_request *want) { want->hidden_states = true; }

static bool add(ses_distill_step *s)
{
    int64_t ours = ses_distill_count(&s->ours, "hidden_states"),
            theirs = ses_distill_count(&s->theirs, "hidden_states");
    const ses_output *last = ses_distill_output(&s->ours, "hidden_states", ours - 1);
    ses_tensor *x = last ? ses_distill_project(s, last->tensor, ours - 1) : NULL;
    ses_tensor *target = ses_distill_target(s, x, ses_distill_output(&s->theirs, "hidden_states", theirs - 1),
                                            "hidden states");
    return target &&
           ses_distill_add(s, ses_teacher_loss(s->t, x, target, SES_TEACHER_COSINE, 1), s->d->o.cosine);
}

const ses_distill_term ses_distill_term_cosine = {
    .weight = offsetof(ses_distill_options, cosine), .projects = true, .request = request, .add = add
};
