/* Arrays on the CPU and on a GPU, for tests that compare CUDA kernels with ref. */
#ifndef TESTS_CUDA_FIXTURE_H
#define TESTS_CUDA_FIXTURE_H

#include "base/alloc.h"
#include "check.h"
#include "tensor/device_impl.h"

#include <math.h>

static ses_device *cpu, *gpu, *gpu16; /* gpu16: bf16 */
static uint64_t drawn;

/* An array on both devices. */
typedef struct mirrored {
    int64_t n;
    float *host, *gpu;
    bool is_bf16; /* bf16 on the GPU; the host array holds bf16 values, too */
} mirrored;

static inline mirrored floats(int64_t n, double scale)
{
    mirrored b = { n, ses_alloc((size_t)n * sizeof(float), NULL), gpu->mem->alloc(gpu, (size_t)n * 4, NULL) };
    for (int64_t i = 0; i < n; i++)
        b.host[i] = (float)(scale * ses_rand_normal((ses_rng_key){ .seed = 5 }, drawn++));
    gpu->mem->upload(gpu, b.gpu, b.host, (size_t)n * 4);
    return b;
}

static inline mirrored halves(int64_t n, double scale)
{
    mirrored b = floats(n, scale);
    uint16_t *x = ses_alloc((size_t)n * sizeof *x, NULL);
    ses_convert(x, SES_BF16, b.host, SES_F32, (size_t)n, NULL);
    ses_convert(b.host, SES_F32, x, SES_BF16, (size_t)n, NULL);
    gpu->mem->upload(gpu, b.gpu, x, (size_t)n * sizeof *x);
    ses_free(x);
    b.is_bf16 = true;
    return b;
}

static inline mirrored ints(int64_t n, const int32_t *x)
{
    mirrored b = floats(n, 1);
    memcpy(b.host, x, (size_t)n * 4);
    gpu->mem->upload(gpu, b.gpu, x, (size_t)n * 4);
    return b;
}

static inline const int32_t *host_ids(mirrored b) { return (const int32_t *)(const void *)b.host; }
static inline const int32_t *gpu_ids(mirrored b) { return (const int32_t *)(const void *)b.gpu; }

static inline void drop(mirrored b)
{
    ses_free(b.host);
    gpu->mem->free(gpu, b.gpu);
}

/* The two sides agree to tol times the largest number. */
static inline void check_close(const char *what, mirrored b, double tol)
{
    float *x = ses_alloc((size_t)b.n * sizeof *x, NULL);
    double worst = 0, most = 0;
    ses_tensor t = { .f = b.gpu, .dtype = b.is_bf16 ? SES_BF16 : SES_F32 };
    CHECK(ses_device_read(gpu, &t, 0, b.n, x, NULL));
    if (b.is_bf16) tol = fmax(tol, 2e-2);
    for (int64_t i = 0; i < b.n; i++) {
        double d = fabs((double)x[i] - (double)b.host[i]);
        if (!(d <= worst)) worst = d;
        most = fmax(most, fabs((double)b.host[i]));
    }
    CHECK_MSG(worst <= tol * most, "%s: differs by %g, largest %g", what, worst, most);
    ses_free(x);
}

/* Waits until all queued work is done, and checks that it succeeded: devices do not wait for each other. */
static inline void wait_for(ses_device *d)
{
    float one;
    ses_err e = { 0 };
    float *x = d->mem->alloc(d, sizeof one, NULL);
    d->mem->download(d, &one, x, sizeof one);
    CHECK_MSG(d->mem->ok(d, &e), "%s", e.msg);
    d->mem->free(d, x);
}

/* Opens the devices; false without a GPU, for the reason in e. */
static inline bool open_devices(ses_err *e)
{
    gpu = ses_device_open("cuda", NULL, e);
    gpu16 =
        ses_device_open("cuda", &(ses_device_options){ .dtype = SES_BF16, .autotune_eagerly = true }, NULL);
    cpu = ses_device_open("cpu", NULL, NULL);
    CHECK(cpu);
    return gpu != NULL;
}

static inline void close_devices(void)
{
    ses_err e = { 0 };
    if (gpu) CHECK_MSG(gpu->mem->ok(gpu, &e), "%s", e.msg);
    ses_device_free(gpu16);
    ses_device_free(gpu);
    ses_device_free(cpu);
}

#endif
