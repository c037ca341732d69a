/* Maps of texts or of words in context: PCA, t-SNE, UMAP. */
#include "analysis.h"
#include "analysis/corpus_options.h"
#include "analysis/map/map_layout.h"
#include "analysis/map/map_page.h"
#include "analysis/map/map_points.h"
#include "base/alloc.h"
#include "base/file.h"
#include "io/input_stream.h"
#include "io/matrix.h"
#include "sesame/pipeline.h"
#include "tensor/device_impl.h"
#include "word_states.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_CLASSES = 24, WORD_SAMPLE = 5000 };

typedef struct map_args {
    const char *words, *column, *color, *vectors;
    bool texts, no_header, points_given;
    int method, pieces, encoding;
    int64_t points, neighbours, iterations;
    double perplexity, min_dist;
} map_args;

static const ses_opt opt[] = {
    SES_OPT_CHOICE(map_args, method, "method", "tsne", "pca|tsne|umap",
                   "principal components, t-SNE or UMAP"),
    SES_OPT_TEXT(map_args, words, "words", "W,...",
                 "map every occurrence of these words in its context; all: every word"),
    SES_OPT_FLAG(map_args, texts, "texts", "map the sentences of a CoNLL-U file, not its words"),
    SES_OPT_COLUMN(map_args, column, "tables: "),
    SES_OPT_ENCODING(map_args, encoding),
    SES_OPT_FLAG(map_args, no_header, "no-header", "the first line of a table is a row"),
    SES_OPT_TEXT(map_args, color, "color", "COLUMN",
                 "column that colors the points (default: upos, or the first one with few values)"),
    SES_OPT_TEXT(
        map_args, vectors, "vectors", "FILE",
        "map these vectors: .npy or a table of numbers (.tsv, .csv), each described by a row of FILE, or "
        "a file of 'sesame vectors', whose first words are mapped",
        .is_path = true),
    SES_OPT_INT(map_args, points, "points", NULL, 0, 1e9,
                "map a random sample of at most N points, of word vectors the first N (default: all texts, "
                "5000 words)",
                .value = "N", .zero_word = "all", .was_set = offsetof(map_args, points_given)),
    SES_OPT_REAL(map_args, perplexity, "perplexity", NULL, 1, 10000,
                 "t-SNE: neighbours that count (default 30, less for few points)", .value = "X"),
    SES_OPT_INT(map_args, neighbours, "neighbours", "15", 2, 1000, "UMAP: size of a neighbourhood",
                .value = "N"),
    SES_OPT_REAL(map_args, min_dist, "min-dist", "0.1", 0.001, 1, "UMAP: distance of the nearest points",
                 .value = "X"),
    SES_OPT_INT(map_args, iterations, "iterations", NULL, 1, 100000,
                "t-SNE: after the 250 with exaggeration (default 500, of few points 750); UMAP: epochs (500, "
                "or 200 beyond "
                "10000 points)",
                .value = "N"),
    SES_OPT_WORD_PIECES(map_args, pieces),
};

static const ses_usage_example examples[] = {
    { "sesame map reviews.tsv --column text --color label --html map.html", "texts, colored by a column" },
    { "sesame map corpus.conllu --layers 1,6,12 --html words.html",
      "words of a treebank by part of speech, with a slider for the layer" },
    { "sesame map corpus.txt --words bank,shore", "the occurrences of two words" },
    { "sesame map --vectors vectors.npy --method umap", "vectors from elsewhere" },
    { "sesame map --vectors word2vec.bin --points 1000", "the first 1000 words of static word vectors" },
    { NULL, NULL },
};

static const char *const method_name[] = { "PCA", "t-SNE", "UMAP" };

typedef struct map_run {
    ses_analysis_call *call;
    const map_args *a;
    ses_map_points p;
    ses_map_settings settings;
    ses_map_layout *layout;
    size_t layouts, width;
    ses_real **x; /* [layouts]: vectors [p.n, width] of each */
    ses_math math;
    size_t color;
    bool by_encoder; /* texts have the vectors of a sentence encoder */
} map_run;

/* ---- vectors ---- */

