/* heads: statistics of every head over a corpus, and distances between heads. */
#include "analysis.h"
#include "analysis/heads/attention_corpus.h"
#include "analysis/heads/head_distance.h"
#include "analysis/heads/head_syntax.h"
#include "base/alloc.h"
#include "base/thread_pool.h"
#include "corpus_options.h"
#include "io/input_stream.h"
#include "text_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct heads_args {
    const char *column, *target_column;
    int encoding;
    int64_t max_texts, max_seq_len, distance_texts, min_cases;
    bool skip_invalid, decoder, cross;
} heads_args;

static const ses_opt opt[] = {
    SES_OPT_COLUMN(heads_args, column, "tables: "),
    SES_OPT_ENCODING(heads_args, encoding),
    SES_OPT_DECODER(heads_args, decoder),
    SES_OPT_FLAG(heads_args, cross, "cross",
                 "encoder-decoders: cross attention, from the decoder to the encoder"),
    SES_OPT_TARGET_COLUMN(heads_args, target_column),
    SES_OPT_MAX_TEXTS(heads_args, max_texts, "", "all"),
    SES_OPT_MAX_SEQ_LEN(heads_args, max_seq_len, ", at most 512"),
    SES_OPT_INT(heads_args, distance_texts, "distance-texts", "200", 0, 1e9,
                "compute distances between heads on the first N texts; 0: no distances", .value = "N"),
    SES_OPT_INT(heads_args, min_cases, "min-cases", "100", 1, 1e9,
                "CoNLL-U: show dependency relations with at least N cases", .value = "N"),
    SES_OPT_SKIP_INVALID(heads_args, skip_invalid),
};

static const ses_usage_example examples[] = {
    { "sesame heads corpus.txt", "what each head attends to, and a map of the heads" },
    { "sesame heads corpus.txt --json", "all numbers" },
    { "sesame heads en_ewt-ud-dev.conllu", "the best head for each dependency relation, too" },
    { 0 },
};

/* ---- the corpus ---- */

typedef struct totals {
    const ses_analysis_call *call;
    const heads_args *a;
    const ses_math *math;
    int64_t layers, *first; /* [layers + 1]: number of a layer's first head among all */
    ses_head_stats *stats;  /* [heads of all layers] */
    ses_head_distance distance;
    ses_treebank trees; /* CoNLL-U */
    ses_head_syntax syntax;
    int64_t texts, tokens, truncated, distance_texts;
    bool causal;
} totals;

static int64_t head_count(const totals *x) { return x->first[x->layers]; }

static bool begin(totals *x, const ses_attention_text *t, ses_err *e)
{
    x->layers = t->layers, x->causal = t->causal;
    x->first = ses_alloc_array((size_t)t->layers + 1, sizeof *x->first, e);
    if (!x->first) return false;
    for (int64_t i = 0; i < t->layers; i++) x->first[i + 1] = x->first[i] + t->heads[i];
    x->stats = ses_alloc_array((size_t)head_count(x), sizeof *x->stats, e);
    return x->stats && ses_head_distance_init(&x->distance, head_count(x), e);
}

typedef struct text_stats {
    totals *x;
    const ses_attention_text *t;
} text_stats;

static void add_layer(void *ctx, int64_t layer, void *scratch)
{
    const text_stats *s = ctx;
    const ses_attention_text *t = s->t;
    (void)scratch;
    for (int64_t h = 0; h < t->heads[layer]; h++)
        ses_head_stats_add(&s->x->stats[s->x->first[layer] + h], t->weight[layer] + h * t->n * t->keys, t->n,
                           t->keys, t->kind, t->key_kind, t->square, t->causal);
}

static bool take(void *ctx, const ses_attention_text *t, ses_err *e)
{
    totals *x = ctx;
    if (!x->stats && !begin(x, t, e)) return false;
    x->texts++, x->tokens += t->n, x->truncated += t->truncated;
    ses_parallel_for(x->math->exec.pool, t->layers, add_layer, &(text_stats){ x, t });
    if (x->trees.n && !ses_head_syntax_add(&x->syntax, t, e)) return false;
    if (x->distance_texts >= x->a->distance_texts) return true;
    x->distance_texts++;
    return ses_head_distance_add(&x->distance, t, x->math, e);
}

