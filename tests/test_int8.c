/* A model with int8 weights: the bits of a text are the same alone and in a batch and for any number of
 * threads, though the fused int8 paths depend on the number of rows; requested rows have the bits of all
 * rows; all results are close to f32. */
#include "base/alloc.h"
#include "check.h"
#include "kernel/kernel.h"
#include "op/op.h"
#include "sesame/model.h"

#include <math.h>

enum { SEQS = 4, HIDDEN = 24, TOKENS = 3 + 90 + 1 + 40, SHORT = 40, LONG = SES_ATTN_I8_MAX_KEYS + 1 };

/* The second model has gated feed-forward layers and rotary positions. */
static const char *const configs[] = {
    "{\"model_type\": \"bert\", \"architectures\": [\"BertModel\"], \"vocab_size\": 50, \"hidden_size\": 24, "
    "\"num_hidden_layers\": 2, \"num_attention_heads\": 2, \"intermediate_size\": 50, "
    "\"initializer_range\": 0.2, \"max_position_embeddings\": 1025}",
    "{\"model_type\": \"modernbert\", \"architectures\": [\"ModernBertModel\"], \"vocab_size\": 50, "
    "\"hidden_size\": 24, \"num_hidden_layers\": 2, \"num_attention_heads\": 2, \"intermediate_size\": 50, "
    "\"initializer_range\": 0.2, \"max_position_embeddings\": 1025, \"global_attn_every_n_layers\": 2, "
    "\"local_attention\": 8}",
};
static const char *config;
static const int32_t all_cu[SEQS + 1] = { 0, 3, 93, 94, TOKENS };

/* Hidden states of sequences first .. first + n - 1, or their requested rows. */
static bool states_of(const int32_t *cu, ses_output_request want, ses_real *out, ses_isa isa, int threads,
                      ses_dtype weights, int first, int n)
{
    ses_err e = { 0 };
    ses_device_options o = { .threads = threads, .isa = isa, .dtype = weights };
    ses_device *dev = ses_device_open("cpu", &o, &e);
    ses_json_doc *doc = ses_json_parse(config, strlen(config), &e);
    ses_model *m =
        dev && doc ? ses_model_new(ses_json_root(doc), dev, &(ses_model_options){ .seed = 5 }, &e) : NULL;
    ses_tape *t = m ? ses_tape_new(dev, NULL, &e) : NULL;
    int32_t ids[SHORT + LONG], at[SEQS + 1];
    for (int i = 0; i < SHORT + LONG; i++) ids[i] = i * 7 % 50;
    for (int i = 0; i <= n; i++) at[i] = cu[first + i] - cu[first];
    ses_batch b = { .seqs = n, .tokens = at[n], .cu_seqlens = at, .ids = ids + cu[first] };
    ses_outputs got = { 0 };
    int64_t rows = want.rows ? want.n_rows : at[n];
    bool ok = t && ses_model_forward(m, t, &b, &want, &got, &e) &&
              ses_count(got.item[0].tensor) == rows * HIDDEN && ses_tape_read(t, got.item[0].tensor, out);
    CHECK_MSG(ok, "%s", e.msg);
    ses_tape_free(t), ses_model_free(m), ses_json_free(doc), ses_device_free(dev);
    return ok;
}

static bool states(ses_real *out, ses_isa isa, int threads, ses_dtype weights, int first, int n)
{
    return states_of(all_cu, (ses_output_request){ 0 }, out, isa, threads, weights, first, n);
}

/* In a batch with a text too long for int8 attention, the projections have no int8 output either. */
static void test_long(ses_isa isa)
{
    static const int32_t cu[] = { 0, SHORT, SHORT + LONG };
    static ses_real both[(SHORT + LONG) * HIDDEN], alone[(SHORT + LONG) * HIDDEN];
    enum { SHORT_BYTES = SHORT * HIDDEN * sizeof(ses_real) };
    for (int threads = 1; threads < 3; threads++)
        CHECK_MSG(states_of(cu, (ses_output_request){ 0 }, both, isa, threads, SES_I8, 0, 2) &&
                      states_of(cu, (ses_output_request){ 0 }, alone, isa, threads, SES_I8, 0, 1) &&
                      !memcmp(both, alone, SHORT_BYTES),
                  "%s, %d threads: beside a long text", ses_isa_name(isa), threads);
}

