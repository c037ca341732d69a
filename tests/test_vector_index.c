/* Vector index: files written and read back, exact search against a plain loop, damaged files. */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/file.h"
#include "check.h"
#include "kernel/kernel.h"
#include "task/vector_index.h"

#include <math.h>
#include <sys/resource.h>
#include <unistd.h>

static const char path[] = "/tmp/sesame-test-vector-index.XXXXXX";
static char file[64];
static const ses_index_source source = { 11, 22, 33, 44 };

/* A number from -1 to 1 for element i. */
static float number(int64_t i)
{
    uint64_t x = (uint64_t)i * 0x9E3779B97F4A7C15u;
    x ^= x >> 29, x *= 0xBF58476D1CE4E5B9u, x ^= x >> 32;
    return (float)(x & 0xFFFF) / 32768 - 1;
}

static void fill_vector(float *v, int64_t dim, int64_t i)
{
    double sum = 0;
    for (int64_t c = 0; c < dim; c++) v[c] = number(i * dim + c), sum += (double)v[c] * (double)v[c];
    for (int64_t c = 0; c < dim; c++) v[c] /= (float)sqrt(sum);
}

/* Vector i equals vector i + n / 2 except for its text and line: tests ties. */
static void write_index(ses_dtype dtype, int64_t n, int64_t dim)
{
    ses_err e = { 0 };
    float v[512];
    ses_index_builder *b = ses_index_builder_new(file, dtype, dim, &e);
    for (int64_t i = 0; b && i < n; i++) {
        char text[40];
        int len = i % 7 == 3 ? 0 : snprintf(text, sizeof text, "text %lld", (long long)i);
        CHECK(ses_index_builder_add(b, text, (size_t)len, 2 * i + 1, &e));
        fill_vector(v, dim, n > 1 ? i % (n / 2) : i);
        CHECK(ses_index_builder_set(b, i, v, &e));
    }
    fill_vector(v, dim, 12345);
    CHECK_MSG(b && ses_index_builder_write(b, &source, "a-model", v, true, &e), "%s", e.msg);
    ses_index_builder_free(b);
}

static void check_search(const ses_vector_index *x, int threads, int64_t k)
{
    ses_err e = { 0 };
    const ses_vector_index_info *info = ses_vector_index_info_of(x);
    enum { QUERIES = 3 };
    float *q = ses_alloc_array((size_t)(QUERIES * info->dim), sizeof *q, &e);
    ses_index_hit *hits = ses_alloc_array((size_t)(QUERIES * k), sizeof *hits, &e);
    ses_thread_pool *pool = ses_thread_pool_new(threads, &e);
    for (int64_t i = 0; i < QUERIES; i++) fill_vector(q + i * info->dim, info->dim, 7 * i + 1);
    for (int isa = SES_ISA_REF; isa <= (int)ses_isa_best(); isa++) {
        CHECK(ses_vector_index_search(x, pool, (ses_isa)isa, q, QUERIES, k, hits, &e));
        for (int64_t i = 0; i < QUERIES; i++)
            for (int64_t h = 0; h < k; h++) {
                ses_index_hit a = hits[i * k + h];
                CHECK(a.index >= 0 && a.index < info->count);
                if (h == 0) CHECK(a.index == (7 * i + 1) % (info->count / 2) && a.score > 0.98f);
                if (h == 1) CHECK(a.index == (7 * i + 1) % (info->count / 2) + info->count / 2);
                if (h)
                    CHECK(hits[i * k + h - 1].score > a.score ||
                          (hits[i * k + h - 1].score == a.score && hits[i * k + h - 1].index < a.index));
            }
        /* no other text has a higher score: the ranking of all texts begins with these results */
        ses_index_hit *more = ses_alloc_array((size_t)(QUERIES * info->count), sizeof *more, &e);
        CHECK(ses_vector_index_search(x, pool, (ses_isa)isa, q, QUERIES, info->count, more, &e));
        for (int64_t i = 0; i < QUERIES; i++)
            for (int64_t h = 0; h < k; h++)
                CHECK(more[i * info->count + h].index == hits[i * k + h].index &&
                      more[i * info->count + h].score == hits[i * k + h].score);
        ses_free(more);
    }
    CHECK(!ses_vector_index_search(x, pool, SES_ISA_REF, q, 1, info->count + 1, hits, &e));
    ses_thread_pool_free(pool);
    ses_free(q);
    ses_free(hits);
}

static void test_round_trip(ses_dtype dtype, int64_t n, int64_t dim)
{
    ses_err e = { 0 };
    write_index(dtype, n, dim);
    ses_thread_pool *pool = ses_thread_pool_new(2, &e);
    ses_vector_index *x = ses_vector_index_open(file, &e);
    CHECK_MSG(x && ses_vector_index_verify(x, pool, &e), "%s", e.msg);
    if (!x) return;
    const ses_vector_index_info *info = ses_vector_index_info_of(x);
    CHECK(info->count == n && info->dim == dim && info->dtype == dtype);
    CHECK(!memcmp(&info->source, &source, sizeof source));
    CHECK_STR(info->model_name, "a-model");
    for (int64_t i = 0; i < n; i++) {
        char want[40] = "";
        if (i % 7 != 3) snprintf(want, sizeof want, "text %lld", (long long)i);
        ses_string s = ses_vector_index_text(x, i);
        CHECK(s.n == strlen(want) && !memcmp(s.p, want, s.n) && ses_vector_index_line(x, i) == 2 * i + 1);
    }
    for (int threads = 1; n > 20 && threads <= 3; threads++) check_search(x, threads, threads == 1 ? 1 : 10);
    ses_vector_index_free(x);
    ses_thread_pool_free(pool);
}

