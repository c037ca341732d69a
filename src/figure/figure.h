/* Figures: one kind is one file figure_KIND.c with its three drawings. Helpers for text and SVG.
 *
 * Ownership: a figure and its data are in the report's arena. Threads: as the report. */
#ifndef SES_FIGURE_FIGURE_H
#define SES_FIGURE_FIGURE_H

#include "base/arena.h"
#include "report.h"

#include <stdio.h>

typedef struct ses_figure_kind {
    void (*text)(const ses_figure *f, const ses_draw *d, ses_buf *out);
    /* Draws with the origin in the top left corner and returns the height. width: of the drawing. */
    double (*svg)(const ses_figure *f, double width, ses_buf *out);
    /* NULL: the SVG. */
    void (*html)(const ses_figure *f, ses_buf *out);
} ses_figure_kind;

struct ses_figure {
    const ses_figure_kind *kind;
    const char *title, *note; /* note: NULL: none */
    int show;                 /* SES_SHOW_... */
    bool is_part;             /* begins a part of the page: its html has the title and no card around it */
    void *data;               /* the struct of the kind */
    ses_report *report;
    ses_figure *next;
};

/* Adds a figure with zeroed data; NULL: the report has failed. */
ses_figure *ses_figure_new(ses_report *r, const ses_figure_kind *kind, const char *title, size_t data_size);
/* Zeroed memory and copies in the report; NULL: the report has failed, or the argument is NULL. */
void *ses_figure_alloc(ses_report *r, size_t n, size_t size);
char *ses_figure_string(ses_report *r, const char *s);
void *ses_figure_copy(ses_report *r, const void *p, size_t n, size_t size);
const char *const *ses_figure_strings(ses_report *r, const char *const *s, int64_t n);

/* ---- text ---- */

enum { SES_HUES = 8 };

/* Writes s, without control characters, truncated and padded to `width` columns; right: aligned right. */
void ses_draw_cell(ses_buf *out, const char *s, int width, bool right);
int ses_draw_width(const char *s); /* columns, without control characters */
/* Starts and ends bold, dim or colored text; nothing without color. */
void ses_draw_bold(ses_buf *out, const ses_draw *d);
void ses_draw_dim(ses_buf *out, const ses_draw *d);
void ses_draw_hue(ses_buf *out, const ses_draw *d, int hue); /* hue % SES_HUES */
void ses_draw_plain(ses_buf *out, const ses_draw *d);
/* s on a background of strength x in [-1, 1], two hues; without color: s alone. */
void ses_draw_on_shade(ses_buf *out, const ses_draw *d, double x, const char *s);
/* A cell of `width` columns in strength x in [-1, 1]: color, or shades of blocks, or letters. */
void ses_draw_shade(ses_buf *out, const ses_draw *d, double x, int width);
/* An entry of a legend: a colored letter and a name. *used: columns of the line so far, from 0. */
void ses_draw_key(ses_buf *out, const ses_draw *d, char letter, int hue, const char *name, int *used);
/* A row of cells: letters from 'a' on by number, in their hues; below 0: blank. mark: one character for all
 * numbers; 0: letters. */
void ses_draw_grid_row(ses_buf *out, const ses_draw *d, const signed char *row, int cols, char mark);
/* The largest absolute value among finite ones; 1 if there is none above 0. */
double ses_draw_largest(const double *value, int64_t n);
/* "0.123", "-1.5", "12", "3.1e-05"; "" for NaN. */
const char *ses_draw_number(char buf[24], double x);

/* ---- SVG: classes t (text), d (dim text), s0 .. s7 (stroke), f0 .. f7 (fill), g (grid) ---- */

extern const char ses_svg_style[]; /* the style sheet of the classes, light and dark */

void ses_svg_text(ses_buf *out, double x, double y, const char *class_, const char *s);
double ses_svg_text_width(const char *s); /* estimate at the size of class t */
/* The opacity of a shade of strength x in [0, 1]. */
double ses_svg_opacity(double x);

/* Strength in [-1, 1] of a value on a scale. */
typedef struct ses_shades {
    ses_figure_scale scale;
    double low, high;
} ses_shades;
ses_shades ses_shades_of(ses_figure_scale scale, const float *value, int64_t n);
double ses_shades_at(const ses_shades *s, double x);

#endif
