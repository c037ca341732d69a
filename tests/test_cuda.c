/* CUDA kernels on sizes that the cases of the ops do not reach: many rows, long sequences, arbitrary strides,
 * runs of equal ids; and kernels that no op calls. Compared with ref, and run twice to compare bits. Skipped
 * without a GPU. */
#include "cuda_fixture.h"
#include "model_fixture.h"

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

/* pairs 0: all columns of a head. */
static void rotated(int64_t rows, int64_t heads, int64_t dim, int64_t rest, double theta, int64_t pairs,
                    bool is_bf16)
{
    ses_device *d = is_bf16 ? gpu16 : gpu;
    mirrored (*make)(int64_t n, double scale) = is_bf16 ? halves : floats;
    int64_t cols = heads * dim + rest;
    double rate[SES_ROTARY_MAX_PAIRS];
    ses_rotary_spec o = { heads * dim, dim, pairs ? pairs : dim / 2, pairs % 2, rate, pairs ? 1.3 : 1, 1 };
    ses_rotary_spec back = o;
    back.sign = -1;
    for (int64_t i = 0; i < o.pairs; i++) rate[i] = pow(theta, -(double)i / (double)o.pairs);
    int32_t *pos = ses_alloc((size_t)rows * sizeof *pos, NULL);
    for (int64_t i = 0; i < rows; i++) pos[i] = (int32_t)(i % 517 * (i % 5 ? 1 : 60));
    mirrored positions = ints(rows, pos), a = make(rows * cols, 1), y = make(rows * cols, 1);
    wait_for(gpu);
    for (int add = 1; add >= 0; add--) {
        cpu->k.rotary(&cpu->exec, (ses_dst){ y.host, add }, a.host, host_ids(positions), rows, cols, &o);
        d->k.rotary(&d->exec, (ses_dst){ y.gpu, add }, a.gpu, gpu_ids(positions), rows, cols, &o);
        wait_for(d);
        check_close(add ? "rotary added" : "rotary", y, 2e-6);
    }
    cpu->k.rotary(&cpu->exec, (ses_dst){ a.host, false }, a.host, host_ids(positions), rows, cols, &back);
    d->k.rotary(&d->exec, (ses_dst){ a.gpu, false }, a.gpu, gpu_ids(positions), rows, cols, &back);
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
        rotated(3001, 12, 64, 384, 10000, 0, is_bf16);
        rotated(777, 6, 128, 0, 160000, 0, is_bf16);
        rotated(501, 4, 48, 96, 10000, 0, is_bf16); /* with idle threads */
        rotated(301, 3, 6, 7, 10000, 0, is_bf16);
        rotated(701, 3, 64, 20, 1e4, 16, is_bf16); /* a part of each head */
        rotated(333, 2, 48, 0, 1e6, 11, is_bf16);  /* adjacent columns */
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
    if (open_devices(&e)) {
        test_optimizers();
        test_adamw_list();
        test_rows_of();
        test_copied_rows();
        test_gated_and_turned();
        test_rows();
        test_products();
        test_ragged();
        test_repeat();
        test_autotune();
        test_replay(gpu);
        test_replay(gpu16);
    } else {
        SKIP(e.msg);
    }
    close_devices();
    return check_report();
}
