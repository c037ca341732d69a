/* Reports of analyses: figures as text, SVG and HTML, the JSON envelope, layer lists. */
#include "analysis/layer_set.h"
#include "check.h"
#include "figure/chart_axes.h"
#include "figure/report.h"

#include <math.h>
#include <string.h>

static const char *const names[] = { "the", "<b>&\"quoted\"", "\x1B[31mcat", "sat" };
static const double values[] = { 0.5, -1.25, NAN, 0.001 };

static ses_report *full_report(void)
{
    static const float matrix[] = { 0, 0.25F, 0.5F, 1, -1, NAN };
    static const double x[] = { 0, 1, 2, 3 }, low[] = { 0, -2, 0, 0 }, high[] = { 1, 0, 1, 1 };
    static const int32_t head[] = { 1, 3, 3, -1 }, predicted[] = { 1, 2, 3, -1 };
    ses_report *r = ses_report_new(NULL);
    if (!r) return NULL;
    ses_figure *table = ses_report_table(r, "A table", "name|>value");
    for (int i = 0; i < 4; i++) ses_figure_cell(table, "%s", names[i]), ses_figure_cell(table, "%d", i);
    ses_figure *lines = ses_report_lines(r, "Curves", "layer", "accuracy");
    ses_figure_line(lines, &(ses_figure_series){ "probe", false, 4, x, values, low, high });
    ses_figure_line(lines, &(ses_figure_series){ "control", true, 4, x, high, NULL, NULL });
    ses_report_heatmap(
        r, "Matrix",
        &(ses_figure_matrix){ 2, 3, matrix, names, NULL, "layer", "head", NULL, SES_SCALE_SIGNED });
    ses_report_bars(r, "Bars", 4, names, values);
    ses_report_strip(r, "Words", 4, names, values);
    ses_report_arcs(r, "Trees", 4, names, head, predicted);
    ses_report_scatter(r, "Points", &(ses_figure_points){ 4, x, high, names, names });
    ses_figure *tiles = ses_report_tiles(r, names[1], names[2]);
    for (int i = 0; i < 4; i++) ses_figure_tile(tiles, names[i], names[3 - i], i % 2 ? names[i] : NULL);
    ses_figure_note(tiles, "A note on %s.", names[1]);
    ses_report_note(r, "%d rows were left out.", 3);
    ses_report_token(r, "the", 3, 0, 3, 0);
    ses_json_put_int(ses_report_json(r), 7);
    return r;
}

static const ses_report_head head_of = { .analysis = "example",
                                         .title = "A title with <tags>",
                                         .model = "sesame-small",
                                         .command = "sesame example 'a b'",
                                         .seed = 42 };

/* Every element is closed; void elements of HTML are not. Returns whether the text is well-formed. */
static bool is_balanced(const char *s)
{
    int depth = 0;
    for (; (s = strchr(s, '<')); s++) {
        const char *end = strchr(s, '>');
        if (!end) return false;
        if (s[1] == '!' || !strncmp(s, "<meta", 5)) continue;
        if (s[1] == '/')
            depth--;
        else if (end[-1] != '/')
            depth++;
        if (depth < 0) return false;
    }
    return depth == 0;
}

static void test_text(void)
{
    for (int i = 0; i < 8; i++) {
        ses_report *r = full_report();
        ses_buf out = { 0 };
        ses_draw d = { .width = i & 4 ? 24 : 80, .color = i & 1, .unicode = i & 2 };
        ses_report_draw(r, &d, &out);
        CHECK(ses_buf_ok(&out, NULL) && out.len > 400);
        CHECK(strstr(out.data, "A table") && strstr(out.data, "3 rows were left out.\n"));
        CHECK(!strstr(out.data, "\x1B[31mcat")); /* control characters of the data are not passed on */
        CHECK(d.color == (strchr(out.data, '\x1B') != NULL));
        ses_buf_free(&out);
        ses_report_free(r);
    }
}

static void test_markup(void)
{
    ses_report *r = full_report();
    ses_buf svg = { 0 }, html = { 0 };
    ses_err e = { 0 };
    CHECK_MSG(ses_report_svg(r, &head_of, &svg, &e), "%s", e.msg);
    CHECK(is_balanced(svg.data) && !strstr(svg.data, "<b>") && strstr(svg.data, "&lt;b&gt;"));
    CHECK(!strstr(svg.data, "nan") && !strstr(svg.data, "inf"));
    ses_report_page_data(r, "data", "\"</script>\"", 11);
    CHECK_MSG(ses_report_html(r, &head_of, &html, &e), "%s", e.msg);
    CHECK(strstr(html.data, "A title with &lt;tags&gt;") && strstr(html.data, "script-src 'none'"));
    CHECK(strstr(html.data, "\"\\u003c/script>\""));
    ses_buf_free(&svg);
    ses_buf_free(&html);
    ses_report_free(r);
}

