/* CUDA kernels on sizes that the cases of the ops do not reach: many rows, long sequences, arbitrary strides,
 * runs of equal ids; and kernels that no op calls. Compared with ref, and run twice to compare bits. Skipped
 * without a GPU. */
#include "base/alloc.h"
#include "check.h"
#include "model_fixture.h"
#include "tensor/device_impl.h"

#include <math.h>

static ses_device *cpu, *gpu, *gpu16; /* gpu16: bf16 */
static uint64_t drawn;

/* An array on both devices. */
typedef struct mirrored {
    int64_t n;
    float *host, *gpu;
    bool is_bf16; /* bf16 on the GPU; the host array holds bf16 values, too */
} mirrored;

static mirrored floats(int64_t n, double scale)
{
    mirrored b = { n, ses_alloc((size_t)n * sizeof(float), NULL), gpu->mem->alloc(gpu, (size_t)n * 4, NULL) };
    for (int64_t i = 0; i < n; i++)
        b.host[i] = (float)(scale * ses_rand_normal((ses_rng_key){ .seed = 5 }, drawn++));
    gpu->mem->upload(gpu, b.gpu, b.host, (size_t)n * 4);
    return b;
}

static mirrored halves(int64_t n, double scale)
{
    mirrored b = floats(n, scale);
    uint16_t *x = ses_alloc((size_t)n * sizeof *x, NULL);
    ses_convert(x, SES_BF16, b.host, SES_F32, (size_t)n, NULL);
    ses_convert(b.host, SES_F32, x, SES_BF16, (size_t)n, NULL);
    gpu->mem->upload(gpu, b.gpu, x, (size_t)n * sizeof *x);
    ses_free(x);
    b.is_bf16 = true;
    return b;
}

static mirrored ints(int64_t n, const int32_t *x)
{
    mirrored b = floats(n, 1);
    memcpy(b.host, x, (size_t)n * 4);
    gpu->mem->upload(gpu, b.gpu, x, (size_t)n * 4);
    return b;
}

static const int32_t *host_ids(mirrored b) { return (const int32_t *)(const void *)b.host; }
static const int32_t *gpu_ids(mirrored b) { return (const int32_t *)(const void *)b.gpu; }

static void drop(mirrored b)
{
    ses_free(b.host);
    gpu->mem->free(gpu, b.gpu);
}

/* The two sides agree to tol times the largest number. */
static void check_close(const char *what, mirrored b, double tol)
{
    float *x = ses_alloc((size_t)b.n * sizeof *x, NULL);
    double worst = 0, most = 0;
    ses_tensor t = { .f = b.gpu, .dtype = b.is_bf16 ? SES_BF16 : SES_F32 };
    CHECK(ses_device_read(gpu, &t, 0, b.n, x, NULL));
    if (b.is_bf16) tol = fmax(tol, 2e-2);
    for (int64_t i = 0; i < b.n; i++) {
        double d = fabs((double)x[i] - (double)b.host[i]);
        if (!(d <= worst)) worst = d;
        most = fmax(most, fabs((double)b.host[i]));
    }
    CHECK_MSG(worst <= tol * most, "%s: differs by %g, largest %g", what, worst, most);
    ses_free(x);
}

/* Waits until all queued work is done, and checks that it succeeded: devices do not wait for each other. */
static void wait_for(ses_device *d)
{
    float one;
    ses_err e = { 0 };
    float *x = d->mem->alloc(d, sizeof one, NULL);
    d->mem->download(d, &one, x, sizeof one);
    CHECK_MSG(d->mem->ok(d, &e), "%s", e.msg);
    d->mem->free(d, x);
}

static void test_optimizers(void)
{
    static const ses_adamw adam = { 1e-3, 0.9, 0.999, 1e-8, 0.01, 10, 1000, 0.5 };
    static const ses_sgd sgd = { 0.1, 0.9, 0.7, 0.01, 0.5, true };
    static const ses_adafactor factor = { 0.9, 1e-30, 0.5 };
    enum { ROWS = 700, COLS = 331, N = ROWS * COLS };
    mirrored w = floats(N, 1), g = floats(N, 1), m = floats(N, 0.1), v = floats(N, 1), u = floats(N, 1);
    for (int64_t i = 0; i < N; i++) v.host[i] *= v.host[i];
    gpu->mem->upload(gpu, v.gpu, v.host, N * 4);
    cpu->k.adamw(&cpu->exec, w.host, g.host, m.host, v.host, N, &adam);
    gpu->k.adamw(&gpu->exec, w.gpu, g.gpu, m.gpu, v.gpu, N, &adam);
    check_close("adamw w", w, 1e-6), check_close("adamw m", m, 1e-6), check_close("adamw v", v, 1e-6);
    cpu->k.lamb(&cpu->exec, u.host, w.host, g.host, m.host, v.host, N, &adam);
    gpu->k.lamb(&gpu->exec, u.gpu, w.gpu, g.gpu, m.gpu, v.gpu, N, &adam);
    check_close("lamb u", u, 1e-6), check_close("lamb v", v, 1e-6);
    cpu->k.lamb_update(&cpu->exec, w.host, u.host, N, 1e-2);
    gpu->k.lamb_update(&gpu->exec, w.gpu, u.gpu, N, 1e-2);
    check_close("lamb_update", w, 1e-6);
    cpu->k.sgd(&cpu->exec, w.host, g.host, m.host, N, &sgd);
    gpu->k.sgd(&gpu->exec, w.gpu, g.gpu, m.gpu, N, &sgd);
    check_close("sgd w", w, 1e-6), check_close("sgd buf", m, 1e-6);
    static const ses_adagrad adagrad = { 0.1, 1e-10, 0.5, 0.01, 0.5 };
    cpu->k.adagrad(&cpu->exec, w.host, g.host, v.host, N, &adagrad);
    gpu->k.adagrad(&gpu->exec, w.gpu, g.gpu, v.gpu, N, &adagrad);
    check_close("adagrad w", w, 1e-6), check_close("adagrad sum", v, 1e-6);
    cpu->k.adafactor_each(&cpu->exec, u.host, v.host, g.host, N, &factor);
    gpu->k.adafactor_each(&gpu->exec, u.gpu, v.gpu, g.gpu, N, &factor);
    check_close("adafactor_each u", u, 1e-6), check_close("adafactor_each v", v, 1e-6);
    mirrored row = floats(ROWS, 0), col = floats(COLS, 0);
    cpu->k.adafactor_matrix(&cpu->exec, u.host, row.host, col.host, g.host, ROWS, COLS, &factor);
    gpu->k.adafactor_matrix(&gpu->exec, u.gpu, row.gpu, col.gpu, g.gpu, ROWS, COLS, &factor);
    check_close("adafactor row", row, 1e-6), check_close("adafactor col", col, 1e-6),
        check_close("adafactor u", u, 2e-6);
    double a = cpu->k.sum_squares(&cpu->exec, g.host, N), b = gpu->k.sum_squares(&gpu->exec, g.gpu, N);
    CHECK_MSG(fabs(a - b) <= 1e-9 * a, "sum_squares: %.12g and %.12g", a, b);
    uint16_t *half = gpu->mem->alloc(gpu, N * sizeof *half, NULL), *host = malloc(N * sizeof *host);
    gpu->k_f32.pack_bf16(&gpu->exec, half, g.gpu, N), gpu->k_f32.unpack_bf16(&gpu->exec, u.gpu, half, N);
    cpu->k_f32.pack_bf16(&cpu->exec, host, g.host, N), cpu->k_f32.unpack_bf16(&cpu->exec, u.host, host, N);
    check_close("unpack_bf16", u, 0);
    gpu->mem->free(gpu, half), free(host);
    double parts[2][4] = { { 0 } }, *on_gpu = gpu->mem->alloc(gpu, sizeof parts[0], NULL);
    cpu->k.sum_squares_parts(&cpu->exec, parts[0], g.host, N, N / 4 + 1);
    gpu->k.sum_squares_parts(&gpu->exec, on_gpu, g.gpu, N, N / 4 + 1);
    gpu->mem->download(gpu, parts[1], on_gpu, sizeof parts[1]);
    gpu->mem->free(gpu, on_gpu);
    for (int i = 0; i < 4; i++)
        CHECK_MSG(fabs(parts[0][i] - parts[1][i]) <= 1e-9 * parts[0][i], "sum_squares_parts %d: %.12g, %.12g",
                  i, parts[0][i], parts[1][i]);
    drop(w), drop(g), drop(m), drop(v), drop(u), drop(row), drop(col);
}

