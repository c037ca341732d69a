/* Collects the result of an analysis and writes it as text, JSON and SVG. */
#include "report.h"

#include "base/alloc.h"
#include "base/base64.h"
#include "figure.h"
#include "markup.h"
#include "page_file.h"
#include "sesame/base.h"

#include <string.h>

enum { MAX_SCRIPTS = 8 };

struct ses_report {
    ses_arena arena;
    ses_err failure;
    ses_json_writer *json, *tokens;
    bool tokens_ended;
    ses_figure *figure, **last_figure;
    ses_buf title, notes; /* notes: one per line */
    ses_buf data;         /* data blocks of the page */
    const ses_page_file *script[MAX_SCRIPTS], *style;
    size_t n_scripts;
};

ses_report *ses_report_new(ses_err *e)
{
    ses_report *r = ses_alloc(sizeof *r, e);
    if (!r) return NULL;
    r->last_figure = &r->figure;
    r->json = ses_json_writer_new(0, e);
    r->tokens = ses_json_writer_new(0, e);
    if (!r->json || !r->tokens) {
        ses_report_free(r);
        return NULL;
    }
    ses_json_begin_array(r->tokens);
    return r;
}

void ses_report_free(ses_report *r)
{
    if (!r) return;
    ses_json_writer_free(r->json);
    ses_json_writer_free(r->tokens);
    ses_buf_free(&r->title);
    ses_buf_free(&r->notes);
    ses_buf_free(&r->data);
    ses_arena_free(&r->arena);
    ses_free(r);
}

bool ses_report_ok(const ses_report *r, ses_err *e)
{
    if (r->failure.code == SES_OK) return ses_buf_ok(&r->notes, e) && ses_buf_ok(&r->data, e);
    if (e) *e = r->failure;
    return false;
}

ses_json_writer *ses_report_json(ses_report *r) { return r->json; }

void ses_report_token(ses_report *r, const char *text, size_t n, int64_t start, int64_t end, int64_t word)
{
    ses_json_begin_object(r->tokens);
    ses_json_member_stringn(r->tokens, "text", text, n);
    ses_json_member_int(r->tokens, "start", start);
    ses_json_member_int(r->tokens, "end", end);
    ses_json_put_key(r->tokens, "word");
    if (word < 0)
        ses_json_put_null(r->tokens);
    else
        ses_json_put_int(r->tokens, word);
    ses_json_end_object(r->tokens);
}

void ses_report_set_title(ses_report *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    r->title.len = 0;
    ses_buf_vappendf(&r->title, fmt, ap);
    va_end(ap);
}

static const char *title_of(const ses_report *r, const ses_report_head *h)
{
    return r->title.len ? r->title.data : h->title;
}

void ses_report_note(ses_report *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    ses_buf_vappendf(&r->notes, fmt, ap);
    va_end(ap);
    ses_buf_put(&r->notes, '\n');
}

/* ---- figures ---- */

void *ses_figure_alloc(ses_report *r, size_t n, size_t size)
{
    return r->failure.code == SES_OK ? ses_arena_array(&r->arena, n ? n : 1, size, &r->failure) : NULL;
}

void *ses_figure_copy(ses_report *r, const void *p, size_t n, size_t size)
{
    void *copy = p ? ses_figure_alloc(r, n, size) : NULL;
    if (copy && n) memcpy(copy, p, n * size);
    return copy;
}

char *ses_figure_string(ses_report *r, const char *s)
{
    return s ? ses_figure_copy(r, s, strlen(s) + 1, 1) : NULL;
}

const char *const *ses_figure_strings(ses_report *r, const char *const *s, int64_t n)
{
    const char **copy = s ? ses_figure_alloc(r, (size_t)n, sizeof *copy) : NULL;
    for (int64_t i = 0; copy && i < n; i++) {
        copy[i] = ses_figure_string(r, s[i] ? s[i] : "");
        if (!copy[i]) return NULL;
    }
    return (const char *const *)copy;
}

ses_figure *ses_figure_new(ses_report *r, const ses_figure_kind *kind, const char *title, size_t data_size)
{
    ses_figure *f = ses_figure_alloc(r, 1, sizeof *f);
    char *copy = ses_figure_string(r, title);
    void *data = ses_figure_alloc(r, 1, data_size);
    if (!f || !copy || !data) return NULL;
    *f = (ses_figure){ .kind = kind, .title = copy, .data = data, .report = r };
    *r->last_figure = f;
    r->last_figure = &f->next;
    return f;
}

void ses_figure_show(ses_figure *f, int flags)
{
    if (f) f->show = flags;
}

