/* src/base: errors, allocation, arena, thread pool, random numbers. */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/rng.h"
#include "base/thread_pool.h"
#include "check.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

static void test_err(void)
{
    ses_err e = { 0 };
    CHECK(!ses_wrap(&e, "nothing to wrap") && e.code == SES_OK && e.msg[0] == 0);
    CHECK(!ses_fail(&e, SES_EFORMAT, "offset %d past the end", 96));
    CHECK(e.code == SES_EFORMAT);
    CHECK(!ses_fail(&e, SES_EIO, "a later one"));
    CHECK(e.code == SES_EFORMAT);
    ses_wrap(&e, "tensor \"%s\"", "x");
    ses_wrap(&e, "model.safetensors");
    CHECK_STR(e.msg, "model.safetensors: tensor \"x\": offset 96 past the end");
    ses_err_clear(&e);
    CHECK(e.code == SES_OK && e.msg[0] == 0);
    CHECK(!ses_fail(NULL, SES_EIO, "no error struct") && !ses_wrap(NULL, "no location"));
    ses_err_clear(NULL);
}

/* A message that is too long is truncated at its end; the location and the terminator stay. */
static void test_err_cut(void)
{
    char text[2000];
    memset(text, 'm', sizeof text - 1);
    text[sizeof text - 1] = 0;
    ses_err e = { 0 };
    ses_fail(&e, SES_EFORMAT, "%s", text);
    CHECK(strlen(e.msg) == sizeof e.msg - 1);
    ses_wrap(&e, "file");
    CHECK(strlen(e.msg) == sizeof e.msg - 1 && !strncmp(e.msg, "file: mmm", 9));
    for (int i = 0; i < 20; i++) ses_wrap(&e, "%s", text); /* a location that is itself too long */
    CHECK(strlen(e.msg) == sizeof e.msg - 1 && strstr(e.msg, ": mm"));
    CHECK(e.code == SES_EFORMAT);
}

static bool all_zero(const void *p, size_t n)
{
    const unsigned char *b = p;
    for (size_t i = 0; i < n; i++)
        if (b[i]) return false;
    return true;
}

static void test_alloc(void)
{
    ses_err e = { 0 };
    unsigned char *p = ses_alloc(1000, &e);
    CHECK(p && all_zero(p, 1000));
    ses_free(p);
    void *a = ses_alloc(0, &e), *b = ses_alloc_aligned(0, &e);
    CHECK(a && b && a != b && e.code == SES_OK);
    ses_free(a);
    ses_free(b);
    ses_free(NULL);
    for (size_t n = 1; n < 300; n += 37) {
        p = ses_alloc_aligned(n, &e);
        CHECK(p && (uintptr_t)p % SES_ALIGN == 0);
        memset(p, 1, n);
        ses_free(p);
    }
    int *v = ses_realloc_array(NULL, 3, sizeof *v, &e);
    for (int i = 0; i < 3; i++) v[i] = i;
    v = ses_realloc_array(v, 3000, sizeof *v, &e);
    CHECK(v && v[0] == 0 && v[2] == 2);
    ses_free(v);
    char *s = ses_strdup("sesame", &e), *t = ses_strndup("sesame", 3, &e);
    CHECK_STR(s, "sesame");
    CHECK_STR(t, "ses");
    ses_free(s);
    ses_free(t);
}