static bool make_room(map_run *r, ses_err *e)
{
    r->layout = ses_alloc_array(r->layouts, sizeof *r->layout, e);
    r->x = r->layout ? ses_alloc_array(r->layouts, sizeof *r->x, e) : NULL;
    for (size_t i = 0; r->x && i < r->layouts; i++)
        if (!(r->x[i] = ses_alloc_array(r->p.n, r->width * sizeof **r->x, e))) return false;
    return r->x != NULL;
}

static ses_map_source source_of(const map_run *r)
{
    const map_args *a = r->a;
    ses_map_source s = { .path = r->call->n_operands ? r->call->operands[0] : NULL,
                         .words = a->words,
                         .texts = a->texts,
                         .column = a->column,
                         .records = { .no_header = a->no_header, .encoding = (ses_text_encoding)a->encoding },
                         .labels_only = a->vectors != NULL,
                         .seed = r->call->seed };
    bool by_word =
        !a->texts && !a->vectors && (a->words || (s.path && ses_input_stream_has_suffix(s.path, ".conllu")));
    s.most = a->points_given ? a->points : by_word ? WORD_SAMPLE : 0;
    return s;
}

/* The name of a table or matrix of numbers, which have no words. */
static bool is_matrix_name(const char *path)
{
    static const char *const suffix[] = { ".npy", ".tsv", ".csv", ".jsonl", ".json" };
    for (size_t i = 0; i < SES_LEN(suffix); i++)
        if (ses_input_stream_has_suffix(path, suffix[i])) return true;
    return false;
}

/* The first words of a file of word vectors. */
static bool read_word_vectors(map_run *r, ses_err *e)
{
    ses_map_source s = source_of(r);
    float *x = NULL;
    if (!r->a->points_given) s.most = WORD_SAMPLE;
    ses_vectors *v = ses_vectors_open(r->a->vectors, e);
    bool ok = v && ses_vectors_read_words(v, s.most, e) &&
              (ses_vectors_count(v) > 0 || ses_fail(e, SES_EARG, "%s: no words", r->a->vectors)) &&
              ses_map_points_words(&r->p, &s, v, e);
    r->layouts = 1, r->width = ok ? (size_t)ses_vectors_dim(v) : 0;
    ok = ok && ses_map_layout_check(&r->settings, (int64_t)r->p.n, (int64_t)r->width, e) && make_room(r, e) &&
         (x = ses_alloc_array(r->width, sizeof *x, e));
    for (size_t i = 0; ok && i < r->p.n; i++) {
        ok = ses_vectors_get(v, (int64_t)i, x, e);
        for (size_t j = 0; ok && j < r->width; j++) r->x[0][i * r->width + j] = (ses_real)x[j];
    }
    if (ok) r->layout[0].layer = -1;
    ses_free(x);
    ses_vectors_free(v);
    return ok;
}

static bool read_vectors(map_run *r, ses_err *e)
{
    if (!r->call->n_operands && !is_matrix_name(r->a->vectors)) return read_word_vectors(r, e);
    ses_matrix m = { 0 };
    ses_map_source s = source_of(r);
    const char *path = r->a->vectors;
    if (!ses_matrix_read(&m, path, &(ses_records_options){ .no_header = r->a->no_header }, e)) return false;
    bool ok = m.rows > 0 || ses_fail(e, SES_EARG, "%s: no vectors; expected at least one", path);
    ok = ok && (s.path ? ses_map_points_read(&r->p, &s, e) : ses_map_points_number(&r->p, &s, m.rows, e));
    if (ok && r->p.found != m.rows)
        ok = ses_fail(e, SES_EARG, "%s has %zu vectors, %s has %zu rows; expected as many", path, m.rows,
                      s.path, r->p.found);
    r->layouts = 1, r->width = m.cols;
    ok = ok && ses_map_layout_check(&r->settings, (int64_t)r->p.n, (int64_t)m.cols, e) && make_room(r, e);
    for (size_t i = 0; ok && i < r->p.n; i++)
        for (size_t j = 0; j < m.cols; j++)
            r->x[0][i * m.cols + j] = (ses_real)m.x[r->p.point[i].row * m.cols + j];
    if (ok) r->layout[0].layer = -1;
    ses_matrix_free(&m);
    return ok;
}

typedef struct taking {
    map_run *r;
    size_t next; /* the next point */
} taking;

