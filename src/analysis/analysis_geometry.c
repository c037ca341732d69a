/* geometry: how the vectors of words in context lie in each layer (Ethayarajh 2019), similarity of layers and
 * models (CKA), and nearest neighbours of a word in context. */
#include "analysis/corpus_options.h"
#include "analysis/geometry/geometry.h"
#include "analysis/word_states.h"
#include "base/alloc.h"
#include "base/rng.h"
#include "math/similarity.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OCCURRENCES = 1000, PAIRS_SITE = 1, CKA_SITE = 2 };

/* ---- samples ---- */

static size_t draw(const ses_geometry *g, uint32_t site, uint64_t i, size_t n)
{
    ses_rng_key key = { g->call->seed, 0, site };
    uint64_t high = ses_rand32(key, 2 * i), low = ses_rand32(key, 2 * i + 1);
    return (size_t)((high << 32 | low) % n);
}

static bool draw_pairs(ses_geometry *g, ses_err *e)
{
    size_t n = g->words.n;
    g->n_pairs = n > 1 ? (size_t)g->a->pairs : 0;
    g->pair = ses_alloc_array(2 * g->n_pairs + 1, sizeof *g->pair, e);
    for (size_t i = 0; g->pair && i < g->n_pairs; i++) {
        size_t first = draw(g, PAIRS_SITE, 2 * i, n), second = draw(g, PAIRS_SITE, 2 * i + 1, n - 1);
        g->pair[2 * i] = first;
        g->pair[2 * i + 1] = second < first ? second : second + 1; /* another one */
    }
    return g->pair != NULL;
}

/* Chooses the words of CKA without repetition, and puts them in order. */
static bool draw_sample(ses_geometry *g, ses_err *e)
{
    size_t n = 0, *a = NULL, *b = NULL, most = (size_t)g->a->cka_words;
    const ses_corpus_words *other = g->a->like ? &g->like : &g->words;
    bool ok = ses_corpus_words_align(&g->words, other, &a, &b, &n, e);
    uint8_t *chosen = ok ? ses_alloc_array(n + 1, 1, e) : NULL;
    g->n_sample = n < most ? n : most;
    g->sample = chosen ? ses_alloc_array(g->n_sample + 1, sizeof *g->sample, e) : NULL;
    g->like_sample = g->sample ? ses_alloc_array(g->n_sample + 1, sizeof *g->sample, e) : NULL;
    /* Floyd's sampling: every subset is equally likely */
    for (size_t i = n - g->n_sample; g->like_sample && i < n; i++) {
        size_t at = draw(g, CKA_SITE, i, i + 1);
        chosen[chosen[at] ? i : at] = 1;
    }
    for (size_t i = 0, k = 0; g->like_sample && i < n; i++)
        if (chosen[i]) g->sample[k] = a[i], g->like_sample[k++] = b[i];
    ses_free(a), ses_free(b), ses_free(chosen);
    return ok && g->like_sample;
}

static float *gather(const float *x, size_t width, const size_t *row, size_t n, ses_err *e)
{
    float *y = ses_alloc_array(n * width + 1, sizeof *y, e);
    for (size_t i = 0; y && i < n; i++) memcpy(y + i * width, x + row[i] * width, width * sizeof *y);
    return y;
}

/* ---- a layer ---- */

/* At most MAX_OCCURRENCES words of a form, evenly spaced. */
static size_t thin_out(const ses_corpus_words *w, size_t type, size_t *row)
{
    size_t first = w->cu_types[type], n = w->cu_types[type + 1] - first;
    size_t kept = n < MAX_OCCURRENCES ? n : MAX_OCCURRENCES;
    for (size_t i = 0; i < kept; i++) row[i] = w->occurrence[first + i * n / kept];
    return kept;
}

static double mean_of(double sum, size_t n) { return n ? sum / (double)n : NAN; }