/* A last layer that computes requested rows only gives them the same bits: one row of the first sequence, and
 * of the second more than one attention block, in random order. */
static void test_rows(ses_isa isa, ses_dtype weights)
{
    enum { MANY = 600, ROWS = 401 };
    static const int32_t cu[] = { 0, SHORT, SHORT + MANY };
    static ses_real all[(SHORT + MANY) * HIDDEN], got[ROWS * HIDDEN];
    int32_t row[ROWS];
    for (int i = 0; i < ROWS; i++) row[i] = SHORT - 1 + i * 7 % ROWS;
    for (int threads = 1; threads < 3; threads++) {
        ses_output_request want = { .rows = row, .n_rows = ROWS };
        int bad = 0;
        bool ok = states_of(cu, (ses_output_request){ 0 }, all, isa, threads, weights, 0, 2) &&
                  states_of(cu, want, got, isa, threads, weights, 0, 2);
        for (int i = 0; i < ROWS; i++)
            bad += memcmp(got + i * HIDDEN, all + row[i] * HIDDEN, HIDDEN * sizeof *got) != 0;
        CHECK_MSG(ok && !bad, "%s, %d threads: %d rows", ses_isa_name(isa), threads, bad);
    }
}

static double norm(const ses_real *a, const ses_real *b)
{
    double sum = 0;
    for (int i = 0; i < TOKENS * HIDDEN; i++) sum += pow((double)a[i] - (b ? (double)b[i] : 0), 2);
    return sqrt(sum);
}

static void test_model(void)
{
    static ses_real all[TOKENS * HIDDEN], got[TOKENS * HIDDEN], exact[TOKENS * HIDDEN];
    for (int isa = SES_ISA_REF; isa <= (int)ses_isa_best(); isa++) {
        if (!states(all, (ses_isa)isa, 1, SES_I8, 0, SEQS) ||
            !states(exact, (ses_isa)isa, 1, SES_F32, 0, SEQS))
            break;
        test_long((ses_isa)isa);
        test_rows((ses_isa)isa, SES_I8);
        test_rows((ses_isa)isa, SES_F32);
        double off = norm(all, exact) / norm(exact, NULL);
        CHECK_MSG(off > 0 && off < 0.03, "%s: off by %g", ses_isa_name((ses_isa)isa), off);
        for (int threads = 1; threads < 10; threads += 4) {
            states(got, (ses_isa)isa, threads, SES_I8, 0, SEQS);
            CHECK_MSG(!memcmp(got, all, sizeof all), "%s, %d threads", ses_isa_name((ses_isa)isa), threads);
            for (int i = 0; i < SEQS; i++) {
                states(got, (ses_isa)isa, threads, SES_I8, i, 1);
                CHECK_MSG(!memcmp(got, all + all_cu[i] * HIDDEN,
                                  (size_t)(all_cu[i + 1] - all_cu[i]) * HIDDEN * sizeof *got),
                          "%s, %d threads, sequence %d", ses_isa_name((ses_isa)isa), threads, i);
            }
        }
    }
}

/* Quantized rows begin on a cache line. */
static void test_alignment(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    ses_tape *t = dev ? ses_tape_new(dev, NULL, &e) : NULL;
    for (int64_t rows = 1; t && rows < 40; rows += 7) {
        const ses_i8_rows *r = ses_tape_i8_rows(t, rows, 24);
        CHECK_MSG(r && (uintptr_t)r->q % SES_ALIGN == 0 && (uintptr_t)r->scale % SES_ALIGN == 0 &&
                      (const char *)r->q >= (const char *)(r->scale + rows),
                  "%d rows", (int)rows);
    }
    CHECK_MSG(t, "%s", e.msg);
    ses_tape_free(t), ses_device_free(dev);
}

int main(void)
{
    test_alignment();
    for (size_t i = 0; i < SES_LEN(configs); i++) {
        config = configs[i];
        test_model();
    }
    return check_report();
}
