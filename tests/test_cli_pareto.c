/* The Pareto front against its definition, on random points with ties and missing values; words of the
 * commands of methods. */
#include "base/alloc.h"
#include "check.h"
#include "cli/compress/compress.h"
#include "cli/compress/score_drop.h"
#include "math/pareto.h"

#include <math.h>
#include <string.h>

enum { N = 24, SETS = 2000 };

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* The definition: no other point has at least the score and at most the cost, one of them better. */
static bool is_beaten(const double *score, const double *cost, size_t n, size_t i)
{
    for (size_t k = 0; k < n; k++)
        if (score[k] >= score[i] && cost[k] <= cost[i] && (score[k] > score[i] || cost[k] < cost[i]))
            return true;
    return false;
}

static void test_front(void)
{
    uint32_t state = 1;
    double score[N], cost[N];
    bool front[N];
    for (int set = 0; set < SETS; set++) {
        size_t n = next_random(&state) % (N + 1);
        uint32_t values = 2 + next_random(&state) % 12; /* few values: many ties */
        for (size_t i = 0; i < n; i++) {
            score[i] = next_random(&state) % 17 ? (double)(next_random(&state) % values) : NAN;
            cost[i] = next_random(&state) % 17 ? (double)(next_random(&state) % values) : NAN;
        }
        ses_err e = { 0 };
        CHECK(ses_pareto_mark(score, cost, n, front, &e));
        for (size_t i = 0; i < n; i++) {
            bool known = !isnan(score[i]) && !isnan(cost[i]);
            CHECK(front[i] == (known && !is_beaten(score, cost, n, i)));
        }
    }
}

static void test_drop(void)
{
    CHECK(fabs(ses_score_drop(0.90, 0.88, false, false) - 2) < 1e-9);    /* accuracy */
    CHECK(fabs(ses_score_drop(88.5, 87.25, false, true) - 1.25) < 1e-9); /* F1 of answers */
    CHECK(fabs(ses_score_drop(20, 22, true, false) - 10) < 1e-9);        /* perplexity: percent */
    CHECK(ses_score_drop(0.88, 0.90, false, false) < 0);
}

static void test_words(void)
{
    ses_err e = { 0 };
    static const char line[] = "sesame finetune 'a b' --x 'it'\\''s' c:0.5+d  ''";
    char **w = ses_compress_split(line, strlen(line), &e);
    static const char *const want[] = { "sesame", "finetune", "a b", "--x", "it's", "c:0.5+d", "" };
    CHECK(w != NULL);
    for (size_t i = 0; w && i < SES_LEN(want); i++) CHECK(w[i] && !strcmp(w[i], want[i]));
    CHECK(w && !w[SES_LEN(want)]);
    ses_free(w);
}

int main(void)
{
    test_front();
    test_drop();
    test_words();
    return check_report();
}