static void measure_types(ses_geometry *g, const float *x, double *scratch, size_t *row,
                          ses_geometry_measures *m)
{
    const ses_corpus_words *w = &g->words;
    double self = 0, mev = 0;
    g->types = 0;
    for (size_t t = 0; t < w->types.count; t++) {
        if (w->cu_types[t + 1] - w->cu_types[t] < (size_t)g->a->min_count) continue;
        size_t n = thin_out(w, t, row);
        self += ses_mean_pair_cosine(x, row, n, w->width, scratch);
        mev += ses_first_direction_share(x, row, n, w->width, scratch);
        g->types++;
    }
    m->self_similarity = mean_of(self, g->types);
    m->mev = mean_of(mev, g->types);
}

static bool measure_layer(ses_geometry *g, const float *x, ses_geometry_measures *m, ses_err *e)
{
    const ses_corpus_words *w = &g->words;
    size_t width = w->width, texts = 0;
    double *scratch = ses_alloc_array(2 * width, sizeof *scratch, e), cosine = 0, intra = 0;
    size_t *row = scratch ? ses_alloc_array(MAX_OCCURRENCES + g->n_pairs, sizeof *row, e) : NULL;
    if (!row) return ses_free(scratch), false;
    for (size_t i = 0; i < g->n_pairs; i++) {
        cosine += ses_cosine_of(x + g->pair[2 * i] * width, x + g->pair[2 * i + 1] * width, width);
        row[i] = g->pair[2 * i];
    }
    m->anisotropy = mean_of(cosine, g->n_pairs);
    m->mev_baseline = g->n_pairs ? ses_first_direction_share(x, row, g->n_pairs, width, scratch) : NAN;
    for (size_t t = 0; t < g->file.n; t++) {
        size_t first = w->cu_texts[t], n = w->cu_texts[t + 1] - first;
        if (n < 2) continue; /* the mean of one word is the word */
        intra += ses_mean_cosine_to_mean(x + first * width, n, width, scratch);
        texts++;
    }
    m->intra = mean_of(intra, texts);
    measure_types(g, x, scratch, row, m);
    ses_free(scratch), ses_free(row);
    return true;
}

static bool read_layers(ses_geometry *g, ses_err *e)
{
    const ses_corpus_words *w = &g->words;
    size_t layers = w->n_layers + g->like.n_layers, k_near = (size_t)g->a->top_k;
    g->m = ses_alloc_array(w->n_layers, sizeof *g->m, e);
    g->cka = g->m ? ses_alloc_array(layers, sizeof *g->cka, e) : NULL;
    g->near = g->cka ? ses_alloc_array(w->n_layers * k_near, sizeof *g->near, e) : NULL;
    for (size_t k = 0; g->near && k < layers; k++) {
        bool own = k < w->n_layers;
        const ses_corpus_words *of = own ? w : &g->like;
        ses_analysis_progress(g->call, "layers", (int64_t)k, (int64_t)layers);
        float *x = ses_corpus_words_layer(of, own ? k : k - w->n_layers, e);
        bool ok = x && (!own || measure_layer(g, x, &g->m[k], e));
        if (ok && own && g->a->nearest)
            g->n_near = ses_nearest_rows(x, w->n, w->width, g->target, g->near + k * k_near, k_near);
        g->cka[k].width = of->width;
        g->cka[k].x = ok ? gather(x, of->width, own ? g->sample : g->like_sample, g->n_sample, e) : NULL;
        ses_free(x);
        if (!g->cka[k].x) return false;
    }
    return g->near != NULL;
}

/* ---- --nearest ---- */

static bool find_target(ses_geometry *g, ses_err *e)
{
    const ses_corpus_words *w = &g->words;
    const char *word = g->a->nearest;
    int64_t type, n = 0;
    if (!word) return true;
    if (ses_strmap_find(&w->types, word, strlen(word), &type))
        n = (int64_t)(w->cu_types[type + 1] - w->cu_types[type]);
    if (!n)
        return ses_fail(e, SES_EARG, "--nearest: \"%s\" is not among the %zu words of %s",
                        ses_quoted_of(word, strlen(word)).s, w->types.count, g->call->operands[0]);
    if (g->a->occurrence > n)
        return ses_fail(e, SES_EARG, "--occurrence %lld: \"%s\" occurs %lld times",
                        (long long)g->a->occurrence, word, (long long)n);
    g->target = w->occurrence[w->cu_types[type] + (size_t)g->a->occurrence - 1];
    g->target_of = (size_t)n;
    if (!g->a->vectors) return true;
    ses_string s = { word, strlen(word) };
    if (!ses_nearest_static(g->a->vectors, s, g->still, (size_t)g->a->top_k, &g->n_still, e)) return false;
    if (!g->n_still) ses_report_note(g->call->report, "%s has no vector of \"%s\".", g->a->vectors, word);
    return true;
}

