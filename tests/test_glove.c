/* GloVe: tiles, counts against a loop in double precision, the kernel against its reference, bits for every
 * number of threads and memory limit, resume. */
#include "base/alloc.h"
#include "base/rng.h"
#include "check.h"
#include "vectors/glove/glove_device.h"
#include "vectors/glove/glove_model.h"
#include "vectors/glove/pair_count.h"

#include <math.h>
#include <unistd.h>

static uint32_t draw(uint64_t i) { return ses_rand32((ses_rng_key){ 5, 1, 2 }, i); }

/* ---- tiles ---- */

static void test_tiles(int64_t words)
{
    ses_glove_tiles t = ses_glove_tiles_of(words, SES_GLOVE_CPU_GROUPS, 7);
    char *seen = ses_alloc((size_t)(t.groups * t.rows), NULL);
    bool distinct = true, same = true, sorted = true;
    for (int64_t i = 0; i < words; i++) {
        int64_t r = ses_glove_row(&t, i);
        distinct &= r >= 0 && r < t.groups * t.rows && !seen[r]++;
    }
    for (uint64_t i = 0; i < 2000; i++) {
        int64_t a = ses_glove_row(&t, draw(2 * i) % words), b = ses_glove_row(&t, draw(2 * i + 1) % words);
        uint64_t key = ses_glove_key(&t, a, b);
        int64_t tile = ses_glove_key_tile(&t, key), g = tile % t.groups, p = tile / t.groups;
        int32_t x, y;
        ses_glove_key_rows(&t, key, &x, &y);
        same &= x == a && y == b;
        sorted &= a / t.rows == g && b / t.rows == (g + p) % t.groups && p < t.groups;
        int bits = ses_glove_key_bits(&t);
        sorted &= bits == 64 || key >> bits == 0;
    }
    CHECK(distinct);
    CHECK(same);
    CHECK(sorted);
    ses_free(seen);
}

static void test_sort(size_t n, int bits)
{
    ses_pair_count *p = ses_alloc_array(n, sizeof *p, NULL);
    uint64_t sum = 0, left = 0;
    bool sorted = true;
    for (size_t i = 0; i < n; i++) {
        p[i].key = ((uint64_t)draw(i) << 32 | draw(i + n)) >> (64 - bits);
        sum += p[i].sum = draw(i) % 100;
    }
    ses_pair_sort(p, n, bits);
    for (size_t i = 1; i < n; i++) sorted &= p[i - 1].key <= p[i].key;
    n = ses_pair_unite(p, n);
    for (size_t i = 0; i < n; i++) left += p[i].sum;
    for (size_t i = 1; i < n; i++) sorted &= p[i - 1].key < p[i].key;
    CHECK(sorted);
    CHECK(sum == left);
    ses_free(p);
}

/* ---- counts ---- */

enum { WORDS = 300, TEXT = 30000 };
static int32_t text[TEXT];

static void make_text(void)
{
    for (int i = 0; i < TEXT; i++) {
        double u = draw((uint64_t)i) / 4294967296.0;
        text[i] = draw((uint64_t)i + TEXT) % 40 == 0 ? -1 : (int32_t)(WORDS * u * u * u);
    }
}

static ses_glove_count_options count_options(size_t memory)
{
    return (ses_glove_count_options){
        .window = 15, .symmetric = true, .memory = memory, .x_max = 100, .alpha = 0.75, .beside = "build/x"
    };
}

static double (*brute_force(int64_t window, bool symmetric))[WORDS]
{
    double(*x)[WORDS] = ses_alloc_array(WORDS, sizeof *x, NULL);
    for (int i = 0; i < TEXT; i++)
        for (int k = i - 1; text[i] >= 0 && k >= 0 && i - k <= window && text[k] >= 0; k--) {
            x[text[k]][text[i]] += 1.0 / (i - k);
            if (symmetric) x[text[i]][text[k]] += 1.0 / (i - k);
        }
    return x;
}

