/* Muon on a GPU, f32 and bf16: steps of many matrices, compared with the CPU; a second run gives the same
 * bits. Skipped without a GPU. */
#include "base/alloc.h"
#include "check.h"
#include "nn/store_impl.h"
#include "op/op.h"
#include "sesame/unstable/optim.h"
#include "tensor/device_impl.h"

#include <math.h>

enum { LAYERS = 33, STEPS = 4 };

/* Parameters of each layer; the strides of the odd one are not multiples of 16 bytes. */
static const struct {
    const char *name;
    int64_t rows, cols, parts;
    ses_weight_layout layout;
} list[] = { { "attn.qkv.weight", 3 * 64, 64, 3, SES_OUT_IN }, { "attn.out.weight", 64, 64, 1, SES_OUT_IN },
             { "ffn.up.weight", 2 * 144, 64, 2, SES_OUT_IN },  { "ffn.down.weight", 64, 144, 1, SES_OUT_IN },
             { "odd.weight", 35, 21, 3, SES_IN_OUT },          { "norm", 64, 0, 1, SES_OUT_IN } };

static ses_store *store_new(ses_device *d)
{
    ses_err e = { 0 };
    ses_store *s = ses_store_new(d, &e);
    for (int l = 0; l < LAYERS; l++)
        for (size_t i = 0; i < SES_LEN(list); i++) {
            char name[64];
            snprintf(name, sizeof name, "layer.%d.%s", l, list[i].name);
            ses_tensor *t = ses_store_add(s, name, SES_DIM(list[i].rows, list[i].cols), SES_INIT_NORMAL);
            if (!list[i].cols) continue;
            ses_store_set_dense(s, t, list[i].layout);
            ses_store_set_parts(s, t, list[i].parts);
        }
    CHECK_MSG(ses_store_ok(s, &e) && ses_store_alloc_trainable(s, &e), "%s", e.msg);
    ses_store_init(s, 0.02, 7);
    ses_store_sync_bf16(s);
    return s;
}

/* Gradients of step t: random numbers by the key. */
static void set_grads(ses_store *s, int t)
{
    ses_flat flat = ses_store_flat(s);
    ses_device *d = ses_store_device(s);
    float *g = ses_alloc_array((size_t)flat.n, sizeof *g, NULL);
    ses_rng_key key = { .seed = 5, .site = (uint32_t)t };
    for (int64_t i = 0; i < flat.n; i++) g[i] = ses_rand_unit(key, (uint64_t)i) - 0.5f;
    d->mem->upload(d, flat.grad, g, (size_t)flat.n * sizeof *g);
    ses_free(g);
}

/* The flat weights after some steps; 0 steps: before them. *n: their number. */
static float *train(ses_device *d, bool original, int steps, int64_t *n)
{
    ses_err e = { 0 };
    ses_optim_options o;
    CHECK(ses_optim_defaults("muon", &o, &e));
    o.lr = 0.01, o.group[0].weight_decay = 0.1, o.muon_original = original;
    ses_store *s = store_new(d);
    ses_optim *opt = ses_optim_new(s, &o, &e);
    CHECK_MSG(opt, "%s", e.msg);
    for (int t = 1; opt && t <= steps; t++) set_grads(s, t), ses_optim_step(opt, -1, 0.5);
    ses_flat flat = ses_store_flat(s);
    float *w = ses_alloc_array((size_t)flat.n, sizeof *w, NULL);
    d->mem->download(d, w, flat.value, (size_t)flat.n * sizeof *w);
    CHECK_MSG(!d->mem->ok || d->mem->ok(d, &e), "%s", e.msg);
    if (flat.copy) { /* the bf16 copies are rounded weights */
        uint16_t *copy = ses_alloc_array((size_t)flat.n, sizeof *copy, NULL);
        float *as_float = ses_alloc_array((size_t)flat.n, sizeof *as_float, NULL);
        int64_t off = 0;
        d->mem->download(d, copy, flat.copy, (size_t)flat.n * sizeof *copy);
        ses_convert(as_float, SES_F32, copy, SES_BF16, (size_t)flat.n, NULL);
        for (int64_t i = 0; i < flat.n; i++)
            off += fabs((double)(as_float[i] - w[i])) > fabs((double)w[i]) / 200;
        CHECK_MSG(!off, "%d bf16 copies differ from their weights", (int)off);
        ses_free(copy), ses_free(as_float);
    }
    *n = flat.n;
    ses_optim_free(opt);
    ses_store_free(s);
    return w;
}

static void compare(ses_device *cpu, ses_device *gpu, double limit)
{
    for (int original = 0; original < 2; original++) {
        int64_t n;
        float *start = train(cpu, original, 0, &n), *want = train(cpu, original, STEPS, &n),
              *got = train(gpu, original, STEPS, &n), *again = train(gpu, original, STEPS, &n);
        double difference = 0, moved = 0;
        for (int64_t i = 0; i < n; i++) {
            difference += pow((double)got[i] - (double)want[i], 2);
            moved += pow((double)want[i] - (double)start[i], 2);
        }
        CHECK_MSG(moved > 0 && difference <= limit * limit * moved, "differs by %g of the way",
                  sqrt(difference / moved));
        CHECK_MSG(!memcmp(got, again, (size_t)n * sizeof *got), "other bits");
        ses_free(start), ses_free(want), ses_free(got), ses_free(again);
    }
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *gpu = ses_device_open("cuda", NULL, &e), *cpu = ses_device_open("cpu", NULL, NULL),
               *gpu16 = ses_device_open("cuda", &(ses_device_options){ .dtype = SES_BF16 }, NULL);
    CHECK(cpu);
    if (!gpu) SKIP(e.msg);
    if (gpu) compare(cpu, gpu, 1e-4);
    if (gpu16) compare(cpu, gpu16, 0.03);
    if (!gpu) compare(cpu, cpu, 0); /* the comparison itself */
    ses_device_free(gpu16);
    ses_device_free(gpu);
    ses_device_free(cpu);
    return check_report();
}