/* Many tensors of all sizes at once, and their bf16 copies. */
static void test_adamw_list(void)
{
    enum { N = 300 };
    mirrored w[N], g[N], m[N], v[N], low[N];
    ses_adamw_tensor here[N], there[N];
    wait_for(gpu16);
    for (int i = 0; i < N; i++) {
        int64_t n = i % 7 == 0 ? 4096 + i % 3 : i % 50 == 3 ? 20001 : 1 + i;
        w[i] = floats(n, 1), g[i] = floats(n, 1), m[i] = floats(n, 0.1), v[i] = floats(n, 0),
        low[i] = halves(n, 1);
        ses_adamw o = { 1e-2 * (1 + i % 2), 0.9, 0.999, 1e-8, 0.1 * (i % 3), 10 + i % 5, 1000 - i, 0.5 };
        here[i] = (ses_adamw_tensor){ w[i].host, g[i].host, m[i].host, v[i].host, NULL, n, o };
        there[i] =
            (ses_adamw_tensor){ w[i].gpu, g[i].gpu, m[i].gpu, v[i].gpu, i % 4 ? low[i].gpu : NULL, n, o };
    }
    cpu->k.adamw_list(&cpu->exec, here, N);
    gpu->k.adamw_list(&gpu->exec, there, N);
    for (int i = 0; i < N; i++) {
        check_close("adamw_list w", w[i], 1e-6), check_close("adamw_list m", m[i], 1e-6),
            check_close("adamw_list v", v[i], 1e-6);
        memcpy(low[i].host, w[i].host, (size_t)w[i].n * sizeof(float));
        if (i % 4) check_close("adamw_list copy", low[i], 0);
        drop(w[i]), drop(g[i]), drop(m[i]), drop(v[i]), drop(low[i]);
    }
}

/* Layer norm with dropout; act_bwd_sum; rows of logits with a larger stride. */
static void rows_of(int64_t rows, int64_t cols, double rate, bool is_bf16)
{
    ses_device *d = is_bf16 ? gpu16 : gpu;
    mirrored (*make)(int64_t n, double scale) = is_bf16 ? halves : floats;
    ses_dropout_spec drops = { rate, { 3, 1, 2 } }, *dropped = rate > 0 ? &drops : NULL;
    mirrored a = make(rows * cols, 1), res = make(rows * cols, 1), gain = floats(cols, 1),
             bias = floats(cols, 1);
    mirrored y = make(rows * cols, NAN), s = make(rows * cols, NAN), stat = floats(2 * rows, NAN);
    mirrored da = make(rows * cols, 1), dres = make(rows * cols, NAN), dgain = floats(cols, 1),
             dbias = floats(cols, 1);
    wait_for(gpu);
    cpu->k.norm(&cpu->exec, y.host, NULL, NULL, a.host, NULL, gain.host, bias.host, rows, cols, 1e-5, NULL);
    d->k.norm(&d->exec, y.gpu, NULL, NULL, a.gpu, NULL, gain.gpu, bias.gpu, rows, cols, 1e-5, NULL);
    wait_for(d);
    check_close("norm, y only", y, 1e-5);
    cpu->k.norm(&cpu->exec, y.host, s.host, stat.host, a.host, res.host, gain.host, bias.host, rows, cols,
                1e-5, dropped);
    d->k.norm(&d->exec, y.gpu, s.gpu, stat.gpu, a.gpu, res.gpu, gain.gpu, bias.gpu, rows, cols, 1e-5,
              dropped);
    wait_for(d);
    check_close("norm y", y, 1e-5), check_close("norm s", s, 1e-6),
        check_close("norm stat", stat, is_bf16 ? 1e-2 : 1e-5);
    cpu->k.norm_bwd(&cpu->exec, (ses_dst){ da.host, true }, (ses_dst){ dres.host, false }, dgain.host,
                    dbias.host, a.host, res.host, stat.host, gain.host, rows, cols, dropped);
    gpu->mem->upload(gpu, stat.gpu, stat.host, (size_t)stat.n * 4);
    wait_for(gpu);
    d->k.norm_bwd(&d->exec, (ses_dst){ da.gpu, true }, (ses_dst){ dres.gpu, false }, dgain.gpu, dbias.gpu,
                  a.gpu, res.gpu, stat.gpu, gain.gpu, rows, cols, dropped);
    wait_for(d);
    check_close("norm da", da, 1e-5), check_close("norm dres", dres, 1e-5),
        check_close("norm dgain", dgain, 1e-4), check_close("norm dbias", dbias, 1e-4);
    cpu->k.act_bwd_sum(&cpu->exec, (ses_dst){ y.host, false }, (ses_dst){ dbias.host, true }, s.host, a.host,
                       res.host, rows, cols, SES_ACT_GELU);
    d->k.act_bwd_sum(&d->exec, (ses_dst){ y.gpu, false }, (ses_dst){ dbias.gpu, true, true }, s.gpu, a.gpu,
                     res.gpu, rows, cols, SES_ACT_GELU);
    wait_for(d);
    check_close("act_bwd_sum", y, 1e-5), check_close("act_bwd_sum's sums", dbias, is_bf16 ? 1e-2 : 1e-5);
    check_close("act_bwd_sum's values", s, 1e-5);
    int64_t V = cols - 3;
    int32_t *id = ses_alloc((size_t)rows * sizeof *id, NULL);
    for (int64_t i = 0; i < rows; i++) id[i] = i % 5 ? (int32_t)(i * 7 % V) : SES_IGNORE_INDEX;
    mirrored ids = ints(rows, id), loss = floats(rows, 0), lse = floats(rows, 0), two = floats(2, 1),
             one = floats(1, 1);
    wait_for(gpu);
    cpu->k.xent_rows(&cpu->exec, loss.host, lse.host, a.host, host_ids(ids), rows, V, cols);
    d->k.xent_rows(&d->exec, loss.gpu, lse.gpu, a.gpu, gpu_ids(ids), rows, V, cols);
    wait_for(d);
    check_close("xent loss", loss, 1e-5), check_close("xent lse", lse, 1e-5);
    cpu->k.xent_bwd(&cpu->exec, (ses_dst){ res.host, false }, one.host, two.host, lse.host, a.host,
                    host_ids(ids), rows, V, cols);
    d->k.xent_bwd(&d->exec, (ses_dst){ res.gpu, false }, one.gpu, two.gpu, lse.gpu, a.gpu, gpu_ids(ids), rows,
                  V, cols);
    wait_for(d);
    check_close("xent_bwd", res, 1e-5);
    cpu->k.col_sum(&cpu->exec, (ses_dst){ gain.host, true }, a.host, rows, V, cols);
    d->k.col_sum(&d->exec, (ses_dst){ gain.gpu, true, true }, a.gpu, rows, V, cols);
    wait_for(d);
    check_close("col_sum with a stride", gain, 1e-5);
    ses_free(id);
    mirrored all[] = { a, res, gain, bias, y, s, stat, da, dres, dgain, dbias, ids, loss, lse, two, one };
    for (size_t i = 0; i < SES_LEN(all); i++) drop(all[i]);
}

