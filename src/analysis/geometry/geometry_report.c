/* Figures and JSON of `sesame geometry`. */
#include "geometry.h"

#include "base/alloc.h"
#include "base/file.h"

#include <math.h>
#include <stdio.h>

/* A word in brackets among its neighbours in the text. */
static void put_context(const ses_geometry *g, size_t at, ses_buf *out)
{
    enum { AROUND = 4 };
    const ses_corpus_words *w = &g->words;
    size_t t = w->word[at].text, first = w->cu_texts[t], end = w->cu_texts[t + 1];
    size_t from = at < first + AROUND ? first : at - AROUND;
    size_t to = at + AROUND + 1 < end ? at + AROUND + 1 : end;
    if (from > first) ses_buf_puts(out, "... ");
    for (size_t i = from; i < to; i++) {
        ses_string s = w->word[i].form;
        if (i > from) ses_buf_put(out, ' ');
        ses_buf_appendf(out, i == at ? "[%.*s]" : "%.*s", (int)s.n, s.p);
    }
    if (to < end) ses_buf_puts(out, " ...");
}

static void put_near_list(const ses_geometry *g, size_t k, ses_buf *out)
{
    for (size_t i = 0; i < g->n_near; i++) {
        const ses_near *x = &g->near[k * (size_t)g->a->top_k + i];
        ses_string s = g->words.word[x->index].form;
        ses_buf_appendf(out, "%s%.*s %.2f", i ? ", " : "", (int)s.n, s.p, x->cosine);
    }
}

static bool report_nearest(const ses_geometry *g, ses_err *e)
{
    ses_report *r = g->call->report;
    ses_buf s = { 0 };
    if (!g->a->nearest) return true;
    put_context(g, g->target, &s);
    ses_figure *f = ses_report_table(r, s.data ? s.data : "", "layer|nearest words, with their cosine");
    if (g->n_still) {
        s.len = 0;
        for (size_t i = 0; i < g->n_still; i++)
            ses_buf_appendf(&s, "%s%s %.2f", i ? ", " : "", g->still[i].word, g->still[i].cosine);
        ses_figure_cell(f, "static");
        ses_figure_cell(f, "%s", s.data ? s.data : "");
    }
    for (size_t k = 0; k < g->words.n_layers; k++) {
        s.len = 0;
        put_near_list(g, k, &s);
        ses_figure_cell(f, "%lld", (long long)g->words.layer[k]);
        ses_figure_cell(f, "%s", s.len ? s.data : "");
    }
    size_t last = g->words.n_layers - 1;
    f = ses_report_table(r, "In context, last layer", ">cosine|text");
    for (size_t i = 0; i < g->n_near; i++) {
        const ses_near *x = &g->near[last * (size_t)g->a->top_k + i];
        s.len = 0;
        put_context(g, x->index, &s);
        ses_figure_cell(f, "%.3f", x->cosine);
        ses_figure_cell(f, "%s", s.len ? s.data : "");
    }
    bool ok = ses_buf_ok(&s, e);
    ses_buf_free(&s);
    return ok;
}

/* ---- measures and CKA ---- */

static void report_measures(const ses_geometry *g)
{
    const ses_geometry_measures *m = g->m;
    ses_report *r = g->call->report;
    ses_figure *f =
        ses_report_table(r, "Similarity of word vectors by layer",
                         ">layer|>anisotropy|>self-similarity|>adjusted|>intra-sentence|>adjusted|"
                         ">MEV|>adjusted");
    for (size_t k = 0; k < g->words.n_layers; k++) {
        ses_figure_cell(f, "%lld", (long long)g->words.layer[k]);
        const double x[] = { m[k].anisotropy,
                             m[k].self_similarity,
                             m[k].self_similarity - m[k].anisotropy,
                             m[k].intra,
                             m[k].intra - m[k].anisotropy,
                             m[k].mev,
                             m[k].mev - m[k].mev_baseline };
        for (size_t i = 0; i < SES_LEN(x); i++) ses_figure_cell(f, isnan(x[i]) ? "-" : "%.3f", x[i]);
    }
}

