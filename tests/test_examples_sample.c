/* Random subsets of examples: sizes, classes in proportion, shots, nesting, refusals. */
#include "base/alloc.h"
#include "check.h"
#include "data/examples_sample.h"

enum { N = 400 };

/* Classes a, b, c with 280, 100 and 20 texts, mixed; the text is the number. */
static ses_examples *texts(void)
{
    static char text[N][16];
    static ses_example_input x[N];
    ses_err e = { 0 };
    for (int i = 0; i < N; i++) {
        snprintf(text[i], sizeof text[i], "%d", i);
        x[i] = (ses_example_input){ .text = text[i], .label = i % 20 < 14 ? "a" : i % 20 < 19 ? "b" : "c" };
    }
    return ses_examples_new(SES_DATA_CLASSIFY, x, N, NULL, NULL, &e);
}

static ses_examples *sample(const ses_examples *d, int64_t size, int64_t shots, uint64_t seed)
{
    ses_err e = { 0 };
    ses_examples *s = ses_examples_sample(d, &(ses_sample){ size, shots, seed }, &e);
    CHECK_MSG(s, "%s", e.msg);
    return s;
}

static int count(const ses_examples *d, int32_t label)
{
    int n = 0;
    for (size_t i = 0; i < ses_examples_count(d); i++) n += ses_examples_at(d, i)->label == label;
    return n;
}

/* Whether every example of a is one of b, in the same order. */
static bool is_part(const ses_examples *a, const ses_examples *b)
{
    size_t at = 0;
    for (size_t i = 0; i < ses_examples_count(a); i++, at++) {
        while (at < ses_examples_count(b) &&
               ses_examples_at(b, at)->text_a.p != ses_examples_at(a, i)->text_a.p)
            at++;
        if (at >= ses_examples_count(b)) return false;
    }
    return true;
}

static void test_size(const ses_examples *d)
{
    ses_examples *before = NULL;
    for (int64_t size = 1; size <= N; size *= 2) {
        ses_examples *s = sample(d, size, 0, 7), *again = sample(d, size, 0, 7);
        CHECK((int64_t)ses_examples_count(s) == size && ses_examples_label_count(s) == 3);
        CHECK(is_part(s, d) && is_part(s, again));
        CHECK(!before || is_part(before, s));
        for (int32_t c = 0; c < 3; c++) { /* in proportion, within one example */
            double want = (double)count(d, c) * (double)size / N;
            CHECK_MSG(count(s, c) >= want - 1 && count(s, c) <= want + 1, "%d of %g", count(s, c), want);
        }
        ses_examples_free(before);
        ses_examples_free(again);
        before = s;
    }
    ses_examples *other = sample(d, 64, 0, 8), *first = sample(d, 64, 0, 7), *all = sample(d, N, 0, 7),
                 *none = sample(d, 0, 0, 7);
    CHECK(!is_part(first, other));
    CHECK(ses_examples_count(all) == N && is_part(all, d));
    CHECK(ses_examples_count(none) == N && is_part(none, d));
    ses_examples_free(before);
    ses_examples_free(other);
    ses_examples_free(first);
    ses_examples_free(all);
    ses_examples_free(none);
}

static void test_shots(const ses_examples *d)
{
    ses_examples *before = NULL;
    ses_err e = { 0 };
    for (int64_t shots = 1; shots <= 20; shots = shots < 16 ? 2 * shots : shots + 4) {
        ses_examples *s = sample(d, 0, shots, 3);
        for (int32_t c = 0; c < 3; c++) CHECK(count(s, c) == shots);
        CHECK(!before || is_part(before, s));
        ses_examples_free(before);
        before = s;
    }
    ses_examples_free(before);
    CHECK(!ses_examples_sample(d, &(ses_sample){ .shots = 21 }, &e) && e.code == SES_EARG);
    CHECK(strstr(e.msg, "shots 21: class \"c\" has 20 examples") != NULL);
    e = (ses_err){ 0 };
    CHECK(!ses_examples_sample(d, &(ses_sample){ .size = N + 1 }, &e) && e.code == SES_EARG);
    CHECK(strstr(e.msg, "the data have 400 examples") != NULL);
    e = (ses_err){ 0 };
    CHECK(!ses_examples_sample(d, &(ses_sample){ .size = 4, .shots = 4 }, &e) && e.code == SES_EUSAGE);
}

