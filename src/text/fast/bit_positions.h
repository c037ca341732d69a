/* Conversion of a bit mask to a list of positions. Stateless and thread-safe. */
#ifndef SES_TEXT_BIT_POSITIONS_H
#define SES_TEXT_BIT_POSITIONS_H

#include <stddef.h>
#include <stdint.h>

/* Write base + i for each set bit i; returns their number. May write up to three surplus entries. */
static inline size_t ses_bit_positions(uint64_t bits, size_t base, uint16_t *out)
{
    size_t n = (size_t)__builtin_popcountll(bits);
    while (bits) {
        for (int i = 0; i < 4; i++) {
            *out++ = (uint16_t)(base + (bits ? (size_t)__builtin_ctzll(bits) : 0));
            bits &= bits - 1;
        }
    }
    return n;
}

#endif
