#include "run.h"

#include <inttypes.h>

enum { LEFT = 16 }; /* columns of position and id */

/* Cells are blocks of `block` x `block` numbers, each `width` columns wide. */
typedef struct grid {
    int64_t block;
    int width;
} grid;

static grid fit(int64_t keys, int columns)
{
    int64_t room = columns - LEFT > 8 ? columns - LEFT : 8;
    if (2 * keys <= room) return (grid){ 1, 2 };
    return (grid){ (keys + room - 1) / room, 1 };
}

static float largest(const float *p, int64_t rows, int64_t row, int64_t cols, int64_t col, int64_t block)
{
    float most = 0;
    for (int64_t i = row; i < row + block && i < rows; i++)
        for (int64_t j = col; j < col + block && j < cols; j++)
            if (p[i * cols + j] > most) most = p[i * cols + j];
    return most;
}

static void put_cell(const ses_term *t, double share, int width)
{
    static const char *const shade[] = { " ", "\xE2\x96\x91", "\xE2\x96\x92", "\xE2\x96\x93",
                                         "\xE2\x96\x88" };
    static const char letter[] = " .:-=+*#%@";
    int levels = t->unicode ? (int)SES_LEN(shade) : (int)sizeof letter - 1;
    int level = (int)(share * (levels - 1) + 0.5);
    for (int i = 0; i < width; i++) {
        if (t->unicode)
            fputs(shade[level], stdout);
        else
            putchar(letter[level]);
    }
}

/* Key positions, read from top to bottom: hundreds, tens, ones. */
static void put_positions(int64_t keys, grid g)
{
    int64_t scale = 1;
    while (scale * 10 <= keys - 1) scale *= 10;
    for (; scale; scale /= 10) {
        printf("%*s", LEFT, "");
        for (int64_t k = 0; k < keys; k += g.block) {
            bool show = k >= scale || scale == 1;
            printf("%c%*s", show ? (char)('0' + k / scale % 10) : ' ', g.width - 1, "");
        }
        putchar('\n');
    }
}

void ses_heatmap_print(const ses_term *t, const float *p, int64_t queries, int64_t keys, const int32_t *ids)
{
    grid g = fit(keys, t->width);
    float most = largest(p, queries, 0, keys, 0, queries > keys ? queries : keys);
    printf(" (rows look at columns; strongest %.3f", (double)most);
    if (g.block > 1) printf("; a cell is the largest of %" PRId64 " x %" PRId64, g.block, g.block);
    printf(")\n");
    put_positions(keys, g);
    for (int64_t q = 0; q < queries; q += g.block) {
        printf("  %5" PRId64 " %7d ", q, (int)ids[q]);
        for (int64_t k = 0; k < keys; k += g.block) {
            float x = largest(p, queries, q, keys, k, g.block);
            put_cell(t, most > 0 ? (double)(x / most) : 0, g.width);
        }
        putchar('\n');
    }
}