/* Every draw of a single example is about as likely: 2,000 seeds, 40 texts. */
static void test_even(void)
{
    static char text[40][16];
    ses_example_input x[40];
    int hits[40] = { 0 };
    double chi = 0;
    ses_err e = { 0 };
    for (int i = 0; i < 40; i++) {
        snprintf(text[i], sizeof text[i], "%d", i);
        x[i] = (ses_example_input){ .text = text[i], .value = i };
    }
    ses_examples *d = ses_examples_new(SES_DATA_REGRESS, x, 40, NULL, NULL, &e);
    for (uint64_t seed = 0; seed < 2000; seed++) {
        ses_examples *s = sample(d, 1, 0, seed);
        hits[(int)ses_examples_at(s, 0)->target]++;
        ses_examples_free(s);
    }
    for (int i = 0; i < 40; i++) chi += (hits[i] - 50.0) * (hits[i] - 50.0) / 50;
    CHECK_MSG(chi < 73, "chi-squared %g", chi); /* 39 degrees of freedom: 0.1 % above 72.1 */
    CHECK(!ses_examples_sample(d, &(ses_sample){ .shots = 1 }, &e) && strstr(e.msg, "no classes"));
    ses_examples_free(d);
}

static bool has_type(const ses_examples *d, const ses_labeled_example *x, const char *type)
{
    for (size_t k = 0; k < x->n_labels; k++) {
        const char *name = ses_examples_label_name(d, (size_t)x->labels[k]);
        if (name[1] == '-' && !strcmp(name + 2, type)) return true;
    }
    return false;
}

/* Sentences with persons, with locations, with both, without any. */
static void test_tags(void)
{
    static const char *const words[] = { "a", "b", "c" }, *const tags[4][3] = {
        { "O", "B-PER", "I-PER" }, { "B-LOC", "O", "O" }, { "B-PER", "O", "B-LOC" }, { "O", "O", "O" }
    };
    ses_example_input x[80];
    ses_err e = { 0 };
    for (int i = 0; i < 80; i++)
        x[i] = (ses_example_input){ .parts = words, .n_parts = 3, .labels = tags[i % 7 % 4], .n_labels = 3 };
    ses_examples *d = ses_examples_new(SES_DATA_TAG, x, 80, NULL, NULL, &e);
    ses_examples *four = sample(d, 0, 4, 1), *eight = sample(d, 0, 8, 1), *plain = sample(d, 10, 0, 1);
    int per = 0, loc = 0;
    for (size_t i = 0; i < ses_examples_count(four); i++) {
        per += has_type(four, ses_examples_at(four, i), "PER");
        loc += has_type(four, ses_examples_at(four, i), "LOC");
    }
    CHECK(per >= 4 && loc >= 4 && ses_examples_count(four) <= 8 && is_part(four, eight));
    CHECK(ses_examples_count(plain) == 10);
    CHECK(!ses_examples_sample(d, &(ses_sample){ .shots = 60 }, &e) && strstr(e.msg, "entity type"));
    ses_examples_free(four);
    ses_examples_free(eight);
    ses_examples_free(plain);
    ses_examples_free(d);
}

static void test_labels(void)
{
    static const char *const labels[3][2] = { { "x", "y" }, { "x" }, { "z" } };
    ses_example_input x[30];
    ses_err e = { 0 };
    for (int i = 0; i < 30; i++)
        x[i] = (ses_example_input){ .text = "t", .labels = labels[i % 3], .n_labels = i % 3 ? 1 : 2 };
    ses_examples *d = ses_examples_new(SES_DATA_MULTI, x, 30, NULL, NULL, &e), *s = sample(d, 0, 5, 1);
    int hits[3] = { 0 };
    for (size_t i = 0; i < ses_examples_count(s); i++)
        for (size_t k = 0; k < ses_examples_at(s, i)->n_labels; k++) hits[ses_examples_at(s, i)->labels[k]]++;
    CHECK(hits[0] >= 5 && hits[1] >= 5 && hits[2] == 5);
    CHECK(!ses_examples_sample(d, &(ses_sample){ .shots = 11 }, &e) && strstr(e.msg, "\"y\" has 10"));
    ses_examples_free(s);
    ses_examples_free(d);
}

int main(void)
{
    ses_examples *d = texts();
    test_size(d);
    test_shots(d);
    ses_examples_free(d);
    test_even();
    test_tags();
    test_labels();
    return check_report();
}
