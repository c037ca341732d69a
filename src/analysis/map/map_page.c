/* Writes labels, columns and positions for the map page. */
#include "analysis/map/map_page.h"

#include "base/alloc.h"
#include "base/base64.h"
#include "base/strmap.h"

#include <math.h>
#include <string.h>

enum { MAX_LABEL = 300, MAX_TEXT = 2000 };

/* s, truncated to about `most` <= MAX_TEXT bytes. */
static void put_text(ses_json_writer *w, const char *s, size_t most)
{
    size_t n = strlen(s);
    char part[MAX_TEXT + 4];
    if (n <= most) {
        ses_json_put_string(w, s);
        return;
    }
    n = most;
    while (n && ((unsigned char)s[n] & 0xC0) == 0x80) n--;
    memcpy(part, s, n);
    memcpy(part + n, "\xE2\x80\xA6", 4);
    ses_json_put_string(w, part);
}

/* Length of the first n bytes of s in UTF-16, which scripts count. */
static int64_t utf16_units(const char *s, size_t n)
{
    int64_t units = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        units += ((c & 0xC0) != 0x80) + (c >= 0xF0);
    }
    return units;
}

/* {"name", "values": distinct ones, "of": index for each point} */
static bool put_column(ses_json_writer *w, const ses_map_column *c, size_t n, ses_err *e)
{
    ses_strmap map = { 0 };
    bool ok = true;
    ses_json_begin_object(w);
    ses_json_member_string(w, "name", c->name);
    ses_json_member_array(w, "of");
    for (size_t i = 0; ok && i < n; i++) {
        bool fresh;
        int64_t *at =
            ses_strmap_insert(&map, c->value[i], strlen(c->value[i]), (int64_t)map.count, &fresh, e);
        ok = at != NULL;
        if (ok) ses_json_put_int(w, *at);
    }
    ses_json_end_array(w);
    ses_json_member_array(w, "values");
    for (size_t i = 0; ok && i < map.count; i++) put_text(w, map.entry[i].key, MAX_LABEL);
    ses_json_end_array(w);
    ses_json_end_object(w);
    ses_strmap_free(&map);
    return ok;
}

/* Positions as little-endian u16 x, y in base64, with one scale for both axes. */
static bool put_positions(ses_json_writer *w, const ses_map_layout *l, size_t n, ses_err *e)
{
    double low_x = INFINITY, low_y = INFINITY, side = 0;
    size_t size = ses_base64_encoded_size(4 * n);
    unsigned char *bytes = ses_alloc_array(n, 4, e);
    char *text = bytes ? ses_alloc(size + 1, e) : NULL;
    if (!text) return ses_free(bytes), false;
    for (size_t i = 0; i < n; i++) low_x = fmin(low_x, l->x[i]), low_y = fmin(low_y, l->y[i]);
    for (size_t i = 0; i < n; i++) side = fmax(side, fmax(l->x[i] - low_x, l->y[i] - low_y));
    for (size_t i = 0; i < n; i++) {
        unsigned u = side > 0 ? (unsigned)((l->x[i] - low_x) / side * 65535 + 0.5) : 0;
        unsigned v = side > 0 ? (unsigned)((l->y[i] - low_y) / side * 65535 + 0.5) : 0;
        bytes[4 * i] = (unsigned char)u, bytes[4 * i + 1] = (unsigned char)(u >> 8);
        bytes[4 * i + 2] = (unsigned char)v, bytes[4 * i + 3] = (unsigned char)(v >> 8);
    }
    ses_base64_encode(bytes, 4 * n, text);
    ses_json_member_stringn(w, "at", text, size);
    ses_json_put_key(w, "from");
    ses_json_begin_array(w);
    ses_json_put_real(w, low_x), ses_json_put_real(w, low_y), ses_json_put_real(w, side);
    ses_json_end_array(w);
    ses_free(bytes);
    ses_free(text);
    return true;
}

static bool put_layout(ses_json_writer *w, const ses_map_layout *l, size_t n, ses_err *e)
{
    ses_json_begin_object(w);
    if (l->layer >= 0) ses_json_member_int(w, "layer", l->layer);
    ses_json_member_real(w, "kl", l->kl);
    ses_json_member_real(w, "explained", l->explained);
    ses_json_member_real(w, "trustworthiness", l->quality.neighbours ? l->quality.trustworthiness : NAN);
    ses_json_member_real(w, "recall", l->quality.neighbours ? l->quality.recall : NAN);
    ses_json_member_int(w, "neighbours", l->quality.neighbours);
    bool ok = put_positions(w, l, n, e);
    ses_json_end_object(w);
    return ok;
}

bool ses_map_page_add(ses_report *r, const ses_map_points *p, const ses_map_layout *l, size_t layouts,
                      size_t color, const char *method, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    bool ok = w != NULL;
    if (!ok) return false;
    ses_json_begin_object(w);
    ses_json_member_string(w, "method", method);
    ses_json_member_string(w, "unit", p->of_words ? "word" : "text");
    ses_json_member_int(w, "color", color < p->n_columns ? (int64_t)color : -1);
    ses_json_member_array(w, "label");
    for (size_t i = 0; i < p->n; i++) put_text(w, p->label[i], MAX_LABEL);
    ses_json_end_array(w);
    if (p->of_words) { /* the sentence of each word */
        ses_json_member_array(w, "text");
        for (size_t i = 0; i < p->n_texts; i++) put_text(w, p->plain[i], MAX_TEXT);
        ses_json_end_array(w);
        ses_json_member_array(w, "of");
        for (size_t i = 0; i < p->n; i++) ses_json_put_int(w, (int64_t)p->point[i].text);
        ses_json_end_array(w);
        ses_json_member_array(w, "begin");
        for (size_t i = 0; i < p->n; i++)
            ses_json_put_int(w, utf16_units(p->plain[p->point[i].text], p->point[i].begin));
        ses_json_end_array(w);
    }
    ses_json_member_array(w, "columns");
    for (size_t c = 0; ok && c < p->n_columns; c++) ok = put_column(w, &p->column[c], p->n, e);
    ses_json_end_array(w);
    ses_json_member_array(w, "layouts");
    for (size_t i = 0; ok && i < layouts; i++) ok = put_layout(w, &l[i], p->n, e);
    ses_json_end_array(w);
    ses_json_end_object(w);
    size_t n = 0;
    const char *text = ok ? ses_json_writer_text(w, &n, e) : NULL;
    if (text) {
        ses_report_page(r, "page_dom.js", NULL);
        ses_report_page(r, "map_data.js", "map.css");
        ses_report_page(r, "map_draw.js", NULL);
        ses_report_page(r, "map.js", NULL);
        ses_report_page_data(r, "map", text, n);
    }
    ses_json_writer_free(w);
    return text != NULL;
}