static void show_progress(void *ctx, int64_t done, int64_t total)
{
    ses_analysis_progress(ctx, "Texts", done, total);
}

/* ---- JSON ---- */

static ses_part part_of(const heads_args *a)
{
    return a->cross ? SES_PART_CROSS : a->decoder ? SES_PART_DECODER : SES_PART_MAIN;
}

static bool is_chosen(const totals *x, int64_t layer)
{
    return !x->call->layers.given || ses_layer_set_has(&x->call->layers, layer + 1);
}

static void put_head(ses_json_writer *w, const ses_head_stats *s, int64_t layer, int64_t head)
{
    ses_json_begin_object(w);
    ses_json_member_int(w, "layer", layer + 1);
    ses_json_member_int(w, "head", head + 1);
    for (int p = 0; p < SES_ATTENDED_COUNT; p++)
        ses_json_member_real(w, ses_attended_name((ses_attended)p), ses_head_stats_mean(s, (ses_attended)p));
    ses_json_member_real(w, "entropy", ses_head_stats_entropy(s));
    ses_json_member_real(w, "max_entropy", s->rows ? s->max_entropy / (double)s->rows : 0);
    ses_json_member_string(w, "label", ses_head_stats_label(s));
    ses_json_end_object(w);
}

static void put_distances(const totals *x, ses_json_writer *w, const double *px, const double *py)
{
    int64_t n = head_count(x);
    ses_json_member_object(w, "distance");
    ses_json_member_int(w, "texts", x->distance_texts);
    ses_json_member_int(w, "rows", x->distance.rows);
    ses_json_member_array(w, "matrix");
    for (int64_t a = 0; a < n; a++) {
        ses_json_begin_array(w);
        for (int64_t b = 0; b < n; b++) ses_json_put_real(w, ses_head_distance_at(&x->distance, a, b));
        ses_json_end_array(w);
    }
    ses_json_end_array(w);
    ses_json_member_array(w, "map");
    for (int64_t a = 0; a < n; a++) {
        ses_json_begin_array(w);
        ses_json_put_real(w, px[a]);
        ses_json_put_real(w, py[a]);
        ses_json_end_array(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
}

static void put_json(const totals *x, const double *px, const double *py)
{
    ses_json_writer *w = ses_report_json(x->call->report);
    static const char *const part[] = { "encoder", "decoder", "cross" };
    ses_json_begin_object(w);
    ses_json_member_string(w, "attention", x->causal ? "decoder" : part[part_of(x->a)]);
    ses_json_member_int(w, "texts", x->texts);
    ses_json_member_int(w, "tokens", x->tokens);
    ses_json_member_int(w, "rows", x->stats[0].rows);
    ses_json_member_int(w, "truncated", x->truncated);
    ses_json_member_array(w, "heads");
    for (int64_t i = 0; i < x->layers; i++)
        for (int64_t h = 0; is_chosen(x, i) && h < x->first[i + 1] - x->first[i]; h++)
            put_head(w, &x->stats[x->first[i] + h], i, h);
    ses_json_end_array(w);
    if (px) put_distances(x, w, px, py);
    if (x->trees.n) ses_head_syntax_json(&x->syntax, x->a->min_cases, w);
    ses_json_end_object(w);
}

/* ---- figures ---- */

/* The strongest target of a head, or its label. */
static const char *strongest(const ses_head_stats *s, double *mean)
{
    int best = 0;
    const char *label = ses_head_stats_label(s);
    for (int p = 1; p < SES_ATTENDED_COUNT; p++)
        if (ses_head_stats_mean(s, (ses_attended)p) > ses_head_stats_mean(s, (ses_attended)best)) best = p;
    if (label)
        for (int p = 0; p < SES_ATTENDED_COUNT; p++)
            if (!strcmp(ses_attended_name((ses_attended)p), label)) best = p;
    *mean = ses_head_stats_mean(s, (ses_attended)best);
    if (label && !strcmp(label, "broad")) *mean = s->max_entropy > 0 ? s->entropy / s->max_entropy : 0;
    return label ? label : ses_attended_name((ses_attended)best);
}

static const char *short_name(const char *name)
{
    static const char *const of[][2] = {
        { "previous", "prev" }, { "special", "spec" }, { "separator", "sep" }, { "punctuation", "punct" }
    };
    for (size_t i = 0; i < SES_LEN(of); i++)
        if (!strcmp(of[i][0], name)) return of[i][1];
    return name;
}

/* Labels of all heads: layers down, heads across. */
static void draw_labels(const totals *x)
{
    int64_t most = 0;
    ses_buf columns = { 0 };
    for (int64_t i = 0; i < x->layers; i++)
        if (x->first[i + 1] - x->first[i] > most) most = x->first[i + 1] - x->first[i];
    ses_buf_puts(&columns, ">Layer");
    for (int64_t h = 0; h < most; h++) ses_buf_appendf(&columns, "|%" PRId64, h + 1);
    if (!columns.data) return;
    ses_figure *t = ses_report_table(x->call->report,
                                     "Strongest target of each head, in percent: layers down, heads across",
                                     columns.data);
    for (int64_t i = 0; i < x->layers; i++) {
        if (!is_chosen(x, i)) continue;
        ses_figure_cell(t, "%" PRId64, i + 1);
        for (int64_t h = 0; h < most; h++) {
            double mean = 0;
            if (h >= x->first[i + 1] - x->first[i]) {
                ses_figure_cell(t, "%s", "");
                continue;
            }
            const ses_head_stats *s = &x->stats[x->first[i] + h];
            const char *name = strongest(s, &mean);
            ses_figure_cell(t, "%s %.0f%s", short_name(name), 100 * mean, ses_head_stats_label(s) ? "*" : "");
        }
    }
    ses_buf_free(&columns);
}

/* A statistic of all heads as a matrix. which SES_ATTENDED_COUNT: entropy as a part of its maximum. */
static void draw_matrix(const totals *x, const char *title, int which)
{
    int64_t most = 0, rows = 0;
    for (int64_t i = 0; i < x->layers; i++)
        if (x->first[i + 1] - x->first[i] > most) most = x->first[i + 1] - x->first[i];
    float *value = ses_alloc_array((size_t)(x->layers * most), sizeof *value, NULL);
    char(*name)[12] = ses_alloc_array((size_t)(x->layers + most), sizeof *name, NULL);
    const char **names = ses_alloc_array((size_t)(x->layers + most), sizeof *names, NULL);
    for (int64_t i = 0; value && name && names && i < x->layers; i++) {
        if (!is_chosen(x, i)) continue;
        for (int64_t h = 0; h < most; h++) {
            const ses_head_stats *s = &x->stats[x->first[i] + h];
            bool exists = h < x->first[i + 1] - x->first[i];
            value[rows * most + h] = !exists ? NAN
                                     : which < SES_ATTENDED_COUNT
                                         ? (float)ses_head_stats_mean(s, (ses_attended)which)
                                     : s->max_entropy > 0 ? (float)(s->entropy / s->max_entropy)
                                                          : 0;
        }
        snprintf(name[rows], sizeof *name, "%d", (int)i + 1);
        names[rows] = name[rows], rows++;
    }
    for (int64_t h = 0; name && names && h < most; h++) {
        snprintf(name[x->layers + h], sizeof *name, "%d", (int)h + 1);
        names[x->layers + h] = name[x->layers + h];
    }
    if (rows)
        ses_report_heatmap(x->call->report, title,
                           &(ses_figure_matrix){ .rows = rows,
                                                 .cols = most,
                                                 .value = value,
                                                 .row_name = names,
                                                 .col_name = names + x->layers,
                                                 .row_label = "layers",
                                                 .col_label = "heads",
                                                 .scale = SES_SCALE_UNIT });
    ses_free(names);
    ses_free(name);
    ses_free(value);
}

static void draw_table(const totals *x)
{
    ses_figure *t =
        ses_report_table(x->call->report, "Mean weights and entropy",
                         "Head|>self|>next|>previous|>first|>separator|>punctuation|>special|>entropy|"
                         "Label");
    for (int64_t i = 0; i < x->layers; i++)
        for (int64_t h = 0; is_chosen(x, i) && h < x->first[i + 1] - x->first[i]; h++) {
            const ses_head_stats *s = &x->stats[x->first[i] + h];
            const char *label = ses_head_stats_label(s);
            ses_figure_cell(t, "%" PRId64 "-%" PRId64, i + 1, h + 1);
            for (int p = 0; p < SES_ATTENDED_COUNT; p++)
                ses_figure_cell(t, "%.3f", ses_head_stats_mean(s, (ses_attended)p));
            ses_figure_cell(t, "%.2f", ses_head_stats_entropy(s));
            ses_figure_cell(t, "%s", label ? label : "");
        }
}

static void draw_map(const totals *x, const double *px, const double *py)
{
    int64_t n = head_count(x);
    char(*label)[24] = ses_alloc_array((size_t)n, sizeof *label, NULL), (*group)[24];
    const char **names = ses_alloc_array((size_t)n, sizeof *names, NULL),
               **groups = ses_alloc_array((size_t)n, sizeof *groups, NULL);
    group = ses_alloc_array((size_t)x->layers, sizeof *group, NULL);
    if (label && names && groups && group) {
        for (int64_t i = 0, a = 0; i < x->layers; i++) {
            snprintf(group[i], sizeof *group, "layer %d", (int)i + 1);
            for (; a < x->first[i + 1]; a++) {
                snprintf(label[a], sizeof *label, "%d-%d", (int)i + 1, (int)(a - x->first[i]) + 1);
                names[a] = label[a], groups[a] = group[i];
            }
        }
        ses_report_scatter(x->call->report, "Heads by distance",
                           &(ses_figure_points){ .n = n, .x = px, .y = py, .label = names, .group = groups });
    }
    ses_free(group);
    ses_free(groups);
    ses_free(names);
    ses_free(label);
}

static void draw_all(const totals *x, const double *px, const double *py)
{
    ses_report *r = x->call->report;
    draw_labels(x);
    draw_matrix(x, "Entropy, of its maximum", SES_ATTENDED_COUNT);
    if (x->call->html) {
        for (int p = 0; p < SES_ATTENDED_COUNT; p++) {
            char title[64];
            snprintf(title, sizeof title, "Mean weight: %s", ses_attended_name((ses_attended)p));
            draw_matrix(x, title, p);
        }
        draw_table(x);
    }
    if (px) draw_map(x, px, py);
    if (x->trees.n) ses_head_syntax_figures(&x->syntax, x->a->min_cases, r);
    ses_report_note(
        r,
        "%" PRId64 " texts, %" PRId64 " tokens; rows of special tokens do not count. * marks a "
        "label: next or previous above 0.5, special or first above 0.6, broad: entropy above 0.9 of "
        "its maximum.",
        x->texts, x->tokens);
    if (x->truncated) ses_report_note(r, "%" PRId64 " texts were truncated (--max-seq-len).", x->truncated);
    if (px && x->distance_texts < x->texts)
        ses_report_note(
            r, "Distances: Jensen-Shannon divergence, on the first %" PRId64 " texts (--distance-texts).",
            x->distance_texts);
}

/* ---- the analysis ---- */

static bool show(const totals *x, ses_err *e)
{
    int64_t n = head_count(x);
    bool map = x->distance.rows > 0 && n > 1;
    double *d = map ? ses_alloc_array((size_t)(n * n), sizeof *d, e) : NULL,
           *p = map ? ses_alloc_array(2 * (size_t)n, sizeof *p, e) : NULL;
    bool ok = !map || (d && p);
    for (int64_t i = 0; ok && map && i < n * n; i++) d[i] = ses_head_distance_at(&x->distance, i / n, i % n);
    ok = ok && (!map || ses_classical_mds(x->math, d, n, p, p + n, e));
    if (ok) draw_all(x, map ? p : NULL, map ? p + n : NULL);
    if (ok && x->call->json) put_json(x, map ? p : NULL, map ? p + n : NULL);
    ses_free(p);
    ses_free(d);
    return ok;
}

/* Reads the file as trees, if it is CoNLL-U, or as texts. */
static bool open_texts(totals *x, ses_text_file *f, ses_err *e)
{
    const char *path = x->call->operands[0];
    ses_text_file_options o = { .text_column = x->a->column,
                                .encoding = (ses_text_encoding)x->a->encoding,
                                .target_column = x->a->target_column,
                                .max_texts = (size_t)x->a->max_texts };
    if (o.target_column || x->a->cross || !ses_input_stream_has_suffix(path, ".conllu"))
        return ses_text_file_open(f, path, &o, e);
    if (!ses_treebank_read(&x->trees, path, x->a->skip_invalid, e)) return false;
    ses_treebank_note_left_out(&x->trees, path, x->call->report);
    const ses_layer_set *chosen = x->call->layers.given ? &x->call->layers : NULL;
    return (x->trees.n ||
            ses_fail(e, SES_EARG, "%s: no sentence of at most %d words", path, (int)SES_TREE_MAX_WORDS)) &&
           ses_head_syntax_new(&x->syntax, &x->trees, chosen, e);
}

static bool asks_decoder(const void *args) { return part_of(args) != SES_PART_MAIN; }

static bool run_corpus(totals *x, const ses_text_file *f, ses_err *e)
{
    const ses_analysis_call *call = x->call;
    ses_attention_corpus_options o = { .model_dir = call->model_dir,
                                       .max_tokens = x->a->max_seq_len,
                                       .part = part_of(x->a),
                                       .target = f->target,
                                       .progress = show_progress,
                                       .progress_ctx = (void *)(uintptr_t)call };
    const ses_input *text = x->trees.n ? x->trees.input : f->text;
    size_t n = x->trees.n ? x->trees.n : f->n, most = (size_t)x->a->max_texts;
    if (most && most < n) n = most;
    if (!ses_attention_corpus_run(call->model, call->tokenizer, text, n, &o, take, x, e)) return false;
    return x->stats != NULL || ses_fail(e, SES_EARG, "the texts have no tokens");
}

static bool run(ses_analysis_call *call, ses_err *e)
{
    const heads_args *a = call->args;
    ses_text_file f = { 0 };
    ses_math math = { 0 };
    totals x = { .call = call, .a = a, .math = &math };
    bool ok = true;
    if (a->cross && a->decoder)
        ok = ses_fail(e, SES_EUSAGE, "--decoder and --cross exclude each other: give one of them");
    if (a->target_column && part_of(a) == SES_PART_MAIN)
        ok = ses_fail(e, SES_EUSAGE, "--target-column needs --decoder or --cross");
    if (ok && call->layers.given && ses_layer_set_count(&call->layers) == 1 &&
        ses_layer_set_has(&call->layers, 0))
        ok = ses_fail(e, SES_EUSAGE,
                      "--layers: attention belongs to layers 1 to %" PRId64 "; 0 is the embeddings",
                      ses_analysis_last_layer(call->analysis, a, call->model));
    ok = ok && open_texts(&x, &f, e) && ses_math_open(&math, ses_device_threads(call->dev), e) &&
         run_corpus(&x, &f, e) && show(&x, e);
    ses_head_distance_free(&x.distance);
    ses_head_syntax_free(&x.syntax);
    ses_treebank_free(&x.trees);
    ses_free(x.stats);
    ses_free(x.first);
    ses_math_close(&math);
    ses_text_file_free(&f);
    return ok;
}

const ses_analysis ses_analysis_heads = {
    .operands = "FILE",
    .description =
        "Runs the model over the texts of a file and gives for each head the mean weight to the same token, "
        "the next, the previous and the first one, to separators, punctuation and all special tokens, and "
        "the entropy of its weights. Heads are also compared with each other: by the Jensen-Shannon "
        "divergence of their weights, drawn as a map in which similar heads are close.\n\n"
        "FILE has a text in each line, or is a table (.tsv, .csv, .jsonl) or CoNLL-U. Heads are compared "
        "with the trees of CoNLL-U: for each dependency relation, the head whose strongest weight most often "
        "connects a word with its head in the tree (Clark et al. 2019). Layers and heads count from 1.\n\n"
        "Of an encoder-decoder, the encoder is shown, or the decoder (--decoder), or cross attention "
        "(--cross). The decoder then reads the texts of --target-column, teacher-forced: its start token and "
        "the text.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(heads_args),
    .min_operands = 1,
    .max_operands = 1,
    .default_model_of = "fill-mask",
    .model = SES_ANALYSIS_CLASS,
    .asks_decoder = asks_decoder,
    .run = run,
};
