/* Helpers of figures: terminal cells, colors and shades; SVG text and style sheet. */
#include "figure.h"

#include "markup.h"

#include <math.h>
#include <string.h>

/* ---- text ---- */

static bool is_start(unsigned char c) { return (c & 0xC0) != 0x80; }

int ses_draw_width(const char *s)
{
    int n = 0;
    for (; *s; s++) n += is_start((unsigned char)*s);
    return n;
}

void ses_draw_cell(ses_buf *out, const char *s, int width, bool right)
{
    int n = ses_draw_width(s), at = 0;
    bool truncated = n > width && width > 1;
    for (int i = n; right && i < width; i++) ses_buf_put(out, ' ');
    for (; *s; s++) {
        if (is_start((unsigned char)*s) && ++at > width - truncated) break;
        ses_buf_put(out, (unsigned char)*s < 0x20 || *s == 0x7F ? ' ' : *s);
    }
    if (truncated) ses_buf_puts(out, "~");
    for (int i = n; !right && i < width; i++) ses_buf_put(out, ' ');
}

static void escape(ses_buf *out, const ses_draw *d, const char *code)
{
    if (d->color) ses_buf_appendf(out, "\033[%sm", code);
}

void ses_draw_bold(ses_buf *out, const ses_draw *d) { escape(out, d, "1"); }
void ses_draw_dim(ses_buf *out, const ses_draw *d) { escape(out, d, "2"); }
void ses_draw_plain(ses_buf *out, const ses_draw *d) { escape(out, d, "0"); }

void ses_draw_hue(ses_buf *out, const ses_draw *d, int hue)
{
    static const char *const code[SES_HUES] = { "34", "33", "32", "35", "36", "31", "94", "90" };
    escape(out, d, code[hue % SES_HUES]);
}

/* 256-color background: blue for positive, orange for negative values, in five steps. */
static int background(double x)
{
    static const int blue[] = { 0, 153, 117, 75, 33, 27 }, orange[] = { 0, 223, 216, 209, 208, 202 };
    int step = (int)ceil(fmin(fabs(x), 1) * 5 - 1e-9);
    if (isnan(x) || (fabs(x) < 0.04)) return 0;
    return x > 0 ? blue[step] : orange[step];
}

void ses_draw_on_shade(ses_buf *out, const ses_draw *d, double x, const char *s)
{
    int color = d->color ? background(x) : 0;
    if (color) ses_buf_appendf(out, "\033[48;5;%d;38;5;%dm", color, fabs(x) > 0.7 && x > 0 ? 231 : 16);
    ses_draw_cell(out, s, ses_draw_width(s), false);
    if (color) ses_buf_puts(out, "\033[0m");
}

void ses_draw_shade(ses_buf *out, const ses_draw *d, double x, int width)
{
    static const char *const shade[] = { " ", "\xE2\x96\x91", "\xE2\x96\x92", "\xE2\x96\x93",
                                         "\xE2\x96\x88" };
    static const char letter[] = " .:-=+*#%@";
    double strength = isnan(x) ? 0 : fmin(fabs(x), 1);
    int levels = d->unicode ? (int)SES_LEN(shade) : (int)sizeof letter - 1,
        level = (int)(strength * (levels - 1) + 0.5);
    if (level && !isnan(x)) ses_draw_hue(out, d, x < 0);
    for (int i = 0; i < width; i++) {
        if (d->unicode)
            ses_buf_puts(out, shade[level]);
        else
            ses_buf_put(out, letter[level]);
    }
    if (level) ses_draw_plain(out, d);
}

void ses_draw_key(ses_buf *out, const ses_draw *d, char letter, int hue, const char *name, int *used)
{
    int width = ses_draw_width(name) + 4;
    if (*used && *used + width > d->width) {
        ses_buf_put(out, '\n');
        *used = 0;
    }
    ses_buf_puts(out, "  ");
    ses_draw_hue(out, d, hue);
    ses_buf_put(out, letter);
    ses_draw_plain(out, d);
    ses_buf_put(out, ' ');
    ses_draw_cell(out, name, width - 4, false);
    *used += width;
}

