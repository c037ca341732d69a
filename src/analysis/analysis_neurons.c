/* neurons: feed-forward activations over text, ranked by a label, and what the model loses without them. */
#include "analysis/corpus_options.h"
#include "analysis/neurons/activations.h"
#include "base/alloc.h"
#include "base/rng.h"
#include "math/auc.h"
#include "math/logistic/l1_logistic.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NAMED = 20, RANDOM_SITE = 21, MAX_SAMPLES = SES_SCRATCH_BYTES / sizeof(ses_auc_item) };

typedef struct args {
    const char *column, *label, *positive, *target_column;
    int encoding;
    int64_t top, erase, max_samples, max_texts, trials;
    double c;
    int value, rank_by;
    bool decoder;
} args;

enum { RANK_BY_AUC, RANK_BY_L1 };

typedef struct neuron {
    double auc;    /* 0.5: constant */
    double weight; /* weight of the L1 probe */
    float mean;
    int64_t index; /* layer * width + number */
} neuron;

typedef struct neurons_run {
    ses_analysis_call *call;
    const args *a;
    ses_text_file file;
    ses_activations x;
    ses_string positive; /* the label */
    uint8_t *is_positive;
    size_t positives;
    neuron *neuron; /* [count], best first after rank */
    int64_t count;
    ses_l1_fit l1; /* --rank-by l1 */
} neurons_run;

/* ---- ranking ---- */

static bool same_label(ses_string a, ses_string b) { return a.n == b.n && !memcmp(a.p, b.p, a.n); }

/* Names some of the labels that there are. */
static bool unknown_label(const neurons_run *r, ses_err *e)
{
    const ses_activations *x = &r->x;
    ses_buf known = { 0 };
    size_t seen[MAX_NAMED], n = 0;
    for (size_t i = 0; i < x->n && n < MAX_NAMED; i++) {
        size_t k = 0;
        while (k < n && !same_label(x->label[seen[k]], x->label[i])) k++;
        if (k < n) continue;
        ses_buf_appendf(&known, "%s%s", n ? ", " : "", ses_quoted_of(x->label[i].p, x->label[i].n).s);
        seen[n++] = i;
    }
    ses_fail(e, SES_EFORMAT, "0 of %zu samples have the label \"%s\"; there are %s%s", x->n,
             ses_quoted_of(r->positive.p, r->positive.n).s, known.data ? known.data : "none",
             n == MAX_NAMED ? " ..." : "");
    ses_buf_free(&known);
    return false;
}

/* The label that is ranked: as given, or the most frequent one. */
static bool choose_label(neurons_run *r, ses_err *e)
{
    const ses_activations *x = &r->x;
    const char *given = r->a->positive;
    size_t best = 0;
    if (!x->n || !x->label[0].p)
        return ses_fail(e, SES_EUSAGE,
                        "the texts have no labels: --label-column COLUMN names the column of a table");
    for (size_t i = 0; !given && i < x->n && i < 1000; i++) {
        size_t same = 0;
        for (size_t k = 0; k < x->n; k++) same += same_label(x->label[k], x->label[i]);
        if (same > best && same < x->n) best = same, r->positive = x->label[i];
    }
    if (given) r->positive = (ses_string){ given, strlen(given) };
    r->is_positive = ses_alloc_array(x->n, 1, e);
    for (size_t i = 0; r->is_positive && i < x->n; i++) {
        r->is_positive[i] = x->label[i].n == r->positive.n && r->positive.p &&
                            !memcmp(x->label[i].p, r->positive.p, r->positive.n);
        r->positives += r->is_positive[i];
    }
    if (!r->is_positive) return false;
    if (r->positives && r->positives < x->n) return true;
    if (given && !r->positives) return unknown_label(r, e);
    return ses_fail(e, SES_EFORMAT, "%zu of %zu samples have the label \"%s\": expected some, but not all",
                    r->positives, x->n, r->positive.p ? ses_quoted_of(r->positive.p, r->positive.n).s : "");
}

