/* A part of the training data held out for evaluation: each class has as many examples as in scikit-learn's
 * train_test_split(test_size, stratify=y). */
#include "check.h"
#include "tune/data/held_out.h"

enum { MAX_ROWS = 200 };

static ses_examples *make(const int *count, int classes)
{
    static char text[MAX_ROWS][16];
    static const char *const label[] = { "a", "b", "c", "d" };
    ses_example_input x[MAX_ROWS] = { 0 };
    ses_err e = { 0 };
    size_t n = 0;
    for (int c = 0; c < classes; c++)
        for (int i = 0; i < count[c]; i++, n++) {
            snprintf(text[n], sizeof text[n], "%zu", n);
            x[n] = (ses_example_input){ .text = text[n], .label = label[c] };
        }
    ses_examples *d = ses_examples_new(SES_DATA_CLASSIFY, x, n, NULL, NULL, &e);
    CHECK(d);
    return d;
}

/* Divides the examples; *mask: the rows of the part. */
static void divide(const ses_examples *all, const char *percent, uint64_t seed, bool mask[MAX_ROWS],
                   int found[4])
{
    ses_err e = { 0 };
    ses_examples *train, *part;
    memset(mask, 0, MAX_ROWS * sizeof *mask);
    memset(found, 0, 4 * sizeof *found);
    if (!CHECK(ses_held_out_take(percent, seed, all, &train, &part, &e))) return;
    CHECK(ses_examples_count(train) + ses_examples_count(part) == ses_examples_count(all));
    for (size_t i = 0; i < ses_examples_count(part); i++) {
        const ses_labeled_example *x = ses_examples_at(part, i);
        mask[strtol(x->text_a.p, NULL, 10)] = true;
        found[x->label]++;
    }
    for (size_t i = 0; i < ses_examples_count(train); i++)
        CHECK(!mask[strtol(ses_examples_at(train, i)->text_a.p, NULL, 10)]); /* no row is in both */
    CHECK(ses_examples_label_count(part) == ses_examples_label_count(all));
    ses_examples_free(train);
    ses_examples_free(part);
}

static void proportions(void)
{
    static const struct {
        int count[4], classes;
        const char *percent;
        int part[4];
    } of[] = {
        { { 50, 23, 10 }, 3, "10%", { 5, 3, 1 } },
        { { 50, 23, 10 }, 3, "20%", { 10, 5, 2 } },
        { { 40, 40 }, 2, "10%", { 4, 4 } },
        { { 40, 40 }, 2, "25%", { 10, 10 } },
        { { 30, 30, 7, 3 }, 4, "10%", { 3, 3, 1, 0 } },
        { { 30, 30, 7, 3 }, 4, "20%", { 6, 6, 1, 1 } },
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        ses_examples *all = make(of[i].count, of[i].classes);
        bool mask[MAX_ROWS], again[MAX_ROWS];
        int found[4];
        divide(all, of[i].percent, 42, mask, found);
        CHECK(!memcmp(found, of[i].part, sizeof found));
        divide(all, of[i].percent, 42, again, found);
        CHECK(!memcmp(mask, again, sizeof mask));
        divide(all, of[i].percent, 43, again, found);
        CHECK(memcmp(mask, again, sizeof mask) && !memcmp(found, of[i].part, sizeof found));
        ses_examples_free(all);
    }
}

static void refused(void)
{
    ses_err e = { 0 };
    ses_examples *train, *part, *all = make((int[]){ 2, 1 }, 2);
    CHECK(ses_held_out_is("10%") && ses_held_out_is("2.5%") && ses_held_out_is("0%"));
    CHECK(!ses_held_out_is("10") && !ses_held_out_is("%") && !ses_held_out_is("dev10%") &&
          !ses_held_out_is(NULL));
    CHECK(!ses_held_out_is("1.2.3%"));
    CHECK(!ses_held_out_take("0%", 1, all, &train, &part, &e));
    CHECK_STR(e.msg, "eval 0%: expected a part above 0% and below 100%");
    e = (ses_err){ 0 };
    CHECK(!ses_held_out_take("90%", 1, all, &train, &part, &e));
    CHECK_STR(e.msg, "eval 90% of 3 examples leaves none for training");
    ses_examples_free(all);
}

int main(void)
{
    proportions();
    refused();
    return check_report();
}