void ses_draw_grid_row(ses_buf *out, const ses_draw *d, const signed char *row, int cols, char mark)
{
    int last = cols - 1;
    while (last >= 0 && row[last] < 0) last--;
    for (int c = 0; c <= last; c++) {
        if (row[c] < 0) {
            ses_buf_put(out, ' ');
            continue;
        }
        ses_draw_hue(out, d, row[c]);
        ses_buf_put(out, mark ? mark : (char)('a' + row[c]));
        ses_draw_plain(out, d);
    }
    ses_buf_put(out, '\n');
}

double ses_draw_largest(const double *value, int64_t n)
{
    double max = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(value[i])) max = fmax(max, fabs(value[i]));
    return max > 0 ? max : 1;
}

const char *ses_draw_number(char buf[24], double x)
{
    double size = fabs(x);
    int digits = size >= 100 || x == floor(x) ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
    if (isnan(x)) return "";
    if (size >= 1e7 || (size > 0 && size < 0.001))
        snprintf(buf, 24, "%.2g", x);
    else
        snprintf(buf, 24, "%.*f", digits, x);
    return buf;
}

/* ---- SVG ---- */

const char ses_svg_style[] =
    ".t,.d{font:12px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#1a1f26}.d{fill:#57606a}"
    ".b{font-weight:600;font-size:14px}.k{font-size:10px}.e{text-anchor:end}.m{text-anchor:middle}.p{fill:#"
    "fff}"
    ".g{stroke:#d9dee4;fill:none}.l{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}"
    ".r{stroke-width:1;stroke-opacity:.3}.h{stroke-dasharray:5 "
    "4}.s0{stroke:#0b63ce}.s1{stroke:#c2410c}.s2{stroke:#15803d}.s3{stroke:#8b2fd6}"
    ".s4{stroke:#946200}.s5{stroke:#0e7490}.s6{stroke:#be123c}.s7{stroke:#57606a}"
    ".f0{fill:#0b63ce}.f1{fill:#c2410c}.f2{fill:#15803d}.f3{fill:#8b2fd6}.f4{fill:#946200}.f5{fill:#0e7490}"
    ".f6{fill:#be123c}.f7{fill:#57606a}"
    "@media(prefers-color-scheme:dark){.t{fill:#e6e9ed}.d{fill:#a3adb8}.p{fill:#1a2027}.g{stroke:#333c46}"
    ".s0{stroke:#6cb0ff}.s1{stroke:#ff9e64}.s2{stroke:#5fd38a}.s3{stroke:#c9a2ff}.s4{stroke:#e8c15a}"
    ".s5{stroke:#56d0dd}.s6{stroke:#ff8b9a}.s7{stroke:#a3adb8}.f0{fill:#6cb0ff}.f1{fill:#ff9e64}"
    ".f2{fill:#5fd38a}.f3{fill:#c9a2ff}.f4{fill:#e8c15a}.f5{fill:#56d0dd}.f6{fill:#ff8b9a}.f7{fill:#a3adb8}}";

void ses_svg_text(ses_buf *out, double x, double y, const char *class_, const char *s)
{
    ses_buf_appendf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, class_);
    ses_html_text(out, s);
    ses_buf_puts(out, "</text>");
}

double ses_svg_text_width(const char *s) { return 7.2 * ses_draw_width(s); }

double ses_svg_opacity(double x) { return fmin(fmax(x, 0), 1); }

/* ---- scales ---- */

ses_shades ses_shades_of(ses_figure_scale scale, const float *value, int64_t n)
{
    ses_shades s = { scale, INFINITY, -INFINITY };
    for (int64_t i = 0; i < n; i++)
        if (!isnan(value[i])) s.low = fmin(s.low, (double)value[i]), s.high = fmax(s.high, (double)value[i]);
    return s;
}

double ses_shades_at(const ses_shades *s, double x)
{
    double size = fmax(fabs(s->low), fabs(s->high));
    switch (s->scale) {
    case SES_SCALE_UNIT:
    case SES_SCALE_MATCH: return x;
    case SES_SCALE_SIGNED: return size > 0 ? x / size : x;
    case SES_SCALE_RANGE: return s->high > s->low ? (x - s->low) / (s->high - s->low) : 1;
    }
    return x;
}