enum { CHUNK = 64 };

static void rank_chunk(void *ctx, int64_t chunk, void *scratch)
{
    neurons_run *r = ctx;
    size_t n = r->x.n; /* at most MAX_SAMPLES, which fit into the scratch memory */
    for (int64_t i = chunk * CHUNK; i < r->count && i < (chunk + 1) * CHUNK; i++) {
        const float *v = r->x.x + (size_t)i * r->x.cap;
        double sum = 0;
        for (size_t k = 0; k < n; k++) sum += (double)v[k];
        double auc = ses_auc(v, r->is_positive, n, scratch);
        r->neuron[i] =
            (neuron){ .auc = isnan(auc) ? 0.5 : auc, .mean = (float)(sum / (double)n), .index = i };
    }
}

/* Sorts by the weights of the L1 probe, then by the distance of the AUC from 0.5. */
static int by_rank(const void *a, const void *b)
{
    const neuron *x = a, *y = b;
    double p = fabs(x->weight), q = fabs(y->weight); /* 0 without an L1 probe */
    if (p == q) p = fabs(x->auc - 0.5), q = fabs(y->auc - 0.5);
    if (p != q) return p < q ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

/* A logistic regression on all neurons whose L1 penalty leaves few weights. */
static bool fit_l1(neurons_run *r, ses_err *e)
{
    ses_l1_problem p = { .x = r->x.x,
                         .n = r->x.n,
                         .features = (size_t)r->count,
                         .stride = r->x.cap,
                         .positive = r->is_positive,
                         .c = r->a->c };
    ses_analysis_progress(r->call, "L1 probe", 0, 0);
    r->l1.weight = ses_alloc_array((size_t)r->count, sizeof *r->l1.weight, e);
    if (!r->l1.weight || !ses_l1_logistic(&p, r->call->dev->exec.pool, &r->l1, e)) return false;
    for (int64_t i = 0; i < r->count; i++) r->neuron[i].weight = r->l1.weight[i];
    ses_report *to = r->call->report;
    ses_report_note(to,
                    "L1 probe: %zu of %lld weights are not 0 (C = %g); it classifies %zu of the %zu samples "
                    "it was fitted to correctly. Weights are for activations divided by their standard "
                    "deviation.",
                    r->l1.nonzero, (long long)r->count, r->a->c, r->l1.right, r->x.n);
    if (!r->l1.converged) ses_report_note(to, "The L1 probe has not converged: the weights are approximate.");
    return true;
}

static bool rank(neurons_run *r, ses_err *e)
{
    r->count = r->x.layers * r->x.width;
    r->neuron = ses_alloc_array((size_t)r->count, sizeof *r->neuron, e);
    if (!r->neuron) return false;
    ses_parallel_for(r->call->dev->exec.pool, (r->count + CHUNK - 1) / CHUNK, rank_chunk, r);
    if (r->a->rank_by == RANK_BY_L1 && !fit_l1(r, e)) return false;
    qsort(r->neuron, (size_t)r->count, sizeof *r->neuron, by_rank);
    return true;
}

/* ---- --erase ---- */

/* Accuracy with these neurons set to 0 or to their mean. */
static bool score_without(const neurons_run *r, const neuron *list, int64_t n, double *score, size_t *texts,
                          ses_err *e)
{
    ses_neuron_edit *edit = ses_alloc_array((size_t)n + 1, sizeof *edit, e);
    if (!edit) return false;
    for (int64_t i = 0; i < n; i++)
        edit[i] = (ses_neuron_edit){ .layer = list[i].index / r->x.width,
                                     .neuron = list[i].index % r->x.width,
                                     .value = r->a->value ? (double)list[i].mean : 0 };
    ses_edits edits = { .neurons = edit, .n_neurons = (size_t)n };
    bool ok = ses_classifier_accuracy(r->call->model, r->call->tokenizer, &r->file, r->file.n,
                                      n ? &edits : NULL, score, texts, e);
    ses_free(edit);
    return ok;
}

static void draw_random(const neurons_run *r, int64_t trial, neuron *list, int64_t n)
{
    ses_rng_key key = { r->call->seed, (uint32_t)trial, RANDOM_SITE };
    uint64_t at = 0;
    for (int64_t i = 0; i < n;) {
        list[i] = r->neuron[ses_rand32(key, at++) % (uint64_t)r->count];
        int64_t k = 0;
        while (k < i && list[k].index != list[i].index) k++;
        i += k == i; /* another one, if it was drawn before */
    }
}

static bool erase(const neurons_run *r, ses_json_writer *w, ses_err *e)
{
    int64_t n = r->a->erase < r->count ? r->a->erase : r->count, trials = r->a->trials;
    double whole, top, sum = 0, one;
    size_t texts = 0;
    if (!n) return true;
    if (n > r->count / 2)
        return ses_fail(e, SES_EUSAGE, "--erase %lld: the model has %lld neurons", (long long)r->a->erase,
                        (long long)r->count);
    neuron *list = ses_alloc_array((size_t)n, sizeof *list, e);
    bool ok = list && score_without(r, NULL, 0, &whole, &texts, e) &&
              score_without(r, r->neuron, n, &top, &texts, e);
    ses_json_member_object(w, "erase");
    ses_json_member_array(w, "random");
    for (int64_t i = 0; ok && i < trials; i++) {
        ses_analysis_progress(r->call, "random neurons", i, trials);
        draw_random(r, i, list, n);
        ok = score_without(r, list, n, &one, &texts, e);
        if (ok) sum += one / (double)trials, ses_json_put_real(w, one);
    }
    ses_free(list);
    if (!ok) return false;
    ses_json_end_array(w);
    ses_json_member_int(w, "neurons", n);
    ses_json_member_string(w, "value", r->a->value ? "mean" : "zero");
    ses_json_member_uint(w, "texts", texts);
    ses_json_member_real(w, "accuracy", whole);
    ses_json_member_real(w, "accuracy_without_top", top);
    ses_json_member_real(w, "accuracy_without_random", sum);
    ses_json_end_object(w);
    const char *const name[] = { "the whole model", "without the top neurons", "without random neurons" };
    const double value[] = { whole, top, sum };
    char title[96];
    snprintf(title, sizeof title, "Accuracy on %zu texts, %lld neurons at %s", texts, (long long)n,
             r->a->value ? "their mean" : "0");
    ses_report_bars(r->call->report, title, 3, name, value);
    return true;
}

/* ---- report ---- */

static void report_ranking(const neurons_run *r, ses_json_writer *w)
{
    int64_t n = r->a->top < r->count ? r->a->top : r->count;
    char title[128];
    snprintf(title, sizeof title, "Neurons that tell \"%.60s\" from other samples", r->positive.p);
    bool l1 = r->a->rank_by == RANK_BY_L1;
    ses_figure *f = ses_report_table(r->call->report, title,
                                     l1 ? ">layer|>neuron|>weight|>AUC|>mean activation"
                                        : ">layer|>neuron|>AUC|>mean activation");
    ses_json_member_array(w, "neurons");
    for (int64_t i = 0; i < n; i++) {
        const neuron *x = &r->neuron[i];
        ses_figure_cell(f, "%lld", (long long)(x->index / r->x.width + 1));
        ses_figure_cell(f, "%lld", (long long)(x->index % r->x.width));
        if (l1) ses_figure_cell(f, "%.4f", x->weight);
        ses_figure_cell(f, "%.4f", x->auc);
        ses_figure_cell(f, "%.4f", (double)x->mean);
        ses_json_begin_object(w);
        ses_json_member_int(w, "layer", x->index / r->x.width + 1);
        ses_json_member_int(w, "neuron", x->index % r->x.width);
        if (l1) ses_json_member_real(w, "weight", x->weight);
        ses_json_member_real(w, "auc", x->auc);
        ses_json_member_real(w, "mean", (double)x->mean);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
}

/* The text in which the best neuron is most active, token by token. */
static bool report_strip(const neurons_run *r, ses_json_writer *w, ses_err *e)
{
    const neuron *best = &r->neuron[0];
    const float *v = r->x.x + (size_t)best->index * r->x.cap;
    size_t at = 0;
    double *value = NULL;
    char **name = NULL, title[96];
    int64_t n = 0, layer = best->index / r->x.width, number = best->index % r->x.width;
    for (size_t i = 1; i < r->x.n; i++)
        if (v[i] > v[at]) at = i;
    ses_neuron_strip strip = { &r->file, r->x.text[at], r->a->decoder, layer, number };
    bool ok = ses_activations_of_text(r->call->model, r->call->tokenizer, &strip, &value, &name, &n, e);
    if (ok) {
        snprintf(title, sizeof title, "Layer %lld, neuron %lld: line %llu", (long long)layer + 1,
                 (long long)number, (unsigned long long)r->file.line[r->x.text[at]]);
        ses_report_strip(r->call->report, title, n, (const char *const *)name, value);
        ses_json_member_object(w, "strip");
        ses_json_member_uint(w, "line", r->file.line[r->x.text[at]]);
        ses_json_member_array(w, "tokens");
        for (int64_t i = 0; i < n; i++) ses_json_put_string(w, name[i]);
        ses_json_end_array(w);
        ses_json_member_array(w, "activations");
        for (int64_t i = 0; i < n; i++) ses_json_put_real(w, value[i]);
        ses_json_end_array(w);
        ses_json_end_object(w);
    }
    for (int64_t i = 0; name && i < n; i++) ses_free(name[i]);
    ses_free(value), ses_free(name);
    return ok;
}

static bool report(neurons_run *r, ses_err *e)
{
    ses_json_writer *w = ses_report_json(r->call->report);
    ses_json_begin_object(w);
    ses_json_member_stringn(w, "label", r->positive.p, r->positive.n);
    ses_json_member_uint(w, "samples", r->x.n);
    ses_json_member_uint(w, "positive", r->positives);
    ses_json_member_string(w, "part", r->a->decoder ? "decoder" : "encoder");
    if (r->a->rank_by == RANK_BY_L1) {
        ses_json_member_object(w, "l1");
        ses_json_member_real(w, "c", r->a->c);
        ses_json_member_uint(w, "nonzero", r->l1.nonzero);
        ses_json_member_real(w, "intercept", r->l1.intercept);
        ses_json_member_real(w, "accuracy", (double)r->l1.right / (double)r->x.n);
        ses_json_member_bool(w, "converged", r->l1.converged);
        ses_json_end_object(w);
    }
    report_ranking(r, w);
    bool ok = report_strip(r, w, e) && erase(r, w, e);
    ses_json_end_object(w);
    ses_report_note(r->call->report, "%zu %s, %zu with the label \"%.60s\"; %lld layers of %lld neurons.",
                    r->x.n, r->file.is_words ? "words" : "texts", r->positives, r->positive.p,
                    (long long)r->x.layers, (long long)r->x.width);
    if (r->x.is_cut || r->file.is_cut)
        ses_report_note(r->call->report, "The rest of the file was left out (--max-samples, --max-texts).");
    return ok;
}

static bool run(ses_analysis_call *call, ses_err *e)
{
    neurons_run r = { .call = call, .a = call->args };
    if (call->layers.given) return ses_fail(e, SES_EUSAGE, "--layers: neurons of all layers are compared");
    ses_text_file_options o = { .text_column = r.a->column,
                                .encoding = (ses_text_encoding)r.a->encoding,
                                .label_column = r.a->label,
                                .target_column = r.a->target_column,
                                .max_texts = (size_t)r.a->max_texts };
    if (r.a->target_column && !r.a->decoder)
        return ses_fail(e, SES_EUSAGE, "--target-column needs --decoder");
    if (r.a->decoder && r.a->erase)
        return ses_fail(e, SES_EUSAGE, "--erase: neurons of the decoder are ranked only");
    bool ok = ses_text_file_open(&r.file, call->operands[0], &o, e) &&
              ses_activations_read(&r.x, call->model, call->tokenizer, &r.file, r.a->decoder,
                                   (size_t)r.a->max_samples, call, e) &&
              choose_label(&r, e) && rank(&r, e) && report(&r, e);
    ses_free(r.neuron), ses_free(r.is_positive), ses_free(r.l1.weight);
    ses_activations_free(&r.x);
    ses_text_file_free(&r.file);
    return ok;
}

static const ses_opt opt[] = {
    SES_OPT_TEXT(args, label, "label-column", "COLUMN",
                 "column of the labels: of a table; CoNLL-U: upos, xpos, deprel, default: upos",
                 .alias = "label"),
    SES_OPT_TEXT(args, positive, "positive", "LABEL",
                 "rank neurons for this label against all others; default: the most frequent one"),
    SES_OPT_CHOICE(
        args, rank_by, "rank-by", "auc", "auc|l1",
        "rank by the AUC of each neuron, or by the weights of a logistic regression with an L1 penalty"),
    SES_OPT_REAL(args, c, "regularization", "0.1", 1e-6, 1e6,
                 "--rank-by l1: inverse regularization strength; less leaves fewer neurons", .letter = 'C',
                 .value = "C"),
    SES_OPT_COLUMN(args, column, "tables: "),
    SES_OPT_ENCODING(args, encoding),
    SES_OPT_DECODER(args, decoder),
    SES_OPT_TARGET_COLUMN(args, target_column),
    SES_OPT_TOP(args, top, "10", 1e6, "neurons to list"),
    SES_OPT_INT(args, erase, "erase", "0", 0, 1e6,
                "text classifiers: accuracy without the N top neurons, and without N random ones",
                .group = "erasing"),
    SES_OPT_CHOICE(args, value, "erase-with", "zero", "zero|mean",
                   "value of an erased neuron: 0, or its mean over the samples", .group = "erasing"),
    SES_OPT_INT(args, trials, "trials", "3", 1, 1000, "draws of random neurons", .group = "erasing"),
    SES_OPT_MAX_TEXTS(args, max_texts, "", "500"),
    SES_OPT_INT(args, max_samples, "max-samples", "4000", 2, MAX_SAMPLES,
                "maximum number of words or texts to keep in memory", .group = "data"),
};

static const ses_usage_example examples[] = {
    { "sesame neurons dev.conllu --positive VERB", "neurons that are active at verbs" },
    { "sesame neurons dev.conllu --positive VERB --rank-by l1", "few neurons that tell verbs together" },
    { "sesame neurons -m sesame-sentiment dev.tsv --label-column label --erase 20",
      "neurons of a label, and the accuracy without them" },
    { 0 },
};

const ses_analysis ses_analysis_neurons = {
    .operands = "FILE",
    .description =
        "Ranks feed-forward neurons by how well their activation tells the samples of a label from the "
        "others, draws the activations of the best one, and compares the accuracy of a text classifier "
        "without the top neurons to that without random ones. Activations are the input of a layer's last "
        "projection; of gated layers the product. --rank-by auc looks at one neuron at a time, --rank-by l1 "
        "at all of them together: neurons with the same information get few weights.\n\n"
        "Samples are the words of a .conllu or .conll file with their tags, or the texts of a .tsv, .csv or "
        ".jsonl file with --label-column, as means of all their tokens, with special tokens. Layers count "
        "from 1. Encoder-decoders: "
        "the encoder, or with --decoder the decoder, which reads its start token and the target. Texts "
        "longer "
        "than the model are truncated.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = 1,
    .default_model_of = "fill-mask",
    .model = SES_ANALYSIS_CLASS,
    .run = run,
};
