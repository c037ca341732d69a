/* A mixture of experts instead of a feed-forward block (Shazeer et al. 2017, as in nomic-embed v2): each
 * token passes the experts that a linear router finds likeliest, and gets the sum of their outputs, weighted
 * by their probabilities. A token's result does not depend on the others of its batch. */
#include "nn.h"

#include "base/alloc.h"
#include "op/op.h"
#include "tensor/device_impl.h"

#include <stdio.h>

ses_experts *ses_experts_add(ses_store *s, const ses_config *c, const char *name)
{
    ses_err none = { 0 };
    int64_t n = c->ffn.experts;
    char part[160];
    ses_experts *x = ses_alloc(sizeof *x, &none);
    ses_dense *d = x ? ses_alloc_array(2 * (size_t)n, sizeof *d, &none) : NULL;
    if (!d) {
        ses_free(x);
        return NULL;
    }
    *x = (ses_experts){ .up = d, .down = d + n, .n = n };
    x->router = ses_dense_add(s, n, c->hidden, SES_NO_BIAS, "%s.router", name);
    for (int64_t i = 0; i < n; i++) {
        x->up[i] = ses_dense_add(s, c->ffn.width, c->hidden, SES_NO_BIAS, "%s.up.%d", name, (int)i);
        snprintf(part, sizeof part, "%s.down.%d", name, (int)i);
        x->down[i] = ses_dense_add_layout(s, SES_IN_OUT, c->hidden, c->ffn.width, SES_NO_BIAS, part);
    }
    snprintf(part, sizeof part, "%s.experts.bias", name);
    x->bias = ses_store_add(s, part, SES_DIM(c->hidden), SES_INIT_ZERO);
    return x;
}

void ses_experts_free(ses_experts *x)
{
    if (x) ses_free(x->up);
    ses_free(x);
}

/* The experts of token t by rank: the likeliest first, the lower number first if equal. */
static void choose(const ses_real *p, int64_t n, int64_t top, int32_t *chosen)
{
    for (int64_t k = 0; k < top; k++) {
        chosen[k] = -1;
        for (int64_t i = 0; i < n; i++) {
            bool taken = false;
            for (int64_t j = 0; j < k; j++) taken |= chosen[j] == i;
            if (!taken && (chosen[k] < 0 || p[i] > p[chosen[k]])) chosen[k] = (int32_t)i;
        }
    }
}

/* Which rows pass which experts. row: tokens of expert 0, then of expert 1, ...; prob: the element of the
 * probabilities of each; at[k * tokens + t]: where token t's expert of rank k is in this order. */
typedef struct routes {
    int32_t *row, *prob, *at, *first;
} routes;

static bool routes_make(routes *r, ses_tape *t, const ses_tensor *p, int64_t top)
{
    int64_t tokens = ses_rows(p), n = ses_cols(p), n_rows = 0;
    int32_t *chosen = ses_tape_host_alloc(t, (size_t)(tokens * top), sizeof *chosen);
    r->row = ses_tape_host_alloc(t, (size_t)(tokens * top), sizeof *r->row);
    r->prob = ses_tape_host_alloc(t, (size_t)(tokens * top), sizeof *r->prob);
    r->at = ses_tape_host_alloc(t, (size_t)(tokens * top), sizeof *r->at);
    r->first = ses_tape_host_alloc(t, (size_t)n + 1, sizeof *r->first);
    if (!chosen || !r->row || !r->prob || !r->at || !r->first) return false;
    for (int64_t i = 0; i < tokens; i++) choose(p->f + i * n, n, top, chosen + i * top);
    for (int64_t e = 0; e < n; e++) {
        r->first[e] = (int32_t)n_rows;
        for (int64_t i = 0; i < tokens * top; i++) {
            if (chosen[i] != e) continue;
            r->row[n_rows] = (int32_t)(i / top), r->prob[n_rows] = (int32_t)(i / top * n + e);
            r->at[i % top * tokens + i / top] = (int32_t)n_rows++;
        }
    }
    r->first[n] = (int32_t)n_rows;
    return true;
}

/* Rows of x times one factor each, w [rows, 1]. */
static ses_tensor *weigh(ses_tape *t, ses_tensor *x, ses_tensor *w)
{
    int64_t width = x ? ses_cols(x) : 0;
    ses_real *ones = x ? ses_tape_host_alloc(t, (size_t)width, sizeof *ones) : NULL;
    for (int64_t i = 0; ones && i < width; i++) ones[i] = 1;
    if (!ones || !w) return NULL;
    ses_tensor *wide =
        ses_linear(t, w, ses_tape_input(t, ones, SES_DIM(width, 1)), NULL, SES_ACT_NONE, SES_OUT_IN);
    return ses_mul(t, x, wide);
}

ses_tensor *ses_experts_run(const ses_experts *x, ses_forward_ctx *p, ses_tensor *in)
{
    const ses_config *c = p->c;
    ses_tape *t = p->tape;
    int64_t top = c->ffn.expert_top, tokens = in ? ses_rows(in) : 0;
    routes r;
    if (!ses_tape_device(t)->is_host) {
        ses_tape_fail(t, SES_EUNSUPPORTED, "a mixture of experts runs on the CPU only: use --device cpu");
        return NULL;
    }
    ses_tensor *prob = in ? ses_softmax(t, ses_dense_run(t, x->router, in, SES_ACT_NONE)) : NULL, *all = NULL;
    if (!prob || !routes_make(&r, t, prob, top)) return NULL;
    for (int64_t e = 0; e < x->n; e++) {
        int64_t n = r.first[e + 1] - r.first[e];
        if (!n) continue;
        ses_tensor *h = ses_gather(t, in, ses_tape_ints(t, r.row + r.first[e], n));
        h = ses_dense_run(t, x->up[e], h, c->ffn.act);
        h = ses_dense_run(t, x->down[e], ses_dropout(t, h, c->dropout.act), SES_ACT_NONE);
        all = all ? ses_append_rows(t, all, h) : h;
    }
    prob = ses_gather(t, ses_reshape(t, prob, SES_DIM(tokens * x->n, 1)),
                      ses_tape_ints(t, r.prob, tokens * top));
    all = weigh(t, all, prob);
    ses_tensor *y = NULL;
    for (int64_t k = 0; all && k < top; k++) {
        ses_tensor *part = ses_gather(t, all, ses_tape_ints(t, r.at + k * tokens, tokens));
        y = y ? ses_add(t, y, part) : part;
    }
    return y ? ses_affine(t, y, NULL, x->bias) : NULL;
}
