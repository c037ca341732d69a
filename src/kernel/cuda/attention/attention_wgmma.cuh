/* Attention on Hopper tensor cores (wgmma): parts shared by its kernels.
 *
 * A warpgroup (4 warps) multiplies 64 rows at a time. Warp w has rows 16 w .. 16 w + 15 of the result, and of
 * an A operand in registers, in the fragments of attention_mma.cuh. Operands in shared memory are tiles with
 * rows of 64 numbers, in which 16-byte vector p of row r is at p ^ r % 8 (128-byte swizzle); groups of 8 rows
 * start at multiples of 1024 bytes. A tile serves a product that sums along its rows, or down its columns
 * (transposed). */
#ifndef SES_KERNEL_ATTENTION_WGMMA_CUH
#define SES_KERNEL_ATTENTION_WGMMA_CUH

#include "attention_hd64.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define SES_WGMMA
#endif

/* threads of a warpgroup; rows and elements of a tile */
enum { WARPGROUP = 128, ROWS = 128, TILE_ELEMS = ROWS * DH };
/* Up to this length attention_hd64 is used, which is faster at 65 and slower at 128. */
enum { MAX_SHORT = 96 };

__device__ static inline uint32_t shared_at(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

/* Element offset of vector p of row r. */
__device__ static inline int swizzled(int r, int p) { return r * DH + ((p ^ r % 8) * 8); }

/* Matrix descriptor of a tile: address / 16, groups of 8 rows 1024 bytes apart, 128-byte swizzle. Add ALONG
 * for the next 16 columns, DOWN for the next 16 rows. */
__device__ static inline uint64_t descriptor(const bf16 *tile)
{
    uint64_t apart = 1024 / 16;
    return (shared_at(tile) & 0x3ffff) / 16 | apart << 16 | apart << 32 | (uint64_t)1 << 62;
}
enum { ALONG = 2, DOWN = 128 };

/* ---- ordering: shared-memory writes before wgmma; start and end of a group of products ---- */

__device__ static inline void fence_for_wgmma()
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

/* Waits until at most LEFT groups of products are pending. c must not be read before. */
template <int LEFT, int N> __device__ static inline void products_wait(float (&c)[N][4])
{
    asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(LEFT) : "memory");
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) asm volatile("" : "+f"(c[n][e])::"memory");
}

/* ---- c [64][n] += a b over 16 elements; accumulate 0: c = a b ---- */

/* The first 32 operands of an instruction; rows n .. n + 7 of c as 32 operands. */
#define SES_REGS_32                                                          \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define SES_FOUR(c, n) "+f"((c)[n][0]), "+f"((c)[n][1]), "+f"((c)[n][2]), "+f"((c)[n][3])
#define SES_EIGHT(c, n)                                                                                     \
    SES_FOUR(c, n), SES_FOUR(c, (n) + 1), SES_FOUR(c, (n) + 2), SES_FOUR(c, (n) + 3), SES_FOUR(c, (n) + 4), \
        SES_FOUR(c, (n) + 5), SES_FOUR(c, (n) + 6), SES_FOUR(c, (n) + 7)

/* a and b along their rows. */
__device__ static inline void multiply_rows(float (&c)[16][4], uint64_t a, uint64_t b, int accumulate)
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
                 : "l"(a), "l"(b), "r"(accumulate));
}

/* a and b along their rows, or both transposed. */
template <bool TRANSPOSED>
__device__ static inline void multiply_64(float (&c)[8][4], uint64_t a, uint64_t b, int accumulate)
{
    asm volatile("{.reg .pred p; setp.ne.b32 p, %34, 0;"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{" SES_REGS_32 "}, "
                 "%32, %33, p, 1, 1, %35, %35;}\n"
                 : SES_EIGHT(c, 0)
                 : "l"(a), "l"(b), "r"(accumulate), "n"((int)TRANSPOSED));
}

__device__ static inline void multiply_rows(float (&c)[8][4], uint64_t a, uint64_t b, int accumulate)
{
    multiply_64<false>(c, a, b, accumulate);
}

__device__ static inline void multiply_transposed(float (&c)[8][4], uint64_t a, uint64_t b, int accumulate)
{
    multiply_64<true>(c, a, b, accumulate);
}

/* a in registers, b transposed. */
__device__ static inline void multiply_regs(float (&c)[8][4], const uint32_t (&a)[4], uint64_t b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{" SES_REGS_32 "}, "
                 "{%32, %33, %34, %35}, %36, 1, 1, 1, 1;\n"
                 : SES_EIGHT(c, 0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

#endif

/* ---- tiles ---- */

/* Loads rows first .. first + ROWS - 1 of n into a tile; rows past n are zero. thread: 0 .. threads - 1. */
template <int threads>
__device__ static inline void load_tile(bf16 *to, const bf16 *x, int64_t row, int first, int n, int thread)
{
    int r0 = thread / 8, p = thread % 8;
    const bf16 *from = x + (int64_t)(first + r0) * row + p * 8;
    to += swizzled(r0, p); /* the row step is a multiple of 8, so the swizzle is the same */
    if (first + ROWS <= n) {
#pragma unroll
        for (int r = 0; r < ROWS; r += threads / 8, from += threads / 8 * row)
            copy16(to + r * DH, from, true);
        return;
    }
#pragma unroll
    for (int r = 0; r < ROWS; r += threads / 8, from += threads / 8 * row) {
        bool in = first + r0 + r < n;
        copy16(to + r * DH, in ? from : x, in);
    }
}

/* Stores the four 8 x 8 matrices of a fragment to shared memory; lane 8 m + r passes the address of row r of
 * matrix m. */
__device__ static inline void store_matrices(bf16 *at, const uint32_t (&w)[4])
{
#ifdef SES_WGMMA
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(shared_at(at)),
                 "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3])
                 : "memory");
#endif
}

/* Keys for queries i0 .. i0 + ROWS - 1, from a tile boundary on; at least one tile, even if all keys are
 * masked. */
template <bool PLAIN> __device__ static inline span key_tiles(const ses_attn &a, const work &w, int i0)
{
    span s = rows_key_range<PLAIN>(a, w, i0, ROWS);
    s.begin = s.begin / ROWS * ROWS;
    s.end = max(s.end, s.begin + 1);
    return s;
}

/* Start of the dynamic shared memory, aligned for tiles. */
__device__ static inline bf16 *aligned_tiles(uint4 *shared)
{
    return (bf16 *)(shared + (1024 - shared_at(shared) % 1024) % 1024 / sizeof *shared);
}

#endif