static void test_rows_of(void)
{
    for (int is_bf16 = 0; is_bf16 < 2; is_bf16++) {
        rows_of(3000, 768, 0.1, is_bf16);
        rows_of(2111, 1024, 0.1, is_bf16);
        rows_of(700, 384, 0, is_bf16);
        rows_of(513, 256, 0.5, is_bf16);
        rows_of(77, 2056, 0.1, is_bf16);
        rows_of(301, 45, 0.2, is_bf16);
        rows_of(130, 776, 0, is_bf16);
        rows_of(500, 600, 0.2, is_bf16);
        rows_of(90, 1536, 0.1, is_bf16);
        rows_of(61, 2048, 0, is_bf16);
    }
}

/* Loss with a copy mechanism: every second label is the input token; some labels are ignored. */
static void copied_rows(int64_t rows, bool is_bf16)
{
    enum { VOCAB = 91 };
    ses_device *d = is_bf16 ? gpu16 : gpu;
    mirrored a = is_bf16 ? halves(rows, 6) : floats(rows, 6),
             da = is_bf16 ? halves(rows, 1) : floats(rows, 1);
    mirrored loss = floats(rows, 4), weight = floats(rows, NAN), two = floats(2, 1), one = floats(1, 1);
    int32_t *input = ses_alloc((size_t)rows * sizeof *input, NULL),
            *label = ses_alloc((size_t)rows * 4, NULL);
    ses_real *nll = ses_alloc((size_t)rows * sizeof *nll, NULL);
    for (int64_t i = 0; i < rows; i++) {
        input[i] = (int32_t)(i * 7 % VOCAB);
        label[i] = i % 5 == 4 ? SES_IGNORE_INDEX : i % 2 ? (input[i] + 1) % VOCAB : input[i];
        loss.host[i] = fabsf(loss.host[i]); /* a negative log likelihood */
    }
    gpu->mem->upload(gpu, loss.gpu, loss.host, (size_t)rows * 4);
    mirrored inputs = ints(rows, input), labels = ints(rows, label);
    wait_for(gpu);
    cpu->k.copy_rows(&cpu->exec, loss.host, weight.host, a.host, host_ids(inputs), host_ids(labels), rows);
    d->k.copy_rows(&d->exec, loss.gpu, weight.gpu, a.gpu, gpu_ids(inputs), gpu_ids(labels), rows);
    wait_for(d);
    check_close("copy_rows", loss, 1e-6), check_close("copy_rows' log likelihoods", weight, 1e-6);
    memcpy(nll, weight.host, (size_t)rows * sizeof *nll);
    for (int adds = 0; adds < 2; adds++) { /* weight: the log likelihoods before, the weights after */
        memcpy(weight.host, nll, (size_t)rows * sizeof *nll);
        gpu->mem->upload(gpu, weight.gpu, nll, (size_t)rows * sizeof *nll);
        wait_for(gpu);
        cpu->k.copy_bwd(&cpu->exec, (ses_dst){ da.host, adds }, weight.host, one.host, two.host, a.host,
                        host_ids(inputs), host_ids(labels), rows);
        d->k.copy_bwd(&d->exec, (ses_dst){ da.gpu, adds }, weight.gpu, one.gpu, two.gpu, a.gpu,
                      gpu_ids(inputs), gpu_ids(labels), rows);
        wait_for(d);
        check_close("copy_bwd", da, 1e-5), check_close("copy_bwd's weights", weight, 1e-5);
    }
    ses_free(nll);
    mirrored all[] = { a, da, loss, weight, two, one, inputs, labels };
    for (size_t i = 0; i < SES_LEN(all); i++) drop(all[i]);
    ses_free(input);
    ses_free(label);
}

static void test_copied_rows(void)
{
    for (int is_bf16 = 0; is_bf16 < 2; is_bf16++) copied_rows(1, is_bf16), copied_rows(70001, is_bf16);
}

/* Gated units and rotary positions: to another tensor, accumulated, and in place. */
static void gated(int64_t rows, int64_t cols, ses_act act, bool is_bf16)
{
    ses_device *d = is_bf16 ? gpu16 : gpu;
    mirrored (*make)(int64_t n, double scale) = is_bf16 ? halves : floats;
    mirrored ab = make(rows * 2 * cols, 2), y = make(rows * cols, 0), dy = make(rows * cols, 1),
             dab = make(rows * 2 * cols, 1);
    wait_for(gpu);
    cpu->k.glu(&cpu->exec, y.host, ab.host, rows, cols, act);
    d->k.glu(&d->exec, y.gpu, ab.gpu, rows, cols, act);
    wait_for(d);
    check_close("glu", y, 2e-6);
    for (int add = 1; add >= 0; add--) {
        cpu->k.glu_bwd(&cpu->exec, (ses_dst){ dab.host, add }, dy.host, ab.host, rows, cols, act);
        d->k.glu_bwd(&d->exec, (ses_dst){ dab.gpu, add }, dy.gpu, ab.gpu, rows, cols, act);
        wait_for(d);
        check_close(add ? "glu_bwd added" : "glu_bwd", dab, 2e-6);
    }
    drop(ab), drop(y), drop(dy), drop(dab);
}

