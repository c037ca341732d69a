/* Fast path for byte-level BPE: finds the matches of GPT-2's pattern with bit masks. */
#include "fast_byte_bpe.h"

#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"
#include "bit_positions.h"

#include <string.h>

static ses_byte_bpe_class class_of(uint8_t c)
{
    if ((c | 32) >= 'a' && (c | 32) <= 'z') return SES_BYTE_BPE_LETTER;
    if (c >= '0' && c <= '9') return SES_BYTE_BPE_NUMBER;
    return c == ' ' || (c >= 9 && c <= 13) ? SES_BYTE_BPE_SPACE : SES_BYTE_BPE_OTHER;
}

uint64_t ses_byte_bpe_classify_ref(ses_byte_bpe_work *w, size_t n)
{
    uint64_t blocks = 0;
    for (size_t i = 0; i < n; i += 64) {
        uint64_t mask[4] = { 0 }, is_space = 0, apostrophe = 0, continuation = 0, non_ascii = 0;
        for (size_t j = 0; j < 64 && i + j < n; j++) {
            uint8_t c = (uint8_t)w->text[i + j];
            uint64_t one = (uint64_t)1 << j;
            if (c < 128) mask[class_of(c)] |= one;
            if (c == ' ') is_space |= one;
            if (c == '\'') apostrophe |= one;
            if (c >= 128) non_ascii |= one;
            if ((c & 0xc0) == 0x80) continuation |= one;
        }
        w->letter[i / 64] = mask[SES_BYTE_BPE_LETTER];
        w->number[i / 64] = mask[SES_BYTE_BPE_NUMBER];
        w->space[i / 64] = mask[SES_BYTE_BPE_SPACE];
        w->is_space[i / 64] = is_space;
        w->apostrophe[i / 64] = apostrophe;
        w->continuation[i / 64] = continuation;
        w->non_ascii[i / 64] = non_ascii;
        if (non_ascii) blocks |= (uint64_t)1 << i / 64;
    }
    return blocks;
}

/* ---- non-ASCII characters ---- */

static ses_byte_bpe_class class_of_char(const ses_byte_bpe_fast *f, uint32_t cp)
{
    if (cp < 0x10000) return (ses_byte_bpe_class)f->char_class[cp];
    const ses_cp_info *info = ses_cp(cp);
    if (info->flags & SES_CP_SPACE) return SES_BYTE_BPE_SPACE;
    uint32_t gc = 1u << info->gc;
    return gc & SES_GCS_L ? SES_BYTE_BPE_LETTER : gc & SES_GCS_N ? SES_BYTE_BPE_NUMBER : SES_BYTE_BPE_OTHER;
}

/* Decode a non-ASCII character of valid UTF-8; returns its length. */
static inline size_t decode(const char *text, uint32_t *cp)
{
    const uint8_t *p = (const uint8_t *)text;
    if (p[0] < 0xE0) return *cp = (p[0] & 0x1Fu) << 6 | (p[1] & 0x3Fu), 2;
    if (p[0] < 0xF0) return *cp = (p[0] & 0x0Fu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu), 3;
    return ses_utf8_next(text, cp);
}

static inline uint64_t mask_if(bool yes) { return 0 - (uint64_t)yes; }

/* Set the masks of the non-ASCII characters that start in block i. Branch-free: their classes are
 * unpredictable. text: first byte of the window; the text continues after the window. */
static void classify_non_ascii(const ses_byte_bpe_fast *f, ses_byte_bpe_work *w, const char *text, size_t i)
{
    uint64_t letter[2] = { 0 }, number[2] = { 0 }, space[2] = { 0 };
    for (uint64_t lead = w->non_ascii[i] & ~w->continuation[i]; lead; lead &= lead - 1) {
        unsigned at = (unsigned)__builtin_ctzll(lead);
        uint32_t cp;
        uint64_t bytes = ((uint64_t)1 << decode(text + 64 * i + at, &cp)) - 1;
        uint64_t here = bytes << at, more = bytes >> 1 >> (63 - at); /* bits in this block and in the next */
        ses_byte_bpe_class class = class_of_char(f, cp);
        uint64_t is_letter = mask_if(class == SES_BYTE_BPE_LETTER),
                 is_number = mask_if(class == SES_BYTE_BPE_NUMBER),
                 is_space = mask_if(class == SES_BYTE_BPE_SPACE);
        letter[0] |= here & is_letter, letter[1] |= more & is_letter;
        number[0] |= here & is_number, number[1] |= more & is_number;
        space[0] |= here & is_space, space[1] |= more & is_space;
    }
    for (size_t k = 0; k < 2; k++) {
        w->letter[i + k] |= letter[k];
        w->number[i + k] |= number[k];
        w->space[i + k] |= space[k];
    }
}