static bool take_states(void *ctx, const ses_state_batch *b, ses_err *e)
{
    taking *t = ctx;
    map_run *r = t->r;
    (void)e;
    for (; t->next < r->p.n && r->p.point[t->next].text < b->first_text + b->texts; t->next++) {
        const ses_map_point *p = &r->p.point[t->next];
        size_t row = b->cu_rows[p->text - b->first_text] + (p->word < 0 ? 0 : (size_t)p->word);
        for (size_t k = 0; k < r->layouts; k++)
            for (size_t j = 0; j < r->width; j++)
                r->x[k][t->next * r->width + j] = (ses_real)b->x[k][row * b->width + j];
    }
    ses_analysis_progress(r->call, "vectors", (int64_t)(b->first_text + b->texts), (int64_t)r->p.n_texts);
    return true;
}

/* Folder of a sentence encoder (modules.json): its vectors are the texts'; NULL: the model is none. */
static const char *encoder_dir(const map_run *r)
{
    const ses_analysis_call *c = r->call;
    const char *dir = c->adapter ? c->adapter : c->model_dir;
    ses_buf path = { 0 };
    if (r->p.of_words || c->layers.given) return NULL;
    ses_buf_appendf(&path, "%s/modules.json", dir);
    bool found = path.data && ses_path_exists(path.data);
    ses_buf_free(&path);
    return found ? dir : NULL;
}

static bool take_vector(void *ctx, const ses_result *v, ses_err *e)
{
    taking *t = ctx;
    map_run *r = t->r;
    if (v->n_vectors != 1 || (size_t)v->vector_size != r->width)
        return ses_fail(e, SES_EFORMAT, "the encoder gives %lld vectors of %lld columns, expected one of %zu",
                        (long long)v->n_vectors, (long long)v->vector_size, r->width);
    for (; t->next < r->p.n && r->p.point[t->next].text == (size_t)v->item->number; t->next++)
        for (size_t j = 0; j < r->width; j++) r->x[0][t->next * r->width + j] = (ses_real)v->vectors[j];
    ses_analysis_progress(r->call, "vectors", v->item->number + 1, (int64_t)r->p.n_texts);
    return true;
}

/* Texts by a sentence encoder, as `sesame embed` computes them. */
static bool embed(map_run *r, const char *dir, ses_err *e)
{
    const ses_analysis_call *c = r->call;
    ses_pipeline_options o = { .base_model = c->adapter ? c->model_dir : NULL };
    ses_pipeline *p = ses_pipeline_open_with("embed", dir, c->dev, &o, e);
    if (!p) return false;
    r->layouts = 1, r->by_encoder = true;
    r->width = (size_t)ses_sentence_width(ses_pipeline_encoder(p));
    taking t = { r, 0 };
    ses_pipeline_set_callback(p, take_vector, &t);
    bool ok = ses_map_layout_check(&r->settings, (int64_t)r->p.n, (int64_t)r->width, e) && make_room(r, e);
    if (ok) r->layout[0].layer = -1;
    for (size_t i = 0; ok && i < r->p.n_texts; i++) {
        ses_item item = { .text = ses_str(r->p.plain[i]), .number = (int64_t)i };
        ok = ses_pipeline_feed(p, &item, e) || ses_wrap(e, "text %zu", i + 1);
    }
    ok = ok && ses_pipeline_flush(p, e);
    ses_pipeline_stats stats = ses_pipeline_get_stats(p);
    if (ok && stats.truncated)
        ses_report_note(c->report, "%lld texts are longer than the encoder reads; their rest was left out.",
                        (long long)stats.truncated);
    ses_pipeline_free(p);
    return ok;
}

