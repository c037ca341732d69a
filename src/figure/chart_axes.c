/* The axes of plots. */
#include "chart_axes.h"

#include "figure.h"
#include "markup.h"

#include <math.h>

enum { TICK_DROP = 16, NUMBER_GAP = 6 };

double ses_chart_low_end(double least, double pad) { return least >= 0 ? fmax(0, least - pad) : least - pad; }

double ses_chart_x(const ses_chart_axes *a, double x)
{
    return a->left + (x - a->x0) / (a->x1 - a->x0) * (a->width - a->left - a->right);
}

double ses_chart_y(const ses_chart_axes *a, double y)
{
    return a->height - a->bottom - (y - a->y0) / (a->y1 - a->y0) * (a->height - a->top - a->bottom);
}

double ses_chart_tick_y(const ses_chart_axes *a) { return a->height - a->bottom + TICK_DROP; }

void ses_chart_put_grid(const ses_chart_axes *a, int parts, ses_buf *out)
{
    ses_chart_ticks t = ses_chart_find_ticks(a->y0, a->y1, parts, 0);
    for (int i = 0; i < t.n; i++) {
        double v = (t.first + i) * t.step, at = ses_chart_y(a, v);
        ses_buf_appendf(out,
                        "<path class=\"g\" d=\"M%g %.1fH%.1f\"/><text x=\"%g\" y=\"%.1f\" class=\"d e\">",
                        a->left, at, a->width - a->right, a->left - NUMBER_GAP, at + 4);
        ses_chart_tick_put(out, v, t.step);
        ses_buf_puts(out, "</text>");
    }
}

void ses_chart_put_x_ticks(const ses_chart_axes *a, int parts, double min_step, ses_buf *out)
{
    ses_chart_ticks t = ses_chart_find_ticks(a->x0, a->x1, parts, min_step);
    for (int i = 0; i < t.n; i++) {
        double v = (t.first + i) * t.step;
        ses_buf_appendf(out, "<text x=\"%.1f\" y=\"%g\" class=\"d m\">", ses_chart_x(a, v),
                        ses_chart_tick_y(a));
        ses_chart_tick_put(out, v, t.step);
        ses_buf_puts(out, "</text>");
    }
}

void ses_chart_put_names(const ses_chart_axes *a, ses_buf *out)
{
    ses_svg_text(out, (a->left + a->width - a->right) / 2, a->height - 4, "d m", a->x_name);
    ses_svg_text(out, 0, 10, "d", a->y_name);
}
