/* Failing allocations for tests named test_X_oom.c: the build redirects their malloc, calloc, realloc,
 * aligned_alloc and free to this file. The sweep runs a scenario with allocation N failing, N = 1, 2, ...
 * until it succeeds, once with only that one failing and once with all from there on. Each run must fail with
 * SES_ENOMEM and leave nothing allocated. */
#ifndef TESTS_OOM_H
#define TESTS_OOM_H

#include "check.h"
#include "sesame/base.h"

#include <malloc.h>
#include <stdatomic.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);
void __wrap_free(void *p);

static struct {
    atomic_long calls;     /* calls so far, of all threads */
    atomic_long fail_from; /* first call to fail; 0: none */
    atomic_long fail_to;   /* last call to fail */
    atomic_long failed;
    atomic_long live;          /* allocated blocks */
    atomic_size_t bytes, peak; /* bytes in allocated blocks, and their approximate maximum */
} oom;

static bool oom_hit(void)
{
    long call = ++oom.calls;
    bool hit = oom.fail_from && call >= oom.fail_from && call <= oom.fail_to;
    oom.failed += hit;
    return hit;
}

static void *oom_count(void *p)
{
    if (!p) return p;
    oom.live++;
    oom.bytes += malloc_usable_size(p);
    if (oom.bytes > oom.peak) oom.peak = oom.bytes;
    return p;
}

static void oom_forget(void *p)
{
    if (!p) return;
    oom.live--;
    oom.bytes -= malloc_usable_size(p);
}

void *__wrap_malloc(size_t n) { return oom_hit() ? NULL : oom_count(__real_malloc(n)); }
void *__wrap_calloc(size_t n, size_t size) { return oom_hit() ? NULL : oom_count(__real_calloc(n, size)); }
void *__wrap_aligned_alloc(size_t align, size_t n)
{
    return oom_hit() ? NULL : oom_count(__real_aligned_alloc(align, n));
}

void *__wrap_realloc(void *p, size_t n)
{
    if (oom_hit()) return NULL;
    oom_forget(p);
    void *q = __real_realloc(p, n);
    return oom_count(q);
}

void __wrap_free(void *p)
{
    oom_forget(p);
    __real_free(p);
}

/* run: the scenario; false with a reason if it failed; frees everything in both cases. */
static inline void oom_sweep(const char *name, bool (*run)(void *ctx, ses_err *e), void *ctx)
{
    for (int persistent = 0; persistent < 2; persistent++) {
        bool ok = false, clean = true;
        long n = 0;
        while (!ok && clean && n < 100000) {
            ses_err e = { 0 };
            long live = oom.live;
            n++;
            oom.calls = oom.failed = 0;
            oom.fail_from = n;
            oom.fail_to = persistent ? 1L << 62 : n;
            ok = run(ctx, &e);
            oom.fail_from = 0;
            clean = CHECK_MSG(oom.live == live, "%s, allocation %ld: %ld blocks left", name, n,
                              oom.live - live) &&
                    (ok ? CHECK_MSG(!oom.failed, "%s: succeeds though allocation %ld fails", name, n)
                        : CHECK_MSG(e.code == SES_ENOMEM, "%s, allocation %ld: \"%s\"", name, n, e.msg));
        }
        CHECK_MSG(ok, "%s never succeeds", name);
    }
}

#endif