static void test_counts(int64_t window, bool symmetric, size_t memory, int threads)
{
    ses_err e = { 0 };
    ses_thread_pool *pool = ses_thread_pool_new(threads, &e);
    ses_glove_tiles tiles = ses_glove_tiles_of(WORDS, SES_GLOVE_CPU_GROUPS, 3);
    ses_glove_count_options o = count_options(memory);
    ses_glove_pairs pairs = { 0 };
    o.window = window, o.symmetric = symmetric;
    CHECK_MSG(ses_glove_count_pairs(&pairs, text, TEXT, &tiles, &o, pool, &e), "%s", e.msg);
    double(*want)[WORDS] = brute_force(window, symmetric), worst = 0;
    int64_t wanted = 0, rank_of[2 * WORDS];
    for (int64_t i = 0; i < WORDS; i++) rank_of[ses_glove_row(&tiles, i)] = i;
    for (int a = 0; a < WORDS; a++)
        for (int b = 0; b < WORDS; b++) wanted += want[a][b] > 0;
    CHECK(pairs.n == wanted);
    for (int64_t t = 0; t < tiles.groups * tiles.groups; t++)
        for (int64_t i = 0; i < pairs.count[t]; i++) {
            ses_glove_pair p;
            if (!ses_glove_pairs_read(&pairs, pairs.start[t] + i, 1, &p, &e)) break;
            double x = want[rank_of[p.word]][rank_of[p.context]];
            worst = fmax(worst, fabs(p.log_count - log(x)) / fmax(1, fabs(log(x))));
            worst = fmax(worst, fabs(p.weight - (x > 100 ? 1 : pow(x / 100, 0.75))));
        }
    CHECK_MSG(worst < 1e-6, "largest difference %g", worst);
    ses_free(want);
    ses_glove_pairs_free(&pairs);
    ses_thread_pool_free(pool);
}

/* ---- kernel ---- */

static void fill(ses_real *x, int64_t rows, int64_t width, uint64_t from)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < 2 * width; i++) {
            float u = (float)(draw(from + (uint64_t)(r * 2 * width + i)) / 4294967296.0);
            x[r * 2 * width + i] = i < width ? u - 0.5f : 1 + u;
        }
}

static void test_kernel(int64_t width, ses_isa isa)
{
    enum { ROWS = 9, PAIRS = 50 };
    size_t n = (size_t)(ROWS * 2 * width);
    ses_real *x[4], *rate = ses_alloc_array((size_t)width, sizeof *rate, NULL);
    ses_glove_pair pair[PAIRS];
    double loss[2];
    for (int64_t i = 0; i < width; i++) rate[i] = i == width - 1 ? 0 : 0.05f;
    for (int i = 0; i < PAIRS; i++)
        pair[i] = (ses_glove_pair){ (int32_t)(draw(i) % ROWS), (int32_t)(draw(i + PAIRS) % ROWS),
                                    (float)(i % 7) - 2, i == 20 ? 1e4f : 0.3f };
    pair[7].log_count = (float)NAN;
    for (int i = 0; i < 4; i++) {
        x[i] = ses_alloc_array(n + 1, sizeof *x[i], NULL);
        fill(x[i], ROWS, width, (uint64_t)(1000 * (i & 1)));
        x[i][n] = 77;
    }
    for (int i = 0; i < 2; i++) {
        ses_kernels k = ses_kernels_cpu(i ? isa : SES_ISA_REF);
        loss[i] = k.glove_steps(&(ses_glove){ x[2 * i], x[2 * i + 1], width, rate, rate, 100 }, pair, PAIRS);
    }
    double worst = 0;
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < n; i++)
            worst = fmax(worst, fabs((double)x[s][i] - (double)x[2 + s][i]) / fmax(1, fabs((double)x[s][i])));
    CHECK_MSG(worst < 1e-4, "width %d, %s: %g", (int)width, ses_isa_name(isa), worst);
    CHECK_MSG(fabs(loss[0] - loss[1]) < 1e-4 * loss[0], "%.9g %.9g", loss[0], loss[1]);
    CHECK(x[2][n] == 77 && x[3][n] == 77);
    for (int i = 0; i < 4; i++) ses_free(x[i]);
    ses_free(rate);
}

/* ---- training ---- */

typedef struct trained {
    float vector[WORDS][34];
    double loss;
} trained;

/* Trains for 4 iterations. After iteration stop / 10 and stop % 10 phases, a new model continues from a
 * checkpoint. */
static void train(trained *out, int threads, size_t memory, int stop)
{
    enum { ITERATIONS = 4 };
    ses_err e = { 0 };
    ses_thread_pool *pool = ses_thread_pool_new(threads, &e);
    ses_kernels k = ses_kernels_cpu(ses_isa_best());
    ses_glove_threads on_threads = { &k, pool };
    ses_glove_engine engine = ses_glove_on_threads(&on_threads);
    ses_glove_tiles tiles = ses_glove_tiles_of(WORDS, SES_GLOVE_CPU_GROUPS, 3);
    ses_glove_count_options o = count_options(memory);
    ses_glove_settings s = { .dim = 17, .rate = 0.05, .seed = 11 };
    ses_glove_pairs pairs = { 0 };
    ses_glove_model m = { 0 };
    bool ok = ses_glove_count_pairs(&pairs, text, TEXT, &tiles, &o, pool, &e) &&
              ses_glove_model_init(&m, &tiles, &s, &e);
    while (ok && m.iteration < ITERATIONS) {
        if (m.iteration * 10 + m.phases == stop) {
            ok = ses_glove_model_save(&m, "this run", "build/glove-test-state", &e);
            ses_glove_model_free(&m);
            ok = ok && ses_glove_model_init(&m, &tiles, &s, &e);
            ses_err refused = { 0 };
            CHECK(!ses_glove_model_resume(&m, "other run", "build/glove-test-state", &refused));
            CHECK(strstr(refused.msg, "other settings"));
            ok = ok && ses_glove_model_resume(&m, "this run", "build/glove-test-state", &e);
            CHECK(m.iteration * 10 + m.phases == stop);
            unlink("build/glove-test-state");
        }
        ok = ok && ses_glove_model_step(&m, &pairs, &engine, &e);
    }
    CHECK_MSG(ok, "%s", e.msg);
    for (int64_t i = 0; ok && i < WORDS; i++) ses_glove_model_vector(&m, i, SES_GLOVE_BOTH, out->vector[i]);
    out->loss = m.loss;
    ses_glove_model_free(&m);
    ses_glove_pairs_free(&pairs);
    ses_thread_pool_free(pool);
}

