/* Weights that an ELECTRA generator shares with the model (Clark et al. 2020, section 3.2): none, the
 * embeddings, or the whole encoder. Heads are never shared. Gradients of a shared weight add up in the
 * model's. */
#include "objective_mix.h"

#include "model/model_desc.h"

#include <string.h>

static bool is_embedding(const char *name)
{
    return !strncmp(name, "embed.", 6) && strncmp(name, "embed.project", 13) != 0;
}

static bool fail_shape(const char *name, ses_generator_tying tying, ses_err *e)
{
    if (tying == SES_TIE_ALL)
        return ses_fail(
            e, SES_EARG,
            "the generator's \"%s\" and the model's have different shapes: with all weights tied, "
            "generator and model need the same sizes; leave out the generator's own config",
            name);
    return ses_fail(e, SES_EARG,
                    "the generator's \"%s\" and the model's have different shapes: they share their "
                    "embeddings and need the same embedding_size, vocab_size and max_position_embeddings; or "
                    "tie no weights (generator-tying none)",
                    name);
}

bool ses_generator_tie(ses_model *model, ses_model *generator, ses_generator_tying tying, ses_err *e)
{
    ses_store *from = ses_model_store(model), *to = ses_model_store(generator);
    for (size_t i = 0; i < generator->first_head_param && tying != SES_TIE_NONE; i++) {
        const ses_param *p = ses_store_at(to, i), *q = ses_store_find(from, p->name);
        if (tying == SES_TIE_EMBEDDINGS && !is_embedding(p->name)) continue;
        if (!q || !ses_same_shape(p->tensor, q->tensor)) return fail_shape(p->name, tying, e);
        ses_store_share(to, i, q->tensor);
    }
    if (tying != SES_TIE_ALL || model->first_head_param == generator->first_head_param) return true;
    return ses_fail(e, SES_EARG,
                    "the model has %zu weights and the generator %zu: with all weights tied, both need the "
                    "same number of layers",
                    model->first_head_param, generator->first_head_param);
}
