/* LSA against singular values of NumPy (fixtures/topics.py), matrices of low rank, equal bits on any number
 * of threads, bad settings. */
#include "check.h"
#include "topic_matrix.h"

#include "base/alloc.h"
#include "vectors/topic/lsa.h"

#include <math.h>

static const double singular[] = { 18.42210041956228,  14.101402136589932, 13.68792018276185,
                                   13.103101014544134, 13.062150803374353, 12.495206303033889 };
static const double largest[] = { 0.21473791751877983, 0.32481703938466649, 0.37949898432834234,
                                  0.36781409195465359, 0.38444820129368801, 0.36305324932986255 };
static const double tf_idf[] = { 2.7262211479382854, 2.1000172476975529, 2.078712999847609 };

static ses_lsa_settings settings(int64_t topics, int64_t more)
{
    return (ses_lsa_settings){
        .topics = topics, .oversampling = more, .rounds = 200, .tolerance = 1e-12, .seed = 7
    };
}

static void agrees(ses_thread_pool *pool, int64_t more)
{
    ses_term_counts b = topic_matrix();
    ses_lsa r = { 0 };
    ses_err e = { 0 };
    ses_lsa_settings s = settings(6, more);
    double y[ROWS * 6];
    CHECK_MSG(ses_lsa_fit(&r, &b, &s, pool, NULL, NULL, &e), "%s", e.msg);
    ses_lsa_project(&r, &b, y, pool);
    for (int k = 0; k < 6; k++) {
        double most = 0, squares = 0;
        CHECK_MSG(fabs(r.value[k] / singular[k] - 1) < 1e-10, "value %d with %d more: %.15g", k, (int)more,
                  r.value[k]);
        for (int c = 0; c < COLS; c++)
            if (fabs(r.vector[k * COLS + c]) > fabs(most)) most = r.vector[k * COLS + c];
        CHECK_MSG(fabs(most - largest[k]) < 1e-6, "vector %d: %.15g", k, most); /* positive */
        for (int i = 0; i < ROWS; i++) squares += y[i * 6 + k] * y[i * 6 + k];
        CHECK(fabs(sqrt(squares) / singular[k] - 1) < 1e-9);
    }
    ses_lsa_free(&r);
}

static void weights(ses_thread_pool *pool)
{
    ses_term_counts b = topic_matrix();
    ses_lsa r = { 0 };
    ses_err e = { 0 };
    ses_lsa_settings s = settings(3, 10);
    int64_t texts[COLS] = { 0 };
    for (int64_t i = 0; i < b.start[ROWS]; i++) texts[b.col[i]]++;
    ses_term_counts_tf_idf(&b, texts, ROWS);
    CHECK(ses_lsa_fit(&r, &b, &s, pool, NULL, NULL, &e));
    for (int k = 0; k < 3; k++) CHECK(fabs(r.value[k] / tf_idf[k] - 1) < 1e-10);
    ses_lsa_free(&r);
}

/* Rank 2 of 30 x 20, and no entry at all. */
static void low_rank(ses_thread_pool *pool)
{
    enum { N = 30, M = 20 };
    static int64_t start[N + 1];
    static int32_t col[N * M];
    static double value[N * M];
    ses_term_counts b = { N, M, start, col, value };
    ses_err e = { 0 };
    for (int empty = 0; empty < 2; empty++) {
        int64_t n = 0;
        for (int r = 0; r < N; r++) {
            for (int c = 0; c < M && !empty; c++) col[n] = c, value[n++] = r % 2 ? 1 + c : 2;
            start[r + 1] = n;
        }
        ses_lsa r = { 0 };
        ses_lsa_settings s = settings(4, 10);
        CHECK_MSG(ses_lsa_fit(&r, &b, &s, pool, NULL, NULL, &e), "%s", e.msg);
        CHECK(empty ? r.value[0] == 0 : r.value[1] > 1);
        CHECK(r.value[2] == 0 && r.value[3] == 0 && r.vector[3 * M] == 0);
        ses_lsa_free(&r);
    }
}

static void same_bits(ses_thread_pool *one)
{
    ses_err e = { 0 };
    ses_term_counts b = topic_matrix();
    ses_lsa_settings s = settings(6, 10);
    ses_lsa first = { 0 };
    CHECK(ses_lsa_fit(&first, &b, &s, one, NULL, NULL, &e));
    for (int threads = 2; threads <= 8; threads *= 4) {
        ses_thread_pool *pool = ses_thread_pool_new(threads, &e);
        ses_lsa r = { 0 };
        CHECK(ses_lsa_fit(&r, &b, &s, pool, NULL, NULL, &e));
        CHECK(!memcmp(first.value, r.value, 6 * sizeof *r.value) &&
              !memcmp(first.vector, r.vector, 6 * COLS * sizeof *r.vector));
        ses_lsa_free(&r);
        ses_thread_pool_free(pool);
    }
    ses_lsa_free(&first);
}

static bool stop(void *ctx, int64_t round, double change) { return (void)ctx, (void)change, round < 2; }

static void refuses(ses_thread_pool *pool)
{
    ses_term_counts b = topic_matrix();
    ses_lsa_settings s = settings(COLS + 1, 0);
    ses_lsa r = { 0 };
    ses_err e = { 0 };
    CHECK(!ses_lsa_fit(&r, &b, &s, pool, NULL, NULL, &e) && strstr(e.msg, "expected 1 to 40"));
    e = (ses_err){ 0 };
    s = settings(2, 0), s.tolerance = NAN;
    CHECK(!ses_lsa_fit(&r, &b, &s, pool, NULL, NULL, &e) && strstr(e.msg, "tolerance"));
    e = (ses_err){ 0 };
    s = settings(2, 0);
    CHECK(!ses_lsa_fit(&r, &b, &s, pool, stop, NULL, &e) && strstr(e.msg, "stopped after 2 rounds"));
    ses_lsa_free(&r);
}

int main(void)
{
    ses_err e = { 0 };
    ses_thread_pool *pool = ses_thread_pool_new(1, &e);
    agrees(pool, 0);
    agrees(pool, 10);
    agrees(pool, 100);
    weights(pool);
    low_rank(pool);
    same_bits(pool);
    refuses(pool);
    ses_thread_pool_free(pool);
    return check_report();
}
