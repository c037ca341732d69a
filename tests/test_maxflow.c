/* Maximum flow, rollout and attention between words: values of networkx and numpy. */
#include "analysis/attention_units.h"
#include "check.h"
#include "math/graph/maxflow.h"
#include "math/graph/rollout.h"

#include <math.h>

typedef struct test_edge {
    int32_t from, to;
    double capacity;
} test_edge;

static double flow_of(int32_t nodes, const test_edge *x, int64_t n, int32_t from, int32_t to)
{
    ses_err e = { 0 };
    ses_flow_graph *g = ses_flow_graph_new(nodes, n, &e);
    if (!CHECK(g != NULL)) return NAN;
    for (int64_t i = 0; i < n; i++) ses_flow_graph_add(g, x[i].from, x[i].to, x[i].capacity);
    ses_flow_solver *s = ses_flow_graph_finish(g, &e) ? ses_flow_solver_new(g, &e) : NULL;
    double first = s ? ses_max_flow(s, from, to) : NAN, again = s ? ses_max_flow(s, from, to) : NAN;
    CHECK(first == again);
    ses_flow_solver_free(s);
    ses_flow_graph_free(g);
    return first;
}

static bool near(double a, double b, double within) { return fabs(a - b) <= within; }

static void small_graphs(void)
{
    /* the flow must be rerouted: a greedy path over 1 -> 2 blocks */
    test_edge reroute[] = { { 0, 1, 3 }, { 0, 2, 2 }, { 1, 2, 3 }, { 1, 3, 2 }, { 2, 3, 3 } };
    CHECK(near(flow_of(4, reroute, 5, 0, 3), 5, 1e-12));
    CHECK(near(flow_of(4, reroute, 5, 3, 0), 0, 0));
    CHECK(near(flow_of(4, reroute, 5, 2, 2), 0, 0));
    test_edge classic[] = { { 0, 1, 16 }, { 0, 2, 13 }, { 1, 2, 10 }, { 2, 1, 4 },  { 1, 3, 12 },
                            { 3, 2, 9 },  { 2, 4, 14 }, { 4, 3, 7 },  { 3, 5, 20 }, { 4, 5, 4 } };
    CHECK(near(flow_of(6, classic, 10, 0, 5), 23, 1e-12));
    test_edge parallel[] = { { 0, 1, 0.25 }, { 0, 1, 0.5 }, { 1, 2, 0.6 }, { 1, 2, 0 } };
    CHECK(near(flow_of(3, parallel, 4, 0, 2), 0.6, 1e-12));
    ses_err e = { 0 };
    CHECK(!ses_flow_graph_new(0, 1, &e));
    CHECK(!ses_flow_graph_new(2, (int64_t)1 << 40, &e));
}

/* Numbers in [0, 1) that Python computes as well: a linear congruential generator. */
static double next_random(uint32_t *x)
{
    *x = *x * 1664525u + 1013904223u;
    return (double)(*x >> 8) / 16777216.0;
}

/* Layers of random attention with residual connections, [layers][n][n]. */
static void random_layers(double *a, int64_t layers, int64_t n, uint32_t seed)
{
    for (int64_t i = 0; i < layers * n * n; i++) {
        double x = next_random(&seed);
        a[i] = x * x * x;
    }
    for (int64_t l = 0; l < layers; l++) {
        ses_normalize_rows(a + l * n * n, n, n);
        ses_add_residual(a + l * n * n, n);
    }
}

/* Flows from each token of the last of 3 layers to each input of 5 tokens, by networkx.maximum_flow_value. */
static void layered_graph(void)
{
    enum { L = 3, N = 5 };
    static const double want[N * N] = {
#include "fixtures/maxflow_layers.inc"
    };
    double a[L * N * N];
    test_edge x[L * N * N];
    random_layers(a, L, N, 7);
    for (int32_t l = 0; l < L; l++)
        for (int32_t i = 0; i < N; i++)
            for (int32_t j = 0; j < N; j++)
                x[(l * N + i) * N + j] = (test_edge){ (l + 1) * N + i, l * N + j, a[(l * N + i) * N + j] };
    for (int32_t i = 0; i < N; i++)
        for (int32_t j = 0; j < N; j++) {
            double got = flow_of((L + 1) * N, x, L * N * N, L * N + i, j);
            CHECK_MSG(near(got, want[i * N + j], 1e-9), "%d to %d: %.12f, %.12f", i, j, got, want[i * N + j]);
        }
}

/* The product of the same layers, by numpy. */
static void rollout_of_layers(void)
{
    enum { L = 3, N = 5 };
    static const double want[N * N] = {
#include "fixtures/rollout_layers.inc"
    };
    double a[L * N * N], r[N * N], next[N * N];
    random_layers(a, L, N, 7);
    memcpy(r, a, sizeof r);
    for (int l = 1; l < L; l++) {
        ses_rollout_product(a + l * N * N, r, N, N, N, next, NULL);
        memcpy(r, next, sizeof r);
    }
    for (int i = 0; i < N * N; i++) CHECK(near(r[i], want[i], 1e-12));
    float heads[2 * 4] = { 1, 0, 0, 1, 0, 1, 0.5f, 0.5f };
    double mean[4], zero[2] = { 0, 0 };
    ses_head_mean(heads, 2, 2, 2, mean);
    CHECK(mean[0] == 0.5 && mean[1] == 0.5 && mean[2] == 0.25 && mean[3] == 0.75);
    ses_normalize_rows(zero, 1, 2);
    CHECK(zero[0] == 0 && zero[1] == 0);
}

static void words(void)
{
    /* [CLS] un ##do it [SEP]: three words without the special tokens */
    static const int32_t word[] = { 0, 1, 1, 2, 3 }, hidden[] = { -1, 0, 0, 1, -1 };
    static const float a[25] = { 0.2f, 0.2f, 0.2f, 0.2f, 0.2f, 0.1f, 0.3f, 0.2f, 0.3f, 0.1f, 0, 0, 0.5f,
                                 0.5f, 0,    0.5f, 0,    0,    0,    0.5f, 0,    0,    0,    0, 1 };
    float out[16];
    ses_attention_units u = { 5, 4, word }, h = { 5, 2, hidden };
    ses_attention_merge(a, &u, &u, false, out);
    static const float want[16] = { 0.2f, 0.4f, 0.2f, 0.2f, 0.05f, 0.5f, 0.4f, 0.05f,
                                    0.5f, 0,    0,    0.5f, 0,     0,    0,    1 };
    for (int i = 0; i < 16; i++) CHECK(near((double)out[i], (double)want[i], 1e-6));
    ses_attention_merge(a, &h, &h, true, out);
    CHECK(near((double)out[0], 1.0 / 1.8, 1e-6) && near((double)out[1], 0.8 / 1.8, 1e-6));
    CHECK(out[2] == 0 && out[3] == 0); /* all of its weight is on special tokens */
}

int main(void)
{
    small_graphs();
    layered_graph();
    rollout_of_layers();
    words();
    return check_report();
}
