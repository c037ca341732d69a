/* Probes against scikit-learn and PyTorch (numbers of `bench/peers/probes.py fixtures`), control tasks,
 * baselines, and data that cannot be probed. */
#include "analysis/probe/probe_examples.h"
#include "analysis/probe/probe_net.h"
#include "analysis/probe/probe_nets.h"
#include "check.h"
#include "sesame/sesame.h"

#include <math.h>

static ses_device *dev;

static void make_data(size_t n, size_t width, size_t classes, float *x, int32_t *y)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = (int32_t)((i * i + 3 * i + i / 7) % classes);
        for (size_t k = 0; k < width; k++)
            x[i * width + k] = (float)((double)((i * 7919 + k * 104729 + i * k * 31) % 1009) / 1009 - 0.5 +
                                       (k == (size_t)y[i] % width ? 0.7 : 0));
    }
}

/* Codelength and accuracy of scikit-learn's LogisticRegression, for one and three threads. */
static void test_linear(void)
{
    enum { N = 4000, ALL = 5000, WIDTH = 12, CLASSES = 5 };
    float *x = malloc(ALL * WIDTH * sizeof *x);
    int32_t *y = malloc(ALL * sizeof *y);
    double c[] = { 0.5 };
    make_data(ALL, WIDTH, CLASSES, x, y);
    ses_probe_set train = { x, y, N }, test = { x + N * WIDTH, y + N, ALL - N };
    ses_probe_scores s[2];
    for (int i = 0; i < 2; i++) {
        ses_err e = { 0 };
        ses_device *d = ses_device_open("cpu", &(ses_device_options){ .threads = 1 + 2 * i }, &e);
        ses_probe_fit_options o = { .dev = d, .c = c, .n_c = 1, .mdl = true, .tolerance = 1e-7 };
        CHECK_MSG(ses_probe_fit(&o, &train, &test, &test, WIDTH, CLASSES, &s[i], &e), "%s", e.msg);
        ses_device_free(d);
    }
    CHECK_MSG(fabs(s[0].bits - 2348.720589) < 0.02, "%.6f bits", s[0].bits);
    CHECK_MSG(fabs(s[0].plain_bits - 2320.606518) < 0.02, "%.6f bits", s[0].plain_bits);
    CHECK_MSG(fabs(s[0].accuracy - 0.827) < 1e-9 && s[0].dev == s[0].accuracy, "accuracy %g", s[0].accuracy);
    CHECK(fabs(s[0].compression * s[0].bits - N * log2(CLASSES)) < 1e-6);
    CHECK(!memcmp(&s[0], &s[1], sizeof *s));
    /* the better C is chosen, and an MLP beats chance */
    double grid[] = { 1e-6, 0.5 };
    ses_err e = { 0 };
    ses_probe_fit_options o = { .dev = dev, .c = grid, .n_c = 2, .tolerance = 1e-4 };
    CHECK(ses_probe_fit(&o, &train, &test, &test, WIDTH, CLASSES, &s[0], &e) && s[0].c == 0.5);
    CHECK(isnan(s[0].bits) && s[0].low < s[0].accuracy && s[0].accuracy < s[0].high);
    o.hidden = 16, o.seed = 3;
    CHECK_MSG(ses_probe_fit(&o, &train, &test, &test, WIDTH, CLASSES, &s[1], &e), "%s", e.msg);
    CHECK_MSG(s[1].accuracy > 0.75, "MLP: %g", s[1].accuracy);
    free(x), free(y);
}

static void test_numbers(void)
{
    double low, high;
    ses_wilson_interval(83, 100, &low, &high); /* scipy: binomtest(83, 100) */
    CHECK_MSG(fabs(low - 0.7445200) < 1e-6 && fabs(high - 0.8910643) < 1e-6, "%.7f %.7f", low, high);
    size_t end[SES_PROBE_BLOCKS], n = ses_probe_block_ends(20000, end);
    CHECK(n == 11 && end[0] == 20 && end[5] == 640 && end[6] == 1250 && end[10] == 20000);
    n = ses_probe_block_ends(30, end);
    CHECK(n == 5 && end[0] == 1 && end[1] == 3 && end[4] == 30);
    CHECK(fabs(exp2(ses_probe_code(0.5, 6, 4)) - 0.4) < 1e-12);
    ses_probe_bits bits = { 0 }; /* a label that the examples lack has a finite code */
    ses_probe_bits_add(&bits, 0.5, 6, (bool[]){ true, false }, 0, 4);
    CHECK(fabs(bits.smooth + log2(0.4)) < 1e-12 && fabs(bits.plain - 1) < 1e-12 && bits.lacking == 0);
    ses_probe_bits_add(&bits, 0, 6, (bool[]){ true, false }, 1, 4);
    CHECK(fabs(bits.smooth + log2(0.04)) < 1e-12 && fabs(bits.plain - 1 - log2(10)) < 1e-12);
    CHECK(bits.lacking == 1);
    int64_t layers[] = { 0, 2, 4 };
    double weight[] = { 0.2, 0.3, 0.5 }, score[] = { 60, 80, 90 }, flat[] = { 60, 60, 60 };
    CHECK(fabs(ses_centre_of_gravity(layers, weight, 3) - 2.6) < 1e-12);
    CHECK(fabs(ses_expected_layer(layers, score, 3) - 80.0 / 30) < 1e-12);
    CHECK(isnan(ses_expected_layer(layers, flat, 3)));
}

