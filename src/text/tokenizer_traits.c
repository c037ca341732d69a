/* Properties of a tokenizer that callers need without access to its stages. */
#include "tokenizer_impl.h"

ses_tokenizer_traits ses_tokenizer_traits_of(const ses_tokenizer *t)
{
    const ses_stage *model = t->model.stage;
    ses_tokenizer_traits out = { .model = model->type };
    out.has_subword_prefix = model->has_subword_prefix && model->has_subword_prefix(t->model.self);
    const ses_stage_list *decoder = &t->steps[SES_DECODER];
    out.decodes_bytes = decoder->n == 1 && decoder->step[0].stage == &ses_stage_dec_byte_level;
    if (t->stored.truncate) {
        out.max_length = t->stored.max_length;
        out.truncate_left = t->stored.truncate_left;
    }
    return out;
}
