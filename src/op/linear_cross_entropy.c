/* Cross entropy of x w' + b. x [R, C]: labeled rows only; w [V, C], b [V] or NULL. Logits are computed in
 * chunks of rows. Backward recomputes each chunk, unless all logits are small enough to keep. */
#include "gemm_weight.h"
#include "linear_loss.h"

#include "tensor/device_impl.h"

enum { CHUNK = 4 << 20, GPU_CHUNK = 256 << 20 }; /* logits per chunk */
/* maximum number of logits kept for backward */
static const int64_t MAX_KEPT = 16 << 20, GPU_MAX_KEPT = INT64_C(1) << 31;
enum { GPU_ROW = 64 }; /* alignment of rows of logits on a GPU */
/* saved: see cross_entropy.c; log-sum-exp and loss of each row, and with a copy mechanism -log softmax, which
 * backward replaces by the row's weight; logits */
enum { LOSS, ROWS, LOGITS };

static bool on_host(const ses_node *n) { return ses_tape_device(n->tape)->is_host; }

static bool copies(const ses_node *n) { return n->n_in > SES_LINEAR_LOSS_COPY; }

static int64_t pitch(const ses_node *n)
{
    int64_t V = n->in[1]->dim[0];
    return on_host(n) ? V : (V + GPU_ROW - 1) / GPU_ROW * GPU_ROW;
}

/* Columns of the products: V rounded up for a GPU if the weight has the capacity. The extra rows of the
 * weight are zero and get a zero gradient. */
static int64_t columns(const ses_node *n)
{
    enum { PACK = 8 };
    const ses_tensor *w = n->in[1], *b = n->in[2];
    int64_t V = w->dim[0], N = (V + PACK - 1) / PACK * PACK;
    bool has_capacity = !on_host(n) && w->capacity >= N * w->dim[1] && (!b || b->capacity >= N);
    return has_capacity ? N : V;
}

static bool keeps_logits(const ses_node *n)
{
    return ses_node_needs_backward(n) && !(on_host(n) && ses_tape_recomputing(n->tape)) &&
           ses_rows(n->in[0]) * pitch(n) <= (on_host(n) ? MAX_KEPT : GPU_MAX_KEPT);
}

static int64_t rows_at_once(const ses_node *n)
{
    if (on_host(n) && n->saved[LOGITS]) return ses_rows(n->in[0]);
    int64_t rows = (on_host(n) ? CHUNK : GPU_CHUNK) / pitch(n), all = ses_rows(n->in[0]);
    rows = rows < 16 ? 16 : rows;
    return rows < all ? rows : all;
}

static bool check_copy(const ses_node *n, ses_err *e)
{
    enum { COPY = SES_LINEAR_LOSS_COPY, TOKENS = SES_LINEAR_LOSS_TOKENS };
    int64_t rows = ses_rows(n->in[0]);
    if (!copies(n)) return true;
    if (!ses_check_input(n, COPY, "copy", e) || !ses_check_ints(n, TOKENS, "tokens", e)) return false;
    if (ses_count(n->in[COPY]) != rows || ses_count(n->in[TOKENS]) != rows)
        return ses_fail(e, SES_EARG, "%lld logits of copying and %lld tokens for %lld rows",
                        (long long)ses_count(n->in[COPY]), (long long)ses_count(n->in[TOKENS]),
                        (long long)rows);
    return ses_check_range(n, TOKENS, n->in[1]->dim[0], false, "token", e);
}

bool ses_linear_loss_infer(ses_node *n, ses_err *e)
{
    const ses_tensor *x = n->in[0], *w = n->in[1], *b = n->in[2];
    if (!ses_check_input(n, 0, "x", e) || !ses_check_input(n, 1, "weight", e) ||
        !ses_check_ints(n, 3, "labels", e))
        return false;
    if (ses_rank(w) != 2 || w->dim[1] != ses_cols(x) || (b && ses_count(b) != w->dim[0]))
        return ses_fail(e, SES_EARG, "weight must be [V, %lld] and the bias [V]", (long long)ses_cols(x));
    if (!w->data && x->requires_grad && ses_node_needs_backward(n))
        return ses_fail(e, SES_EUNSUPPORTED,
                        "the weight is stored quantized: open the model without packing for gradients");
    if (ses_count(n->in[3]) != ses_rows(x))
        return ses_fail(e, SES_EARG, "%lld labels for %lld rows", (long long)ses_count(n->in[3]),
                        (long long)ses_rows(x));
    if (!ses_check_range(n, 3, w->dim[0], true, "label", e) || !check_copy(n, e)) return false;
    if (!ses_node_save(n, LOSS, 2, e) || !ses_node_save(n, ROWS, (copies(n) ? 3 : 2) * ses_rows(x), e))
        return false;
    bool kept =
        keeps_logits(n) && ses_node_save_elems(n, LOGITS, ses_rows(x) * pitch(n), on_host(n) ? e : NULL);
    /* a GPU without enough memory recomputes them */
    if (on_host(n) && keeps_logits(n) && !kept) return false;
    n->out = ses_tensor_wrap(n->tape, n->saved[LOSS], SES_REAL, SES_DIM(1), e);
    return n->out != NULL;
}

