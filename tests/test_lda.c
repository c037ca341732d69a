/* LDA against scikit-learn's numbers (fixtures/topics.py; its digamma has nine digits), equal bits on any
 * number of threads and after a resume, bad settings. */
#include "check.h"
#include "topic_matrix.h"

#include "math/gamma.h"
#include "vectors/topic/lda.h"

static double first_topics[COLS * TOPICS];

static ses_lda_settings settings(bool batch)
{
    return (ses_lda_settings){ .topics = TOPICS,
                               .chunk = 16,
                               .iterations = 50,
                               .decay = 0.6,
                               .offset = 2,
                               .threshold = 0.001,
                               .batch = batch,
                               .seed = 3 };
}

static bool near(double a, double b, double relative)
{
    if (fabs(a - b) <= relative * fabs(b)) return true;
    printf("    %.17g, expected %.17g\n", a, b);
    return false;
}

/* Trains `passes` passes; start NULL: random. */
static void train(ses_lda *m, bool batch, int passes, const double *start, ses_thread_pool *pool)
{
    ses_term_counts b = topic_matrix();
    ses_lda_settings s = settings(batch);
    ses_err e = { 0 };
    double perplexity;
    if (!m->lambda) CHECK_MSG(ses_lda_new(m, &s, COLS, start, pool, &e), "%s", e.msg);
    while (m->pass < passes) CHECK(ses_lda_update(m, &b, &perplexity, &e));
    CHECK(perplexity > 1 && perplexity < 1000);
}

typedef struct expected {
    bool batch;
    int passes;
    double bound, topics[3], shares[TOPICS];
} expected;

static const expected cases[] = {
    { true,
      3,
      -3043.4651052365043,
      { 0.20000438707486271, 3.4334710005947535, 0.20446353367166084 },
      { 0.94531987474680912, 0.013470141509672937, 0.013867396018418583, 0.013708166204720262,
        0.013634421520379246 } },
    { false,
      2,
      -2963.4542511643344,
      { 0.20665352643321933, 0.21034447955450483, 0.22836032398481362 },
      { 0.94625691979489013, 0.013680209708802552, 0.013368534162367236, 0.013338099975425347,
        0.013356236358514807 } },
};

static void agrees(const expected *x, ses_thread_pool *pool)
{
    ses_term_counts b = topic_matrix();
    ses_lda m = { 0 };
    ses_err e = { 0 };
    double bound = 0, gamma[TOPICS], sum = 0;
    train(&m, x->batch, x->passes, first_topics, pool);
    CHECK(ses_lda_bound(&m, &b, &bound, &e) && near(bound, x->bound, 1e-9));
    CHECK(near(m.lambda[0 * TOPICS + 0], x->topics[0], 1e-7));
    CHECK(near(m.lambda[7 * TOPICS + 1], x->topics[1], 1e-7));
    CHECK(near(m.lambda[39 * TOPICS + 4], x->topics[2], 1e-7));
    CHECK(ses_lda_infer(&m, &b, 3, 1, gamma, &e));
    for (int k = 0; k < TOPICS; k++) sum += gamma[k];
    for (int k = 0; k < TOPICS; k++) CHECK(near(gamma[k] / sum, x->shares[k], 1e-7));
    CHECK(ses_lda_infer(&m, &b, 17, 1, gamma, &e)); /* no words: the prior */
    for (int k = 0; k < TOPICS; k++) CHECK(near(gamma[k], 1. / TOPICS, 1e-12));
    ses_lda_free(&m);
}

static void same_bits(ses_thread_pool *one)
{
    static const int threads[] = { 2, 8 };
    ses_err e = { 0 };
    for (int batch = 0; batch < 2; batch++) {
        ses_lda a = { 0 }, resumed = { 0 };
        train(&a, batch, 3, NULL, one);
        for (size_t i = 0; i < SES_LEN(threads); i++) {
            ses_thread_pool *pool = ses_thread_pool_new(threads[i], &e);
            ses_lda b = { 0 };
            train(&b, batch, 3, NULL, pool);
            CHECK(!memcmp(a.lambda, b.lambda, COLS * TOPICS * sizeof *a.lambda));
            ses_lda_free(&b);
            ses_thread_pool_free(pool);
        }
        train(&resumed, batch, 1, NULL, one);
        train(&resumed, batch, 3, NULL, one);
        CHECK(!memcmp(a.lambda, resumed.lambda, COLS * TOPICS * sizeof *a.lambda));
        ses_lda_free(&a), ses_lda_free(&resumed);
    }
}

static void bad_settings(ses_thread_pool *pool)
{
    ses_err e = { 0 };
    struct {
        ses_lda_settings s;
        const char *message;
    } bad[] = { { settings(false), "0 topics" },  { settings(false), "chunk 0" },
                { settings(false), "decay" },     { settings(false), "offset nan" },
                { settings(false), "threshold" }, { settings(false), "priors" } };
    bad[0].s.topics = 0, bad[1].s.chunk = 0, bad[2].s.decay = NAN, bad[3].s.offset = NAN;
    bad[4].s.threshold = -1, bad[5].s.eta = NAN;
    for (size_t i = 0; i < SES_LEN(bad); i++) {
        e = (ses_err){ 0 };
        CHECK_MSG(!ses_lda_settings_check(&bad[i].s, &e) && strstr(e.msg, bad[i].message), "%s", e.msg);
    }
    double start[COLS * TOPICS];
    memcpy(start, first_topics, sizeof start);
    start[12] = NAN;
    ses_lda m = { 0 };
    ses_lda_settings s = settings(false);
    e = (ses_err){ 0 };
    CHECK(!ses_lda_new(&m, &s, COLS, start, pool, &e) && strstr(e.msg, "topic 3, word 3: nan"));
    ses_lda_free(&m);
}

static void functions(void)
{
    static const double x[] = { 1e-3, 0.05, 1, 7.5, 1234.5 };
    static const double digamma[] = { -1000.5755719318103, -20.497844991299871, -0.57721566490153287,
                                      1.9467574842460866, 7.1180162318279985 };
    static const double log_gamma[] = { 6.9071788853838534, 2.9688792010517311, 0, 7.5343642367587336,
                                        7550.5509010778942 };
    for (size_t i = 0; i < SES_LEN(x); i++) {
        CHECK(near(ses_digamma(x[i]), digamma[i], 2e-13));
        CHECK(fabs(ses_log_gamma(x[i]) - log_gamma[i]) <= 1e-13 * (1 + log_gamma[i]));
        if (i) CHECK(near(ses_exp_digamma(x[i]), exp(digamma[i]), 1e-12));
    }
    CHECK(ses_exp_digamma(1e-3) == 0 && ses_exp_negative(0) == 1);
    CHECK(near(ses_exp_negative(-700.25), exp(-700.25), 1e-14) && ses_exp_negative(-INFINITY) == 0);
}

int main(void)
{
    ses_err e = { 0 };
    ses_thread_pool *pool = ses_thread_pool_new(1, &e);
    for (int w = 0; w < COLS; w++)
        for (int k = 0; k < TOPICS; k++)
            first_topics[w * TOPICS + k] = 0.5 + (double)((w * 31 + k * 17) % 97) / 97;
    functions();
    for (size_t i = 0; i < SES_LEN(cases); i++) agrees(&cases[i], pool);
    same_bits(pool);
    bad_settings(pool);
    ses_thread_pool_free(pool);
    return check_report();
}
