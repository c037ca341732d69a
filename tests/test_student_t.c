/* Student's t distribution and intervals of means, against SciPy 1.17 (scipy.stats.t). */
#include "check.h"
#include "math/student_t.h"

#include <math.h>
#include <stdbool.h>

static const double quantile[][3] = {
    /* p, df, t */
    { 0.6, 1, 0.32491969623290634 },     { 0.9, 1, 3.0776835371752544 },
    { 0.975, 1, 12.706204736174694 },    { 0.99995, 1, 6366.1976713166368 },
    { 1e-6, 1, -318309.88618274347 },    { 0.975, 2, 4.3026527297494619 },
    { 0.6, 3, 0.27667066233268978 },     { 0.025, 3, -3.1824463052837086 },
    { 0.9, 4, 1.5332062740589441 },      { 0.975, 4, 2.7764451051977934 },
    { 0.99995, 4, 15.544100581546113 },  { 1e-6, 4, -41.577854150450975 },
    { 0.995, 4.5, 4.2728239930112926 },  { 0.975, 9, 2.2621571627982049 },
    { 0.95, 30, 1.6972608865939569 },    { 0.99995, 30, 4.4824171754097861 },
    { 0.975, 1000, 1.9623390808264083 }, { 0.6, 1e6, 0.25334717053784184 },
    { 0.975, 1e6, 1.959966356814107 },   { 1e-6, 1e6, -4.75345234827968 },
};

static const double cdf[][3] = {
    /* t, df, p */
    { 0, 3, 0.5 },
    { 1.5, 1, 0.81283295818900114 },
    { 2.776, 4, 0.97498861084001176 },
    { -2.776, 4, 0.025011389159988209 },
    { 10, 2.5, 0.99777925211634633 },
    { -40, 7, 7.9510899924251819e-10 },
    { 0.001, 100, 0.50039794611994826 },
    { 3, 1e5, 0.99864976955796769 },
};

static bool is_near(double got, double want, double tolerance)
{
    bool ok = fabs(got - want) <= tolerance * fmax(fabs(want), 1e-300);
    if (!ok) printf("    %.17g, expected %.17g\n", got, want);
    return ok;
}

static void test_intervals(void)
{
    static const double x[] = { 0.712, 0.655, 0.801, 0.5, 0.7434 }, same[] = { 3, 3, 3 };
    ses_mean_interval m = ses_mean_interval_of(x, 5, 0.95), narrow = ses_mean_interval_of(x, 5, 0.8);
    CHECK(m.n == 5 && is_near(m.mean, 0.68228, 1e-14) && is_near(m.deviation, 0.11476450670830246, 1e-14));
    CHECK(is_near(m.low, 0.53978104374868652, 1e-11) && is_near(m.high, 0.82477895625131348, 1e-11));
    CHECK(is_near(narrow.low, 0.60358934144444376, 1e-11) &&
          is_near(narrow.high, 0.76097065855555623, 1e-11));
    m = ses_mean_interval_of(same, 3, 0.95);
    CHECK(m.mean == 3 && m.deviation == 0 && m.low == 3 && m.high == 3);
    m = ses_mean_interval_of(x, 1, 0.95);
    CHECK(m.mean == 0.712 && isnan(m.deviation) && isnan(m.low) && isnan(m.high));
    m = ses_mean_interval_of(x, 0, 0.95);
    CHECK(isnan(m.mean) && isnan(m.low));
}

/* scipy.stats.ttest_ind(a, b, equal_var=False) and its confidence intervals of 95 % and 90 %. */
static void test_differences(void)
{
    static const double a[] = { 52.1, 53.4, 51.0 }, b[] = { 50.2, 49.9, 51.3, 48.8 }, c[] = { 60.5, 60.7 },
                        same[] = { 3, 3, 3 };
    ses_mean_interval ma = ses_mean_interval_of(a, 3, 0.95), mb = ses_mean_interval_of(b, 4, 0.95),
                      mc = ses_mean_interval_of(c, 2, 0.95), one = ses_mean_interval_of(a, 1, 0.95),
                      ms = ses_mean_interval_of(same, 3, 0.95);
    ses_mean_difference d = ses_mean_difference_of(&ma, &mb, 0.95);
    CHECK(is_near(d.difference, 2.116666666666667, 1e-13) && is_near(d.df, 3.996099099634226, 1e-13) &&
          is_near(d.low, -0.28114678824253847, 1e-10) && is_near(d.high, 4.514480121575873, 1e-11) &&
          is_near(d.p, 0.07036697516609927, 1e-11));
    d = ses_mean_difference_of(&mb, &ma, 0.9);
    CHECK(is_near(d.low, -3.9575950593030074, 1e-11) && is_near(d.high, -0.2757382740303276, 1e-10));
    d = ses_mean_difference_of(&ma, &mc, 0.95);
    CHECK(is_near(d.df, 2.0822057969315404, 1e-13) && is_near(d.low, -11.337349270205914, 1e-11) &&
          is_near(d.high, -5.52931739646076, 1e-11) && is_near(d.p, 0.005878729250942848, 1e-10));
    d = ses_mean_difference_of(&mc, &mb, 0.95);
    CHECK(is_near(d.p, 0.00016999873381043536, 1e-10));
    d = ses_mean_difference_of(&ma, &one, 0.95);
    CHECK(is_near(d.difference, 52.166666666666664 - 52.1, 1e-10) && isnan(d.p) && isnan(d.low));
    d = ses_mean_difference_of(&ms, &ms, 0.95);
    CHECK(d.difference == 0 && d.p == 1 && d.low == 0 && d.high == 0);
}

int main(void)
{
    for (size_t i = 0; i < sizeof quantile / sizeof *quantile; i++)
        CHECK_MSG(is_near(ses_student_t_quantile(quantile[i][0], quantile[i][1]), quantile[i][2], 1e-9),
                  "p %g, df %g", quantile[i][0], quantile[i][1]);
    for (size_t i = 0; i < sizeof cdf / sizeof *cdf; i++)
        CHECK_MSG(is_near(ses_student_t_cdf(cdf[i][0], cdf[i][1]), cdf[i][2], 1e-10), "t %g, df %g",
                  cdf[i][0], cdf[i][1]);
    CHECK(isinf(ses_student_t_quantile(1, 3)) && ses_student_t_quantile(0, 3) < 0);
    CHECK(ses_student_t_quantile(0.5, 3) == 0);
    CHECK(isnan(ses_student_t_quantile(0.9, 0)) && isnan(ses_student_t_quantile(1.1, 2)) &&
          isnan(ses_student_t_quantile(NAN, 2)) && isnan(ses_student_t_cdf(NAN, 2)));
    test_intervals();
    test_differences();
    return check_report();
}