/* ---- running ---- */

static bool open_like(ses_geometry *g, ses_err *e)
{
    const char *name = g->a->like;
    if (!name) return true;
    char *dir = ses_model_resolve(name, NULL, e);
    g->like_model = dir ? ses_model_open(dir, g->call->dev, &(ses_model_options){ 0 }, e) : NULL;
    g->like_tokenizer = g->like_model ? ses_tokenizer_open(dir, e) : NULL;
    free(dir);
    /* a model without a decoder is compared by its only stack */
    bool decoder = g->a->decoder && g->like_model && ses_word_states_depth(g->like_model, true) >= 0;
    ses_corpus_words_options o = { .first_piece = g->a->pieces == 1,
                                   .decoder = decoder,
                                   .source = decoder ? g->file.target : NULL };
    return g->like_tokenizer &&
           ses_corpus_words_read(&g->like, g->like_model, g->like_tokenizer, &g->file, &o, g->call, e);
}

static bool compute_cka(ses_geometry *g, ses_err *e)
{
    size_t all = g->words.n_layers + g->like.n_layers;
    g->matrix = ses_alloc_array(all * all, sizeof *g->matrix, e);
    return g->matrix && (ses_cka_compute(g->cka, all, g->n_sample, g->a->debiased, g->call->dev->exec.pool,
                                         g->matrix, e) ||
                         ses_wrap(e, "%s", g->call->operands[0]));
}

static bool read_texts(ses_geometry *g, ses_err *e)
{
    ses_text_file_options o = { .text_column = g->a->column,
                                .encoding = (ses_text_encoding)g->a->encoding,
                                .target_column = g->a->target_column,
                                .max_texts = (size_t)g->a->max_texts };
    if (o.target_column && !g->a->decoder) return ses_fail(e, SES_EUSAGE, "--target-column needs --decoder");
    if (!ses_text_file_open(&g->file, g->call->operands[0], &o, e)) return false;
    if (g->file.is_cut)
        ses_report_note(g->call->report, "Only the first %zu texts were read (--max-texts).", g->file.n);
    if (g->file
            .target) { /* the decoder's words are measured: they are the texts, and the texts the sources */
        ses_input *source = g->file.text;
        g->file.text = g->file.target, g->file.target = source;
    }
    ses_corpus_words_options w = { .layers = &g->call->layers,
                                   .first_piece = g->a->pieces == 1,
                                   .decoder = g->a->decoder,
                                   .source = g->file.target };
    return ses_corpus_words_read(&g->words, g->call->model, g->call->tokenizer, &g->file, &w, g->call, e);
}

static void put_notes(const ses_geometry *g)
{
    ses_report *r = g->call->report;
    ses_report_note(
        r,
        "%zu words of %zu texts. Anisotropy: mean cosine of %zu random pairs of words. "
        "Self-similarity and MEV: means over %zu word forms with at least %lld occurrences. CKA of "
        "%zu words.",
        g->words.n, g->file.n, g->n_pairs, g->types, (long long)g->a->min_count, g->n_sample);
    if (g->a->nearest)
        ses_report_note(r, "Occurrences of \"%s\": %zu; this is number %lld.", g->a->nearest, g->target_of,
                        (long long)g->a->occurrence);
}

