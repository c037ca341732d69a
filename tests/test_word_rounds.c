/* Rounds of word vectors: every word of a text is trained once in a pass, rounds of one step equal word_step
 * and bag_step, and gradients of many steps are scaled. tests/test_cuda_words.c compares GPUs with ref. */
#include "base/alloc.h"
#include "check.h"
#include "kernel/word_draws.h"

enum { WORDS = 50, TEXT = 400, COLS = 20, WINDOW = 4, OUTPUTS = 6 };

static int32_t text[TEXT];
static uint32_t keep[WORDS];
static ses_sampling_cell cell[WORDS];
static int64_t path_start[WORDS + 1];
static int32_t path[WORDS * OUTPUTS];

static uint32_t draw(uint64_t i) { return ses_rand32((ses_rng_key){ 4, 1, 2 }, i); }

static void make_tables(void)
{
    for (uint64_t i = 0; i < TEXT; i++) text[i] = draw(i) % 25 ? (int32_t)(draw(i + TEXT) % WORDS) : -1;
    for (uint64_t i = 0; i < WORDS; i++) {
        keep[i] = i % 2 ? UINT32_MAX : 1u << 31;
        cell[i] = (ses_sampling_cell){ draw(i), (int32_t)(draw(i) % WORDS) };
        path_start[i + 1] = path_start[i] + 1 + (int64_t)i % OUTPUTS;
        for (int64_t k = path_start[i]; k < path_start[i + 1]; k++)
            path[k] = 2 * (int32_t)((i + 7 * (uint64_t)(k - path_start[i])) % WORDS) + (k % 3 == 0);
    }
}

static ses_word_rounds rounds_of(bool bags, bool tree)
{
    return (ses_word_rounds){ .id = text,
                              .n = TEXT,
                              .parts = 1,
                              .part_words = 1,
                              .words = WORDS,
                              .keep = keep,
                              .negatives = cell,
                              .path_start = path_start,
                              .path = tree ? path : NULL,
                              .window = WINDOW,
                              .outputs = OUTPUTS,
                              .bags = bags,
                              .keep_start = 5,
                              .step_start = 6,
                              .in_rows = WORDS,
                              .rows = 2 * WORDS,
                              .cols = COLS };
}

/* The positions of a pass are 0 .. n - 1, each once. */
static void test_positions(int64_t n, int64_t parts, int64_t part_words)
{
    ses_word_rounds r = { .n = n, .parts = parts, .part_words = part_words };
    int *seen = ses_alloc_array((size_t)n, sizeof *seen, NULL);
    bool once = true;
    int64_t longest = (n + parts - 1) / parts;
    for (int64_t round = 0; round * part_words < longest; round++)
        for (int64_t step = 0; step < parts * part_words; step++) {
            int64_t at = ses_word_position(&r, round, step);
            if (at >= 0) once = once && at < n && !seen[at]++;
        }
    for (int64_t i = 0; i < n; i++) once = once && seen[i];
    CHECK_MSG(once, "%d words in %d parts", (int)n, (int)parts);
    ses_free(seen);
}

/* Trains one step with the kernels of threads. Returns the loss. */
static double train_step(const ses_word_rounds *r, int64_t at, float *weight, int64_t *pairs)
{
    int32_t in[2 * WINDOW], out[OUTPUTS], n, m;
    float *x[2 * WINDOW], *y[OUTPUTS], label[OUTPUTS], scratch[2 * COLS];
    ses_word_step_rows(r, at, in, &n, out, &m);
    if (!n) return 0;
    for (int i = 0; i < n; i++) x[i] = weight + in[i] * COLS;
    for (int i = 0; i < m; i++) y[i] = weight + (out[i] >> 1) * COLS, label[i] = (float)(out[i] & 1);
    ses_word_step s = { x, y, label, n, m, COLS, r->rate[0] };
    *pairs += r->bags ? 1 : n;
    return r->bags ? ses_k_bag_step_ref(&s, scratch) : ses_k_word_step_ref(&s);
}

static void test_single_steps(bool bags, bool tree)
{
    static float weight[2][2 * WORDS * COLS], rate = 0.1f;
    double sums[2] = { 0 }, loss = 0, worst = 0;
    int64_t pairs = 0;
    ses_word_rounds r = rounds_of(bags, tree);
    for (uint64_t i = 0; i < 2 * WORDS * COLS; i++)
        weight[0][i] = weight[1][i] = (float)(draw(i) >> 8) * 0x1p-24f - 0.5f;
    r.weight = weight[0], r.sums = sums, r.rate = &rate, r.count = 1;
    r.scratch = ses_alloc_aligned((size_t)ses_k_word_rounds_size_ref(NULL, &r), NULL);
    for (r.first = 0; r.first < TEXT; r.first++) {
        ses_k_word_rounds_ref(NULL, &r);
        loss += train_step(&r, r.first, weight[1], &pairs);
    }
    for (int i = 0; i < 2 * WORDS * COLS; i++)
        worst = fmax(worst, fabs((double)weight[0][i] - (double)weight[1][i]));
    CHECK_MSG(worst < 1e-5, "bags %d, tree %d: differs by %g", bags, tree, worst);
    CHECK_MSG(fabs(loss - sums[0]) < 1e-5 * loss && pairs > 100 && sums[1] == (double)pairs,
              "loss %g, not %g; %g pairs, not %d", sums[0], loss, sums[1], (int)pairs);
    ses_free(r.scratch);
}

/* The more steps use a row, the smaller is the part of each; the sum stays below 1 / (1 - exp(-0.1)). */
static void test_scale(void)
{
    CHECK(ses_word_scale(0.01f, 1, 1) == 1 && ses_word_scale(0.001f, 10, 10) == 1);
    CHECK(fabsf(ses_word_scale(0.1f, 1, 1) - 1) < 1e-6f);
    float before = 1;
    for (int64_t uses = 2; uses < 10000; uses *= 3) {
        float scale = ses_word_scale(0.1f, uses, uses);
        CHECK(scale < before && scale * (float)uses < 1 / 0.0951f);
        before = scale;
    }
}

int main(void)
{
    make_tables();
    test_positions(1, 1, 1);
    test_positions(100, 7, 3);
    test_positions(1000, 128, 1);
    test_positions(997, 64, 5);
    for (int i = 0; i < 4; i++) test_single_steps(i & 1, i & 2);
    test_scale();
    return check_report();
}