/* Every changed byte and every truncation is detected; a copy of a vector is exact. */
static void test_damage(ses_dtype dtype)
{
    ses_err e = { 0 };
    size_t n, accepted = 0;
    write_index(dtype, 6, 5);
    char *data = ses_file_read(file, 1 << 20, &n, &e);
    ses_thread_pool *pool = ses_thread_pool_new(1, &e);
    for (size_t i = 0; data && i < n; i++) {
        data[i] ^= 4;
        ses_err why = { 0 };
        ses_vector_index *x = ses_vector_index_from_memory(data, n, &why);
        bool ok = x && ses_vector_index_verify(x, pool, &why);
        accepted += ok;
        CHECK(ok || why.code == SES_EFORMAT || why.code == SES_EUNSUPPORTED);
        ses_vector_index_free(x);
        data[i] ^= 4;
    }
    CHECK_MSG(accepted == 0, "%zu changed bytes accepted", accepted);
    for (size_t i = 0; data && i < n; i++) {
        ses_err why = { 0 };
        CHECK(!ses_vector_index_from_memory(data, i, &why) && why.code == SES_EFORMAT);
    }
    ses_vector_index *x = ses_vector_index_from_memory(data, n, &e);
    ses_index_builder *b = ses_index_builder_new(file, dtype, 5, &e);
    CHECK(x && b && ses_index_builder_add(b, "a", 1, 1, &e));
    CHECK(ses_index_builder_copy(b, 0, x, 4, &e));
    CHECK(ses_index_builder_write(b, &source, "m", ses_vector_index_probe(x), true, &e));
    ses_vector_index *y = ses_vector_index_open(file, &e);
    CHECK(y &&
          !memcmp(ses_vector_index_vector(y, 0), ses_vector_index_vector(x, 4), dtype == SES_I8 ? 5 : 10));
    CHECK(y && (dtype != SES_I8 || ses_vector_index_scales(y)[0] == ses_vector_index_scales(x)[4]));
    ses_vector_index_free(x);
    ses_vector_index_free(y);
    ses_index_builder_free(b);
    ses_thread_pool_free(pool);
    ses_free(data);
}

/* Vectors of 64 MB, texts of 4 MB: neither stays in memory. */
static void test_memory(void)
{
    enum { N = 64 * 1024, DIM = 512, LIMIT_KB = 16 * 1024 };
    static const char text[64] = "a text of 64 bytes";
    static float v[DIM] = { 1 };
    ses_err e = { 0 };
    struct rusage before, after;
    ses_index_builder *b = ses_index_builder_new(file, SES_F16, DIM, &e);
    getrusage(RUSAGE_SELF, &before);
    for (int64_t i = 0; b && i < N; i++)
        CHECK(ses_index_builder_add(b, text, sizeof text, i + 1, &e) &&
              (i == 9 || ses_index_builder_set(b, i, v, &e)));
    CHECK_MSG(b && ses_index_builder_write(b, &source, "m", v, true, &e), "%s", e.msg);
    getrusage(RUSAGE_SELF, &after);
    CHECK_MSG(after.ru_maxrss - before.ru_maxrss < LIMIT_KB, "%ld KB", after.ru_maxrss - before.ru_maxrss);
    ses_index_builder_free(b);
    ses_vector_index *x = ses_vector_index_open(file, &e);
    CHECK(x && ses_vector_index_text(x, N - 1).n == sizeof text);
    CHECK(x && ((const uint16_t *)ses_vector_index_vector(x, 8))[0] == 0x3C00);
    CHECK(x && ((const uint16_t *)ses_vector_index_vector(x, 9))[0] == 0);
    ses_vector_index_free(x);
}

int main(void)
{
    static const ses_dtype dtypes[] = { SES_F16, SES_I8 };
    ses_err e = { 0 };
    memcpy(file, path, sizeof path);
    int fd = mkstemp(file);
    CHECK(fd >= 0);
    if (fd >= 0) close(fd);
    for (size_t i = 0; i < SES_LEN(dtypes); i++) {
        test_round_trip(dtypes[i], 0, 3);
        test_round_trip(dtypes[i], 1, 1);
        test_round_trip(dtypes[i], 1000, 45);
        test_round_trip(dtypes[i], 700, 384);
        test_damage(dtypes[i]);
    }
    test_memory();
    CHECK(!ses_index_builder_new(file, SES_F16, 0, &e) && e.code == SES_EARG);
    e = (ses_err){ 0 };
    CHECK(!ses_index_builder_new("/nonexistent/index", SES_F16, 3, &e) && e.code == SES_EIO);
    unlink(file);
    return check_report();
}
