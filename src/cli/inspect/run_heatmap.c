/* Draws an attention map in a terminal: a shade per probability; long sequences in blocks of tokens. */
#include "run_model.h"

#include <inttypes.h>
#include <string.h>

enum { LEFT = 16 }; /* columns of position and token */

/* A cell covers `block` x `block` values and is `width` columns wide. */
typedef struct grid {
    int64_t block;
    int width;
} grid;

static grid fit(int64_t keys, int columns)
{
    int64_t available = columns - LEFT > 8 ? columns - LEFT : 8;
    if (2 * keys <= available) return (grid){ 1, 2 };
    return (grid){ (keys + available - 1) / available, 1 };
}

static float block_max(const float *p, int64_t rows, int64_t row, int64_t cols, int64_t col, int64_t block)
{
    float max = 0;
    for (int64_t i = row; i < row + block && i < rows; i++)
        for (int64_t j = col; j < col + block && j < cols; j++)
            if (p[i * cols + j] > max) max = p[i * cols + j];
    return max;
}

static void put_cell(const ses_term *t, double fraction, int width)
{
    static const char *const shade[] = { " ", "\xE2\x96\x91", "\xE2\x96\x92", "\xE2\x96\x93",
                                         "\xE2\x96\x88" };
    static const char letter[] = " .:-=+*#%@";
    int levels = t->unicode ? (int)SES_LEN(shade) : (int)sizeof letter - 1;
    int level = (int)(fraction * (levels - 1) + 0.5);
    for (int i = 0; i < width; i++) {
        if (t->unicode)
            fputs(shade[level], stdout);
        else
            putchar(letter[level]);
    }
}

/* Key positions from top to bottom: hundreds, tens, ones. */
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

/* Position and text (or id) of the query, in LEFT columns. */
static void put_label(const ses_run_view *r, int64_t q, int32_t id)
{
    enum { WORD = LEFT - 7 };
    char token[SES_TOKEN_TEXT], clean[SES_TOKEN_TEXT];
    const char *word = strchr(ses_run_token_text(r, id, token), ' ');
    ses_escape_controls(clean, sizeof clean, word ? word + 1 : token);
    size_t end = 0, width = 0;
    while (clean[end] && (width < WORD - 1 || ((unsigned char)clean[end] & 0xC0) == 0x80))
        width += ((unsigned char)clean[end++] & 0xC0) != 0x80;
    printf("%5" PRId64 " %*s%.*s ", q, WORD - (int)width, "", (int)end, clean);
}

void ses_heatmap_print(const ses_run_view *r, const float *p, int64_t queries, int64_t keys,
                       const int32_t *ids)
{
    const ses_term *t = r->term;
    grid g = fit(keys, t->width);
    float max = block_max(p, queries, 0, keys, 0, queries > keys ? queries : keys);
    printf("\n  (rows: queries, columns: keys; maximum %.3f", (double)max);
    if (g.block > 1) printf("; a cell is the maximum of %" PRId64 " x %" PRId64, g.block, g.block);
    printf(")\n");
    put_positions(keys, g);
    for (int64_t q = 0; q < queries; q += g.block) {
        put_label(r, q, ids[q]);
        for (int64_t k = 0; k < keys; k += g.block) {
            float x = block_max(p, queries, q, keys, k, g.block);
            put_cell(t, max > 0 ? (double)(x / max) : 0, g.width);
        }
        putchar('\n');
    }
}
