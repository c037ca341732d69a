/* The tiles of tile.h by AMX instructions. Inline assembly: the intrinsics of gcc do not tell the compiler
 * that they read memory. Macros, because a tile's number is part of the instruction. */
#ifndef SES_KERNEL_TILE_AMX_H
#define SES_KERNEL_TILE_AMX_H

/* The processor holds the tiles; this type only marks who uses them. */
typedef struct mt_set {
    char unused;
} mt_set;

/* Each macro is one statement. *t is an operand, so that the compiler keeps their order. */
#define mt_configure(t, shapes) __asm__ volatile("ldtilecfg %1" : "=m"(*(t)) : "m"(*(shapes)))
#define mt_release(t) __asm__ volatile("tilerelease" : "+m"(*(t)))
#define mt_zero(t, c) __asm__ volatile("tilezero %%tmm%c1" : "+m"(*(t)) : "i"(c))
#define mt_load_by(instruction, t, a, p, stride)                              \
    __asm__ volatile(instruction " (%1,%2,1), %%tmm%c3"                       \
                     : "+m"(*(t))                                             \
                     : "r"((const void *)(p)), "r"((int64_t)(stride)), "i"(a) \
                     : "memory")
#define mt_load(t, a, p, stride) mt_load_by("tileloadd", t, a, p, stride)
#define mt_load_once(t, a, p, stride) mt_load_by("tileloaddt1", t, a, p, stride)
#define mt_store(t, c, p, stride)                                       \
    __asm__ volatile("tilestored %%tmm%c3, (%1,%2,1)"                   \
                     : "+m"(*(t))                                       \
                     : "r"((void *)(p)), "r"((int64_t)(stride)), "i"(c) \
                     : "memory")
#define mt_dot_i8(t, c, a, b) \
    __asm__ volatile("tdpbusd %%tmm%c3, %%tmm%c2, %%tmm%c1" : "+m"(*(t)) : "i"(c), "i"(a), "i"(b))
#define mt_dot_bf16(t, c, a, b) \
    __asm__ volatile("tdpbf16ps %%tmm%c3, %%tmm%c2, %%tmm%c1" : "+m"(*(t)) : "i"(c), "i"(a), "i"(b))

#endif
