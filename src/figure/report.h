/* A report: the result of an analysis as JSON, figures, notes and, if it has one, an interactive page.
 * Figures are drawn in a terminal, as SVG and in HTML by their kinds (figure/).
 *
 * Ownership: a report owns copies of everything passed to it; ses_report_free frees them.
 * Threads: one thread per report.
 * Failure: the first failure is kept; later calls do nothing, and ses_report_ok reports it. Functions that
 * add to a figure accept NULL. */
#ifndef SES_FIGURE_REPORT_H
#define SES_FIGURE_REPORT_H

#include "base/str.h"
#include "sesame/json.h"

typedef struct ses_report ses_report;
typedef struct ses_figure ses_figure;

ses_report *ses_report_new(ses_err *e);
void ses_report_free(ses_report *r); /* r may be NULL */
bool ses_report_ok(const ses_report *r, ses_err *e);

/* The writer of the envelope's "result": write one value, usually an object. Never NULL. */
ses_json_writer *ses_report_json(ses_report *r);
/* Adds a token to the envelope: its bytes [start, end) in the text, the index of its word; -1: none. */
void ses_report_token(ses_report *r, const char *text, size_t n, int64_t start, int64_t end, int64_t word);
/* The title of the page and the picture; by default the summary of the analysis. */
void ses_report_set_title(ses_report *r, const char *fmt, ...) SES_PRINTF(2, 3);
/* Adds a sentence below the figures: omitted data, a warning, an explanation. */
void ses_report_note(ses_report *r, const char *fmt, ...) SES_PRINTF(2, 3);

/* ---- figures ---- */

/* How a page shows a figure. */
enum {
    SES_SHOW_SMALL = 1,   /* beside the small figures before and after it */
    SES_SHOW_FIRST = 2,   /* a small figure that begins a new row */
    SES_SHOW_FOLDED = 4,  /* closed until the reader opens it */
    SES_SHOW_CARDS = 8,   /* a table: on narrow screens each row is a block with its titles */
    SES_SHOW_SMOOTH = 16, /* curves: the values of long ones are faint, behind a smoothed curve */
    SES_SHOW_NO_KEY = 32, /* curves: another figure names their colors */
    SES_SHOW_LAST = 64,   /* curves: names with the last value */
    SES_SHOW_ZERO = 128   /* curves: the x axis begins at 0 */
};
enum { SES_SMOOTHED_POINTS = 30 };              /* SES_SHOW_SMOOTH leaves shorter curves as they are */
void ses_figure_show(ses_figure *f, int flags); /* the sum of SES_SHOW_... */
/* Adds a sentence below the figure. */
void ses_figure_note(ses_figure *f, const char *fmt, ...) SES_PRINTF(2, 3);

/* A table; columns: titles separated by '|'. A leading '>' right-aligns, '`' shows code, '+' and '-' show
 * right and wrong values. Cells in row-major order. */
ses_figure *ses_report_table(ses_report *r, const char *title, const char *columns);
void ses_figure_cell(ses_figure *f, const char *fmt, ...) SES_PRINTF(2, 3);
void ses_figure_cell_key(ses_figure *f, int64_t line); /* the last cell names a curve: its color */

/* Headline numbers under a heading and a line `sub`; both may be "". more: small print, may be NULL. */
ses_figure *ses_report_tiles(ses_report *r, const char *title, const char *sub);
void ses_figure_tile(ses_figure *f, const char *name, const char *value, const char *more);

/* Curves over a common x axis. */
typedef struct ses_figure_series {
    const char *name;
    bool dashed;
    int64_t n;
    const double *x, *y;      /* y NaN: no point */
    const double *low, *high; /* interval of y; NULL: none */
} ses_figure_series;
ses_figure *ses_report_lines(ses_report *r, const char *title, const char *x_label, const char *y_label);
void ses_figure_line(ses_figure *f, const ses_figure_series *s);
/* A logarithmic x axis, labelled at the x of the first curve: all x are above 0. */
void ses_figure_log_x(ses_figure *f);

/* A matrix of colored cells. Names may be NULL: numbers from 0. NaN: an empty cell. */
typedef enum {
    SES_SCALE_UNIT,   /* 0 to 1 */
    SES_SCALE_SIGNED, /* two hues around 0, up to the largest absolute value */
    SES_SCALE_RANGE,  /* least to greatest value */
    SES_SCALE_MATCH   /* 0 to 1; cells off the diagonal in another hue */
} ses_figure_scale;
typedef struct ses_figure_matrix {
    int64_t rows, cols;
    const float *value; /* [rows, cols] */
    const char *const *row_name, *const *col_name;
    const char *row_label, *col_label; /* what rows and columns are: "layer", "head" */
    const char *const *cell;           /* [rows, cols] texts in the cells, one or two lines; NULL: none */
    ses_figure_scale scale;
} ses_figure_matrix;
ses_figure *ses_report_heatmap(ses_report *r, const char *title, const ses_figure_matrix *m);

