/* Attention on Hopper's tensor cores (wgmma): what its kernels share.
 *
 * A warpgroup, 4 warps, multiplies 64 rows at a time; warp w has rows 16 w .. 16 w + 15 of the result and of
 * an A in registers, in the fragments of attention_mma.cuh. What lies in shared memory is in tiles of rows of
 * 64 numbers, in which pack p of row r stands at place p ^ r % 8; every 8 rows begin on 1024 bytes. A tile
 * serves a product whose sum runs along its rows ("by rows") or down its columns ("turned"). */
#ifndef SES_KERNEL_ATTENTION_WGMMA_CUH
#define SES_KERNEL_ATTENTION_WGMMA_CUH

#include "attention_hd64.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define SES_WGMMA
#endif

enum { GROUP = 128, WIDE = 128, STEP = WIDE * DH }; /* threads of a warpgroup; rows, numbers of a tile */
enum {
    SHORT = 96
}; /* sequences up to here are left to attention_fast, which is quicker at 65 and not at 128 */

__device__ static inline uint32_t shared_at(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

/* Pack p of row r, in numbers. */
__device__ static inline int swizzled(int r, int p) { return r * DH + ((p ^ r % 8) * 8); }

/* Where a product finds a tile: its address in 16 bytes, groups of 8 rows 1024 bytes apart, packs swizzled.
 * Its next 16 columns are ALONG further, its next 16 rows DOWN. */
__device__ static inline uint64_t matrix(const bf16 *tile)
{
    uint64_t apart = 1024 / 16;
    return (shared_at(tile) & 0x3ffff) / 16 | apart << 16 | apart << 32 | (uint64_t)1 << 62;
}
enum { ALONG = 2, DOWN = 128 };

/* ---- order: what threads wrote for the tensor cores; products begun, ended ---- */

__device__ static inline void seen_by_products()
{
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}

__device__ static inline void barrier_wait(int id, int threads)
{
    asm volatile("bar.sync %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}

__device__ static inline void barrier_arrive(int id, int threads)
{
    asm volatile("bar.arrive %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}

#ifdef SES_WGMMA

__device__ static inline void products_begin() { asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory"); }
__device__ static inline void products_end()
{
    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}

/* All but the last `left` groups of products are done; c is theirs, and nobody looks at it earlier. */
template <int LEFT, int N> __device__ static inline void products_wait(float (&c)[N][4])
{
    asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(LEFT) : "memory");
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) asm volatile("" : "+f"(c[n][e])::"memory");
}

/* ---- c [64][n] += a b over 16 numbers; not `add`: c = a b ---- */

/* The first 32 operands of an instruction; rows n .. n + 7 of c as 32 of them. */
#define SES_REGS_32                                                          \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define SES_FOUR(c, n) "+f"((c)[n][0]), "+f"((c)[n][1]), "+f"((c)[n][2]), "+f"((c)[n][3])
#define SES_EIGHT(c, n)                                                                                     \
    SES_FOUR(c, n), SES_FOUR(c, (n) + 1), SES_FOUR(c, (n) + 2), SES_FOUR(c, (n) + 3), SES_FOUR(c, (n) + 4), \
        SES_FOUR(c, (n) + 5), SES_FOUR(c, (n) + 6), SES_FOUR(c, (n) + 7)

/* a and b by rows. */
__device__ static inline void multiply_rows(float (&c)[16][4], uint64_t a, uint64_t b, int add)
{
    asm volatile("{.reg .pred p; setp.ne.b32 p, %66, 0;"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
                 "{" SES_REGS_32 ", "
                 " %32, %33, %34, %35, %36, %37, %38, %39, "
                 " %40, %41, %42, %43, %44, %45, %46, %47, "
                 " %48, %49, %50, %51, %52, %53, %54, %55, "
                 " %56, %57, %58, %59, %60, %61, %62, %63}, "
                 "%64, %65, p, 1, 1, 0, 0;}\n"
                 : SES_EIGHT(c, 0), SES_EIGHT(c, 8)
                 : "l"(a), "l"(b), "r"(add));
}

/* a and b by rows, or both turned. */
template <bool TURNED>
__device__ static inline void multiply_64(float (&c)[8][4], uint64_t a, uint64_t b, int add)
{
    asm volatile("{.reg .pred p; setp.ne.b32 p, %34, 0;"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{" SES_REGS_32 "}, "
                 "%32, %33, p, 1, 1, %35, %35;}\n"
                 : SES_EIGHT(c, 0)
                 : "l"(a), "l"(b), "r"(add), "n"((int)TURNED));
}

__device__ static inline void multiply_rows(float (&c)[8][4], uint64_t a, uint64_t b, int add)
{
    multiply_64<false>(c, a, b, add);
}

__device__ static inline void multiply_turned(float (&c)[8][4], uint64_t a, uint64_t b, int add)
{
    multiply_64<true>(c, a, b, add);
}

/* a in registers, b turned. */
__device__ static inline void multiply_held(float (&c)[8][4], const uint32_t (&a)[4], uint64_t b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{" SES_REGS_32 "}, "
                 "{%32, %33, %34, %35}, %36, 1, 1, 1, 1;\n"
                 : SES_EIGHT(c, 0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

#endif

/* ---- tiles ---- */

/* Rows first .. first + WIDE - 1 of n to a tile; those past them are zero. This is thread `thread` of so
 * many. */
template <int threads>
__device__ static inline void load_tile(bf16 *to, const bf16 *x, int64_t row, int first, int n, int thread)
{
    int r0 = thread / 8, p = thread % 8;
    const bf16 *from = x + (int64_t)(first + r0) * row + p * 8;
    to += swizzled(r0, p); /* the next row is a multiple of 8 on: its packs stand likewise */
    if (first + WIDE <= n) {
#pragma unroll
        for (int r = 0; r < WIDE; r += threads / 8, from += threads / 8 * row)
            copy16(to + r * DH, from, true);
        return;
    }
#pragma unroll
    for (int r = 0; r < WIDE; r += threads / 8, from += threads / 8 * row) {
        bool in = first + r0 + r < n;
        copy16(to + r * DH, in ? from : x, in);
    }
}

/* A fragment's four 8 x 8 matrices to shared memory; lane 8 m + r says where row r of matrix m begins. */
__device__ static inline void store_matrices(bf16 *at, const uint32_t (&w)[4])
{
#ifdef SES_WGMMA
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(shared_at(at)),
                 "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3])
                 : "memory");
#endif
}

/* The keys that queries i0 .. i0 + WIDE - 1 meet, from a whole tile on; those who see none meet the first. */
template <bool PLAIN> __device__ static inline span met_by(const ses_attn &a, const work &w, int i0)
{
    span s = seen_by_rows<PLAIN>(a, w, i0, WIDE);
    s.begin = s.begin / WIDE * WIDE;
    s.end = max(s.end, s.begin + 1);
    return s;
}

/* The dynamic shared memory, from where tiles can begin. */
__device__ static inline bf16 *tiles_at(uint4 *shared)
{
    return (bf16 *)(shared + (1024 - shared_at(shared) % 1024) % 1024 / sizeof *shared);
}

#endif
