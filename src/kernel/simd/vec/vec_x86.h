/* The operations that both x86 levels share. Include vec_avx2.h or vec_avx512.h instead of this file. */
#ifndef SES_KERNEL_VEC_X86_H
#define SES_KERNEL_VEC_X86_H

/* One number of A for the register tile, repeated in every lane. */
typedef vf ve;
static inline ve ve_load(const float *p) { return vf_set1(*p); }

/* x b + c. Inline assembly instead of vf_fma: compilers choose the form that overwrites x and spill the
 * accumulators. */
static inline __attribute__((always_inline)) vf vf_fma_element(ve x, vf b, vf c)
{
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(c) : "v"(x), "v"(b));
    return c;
}

/* Prefetches a cache line for writing. A prefetch for reading would transfer a line written by another core
 * twice. Processors without the instruction ignore it. */
static inline __attribute__((always_inline)) void prefetch_write(const float *p)
{
    __asm__ volatile("prefetchw %0" : : "m"(*p));
}

#endif
