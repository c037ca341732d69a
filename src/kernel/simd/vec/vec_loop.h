/* Loops, destinations and sums for kernels written over the vectors of vec.h. `left` is the number of
 * elements from here to the end, at least 1; a vector covers at most VF_LANES of them. */
#ifndef SES_KERNEL_VEC_LOOP_H
#define SES_KERNEL_VEC_LOOP_H

#include "kernel/chunking.h"
#include "vec.h"

#define VF_INLINE static inline __attribute__((always_inline))

/* Sums of at most NARROW terms whose operands are also narrow are computed in double. Rounding errors of
 * narrow models do not average out: Adam turns the wrong sign of one tiny gradient into a full step. These
 * sums cost little. */
enum { NARROW = 96 };

VF_INLINE vf vf_get(const float *p, int64_t left) /* 0 past the end */
{
    return left >= VF_LANES ? vf_load(p) : vf_load_part(p, left);
}

VF_INLINE void vf_put(float *p, vf v, int64_t left)
{
    if (left >= VF_LANES)
        vf_store(p, v);
    else
        vf_store_part(p, v, left);
}

VF_INLINE void vf_put_dst(ses_dst to, int64_t i, vf v, int64_t left)
{
    if (to.accumulate) v = vf_add(vf_get(to.data + i, left), v);
    vf_put(to.data + i, v, left);
}

/* v; `other` past the end */
VF_INLINE vf vf_pad(vf v, vf other, int64_t left)
{
    return left >= VF_LANES ? v : vf_select(vm_part(left), v, other);
}

/* Up to two sums over a row. `step` adds the terms of elements i .. i + VF_LANES - 1 and nothing past the
 * end. Four chains of float sums over at most SUM_BLOCK elements are added in double: the order depends on n
 * only. */
typedef struct vf_pair {
    vf a, b;
} vf_pair;

typedef struct sum_pair {
    double a, b;
} sum_pair;

typedef vf_pair sum_step(vf_pair sum, void *ctx, int64_t i, int64_t left);

enum { SUM_BLOCK = 1024 };

VF_INLINE sum_pair sum_row(int64_t n, sum_step *step, void *ctx)
{
    sum_pair total = { 0, 0 };
    for (int64_t i = 0, end; i < n; i = end) {
        vf_pair s0 = { vf_zero(), vf_zero() }, s1 = s0, s2 = s0, s3 = s0;
        end = n - i < SUM_BLOCK ? n : i + SUM_BLOCK;
        for (; end - i >= 4 * VF_LANES; i += 4 * VF_LANES) {
            s0 = step(s0, ctx, i, VF_LANES);
            s1 = step(s1, ctx, i + VF_LANES, VF_LANES);
            s2 = step(s2, ctx, i + 2 * VF_LANES, VF_LANES);
            s3 = step(s3, ctx, i + 3 * VF_LANES, VF_LANES);
        }
        for (; i < end; i += VF_LANES) s0 = step(s0, ctx, i, end - i);
        total.a += vf_sum_double(vf_add(vf_add(s0.a, s1.a), vf_add(s2.a, s3.a)));
        total.b += vf_sum_double(vf_add(vf_add(s0.b, s1.b), vf_add(s2.b, s3.b)));
    }
    return total;
}

/* Maximum of a row. A NaN may or may not propagate. */
VF_INLINE float max_row(const float *a, int64_t n)
{
    vf low = vf_set1(-__builtin_inff()), m0 = low, m1 = low, m2 = low, m3 = low;
    int64_t i = 0;
    for (; n - i >= 4 * VF_LANES; i += 4 * VF_LANES) {
        m0 = vf_max(m0, vf_load(a + i));
        m1 = vf_max(m1, vf_load(a + i + VF_LANES));
        m2 = vf_max(m2, vf_load(a + i + 2 * VF_LANES));
        m3 = vf_max(m3, vf_load(a + i + 3 * VF_LANES));
    }
    for (; i < n; i += VF_LANES) m0 = vf_max(m0, vf_pad(vf_get(a + i, n - i), low, n - i));
    return vf_hmax(vf_max(vf_max(m0, m1), vf_max(m2, m3)));
}

#endif
