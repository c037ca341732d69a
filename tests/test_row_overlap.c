/* Rows of evaluation data that are in the training data: texts, pairs, words, white space, empty rows. */
#include "check.h"
#include "data/row_overlap.h"

#include <string.h>

static ses_examples *examples(ses_data_kind kind, const ses_example_input *x, size_t n)
{
    ses_err e = { 0 };
    ses_examples *d = ses_examples_new(kind, x, n, NULL, NULL, &e);
    CHECK_MSG(d, "%s", e.msg);
    return d;
}

static void check(ses_data_kind kind, const ses_example_input *train, size_t n_train,
                  const ses_example_input *eval, size_t n_eval, size_t shared, size_t rows)
{
    ses_err e = { 0 };
    ses_row_overlap o = { 0 };
    ses_examples *a = examples(kind, train, n_train), *b = examples(kind, eval, n_eval);
    CHECK_MSG(ses_examples_overlap(a, b, &o, &e), "%s", e.msg);
    CHECK_MSG(o.shared == shared && o.rows == rows, "%zu of %zu, expected %zu of %zu", o.shared, o.rows,
              shared, rows);
    ses_examples_free(a);
    ses_examples_free(b);
}

static void test_texts(void)
{
    const ses_example_input train[] = { { .text = "a b", .label = "x" },
                                        { .text = "c", .label = "y" },
                                        { .text = "c", .label = "x" },
                                        { .text = "", .label = "x" } };
    const ses_example_input eval[] = {
        { .text = " a b\r", .label = "y" },                                /* other label, white space */
        { .text = "c", .label = "x" },      { .text = "c", .label = "x" }, /* counts again */
        { .text = "C", .label = "x" },      { .text = "a  b", .label = "x" }, { .text = "", .label = "x" }
    }; /* has no text */
    check(SES_DATA_CLASSIFY, train, 4, eval, 6, 3, 5);
    check(SES_DATA_CLASSIFY, eval + 3, 2, train, 3, 0, 3);
}

static void test_pairs(void)
{
    const ses_example_input train[] = { { .text = "a", .pair = "b", .label = "x" },
                                        { .text = "ab", .pair = "c", .label = "x" },
                                        { .text = "d", .label = "y" } };
    const ses_example_input eval[] = { { .text = "a", .pair = "b", .label = "x" },
                                       { .text = "b", .pair = "a", .label = "x" }, /* the other way round */
                                       { .text = "a", .pair = "bc", .label = "x" },
                                       { .text = "d", .pair = "d", .label = "y" } };
    check(SES_DATA_CLASSIFY, train, 3, eval, 4, 1, 4);
}

static void test_words(void)
{
    const char *const ab[] = { "a", "b" }, *const joined[] = { "ab" }, *const tags[] = { "O", "B" };
    const ses_example_input train[] = { { .parts = ab, .n_parts = 2, .labels = tags, .n_labels = 2 } };
    const ses_example_input eval[] = { { .parts = joined, .n_parts = 1, .labels = tags, .n_labels = 1 },
                                       { .parts = ab, .n_parts = 2, .labels = tags, .n_labels = 2 } };
    check(SES_DATA_TAG, train, 1, eval, 2, 1, 2);
}

static void test_sentence(void)
{
    char text[200];
    CHECK(!*ses_row_overlap_text(&(ses_row_overlap){ 0, 9 }, "dev.tsv", text, sizeof text));
    ses_row_overlap_text(&(ses_row_overlap){ 1, 9 }, "dev.tsv", text, sizeof text);
    CHECK_MSG(strstr(text, "dev.tsv: 1 of 9 examples is also in the training data: "), "%s", text);
    ses_row_overlap_text(&(ses_row_overlap){ 9, 9 }, "dev.tsv", text, sizeof text);
    CHECK_MSG(strstr(text, "dev.tsv: 9 of 9 examples are also in the training data: "), "%s", text);
}

int main(void)
{
    test_texts();
    test_pairs();
    test_words();
    test_sentence();
    return check_report();
}