static void test_training(void)
{
    trained *a = ses_alloc(sizeof *a, NULL), *b = ses_alloc(sizeof *b, NULL);
    static const struct {
        int threads;
        size_t memory;
        int stop;
    } run[] = {
        { 2, 1 << 26, -1 }, { 8, 1 << 26, -1 }, { 1, 1 << 10, -1 }, { 8, 1 << 10, 22 }, { 2, 1 << 26, 10 }
    };
    train(a, 1, 1 << 26, -1);
    CHECK(a->loss > 0 && a->loss < 0.05);
    for (size_t i = 0; i < sizeof run / sizeof *run; i++) {
        memset(b, 0, sizeof *b);
        train(b, run[i].threads, run[i].memory, run[i].stop);
        CHECK_MSG(!memcmp(a, b, sizeof *a), "run %zu", i);
    }
    ses_free(a);
    ses_free(b);
}

/* The engine of GPUs with the reference kernel: groups of a GPU, checkpoints. */
static void test_device(void)
{
    ses_err e = { 0 };
    ses_thread_pool *pool = ses_thread_pool_new(2, &e);
    ses_device *cpu = ses_device_open("cpu", NULL, &e);
    ses_kernels ref = ses_kernels_cpu(SES_ISA_REF);
    ses_glove_threads on_threads = { &ref, pool };
    ses_glove_tiles tiles = ses_glove_tiles_of(WORDS, SES_GLOVE_MAX_GROUPS, 3);
    ses_glove_count_options o = count_options(1 << 26);
    ses_glove_settings s = { .dim = 17, .rate = 0.05, .seed = 11 };
    ses_glove_pairs pairs = { 0 };
    ses_glove_model a = { 0 }, b = { 0 };
    bool ok = ses_glove_count_pairs(&pairs, text, TEXT, &tiles, &o, pool, &e) &&
              ses_glove_model_init(&a, &tiles, &s, &e) && ses_glove_model_init(&b, &tiles, &s, &e);
    ses_glove_device *d = ok ? ses_glove_device_new(cpu, &b, &pairs, &e) : NULL;
    ses_glove_engine threads = ses_glove_on_threads(&on_threads), device = ses_glove_on_device(d);
    ok = d != NULL;
    while (ok && a.iteration < 2)
        ok = ses_glove_model_step(&a, &pairs, &threads, &e) && ses_glove_model_step(&b, &pairs, &device, &e);
    ok = ok && device.fetch(device.state, &b, &e);
    CHECK_MSG(ok && a.loss == b.loss, "%s", e.msg);
    size_t n = (size_t)(tiles.groups * tiles.rows * 2 * a.width);
    CHECK(ok && !memcmp(a.word, b.word, n * sizeof *a.word) &&
          !memcmp(a.context, b.context, n * sizeof *a.word));
    ses_glove_device_free(d);
    ses_glove_model_free(&a);
    ses_glove_model_free(&b);
    ses_glove_pairs_free(&pairs);
    ses_device_free(cpu);
    ses_thread_pool_free(pool);
}

int main(void)
{
    make_text();
    for (int i = 0; i < 5; i++) test_tiles((const int64_t[]){ 1, 2, 63, 5000, 70001 }[i]);
    test_sort(0, 8);
    test_sort(1, 20);
    test_sort(20000, 9);
    test_sort(20000, 13);
    test_sort(20000, 64);
    test_counts(15, true, 1 << 26, 1);
    test_counts(15, true, 0, 8);
    test_counts(15, false, 1 << 26, 2);
    test_counts(1, false, 0, 3);
    test_counts(50, true, 0, 2);
    for (int64_t i = 0; i < 8; i++)
        for (ses_isa isa = SES_ISA_REF + 1; isa <= ses_isa_best(); isa++)
            test_kernel((const int64_t[]){ 1, 3, 8, 15, 16, 33, 64, 117 }[i], isa);
    test_training();
    test_device();
    return check_report();
}
