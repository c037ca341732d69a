/* Batches: every example once an epoch, the same batch whenever it is asked for, none that is not there. */
#include "examples_fixture.h"

static void test_batches(void)
{
    ses_err e = { 0 };
    ses_dataset *d = examples();
    static const ses_batching how[] = {
        { .examples = 4, .in_order = true },      { .examples = 4, .seed = 1 }, { .tokens = 15, .seed = 1 },
        { .tokens = 15, .seed = 1, .bucket = 3 }, { .tokens = 1, .seed = 2 },
    };
    for (size_t c = 0; c < SES_LEN(how); c++) {
        ses_batches *b = ses_batches_new(d, &how[c], &e), *again = ses_batches_new(d, &how[c], &e);
        ses_source s = ses_batches_source(b), t = ses_batches_source(again);
        bool differ = false;
        int64_t before[EXAMPLES] = { 0 };
        for (int64_t epoch = 0; epoch < 3; epoch++) {
            int seen[EXAMPLES] = { 0 };
            int64_t at = 0;
            for (int64_t i = 0; i < s.count(s.ctx, epoch); i++) {
                ses_batch x, y;
                int64_t n;
                CHECK(s.batch(s.ctx, epoch, i, &x, &e));
                t.batch(t.ctx, 7, 0, &y, &e); /* another one in between */
                CHECK(t.batch(t.ctx, epoch, i, &y, &e) && x.tokens == y.tokens && x.seqs == y.seqs);
                CHECK(!memcmp(x.ids, y.ids, (size_t)x.tokens * sizeof *x.ids) && x.cu[x.seqs] == x.tokens);
                const int64_t *example = ses_batches_examples(b, epoch, i, &n, &e);
                CHECK(n == x.seqs &&
                      (how[c].tokens ? n == 1 || x.tokens <= how[c].tokens : n <= how[c].examples));
                for (int64_t j = 0; j < n; j++) {
                    ses_sequence q = ses_dataset_at(d, example[j]);
                    CHECK(x.labels[j] == q.label && q.n == x.cu[j + 1] - x.cu[j] &&
                          !memcmp(q.ids, x.ids + x.cu[j], (size_t)q.n * sizeof *q.ids));
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

int main(void)
{
    test_batches();
    return check_report();
}
