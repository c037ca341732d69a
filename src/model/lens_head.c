/* Logits of hidden states of any layer: the final norm and the LM head, as after the last layer. */
#include "model_desc.h"

static const ses_stack *lm_stack(const ses_model *m) { return &m->stack[m->stack[1].layer ? 1 : 0]; }

const ses_head_use *ses_model_lens_head(const ses_model *m, ses_err *e)
{
    for (size_t i = 0; i < SES_LEN(m->class->head) && m->class->head[i].head; i++)
        if (m->class->head[i].head->is_lm) return &m->class->head[i];
    ses_fail(e, SES_EUNSUPPORTED, "%s has no language model head", m->class->name);
    return NULL;
}

ses_tensor *ses_model_lens(const ses_model *m, ses_tape *t, ses_tensor *x, bool last)
{
    static const ses_output_request none = { 0 };
    const ses_stack *k = lm_stack(m);
    const ses_config *c = &m->c;
    const ses_head_use *use = ses_model_lens_head(m, NULL);
    if (!use) return NULL;
    ses_forward_ctx p = { .tape = t, .c = c, .request = &none };
    double eps = c->norm.final_eps > 0 ? c->norm.final_eps : c->norm.eps;
    if (!last && k->final_norm.gain) x = ses_norm_run(t, k->final_norm, x, NULL, eps);
    if (!last && k->project_out.w) x = ses_dense_run(t, k->project_out, x, SES_ACT_NONE);
    return ses_lm_logits(&m->head[use - m->class->head], &p, x);
}