/* The mean of tokens, or words in context, in each layer. */
static bool read_states(map_run *r, ses_err *e)
{
    const ses_analysis_call *c = r->call;
    int64_t layer[SES_LAYER_SET_MAX];
    r->width = (size_t)ses_word_states_width(c->model, false);
    if (!ses_map_layout_check(&r->settings, (int64_t)r->p.n, (int64_t)r->width, e)) return false;
    r->layouts = c->layers.given ? (size_t)ses_layer_set_count(&c->layers) : 1;
    for (size_t i = 0; i < r->layouts; i++)
        layer[i] = c->layers.given ? ses_layer_set_at(&c->layers, (int64_t)i)
                                   : ses_word_states_depth(c->model, false);
    if (!make_room(r, e)) return false;
    for (size_t i = 0; i < r->layouts; i++) r->layout[i].layer = layer[i];
    ses_word_states_options o = { .unit = r->p.of_words ? SES_STATES_OF_WORDS : SES_STATES_TEXT_MEAN,
                                  .first_piece = r->a->pieces == 1,
                                  .layers = layer,
                                  .n_layers = r->layouts };
    taking t = { r, 0 };
    return ses_word_states_run(c->model, c->tokenizer, r->p.text, r->p.n_texts, &o, take_states, &t, e);
}

static bool compute_vectors(map_run *r, ses_err *e)
{
    ses_map_source s = source_of(r);
    if (!s.path) return ses_fail(e, SES_EUSAGE, "missing argument: FILE, or --vectors FILE");
    if (!ses_map_points_read(&r->p, &s, e)) return false;
    const char *dir = encoder_dir(r);
    return dir ? embed(r, dir, e) : read_states(r, e);
}

/* ---- report ---- */

/* Distinct values of a column; more than MAX_CLASSES: not counted further. */
static size_t count_values(const ses_map_column *c, size_t n)
{
    const char *seen[MAX_CLASSES];
    size_t count = 0;
    for (size_t i = 0; i < n && count <= MAX_CLASSES; i++) {
        size_t k = 0;
        while (k < count && strcmp(seen[k], c->value[i]) != 0) k++;
        if (k < count) continue;
        if (count < MAX_CLASSES) seen[count] = c->value[i];
        count++;
    }
    return count;
}

static bool choose_color(map_run *r, ses_err *e)
{
    const ses_map_points *p = &r->p;
    r->color = p->n_columns;
    if (r->a->color) return ses_map_points_column(p, r->a->color, &r->color, e);
    for (size_t c = 0; c < p->n_columns; c++) {
        size_t values = count_values(&p->column[c], p->n);
        if (values < 2 || values > MAX_CLASSES) continue;
        bool better = r->color == p->n_columns || !strcmp(p->column[c].name, "upos");
        if (better) r->color = c;
    }
    return true;
}

static void put_layout(ses_json_writer *w, const map_run *r, const ses_map_layout *l)
{
    ses_json_begin_object(w);
    if (l->layer >= 0) ses_json_member_int(w, "layer", l->layer);
    if (r->settings.method == SES_MAP_TSNE) {
        ses_json_member_real(w, "kl", l->kl);
        ses_json_member_real(w, "perplexity", l->perplexity);
        ses_json_member_string(w, "repulsion", l->repulsion);
    }
    if (r->settings.method == SES_MAP_PCA) ses_json_member_real(w, "explained_variance", l->explained);
    ses_json_member_int(w, "neighbours", l->quality.neighbours);
    ses_json_member_int(w, "measured_points", l->quality.queries);
    ses_json_member_real(w, "trustworthiness", l->quality.neighbours ? l->quality.trustworthiness : NAN);
    ses_json_member_real(w, "recall", l->quality.neighbours ? l->quality.recall : NAN);
    for (int axis = 0; axis < 2; axis++) {
        ses_json_member_array(w, axis ? "y" : "x");
        for (size_t i = 0; i < r->p.n; i++) ses_json_put_float(w, (float)(axis ? l->y : l->x)[i]);
        ses_json_end_array(w);
    }
    ses_json_end_object(w);
}

static void put_strings(ses_json_writer *w, const char *key, const char *const *s, size_t n)
{
    ses_json_member_array(w, key);
    for (size_t i = 0; i < n; i++) ses_json_put_string(w, s[i]);
    ses_json_end_array(w);
}

/* The kind of a point's vector. */
static const char *vectors_name(const map_run *r)
{
    if (r->by_encoder) return "sentence encoder (modules.json)";
    return r->p.of_words && r->a->pieces == 1 ? "first token" : "mean of tokens";
}