static bool run(ses_analysis_call *call, ses_err *e)
{
    ses_geometry g = { .call = call, .a = call->args };
    bool ok = read_texts(&g, e);
    if (ok && g.a->vectors && !g.a->nearest) ok = ses_fail(e, SES_EUSAGE, "--vectors needs --nearest WORD");
    ok = ok && find_target(&g, e) && open_like(&g, e) && draw_pairs(&g, e) && draw_sample(&g, e) &&
         read_layers(&g, e) && compute_cka(&g, e);
    if (ok) {
        put_notes(&g);
        ok = ses_geometry_report(&g, e);
    }
    for (size_t k = 0; g.cka && k < g.words.n_layers + g.like.n_layers; k++) ses_free((void *)g.cka[k].x);
    for (size_t i = 0; i < g.n_still; i++) ses_free(g.still[i].word);
    ses_free(g.cka), ses_free(g.m), ses_free(g.near), ses_free(g.matrix), ses_free(g.pair);
    ses_free(g.sample), ses_free(g.like_sample);
    ses_corpus_words_free(&g.words), ses_corpus_words_free(&g.like);
    ses_tokenizer_free(g.like_tokenizer);
    ses_model_free(g.like_model);
    ses_text_file_free(&g.file);
    return ok;
}

static bool asks_decoder(const void *args) { return ((const ses_geometry_args *)args)->decoder; }

static const ses_opt opt[] = {
    SES_OPT_TEXT(ses_geometry_args, like, "like", "MODEL",
                 "another model or checkpoint: CKA between its layers and the model's", .is_model = true),
    SES_OPT_FLAG(ses_geometry_args, debiased, "debiased",
                 "CKA with unbiased estimators, which do not grow with the width"),
    SES_OPT_TEXT(ses_geometry_args, nearest, "nearest", "WORD",
                 "nearest neighbours of a word of the file, in its context"),
    SES_OPT_INT(ses_geometry_args, occurrence, "occurrence", "1", 1, 1e9, "which occurrence of that word"),
    SES_OPT_TEXT(ses_geometry_args, vectors, "vectors", "FILE",
                 "static word vectors (a file of 'sesame vectors'): neighbours of the word there",
                 .is_path = true),
    SES_OPT_TOP(ses_geometry_args, top_k, "5", SES_GEOMETRY_MAX_NEAREST, "number of neighbours"),
    SES_OPT_INT(ses_geometry_args, pairs, "pairs", "1000", 1, 1e6, "random pairs of words for the baselines"),
    SES_OPT_INT(ses_geometry_args, min_count, "min-count", "5", 2, 1e9,
                "occurrences of a word form for self-similarity and MEV"),
    SES_OPT_INT(ses_geometry_args, cka_words, "cka-words", "1000", 4, 100000,
                "words for CKA, drawn at random"),
    SES_OPT_WORD_PIECES(ses_geometry_args, pieces),
    SES_OPT_COLUMN(ses_geometry_args, column, "tables: "),
    SES_OPT_ENCODING(ses_geometry_args, encoding),
    SES_OPT_DECODER(ses_geometry_args, decoder),
    SES_OPT_TARGET_COLUMN(ses_geometry_args, target_column),
    SES_OPT_MAX_TEXTS(ses_geometry_args, max_texts, "", "10000"),
};

static const ses_usage_example examples[] = {
    { "sesame geometry corpus.txt", "similarities by layer of the bundled model" },
    { "sesame geometry en_ewt-ud-dev.conllu --like CHECKPOINT --debiased", "CKA with another checkpoint" },
    { "sesame geometry corpus.txt --nearest bank --vectors glove.6B.100d.txt",
      "neighbours of the first \"bank\" in context and in GloVe" },
    { 0 },
};

const ses_analysis ses_analysis_geometry = {
    .operands = "FILE",
    .description =
        "Measures how the vectors of words in context are distributed in each layer. Anisotropy: the mean "
        "cosine of random words. Self-similarity: the mean cosine of the occurrences of a word form. "
        "Intra-sentence similarity: the mean cosine of the words of a text with their mean. MEV: the share "
        "of the occurrences of a word form that one direction explains. The last three are also given "
        "minus the same measure of random words. Linear CKA compares the layers with each other, or with "
        "the layers of another model.\n\n"
        "FILE has one text per line; .conllu and .conll files have words, .tsv, .csv and .jsonl files a "
        "column of texts. Encoder-decoders: the layers of the encoder, or with --decoder the layers of the "
        "decoder, "
        "which reads its start token and the target; a word has the state of the position that reads it.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(ses_geometry_args),
    .min_operands = 1,
    .max_operands = 1,
    .default_model_of = "fill-mask",
    .model = SES_ANALYSIS_CLASS,
    .asks_decoder = asks_decoder,
    .run = run,
};