/* Names with bars; values may be negative. */
ses_figure *ses_report_bars(ses_report *r, const char *title, int64_t n, const char *const *name,
                            const double *value);

/* Names with values and their intervals on a common axis. low, high NaN: no interval; value NaN: nothing. */
typedef struct ses_figure_intervals {
    int64_t n;
    const char *const *name;
    const double *value, *low, *high;
} ses_figure_intervals;
ses_figure *ses_report_intervals(ses_report *r, const char *title, const ses_figure_intervals *x);

/* Words in a row, colored by a signed value that is written below. */
ses_figure *ses_report_strip(ses_report *r, const char *title, int64_t n, const char *const *word,
                             const double *value);

/* Dependency arcs: head[i] above, predicted[i] below the words: indices of heads, -1: the root. predicted
 * may be NULL, or NULL instead of head. An undirected predicted tree is drawn like arcs without arrows. */
ses_figure *ses_report_arcs(ses_report *r, const char *title, int64_t n, const char *const *word,
                            const int32_t *head, const int32_t *predicted);

/* Points in the plane. label, group may be NULL; group: name of a point's class. */
typedef struct ses_figure_points {
    int64_t n;
    const double *x, *y;
    const char *const *label, *const *group;
    bool has_page; /* a script draws the points: HTML has picture and table in <noscript> */
} ses_figure_points;
ses_figure *ses_report_scatter(ses_report *r, const char *title, const ses_figure_points *p);

/* Score against cost, lower cost is better: named points, a line through the ones on the front. */
typedef struct ses_figure_tradeoff {
    int64_t n;
    const double *x, *y; /* cost, score; a point that is not finite is not drawn */
    const char *const *name;
    const bool *on_front;
    int64_t original, chosen; /* index; -1: none */
    double limit;             /* the least score allowed, a dashed line; NaN: none */
} ses_figure_tradeoff;
ses_figure *ses_report_tradeoff(ses_report *r, const char *title, const char *x_label, const char *y_label,
                                const ses_figure_tradeoff *t);

/* Small maps of weights in rows and columns: every head of every layer. */
typedef struct ses_figure_thumbnails {
    int64_t rows, cols, map_rows, map_cols;
    const float *value; /* [rows, cols, map_rows, map_cols], 0 to 1; a map that begins with NaN is missing */
    const char *const *row_name, *const *col_name;
    const char *const *label; /* [rows, cols]: each map in a few words, for the table of a page */
    const char *row_label, *col_label;
} ses_figure_thumbnails;
ses_figure *ses_report_thumbnails(ses_report *r, const char *title, const ses_figure_thumbnails *t);

/* ---- interactive page ---- */

/* Adds a script and a style sheet of page/ ("view.js", "view.css"; style may be NULL) to the page. Several
 * scripts run in the order of the calls and share their top-level names. */
void ses_report_page(ses_report *r, const char *script, const char *style);
/* Adds an inert block of data to the page, <script type="application/json" id="ID">: JSON without
 * changes; the page's script reads it. */
void ses_report_page_data(ses_report *r, const char *id, const char *json, size_t n);

/* ---- output ---- */

typedef struct ses_draw { /* a terminal */
    int width;            /* columns */
    bool color, unicode;
} ses_draw;

/* The first member of the envelope, and of the page's heading. */
typedef struct ses_report_head {
    const char *analysis, *title, *model; /* title: the default; model may be NULL */
    const char *command;                  /* the command line, for the page; NULL: none */
    const char *settings;                 /* JSON object; NULL: {} */
    uint64_t seed;
} ses_report_head;

void ses_report_draw(const ses_report *r, const ses_draw *d, ses_buf *out);
/* {"analysis", "model", "version", "seed", "settings", "tokens", "result"} and a newline. */
bool ses_report_envelope(ses_report *r, const ses_report_head *h, ses_buf *out, ses_err *e);
/* The same object with "figures": [{"title", "svg"}] and "notes" at the end, for the web UI. */
bool ses_report_envelope_with_figures(ses_report *r, const ses_report_head *h, ses_buf *out, ses_err *e);
bool ses_report_svg(const ses_report *r, const ses_report_head *h, ses_buf *out, ses_err *e);
bool ses_report_html(ses_report *r, const ses_report_head *h, ses_buf *out, ses_err *e);

#endif
