/* [x w0' + b0 | x w1' + b1 | ...] with int8 weights, for inference: [T, n N]. For attention the output may be
 * int8 only, quantized by head: planes [n][heads][T][4 ses_quad_count(N / heads)] and largest magnitudes
 * [n][heads][T]. */
#include "gemm_weight.h"

enum { MAX_WEIGHTS = 4 };

typedef struct attr {
    int n;
    ses_weight_layout layout;
    int64_t heads; /* 0: output in reals */
} attr;

static const attr *attr_of(const ses_node *n) { return n->attr; }

static bool infer(ses_node *n, ses_err *e)
{
    const attr *a = attr_of(n);
    ses_tensor *x = n->in[0];
    if (!ses_check_input(n, 0, "x", e) || !ses_check_input(n, 1, "weight", e)) return false;
    int64_t T = ses_rows(x), N = ses_weight_out(n->in[1], a->layout);
    if (ses_weight_in(n->in[1], a->layout) != ses_cols(x) || (a->heads && N % a->heads))
        return ses_fail(e, SES_EARG, "shapes of x, weight and heads do not match");
    for (int i = 0; i < a->n; i++) {
        const ses_tensor *w = n->in[1 + i], *b = n->in[1 + a->n + i];
        if (!ses_same_shape(w, n->in[1]) || (b && ses_count(b) != N))
            return ses_fail(e, SES_EARG, "all weights and all biases must have the same shape");
    }
    if (!a->heads || !ses_has_enough_rows(n->exec, T, N)) return ses_node_out(n, SES_DIM(T, a->n * N), e);
    n->out = ses_tensor_wrap(n->tape, NULL, n->dtype, SES_DIM(T, a->n * N), e);
    if (n->out) n->out->i8_rows = ses_tape_i8_rows(n->tape, a->n * T * a->heads, N / a->heads);
    return n->out && n->out->i8_rows;
}

static void forward(const ses_node *n)
{
    const attr *a = attr_of(n);
    ses_tensor *x = n->in[0];
    int64_t T = ses_rows(x), N = ses_weight_out(n->in[1], a->layout);
    const ses_i8_rows *to = n->out->i8_rows;
    ses_gemm g[MAX_WEIGHTS];
    ses_gemm_epilogue end[MAX_WEIGHTS] = { 0 };
    for (int i = 0; i < a->n; i++) {
        const ses_tensor *w = n->in[1 + i], *b = n->in[1 + a->n + i];
        g[i] = ses_gemm_nt(to ? NULL : n->out->f + i * N, x->f, NULL, T, N, ses_cols(x));
        g[i].ldc = a->n * N;
        g[i].packed = ses_pack_get(w, a->layout, n->k, n->exec).data, g[i].packed_dtype = SES_I8;
        g[i].bias = b ? b->f : NULL;
        if (to)
            end[i] = (ses_gemm_epilogue){ .i8_out = ses_i8_rows_plane(to, i, T, a->heads, N),
                                          .group_cols = N / a->heads };
    }
    const ses_i8_rows *rows = ses_rows_quantized(n, &g[0], x);
    if (rows) n->k->gemm_i8(n->exec, g, a->n, *rows, to ? end : NULL);
}

static const ses_op op = {
    .name = "linear_fused", .attr_size = sizeof(attr), .infer = infer, .forward = forward
};

ses_tensor *ses_linear_fused(ses_tape *t, ses_tensor *x, int n, ses_tensor *const w[], ses_tensor *const b[],
                             ses_weight_layout layout, int64_t heads)
{
    ses_tensor *in[1 + 2 * MAX_WEIGHTS] = { x };
    for (int i = 0; i < n && i < MAX_WEIGHTS; i++) in[1 + i] = w[i], in[1 + n + i] = b[i];
    return ses_apply(t, &op, in, 1 + 2 * n, &(attr){ n, layout, heads });
}