static void test_alloc_overflow(void)
{
    size_t z;
    int64_t i;
    CHECK(ses_mul_size(6, 7, &z) && z == 42 && ses_mul_size(0, SIZE_MAX, &z) && z == 0);
    CHECK(!ses_mul_size(SIZE_MAX / 2 + 1, 2, &z) && !ses_mul_size(SIZE_MAX, SIZE_MAX, &z));
    CHECK(ses_add_size(SIZE_MAX - 1, 1, &z) && z == SIZE_MAX && !ses_add_size(SIZE_MAX, 1, &z));
    CHECK(ses_mul_i64(-3, 4, &i) && i == -12 && !ses_mul_i64(INT64_MAX, 2, &i) &&
          !ses_mul_i64(INT64_MIN, -1, &i));

    ses_err e = { 0 };
    CHECK(!ses_alloc_array(SIZE_MAX / 2, 4, &e) && e.code == SES_ENOMEM);
    ses_err_clear(&e);
    CHECK(!ses_alloc_aligned(SIZE_MAX - 8, &e) && e.code == SES_ENOMEM && strstr(e.msg, "out of memory"));
    ses_err_clear(&e);
    CHECK(!ses_strndup("x", SIZE_MAX, &e) && e.code == SES_ENOMEM);
    ses_err_clear(&e);
    char *p = ses_alloc(8, &e);
    memcpy(p, "before", 7);
    CHECK(!ses_realloc_array(p, SIZE_MAX / 2, 4, &e) && e.code == SES_ENOMEM);
    CHECK_STR(p, "before");
    CHECK(!ses_alloc_array(SIZE_MAX, 2, NULL));
    ses_free(p);
}

static void test_arena(void)
{
    ses_err e = { 0 };
    ses_arena a = { .min_block = 1024 };
    char *s = ses_arena_strndup(&a, "word piece", 4, &e);
    CHECK_STR(s, "word");
    for (size_t n = 1; n < 5000; n = n * 3 + 1) { /* across block boundaries and above min_block */
        unsigned char *p = ses_arena_alloc(&a, n, &e), *q = ses_arena_array(&a, n, 3, &e);
        CHECK(p && (uintptr_t)p % SES_ALIGN == 0);
        CHECK(q && (uintptr_t)q % 16 == 0 && all_zero(q, 3 * n));
        memset(p, 0xee, n);
        memset(q, 0xee, 3 * n);
    }
    CHECK_STR(s, "word");
    CHECK(ses_arena_alloc(&a, 0, &e) != ses_arena_alloc(&a, 0, &e));
    CHECK(!ses_arena_array(&a, SIZE_MAX / 2, 4, &e) && e.code == SES_ENOMEM);
    ses_err_clear(&e);
    CHECK(!ses_arena_alloc(&a, SIZE_MAX - 3, &e) && e.code == SES_ENOMEM);
    ses_err_clear(&e);
    CHECK(!ses_arena_strndup(&a, "x", SIZE_MAX, &e) && e.code == SES_ENOMEM);
    ses_arena_free(&a);
    CHECK(!a.head && !a.free_blocks && !a.total);
    ses_arena_free(&a);
    ses_err_clear(&e);
    CHECK(ses_arena_array(&a, 1, 1, &e)); /* usable again */
    ses_arena_free(&a);
}

static void test_arena_rewind(void)
{
    ses_err e = { 0 };
    ses_arena a = { .min_block = 256 };
    ses_mark empty = ses_arena_mark(&a);
    int *keep = ses_arena_array(&a, 1, sizeof *keep, &e);
    *keep = 42;
    ses_mark m = ses_arena_mark(&a);
    void *first = ses_arena_alloc(&a, 64, &e);
    ses_arena_rewind(&a, m);
    CHECK(ses_arena_alloc(&a, 64, &e) == first);

    ses_arena_rewind(&a, m);
    for (int i = 0; i < 10; i++) memset(ses_arena_alloc(&a, 200, &e), i, 200);
    size_t total = a.total;
    for (int round = 0; round < 5; round++) { /* the released blocks are reused */
        ses_arena_rewind(&a, m);
        CHECK(a.free_blocks && *keep == 42);
        for (int i = 0; i < 10; i++) memset(ses_arena_alloc(&a, 200, &e), round, 200);
        CHECK(a.total == total && !a.free_blocks);
    }
    ses_arena_rewind(&a, empty);
    CHECK(!a.head && a.used == 0);
    CHECK(ses_arena_alloc(&a, 200, &e) && a.total == total);
    ses_arena_free(&a);
}