static void test_envelope(void)
{
    ses_report *r = full_report();
    ses_buf out = { 0 };
    ses_err e = { 0 };
    CHECK_MSG(ses_report_envelope(r, &head_of, &out, &e), "%s", e.msg);
    ses_json_doc *doc = ses_json_parse(out.data, out.len - 1, &e);
    const ses_json *root = ses_json_root(doc), *token = ses_json_at(ses_json_get(root, "tokens"), 0);
    int64_t n = 0;
    CHECK_STR(ses_json_string(ses_json_get(root, "analysis"), NULL), "example");
    CHECK(ses_json_int(ses_json_get(root, "result"), &n) && n == 7);
    CHECK(ses_json_int(ses_json_get(root, "seed"), &n) && n == 42);
    CHECK_STR(ses_json_string(ses_json_get(token, "text"), NULL), "the");
    CHECK(ses_json_len(root) == 7);
    ses_json_free(doc);
    ses_buf_free(&out);
    ses_report_free(r);
}

/* Figures of no rows, one value, equal values, and a report without a value. */
static void test_limits(void)
{
    static const double one[] = { 3 }, none[] = { NAN };
    ses_report *r = ses_report_new(NULL);
    ses_buf out = { 0 };
    ses_err e = { 0 };
    CHECK(!ses_report_svg(r, &head_of, &out, &e) && strstr(e.msg, "no picture"));
    ses_report_table(r, "", "a|b");
    ses_figure_line(ses_report_lines(r, "", "x", "y"), &(ses_figure_series){ "p", false, 1, one, one, 0, 0 });
    ses_figure_line(ses_report_lines(r, "", "x", "y"),
                    &(ses_figure_series){ "p", false, 1, one, none, 0, 0 });
    ses_report_lines(r, "", "x", "y");
    ses_report_heatmap(r, "", &(ses_figure_matrix){ .scale = SES_SCALE_RANGE });
    ses_report_bars(r, "", 0, NULL, NULL);
    ses_report_scatter(r, "", &(ses_figure_points){ 1, one, one, NULL, NULL });
    ses_report_draw(r, &(ses_draw){ .width = 1 }, &out);
    CHECK(ses_report_svg(r, &head_of, &out, &e) && !strstr(out.data, "nan"));
    CHECK(!ses_report_envelope(r, &head_of, &out, &e)); /* no result was written */
    ses_buf_free(&out);
    ses_report_free(r);
}

/* Equal ratios of x are equal distances; the x of the curve are the labels. */
static void test_log_axis(void)
{
    static const double x[] = { 8, 16, 64, 80 }, y[] = { 1, 2, 3, 4 };
    double at[4] = { 0 };
    ses_report *r = ses_report_new(NULL);
    ses_buf out = { 0 };
    ses_err e = { 0 };
    ses_figure *f = ses_report_lines(r, "", "examples", "y");
    ses_figure_line(f, &(ses_figure_series){ "p", false, 4, x, y, 0, 0 });
    ses_figure_log_x(f);
    CHECK(ses_report_svg(r, &head_of, &out, &e));
    const char *s = out.data;
    for (int i = 0; i < 4 && (s = strstr(s, "<circle")); i++, s++)
        CHECK(sscanf(strstr(s, "cx="), "cx=\"%lf", &at[i]) == 1);
    CHECK(at[0] > 0 && fabs((at[2] - at[1]) - 2 * (at[1] - at[0])) < 0.25);
    CHECK(strstr(out.data, ">8</text>") && strstr(out.data, ">64</text>") &&
          strstr(out.data, ": 2 at 16</title>"));
    out.len = 0;
    ses_report_draw(r, &(ses_draw){ .width = 60 }, &out);
    CHECK(ses_buf_ok(&out, &e) && strstr(out.data, " 80\n") && strstr(out.data, " 8 "));
    ses_figure_log_x(NULL);
    ses_buf_free(&out);
    ses_report_free(r);
}

static bool has(const ses_buf *out, const char *text) { return strstr(out->data, text) != NULL; }

static int count(const ses_buf *out, const char *text)
{
    int n = 0;
    for (const char *at = out->data; (at = strstr(at, text)); at++) n++;
    return n;
}

