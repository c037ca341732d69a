/* Paragraph vectors: every method separates two topics, bits for every number of threads, interruption,
 * files, inference. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/rng.h"
#include "check.h"
#include "vectors/paragraph/paragraph.h"

#include <math.h>
#include <unistd.h>

enum { DOCS = 120, WORDS = 60, DIM = 19, STOP_AFTER = 5 };
static const char *const TEXT = "build/paragraph-test.txt", *const FILE_NAME =
                                                                "build/paragraph-test.safetensors";

/* Documents of two topics with words of their own, and common words; document 7 is empty. */
static void make_text(void)
{
    ses_buf b = { 0 };
    for (uint64_t i = 0; i < DOCS; i++) {
        for (uint64_t k = 0; i != 7 && k < WORDS; k++) {
            uint32_t r = ses_rand32((ses_rng_key){ 3, 1, 4 }, i * WORDS + k);
            ses_buf_appendf(&b, "%s%u ", r % 4 ? "common" : i % 2 ? "x" : "y", r / 4 % 8);
        }
        ses_buf_put(&b, '\n');
    }
    ses_buf_puts(&b, "only");
    CHECK(ses_file_write(TEXT, b.data, b.len, true, NULL));
    ses_buf_free(&b);
}

static bool read_docs(ses_documents *d, ses_err *e)
{
    return ses_documents_read(d, &TEXT, 1, &(ses_documents_options){ .min_count = 2 }, e);
}

static void test_documents(void)
{
    ses_documents d = { 0 };
    ses_err e = { 0 };
    CHECK_MSG(read_docs(&d, &e), "%s", e.msg);
    CHECK(d.n == DOCS + 1);
    CHECK(d.start[7] == d.start[8]);
    CHECK(d.start[1] == WORDS);
    CHECK(d.start[DOCS] == d.start[DOCS + 1]); /* "only" occurs once */
    ses_documents_free(&d);
    CHECK(!ses_documents_read(&d, &TEXT, 1, &(ses_documents_options){ .min_count = 1000000 }, &e));
    CHECK(strstr(e.msg, TEXT));
    ses_documents_free(&d);
}

static ses_pv_settings settings(ses_pv_method method)
{
    return (ses_pv_settings){ .method = method,
                              .dim = DIM,
                              .window = 3,
                              .negative = 4,
                              .epochs = 40,
                              .min_count = 2,
                              .rate = 0.05,
                              .sample = 0,
                              .seed = 9 };
}

static bool stop_later(void *ctx, int64_t words)
{
    (void)words;
    return --*(int *)ctx != 0;
}

/* Trains; `interrupt`: stops after some rounds and continues in a new model from a checkpoint. */
static bool train(ses_pv_model *m, ses_pv_method method, int threads, bool interrupt, ses_err *e)
{
    ses_documents d = { 0 };
    ses_kernels k = ses_kernels_cpu(ses_isa_best());
    ses_thread_pool *pool = ses_thread_pool_new(threads, e);
    ses_pv_settings o = settings(method);
    int left = interrupt ? STOP_AFTER : -1;
    bool ok = read_docs(&d, e) && ses_pv_init(m, &d.vocab, d.n, &o, e), stopped;
    while (ok && m->epoch < o.epochs) {
        ok = ses_pv_epoch(m, &d, &k, pool, stop_later, &left, &stopped, e);
        if (!ok || !stopped) continue;
        ses_documents again = { 0 };
        ses_err refused = { 0 };
        ok = ses_pv_save(m, FILE_NAME, "this run", true, e);
        ses_pv_free(m);
        ok = ok && read_docs(&again, e) && ses_pv_init(m, &again.vocab, again.n, &o, e);
        CHECK(!ses_pv_resume(m, FILE_NAME, "other run", &refused) && strstr(refused.msg, "other settings"));
        ok = ok && ses_pv_resume(m, FILE_NAME, "this run", e);
        CHECK(m->next_doc > 0);
        ses_documents_free(&again);
        left = -1;
    }
    ses_documents_free(&d);
    ses_thread_pool_free(pool);
    return ok;
}

static double cosine(const float *a, const float *b)
{
    double ab = 0, aa = 0, bb = 0;
    for (int i = 0; i < DIM; i++)
        ab += (double)a[i] * (double)b[i], aa += (double)a[i] * (double)a[i],
            bb += (double)b[i] * (double)b[i];
    return ab / sqrt(aa * bb);
}

