/* Recurrent layers against PyTorch (fixtures/recurrent.json, made by recurrent.py): two bidirectional layers
 * over ragged sequences, and a projected LSTM with initial states; outputs and every gradient. */
#include "base/alloc.h"
#include "check.h"
#include "op/op.h"
#include "sesame/json.h"
#include "sesame/unstable/store.h"
#include "tensor/device_impl.h"

#include <math.h>

static ses_real *numbers(const ses_json *v)
{
    ses_real *x = ses_alloc_array(ses_json_len(v) + 1, sizeof *x, NULL);
    for (size_t i = 0; x && i < ses_json_len(v); i++) {
        double d = NAN;
        ses_json_real(ses_json_at(v, i), &d);
        x[i] = (ses_real)d;
    }
    return x;
}

static double apart(const ses_real *x, const ses_json *v)
{
    double worst = x && ses_json_len(v) ? 0 : INFINITY;
    for (size_t i = 0; x && i < ses_json_len(v); i++) {
        double want = NAN;
        ses_json_real(ses_json_at(v, i), &want);
        double d = fabs((double)x[i] - want);
        if (!(d <= worst)) worst = d;
    }
    return worst;
}

/* A tape input with gradient. */
static ses_tensor *given(ses_tape *t, const ses_json *v, int64_t rows, int64_t cols)
{
    ses_real *x = numbers(v);
    ses_tensor *y = ses_tape_input(t, x, cols ? SES_DIM(rows, cols) : SES_DIM(rows));
    if (y) y->requires_grad = true;
    ses_free(x);
    return y;
}

typedef struct layer {
    ses_tensor *w[4]; /* weight_ih, weight_hh, bias_ih, bias_hh */
} layer;

static const char *const parts[] = { "weight_ih", "weight_hh", "bias_ih", "bias_hh" };

static void check_net(ses_device *dev, const char *name, ses_rnn_type cell, const ses_json *net,
                      const int32_t *cu, int64_t seqs, int64_t width, int64_t size)
{
    ses_err e = { 0 };
    int64_t T = cu[seqs], G = (cell == SES_RNN_LSTM ? 4 : 3) * size;
    ses_tape *t = ses_tape_new(dev, &(ses_tape_options){ .record = true }, &e);
    ses_tensor *x = given(t, ses_json_get(net, "x"), T, width), *y = x, *at = ses_tape_ints(t, cu, seqs + 1);
    layer all[2][2];
    for (int l = 0; l < 2; l++) {
        ses_tensor *way[2];
        for (int r = 0; r < 2; r++) {
            for (int k = 0; k < 4; k++) {
                char key[64];
                snprintf(key, sizeof key, "%s_l%d%s", parts[k], l, r ? "_reverse" : "");
                all[l][r].w[k] = given(t, ses_json_get(ses_json_get(net, "params"), key), G,
                                       k == 0   ? (l ? 2 * size : width)
                                       : k == 1 ? size
                                                : 0);
            }
            ses_tensor *in = ses_linear(t, y, all[l][r].w[0], all[l][r].w[2], SES_ACT_NONE, SES_OUT_IN);
            way[r] = ses_rnn(
                t,
                &(ses_rnn_inputs){ .x = in, .w = all[l][r].w[1], .bias = all[l][r].w[3], .cu_seqlens = at },
                &(ses_rnn_options){ .type = cell, .reverse = r == 1 });
        }
        y = ses_concat(t, 2, way);
    }
    ses_real *dy = numbers(ses_json_get(net, "dy"));
    CHECK_MSG(y && apart(y->f, ses_json_get(net, "y")) < 2e-6, "%s: %s", name, e.msg);
    ses_tensor *weight = ses_tape_input(t, dy, SES_DIM(1, T * 2 * size));
    ses_backward(t, ses_reshape(t,
                                ses_linear(t, ses_reshape(t, y, SES_DIM(1, T * 2 * size)), weight, NULL,
                                           SES_ACT_NONE, SES_OUT_IN),
                                SES_DIM(1)));
    CHECK_MSG(ses_tape_ok(t, &e), "%s", e.msg);
    CHECK(apart(x->grad, ses_json_get(net, "dx")) < 5e-6);
    for (int i = 0; i < 16; i++) {
        char key[64];
        snprintf(key, sizeof key, "%s_l%d%s", parts[i % 4], i / 8, i / 4 % 2 ? "_reverse" : "");
        double d = apart(all[i / 8][i / 4 % 2].w[i % 4]->grad, ses_json_get(ses_json_get(net, "grads"), key));
        CHECK_MSG(d < 5e-6, "%s: %s: %g", name, key, d);
    }
    ses_free(dy);
    ses_tape_free(t);
}

/* sum of dy x, as a tape's loss */
static ses_tensor *dot(ses_tape *t, ses_tensor *x, const ses_json *dy)
{
    int64_t n = (int64_t)ses_json_len(dy);
    ses_real *w = numbers(dy);
    ses_tensor *weight = ses_tape_input(t, w, SES_DIM(1, n));
    ses_free(w);
    return ses_reshape(
        t, ses_linear(t, ses_reshape(t, x, SES_DIM(1, n)), weight, NULL, SES_ACT_NONE, SES_OUT_IN),
        SES_DIM(1));
}

