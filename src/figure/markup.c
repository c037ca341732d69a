/* Escapes text and finds axis ticks for HTML and SVG. */
#include "markup.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void ses_html_text(ses_buf *out, const char *s)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        switch (c) {
        case '&': ses_buf_puts(out, "&amp;"); break;
        case '<': ses_buf_puts(out, "&lt;"); break;
        case '>': ses_buf_puts(out, "&gt;"); break;
        case '"': ses_buf_puts(out, "&quot;"); break;
        case '\'': ses_buf_puts(out, "&#39;"); break;
        default: ses_buf_put(out, c < 0x20 || c == 0x7F ? ' ' : (char)c);
        }
    }
}

ses_chart_ticks ses_chart_find_ticks(double low, double high, int parts, double min_step)
{
    enum { MAX_TICKS = 32 };
    ses_chart_ticks t = { 0 };
    double raw = (high - low) / parts, unit = pow(10, floor(log10(raw))), x = raw / unit;
    t.step = fmax(min_step, unit * (x < 1.5 ? 1 : x < 3.5 ? 2 : x < 7.5 ? 5 : 10));
    t.first = ceil(low / t.step - 1e-9);
    double n = floor(high / t.step + 1e-9) - t.first + 1;
    if (isfinite(raw) && raw > 0 && t.step > 0 && n >= 1 && n <= MAX_TICKS) t.n = (int)n;
    return t;
}

void ses_chart_tick_put(ses_buf *out, double x, double step)
{
    char text[40], *exponent;
    bool thousands = fabs(x) >= 10000 && fmod(x, 100) == 0 && fabs(x) < 1e6;
    snprintf(text, sizeof text, "%.4g", fabs(x) < 1e-9 * step ? 0 : thousands ? x / 1000 : x);
    exponent = strchr(text, 'e');
    if (exponent && exponent[1] && exponent[2] == '0')
        memmove(exponent + 2, exponent + 3, strlen(exponent + 3) + 1);
    ses_buf_appendf(out, "%s%s", text, thousands ? "k" : "");
}