static bool report_curves(const ses_geometry *g, ses_err *e)
{
    static const char *const name[] = { "anisotropy", "self-similarity", "intra-sentence similarity", "MEV" };
    size_t n = g->words.n_layers;
    double *x = ses_alloc_array(2 * n, sizeof *x, e), *y = x + n;
    if (!x || n < 2) return ses_free(x), x != NULL;
    ses_figure *f =
        ses_report_lines(g->call->report, "Adjusted measures by layer", "layer", "cosine, share of variance");
    for (size_t s = 0; s < SES_LEN(name); s++) {
        for (size_t k = 0; k < n; k++) {
            const ses_geometry_measures *m = &g->m[k];
            const double value[] = { m->anisotropy, m->self_similarity - m->anisotropy,
                                     m->intra - m->anisotropy, m->mev - m->mev_baseline };
            x[k] = (double)g->words.layer[k];
            y[k] = value[s];
        }
        ses_figure_line(
            f, &(ses_figure_series){ .name = name[s], .dashed = !s, .n = (int64_t)n, .x = x, .y = y });
    }
    ses_free(x);
    return true;
}

/* The block of the matrix that is drawn: layers against layers of the same or of the other
 * model. */
static bool report_cka(const ses_geometry *g, ses_err *e)
{
    size_t rows = g->words.n_layers, all = rows + g->like.n_layers, first = g->a->like ? rows : 0;
    size_t cols = g->a->like ? g->like.n_layers : rows;
    ses_path_name like = ses_path_name_of(g->a->like ? g->a->like : "");
    float *value = ses_alloc_array(rows * cols, sizeof *value, e);
    char(*text)[16] = value ? ses_alloc_array(rows + cols, sizeof *text, e) : NULL;
    const char **name = text ? ses_alloc_array(rows + cols, sizeof *name, e) : NULL;
    for (size_t i = 0; name && i < rows + cols; i++) {
        int64_t layer = i < rows     ? g->words.layer[i]
                        : g->a->like ? g->like.layer[i - rows]
                                     : g->words.layer[i - rows];
        snprintf(text[i], sizeof text[i], "%lld", (long long)layer);
        name[i] = text[i];
    }
    for (size_t i = 0; name && i < rows; i++)
        for (size_t j = 0; j < cols; j++) value[i * cols + j] = (float)g->matrix[i * all + first + j];
    if (name)
        ses_report_heatmap(g->call->report, g->a->debiased ? "Debiased linear CKA" : "Linear CKA",
                           &(ses_figure_matrix){ .rows = (int64_t)rows,
                                                 .cols = (int64_t)cols,
                                                 .value = value,
                                                 .row_name = name,
                                                 .col_name = name + rows,
                                                 .row_label = "layer",
                                                 .col_label = g->a->like ? like.s : "layer",
                                                 .scale = SES_SCALE_UNIT });
    bool ok = name != NULL;
    ses_free(value), ses_free(text), ses_free((void *)name);
    return ok;
}

/* ---- JSON ---- */