static void rotated(int64_t rows, int64_t heads, int64_t dim, int64_t rest, double theta, bool is_bf16)
{
    ses_device *d = is_bf16 ? gpu16 : gpu;
    mirrored (*make)(int64_t n, double scale) = is_bf16 ? halves : floats;
    int64_t cols = heads * dim + rest;
    int32_t *pos = ses_alloc((size_t)rows * sizeof *pos, NULL);
    for (int64_t i = 0; i < rows; i++) pos[i] = (int32_t)(i % 517 * (i % 5 ? 1 : 60));
    mirrored positions = ints(rows, pos), a = make(rows * cols, 1), y = make(rows * cols, 1);
    wait_for(gpu);
    for (int add = 1; add >= 0; add--) {
        cpu->k.rotary(&cpu->exec, (ses_dst){ y.host, add }, a.host, host_ids(positions), rows, cols,
                      heads * dim, dim, theta, 1);
        d->k.rotary(&d->exec, (ses_dst){ y.gpu, add }, a.gpu, gpu_ids(positions), rows, cols, heads * dim,
                    dim, theta, 1);
        wait_for(d);
        check_close(add ? "rotary added" : "rotary", y, 2e-6);
    }
    cpu->k.rotary(&cpu->exec, (ses_dst){ a.host, false }, a.host, host_ids(positions), rows, cols,
                  heads * dim, dim, theta, -1);
    d->k.rotary(&d->exec, (ses_dst){ a.gpu, false }, a.gpu, gpu_ids(positions), rows, cols, heads * dim, dim,
                theta, -1);
    wait_for(d);
    check_close("rotary in place", a, 2e-6);
    drop(positions), drop(a), drop(y);
    ses_free(pos);
}

static void test_gated_and_turned(void)
{
    for (int is_bf16 = 0; is_bf16 < 2; is_bf16++) {
        for (int act = 0; act < SES_ACT_COUNT; act++) gated(1001, 96, (ses_act)act, is_bf16);
        gated(5003, 896, SES_ACT_GELU, is_bf16);
        gated(300, 45, SES_ACT_GELU, is_bf16); /* not multiples of 16 bytes */
        rotated(3001, 12, 64, 384, 10000, is_bf16);
        rotated(777, 6, 128, 0, 160000, is_bf16);
        rotated(501, 4, 48, 96, 10000, is_bf16); /* with idle threads */
        rotated(301, 3, 6, 7, 10000, is_bf16);
    }
}

/* Sums over many rows, and scatter_add with runs of all lengths. */
static void test_rows(void)
{
    enum { ROWS = 20011, COLS = 77, TABLE = 60 };
    mirrored a = floats(ROWS * COLS, 1), sum = floats(COLS, 1), table = floats(TABLE * COLS, 1);
    int32_t *id = ses_alloc(ROWS * sizeof *id, NULL);
    for (int i = 0; i < ROWS; i++)
        id[i] = i % 3 ? i % 2 : (int32_t)(ses_rand32((ses_rng_key){ 3, 0, 0 }, (uint64_t)i) % TABLE);
    for (int i = 0; i < ROWS; i += 97) id[i] = SES_IGNORE_INDEX;
    mirrored ids = ints(ROWS, id);
    cpu->k.col_sum(&cpu->exec, (ses_dst){ sum.host, true }, a.host, ROWS, COLS, COLS);
    gpu->k.col_sum(&gpu->exec, (ses_dst){ sum.gpu, true }, a.gpu, ROWS, COLS, COLS);
    check_close("col_sum", sum, 2e-6);
    cpu->k.scatter_add(&cpu->exec, (ses_dst){ table.host, true }, a.host, host_ids(ids), ROWS, COLS,
                       SES_IGNORE_INDEX);
    gpu->k.scatter_add(&gpu->exec, (ses_dst){ table.gpu, true }, a.gpu, gpu_ids(ids), ROWS, COLS,
                       SES_IGNORE_INDEX);
    check_close("scatter_add", table, 3e-6);
    drop(a), drop(sum), drop(table), drop(ids);
    ses_free(id);
}

/* Products with all layouts and strides; stride -1: contiguous. */
static void test_products(void)
{
    static const struct {
        int64_t m, n, k;
        int64_t spread; /* column stride that cuBLASLt does not support */
    } shapes[] = { { 1, 1, 1, 1 }, { 300, 257, 129, 1 }, { 64, 768, 768, 1 }, { 33, 65, 17, 2 } };
    for (size_t i = 0; i < SES_LEN(shapes); i++)
        for (int order = 0; order < 4; order++) {
            int64_t m = shapes[i].m, n = shapes[i].n, k = shapes[i].k, s = shapes[i].spread;
            mirrored a = floats(m * k * s, 1), b = floats(k * n * s, 1), c = floats(m * n, 1),
                     bias = floats(n, 1), pre = floats(m * n, 0);
            ses_gemm g = { .m = m, .n = n, .k = k, .ldc = n, .act = SES_ACT_GELU };
            g.a_row = order & 1 ? s : k * s, g.a_col = order & 1 ? m * s : s;
            g.b_row = order & 2 ? s : n * s, g.b_col = order & 2 ? k * s : s;
            ses_gemm h = g;
            g.a = a.host, g.b = b.host, g.c = c.host, g.bias = bias.host, g.pre_act = pre.host;
            h.a = a.gpu, h.b = b.gpu, h.c = c.gpu, h.bias = bias.gpu, h.pre_act = pre.gpu;
            cpu->k.gemm(&cpu->exec, &g);
            gpu->k.gemm(&gpu->exec, &h);
            check_close("gemm pre", pre, 3e-6), check_close("gemm", c, 3e-6);
            g.act = h.act = SES_ACT_NONE, g.bias = h.bias = g.pre_act = h.pre_act = NULL,
            g.accumulate = h.accumulate = true;
            cpu->k.gemm(&cpu->exec, &g);
            gpu->k.gemm(&gpu->exec, &h);
            check_close("gemm add", c, 3e-6);
            drop(a), drop(b), drop(c), drop(bias), drop(pre);
        }
}

/* Large bf16 products with odd row lengths: as output, as input, and summed over into f32. */
static void test_ragged(void)
{
    enum { M = 300, N = 4001, K = 64 };
    mirrored x = halves(M * K, 1), w = halves(N * K, 1), y = halves(M * N, 0), dx = halves(M * K, 0),
             dw = floats(N * K, 0), bias = halves(N, 1);
    ses_device *d[] = { cpu, gpu16 };
    wait_for(gpu);
    for (int i = 0; i < 2; i++) {
        bool g = i == 1;
        ses_gemm to = ses_gemm_nt(g ? y.gpu : y.host, g ? x.gpu : x.host, g ? w.gpu : w.host, M, N, K);
        to.bias = g ? bias.gpu : bias.host;
        d[i]->k.gemm(&d[i]->exec, &to);
    }
    wait_for(gpu16);
    check_close("ragged", y, 1e-2);
    ses_tensor t = { .f = y.gpu, .dtype = SES_BF16 };
    CHECK(ses_device_read(gpu, &t, 0, M * N, y.host, NULL)); /* both continue from the same y */
    for (int i = 0; i < 2; i++) {
        bool g = i == 1;
        ses_gemm from = ses_gemm_nn(g ? dx.gpu : dx.host, g ? y.gpu : y.host, g ? w.gpu : w.host, M, K, N);
        ses_gemm down = ses_gemm_tn(g ? dw.gpu : dw.host, g ? y.gpu : y.host, g ? x.gpu : x.host, N, K, M);
        down.is_f32 = true;
        d[i]->k.gemm(&d[i]->exec, &from);
        d[i]->k.gemm(&d[i]->exec, &down);
    }
    wait_for(gpu16);
    check_close("from ragged", dx, 1e-2), check_close("down ragged", dw, 1e-2);
    mirrored all[] = { x, w, y, dx, dw, bias };
    for (size_t i = 0; i < SES_LEN(all); i++) drop(all[i]);
}