/* Long curves: bins, a smoothed curve in front of faint values, outliers beyond the axis. */
static void test_long_lines(void)
{
    enum { N = 5000 };
    static double x[N], y[N];
    for (int i = 0; i < N; i++)
        x[i] = 1000 + i, y[i] = i == 40 ? 1e200 : i == 41 ? NAN : 2 + (i % 2 ? 0.5 : -0.5);
    for (int smooth = 0; smooth < 2; smooth++) {
        ses_err e = { 0 };
        ses_buf out = { 0 };
        ses_report *r = ses_report_new(&e);
        ses_figure *f = ses_report_lines(r, "Loss", "updates", "loss");
        y[40] = smooth ? 9 : 2.5;
        ses_figure_show(f, SES_SHOW_LAST | SES_SHOW_ZERO | (smooth ? SES_SHOW_SMOOTH : 0));
        ses_figure_line(f, &(ses_figure_series){ .name = "one", .n = N, .x = x, .y = y });
        CHECK(ses_report_svg(r, &head_of, &out, &e) && !has(&out, "nan") && !has(&out, "inf"));
        CHECK(out.len < 20000 && count(&out, "class=\"l r s0\"") == smooth &&
              count(&out, "class=\"l s0\"") == 1);
        CHECK(has(&out, ">last 2.5</text>") && has(&out, ">0</text>") && !has(&out, ">one</text>"));
        CHECK(!has(&out, ">8</text>")); /* the outlier is beyond the axis */
        out.len = 0;
        ses_report_draw(r, &(ses_draw){ .width = 60 }, &out);
        CHECK(ses_buf_ok(&out, &e) && has(&out, "a one"));
        ses_buf_free(&out);
        ses_report_free(r);
    }
}

/* More curves than letters; values whose difference is not finite. */
static void test_many_lines(void)
{
    static const double x[] = { 0, 1, 2, 1.7e308 }, y[] = { -1.7e308, 1, 1.7e308, 2 };
    ses_err e = { 0 };
    ses_buf out = { 0 };
    ses_report *r = ses_report_new(&e);
    ses_figure *f = ses_report_lines(r, "Runs", "updates", "loss");
    for (int i = 0; i < 200; i++)
        ses_figure_line(f, &(ses_figure_series){ .name = "run", .n = 4, .x = x, .y = y });
    CHECK(ses_report_svg(r, &head_of, &out, &e) && count(&out, ">run</text>") == 200 && !has(&out, "nan") &&
          !has(&out, "inf"));
    ses_figure_show(f, SES_SHOW_NO_KEY);
    out.len = 0;
    CHECK(ses_report_svg(r, &head_of, &out, &e) && count(&out, ">run</text>") == 0);
    out.len = 0;
    ses_report_draw(r, &(ses_draw){ .width = 60 }, &out);
    CHECK(ses_buf_ok(&out, &e) && out.len);
    ses_buf_free(&out);
    ses_report_free(r);
}

/* Flags of figures in a page. */
static void test_page_parts(void)
{
    static const float share[] = { 1, 0, 0.25F, 0.75F };
    static const char *const label[] = { "no", "yes" }, *const cell[] = { "4\n100 %", "0\n0 %", "1\n25 %",
                                                                          "3\n75 %" };
    ses_err e = { 0 };
    ses_buf out = { 0 };
    ses_report *r = ses_report_new(&e);
    ses_figure_tile(ses_report_tiles(r, "A run", "a model"), "F1", "0.9", "best");
    for (int i = 0; i < 3; i++) {
        ses_figure *f = ses_report_heatmap(
            r, "Matrix",
            &(ses_figure_matrix){ 2, 2, share, label, label, "true", "predicted", cell, SES_SCALE_MATCH });
        ses_figure_show(f, SES_SHOW_SMALL | (i == 2 ? SES_SHOW_FIRST : 0));
    }
    ses_figure *f = ses_report_table(r, "Rows", "name|+right|-wrong|`command");
    ses_figure_show(f, SES_SHOW_FOLDED | SES_SHOW_CARDS);
    ses_figure_cell(f, "one"), ses_figure_cell_key(f, 9);
    for (int i = 0; i < 3; i++) ses_figure_cell(f, "<%d>", i);
    CHECK(ses_report_html(r, &head_of, &out, &e) && is_balanced(strstr(out.data, "<main>") ? out.data : ""));
    CHECK(has(&out, "<h2 class=\"part\">A run</h2>\n<p class=\"sub\">a model</p>") &&
          has(&out, "<div><dt>F1</dt><dd>0.9</dd><dd class=\"more\">best</dd></div>"));
    CHECK(count(&out, "<div class=\"small\">") == 2 && count(&out, "<figure") == 3);
    CHECK(has(&out, "rows: true, columns: predicted</text>") && has(&out, ">25 %</text>") &&
          !has(&out, "values"));
    CHECK(count(&out, "<rect class=\"f0\"") == 6 && count(&out, "<rect class=\"f1\"") == 6);
    CHECK(has(&out, "<details class=\"card\"><summary>Rows</summary>") &&
          has(&out, "<table class=\"cards\">"));
    CHECK(
        has(&out, "data-label=\"name\"><span class=\"key\" style=\"background:var(--c1)\"></span>one</td>"));
    CHECK(has(&out, "<td class=\"good\" data-label=\"right\">&lt;0&gt;</td>") &&
          has(&out, "<td class=\"c\" data-label=\"command\"><code>&lt;2&gt;</code></td>"));
    ses_buf_free(&out);
    ses_report_free(r);
    ses_figure_show(NULL, 0), ses_figure_note(NULL, "a"), ses_figure_cell_key(NULL, 0);
    ses_figure_tile(NULL, "a", "b", NULL);
}