void ses_figure_note(ses_figure *f, const char *fmt, ...)
{
    ses_buf text = { 0 };
    va_list ap;
    va_start(ap, fmt);
    ses_buf_vappendf(&text, fmt, ap);
    va_end(ap);
    if (f) f->note = ses_figure_string(f->report, text.data);
    ses_buf_free(&text);
}

/* ---- output ---- */

/* Calls put for each note. */
static void each_note(const ses_report *r, void (*put)(ses_buf *out, const char *note, int width), int width,
                      ses_buf *out)
{
    ses_buf line = { 0 };
    for (size_t at = 0; at < r->notes.len;) {
        const char *end = memchr(r->notes.data + at, '\n', r->notes.len - at);
        size_t n = (size_t)(end - (r->notes.data + at));
        line.len = 0;
        ses_buf_append(&line, r->notes.data + at, n);
        if (line.data) put(out, line.data, width);
        at += n + 1;
    }
    ses_buf_free(&line);
}

/* A note in lines of at most `width` columns. */
static void put_wrapped(ses_buf *out, const char *note, int width)
{
    int used = 0;
    while (*note) {
        size_t n = strcspn(note, " ");
        char word[256];
        snprintf(word, sizeof word, "%.*s", (int)(n < sizeof word ? n : sizeof word - 1), note);
        int columns = ses_draw_width(word);
        if (used && used + 1 + columns > width) ses_buf_put(out, '\n'), used = 0;
        if (used) ses_buf_put(out, ' '), used++;
        ses_buf_append(out, note, n);
        used += columns;
        note += n + strspn(note + n, " ");
    }
    ses_buf_put(out, '\n');
}

static void put_html_note(ses_buf *out, const char *note, int width)
{
    (void)width;
    ses_buf_puts(out, "<p class=\"note\">");
    ses_html_text(out, note);
    ses_buf_puts(out, "</p>\n");
}

void ses_report_draw(const ses_report *r, const ses_draw *d, ses_buf *out)
{
    for (const ses_figure *f = r->figure; f; f = f->next) {
        if (f != r->figure) ses_buf_put(out, '\n');
        if (*f->title) {
            ses_draw_bold(out, d);
            ses_draw_cell(out, f->title, ses_draw_width(f->title), false);
            ses_draw_plain(out, d);
            ses_buf_put(out, '\n');
        }
        f->kind->text(f, d, out);
        if (f->note) put_wrapped(out, f->note, d->width);
    }
    if (r->figure && r->notes.len) ses_buf_put(out, '\n');
    each_note(r, put_wrapped, d->width, out);
}

bool ses_report_envelope(ses_report *r, const ses_report_head *h, ses_buf *out, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (!w || !ses_report_ok(r, e)) {
        ses_json_writer_free(w);
        return false;
    }
    ses_json_begin_object(w);
    ses_json_member_string(w, "analysis", h->analysis);
    ses_json_member_string(w, "model", h->model);
    ses_json_member_string(w, "version", SES_VERSION);
    ses_json_member_uint(w, "seed", h->seed);
    ses_json_end_object(w);
    if (!r->tokens_ended) ses_json_end_array(r->tokens);
    r->tokens_ended = true;
    size_t n_head = 0, n_tokens = 0, n_result = 0;
    const char *head = ses_json_writer_text(w, &n_head, e),
               *tokens = head ? ses_json_writer_text(r->tokens, &n_tokens, e) : NULL,
               *result = tokens ? ses_json_writer_text(r->json, &n_result, e) : NULL;
    if (result) {
        ses_buf_append(out, head, n_head - 1); /* without its brace */
        ses_buf_appendf(out, ", \"settings\": %s, \"tokens\": ", h->settings ? h->settings : "{}");
        ses_buf_append(out, tokens, n_tokens);
        ses_buf_puts(out, ", \"result\": ");
        ses_buf_append(out, result, n_result);
        ses_buf_puts(out, "}\n");
    }
    ses_json_writer_free(w);
    return result && ses_buf_ok(out, e);
}

enum { SVG_WIDTH = 720, SVG_SMALL = 344, SVG_MARGIN = 16, SVG_TITLE = 26 };