/* Sequences one after another; keys equal queries by default. */
typedef struct batch {
    int64_t seqs, heads;
    int32_t len_q[12], len_k[12];
} batch;

static mirrored offsets(const int32_t *len, int64_t seqs, int64_t *longest)
{
    int32_t cu[SES_LEN(((batch *)0)->len_q) + 1] = { 0 };
    *longest = 0;
    for (int64_t i = 0; i < seqs; i++) {
        cu[i + 1] = cu[i] + len[i];
        if (len[i] > *longest) *longest = len[i];
    }
    return ints(seqs + 1, cu);
}

/* Uploads the host array to the GPU. */
static void send(mirrored b)
{
    uint16_t *x = ses_alloc((size_t)b.n * sizeof *x, NULL);
    if (b.is_bf16) ses_convert(x, SES_BF16, b.host, SES_F32, (size_t)b.n, NULL);
    gpu->mem->upload(gpu, b.gpu, b.is_bf16 ? (void *)x : (void *)b.host, (size_t)b.n * (b.is_bf16 ? 2 : 4));
    ses_free(x);
}

/* Numbers whose products and sums are exact: halves up to 1, and `first` in every dim-th element. */
static void make_exact(mirrored b, int64_t dim, float first)
{
    for (int64_t i = 0; i < b.n; i++)
        b.host[i] = i % dim || !first ? (float)(fmax(-2, fmin(2, round(b.host[i])))) / 2 : first;
    send(b);
}

/* Attention over ragged sequences with several head sizes and all options. large: scores of a million, for
 * which f32 resolves eighths. */
static void attend(const batch *in, int64_t dim, bool causal, int64_t reach, double rate, bool extras,
                   bool is_bf16, bool large)
{
    ses_device *g16 = is_bf16 ? gpu16 : gpu;
    mirrored (*make)(int64_t n, double scale) = is_bf16 ? halves : floats;
    int64_t H = in->heads, C = H * dim, pairs = 0, longest_q, longest_k;
    bool cross = false;
    for (int64_t i = 0; i < in->seqs; i++) cross = cross || in->len_k[i];
    const int32_t *len_k = cross ? in->len_k : in->len_q;
    for (int64_t i = 0; i < in->seqs; i++) pairs += H * in->len_q[i] * len_k[i];
    mirrored cu_seqlens_q = offsets(in->len_q, in->seqs, &longest_q),
             cu_seqlens_k = offsets(len_k, in->seqs, &longest_k);
    int64_t T = host_ids(cu_seqlens_q)[in->seqs], S = host_ids(cu_seqlens_k)[in->seqs];
    mirrored q = make(T * C, 1), k = make(S * C, 1), v = make(S * C, 1);
    mirrored out = make(T * C, NAN), lse = floats(H * T, NAN), probs = make(pairs, is_bf16 ? 0 : NAN);
    mirrored dout = make(T * C, 1), delta = floats(H * T, NAN);
    mirrored dq = make(T * C, NAN), dk = make(S * C, 1), dv = make(S * C, NAN);
    mirrored dist = make((2 * longest_k - 1) * H, 1), bias = make(pairs, 1), ddist = make(dist.n, 1),
             dbias = make(pairs, 1);
    ses_attn a = { .seqs = in->seqs,
                   .heads = H,
                   .dim = dim,
                   .max_seqlen_q = longest_q,
                   .max_seqlen_k = longest_k,
                   .scale = large ? 1 : 0.125f,
                   .causal = causal,
                   .window = reach,
                   .dropout = rate,
                   .rng_key = { 9, 1, 4 } };
    a.q_row = a.k_row = a.v_row = a.out_row = C;
    ses_attn b = a;
    a.cu_seqlens_q = host_ids(cu_seqlens_q), a.cu_seqlens_k = host_ids(cu_seqlens_k),
    b.cu_seqlens_q = gpu_ids(cu_seqlens_q), b.cu_seqlens_k = gpu_ids(cu_seqlens_k);
    a.q = q.host, a.k = k.host, a.v = v.host, a.out = out.host, a.lse = lse.host, a.probs = probs.host;
    b.q = q.gpu, b.k = k.gpu, b.v = v.gpu, b.out = out.gpu, b.lse = lse.gpu, b.probs = probs.gpu;
    if (is_bf16) a.probs = b.probs = NULL; /* tensor-core kernels do not support it */
    mirrored rest = floats(H * T, NAN);
    if (large) {
        make_exact(q, dim, 1 << 20), make_exact(k, dim, 1), make_exact(dist, dim, 0),
            make_exact(bias, dim, 0);
        a.probs = probs.host, b.lse_lo = rest.gpu;
    }
    if (extras) a.rel_bias = dist.host, b.rel_bias = dist.gpu, a.bias = bias.host, b.bias = bias.gpu;
    wait_for(gpu);
    cpu->k.attention(&cpu->exec, &a);
    g16->k.attention(&g16->exec, &b);
    wait_for(g16);
    check_close("attention", out, 1e-5);
    if (b.probs) check_close("probs", probs, 1e-5);
    /* otherwise -infinity for queries without visible keys */
    if (!cross) check_close("lse", lse, is_bf16 ? 1e-4 : 1e-5);
    ses_attn_grad g = { .dout = dout.host,
                        .dq = { dq.host, false },
                        .dk = { dk.host, true },
                        .dv = { dv.host, false },
                        .delta = delta.host,
                        .probs = large ? probs.host : NULL };
    ses_attn_grad h = { .dout = dout.gpu,
                        .dq = { dq.gpu, false },
                        .dk = { dk.gpu, true },
                        .dv = { dv.gpu, false },
                        .delta = delta.gpu };
    if (extras) g.drel_bias = (ses_dst){ ddist.host, true }, h.drel_bias = (ses_dst){ ddist.gpu, true };
    if (extras) g.dbias = (ses_dst){ dbias.host, true }, h.dbias = (ses_dst){ dbias.gpu, true };
    cpu->k.attention_bwd(&cpu->exec, &a, &g);
    g16->k.attention_bwd(&g16->exec, &b, &h);
    wait_for(g16);
    check_close("dq", dq, 2e-5), check_close("dk", dk, 2e-5), check_close("dv", dv, 2e-5);
    /* computed separately from the tensor-core kernels */
    if (!large || !is_bf16) check_close("ddist", ddist, 2e-5);
    check_close("dbias", dbias, 2e-5);
    mirrored all[] = { cu_seqlens_q, cu_seqlens_k, q,  k,  v,     out,  lse,  probs, rest,
                       dout,         dq,           dk, dv, delta, dist, bias, ddist, dbias };
    for (size_t i = 0; i < SES_LEN(all); i++) drop(all[i]);
}

static void attention(const batch *in, int64_t dim, bool causal, int64_t reach, double rate, bool extras,
                      bool is_bf16)
{
    attend(in, dim, causal, reach, rate, extras, is_bf16, false);
}