static void put_result(const map_run *r)
{
    ses_json_writer *w = ses_report_json(r->call->report);
    ses_json_begin_object(w);
    ses_json_member_string(w, "method", method_name[r->settings.method]);
    ses_json_member_string(w, "unit", r->p.of_words ? "word" : "text");
    if (!r->a->vectors) ses_json_member_string(w, "vectors", vectors_name(r));
    ses_json_member_uint(w, "points", r->p.n);
    ses_json_member_uint(w, "found", r->p.found);
    ses_json_member_string(w, "color", r->color < r->p.n_columns ? r->p.column[r->color].name : NULL);
    ses_json_member_array(w, "layouts");
    for (size_t i = 0; i < r->layouts; i++) put_layout(w, r, &r->layout[i]);
    ses_json_end_array(w);
    put_strings(w, "label", (const char *const *)r->p.label, r->p.n);
    ses_json_member_object(w, "columns");
    for (size_t c = 0; c < r->p.n_columns; c++)
        put_strings(w, r->p.column[c].name, (const char *const *)r->p.column[c].value, r->p.n);
    ses_json_end_object(w);
    ses_json_end_object(w);
}

static void put_number(ses_figure *f, double v, const char *fmt)
{
    if (isnan(v))
        ses_figure_cell(f, "-");
    else if (!strcmp(fmt, "%"))
        ses_figure_cell(f, "%.1f %%", 100 * v);
    else
        ses_figure_cell(f, "%.4f", v);
}

static void put_quality(const map_run *r)
{
    bool is_pca = r->settings.method == SES_MAP_PCA, is_tsne = r->settings.method == SES_MAP_TSNE;
    ses_figure *f = ses_report_table(r->call->report, "",
                                     is_pca    ? ">layer|>points|>variance|>trustworthiness|>recall"
                                     : is_tsne ? ">layer|>points|>KL|>trustworthiness|>recall"
                                               : ">layer|>points|>trustworthiness|>recall");
    for (size_t i = 0; i < r->layouts; i++) {
        const ses_map_layout *l = &r->layout[i];
        if (l->layer < 0)
            ses_figure_cell(f, "-");
        else
            ses_figure_cell(f, "%lld", (long long)l->layer);
        ses_figure_cell(f, "%zu", r->p.n);
        if (is_pca) put_number(f, l->explained, "%");
        if (is_tsne) put_number(f, l->kl, "");
        put_number(f, l->quality.neighbours ? l->quality.trustworthiness : NAN, "");
        put_number(f, l->quality.neighbours ? l->quality.recall : NAN, "%");
    }
}

static void put_notes(const map_run *r)
{
    const ses_map_layout *l = &r->layout[0];
    ses_report *to = r->call->report;
    if (r->by_encoder)
        ses_report_note(to, "A text has the vector of the sentence encoder (modules.json); --layers uses the "
                            "mean of all its tokens.");
    else if (!r->a->vectors && !r->p.of_words)
        ses_report_note(to, "A text is the mean of all its tokens, with special tokens%s.",
                        r->layouts > 1  ? " in each layer"
                        : l->layer == 0 ? " in the embeddings"
                                        : "");
    if (l->quality.neighbours)
        ses_report_note(to,
                        "Recall: how many of the %d nearest neighbours of a vector are among the %d nearest "
                        "in the map.",
                        (int)l->quality.neighbours, (int)l->quality.neighbours);
    if (l->quality.queries && (size_t)l->quality.queries < r->p.n)
        ses_report_note(to, "Trustworthiness and recall are measured on a random sample of %d points.",
                        (int)l->quality.queries);
    if (r->p.n < r->p.found)
        ses_report_note(to, "A random sample of %zu of %zu points; --points changes it.", r->p.n, r->p.found);
    if (r->settings.method == SES_MAP_TSNE && r->width > SES_MAP_COLUMNS)
        ses_report_note(to, "KL compares the map with the vectors after PCA to %d columns.", SES_MAP_COLUMNS);
    if (r->settings.method == SES_MAP_TSNE && r->settings.perplexity == 0 && l->perplexity < 30)
        ses_report_note(to, "The perplexity is %.3g, because there are %zu points.", l->perplexity, r->p.n);
    if (r->layouts > 1)
        ses_report_note(to, "The picture shows layer %d; the page shows all %zu layers.",
                        (int)r->layout[r->layouts - 1].layer, r->layouts);
}