/* ---- start of matches ---- */

static inline void put_bit(uint64_t *mask, size_t at) { mask[at / 64] |= (uint64_t)1 << at % 64; }

static inline bool bit(const uint64_t *mask, size_t at) { return mask[at / 64] >> at % 64 & 1; }

/* A match starts at each run of letters, numbers or other characters, or at the space before it. White
 * space starts a match at its first character, and at its last one if other text follows. */
static void find_starts(ses_byte_bpe_work *w, size_t n, bool last)
{
    uint64_t letter = 0, number = 0, other = 0, space = 0, is_space = 0; /* last bit of the previous block */
    size_t blocks = (n + 63) / 64;
    memset(w->start, 0, (blocks + 1) * sizeof *w->start);
    for (size_t i = 0; i < blocks; i++) {
        uint64_t inside = n - 64 * i < 64 ? ((uint64_t)1 << (n - 64 * i)) - 1 : ~(uint64_t)0;
        uint64_t l = w->letter[i] & inside, u = w->number[i] & inside, s = w->space[i] & inside;
        uint64_t o = inside & ~(l | u | s);
        uint64_t runs = (l & ~(l << 1 | letter)) | (u & ~(u << 1 | number)) | (o & ~(o << 1 | other));
        runs &= ~(w->is_space[i] << 1 | is_space);
        /* at the end, assume that white space continues */
        uint64_t next = 64 * (i + 1) < n ? w->space[i + 1] & 1 : 1;
        uint64_t tail = s & ~(s >> 1 | next << 63);
        if (n - 64 * i < 64 && last) tail &= inside >> 1;
        uint64_t last_byte = tail & w->continuation[i];
        tail &= ~w->continuation[i];
        for (; last_byte; last_byte &= last_byte - 1) { /* go back to the first byte of the character */
            size_t at = 64 * i + (size_t)__builtin_ctzll(last_byte);
            while (at && bit(w->continuation, at)) at--;
            put_bit(w->start, at);
        }
        w->start[i] |= runs | (s & ~(s << 1 | space)) | tail;
        letter = l >> 63, number = u >> 63, other = o >> 63, space = s >> 63, is_space = w->is_space[i] >> 63;
    }
    w->start[0] |= 1;
}

/* Contractions 's 't 'm 'd 're 've 'll, if a match starts at the apostrophe. */
static void find_contractions(ses_byte_bpe_work *w, size_t n)
{
    for (size_t i = 0; i < (n + 63) / 64; i++)
        for (uint64_t q = w->apostrophe[i] & w->start[i]; q; q &= q - 1) {
            size_t at = 64 * i + (size_t)__builtin_ctzll(q);
            char a = w->text[at + 1], b = a ? w->text[at + 2] : 0;
            size_t len = a == 's' || a == 't' || a == 'm' || a == 'd' ? 2 : 0;
            if ((a == 'r' || a == 'v') && b == 'e') len = 3;
            if (a == 'l' && b == 'l') len = 3;
            if (!len || at + len > n) continue;
            w->start[(at + 1) / 64] &= ~((uint64_t)1 << (at + 1) % 64);
            if (at + len < n && bit(w->letter, at + len)) put_bit(w->start, at + len);
        }
}

size_t ses_byte_bpe_find_matches(const ses_byte_bpe_fast *f, ses_byte_bpe_work *w, const char *text, size_t n,
                                 bool last)
{
    size_t window = n < SES_BYTE_BPE_WINDOW ? n : SES_BYTE_BPE_WINDOW, blocks = (window + 63) / 64, found = 0;
    w->letter[blocks] = w->number[blocks] = w->space[blocks] = w->continuation[blocks] = 0;
    uint64_t wide = f->classify(w, window); /* blocks with non-ASCII bytes */
    for (; wide; wide &= wide - 1) classify_non_ascii(f, w, text, (size_t)__builtin_ctzll(wide));
    find_starts(w, window, last);
    find_contractions(w, window);
    size_t certain = last ? window : window - SES_BYTE_BPE_EDGE; /* starts before this position are final */
    for (size_t i = 0; i < blocks; i++) {
        uint64_t bits = w->start[i];
        if (certain - 64 * i < 64 && certain > 64 * i) bits &= ((uint64_t)1 << (certain - 64 * i)) - 1;
        if (certain <= 64 * i) bits = 0;
        found += ses_bit_positions(bits, 64 * i, w->begin + found);
    }
    if (last)
        w->begin[found] = (uint16_t)window;
    else
        found--; /* the end of the last match is unknown: the next window starts with it */
    return found;
}
