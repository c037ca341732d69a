/* The tiles of tile.h: the plain C ones against loops in double, and the AMX instructions against the plain C
 * ones, bit by bit, where the processor has them. */
#include "check.h"

#include "kernel/kernel.h"
#include "kernel/simd/vec/tile.h"
#include "kernel/simd/vec/tile_plain.h"

#include <math.h>

typedef struct operands {
    uint8_t a[32][64], b[2][16][64];
    int32_t c[32][32];
} operands;

static uint32_t bits_at(uint64_t seed, uint64_t i)
{
    return (uint32_t)(ses_rand_unit((ses_rng_key){ seed, 0, 0 }, i) * 16777216.0f);
}

static void fill_bytes(operands *o)
{
    uint8_t *a = o->a[0], *b = o->b[0][0];
    for (uint64_t i = 0; i < sizeof o->a; i++) a[i] = (uint8_t)bits_at(1, i);
    for (uint64_t i = 0; i < sizeof o->b; i++) b[i] = (uint8_t)bits_at(2, i);
    for (uint64_t i = 0; i < 1024; i++) o->c[i / 32][i % 32] = (int32_t)bits_at(3, i) - (1 << 23);
}

/* bf16 numbers with exponents low .. low + spread - 1. */
static void fill_bf16(uint8_t *to, size_t count, uint64_t seed, uint32_t low, uint32_t spread)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t r = bits_at(seed, i), exponent = low + r % spread;
        uint16_t x = (uint16_t)((r >> 8 & 0x807f) | exponent << 7);
        memcpy(to + 2 * i, &x, sizeof x);
    }
}

static void fill_halves(operands *o, uint32_t low, uint32_t spread)
{
    fill_bf16(o->a[0], sizeof o->a / 2, 4, low, spread);
    fill_bf16(o->b[0][0], sizeof o->b / 2, 5, low, spread);
    for (uint64_t i = 0; i < 1024; i++) {
        float x = low > 100 ? ses_rand_unit((ses_rng_key){ 6, 0, 0 }, i) - 0.5f : 1e-38f;
        memcpy(&o->c[i / 32][i % 32], &x, sizeof x);
    }
}

#define BLOCK_DOT(name, set, prefix, dot)             \
    static void name(operands *o, int rows)           \
    {                                                 \
        set t;                                        \
        mt_shapes s = mt_block_shapes(rows);          \
        prefix##configure(&t, &s);                    \
        prefix##load(&t, 0, o->c[0], 128);            \
        prefix##load(&t, 1, o->c[0] + 16, 128);       \
        prefix##load(&t, 4, o->a[0], 64);             \
        prefix##load(&t, 6, o->b[0], 64);             \
        prefix##load(&t, 7, o->b[1], 64);             \
        prefix##dot(&t, 0, 4, 6);                     \
        prefix##dot(&t, 1, 4, 7);                     \
        prefix##store(&t, 0, o->c[0], 128);           \
        prefix##store(&t, 1, o->c[0] + 16, 128);      \
        if (rows > 16) {                              \
            prefix##load(&t, 5, o->a[16], 64);        \
            prefix##zero(&t, 2);                      \
            prefix##zero(&t, 3);                      \
            prefix##dot(&t, 2, 5, 6);                 \
            prefix##dot(&t, 3, 5, 7);                 \
            prefix##store(&t, 2, o->c[16], 128);      \
            prefix##store(&t, 3, o->c[16] + 16, 128); \
        }                                             \
        prefix##release(&t);                          \
    }
BLOCK_DOT(plain_bytes, mt_plain_set, mt_plain_, dot_i8)
BLOCK_DOT(plain_bf16, mt_plain_set, mt_plain_, dot_bf16)
BLOCK_DOT(amx_bytes, mt_set, mt_, dot_i8)
BLOCK_DOT(amx_bf16, mt_set, mt_, dot_bf16)

static void test_bytes(int rows)
{
    static operands in, out;
    fill_bytes(&in), out = in;
    plain_bytes(&out, rows);
    int wrong = 0;
    for (int i = 0; i < 32; i++)
        for (int j = 0; j < 32; j++) {
            int32_t want = i < 16 || i >= rows ? in.c[i][j] : 0;
            for (int k = 0; i < rows && k < 64; k++)
                want += in.a[i][k] * (int8_t)in.b[j / 16][k / 4][4 * (j % 16) + k % 4];
            wrong += out.c[i][j] != want;
        }
    CHECK_MSG(wrong == 0, "%d rows", rows);
    if (ses_isa_best() < SES_ISA_AMX) return;
    static operands got;
    got = in;
    amx_bytes(&got, rows);
    CHECK_MSG(!memcmp(&got, &out, sizeof got), "%d rows", rows);
}

static void test_bf16(int rows, uint32_t low, uint32_t spread)
{
    static operands in, out;
    fill_halves(&in, low, spread), out = in;
    plain_bf16(&out, rows);
    double worst = 0;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < 32; j++) {
            float old, got;
            memcpy(&old, &in.c[i][j], sizeof old), memcpy(&got, &out.c[i][j], sizeof got);
            double want = i < 16 ? old : 0, size = fabs(want);
            for (int k = 0; k < 32; k++) {
                double x = mt_plain_bf16(in.a[i] + 2 * k),
                       y = mt_plain_bf16(in.b[j / 16][k / 2] + 4 * (j % 16) + 2 * (k % 2));
                want += x * y, size += fabs(x * y);
            }
            worst = fmax(worst, fabs(got - want) / (size + FLT_MIN));
        }
    if (low > 100) CHECK_MSG(worst < 2e-6, "%d rows: %g", rows, worst);
    if (ses_isa_best() < SES_ISA_AMX) return;
    static operands got;
    got = in;
    amx_bf16(&got, rows);
    CHECK_MSG(!memcmp(&got, &out, sizeof got), "%d rows, exponents from %d", rows, (int)low);
}

/* Denormal operands and results are 0. */
static void test_denormals(void)
{
    static operands o;
    uint16_t tiny = 0x0001, one = 0x3f80, small = 0x2000; /* denormal, 1, 2^-63 */
    memset(&o, 0, sizeof o);
    memcpy(o.a[0], &tiny, 2), memcpy(o.b[0][0], &one, 2);
    memcpy(o.a[1], &one, 2), memcpy(o.b[0][0] + 4, &tiny, 2);
    memcpy(o.a[2] + 2, &small, 2), memcpy(o.b[0][0] + 2, &small, 2);
    o.c[3][0] = 1; /* a denormal sum */
    o.a[2][3] = 0x1f, o.b[0][0][3] = 0x1f;
    plain_bf16(&o, 16);
    CHECK(o.c[0][0] == 0 && o.c[1][1] == 0 && o.c[2][0] == 0 && o.c[3][0] == 0);
}

int main(void)
{
    if (ses_isa_best() < SES_ISA_AVX512_BF16) { /* this file is compiled for AMX and AVX-512 */
        SKIP("AVX-512: not on this processor");
        return check_report();
    }
    for (int rows = 1; rows <= 32; rows++) {
        test_bytes(rows);
        test_bf16(rows, 120, 12);
        test_bf16(rows, 0, 70); /* products around the smallest normal number */
    }
    test_denormals();
    if (ses_isa_best() < SES_ISA_AMX) SKIP("AMX instructions: not on this processor");
    return check_report();
}
