/* Inputs of GPT-1 in pipelines. */
#include "gpt_inputs.h"
#include "task/pipeline_impl.h"

bool ses_gpt_inputs_add(const ses_gpt_inputs *g, ses_pipeline *p, ses_request *r, const ses_input *in,
                        int64_t tag, ses_err *e)
{
    size_t n;
    bool truncated, pair = in->pair.p != NULL;
    if (g->both_orders && !pair)
        return ses_fail(e, SES_EARG, "the model compares pairs in both orders: give a second text");
    for (int k = 0; k <= g->both_orders; k++) {
        if (!ses_gpt_inputs_encode(p->tokens, in, p->settings.max_seq_len, &n, &truncated, e)) return false;
        if (!k) r->truncated += (int64_t)ses_encode_ctx_overflow_count(p->tokens);
        ses_seq *q = ses_request_add_sequence(r, ses_encode_ctx_result(p->tokens), e);
        int32_t *id = q ? ses_arena_array(&r->mem, n, sizeof *id, e) : NULL;
        int32_t *type_id = id ? ses_arena_array(&r->mem, n, sizeof *type_id, e) : NULL;
        if (!type_id) return false;
        ses_gpt_inputs_fill(g, p->tokens, pair, k, id);
        r->tokens += (int64_t)(n - q->n);
        q->n = n, q->id = id, q->type_id = type_id, q->tag = tag;
    }
    return true;
}