/* A pinned range is not allocated again before the next rewind. */
static void test_arena_rewind_but(void)
{
    ses_err e = { 0 };
    ses_arena a = { .min_block = 4096 };
    char *first = ses_arena_alloc(&a, 64, &e);
    ses_mark m = ses_arena_mark(&a);
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < 3; i++) memset(ses_arena_alloc(&a, 192, &e), 1, 192);
        char *x = ses_arena_alloc(&a, 320, &e);
        memset(x, 77, 320);
        if (!CHECK(ses_arena_rewind_except(&a, m, x, 320))) break;
        for (int i = 0; i < 8; i++) memset(ses_arena_alloc(&a, 100, &e), 2, 100);
        for (int i = 0; i < 320; i++) CHECK(x[i] == 77);
        CHECK(ses_arena_rewind_except(&a, m, x, 320) && a.head && a.total == 4096);
    }
    CHECK(!ses_arena_rewind_except(&a, m, first, 64)); /* before the mark */
    CHECK(!ses_arena_rewind_except(&a, m, &e, 8));
    ses_mark late = ses_arena_mark(&a);
    ses_arena_alloc(&a, 5000, &e);
    CHECK(!ses_arena_rewind_except(&a, late, first + 64, 8)); /* now in another block */
    ses_arena_rewind(&a, m);
    CHECK(!a.pinned);
    ses_arena_alloc(&a, 192, &e);
    char *x = ses_arena_alloc(&a, 320, &e);
    memset(x, 78, 320);
    CHECK(ses_arena_rewind_except(&a, m, x, 320));
    late = ses_arena_mark(&a); /* x was allocated before it: a rewind to it keeps x */
    for (int round = 0; round < 3; round++) {
        memset(ses_arena_alloc(&a, 700, &e), 3, 700);
        ses_arena_rewind(&a, late);
    }
    for (int i = 0; i < 320; i++) CHECK(x[i] == 78);
    ses_arena_free(&a);
}

static void test_arena_reset(void)
{
    ses_err e = { 0 };
    ses_arena a = { .min_block = 256 };
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 20; i++) memset(ses_arena_alloc(&a, 100, &e), round, 100);
        if (round) CHECK(a.head && a.head != NULL && !a.free_blocks);
        ses_arena_reset(&a);
    }
    void *p = ses_arena_alloc(&a, 100, &e);
    size_t total = a.total;
    for (int round = 0; round < 4; round++) { /* now one block, kept */
        for (int i = 0; i < 19; i++) ses_arena_alloc(&a, 100, &e);
        CHECK(a.total == total);
        ses_arena_reset(&a);
        CHECK(ses_arena_alloc(&a, 100, &e) == p);
    }
    for (int round = 0; round < 4;
         round++) { /* a little more adds a small block instead of doubling; then one block */
        ses_arena_reset(&a);
        for (int i = 0; i < 20 + round; i++) ses_arena_alloc(&a, 100, &e);
        CHECK(a.total < total + 1000);
    }
    ses_arena_free(&a);
}

static void test_arena_limit(void)
{
    ses_err e = { 0 };
    ses_arena a = { .min_block = 1024, .limit = 3000 };
    ses_mark empty = ses_arena_mark(&a);
    CHECK(ses_arena_alloc(&a, 1000, &e) && ses_arena_alloc(&a, 1000, &e) && ses_arena_alloc(&a, 900, &e));
    CHECK(a.total <= a.limit);
    CHECK(!ses_arena_alloc(&a, 1000, &e) && e.code == SES_ENOMEM && strstr(e.msg, "limit"));
    CHECK(a.total <= a.limit);
    ses_err_clear(&e);
    ses_arena_rewind(&a, empty);
    CHECK(ses_arena_alloc(&a, 2900, &e)); /* no free block is large enough: they are released */
    CHECK(a.total <= a.limit && e.code == SES_OK);
    ses_arena_reset(&a);
    CHECK(!ses_arena_alloc(&a, 3001, &e) && e.code == SES_ENOMEM);
    ses_err_clear(&e);
    CHECK(ses_arena_alloc(&a, 2000, &e));
    ses_arena_free(&a);
}