static void test_attention(void)
{
    static const batch batches[] = { { 5, 3, { 1, 130, 0, 69, 257 } }, { 5, 3, { 1, 128, 0, 69, 17 } } };
    for (int i = 0; i < 4; i++) {
        bool is_bf16 = i % 2;
        const batch *b = &batches[i / 2];
        attention(b, 64, false, 0, 0, false, is_bf16);
        attention(b, 64, false, 0, 0.1, false, is_bf16);
        attention(b, 64, true, 40, 0, false, is_bf16);
        attention(b, 64, true, 0, 0.1, false, is_bf16);
        attention(b, 80, false, 33, 0, true, is_bf16);
        attention(b, 5, true, 7, 0.5, true, is_bf16);
        attention(b, 128, false, 0, 0.1, false, is_bf16);
        attention(b, 40, true, 50, 0.1, true, is_bf16);
        attention(b, 200, true, 0, 0, false, is_bf16);
        attention(b, 600, false, 0, 0.1, true, is_bf16);
    }
}

/* bf16 with head size 64, enough work items for the Hopper kernels: lengths around their tiles, queries
 * without visible keys and keys without queries. */
static void test_attention_tiles(void)
{
    static const batch batches[] = {
        { 11, 7, { 1, 7, 63, 64, 65, 127, 129, 200, 0, 513, 128 } },
        { 9, 8, { 1, 128, 17, 65, 127, 64, 0, 99, 3 } },
        { 9, 8, { 5, 130, 64, 0, 200, 300, 129, 1, 257 }, { 70, 40, 300, 9, 129, 0, 260, 400, 128 } },
    };
    for (size_t i = 0; i < SES_LEN(batches); i++) {
        const batch *b = &batches[i];
        for (int causal = 0; causal < 2; causal++) {
            attention(b, 64, causal, 0, 0, false, true);
            attention(b, 64, causal, 0, 0.1, false, true);
            attention(b, 64, causal, 150, 0.6, false, true);
        }
        attention(b, 64, false, 20, 0, false, true);
        attention(b, 64, false, 0, 0.1, true, true); /* biases and their gradients */
        attention(b, 32, true, 0, 0, true, true);
    }
}

/* Every backward kernel with an lse too large to represent probabilities. */
static void test_attention_large(void)
{
    static const batch some = { 5, 3, { 1, 130, 0, 69, 257 } }, brief = { 3, 3, { 17, 90, 1 } },
                       many = { 11, 7, { 1, 7, 63, 64, 65, 127, 129, 200, 0, 513, 128 } };
    for (int is_bf16 = 0; is_bf16 < 2; is_bf16++) {
        attend(&some, 64, false, 0, 0, false, is_bf16, true);
        attend(&some, 64, true, 40, 0.1, false, is_bf16, true);
        attend(&some, 80, false, 33, 0, true, is_bf16, true);
        attend(&some, 5, true, 0, 0.1, true, is_bf16, true);
        attend(&some, 200, false, 0, 0, false, is_bf16, true);
        attend(&brief, 64, false, 0, 0.1, false, is_bf16, true);
        attend(&many, 64, false, 0, 0.1, false, is_bf16, true);
        attend(&many, 64, true, 0, 0, false, is_bf16, true);
    }
}

/* Relative scores of ragged sequences, and their gradients. */
typedef struct relative_case {
    int64_t dim;
    bool by_key, by_label, at_positions, has_mask;
    int64_t reversed_from; /* 0: none */
    int64_t clip;          /* distances beyond it share the last row; 0: none */
} relative_case;

static void relative(const batch *in, const relative_case *c, bool is_bf16)
{
    ses_device *d = is_bf16 ? gpu16 : gpu;
    mirrored (*make)(int64_t n, double scale) = is_bf16 ? halves : floats;
    int64_t H = in->heads, C = H * c->dim, pairs = 0, longest_q, longest_k;
    const int32_t *len_k = in->len_k[0] ? in->len_k : in->len_q;
    for (int64_t i = 0; i < in->seqs; i++) pairs += in->len_q[i] * len_k[i];
    mirrored cu_q = offsets(in->len_q, in->seqs, &longest_q), cu_k = offsets(len_k, in->seqs, &longest_k);
    int64_t T = host_ids(cu_q)[in->seqs], S = host_ids(cu_k)[in->seqs], n = 2 * longest_k - 1,
            reach = c->clip ? c->clip : longest_k - 1, rows = c->by_label ? 2 : 2 * reach + 1;
    int32_t *row = ses_alloc((size_t)n * 4, NULL), *pos = ses_alloc((size_t)T * 4, NULL),
            *label = ses_alloc((size_t)S * 4, NULL);
    for (int64_t i = 0; i < n; i++)
        row[i] =
            (int32_t)(fmax(-(double)reach, fmin((double)reach, (double)(longest_k - 1 - i))) + (double)reach);
    for (int64_t s = 0; s < in->seqs; s++) /* permuted, some twice */
        for (int32_t i = 0; i < in->len_q[s]; i++) pos[host_ids(cu_q)[s] + i] = i * 7 % len_k[s];
    for (int64_t i = 0; i < S; i++) label[i] = (int32_t)(i / 5 % 3);
    mirrored dist = ints(n, row), at = ints(T, pos), labels = ints(S, label);
    mirrored x = make((c->by_key ? S : T) * C, 1), r = make(rows * C, 1), mask = floats(pairs, 1),
             y = make(pairs * H, 1), dy = make(pairs * H, 1), dx = make(x.n, 1), dr = make(r.n, 1);
    ses_relative a = { .seqs = in->seqs,
                       .heads = H,
                       .dim = c->dim,
                       .max_seqlen_k = longest_k,
                       .x_row = C,
                       .x_head = c->dim,
                       .x_is_key = c->by_key,
                       .rows = rows,
                       .scale = 0.3f };
    a.reversed_from = c->reversed_from ? c->reversed_from : a.seqs;
    ses_relative b = a;
    a.cu_seqlens_q = host_ids(cu_q), a.cu_seqlens_k = host_ids(cu_k), a.x = x.host, a.r = r.host;
    b.cu_seqlens_q = gpu_ids(cu_q), b.cu_seqlens_k = gpu_ids(cu_k), b.x = x.gpu, b.r = r.gpu;
    if (c->by_label)
        a.label = host_ids(labels), b.label = gpu_ids(labels);
    else
        a.dist_to_row = host_ids(dist), b.dist_to_row = gpu_ids(dist);
    if (c->at_positions) a.q_pos = host_ids(at), b.q_pos = gpu_ids(at);
    if (c->has_mask) a.mask = mask.host, b.mask = mask.gpu;
    for (int add = 1; add >= 0; add--) {
        wait_for(gpu);
        cpu->k.relative(&cpu->exec, &a, (ses_dst){ y.host, add });
        d->k.relative(&d->exec, &b, (ses_dst){ y.gpu, add });
        cpu->k.relative_bwd(&cpu->exec, &a, dy.host, (ses_dst){ dx.host, add }, (ses_dst){ dr.host, add });
        d->k.relative_bwd(&d->exec, &b, dy.gpu, (ses_dst){ dx.gpu, add }, (ses_dst){ dr.gpu, add });
        wait_for(d);
        check_close("relative", y, 1e-5), check_close("relative dx", dx, 2e-5),
            check_close("relative dr", dr, 2e-5);
    }
    mirrored all[] = { cu_q, cu_k, dist, at, labels, x, r, mask, y, dy, dx, dr };
    for (size_t i = 0; i < SES_LEN(all); i++) drop(all[i]);
    ses_free(row), ses_free(pos), ses_free(label);
}

