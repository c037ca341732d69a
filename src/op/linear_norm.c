/* norm(x w' + b + residual) with an int8 weight, for inference. Each row is normalized while it is in the
 * cache and quantized for the next product. The result has the bits of the two separate ops. */
#include "gemm_weight.h"

enum { X, W, B, RESIDUAL, GAIN, BIAS };

typedef struct attr {
    ses_weight_layout layout;
    double eps;
} attr;

static bool infer(ses_node *n, ses_err *e)
{
    ses_tensor *const *in = n->in;
    bool x_is_i8 = in[X] && in[X]->i8_rows;
    if ((!x_is_i8 && !ses_check_input(n, X, "x", e)) || !ses_check_input(n, W, "weight", e) ||
        !ses_check_input(n, RESIDUAL, "residual", e) || !ses_check_input(n, GAIN, "gain", e))
        return false;
    const attr *a = n->attr;
    int64_t N = ses_weight_out(in[W], a->layout);
    if (ses_weight_in(in[W], a->layout) != ses_cols(in[X]) || ses_rows(in[X]) != ses_rows(in[RESIDUAL]) ||
        ses_cols(in[RESIDUAL]) != N || (in[B] && ses_count(in[B]) != N) || ses_count(in[GAIN]) != N ||
        !ses_same_shape(in[GAIN], in[BIAS]))
        return ses_fail(e, SES_EARG, "shapes of x, weight, residual and norm do not match");
    return ses_node_out(n, in[RESIDUAL]->dim, e);
}

static void forward(const ses_node *n)
{
    ses_tensor *const *in = n->in;
    const attr *a = n->attr;
    ses_packed_weight w = ses_pack_get(in[W], a->layout, n->k, n->exec);
    ses_gemm g = ses_gemm_nt(n->out->f, in[X]->f, NULL, ses_rows(in[X]), ses_cols(n->out), ses_cols(in[X]));
    g.packed = w.data, g.packed_dtype = w.dtype;
    g.bias = in[B] ? in[B]->f : NULL;
    ses_gemm_epilogue end = {
        .gain = in[GAIN]->f, .bias = in[BIAS]->f, .residual = in[RESIDUAL]->f, .eps = a->eps
    };
    bool fuse = ses_has_enough_rows(n->exec, g.m, g.n);
    const ses_i8_rows none = { 0 }, *rows = ses_tape_cached_i8(n->tape, in[X]), *to = NULL;
    if (!rows) rows = fuse ? &none : ses_rows_quantized(n, &g, in[X]);
    if (fuse) to = ses_tape_i8_rows(n->tape, g.m, g.n);
    if (!rows || (fuse && !to)) return;
    if (fuse) end.i8_out = *to, ses_tape_cache_i8(n->tape, n->out, to);
    n->k->gemm_i8(n->exec, &g, 1, *rows, fuse ? &end : NULL);
    if (!fuse)
        n->k->norm(n->exec, g.c, NULL, NULL, g.c, end.residual, end.gain, end.bias, g.m, g.n, a->eps, NULL);
}

static const ses_op op = {
    .name = "linear_norm", .attr_size = sizeof(attr), .infer = infer, .forward = forward
};

bool ses_linear_norm_supports(const ses_tape *t, const ses_tensor *w) { return ses_output_may_be_i8(t, w); }

ses_tensor *ses_linear_norm(ses_tape *t, ses_tensor *x, ses_tensor *w, ses_tensor *b,
                            ses_weight_layout layout, ses_tensor *residual, ses_tensor *gain,
                            ses_tensor *bias, double eps)
{
    return ses_apply(t, &op, SES_IN(x, w, b, residual, gain, bias), &(attr){ layout, eps });
}
