/* Squared error of embeddings and hidden states, layer by layer (TinyBERT). */
#include "distill_impl.h"

static void request(ses_output_request *want) { want->hidden_states = true; }

static bool add(ses_distill_step *s)
{
    return ses_distill_add_layers(s, "hidden_states", "hidden states", 1, s->d->o.hidden);
}

const ses_distill_term ses_distill_term_hidden = {
    .weight = offsetof(ses_distill_options, hidden), .projects = true, .request = request, .add = add
};