enum { MAX_CHUNKS = 1000 };

typedef struct count {
    atomic_int seen[MAX_CHUNKS];
    atomic_int bad_scratch;
} count;

static void count_chunk(void *ctx, int64_t i, void *scratch)
{
    count *c = ctx;
    atomic_fetch_add(&c->seen[i], 1);
    if (!scratch || (uintptr_t)scratch % SES_ALIGN) atomic_fetch_add(&c->bad_scratch, 1);
    int *mine = scratch; /* two chunks on one scratch buffer would be a race, which TSan reports */
    mine[0] = (int)i;
    mine[SES_SCRATCH_BYTES / sizeof *mine - 1] = (int)i;
    if (mine[0] != (int)i) atomic_fetch_add(&c->bad_scratch, 1);
}

static bool each_once(ses_thread_pool *p, int64_t chunks)
{
    count c = { 0 };
    ses_parallel_for(p, chunks, count_chunk, &c);
    bool ok = !c.bad_scratch;
    for (int i = 0; i < MAX_CHUNKS; i++) ok &= c.seen[i] == (i < chunks);
    return ok;
}

static void test_pool(void)
{
    ses_err e = { 0 };
    CHECK(!ses_thread_pool_new(0, &e) && e.code == SES_EARG);
    ses_err_clear(&e);
    CHECK(!ses_thread_pool_new(1025, &e) && e.code == SES_EARG);
    ses_err_clear(&e);
    ses_thread_pool_free(NULL);
    CHECK(ses_cpu_count() >= 1);
    for (int threads = 1; threads <= 20; threads += threads < 8 ? 1 : 12) { /* 20: more than parts */
        ses_thread_pool *p = ses_thread_pool_new(threads, &e);
        CHECK(p && ses_thread_pool_size(p) == threads);
        static const int64_t sizes[] = { 0, 1, 2, 3, 7, 64, MAX_CHUNKS };
        for (size_t i = 0; i < SES_LEN(sizes); i++) CHECK(each_once(p, sizes[i]));
        bool ok = true;
        for (int job = 0; job < 200; job++) ok &= each_once(p, job % 20);
        CHECK(ok);
        ses_thread_pool_free(p);
    }
    for (int i = 0; i < 20; i++)
        ses_thread_pool_free(ses_thread_pool_new(4, &e)); /* freed before a worker has run */
}

typedef struct tally {
    int64_t part[64];
} tally;

static void sum_chunk(void *ctx, int64_t i, void *scratch)
{
    (void)scratch;
    ((tally *)ctx)->part[i]++;
}

typedef struct caller {
    ses_thread_pool *pool;
    bool ok;
} caller;

static void *many_jobs(void *arg)
{
    caller *c = arg;
    tally s = { 0 };
    int jobs = 300;
    for (int i = 0; i < jobs; i++) ses_parallel_for(c->pool, SES_LEN(s.part), sum_chunk, &s);
    c->ok = true;
    for (size_t i = 0; i < SES_LEN(s.part); i++) c->ok &= s.part[i] == jobs;
    return NULL;
}

/* Two threads share a pool: their jobs alternate. Plain counters, so that TSan detects any overlap. */
static void test_pool_callers(void)
{
    ses_err e = { 0 };
    for (int threads = 1; threads <= 4; threads++) {
        ses_thread_pool *p = ses_thread_pool_new(threads, &e);
        caller c[2] = { { p, false }, { p, false } };
        pthread_t other;
        CHECK(!pthread_create(&other, NULL, many_jobs, &c[0]));
        many_jobs(&c[1]);
        pthread_join(other, NULL);
        CHECK(c[0].ok && c[1].ok);
        ses_thread_pool_free(p);
    }
}

