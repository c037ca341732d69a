/* Classifiers after inner layers: parameters, scores, losses. */
#include "exit_heads.h"

#include "base/alloc.h"

bool ses_exits_add(ses_exits *x, ses_store *s, const ses_config *c, ses_err *e)
{
    *x = (ses_exits){ .dropout = ses_head_dropout_rate(c) };
    if (!c->exits.n) return true;
    x->head = ses_alloc_array((size_t)c->exits.n, sizeof *x->head, e);
    if (!x->head) return false;
    int64_t width = ses_head_width(c);
    for (int64_t i = 1; i < c->layers; i++) {
        ses_exit_head h = { .layer = i };
        if (!(c->exits.layers[i / 64] >> i % 64 & 1)) continue;
        if (!c->exits.linear)
            h.dense = ses_dense_add(s, width, width, SES_BIAS, SES_EXIT_PARAMS "%d.dense", (int)i);
        h.out = ses_dense_add(s, c->labels, width, SES_BIAS, SES_EXIT_PARAMS "%d.out", (int)i);
        x->head[x->n++] = h;
    }
    return ses_store_ok(s, e);
}

void ses_exits_free(ses_exits *x)
{
    ses_free(x->head);
    *x = (ses_exits){ 0 };
}

static ses_tensor *final_norm(const ses_stack *k, ses_forward_ctx *p, ses_tensor *x)
{
    double eps = p->c->norm.final_eps > 0 ? p->c->norm.final_eps : p->c->norm.eps;
    return k->final_norm.gain ? ses_norm_run(p->tape, k->final_norm, x, NULL, eps) : x;
}

ses_tensor *ses_exit_head_run(const ses_exits *x, const ses_exit_head *h, const ses_stack *k,
                              ses_forward_ctx *p, ses_tensor *state)
{
    ses_tape *t = p->tape;
    ses_state at = { .x = state, .seqs = &p->in };
    ses_tensor *y;
    if (p->c->summary.kind < SES_SUMMARY_MEAN) /* one row of each text: the norm reads only these */
        y = final_norm(k, p, ses_summary_gather(p, &at));
    else {
        at.x = final_norm(k, p, state);
        y = ses_summary_gather(p, &at);
    }
    if (h->dense.w) y = ses_dense_run(t, h->dense, y, SES_ACT_TANH);
    return ses_dense_run(t, h->out, ses_dropout(t, y, x->dropout), SES_ACT_NONE);
}

ses_tensor *ses_exits_train(const ses_exits *x, const ses_stack *k, ses_forward_ctx *p, ses_tensor *last,
                            ses_tensor *last_loss, const int32_t *label)
{
    ses_tape *t = p->tape;
    bool joint = x->loss == SES_EXITS_JOINT;
    double weights = joint ? (double)k->depth : 0;
    ses_tensor *labels = ses_tape_ints(t, label, p->in.seqs), *sum = NULL;
    for (int64_t i = 0; joint && i < x->n; i++) weights += (double)x->head[i].layer;
    if (joint) sum = ses_scale(t, last_loss, (double)k->depth / weights);
    for (int64_t i = 0; i < x->n && p->layer; i++) {
        const ses_exit_head *h = &x->head[i];
        ses_tensor *y = ses_exit_head_run(x, h, k, p, p->layer[h->layer]);
        ses_tensor *loss =
            x->from_last ? ses_teacher_loss(t, y, last, SES_TEACHER_KL, 1) : ses_cross_entropy(t, y, labels);
        if (joint) loss = ses_scale(t, loss, (double)h->layer / weights);
        sum = sum ? ses_add(t, sum, loss) : loss;
    }
    return sum;
}
