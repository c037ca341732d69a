/* Batches: every example once per epoch, equal batches on repeated calls, errors for indices out of range. */
#include "examples_fixture.h"

static void test_batches(void)
{
    ses_err e = { 0 };
    ses_dataset *d = examples();
    static const ses_batching how[] = {
        { .max_examples = 4, .in_order = true }, { .max_examples = 4, .seed = 1 },
        { .max_tokens = 15, .seed = 1 },         { .max_tokens = 15, .seed = 1, .bucket_batches = 3 },
        { .max_tokens = 1, .seed = 2 },
    };
    for (size_t c = 0; c < SES_LEN(how); c++) {
        ses_batches *b = ses_batches_new(d, &how[c], &e), *again = ses_batches_new(d, &how[c], &e);
        ses_batch_source s = ses_batches_source(b), t = ses_batches_source(again);
        bool differ = false;
        int64_t before[EXAMPLES] = { 0 };
        for (int64_t epoch = 0; epoch < 3; epoch++) {
            int seen[EXAMPLES] = { 0 };
            int64_t at = 0;
            for (int64_t i = 0; i < s.count(s.ctx, epoch); i++) {
                ses_batch x, y;
                int64_t n;
                CHECK(s.batch(s.ctx, epoch, i, &x, &e));
                t.batch(t.ctx, 7, 0, &y, &e); /* another batch in between */
                CHECK(t.batch(t.ctx, epoch, i, &y, &e) && x.tokens == y.tokens && x.seqs == y.seqs);
                CHECK(!memcmp(x.ids, y.ids, (size_t)x.tokens * sizeof *x.ids) &&
                      x.cu_seqlens[x.seqs] == x.tokens);
                const int64_t *example = ses_batches_examples(b, epoch, i, &n, &e);
                CHECK(n == x.seqs && (how[c].max_tokens ? n == 1 || x.tokens <= how[c].max_tokens
                                                        : n <= how[c].max_examples));
                for (int64_t j = 0; j < n; j++) {
                    ses_sequence q = ses_dataset_at(d, example[j]);
                    CHECK(x.labels[j] == q.label && q.n == x.cu_seqlens[j + 1] - x.cu_seqlens[j] &&
                          !memcmp(q.ids, x.ids + x.cu_seqlens[j], (size_t)q.n * sizeof *q.ids));
                    seen[example[j]]++;
                    differ |= epoch && before[at] != example[j];
                    before[at++] = example[j];
                }
            }
            for (int i = 0; i < EXAMPLES; i++) CHECK(seen[i] == 1);
        }
        CHECK(differ != how[c].in_order);
        const int64_t off[][2] = { { 0, -1 }, { 0, s.count(s.ctx, 0) }, { -1, 0 }, { 1, INT64_MAX } };
        for (size_t i = 0; i < SES_LEN(off); i++) {
            ses_batch x;
            char said[64];
            ses_err_clear(&e);
            CHECK(!s.batch(s.ctx, off[i][0], off[i][1], &x, &e) && e.code == SES_EARG);
            s.describe(s.ctx, off[i][0], off[i][1], said, sizeof said);
            CHECK_STR(said, "");
        }
        ses_err_clear(&e);
        ses_batches_free(b);
        ses_batches_free(again);
    }
    ses_dataset_free(d);
    d = ses_dataset_new(SES_TARGET_CLASS, 0, 1, &e);
    CHECK(!ses_batches_new(d, &how[0], &e));
    CHECK_STR(e.msg, "no examples");
    ses_dataset_free(d);
}

/* Pairs stay in one batch and have one target; the tokens of both count. */
static void test_groups(void)
{
    ses_err e = { 0 };
    enum { PAIRS = 7 };
    ses_dataset *d = ses_dataset_new(SES_TARGET_VALUES, 1, 2, &e);
    for (int32_t i = 0; i < 2 * PAIRS; i++) {
        const int32_t ids[3] = { i, i, i };
        ses_real value = (ses_real)(i / 2);
        CHECK(ses_dataset_add(d, &(ses_sequence){ .n = 1 + i % 3, .ids = ids, .values = &value }, &e));
    }
    CHECK(ses_dataset_size(d) == PAIRS);
    ses_batches *b = ses_batches_new(d, &(ses_batching){ .max_examples = 3, .seed = 5 }, &e);
    ses_batch_source s = ses_batches_source(b);
    int64_t seen = 0;
    for (int64_t i = 0; i < s.count(s.ctx, 0); i++) {
        ses_batch x;
        CHECK(s.batch(s.ctx, 0, i, &x, &e) && x.choices == 2 && x.seqs % 2 == 0);
        for (int64_t p = 0; p < x.seqs / 2; p++, seen++) {
            int32_t first = x.ids[x.cu_seqlens[2 * p]], second = x.ids[x.cu_seqlens[2 * p + 1]];
            CHECK(second == first + 1 && first % 2 == 0 && x.targets[p] == (ses_real)(first / 2));
        }
    }
    CHECK(seen == PAIRS);
    ses_batches_free(b);
    ses_dataset_free(d);
}

int main(void)
{
    test_batches();
    test_groups();
    return check_report();
}