/* Known answers of the Random123 distribution for philox4x32-10. */
static void test_philox(void)
{
    static const struct {
        ses_rng_key key;
        uint64_t index;
        uint32_t want[4];
    } kat[] = {
        { { 0, 0, 0 }, 0, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { UINT64_MAX, UINT32_MAX, UINT32_MAX },
          UINT64_MAX,
          { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { 0x299f31d0a4093822, 0x13198a2e, 0x03707344 },
          0x85a308d3243f6a88,
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    for (size_t i = 0; i < SES_LEN(kat); i++) {
        uint32_t got[4];
        ses_philox(got, kat[i].key, kat[i].index);
        CHECK(!memcmp(got, kat[i].want, sizeof got));
    }
    ses_rng_key key = { 1, 2, 3 };
    for (uint64_t i = 0; i < 8; i++) {
        uint32_t block[4];
        ses_philox(block, key, i / 4);
        CHECK(ses_rand32(key, i) == block[i % 4]);
    }
}

/* Eight 16-bit draws per block of seven rounds; each of 32 keys has its own draw. */
static void test_drop_draws(void)
{
    ses_rng_key key = { 1, 2, 3 };
    uint64_t seen = 0;
    for (uint64_t i = 0; i < 24; i++) {
        uint32_t block[4];
        ses_philox_rounds(block, key, i / 8, 7);
        CHECK(ses_dropout_draw(key, i) == (block[i % 8 / 2] >> i % 2 * 16 & 0xffff));
    }
    for (uint64_t j = 0; j < 64; j++) seen |= UINT64_C(1) << ses_dropout_swizzle(j);
    CHECK(seen == UINT64_MAX && ses_dropout_swizzle(8 * 3 + 2 * 1 + 1) == 8 * 1 + 2 * 3 + 1);
    CHECK(ses_dropout_swizzle(32 + 5) == 32 + ses_dropout_swizzle(5));
    CHECK(ses_dropout_row_stride(1) == 32 && ses_dropout_row_stride(32) == 32 &&
          ses_dropout_row_stride(33) == 64);
}

static void test_rng(void)
{
    enum { N = 200000, BINS = 16 };
    ses_rng_key key = { 12345, 6, 7 };
    int bin[BINS] = { 0 }, kept = 0;
    double sum = 0, normal = 0, square = 0, product = 0, last = 0;
    bool in_range = true;
    uint32_t threshold = ses_dropout_threshold(0.1);
    for (uint64_t i = 0; i < N; i++) {
        float u = ses_rand_unit(key, i);
        in_range &= u >= 0 && u < 1;
        bin[(int)(u * BINS)]++;
        sum += u;
        kept += ses_dropout_draw(key, i) >= threshold;
        double z = ses_rand_normal(key, i);
        normal += z, square += z * z, product += z * last;
        last = z;
    }
    CHECK(in_range);
    CHECK(fabs(sum / N - 0.5) < 0.003);
    for (int i = 0; i < BINS; i++) CHECK(abs(bin[i] - N / BINS) < 5 * 110); /* 5 standard deviations */
    CHECK(fabs(kept / (double)N - 0.9) < 0.004);
    CHECK(fabs(normal / N) < 0.012 && fabs(square / N - 1) < 0.016 && fabs(product / N) < 0.012);
    CHECK(ses_dropout_threshold(0) == 0 && ses_dropout_threshold(-1) == 0 &&
          ses_dropout_threshold(0.5) == 0x8000);
    CHECK(ses_dropout_threshold(1) == 65536 && ses_dropout_threshold(2) == 65536);
    CHECK(ses_rand32(key, 5) != ses_rand32((ses_rng_key){ 12345, 6, 8 }, 5));
    CHECK(ses_rand32(key, 5) != ses_rand32((ses_rng_key){ 12345, 7, 7 }, 5));
    CHECK(ses_rand32(key, 5) != ses_rand32((ses_rng_key){ 12346, 6, 7 }, 5));
}

int main(void)
{
    test_err();
    test_err_cut();
    test_alloc();
    test_alloc_overflow();
    test_arena();
    test_arena_rewind();
    test_arena_rewind_but();
    test_arena_reset();
    test_arena_limit();
    test_pool();
    test_pool_callers();
    test_philox();
    test_drop_draws();
    test_rng();
    return check_report();
}