static void check_projected(ses_device *dev, const ses_json *net, const int32_t *cu, int64_t seqs,
                            int64_t width, int64_t H)
{
    static const char *const names[] = { "weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0",
                                         "weight_hr_l0" };
    ses_err e = { 0 };
    int64_t T = cu[seqs], P = 0;
    ses_json_int(ses_json_get(net, "proj"), &P);
    int64_t rows[] = { 4 * H, 4 * H, 4 * H, 4 * H, P }, cols[] = { width, P, 0, 0, H };
    ses_tape *t = ses_tape_new(dev, &(ses_tape_options){ .record = true }, &e);
    ses_tensor *w[5], *x = given(t, ses_json_get(net, "x"), T, width),
                      *h0 = given(t, ses_json_get(net, "h0"), seqs, P),
                      *c0 = given(t, ses_json_get(net, "c0"), seqs, H);
    for (int i = 0; i < 5; i++)
        w[i] = given(t, ses_json_get(ses_json_get(net, "params"), names[i]), rows[i], cols[i]);
    ses_rnn_inputs in = { .x = ses_linear(t, x, w[0], w[2], SES_ACT_NONE, SES_OUT_IN),
                          .w = w[1],
                          .bias = w[3],
                          .proj = w[4],
                          .cu_seqlens = ses_tape_ints(t, cu, seqs + 1),
                          .h0 = h0,
                          .c0 = c0 };
    ses_tensor *all = ses_rnn(t, &in, &(ses_rnn_options){ .type = SES_RNN_LSTM, .cells = true });
    int32_t last[16];
    for (int64_t s = 0; s < seqs; s++) last[s] = cu[s + 1] - 1;
    ses_tensor *y = ses_columns(t, all, 0, P),
               *cn = ses_gather(t, ses_columns(t, all, P, H), ses_tape_ints(t, last, seqs));
    CHECK(y && apart(y->f, ses_json_get(net, "y")) < 2e-6);
    CHECK(cn && apart(cn->f, ses_json_get(net, "cn")) < 2e-6);
    ses_backward(t, ses_add(t, dot(t, y, ses_json_get(net, "dy")), dot(t, cn, ses_json_get(net, "dcn"))));
    CHECK_MSG(ses_tape_ok(t, &e), "%s", e.msg);
    CHECK(apart(x->grad, ses_json_get(net, "dx")) < 5e-6);
    CHECK(apart(h0->grad, ses_json_get(net, "dh0")) < 5e-6);
    CHECK(apart(c0->grad, ses_json_get(net, "dc0")) < 5e-6);
    for (int i = 0; i < 5; i++) {
        double d = apart(w[i]->grad, ses_json_get(ses_json_get(net, "grads"), names[i]));
        CHECK_MSG(d < 5e-6, "projected: %s: %g", names[i], d);
    }
    ses_tape_free(t);
}

/* More columns than an op has inputs: nnlm with a long context. */
static void check_concat(ses_device *dev)
{
    enum { N = 23 };
    ses_err e = { 0 };
    ses_tape *t = ses_tape_new(dev, &(ses_tape_options){ .record = true }, &e);
    ses_tensor *x[N];
    ses_real ones[N];
    for (int i = 0; i < N; i++) {
        ones[i] = 1;
        x[i] = ses_tape_input(t, &(ses_real){ (ses_real)i }, SES_DIM(1, 1));
        x[i]->requires_grad = true;
    }
    ses_tensor *y = ses_concat(t, N, x), *w = ses_tape_input(t, ones, SES_DIM(1, N));
    CHECK_MSG(y && ses_cols(y) == N, "%s", ses_tape_ok(t, &e) ? "" : e.msg);
    for (int i = 0; y && i < N; i++) CHECK(y->f[i] == (ses_real)i);
    ses_backward(t, ses_reshape(t, ses_linear(t, y, w, NULL, SES_ACT_NONE, SES_OUT_IN), SES_DIM(1)));
    CHECK(ses_tape_ok(t, &e));
    for (int i = 0; i < N; i++) CHECK(x[i]->grad && x[i]->grad[0] == 1);
    ses_tape_free(t);
}

int main(void)
{
    ses_err e = { 0 };
    ses_json_doc *d = ses_json_load("tests/fixtures/recurrent.json", 1 << 20, &e);
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    if (!d || !dev) return fprintf(stderr, "%s\n", e.msg), 1;
    const ses_json *root = ses_json_root(d), *lengths = ses_json_get(root, "lengths"),
                   *nets = ses_json_get(root, "nets");
    int32_t cu[16] = { 0 };
    int64_t n, width = 0, size = 0, seqs = (int64_t)ses_json_len(lengths);
    for (int64_t s = 0; s < seqs; s++) {
        ses_json_int(ses_json_at(lengths, (size_t)s), &n);
        cu[s + 1] = cu[s] + (int32_t)n;
    }
    ses_json_int(ses_json_get(root, "width"), &width);
    ses_json_int(ses_json_get(root, "size"), &size);
    check_net(dev, "lstm", SES_RNN_LSTM, ses_json_get(nets, "lstm"), cu, seqs, width, size);
    check_net(dev, "gru", SES_RNN_GRU, ses_json_get(nets, "gru"), cu, seqs, width, size);
    check_projected(dev, ses_json_get(root, "projected"), cu, seqs, width, size);
    check_concat(dev);
    ses_json_free(d);
    ses_device_free(dev);
    return check_report();
}