static void put_layers(const ses_geometry *g, ses_json_writer *w)
{
    ses_json_member_array(w, "layers");
    for (size_t k = 0; k < g->words.n_layers; k++) {
        const ses_geometry_measures *m = &g->m[k];
        ses_json_begin_object(w);
        ses_json_member_int(w, "layer", g->words.layer[k]);
        ses_json_member_real(w, "anisotropy", m->anisotropy);
        ses_json_member_real(w, "self_similarity", m->self_similarity);
        ses_json_member_real(w, "self_similarity_adjusted", m->self_similarity - m->anisotropy);
        ses_json_member_real(w, "intra_sentence_similarity", m->intra);
        ses_json_member_real(w, "intra_sentence_similarity_adjusted", m->intra - m->anisotropy);
        ses_json_member_real(w, "mev", m->mev);
        ses_json_member_real(w, "mev_baseline", m->mev_baseline);
        ses_json_member_real(w, "mev_adjusted", m->mev - m->mev_baseline);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
}

static void put_cka(const ses_geometry *g, ses_json_writer *w)
{
    size_t rows = g->words.n_layers, all = rows + g->like.n_layers, first = g->a->like ? rows : 0;
    ses_json_member_object(w, "cka");
    ses_json_member_bool(w, "debiased", g->a->debiased);
    ses_json_member_array(w, "words");
    for (size_t i = 0; i < g->n_sample; i++) ses_json_put_uint(w, g->sample[i]);
    ses_json_end_array(w);
    ses_json_member_array(w, "matrix");
    for (size_t i = 0; i < rows; i++) {
        ses_json_begin_array(w);
        for (size_t j = first; j < (g->a->like ? all : rows); j++)
            ses_json_put_real(w, g->matrix[i * all + j]);
        ses_json_end_array(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
}

static void put_near(const ses_geometry *g, size_t k, ses_json_writer *w)
{
    ses_buf s = { 0 };
    ses_json_begin_object(w);
    ses_json_member_int(w, "layer", g->words.layer[k]);
    ses_json_member_array(w, "words");
    for (size_t i = 0; i < g->n_near; i++) {
        const ses_near *x = &g->near[k * (size_t)g->a->top_k + i];
        const ses_corpus_word *word = &g->words.word[x->index];
        s.len = 0;
        put_context(g, x->index, &s);
        ses_json_begin_object(w);
        ses_json_member_stringn(w, "word", word->form.p, word->form.n);
        ses_json_member_real(w, "cosine", x->cosine);
        ses_json_member_uint(w, "line", g->file.line[word->text]);
        ses_json_member_uint(w, "index", x->index);
        ses_json_member_string(w, "context", s.data);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
    ses_buf_free(&s);
}

static void put_nearest(const ses_geometry *g, ses_json_writer *w)
{
    if (!g->a->nearest) return;
    ses_json_member_object(w, "nearest");
    ses_json_member_string(w, "word", g->a->nearest);
    ses_json_member_uint(w, "line", g->file.line[g->words.word[g->target].text]);
    ses_json_member_uint(w, "index", g->target);
    ses_json_member_uint(w, "occurrences", g->target_of);
    ses_json_member_array(w, "layers");
    for (size_t k = 0; k < g->words.n_layers; k++) put_near(g, k, w);
    ses_json_end_array(w);
    if (g->a->vectors) ses_json_member_array(w, "static");
    for (size_t i = 0; i < g->n_still; i++) {
        ses_json_begin_object(w);
        ses_json_member_string(w, "word", g->still[i].word);
        ses_json_member_real(w, "cosine", g->still[i].cosine);
        ses_json_end_object(w);
    }
    if (g->a->vectors) ses_json_end_array(w);
    ses_json_end_object(w);
}

static void put_result(const ses_geometry *g)
{
    ses_json_writer *w = ses_report_json(g->call->report);
    ses_json_begin_object(w);
    ses_json_member_uint(w, "texts", g->file.n);
    ses_json_member_uint(w, "words", g->words.n);
    ses_json_member_uint(w, "forms", g->words.types.count);
    ses_json_member_uint(w, "frequent_forms", g->types);
    put_layers(g, w);
    put_cka(g, w);
    put_nearest(g, w);
    ses_json_member_array(w, "pairs"); /* the random words of the baselines */
    for (size_t i = 0; i < 2 * g->n_pairs; i++) ses_json_put_uint(w, g->pair[i]);
    ses_json_end_array(w);
    ses_json_end_object(w);
}

bool ses_geometry_report(const ses_geometry *g, ses_err *e)
{
    report_measures(g);
    put_result(g);
    return report_curves(g, e) && report_cka(g, e) && report_nearest(g, e);
}