static void logits(const ses_node *n, ses_real *out, int64_t from, int64_t rows)
{
    const ses_tensor *x = n->in[0], *w = n->in[1], *b = n->in[2];
    ses_gemm g = ses_gemm_nt(out, ses_elem_at(n, x->f, from * w->dim[1]), w->f, rows, columns(n), w->dim[1]);
    g.bias = b ? b->f : NULL;
    g.ldc = pitch(n);
    ses_gemm_weight(n, &g, NULL, w, SES_OUT_IN, NULL);
}

void ses_linear_loss_forward(const ses_node *n)
{
    int64_t all = ses_rows(n->in[0]), V = n->in[1]->dim[0], ld = pitch(n), step = rows_at_once(n);
    const int32_t *label = n->in[3]->i;
    ses_real *lse = n->saved[ROWS], *loss = lse + all;
    ses_real *kept = n->saved[LOGITS], *chunk = kept ? kept : ses_scratch_elems(n, step * ld);
    for (int64_t from = 0; chunk && from < all; from += step) {
        int64_t rows = from + step < all ? step : all - from;
        if (kept) chunk = ses_elem_at(n, kept, from * ld);
        logits(n, chunk, from, rows);
        n->k->xent_rows(n->exec, loss + from, lse + from, chunk, label + from, rows, V, ld);
    }
    if (chunk && copies(n))
        n->k->copy_rows(n->exec, loss, loss + all, n->in[SES_LINEAR_LOSS_COPY]->f,
                        n->in[SES_LINEAR_LOSS_TOKENS]->i, label, all);
    if (chunk) n->k->xent_mean(n->exec, n->saved[LOSS], loss, label, all);
}

void ses_linear_loss_backward(const ses_node *n)
{
    const ses_tensor *x = n->in[0], *w = n->in[1];
    int64_t all = ses_rows(x), V = w->dim[0], N = columns(n), C = w->dim[1], ld = pitch(n),
            step = rows_at_once(n);
    const int32_t *label = n->in[3]->i;
    ses_real *kept = n->saved[LOGITS], *chunk = kept ? kept : ses_scratch_elems(n, step * ld);
    if (!chunk) return;
    ses_dst dx = ses_grad(n, 0), dw = ses_grad(n, 1);
    ses_dst db = ses_grad_zeroed(n, 2);
    ses_real *weight = copies(n) ? n->saved[ROWS] + 2 * all : NULL;
    if (weight)
        n->k->copy_bwd(n->exec, ses_grad(n, SES_LINEAR_LOSS_COPY), weight, n->out->grad, n->saved[LOSS],
                       n->in[SES_LINEAR_LOSS_COPY]->f, n->in[SES_LINEAR_LOSS_TOKENS]->i, label, all);
    for (int64_t from = 0; from < all; from += step) {
        int64_t rows = from + step < all ? step : all - from;
        if (kept)
            chunk = ses_elem_at(n, kept, from * ld); /* overwritten by their gradient */
        else
            logits(n, chunk, from, rows);
        n->k->xent_bwd(n->exec, (ses_dst){ chunk, false }, n->out->grad, n->saved[LOSS],
                       n->saved[ROWS] + from, chunk, label + from, rows, V, ld);
        if (weight) n->k->scale_rows(n->exec, (ses_dst){ chunk, false }, chunk, weight + from, rows, ld);
        ses_gemm gx = ses_gemm_nn(ses_dst_at(n, dx, from * C).data, chunk, w->f, rows, C, N);
        ses_gemm gw = ses_gemm_tn(dw.data, chunk, ses_elem_at(n, x->f, from * C), N, C, rows);
        gx.a_row = gw.a_col = ld;
        gx.accumulate = dx.accumulate, gx.is_f32 = dx.is_f32;
        gw.accumulate = dw.accumulate || from > 0, gw.is_f32 = dw.is_f32;
        if (dx.data) ses_gemm_unpacked(n, &gx);
        if (dw.data) ses_gemm_packing(n, &gw);
        if (db.data) n->k->col_sum(n->exec, db, chunk, rows, N, ld);
    }
}

static const int32_t labels[] = { 2, SES_IGNORE_INDEX, 0, 6, 1 }, zero[] = { 0 };
static const ses_case cases[] = {
    { .dim = { { 5, 9 }, { 7, 9 }, { 7 }, { 5 } }, .ints = { [3] = labels } },
    { .dim = { { 5, 9 }, { 7, 9 }, { 0 }, { 5 } }, .ints = { [3] = labels } }, /* no bias */
    { .dim = { { 5, 16 }, { 49, 16 }, { 49 }, { 5 } }, .ints = { [3] = labels }, .scale = 3 },
    { .dim = { { 1, 1 }, { 1, 1 }, { 1 }, { 1 } }, .ints = { [3] = zero } },
};
const ses_op ses_op_linear_cross_entropy = {
    .name = "linear_cross_entropy",
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = ses_linear_loss_infer,
    .forward = ses_linear_loss_forward,
    .backward = ses_linear_loss_backward,
};

ses_tensor *ses_linear_cross_entropy(ses_tape *t, ses_tensor *x, ses_tensor *w, ses_tensor *bias,
                                     ses_tensor *label)
{
    return ses_apply(t, &ses_op_linear_cross_entropy, SES_IN(x, w, bias, label), NULL);
}