bool ses_report_svg(const ses_report *r, const ses_report_head *h, ses_buf *out, ses_err *e)
{
    if (!r->figure) return ses_fail(e, SES_EUNSUPPORTED, "this result has no picture: use --html or --json");
    ses_buf body = { 0 };
    double y = SVG_MARGIN;
    for (const ses_figure *f = r->figure; f; f = f->next) {
        if (*f->title) {
            ses_svg_text(&body, SVG_MARGIN, y + 14, "t b", f->title);
            y += SVG_TITLE;
        }
        ses_buf_appendf(&body, "<g transform=\"translate(%d %.1f)\">", SVG_MARGIN, y);
        y += f->kind->svg(f, SVG_WIDTH - 2 * SVG_MARGIN, &body) + SVG_MARGIN;
        ses_buf_puts(&body, "</g>\n");
        if (f->note) ses_svg_text(&body, SVG_MARGIN, y, "d", f->note), y += SVG_MARGIN;
    }
    ses_buf_appendf(out,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" width=\"%d\" "
                    "height=\"%.0f\" role=\"img\"><title>",
                    SVG_WIDTH, y, SVG_WIDTH, y);
    ses_html_text(out, title_of(r, h));
    ses_buf_appendf(out, "</title><style>%s</style><rect width=\"100%%\" height=\"100%%\" class=\"p\"/>\n",
                    ses_svg_style);
    ses_buf_append(out, body.data ? body.data : "", body.len);
    ses_buf_puts(out, "</svg>\n");
    bool ok = ses_buf_ok(&body, e) && ses_buf_ok(out, e);
    ses_buf_free(&body);
    return ok;
}

/* ---- page ---- */

void ses_report_page(ses_report *r, const char *script, const char *style)
{
    const ses_page_file *js = ses_page_file_find(script), *css = style ? ses_page_file_find(style) : NULL;
    if (!js || (style && !css)) {
        if (r->failure.code == SES_OK)
            ses_fail(&r->failure, SES_EUNSUPPORTED, "no page file %s", js ? style : script);
        return;
    }
    if (r->n_scripts < MAX_SCRIPTS) r->script[r->n_scripts++] = js;
    if (css) r->style = css;
}

void ses_report_page_data(ses_report *r, const char *id, const char *json, size_t n)
{
    ses_buf_appendf(&r->data, "<script type=\"application/json\" id=\"%s\">", id);
    while (n) {
        const char *tag = memchr(json, '<', n);
        size_t plain = tag ? (size_t)(tag - json) : n;
        ses_buf_append(&r->data, json, plain);
        if (tag) ses_buf_puts(&r->data, "\\u003c"); /* no end tag inside; strings may escape any character */
        json += plain + (tag != NULL), n -= plain + (tag != NULL);
    }
    ses_buf_puts(&r->data, "</script>\n");
}

static void put_inline_svg(const ses_figure *f, const char *attributes, ses_buf *out)
{
    ses_buf svg = { 0 };
    double width = f->show & SES_SHOW_SMALL ? SVG_SMALL : SVG_WIDTH - 2 * SVG_MARGIN,
           height = f->kind->svg(f, width, &svg);
    ses_buf_appendf(out, "<svg%s viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"", attributes, width,
                    height);
    ses_html_text(out, f->title);
    ses_buf_puts(out, "\">");
    ses_buf_append(out, svg.data ? svg.data : "", svg.len);
    ses_buf_puts(out, "</svg>");
    if (!ses_buf_ok(&svg, NULL)) out->wanted = svg.wanted;
    ses_buf_free(&svg);
}

static void put_html_drawing(const ses_figure *f, ses_buf *out)
{
    if (f->kind->html) {
        f->kind->html(f, out);
    } else {
        ses_buf_puts(out, "<div class=\"wide\" tabindex=\"0\">");
        put_inline_svg(f, "", out);
        ses_buf_puts(out, "</div>");
    }
    if (f->note) put_html_note(out, f->note, 0);
}

static void put_html_figure(const ses_figure *f, ses_buf *out)
{
    bool folded = f->show & SES_SHOW_FOLDED;
    if (f->is_part) {
        put_html_drawing(f, out);
        return;
    }
    ses_buf_puts(out, folded ? "<details class=\"card\"><summary>" : "<figure class=\"card\">");
    if (*f->title && !folded) ses_buf_puts(out, "<figcaption>");
    ses_html_text(out, f->title);
    if (*f->title && !folded) ses_buf_puts(out, "</figcaption>");
    if (folded) ses_buf_puts(out, "</summary>");
    put_html_drawing(f, out);
    ses_buf_puts(out, folded ? "</details>\n" : "</figure>\n");
}

