/* Weights of classes in the loss: numbers of scikit-learn's compute_class_weight("balanced"), files. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "base/alloc.h"
#include "check.h"
#include "tune/data/class_weights.h"

#include <math.h>
#include <unistd.h>

static ses_examples *make(const int *count, const ses_examples *like)
{
    enum { MAX_ROWS = 100 };
    static const char *const label[] = { "a", "b", "c" };
    ses_example_input x[MAX_ROWS] = { 0 };
    ses_err e = { 0 };
    size_t n = 0;
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < count[c]; i++) x[n++] = (ses_example_input){ .text = "x", .label = label[c] };
    ses_examples *d = ses_examples_new(SES_DATA_CLASSIFY, x, n, NULL, like, &e);
    CHECK(d);
    return d;
}

static void balanced(void)
{
    static const double want[] = { 0.5533333333333333, 1.2028985507246377, 2.7666666666666666 };
    ses_err e = { 0 };
    ses_examples *d = make((int[]){ 50, 23, 10 }, NULL), *part = make((int[]){ 6, 0, 2 }, d);
    double *w = ses_class_weights_read("balanced", d, 3, &e);
    for (int i = 0; w && i < 3; i++) CHECK(fabs(w[i] - want[i]) < 1e-15);
    ses_free(w);
    w = ses_class_weights_read("balanced", part, 4,
                               &e); /* 8 / (2 * 6); classes without examples; 8 / (2 * 2) */
    CHECK(w && fabs(w[0] - 8.0 / 12) < 1e-15 && w[1] == 1 && fabs(w[2] - 2) < 1e-15 && w[3] == 1);
    ses_free(w);
    ses_examples_free(part);
    ses_examples_free(d);
}

static void files(void)
{
    static const struct {
        const char *text, *error;
    } of[] = {
        { "{\"a\": 1, \"b\": 2.5, \"c\": 0}", NULL },
        { "{\"a\": 1, \"c\": 1}", "no weight of label \"b\"" },
        { "{\"a\": 1, \"b\": -1, \"c\": 1}", "the weight of \"b\" is not a number of at least 0" },
        { "{\"a\": 1, \"b\": \"2\", \"c\": 1}", "the weight of \"b\" is not a number of at least 0" },
        { "{\"a\": 1, \"b\": 1, \"c\": 1, \"d\": 1}", "unknown label \"d\"" },
        { "[1, 2, 3]", "object" },
        { "", "" },
    };
    char dir[] = "/tmp/sesame-weights-XXXXXX", path[64];
    ses_examples *d = make((int[]){ 1, 1, 1 }, NULL);
    if (!CHECK(mkdtemp(dir))) return;
    snprintf(path, sizeof path, "%s/w.json", dir);
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        ses_err e = { 0 };
        FILE *f = fopen(path, "w");
        if (!CHECK(f)) continue;
        fputs(of[i].text, f);
        fclose(f);
        double *w = ses_class_weights_read(path, d, 3, &e);
        if (!of[i].error)
            CHECK(w && w[0] == 1 && w[1] == 2.5 && w[2] == 0);
        else
            CHECK_MSG(!w && strstr(e.msg, of[i].error) && strstr(e.msg, "w.json"), "%s", e.msg);
        ses_free(w);
    }
    ses_err e = { 0 };
    unlink(path);
    CHECK(!ses_class_weights_read(path, d, 3, &e) && strstr(e.msg, "No such file"));
    rmdir(dir);
    ses_examples_free(d);
}

int main(void)
{
    balanced();
    files();
    return check_report();
}
