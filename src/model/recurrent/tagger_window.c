/* window: a word is labeled by the words around it (Collobert et al. 2011, window approach): a linear layer
 * over the vectors of a window of words, then a hard tanh. */
#include "tagger_encoder.h"

static bool check(ses_config *c, ses_err *e)
{
    c->layers = 1;
    return ses_tagger_check_window(c, e);
}

static void add(ses_tagger_params *g, ses_store *s, const ses_config *c, int64_t width)
{
    g->pad = ses_store_add(s, "pad", SES_DIM(1, width), SES_INIT_NORMAL);
    g->conv = ses_dense_add(s, c->hidden, c->tagger.window * width, SES_BIAS, "conv");
}

static ses_tensor *run(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x,
                       ses_tensor *late)
{
    const ses_tagger_params *g = k->priv;
    (void)late;
    x = ses_tagger_windows(p, q, x, g->pad, p->c->tagger.window);
    return x ? ses_tagger_hard_tanh(p->tape, ses_dense_run(p->tape, g->conv, x, SES_ACT_NONE)) : NULL;
}

const ses_tagger_encoder ses_tagger_window = { .name = "window", .check = check, .add = add, .run = run };
