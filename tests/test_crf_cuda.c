/* The CRF and the scores of additive attention on a GPU, f32 and bf16: larger shapes than the cases of the
 * ops, compared with the CPU; a second run gives the same bits. Skipped without a GPU. */
#include "check.h"
#include "op/op_check.h"
#include "sesame/unstable/tensor.h"

enum { MAX_SEQS = 80, MAX_ROWS = 4096 };

typedef struct ragged {
    int64_t seqs, rows;
    int32_t cu[MAX_SEQS + 1], label[MAX_ROWS];
} ragged;

/* Random number i below n. */
static int32_t draw(ses_rng_key key, int64_t i, int32_t n)
{
    int32_t x = (int32_t)(ses_rand_unit(key, (uint64_t)i) * (float)n);
    return x < n ? x : n - 1;
}

/* Sequences of at most `longest` rows, some of them empty; every seventh label is ignored if `holes`. */
static void make_ragged(ragged *r, int64_t seqs, int32_t longest, int32_t labels, bool holes, uint32_t site)
{
    ses_rng_key key = { .seed = 11, .site = site };
    r->seqs = seqs, r->cu[0] = 0;
    for (int64_t s = 0; s < seqs; s++) r->cu[s + 1] = r->cu[s] + draw(key, s, longest + 1);
    r->rows = r->cu[seqs];
    for (int64_t i = 0; i < r->rows; i++)
        r->label[i] = holes && i % 7 == 3 ? SES_IGNORE_INDEX : draw(key, 1000 + i, labels);
}

static bool same_bits(const ses_trial *a, const ses_trial *b)
{
    bool same = a->n_out == b->n_out && !memcmp(a->out, b->out, (size_t)a->n_out * sizeof *a->out);
    for (int i = 0; i < SES_MAX_IN; i++)
        same &= !a->grad[i] || !memcmp(a->grad[i], b->grad[i], (size_t)a->n_grad[i] * sizeof *a->grad[i]);
    return same;
}

static void check_case(ses_device *cpu, ses_device *gpu, const ses_op *op, const ses_case *c, double limit)
{
    ses_trial want, got, again;
    ses_err e = { 0 };
    const char *where = "";
    bool ok = ses_trial_run(&want, cpu, op, c, NULL, &e) && ses_trial_run(&got, gpu, op, c, NULL, &e) &&
              ses_trial_run(&again, gpu, op, c, NULL, &e);
    CHECK_MSG(ok, "%s: %s", op->name, e.msg);
    if (!ok) return;
    double off = ses_trial_distance(&got, &want, c, &where);
    CHECK_MSG(off <= limit, "%s, %d rows of %d, %s: %g times the tolerance", op->name, (int)c->dim[0][0],
              (int)c->dim[0][1], where, off / limit);
    CHECK_MSG(same_bits(&got, &again), "%s, %d rows: other bits", op->name, (int)c->dim[0][0]);
    ses_trial_free(&want), ses_trial_free(&got), ses_trial_free(&again);
}

static void test_crf(ses_device *cpu, ses_device *gpu, double limit)
{
    static const struct {
        int64_t seqs;
        int32_t longest, labels;
        bool holes;
    } shape[] = { { 32, 60, 17, false }, { 80, 30, 9, true },  { 5, 200, 33, true },
                  { 3, 40, 70, false },  { 1, 900, 5, false }, { 17, 20, 2, true } };
    for (size_t i = 0; i < SES_LEN(shape); i++) {
        ragged r;
        int64_t L = shape[i].labels;
        make_ragged(&r, shape[i].seqs, shape[i].longest, shape[i].labels, shape[i].holes, (uint32_t)i);
        ses_case c = { .dim = { { r.rows, L }, { L, L }, { L }, { L }, { r.rows }, { r.seqs + 1 } },
                       .ints = { [4] = r.label, [5] = r.cu } };
        check_case(cpu, gpu, &ses_op_crf, &c, limit);
    }
}

static void test_additive(ses_device *cpu, ses_device *gpu, double limit)
{
    static const struct {
        int64_t seqs, cols;
        int32_t queries, keys;
    } shape[] = { { 40, 128, 1, 30 }, { 16, 600, 25, 20 }, { 3, 33, 200, 150 }, { 80, 512, 20, 25 } };
    for (size_t i = 0; i < SES_LEN(shape); i++) {
        ragged q, k;
        int64_t C = shape[i].cols;
        make_ragged(&q, shape[i].seqs, shape[i].queries, 1, false, 20 + (uint32_t)i);
        make_ragged(&k, shape[i].seqs, shape[i].keys, 1, false, 40 + (uint32_t)i);
        ses_case c = { .dim = { { q.rows, C }, { k.rows + 2, C }, { C }, { q.seqs + 1 }, { k.seqs + 1 } },
                       .ints = { [3] = q.cu, [4] = k.cu } };
        check_case(cpu, gpu, &ses_op_additive_scores, &c, limit);
    }
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *gpu = ses_device_open("cuda", NULL, &e), *cpu = ses_device_open("cpu", NULL, NULL),
               *gpu16 = ses_device_open("cuda", &(ses_device_options){ .dtype = SES_BF16 }, NULL);
    if (!gpu) SKIP(e.msg);
    if (gpu) test_crf(cpu, gpu, 5), test_additive(cpu, gpu, 5);
    if (gpu16) test_crf(cpu, gpu16, SES_BF16_TOL_FACTOR), test_additive(cpu, gpu16, SES_BF16_TOL_FACTOR);
    CHECK(cpu);
    ses_device_free(gpu16);
    ses_device_free(gpu);
    ses_device_free(cpu);
    return check_report();
}