/* ---- edge probe: a twin in PyTorch ---- */

static void set_values(void *ctx, ses_store *store)
{
    (void)ctx;
    for (size_t i = 0; i < ses_store_count(store); i++) {
        const ses_param *p = ses_store_at(store, i);
        float *x = p->tensor->data;
        for (int64_t j = 0; j < ses_count(p->tensor); j++)
            x[j] = (float)(0.3 * sin(0.37 * (double)j + (double)strlen(p->name)));
    }
}

static void test_edge(void)
{
    enum { N = 40, ROWS = 120, WIDTH = 6, LAYERS = 3, CLASSES = 4 };
    static const double want[] = { 0.681663565, 0.673416036, 0.665404670 };
    static float x[LAYERS][ROWS * WIDTH];
    uint32_t begin[2][N], length[N];
    int32_t y[N];
    const float *layer[LAYERS];
    for (int l = 0; l < LAYERS; l++) {
        layer[l] = x[l];
        for (int i = 0; i < ROWS * WIDTH; i++) x[l][i] = (float)sin(0.1 * i + l);
    }
    for (uint32_t i = 0; i < N; i++) {
        begin[0][i] = 7 * i % 100, begin[1][i] = (11 * i + 5) % 100, length[i] = 1 + i % 3;
        y[i] = (int32_t)((i * 3 + i / 5) % CLASSES);
    }
    ses_probe_net_set set = { .n = N, .x = layer, .begin = { begin[0], begin[1] }, .length = length, .y = y };
    ses_probe_net_options o = ses_probe_net_defaults(dev, LAYERS, WIDTH, CLASSES, 2, true);
    o.units = 5, o.dropout = 0, o.rate = 1e-2, o.batch = N, o.epochs = 3, o.set_values = set_values;
    ses_probe_net_result r;
    ses_err e = { 0 };
    CHECK_MSG(ses_probe_net_run(&o, &set, &set, &set, &r, &e), "%s", e.msg);
    CHECK(r.epochs == 3);
    for (int i = 0; i < 3; i++)
        CHECK_MSG(fabs(r.loss[i] - want[i]) < 1e-5, "epoch %d: loss %.9f", i, r.loss[i]);
    CHECK(fabs(r.dev_loss[0] - want[1]) < 1e-5 && fabs(r.mix[0] + r.mix[1] + r.mix[2] - 1) < 1e-12);
    /* online coding: the second half by a network trained on the first half */
    CHECK(isnan(r.bits) && isnan(r.plain_bits));
    o.mdl = true;
    CHECK_MSG(ses_probe_net_run(&o, &set, &set, &set, &r, &e), "%s", e.msg);
    CHECK_MSG(fabs(r.bits - 79.761648) < 1e-3 && fabs(r.plain_bits - 79.749210) < 1e-3, "%.6f and %.6f bits",
              r.bits, r.plain_bits);
    CHECK(fabs(r.loss[2] - want[2]) < 1e-5); /* the result is that of all examples */
    /* without a mix and MLP, long enough to learn the labels */
    o = ses_probe_net_defaults(dev, 1, WIDTH, CLASSES, 1, false);
    CHECK_MSG(ses_probe_net_run(&o, &set, &set, &set, &r, &e), "%s", e.msg);
    CHECK(r.accuracy == r.f1 && r.mix[0] == 1 && r.loss[r.epochs - 1] < r.loss[0]);
}

/* ---- data ---- */

static ses_string str(const char *s) { return (ses_string){ s, strlen(s) }; }

/* Splits off the next word; NULL: none. */
static char *next_word(char **rest)
{
    char *word = *rest, *end = word + strcspn(word, " ");
    *rest = *end ? end + 1 : end;
    *end = 0;
    return *word ? word : NULL;
}

