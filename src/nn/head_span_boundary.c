/* SpanBERT's span boundary objective (Joshi et al. 2019): predicts each token of a masked span from the two
 * tokens around the span and the position in it: h = norm(gelu(W1 [x_left | x_right | p])), y = norm(gelu(W2
 * h)), logits = E y + b, where E is the token table. A span is a run of labeled tokens. Spans at an end of
 * the sequence have no boundary token and are skipped, as are tokens beyond the last row of p. */
#include "nn.h"

static int64_t classes(const ses_config *c) { return c->vocab; }

static void add(ses_head_params *h, ses_store *s, const ses_config *c, ses_tensor *token)
{
    int64_t C = c->hidden;
    h->boundary_position =
        ses_store_add(s, "boundary.position_embeddings.weight",
                      SES_DIM(c->head.boundary_positions, c->head.boundary_width), SES_INIT_NORMAL);
    h->dense = ses_dense_add(s, C, 2 * C + c->head.boundary_width, SES_BIAS, "boundary.linear1");
    h->norm = ses_norm_add(s, C, c->norm.kind, "boundary.layer_norm1");
    h->dense2 = ses_dense_add(s, C, C, SES_BIAS, "boundary.linear2");
    h->norm2 = ses_norm_add(s, C, c->norm.kind, "boundary.layer_norm2");
    h->out.w =
        c->embed.tied ? token : ses_store_add(s, "boundary.weight", SES_DIM(c->vocab, C), SES_INIT_NORMAL);
    h->out.b = ses_store_add(s, "boundary.bias", SES_DIM(c->vocab), SES_INIT_ZERO);
}

/* For each predicted token: the tokens around its span, its position in the span, its label. */
typedef struct spans {
    int32_t *left, *right, *position, *label;
    int64_t n;
} spans;

static void find(spans *f, const ses_seqs *q, const int32_t *labels, int64_t max_positions)
{
    for (int64_t s = 0; s < q->seqs; s++) {
        int32_t first = q->host_cu_seqlens[s], end = q->host_cu_seqlens[s + 1], begin = first;
        for (int32_t t = first; t < end; t++) {
            if (labels[t] == SES_IGNORE_INDEX) {
                begin = t + 1;
                continue;
            }
            if (t + 1 < end && labels[t + 1] != SES_IGNORE_INDEX) continue; /* the span continues */
            for (int32_t i = begin; begin > first && t + 1 < end && i <= t && i - begin < max_positions;
                 i++) {
                f->left[f->n] = begin - 1, f->right[f->n] = t + 1;
                f->position[f->n] = i - begin, f->label[f->n++] = labels[i];
            }
            begin = t + 1;
        }
    }
}

static ses_tensor *transform(const ses_head_params *h, ses_forward_ctx *p, ses_tensor *x, const spans *f)
{
    ses_tape *t = p->tape;
    ses_tensor *part[] = { ses_gather(t, x, ses_tape_ints(t, f->left, f->n)),
                           ses_gather(t, x, ses_tape_ints(t, f->right, f->n)),
                           ses_gather(t, h->boundary_position, ses_tape_ints(t, f->position, f->n)) };
    x = ses_dense_run(t, h->dense, ses_concat(t, SES_LEN(part), part), SES_ACT_GELU);
    x = ses_norm_run(t, h->norm, x, NULL, p->c->norm.eps);
    x = ses_dense_run(t, h->dense2, x, SES_ACT_GELU);
    return ses_norm_run(t, h->norm2, x, NULL, p->c->norm.eps);
}

static void run(const ses_head_params *h, const ses_head_use *use, ses_forward_ctx *p, const ses_state *at)
{
    const int32_t *labels = ses_head_labels(use, p->batch);
    ses_tape *t = p->tape;
    size_t T = (size_t)at->seqs->tokens;
    if (!labels) return;
    spans f = { .left = ses_tape_host_alloc(t, T, sizeof *f.left),
                .right = ses_tape_host_alloc(t, T, sizeof *f.right) };
    f.position = ses_tape_host_alloc(t, T, sizeof *f.position),
    f.label = ses_tape_host_alloc(t, T, sizeof *f.label);
    if (!f.left || !f.right || !f.position || !f.label) return;
    find(&f, at->seqs, labels, p->c->head.boundary_positions);
    if (!f.n) return;
    ses_tensor *y = transform(h, p, at->x, &f);
    if (p->request->logits)
        ses_forward_output(p, SES_PER_ROW, ses_dense_run(t, h->out, y, SES_ACT_NONE), "%s", use->output);
    ses_forward_add_loss(p, ses_linear_cross_entropy(t, ses_dense_run_first(t, &h->out, y), h->out.w,
                                                     h->out.b, ses_tape_ints(t, f.label, f.n)));
}

const ses_head ses_head_span_boundary = { .name = "span-boundary",
                                          .pretrained = true,
                                          .description = "predicts a masked span from the tokens around it",
                                          .scores = SES_SCORES_LABELED,
                                          .axis = SES_LABEL_PER_TOKEN,
                                          .class_count = classes,
                                          .add = add,
                                          .run = run };