static void test_relative(void)
{
    static const batch batches[] = { { 7, 3, { 1, 130, 0, 69, 257, 64, 63 } },
                                     { 4, 2, { 5, 64, 1, 100 }, { 70, 65, 3, 260 } },
                                     { 11, 1, { 3, 2, 1, 4, 5, 6, 7, 8, 9, 65, 10 } } };
    static const relative_case cases[] = {
        { 64 },
        { 64, .by_key = true },
        { 64, .clip = 40, .has_mask = true },
        { 64, .by_key = true, .clip = 9 },
        { 32, .reversed_from = 2 },
        { 80, .at_positions = true, .has_mask = true, .reversed_from = 1 },
        { 128, .by_key = true },
        { 40 },
        { 5, .by_key = true, .reversed_from = 3 }, /* not for tensor cores */
        { 64, .by_label = true },
        { 40, .by_label = true, .at_positions = true, .has_mask = true },
        { 24, .by_label = true, .by_key = true },
        { 130, .by_label = true },
    };
    for (size_t b = 0; b < SES_LEN(batches); b++)
        for (size_t i = 0; i < SES_LEN(cases); i++)
            for (int is_bf16 = 0; is_bf16 < 2; is_bf16++) relative(&batches[b], &cases[i], is_bf16);
}

/* bf16 attention that is given the terms of its bias, beside attention with the bias. */
static void attend_terms(const batch *in, const relative_case *c, const relative_case *second)
{
    int64_t H = in->heads, C = H * c->dim, pairs = 0, longest_q, longest_k;
    const int32_t *len_k = in->len_k[0] ? in->len_k : in->len_q;
    for (int64_t i = 0; i < in->seqs; i++) pairs += in->len_q[i] * len_k[i];
    mirrored cu_q = offsets(in->len_q, in->seqs, &longest_q), cu_k = offsets(len_k, in->seqs, &longest_k);
    int64_t T = host_ids(cu_q)[in->seqs], S = host_ids(cu_k)[in->seqs], n = 2 * longest_k - 1;
    int32_t *row = ses_alloc((size_t)n * 4, NULL), *pos = ses_alloc((size_t)T * 4, NULL),
            *label = ses_alloc((size_t)S * 4, NULL);
    for (int64_t i = 0; i < n; i++) row[i] = (int32_t)(i / 2);
    for (int64_t s = 0; s < in->seqs; s++)
        for (int32_t i = 0; i < in->len_q[s]; i++) pos[host_ids(cu_q)[s] + i] = i * 7 % len_k[s];
    for (int64_t i = 0; i < S; i++) label[i] = (int32_t)(i / 5 % 3);
    mirrored dist = ints(n, row), at = ints(T, pos), labels = ints(S, label);
    mirrored q = halves(T * C, 1), k = halves(S * C, 1), v = halves(S * C, 1), out = halves(T * C, NAN),
             x = halves(T * C, 0.5), r[2] = { halves(n * C, 0.5), halves(n * C, 0.5) },
             mask = floats(pairs, 1), bias = halves(pairs * H, 0);
    ses_score_terms host = { .pairs = pairs }, there = { .pairs = pairs };
    const relative_case *term[] = { c, second };
    for (int i = 0; i < 2 && term[i]; i++) {
        const relative_case *o = term[i];
        ses_relative a = { .seqs = in->seqs,
                           .heads = H,
                           .dim = c->dim,
                           .max_seqlen_k = longest_k,
                           .x_row = C,
                           .x_head = c->dim,
                           .x_is_key = o->by_key,
                           .rows = o->by_label ? 2 : n,
                           .scale = 0.2f };
        a.reversed_from = o->reversed_from ? o->reversed_from : a.seqs;
        ses_relative b = a;
        a.cu_seqlens_q = host_ids(cu_q), a.cu_seqlens_k = host_ids(cu_k), a.r = r[i].host;
        b.cu_seqlens_q = gpu_ids(cu_q), b.cu_seqlens_k = gpu_ids(cu_k), b.r = r[i].gpu;
        a.x = o->by_key ? k.host : x.host, b.x = o->by_key ? k.gpu : x.gpu;
        if (o->by_label)
            a.label = host_ids(labels), b.label = gpu_ids(labels);
        else
            a.dist_to_row = host_ids(dist), b.dist_to_row = gpu_ids(dist);
        if (o->at_positions) a.q_pos = host_ids(at), b.q_pos = gpu_ids(at);
        if (o->has_mask) a.mask = mask.host, b.mask = mask.gpu;
        host.term[host.n++] = a, there.term[there.n++] = b;
    }
    for (int i = 0; i < host.n; i++)
        cpu->k.relative(&cpu->exec, &host.term[i], (ses_dst){ bias.host, i > 0 });
    ses_attn a = { .seqs = in->seqs,
                   .heads = H,
                   .dim = c->dim,
                   .max_seqlen_q = longest_q,
                   .max_seqlen_k = longest_k,
                   .scale = 0.125f };
    a.q_row = a.k_row = a.v_row = a.out_row = C;
    ses_attn b = a;
    a.cu_seqlens_q = host_ids(cu_q), a.cu_seqlens_k = host_ids(cu_k), b.cu_seqlens_q = gpu_ids(cu_q),
    b.cu_seqlens_k = gpu_ids(cu_k);
    a.q = q.host, a.k = k.host, a.v = v.host, a.out = out.host, a.bias = bias.host;
    b.q = q.gpu, b.k = k.gpu, b.v = v.gpu, b.out = out.gpu, b.terms = &there;
    wait_for(gpu);
    cpu->k.attention(&cpu->exec, &a);
    gpu16->k.attention(&gpu16->exec, &b);
    wait_for(gpu16);
    check_close("attention with terms", out, 1e-2);
    mirrored all[] = { cu_q, cu_k, dist, at, labels, q, k, v, out, x, r[0], r[1], mask, bias };
    for (size_t i = 0; i < SES_LEN(all); i++) drop(all[i]);
    ses_free(row), ses_free(pos), ses_free(label);
}

static void test_attention_terms(void)
{
    static const batch batches[] = { { 7, 3, { 1, 130, 0, 69, 257, 64, 63 } },
                                     { 4, 2, { 5, 64, 1, 100 }, { 70, 65, 3, 260 } },
                                     { 11, 1, { 3, 2, 1, 4, 5, 6, 7, 8, 9, 65, 10 } } };
    static const relative_case query = { 64 }, key = { 64, .by_key = true }, label = { 64, .by_label = true },
                               turned = { 40, .reversed_from = 2, .has_mask = true },
                               small = { 40, .by_key = true }, wide = { 80 },
                               placed = { 64, .at_positions = true, .has_mask = true };
    static const struct {
        const relative_case *first, *second;
    } cases[] = { { &query, NULL },   { &key, NULL },      { &query, &key },
                  { &query, &label }, { &label, NULL },    { &turned, &small },
                  { &wide, NULL },    { &placed, &label }, { &turned, NULL } };
    for (size_t b = 0; b < SES_LEN(batches); b++)
        for (size_t i = 0; i < SES_LEN(cases); i++)
            attend_terms(&batches[b], cases[i].first, cases[i].second);
}