/* Adds a sentence of words with labels, as "word/label word/label". */
static void add(ses_probe_data *d, const char *text)
{
    char copy[256], *rest = copy;
    ses_string word[32], label[32];
    size_t n = 0, row;
    ses_err e = { 0 };
    snprintf(copy, sizeof copy, "%s", text);
    for (char *w = next_word(&rest); w; w = next_word(&rest), n++) {
        char *slash = strchr(w, '/');
        *slash = 0;
        word[n] = str(w), label[n] = slash[1] == '-' ? (ses_string){ 0 } : str(slash + 1);
    }
    CHECK(ses_probe_data_add_words(d, word, n, &row, &e));
    for (size_t i = 0; i < n; i++) CHECK(ses_probe_data_add(d, row + i, row + i, word[i], &label[i], &e));
}

static bool fill(ses_probe_data *d, const char *train, const char *dev_text, const char *test, ses_err *e)
{
    const char *text[] = { train, dev_text, test };
    *d = (ses_probe_data){ 0 };
    CHECK(ses_probe_data_add_task(d, "tag", 3, e));
    for (int s = 0; s < SES_PROBE_SETS; s++) {
        ses_probe_data_begin(d, s);
        if (*text[s]) add(d, text[s]);
    }
    return ses_probe_data_end(d, NULL, e);
}

static void test_baselines(void)
{
    ses_probe_data d;
    ses_probe_baselines b;
    ses_err e = { 0 };
    CHECK_MSG(fill(&d, "a/D dog/N runs/V the/D dog/N a/D dog/V fast/-", "a/D",
                   "the/D dog/N cat/D runs/N x/U y/-", &e),
              "%s", e.msg);
    CHECK(d.task[0].classes == 3 && d.rows == 15 && d.n == 15 && d.n_types == 8);
    ses_probe_examples x = { 0 };
    CHECK(ses_probe_examples_new(&x, &d, &d.task[0], 0, 0, 5, &e));
    CHECK(x.n[0] == 7 && x.n[1] == 1 && x.n[2] == 5 && x.y[2][4] == SES_PROBE_UNSEEN_LABEL);
    CHECK(ses_probe_baselines_compute(&d, &d.task[0], &x, &b, &e));
    ses_probe_examples_free(&x);
    CHECK(b.train == 7 && b.test == 5 && b.unseen == 1);
    CHECK(fabs(b.majority - 2.0 / 5) < 1e-12 && fabs(b.majority_by_word - 3.0 / 5) < 1e-12);
    int32_t list[] = { 0, 1, 2, 3, 4, 5, 6 };
    int32_t label[8], other = 0;
    for (uint32_t i = 0; i < 8; i++) {
        label[i] = ses_probe_control_label(&d, &d.task[0], i, 1, list, 7);
        CHECK(label[i] >= 0 && label[i] < 3 &&
              label[i] == ses_probe_control_label(&d, &d.task[0], i, 1, list, 7));
        for (uint64_t seed = 2; seed < 12; seed++)
            other += label[i] != ses_probe_control_label(&d, &d.task[0], i, seed, list, 7);
    }
    CHECK(other > 20); /* another seed draws other labels */
    /* baselines of the examples that are used */
    CHECK(ses_probe_examples_new(&x, &d, &d.task[0], 3, 2, 5, &e) && x.n[0] == 3 && x.n[2] == 2);
    CHECK(ses_probe_baselines_compute(&d, &d.task[0], &x, &b, &e) && b.train == 3 && b.test == 2);
    for (int s = 0; s < SES_PROBE_SETS; s++)
        for (size_t i = 0; i < x.n[s]; i++) CHECK(x.y[s][i] == d.task[0].y[x.at[s][i]]);
    ses_probe_examples_free(&x);
    ses_probe_data_free(&d);
}

static void test_refused(void)
{
    static const struct refused {
        const char *train, *dev, *test, *message;
    } cases[] = {
        { "a/D b/D", "a/D", "a/D", "tag: all training examples have the label \"D\"" },
        { "a/D b/N", "a/-", "a/D", "tag: the development data have no example" },
        { "a/D b/N", "a/D", "", "tag: the test data have no example" },
        { "a/- b/-", "a/D", "a/D", "tag: the training data have no example" },
    };
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        ses_probe_data d;
        ses_err e = { 0 };
        CHECK(!fill(&d, cases[i].train, cases[i].dev, cases[i].test, &e));
        CHECK_MSG(strstr(e.msg, cases[i].message), "%s", e.msg);
        ses_probe_data_free(&d);
    }
}

int main(void)
{
    ses_err e = { 0 };
    dev = ses_device_open("cpu", &(ses_device_options){ .threads = 2 }, &e);
    CHECK_MSG(dev, "%s", e.msg);
    test_linear();
    test_numbers();
    test_edge();
    test_baselines();
    test_refused();
    ses_device_free(dev);
    return check_report();
}
