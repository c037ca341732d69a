/* Does the second segment follow the first? Two scores from the pooled first token. */
#include "nn.h"

static int64_t classes(const ses_config *c)
{
    (void)c;
    return 2;
}

static void add(ses_head_params *h, ses_store *s, const ses_config *c, const ses_encoder *n)
{
    (void)n;
    h->out = ses_dense_add(s, 2, c->hidden, "next");
}

static void run(const ses_head_params *h, const ses_head_use *use, ses_pass *p, ses_tensor *x)
{
    const int32_t *labels = ses_head_labels(use, p->batch);
    ses_tensor *y = ses_dense_run(p->tape, h->out, x, SES_ACT_NONE);
    ses_pass_output(p, SES_PER_SEQUENCE, y, "%s", use->output);
    if (labels)
        ses_pass_loss(p, ses_cross_entropy(p->tape, y, ses_tape_ints(p->tape, labels, p->batch->seqs)));
}

const ses_head ses_head_next_sentence = { .name = "next-sentence",
                                          .does = "tells whether a sentence follows another",
                                          .pooled = true,
                                          .axis = SES_LABEL_PER_SEQUENCE,
                                          .classes = classes,
                                          .add = add,
                                          .run = run };
