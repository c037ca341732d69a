/* The tiles of tile.h in plain C, bit by bit what the AMX instructions compute. Included by tile.h. */
#ifndef SES_KERNEL_TILE_PLAIN_H
#define SES_KERNEL_TILE_PLAIN_H

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

typedef struct mt_plain_set {
    mt_shapes shape;
    uint8_t row[MT_TILES][MT_ROWS][MT_BYTES];
} mt_plain_set;

static inline void mt_plain_configure(mt_plain_set *t, const mt_shapes *s)
{
    memset(t, 0, sizeof *t);
    t->shape = *s;
}

/* Tiles that are used after this have no rows, as the instructions would raise an exception. */
static inline void mt_plain_release(mt_plain_set *t) { memset(&t->shape, 0, sizeof t->shape); }

/* An instruction sets the bytes outside of a tile's shape to 0. */
static inline void mt_plain_zero(mt_plain_set *t, int c)
{
    assert(t->shape.rows[c] > 0);
    memset(t->row[c], 0, sizeof t->row[c]);
}

static inline void mt_plain_load(mt_plain_set *t, int a, const void *p, int64_t stride)
{
    mt_plain_zero(t, a);
    for (int i = 0; i < t->shape.rows[a]; i++)
        memcpy(t->row[a][i], (const char *)p + i * stride, t->shape.bytes[a]);
}

static inline void mt_plain_store(const mt_plain_set *t, int c, void *p, int64_t stride)
{
    assert(t->shape.rows[c] > 0);
    for (int i = 0; i < t->shape.rows[c]; i++)
        memcpy((char *)p + i * stride, t->row[c][i], t->shape.bytes[c]);
}

/* The instructions raise an exception if this does not hold. */
static inline void mt_plain_check(const mt_plain_set *t, int c, int a, int b)
{
    const mt_shapes *s = &t->shape;
    assert(c != a && c != b && a != b);
    assert(s->rows[c] > 0 && s->rows[c] == s->rows[a] && s->bytes[c] == s->bytes[b] &&
           s->bytes[a] == 4 * s->rows[b]);
    (void)s, (void)c, (void)a, (void)b;
}

static inline void mt_plain_dot_i8(mt_plain_set *t, int c, int a, int b)
{
    mt_plain_check(t, c, a, b);
    for (int i = 0; i < t->shape.rows[c]; i++)
        for (int j = 0; j < t->shape.bytes[c] / 4; j++) {
            uint32_t sum; /* wraps around */
            memcpy(&sum, t->row[c][i] + 4 * j, sizeof sum);
            for (int k = 0; k < t->shape.bytes[a]; k++) {
                int x = SES_I8_ZERO ? t->row[a][i][k] : (int8_t)t->row[a][i][k];
                sum += (uint32_t)(x * (int8_t)t->row[b][k / 4][4 * j + k % 4]);
            }
            memcpy(t->row[c][i] + 4 * j, &sum, sizeof sum);
        }
}

/* Denormal numbers become 0. */
static inline float mt_plain_flush(float x) { return fabsf(x) < FLT_MIN ? copysignf(0, x) : x; }

static inline float mt_plain_bf16(const uint8_t *p)
{
    uint16_t half;
    memcpy(&half, p, sizeof half);
    uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return mt_plain_flush(x);
}

static inline void mt_plain_dot_bf16(mt_plain_set *t, int c, int a, int b)
{
    mt_plain_check(t, c, a, b);
    for (int i = 0; i < t->shape.rows[c]; i++)
        for (int j = 0; j < t->shape.bytes[c] / 4; j++) {
            float sum[2] = { 0, 0 }, old; /* sums of even and odd k */
            for (int k = 0; k < t->shape.bytes[a] / 2; k++) {
                float x = mt_plain_bf16(t->row[a][i] + 2 * k),
                      y = mt_plain_bf16(t->row[b][k / 2] + 4 * j + 2 * (k % 2));
                sum[k % 2] = mt_plain_flush(fmaf(x, y, sum[k % 2]));
            }
            memcpy(&old, t->row[c][i] + 4 * j, sizeof old);
            float both = mt_plain_flush(sum[0] + sum[1]);
            both = mt_plain_flush(mt_plain_flush(old) + both);
            memcpy(t->row[c][i] + 4 * j, &both, sizeof both);
        }
}

#endif