/* The same call gives the same bits. */
static void test_repeat(void)
{
    enum { ROWS = 5000, COLS = 300 };
    mirrored a = floats(ROWS * COLS, 1), y = floats(COLS, 0), z = floats(COLS, 0);
    gpu->k.col_sum(&gpu->exec, (ses_dst){ y.gpu, true }, a.gpu, ROWS, COLS, COLS);
    gpu->k.col_sum(&gpu->exec, (ses_dst){ z.gpu, true }, a.gpu, ROWS, COLS, COLS);
    gpu->mem->download(gpu, y.host, y.gpu, COLS * 4);
    gpu->mem->download(gpu, z.host, z.gpu, COLS * 4);
    CHECK(!memcmp(y.host, z.host, COLS * 4));
    drop(a), drop(y), drop(z);
}

/* A recurring shape is autotuned: the fastest algorithm has the bits of the first, also for sums over many
 * rows, for which some algorithms split k. */
static void test_autotune(void)
{
    static const struct {
        int64_t m, n, k;
        bool rotated; /* gradient of weights: A' B, accumulated in f32 */
        ses_act act;
    } shapes[] = { { 1000, 768, 256, false, SES_ACT_NONE },  { 2048, 512, 768, false, SES_ACT_GELU },
                   { 384, 384, 8192, true, SES_ACT_NONE },   { 257, 520, 1000, true, SES_ACT_NONE },
                   { 320, 1024, 3072, false, SES_ACT_RELU }, { 8192, 24, 64, false, SES_ACT_NONE } };
    enum { ROUNDS = 64 };
    for (size_t i = 0; i < SES_LEN(shapes); i++) {
        int64_t m = shapes[i].m, n = shapes[i].n, k = shapes[i].k;
        bool rotated = shapes[i].rotated, gelu = shapes[i].act == SES_ACT_GELU;
        mirrored a = halves(m * k, 1), b = halves(k * n, 1), bias = halves(n, 1), c = floats(m * n, 1),
                 pre = floats(m * n, 0);
        float *first = ses_alloc((size_t)(2 * m * n) * sizeof *first, NULL), *y = first + m * n;
        ses_gemm g =
            rotated ? ses_gemm_tn(c.gpu, a.gpu, b.gpu, m, n, k) : ses_gemm_nt(c.gpu, a.gpu, b.gpu, m, n, k);
        g.accumulate = g.is_f32 = rotated, g.act = shapes[i].act;
        if (!rotated) g.bias = bias.gpu;
        if (gelu) g.pre_act = pre.gpu;
        size_t size = (size_t)(m * n) * (rotated ? 4 : 2);
        wait_for(gpu);
        for (int round = 0; round < ROUNDS; round++) {
            gpu16->mem->upload(gpu16, c.gpu, c.host, (size_t)(m * n) * 4);
            gpu16->k.gemm(&gpu16->exec, &g);
            gpu16->mem->download(gpu16, round ? y : first, gelu && round % 2 ? pre.gpu : c.gpu, size);
            if (gelu && round == 1) memcpy(pre.host, y, size);
            CHECK_MSG(!round || !memcmp(y, gelu && round % 2 ? pre.host : first, size),
                      "shape %d, round %d: other bits", (int)i, round);
        }
        wait_for(gpu16);
        ses_free(first);
        drop(a), drop(b), drop(bias), drop(c), drop(pre);
    }
}

/* Logits of a batch with the first sequences of the fixture. */
enum { LOGITS = 13 * 37 };
static void logits_of(const ses_model *m, ses_tape *t, int64_t seqs, const int32_t *ids, float y[LOGITS])
{
    ses_err e = { 0 };
    ses_outputs out;
    ses_batch b = { .seqs = seqs, .tokens = fixture_cu[seqs], .cu_seqlens = fixture_cu, .ids = ids };
    memset(y, 0, LOGITS * sizeof *y);
    ses_tape_reset(t, NULL);
    CHECK_MSG(ses_model_forward(m, t, &b, &(ses_output_request){ .logits = true }, &out, &e), "%s", e.msg);
    CHECK(ses_tape_read(t, out.item[0].tensor, y));
}

/* Recurring shapes run as CUDA graphs: other ids, other shapes in between, memory freed. */
static void test_replay(ses_device *d)
{
    ses_err e = { 0 };
    ses_json_doc *doc = fixture_config("BertForMaskedLM", &e);
    ses_model *m = ses_model_new(ses_json_root(doc), d, &(ses_model_options){ .seed = 3 }, &e);
    enum { ROUNDS = 16 };
    float *y = ses_alloc(2 * ROUNDS * LOGITS * sizeof *y, &e);
    ses_tape *t = NULL;
    for (int i = 0; m && y && i < 2 * ROUNDS; i++) {
        int round = i % ROUNDS, kept = i / ROUNDS; /* each round on its own tape, then all on one */
        int32_t ids[13];
        for (int j = 0; j < 13; j++) ids[j] = (fixture_ids[j] + 5 * round) % 37;
        if (!kept || !round) ses_tape_free(t), t = ses_tape_new(d, NULL, &e);
        if (round == 11) d->mem->free(d, d->mem->alloc(d, 100, &e));
        logits_of(m, t, round % 4 == 3 ? 1 : 3, ids, y + i * LOGITS);
    }
    if (CHECK_MSG(t, "%s", e.msg))
        for (int i = 0; i < ROUNDS; i++)
            CHECK_MSG(!memcmp(y + i * LOGITS, y + (ROUNDS + i) * LOGITS, LOGITS * sizeof *y),
                      "round %d: other bits than on a tape of its own", i);
    ses_free(y);
    ses_tape_free(t);
    ses_model_free(m);
    ses_json_free(doc);
}

int main(void)
{
    ses_err e = { 0 };
    gpu = ses_device_open("cuda", NULL, &e);
    gpu16 =
        ses_device_open("cuda", &(ses_device_options){ .dtype = SES_BF16, .autotune_eagerly = true }, NULL);
    cpu = ses_device_open("cpu", NULL, NULL);
    if (!gpu) SKIP(e.msg);
    if (gpu) {
        test_optimizers();
        test_adamw_list();
        test_rows_of();
        test_copied_rows();
        test_gated_and_turned();
        test_rows();
        test_products();
        test_ragged();
        test_attention();
        test_attention_tiles();
        test_attention_large();
        test_relative();
        test_attention_terms();
        test_repeat();
        test_autotune();
        test_replay(gpu);
        test_replay(gpu16);
        CHECK_MSG(gpu->mem->ok(gpu, &e), "%s", e.msg);
    }
    CHECK(cpu);
    ses_device_free(gpu16);
    ses_device_free(gpu);
    ses_device_free(cpu);
    return check_report();
}
