/* neurons: feed-forward activations over text, ranked by a label, and what the model loses without them. */
#include "analysis/math/auc.h"
#include "analysis/neurons/activations.h"
#include "base/alloc.h"
#include "base/rng.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANDOM_SITE = 21, MAX_SAMPLES = SES_SCRATCH_BYTES / sizeof(ses_auc_item) };

typedef struct args {
    const char *column, *label, *positive;
    int64_t top, erase, max_samples, max_texts, trials;
    int value;
} args;

typedef struct neuron {
    double auc; /* NaN: constant */
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
} neurons_run;

/* ---- ranking ---- */

/* The label that is ranked: as given, or the most frequent one. */
static bool choose_label(neurons_run *r, ses_err *e)
{
    const ses_activations *x = &r->x;
    const char *given = r->a->positive;
    size_t best = 0;
    if (!x->n || !x->label[0].p)
        return ses_fail(e, SES_EUSAGE,
                        "the texts have no labels: --label COLUMN names the column of a table");
    for (size_t i = 0; !given && i < x->n && i < 1000; i++) {
        size_t same = 0;
        for (size_t k = 0; k < x->n; k++)
            same += x->label[k].n == x->label[i].n && !memcmp(x->label[k].p, x->label[i].p, x->label[i].n);
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
        r->neuron[i] = (neuron){ ses_auc(v, r->is_positive, n, scratch), (float)(sum / (double)n), i };
    }
}

static int by_distance(const void *a, const void *b)
{
    const neuron *x = a, *y = b;
    double p = fabs(x->auc - 0.5), q = fabs(y->auc - 0.5);
    if (p != q) return p < q ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

static bool rank(neurons_run *r, ses_err *e)
{
    r->count = r->x.layers * r->x.width;
    r->neuron = ses_alloc_array((size_t)r->count, sizeof *r->neuron, e);
    if (!r->neuron) return false;
    ses_parallel_for(r->call->dev->exec.pool, (r->count + CHUNK - 1) / CHUNK, rank_chunk, r);
    for (int64_t i = 0; i < r->count; i++)
        if (isnan(r->neuron[i].auc)) r->neuron[i].auc = 0.5;
    qsort(r->neuron, (size_t)r->count, sizeof *r->neuron, by_distance);
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
    ses_figure *f = ses_report_table(r->call->report, title, ">layer|>neuron|>AUC|>mean activation");
    ses_json_member_array(w, "neurons");
    for (int64_t i = 0; i < n; i++) {
        const neuron *x = &r->neuron[i];
        ses_figure_cell(f, "%lld", (long long)(x->index / r->x.width + 1));
        ses_figure_cell(f, "%lld", (long long)(x->index % r->x.width));
        ses_figure_cell(f, "%.4f", x->auc);
        ses_figure_cell(f, "%.4f", (double)x->mean);
        ses_json_begin_object(w);
        ses_json_member_int(w, "layer", x->index / r->x.width + 1);
        ses_json_member_int(w, "neuron", x->index % r->x.width);
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
    bool ok = ses_activations_of_text(r->call->model, r->call->tokenizer, &r->file.text[r->x.text[at]], layer,
                                      number, &value, &name, &n, e);
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
                                .label_column = r.a->label,
                                .max_texts = (size_t)r.a->max_texts };
    bool ok = ses_text_file_open(&r.file, call->operands[0], &o, e) &&
              ses_activations_read(&r.x, call->model, call->tokenizer, &r.file, (size_t)r.a->max_samples,
                                   call, e) &&
              choose_label(&r, e) && rank(&r, e) && report(&r, e);
    ses_free(r.neuron), ses_free(r.is_positive);
    ses_activations_free(&r.x);
    ses_text_file_free(&r.file);
    return ok;
}

#define AT(field) offsetof(args, field)
static const ses_opt opt[] = {
    { .name = "label",
      .type = SES_OPT_TEXT,
      .offset = AT(label),
      .value = "COLUMN",
      .help = "column of the labels: of a table; CoNLL-U: upos, xpos, deprel, default: upos" },
    { .name = "positive",
      .type = SES_OPT_TEXT,
      .offset = AT(positive),
      .value = "LABEL",
      .help = "rank neurons for this label against all others; default: the most frequent one" },
    { .name = "column",
      .type = SES_OPT_TEXT,
      .offset = AT(column),
      .value = "NAME",
      .help = "tables: column of the texts; default: sentence, text or the first" },
    { .name = "top",
      .type = SES_OPT_INT,
      .offset = AT(top),
      .def = "10",
      .min = 1,
      .max = 1e6,
      .help = "neurons to list" },
    { .name = "erase",
      .type = SES_OPT_INT,
      .offset = AT(erase),
      .def = "0",
      .min = 0,
      .max = 1e6,
      .help = "text classifiers: accuracy without the N top neurons, and without N random ones" },
    { .name = "erase-with",
      .type = SES_OPT_CHOICE,
      .offset = AT(value),
      .def = "zero",
      .choices = "zero|mean",
      .help = "value of an erased neuron: 0, or its mean over the samples" },
    { .name = "trials",
      .type = SES_OPT_INT,
      .offset = AT(trials),
      .def = "3",
      .min = 1,
      .max = 1000,
      .help = "draws of random neurons" },
    { .name = "max-texts",
      .type = SES_OPT_INT,
      .offset = AT(max_texts),
      .def = "500",
      .min = 0,
      .max = 1e9,
      .zero_word = "all",
      .help = "maximum number of texts to read" },
    { .name = "max-samples",
      .type = SES_OPT_INT,
      .offset = AT(max_samples),
      .def = "4000",
      .min = 2,
      .max = MAX_SAMPLES,
      .help = "maximum number of words or texts to keep in memory" },
};
#undef AT

static const ses_usage_example examples[] = {
    { "sesame neurons dev.conllu --positive VERB", "neurons that are active at verbs" },
    { "sesame neurons -m sesame-sentiment dev.tsv --label label --erase 20",
      "neurons of a label, and the accuracy without them" },
    { 0 },
};

const ses_analysis ses_analysis_neurons = {
    .operands = "FILE",
    .description =
        "Ranks feed-forward neurons by how well their activation tells the samples of a label from the "
        "others "
        "(AUC), draws the activations of the best one, and compares the accuracy of a text classifier "
        "without "
        "the top neurons to that without random ones. Activations are the input of a layer's last "
        "projection; "
        "of gated layers the product.\n\n"
        "Samples are the words of a .conllu or .conll file with their tags, or the texts of a .tsv, .csv or "
        ".jsonl file with --label, as means of their tokens. Layers count from 1. Encoder-decoders: the "
        "encoder. Texts longer than the model are truncated.",
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