/* Neighboring small figures share a grid. */
static void put_html_figures(const ses_report *r, ses_buf *out)
{
    bool in_grid = false;
    for (const ses_figure *f = r->figure; f; f = f->next) {
        bool small = f->show & SES_SHOW_SMALL;
        if (in_grid && (!small || f->show & SES_SHOW_FIRST)) ses_buf_puts(out, "</div>\n"), in_grid = false;
        if (small && !in_grid) ses_buf_puts(out, "<div class=\"small\">\n");
        in_grid = small;
        put_html_figure(f, out);
    }
    if (in_grid) ses_buf_puts(out, "</div>\n");
}

static void put_json_figure(const ses_figure *f, ses_json_writer *w)
{
    ses_buf svg = { 0 };
    put_inline_svg(f, " xmlns=\"http://www.w3.org/2000/svg\"", &svg);
    ses_json_begin_object(w);
    ses_json_member_string(w, "title", f->title);
    ses_json_member_stringn(w, "svg", svg.data ? svg.data : "", svg.len);
    ses_json_end_object(w);
    ses_buf_free(&svg);
}

bool ses_report_envelope_with_figures(ses_report *r, const ses_report_head *h, ses_buf *out, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(-1, e);
    ses_json_begin_object(w);
    ses_json_member_array(w, "figures");
    for (const ses_figure *f = r->figure; f; f = f->next) put_json_figure(f, w);
    ses_json_end_array(w);
    ses_json_member_stringn(w, "notes", r->notes.data ? r->notes.data : "", r->notes.len);
    ses_json_end_object(w);
    size_t n = 0;
    const char *text = ses_json_writer_text(w, &n, e);
    bool ok = text && ses_report_envelope(r, h, out, e);
    if (ok) {
        out->len -= 2; /* the brace and the newline */
        ses_buf_puts(out, ", ");
        ses_buf_append(out, text + 1, n - 1);
    }
    ses_json_writer_free(w);
    return ok && ses_buf_ok(out, e);
}

static void put_script_policy(const ses_report *r, ses_buf *out)
{
    ses_buf_puts(out, r->n_scripts ? "script-src" : "script-src 'none'");
    for (size_t i = 0; i < r->n_scripts; i++) {
        char hash[64] = { 0 };
        ses_base64_encode(r->script[i]->sha256, sizeof r->script[i]->sha256, hash);
        ses_buf_appendf(out, " 'sha256-%s'", hash);
    }
}

static void put_file(const ses_page_file *f, ses_buf *out)
{
    if (f) ses_buf_append(out, f->data, f->size);
}

bool ses_report_html(ses_report *r, const ses_report_head *h, ses_buf *out, ses_err *e)
{
    ses_buf_puts(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src "
                      "data: blob:; style-src 'unsafe-inline'; ");
    put_script_policy(r, out);
    ses_buf_puts(out, "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                      "<title>");
    ses_html_text(out, title_of(r, h));
    ses_buf_puts(out, "</title>\n<style>");
    put_file(ses_page_file_find("page.css"), out);
    ses_buf_puts(out, ses_svg_style);
    put_file(r->style, out);
    ses_buf_puts(out, "</style></head>\n<body><header><p class=\"kicker\">sesame ");
    ses_html_text(out, h->analysis);
    ses_buf_puts(out, r->title.len ? "</p><h1>" : "</p><h1 class=\"summary\">");
    ses_html_text(out, title_of(r, h));
    ses_buf_puts(out, "</h1>");
    if (h->model) {
        ses_buf_puts(out, "<p class=\"sub\">Model: ");
        ses_html_text(out, h->model);
        ses_buf_puts(out, "</p>");
    }
    ses_buf_puts(out, "</header>\n<main>\n");
    if (r->n_scripts) ses_buf_puts(out, "<div id=\"app\"></div>\n");
    ses_buf_puts(out, r->n_scripts ? "<section id=\"figures\">\n" : "<section>\n");
    put_html_figures(r, out);
    each_note(r, put_html_note, 0, out);
    ses_buf_puts(out, "</section>\n</main>\n<footer><p>Made by ");
    if (h->command) {
        ses_buf_puts(out, "<code>");
        ses_html_text(out, h->command);
        ses_buf_puts(out, "</code>, ");
    }
    ses_buf_appendf(out, "Sesame %s.</p></footer>\n", SES_VERSION);
    ses_buf_append(out, r->data.data ? r->data.data : "", r->data.len);
    for (size_t i = 0; i < r->n_scripts; i++) {
        ses_buf_puts(out, "<script>");
        put_file(r->script[i], out);
        ses_buf_puts(out, "</script>\n");
    }
    ses_buf_puts(out, "</body></html>\n");
    return ses_report_ok(r, e) && ses_buf_ok(out, e);
}
