/* Recurrent layers on a GPU, f32 and bf16: larger shapes than the cases of the op, ragged and equal lengths,
 * all options, compared with the CPU; a second run gives the same bits. Skipped without a GPU. */
#include "base/alloc.h"
#include "check.h"
#include "op/op.h"
#include "sesame/hooks.h"

#include <math.h>

enum { MAX_SEQS = 80, PARTS = 7 };

typedef struct shape {
    ses_rnn_type type;
    int64_t size, proj, seqs;
    int32_t shortest, longest; /* lengths */
    bool reverse, cells, states, clipped, no_bias;
} shape;

/* Output and gradients of x, w, bias, proj, h0, c0. */
typedef struct result {
    int64_t n[PARTS];
    float *value[PARTS];
} result;

static void result_free(result *r)
{
    for (int i = 0; i < PARTS; i++) ses_free(r->value[i]);
}

static ses_tensor *input(ses_tape *t, int64_t rows, int64_t cols, double scale, uint32_t site)
{
    float *x = ses_alloc_array((size_t)(rows * cols), sizeof *x, NULL);
    for (int64_t i = 0; i < rows * cols; i++)
        x[i] = (float)(scale * ses_rand_normal((ses_rng_key){ .seed = 3, .site = site }, (uint64_t)i));
    ses_tensor *y = ses_tape_input(t, x, SES_DIM(rows, cols));
    ses_free(x);
    if (y) y->requires_grad = true;
    return y;
}

static int64_t fill_lengths(const shape *s, int32_t cu[MAX_SEQS + 1])
{
    cu[0] = 0;
    for (int64_t i = 0; i < s->seqs; i++)
        cu[i + 1] = cu[i] + s->shortest + (int32_t)(i * 7919 % (s->longest - s->shortest + 1));
    return cu[s->seqs];
}

static void run(ses_device *d, const shape *s, result *r)
{
    int32_t cu[MAX_SEQS + 1];
    int64_t T = fill_lengths(s, cu), H = s->size, P = s->proj ? s->proj : H,
            G = (s->type == SES_RNN_LSTM ? 4 : 3) * H;
    ses_err e = { 0 };
    ses_tape *t = ses_tape_new(d, &(ses_tape_options){ .record = true }, &e);
    bool lstm = s->type == SES_RNN_LSTM;
    double scale = 1 / sqrt((double)P);
    ses_tensor *in[PARTS] = { NULL, input(t, T, G, 1, 1), input(t, G, P, scale, 2) };
    if (!s->no_bias) in[3] = input(t, G, 1, 0.5, 3);
    if (s->proj) in[4] = input(t, P, H, 1 / sqrt((double)H), 4);
    if (s->states) in[5] = input(t, s->seqs, P, 0.5, 5);
    if (s->states && lstm) in[6] = input(t, s->seqs, H, 0.5, 6);
    ses_rnn_inputs all = { .x = in[1], .w = in[2], .bias = in[3], .proj = in[4], .h0 = in[5], .c0 = in[6] };
    all.cu_seqlens = ses_tape_ints(t, cu, s->seqs + 1), all.host_cu_seqlens = cu;
    ses_rnn_options o = { .type = s->type, .reverse = s->reverse, .cells = s->cells };
    if (s->clipped) o.cell_clip = 0.7, o.proj_clip = s->proj ? 0.6 : 0;
    in[0] = ses_rnn(t, &all, &o);
    ses_tensor *target = in[0] ? input(t, T, ses_cols(in[0]), 1, 7) : NULL;
    if (target) target->requires_grad = false;
    ses_backward(t, target ? ses_target_loss(t, in[0], target, SES_LOSS_MSE) : NULL);
    for (int i = 0; i < PARTS; i++) {
        r->n[i] = in[i] ? ses_count(in[i]) : 0;
        r->value[i] = ses_alloc_array((size_t)r->n[i] + 1, sizeof(float), NULL);
        if (in[i]) CHECK((i ? ses_tape_read_grad : ses_tape_read)(t, in[i], r->value[i]));
    }
    CHECK_MSG(ses_tape_ok(t, &e), "%s", e.msg);
    ses_tape_free(t);
}

/* bf16 is compared by norms: rounding decides on which side of a limit a value is, and so whether its
 * gradient passes. */
static double distance(const float *got, const float *want, int64_t n, bool norms)
{
    double worst = 0, most = 0, off = 0, all = 0;
    for (int64_t j = 0; j < n; j++) {
        double d = fabs((double)got[j] - (double)want[j]), v = fabs((double)want[j]);
        if (!(d <= worst)) worst = d;
        most = fmax(most, v), off += d * d, all += v * v;
    }
    return n == 0 ? 0 : norms ? sqrt(off / all) : worst / most;
}

static void check(const shape *s, const char *device, ses_device *d, const result *want, double tol)
{
    static const char *const part[PARTS] = { "y", "dx", "dw", "dbias", "dproj", "dh0", "dc0" };
    result got, again;
    run(d, s, &got), run(d, s, &again);
    for (int i = 0; i < PARTS; i++) {
        double off = distance(got.value[i], want->value[i], want->n[i], !strcmp(device, "bf16"));
        CHECK_MSG(off <= tol, "%s %s, %d units, %d sequences: off by %g", device, part[i], (int)s->size,
                  (int)s->seqs, off);
        CHECK_MSG(!memcmp(got.value[i], again.value[i], (size_t)got.n[i] * sizeof(float)),
                  "%s %s, %d units, %d sequences: other bits", device, part[i], (int)s->size, (int)s->seqs);
    }
    result_free(&got), result_free(&again);
}

static const shape shapes[] = {
    { SES_RNN_LSTM, 96, 0, 33, 0, 13, .reverse = false },
    { SES_RNN_LSTM, 256, 0, 80, 9, 9, .reverse = true },
    { SES_RNN_LSTM, 400, 0, 64, 5, 5, .states = true },
    { SES_RNN_LSTM, 1152, 0, 20, 2, 6, .states = true, .cells = true, .clipped = true },
    { SES_RNN_LSTM, 129, 0, 17, 1, 30, .no_bias = true },
    { SES_RNN_LSTM, 512, 64, 40, 1, 8, .states = true, .clipped = true },
    { SES_RNN_LSTM, 300, 33, 7, 0, 21, .reverse = true, .cells = true },
    { SES_RNN_GRU, 256, 0, 70, 1, 12, .states = true },
    { SES_RNN_GRU, 101, 0, 9, 0, 25, .reverse = true },
};

int main(void)
{
    ses_err e = { 0 };
    ses_device *gpu = ses_device_open("cuda", NULL, &e), *cpu = ses_device_open("cpu", NULL, NULL),
               *gpu16 = ses_device_open("cuda", &(ses_device_options){ .dtype = SES_BF16 }, NULL);
    if (!gpu) SKIP(e.msg);
    for (size_t i = 0; gpu && i < SES_LEN(shapes); i++) {
        result want;
        run(cpu, &shapes[i], &want);
        check(&shapes[i], "f32", gpu, &want, 5e-5);
        check(&shapes[i], "bf16", gpu16, &want, shapes[i].clipped ? 0.2 : 0.03);
        result_free(&want);
    }
    CHECK(cpu);
    ses_device_free(gpu16);
    ses_device_free(gpu);
    ses_device_free(cpu);
    return check_report();
}
