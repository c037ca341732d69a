/* The axes of plots: positions, grid, ticks and names. Plain data; nothing is shared between threads. */
#ifndef SES_FIGURE_CHART_AXES_H
#define SES_FIGURE_CHART_AXES_H

#include "base/str.h"

typedef struct ses_chart_axes {
    double x0, x1, y0, y1;           /* the ranges of both axes */
    double width, height;            /* size of the whole plot */
    double left, right, top, bottom; /* margins around the area of the data */
    const char *x_name, *y_name;
} ses_chart_axes;

/* The end of an axis below the least value: by pad, but not below 0 if no value is. */
double ses_chart_low_end(double least, double pad);

double ses_chart_x(const ses_chart_axes *a, double x);
double ses_chart_y(const ses_chart_axes *a, double y);

/* Horizontal lines with their numbers, about `parts`. */
void ses_chart_put_grid(const ses_chart_axes *a, int parts, ses_buf *out);
/* Numbers below the plot, about `parts`, at least min_step apart. */
void ses_chart_put_x_ticks(const ses_chart_axes *a, int parts, double min_step, ses_buf *out);
double ses_chart_tick_y(const ses_chart_axes *a); /* the baseline of these numbers */
void ses_chart_put_names(const ses_chart_axes *a, ses_buf *out);

#endif
