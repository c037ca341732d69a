/* A label for every token. */
#include "nn.h"

#include <math.h>

static int64_t classes(const ses_config *c) { return c->labels; }

static void add(ses_head_params *h, ses_store *s, const ses_config *c, ses_tensor *token)
{
    (void)token;
    if (c->own_head) {
        ses_own_head_add(h, s, c);
        return;
    }
    ses_head_in_add(h, s, c, "tag");
    h->out = ses_dense_add(s, c->labels, ses_head_width(c), SES_BIAS, "tag");
}

static void run(const ses_head_params *h, const ses_head_use *use, ses_pass *p, const ses_state *at)
{
    ses_tape *t = p->tape;
    const int32_t *labels = ses_head_labels(use, p->batch);
    double drop = p->c->drop_tag ? fmax(p->c->drop_tag, 0) : ses_head_drop(p->c);
    ses_tensor *x =
        p->c->own_head ? ses_own_head_run(h, p, at, true) : ses_dropout(t, ses_head_in(h, p, at->x), drop);
    ses_tensor *y = ses_dense_run(t, h->out, x, SES_ACT_NONE);
    ses_pass_output(p, SES_PER_TOKEN, y, "%s", use->output);
    if (labels) ses_pass_loss(p, ses_cross_entropy(t, y, ses_tape_ints(t, labels, at->seqs->tokens)));
}

const ses_head ses_head_tag = { .name = "tag",
                                .takes_own = true,
                                .peft = "TOKEN_CLS",
                                .does = "labels every token",
                                .axis = SES_LABEL_PER_TOKEN,
                                .classes = classes,
                                .add = add,
                                .run = run };
