/* Metrics over groups of examples. The expected numbers come from SuperGLUE's formulas with scikit-learn's
 * f1_score. */
#include "check.h"
#include "sesame/metric.h"

#include <math.h>

/* Questions 1: all right; 2: one of three wrong; 3: no answer is right, all predicted so; 4: its only
 * answer is wrong. Their answers are mixed. */
static const int64_t groups[] = { 1, 2, 1, 2, 3, 2, 3, 4 };
static const int32_t truth[] = { 1, 1, 0, 0, 0, 1, 0, 1 }, pred[] = { 1, 1, 0, 1, 0, 1, 0, 0 };

static double score(const char *metric, const ses_evaluation *v, const char *name)
{
    ses_scores s = { 0 };
    ses_err e = { 0 };
    double x = NAN;
    CHECK_MSG(ses_metric_run(metric, v, NULL, &s, &e), "%s", e.msg);
    CHECK_MSG(ses_scores_find(&s, name, &x), "%s", name);
    ses_scores_free(&s);
    return x;
}

static void test_multirc(void)
{
    ses_evaluation v = { .n = 8, .true_labels = truth, .pred_labels = pred, .n_labels = 2, .groups = groups };
    CHECK(score("multirc", &v, "exact_match") == 0.5);
    /* 1: 1; 2: (0.8 + 0) / 2; 3: 1 (one label occurs); 4: 0 */
    CHECK(fabs(score("multirc", &v, "f1_m") - (1 + 0.4 + 1 + 0) / 4) < 1e-15);
    CHECK(fabs(score("multirc", &v, "f1_a") - 2 * 3.0 / (4 + 4)) < 1e-15);
    int32_t some[8];
    memcpy(some, truth, sizeof some);
    some[7] = SES_IGNORE_INDEX; /* question 4 has no labels */
    v.true_labels = some;
    CHECK(fabs(score("multirc", &v, "exact_match") - 2.0 / 3) < 1e-15);
}

static void test_parity(void)
{
    static const int64_t pairs[] = { 5, 9, 5, 9, 0, 0, 3, 5 };
    ses_evaluation v = { .n = 8, .true_labels = truth, .pred_labels = pred, .n_labels = 2, .groups = pairs };
    /* 5: predictions 1, 0, 0; 9: 1, 1; 3 has no counterpart; examples of 0 have no group */
    CHECK(score("gender_parity", &v, "gender_parity") == 0.5);
    static const int64_t none[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    v.groups = none;
    CHECK(score("gender_parity", &v, "gender_parity") == 0);
}

/* The bounds contain the score, and a bootstrap is repeatable. */
static void test_bootstrap(void)
{
    ses_evaluation v = { .n = 8, .true_labels = truth, .pred_labels = pred, .n_labels = 2, .groups = groups };
    ses_bootstrap b = { .resamples = 200, .level = 0.95, .seed = 1 };
    ses_scores s[2] = { { 0 }, { 0 } };
    ses_err e = { 0 };
    for (int i = 0; i < 2; i++) CHECK(ses_metric_run("multirc", &v, &b, &s[i], &e));
    if (CHECK(s[0].n == 3 && s[1].n == 3))
        for (size_t i = 0; i < 3; i++) {
            CHECK(s[0].item[i].low <= s[0].item[i].value && s[0].item[i].value <= s[0].item[i].high);
            CHECK(s[0].item[i].low == s[1].item[i].low && s[0].item[i].high == s[1].item[i].high);
        }
    ses_scores_free(&s[0]);
    ses_scores_free(&s[1]);
}

static void test_bad(void)
{
    ses_evaluation v = { .n = 8, .true_labels = truth, .pred_labels = pred, .n_labels = 2 };
    ses_scores s = { 0 };
    ses_err e = { 0 };
    CHECK(!ses_metric_run("multirc", &v, NULL, &s, &e) && e.code == SES_EARG);
    v.groups = groups, v.n_labels = 3, e = (ses_err){ 0 };
    CHECK(!ses_metric_run("multirc", &v, NULL, &s, &e) && strstr(e.msg, "3 labels, expected 2"));
    v.n_labels = 1, e = (ses_err){ 0 };
    CHECK(!ses_metric_run("gender_parity", &v, NULL, &s, &e) && strstr(e.msg, "label"));
    CHECK(!s.n);
    ses_scores_free(&s);
}

int main(void)
{
    test_multirc();
    test_parity();
    test_bootstrap();
    test_bad();
    return check_report();
}