/* Mean cosine of documents of one topic minus that of two. */
static double contrast(const float *x, int64_t stride)
{
    double sum[2] = { 0 };
    int n[2] = { 0 };
    for (int i = 8; i < DOCS; i++)
        for (int k = 8; k < i; k++)
            sum[(i ^ k) & 1] += cosine(x + i * stride, x + k * stride), n[(i ^ k) & 1]++;
    return sum[0] / n[0] - sum[1] / n[1];
}

static void test_inference(const ses_pv_model *m, int threads, float *out)
{
    ses_err e = { 0 };
    ses_thread_pool *pool = ses_thread_pool_new(threads, &e);
    ses_kernels k = ses_kernels_cpu(ses_isa_best());
    ses_word_reader r = { 0 };
    ses_documents d = { 0 };
    float *before = ses_alloc_array(m->vocab.n, (size_t)m->out_cols * sizeof *before, &e);
    memcpy(before, m->out, m->vocab.n * (size_t)m->out_cols * sizeof *before);
    CHECK(ses_word_reader_open(&r, TEXT, SES_WORDS_BLANK, &e));
    for (int64_t at = 0; at <= DOCS; at += 50) { /* 50, 50, 21 documents */
        CHECK(ses_documents_next(&d, &r, &m->vocab, 50, &e));
        CHECK(d.n == (at == 100 ? 21 : 50));
        CHECK_MSG(ses_pv_infer(m, &d, 50, &k, pool, out + at * DIM, &e), "%s", e.msg);
    }
    CHECK(ses_documents_next(&d, &r, &m->vocab, 50, &e) && d.n == 0);
    CHECK(!memcmp(before, m->out, m->vocab.n * (size_t)m->out_cols * sizeof *before));
    CHECK(out[7 * DIM] == 0 && out[7 * DIM + DIM - 1] == 0);
    ses_free(before);
    ses_word_reader_free(&r);
    ses_documents_free(&d);
    ses_thread_pool_free(pool);
}

static void test_method(ses_pv_method method)
{
    ses_err e = { 0 };
    ses_pv_model m = { 0 }, other = { 0 };
    float *x = ses_alloc_array((DOCS + 1) * DIM, sizeof *x, &e),
          *y = ses_alloc_array((DOCS + 1) * DIM, sizeof *y, &e);
    CHECK_MSG(train(&m, method, 1, false, &e), "%s", e.msg);
    CHECK_MSG(contrast(m.doc, m.stride) > 0.3, "method %d: %g", (int)method, contrast(m.doc, m.stride));
    size_t docs = (size_t)(m.docs * m.stride) * sizeof *m.doc,
           outs = m.vocab.n * (size_t)m.out_cols * sizeof *m.out;
    for (int i = 0; i < 3; i++) {
        CHECK_MSG(train(&other, method, (const int[]){ 2, 8, 2 }[i], i == 2, &e), "%s", e.msg);
        CHECK_MSG(!memcmp(m.doc, other.doc, docs) && !memcmp(m.out, other.out, outs), "method %d, run %d",
                  (int)method, i);
        CHECK(m.loss == other.loss && m.loss > 0);
        if (i < 2) ses_pv_free(&other);
    }
    test_inference(&m, 1, x);
    CHECK_MSG(contrast(x, DIM) > 0.3, "inferred, method %d: %g", (int)method, contrast(x, DIM));
    CHECK_MSG(ses_pv_save(&m, FILE_NAME, NULL, true, &e), "%s", e.msg);
    ses_pv_free(&other);
    CHECK_MSG(ses_pv_load(&other, FILE_NAME, &e), "%s", e.msg);
    CHECK(!memcmp(m.doc, other.doc, docs) && !memcmp(m.out, other.out, outs));
    test_inference(&other, 8, y);
    CHECK(!memcmp(x, y, (DOCS + 1) * DIM * sizeof *x));
    ses_pv_free(&m);
    ses_pv_free(&other);
    ses_free(x);
    ses_free(y);
}

int main(void)
{
    make_text();
    test_documents();
    for (ses_pv_method m = SES_PV_DBOW; m <= SES_PV_DM_CONCAT; m++) test_method(m);
    unlink(TEXT);
    unlink(FILE_NAME);
    return check_report();
}