static bool write_report(map_run *r, ses_err *e)
{
    const ses_map_layout *last = &r->layout[r->layouts - 1];
    const char *unit = r->a->vectors   ? "vectors"
                       : r->p.of_words ? "words"
                                       : "texts",
               *method = method_name[r->settings.method];
    char title[160], by[80] = "";
    if (r->color < r->p.n_columns) snprintf(by, sizeof by, ", colored by %.40s", r->p.column[r->color].name);
    snprintf(title, sizeof title, "%s of %zu %s%s", method, r->p.n, unit, by);
    ses_report_set_title(r->call->report, "Map of %zu %s by %s", r->p.n, unit, method);
    ses_figure_points points = {
        .n = (int64_t)r->p.n,
        .x = last->x,
        .y = last->y,
        .label = (const char *const *)r->p.label,
        .group = r->color < r->p.n_columns ? (const char *const *)r->p.column[r->color].value : NULL,
        .has_page = true,
    };
    ses_report_scatter(r->call->report, title, &points);
    put_quality(r);
    put_notes(r);
    put_result(r);
    return ses_map_page_add(r->call->report, &r->p, r->layout, r->layouts, r->color, method, e);
}

static void free_run(map_run *r)
{
    for (size_t i = 0; i < r->layouts; i++) {
        if (r->x) ses_free(r->x[i]);
        if (r->layout) ses_map_layout_free(&r->layout[i]);
    }
    ses_free(r->x);
    ses_free(r->layout);
    ses_map_points_free(&r->p);
}

static bool needs_no_model(const void *args) { return ((const map_args *)args)->vectors != NULL; }

static bool run(ses_analysis_call *call, ses_err *e)
{
    const map_args *a = call->args;
    map_run r = { .call = call, .a = a };
    r.settings = (ses_map_settings){ .method = (ses_map_method)a->method,
                                     .perplexity = a->perplexity,
                                     .neighbours = a->neighbours,
                                     .min_dist = a->min_dist,
                                     .iterations = a->iterations,
                                     .seed = call->seed };
    int threads = call->dev->exec.pool ? ses_thread_pool_size(call->dev->exec.pool) : 0;
    bool ok = (a->vectors ? read_vectors : compute_vectors)(&r, e) && choose_color(&r, e) &&
              ses_math_open(&r.math, threads, e);
    r.math.progress = call->progress;
    r.math.progress_ctx = call->progress_ctx;
    for (size_t i = 0; ok && i < r.layouts; i++) {
        ok = ses_map_layout_make(&r.layout[i], &r.math, r.x[i], (int64_t)r.p.n, (int64_t)r.width, &r.settings,
                                 e);
        if (ok && i && a->method != SES_MAP_PCA)
            ses_map_layout_align(&r.layout[i], &r.layout[i - 1], (int64_t)r.p.n);
    }
    ok = ok && write_report(&r, e);
    if (r.math.exec.pool) ses_math_close(&r.math);
    free_run(&r);
    return ok;
}

const ses_analysis ses_analysis_map = {
    .operands = "[FILE]",
    .description =
        "Draws texts, or words in their contexts, as points: near points have similar vectors. A text has "
        "the vector of the model if it is a sentence encoder (modules.json); else, and with --layers, it is "
        "the mean of all its tokens, with special tokens, in the last layer, or in each of --layers, as of "
        "features --pool mean.\n\n"
        "FILE has one text per line, or is a table (TSV, CSV, JSON lines) with a column of texts, or a "
        "CoNLL-U "
        "file, of which every word is a point. --words finds words in any of them. Every other column can "
        "color the points. The page has zoom, search, selection with a lasso, a choice of colors, and a "
        "slider "
        "for the layer.\n\n"
        "KL is t-SNE's divergence between the vectors, after PCA to 50 columns, and the map: of at most 500 "
        "points over all pairs, as scikit-learn's exact method, else over 3 * perplexity neighbours. "
        "Trustworthiness and recall (of 10 neighbours) tell how well the map keeps "
        "neighbourhoods: 1 is best.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(map_args),
    .max_operands = 1,
    .default_model_of = "features",
    .model = SES_ANALYSIS_HIDDEN_STATES,
    .needs_no_model = needs_no_model,
    .run = run,
};