/* Names that are wider than their cells: upright, and long enough to tell them apart. */
static void test_matrix_names(void)
{
    static const float share[9] = { 1, 0, 0, 0, 1, 0, 0, 0, 1 };
    static const char *const label[] = { "question type 1", "question type 2", "<entity>" };
    for (int small = 0; small < 2; small++) {
        ses_err e = { 0 };
        ses_buf out = { 0 };
        ses_report *r = ses_report_new(&e);
        ses_figure_show(
            ses_report_heatmap(r, "",
                               &(ses_figure_matrix){ 3, 3, share, label, label, .scale = SES_SCALE_UNIT }),
            small ? SES_SHOW_SMALL : 0);
        CHECK(ses_report_html(r, &head_of, &out, &e));
        CHECK(count(&out, ">question type 2</text>") == (small ? 1 : 2) && count(&out, "rotate(-90)") == 3);
        CHECK(count(&out, ">&lt;entity&gt;</text>") == 2 && !has(&out, "<entity>"));
        ses_buf_free(&out);
        ses_report_free(r);
    }
}

/* An axis ends below 0 only if a value is there. */
static void test_low_end(void)
{
    static const double zero[] = { 0, 0.5, 1 }, below[] = { -0.25, 0.5, 1 }, same[] = { 0 };
    const char *const name[] = { "a", "b", "c" };
    const double *const value[] = { zero, below };
    CHECK(ses_chart_low_end(3, 1) == 2 && ses_chart_low_end(1, 3) == 0 && ses_chart_low_end(-1, 3) == -4);
    for (int i = 0; i < 2; i++) {
        ses_err e = { 0 };
        ses_buf out = { 0 };
        ses_report *r = ses_report_new(&e);
        ses_report_intervals(r, "scores", &(ses_figure_intervals){ 3, name, value[i], value[i], value[i] });
        ses_figure_line(ses_report_lines(r, "", "x", "y"),
                        &(ses_figure_series){ "p", false, 1, same, i ? below : same, 0, 0 });
        ses_report_draw(r, &(ses_draw){ .width = 60 }, &out);
        CHECK_MSG(ses_buf_ok(&out, &e) && !strstr(out.data, " -") == !i, "%s", out.data);
        ses_buf_free(&out);
        ses_report_free(r);
    }
}

static void test_layers(void)
{
    ses_layer_set s;
    ses_err e = { 0 };
    CHECK(ses_layer_set_parse(&s, "0-2,5,-1", 12, &e) && ses_layer_set_count(&s) == 5 && s.given);
    CHECK(ses_layer_set_has(&s, 12) && !ses_layer_set_has(&s, 3) && ses_layer_set_at(&s, 3) == 5);
    CHECK(ses_layer_set_parse(&s, NULL, 12, &e) && ses_layer_set_count(&s) == 13 && !s.given);
    CHECK(ses_layer_set_parse(&s, "last", 6, &e) && ses_layer_set_at(&s, 0) == 6);
    static const char *const bad[] = { "",     "13",  "3-1",
                                       "1,,2", "a",   "1-",
                                       "-14",  "1;2", "99999999999999999999" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_MSG(!ses_layer_set_parse(&s, bad[i], 12, &e) && strstr(e.msg, "--layers"), "%s", bad[i]);
}

int main(void)
{
    test_text();
    test_markup();
    test_envelope();
    test_limits();
    test_log_axis();
    test_low_end();
    test_long_lines();
    test_many_lines();
    test_page_parts();
    test_matrix_names();
    test_layers();
    return check_report();
}
