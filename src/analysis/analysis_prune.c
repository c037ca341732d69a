/* prune: importance of attention heads for a classifier or an encoder-decoder, accuracy without the least
 * important ones, and a model without them. */
#include "analysis/prune/prune.h"

#include "base/alloc.h"
#include "base/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const ses_opt opt[] = {
    SES_OPT_TEXT(
        ses_prune_args, heads, "heads", "X",
        "with --output: part of the attention heads to remove; without a value: rank them, and measure "
        "the accuracy without some",
        .choices = "rank", .implicit_value = "rank", .value_is_number = true),
    SES_OPT_TEXT(ses_prune_args, text, "column", "COLUMN", "column of the texts; default: text or sentence",
                 .alias = "text-column", .group = "data"),
    SES_OPT_TEXT(ses_prune_args, pair, "pair-column", "COLUMN", "column of second texts; default: none",
                 .group = "data"),
    SES_OPT_TEXT(ses_prune_args, label, "label-column", "COLUMN",
                 "column of the labels; default: label; of an encoder-decoder's targets: target",
                 .group = "data"),
    SES_OPT_INT(ses_prune_args, examples, "max-texts", "1000", 1, 1e9,
                "number of examples that measure importance", .alias = "examples", .value = "N|all",
                .zero_word = "all", .group = "data"),
    SES_OPT_REAL(ses_prune_args, keep, "keep", "0.9", 0.01, 1,
                 "stop when the accuracy is below this part of the first one", .value = "X",
                 .group = "heads"),
    SES_OPT_REAL(ses_prune_args, step, "step", "0.1", 0.001, 1, "part of all heads that is masked at a time",
                 .value = "X", .group = "heads"),
    SES_OPT_TEXT(ses_prune_args, write, "write", "DIR",
                 "write a model without the masked heads: pruned_heads in config.json, smaller weights",
                 .is_path = true, .group = "heads"),
    SES_OPT_REAL(ses_prune_args, fraction, "fraction", NULL, 0, 1,
                 "--write: part of the heads to remove; default: the most that keeps the accuracy",
                 .was_set = offsetof(ses_prune_args, has_fraction), .value = "X", .group = "heads"),
};

static const ses_usage_example examples[] = {
    { "sesame prune sst2 --heads 0.4 --ffn 0.5 --layers 8 --data SST-2/train.tsv --output small",
      "8 layers with 60 % of their heads and half of their feed-forward rows; fine-tune it again" },
    { "sesame prune DIR --layers 6 --output DIR-6", "the first 6 layers" },
    { "sesame prune sesame-sentiment dev.tsv --heads", "importance of all heads, accuracy without some" },
    { "sesame prune DIR dev.tsv --heads --write DIR-small",
      "remove the heads that the accuracy does not need" },
    { 0 },
};

enum { MAX_POINTS = 1024 };

typedef struct curve {
    double removed[MAX_POINTS], accuracy[MAX_POINTS]; /* fraction of heads */
    size_t heads[MAX_POINTS];
    int64_t n;
} curve;

static int by_importance(const void *a, const void *b)
{
    const ses_prune_head *x = *(const ses_prune_head *const *)a, *y = *(const ses_prune_head *const *)b;
    if (x->importance != y->importance) return x->importance < y->importance ? -1 : 1;
    return x < y ? -1 : x > y;
}

static int64_t last_head_of_layer(const ses_prune *p, const ses_prune_head *h)
{
    size_t best = (size_t)(h - p->head), first = best - (size_t)h->head;
    int64_t n = ses_model_part_heads(p->m, h->part, h->layer);
    best = first;
    for (size_t i = first; i < first + (size_t)n; i++)
        if (p->head[i].importance > p->head[best].importance) best = i;
    return p->head[best].head;
}

/* Heads from the least important one on; without the best head of each layer, which always stays. */
static const ses_prune_head **removable(ses_prune *p, size_t *n, ses_err *e)
{
    const ses_prune_head **order = ses_arena_array(&p->mem, p->n_heads + 1, sizeof *order, e);
    *n = 0;
    for (size_t i = 0; order && i < p->n_heads; i++)
        if (last_head_of_layer(p, &p->head[i]) != p->head[i].head) order[(*n)++] = &p->head[i];
    if (order) qsort(order, *n, sizeof *order, by_importance);
    return order;
}

static bool measure(ses_prune *p, const ses_prune_args *a, const ses_prune_head *const *order, size_t n,
                    curve *c, ses_err *e)
{
    c->n = 0;
    for (int64_t step = 0; c->n < MAX_POINTS; step++) {
        size_t k = (size_t)(a->step * (double)step * (double)p->n_heads + 0.5);
        if (k > n) break;
        if (c->n && k == c->heads[c->n - 1]) continue; /* fewer heads than steps */
        ses_analysis_progress(p->call, "masking", c->n, 0);
        if (!ses_prune_score(p, order, k, &c->accuracy[c->n], e)) return false;
        c->heads[c->n] = k;
        c->removed[c->n] = (double)k / (double)p->n_heads;
        c->n++;
        if (c->accuracy[c->n - 1] < a->keep * c->accuracy[0]) return true;
    }
    return true;
}

/* ---- report ---- */

static const char *const part_names[] = { "layer", "decoder layer", "cross attention of layer" };

static void put_heatmap(ses_prune *p, ses_part part, ses_err *e)
{
    int64_t layers = ses_model_part_layers(p->m, part), most = 0;
    for (int64_t l = 0; l < layers; l++)
        if (ses_model_part_heads(p->m, part, l) > most) most = ses_model_part_heads(p->m, part, l);
    float *value = ses_arena_array(&p->mem, (size_t)(layers * most) + 1, sizeof *value, e);
    const char **row = ses_arena_array(&p->mem, (size_t)layers + 1, sizeof *row, e),
               **col = ses_arena_array(&p->mem, (size_t)most + 1, sizeof *col, e);
    if (!layers || !value || !row || !col) return;
    char name[24];
    for (int64_t i = 0; i < layers * most; i++) value[i] = NAN;
    for (int64_t l = 0; l < layers; l++)
        row[l] = ses_arena_strndup(&p->mem, name, (size_t)snprintf(name, sizeof name, "%d", (int)l + 1), e);
    for (int64_t h = 0; h < most; h++)
        col[h] = ses_arena_strndup(&p->mem, name, (size_t)snprintf(name, sizeof name, "%d", (int)h + 1), e);
    for (size_t i = 0; i < p->n_heads; i++)
        if (p->head[i].part == part)
            value[p->head[i].layer * most + p->head[i].head] = (float)p->head[i].importance;
    static const char *const titles[] = { "Importance of heads", "Importance of decoder heads",
                                          "Importance of cross-attention heads" };
    ses_report_heatmap(p->call->report, titles[part],
                       &(ses_figure_matrix){ .rows = layers,
                                             .cols = most,
                                             .value = value,
                                             .row_name = row,
                                             .col_name = col,
                                             .row_label = part_names[part],
                                             .col_label = "head",
                                             .scale = SES_SCALE_UNIT });
}

static void put_json(const ses_prune *p, const curve *c, const ses_prune_head *const *order, size_t kept)
{
    static const char *const parts[] = { "main", "decoder", "cross" };
    ses_json_writer *w = ses_report_json(p->call->report);
    ses_json_begin_object(w);
    ses_json_member_uint(w, "examples", p->n_texts);
    ses_json_member_uint(w, "truncated", p->truncated);
    ses_json_member_array(w, "heads");
    for (size_t i = 0; i < p->n_heads; i++) {
        ses_json_begin_object(w);
        ses_json_member_string(w, "part", parts[p->head[i].part]);
        ses_json_member_int(w, "layer", p->head[i].layer + 1);
        ses_json_member_int(w, "head", p->head[i].head + 1);
        ses_json_member_real(w, "importance", p->head[i].importance);
        ses_json_member_real(w, "raw", p->head[i].raw);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_member_array(w, "curve");
    for (int64_t i = 0; i < c->n; i++) {
        ses_json_begin_object(w);
        ses_json_member_uint(w, "masked", c->heads[i]);
        ses_json_member_real(w, "fraction", c->removed[i]);
        ses_json_member_real(w, "accuracy", c->accuracy[i]);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_member_array(w, "removable");
    for (size_t i = 0; i < kept; i++) {
        ses_json_begin_object(w);
        ses_json_member_string(w, "part", parts[order[i]->part]);
        ses_json_member_int(w, "layer", order[i]->layer + 1);
        ses_json_member_int(w, "head", order[i]->head + 1);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
}

static void put_curve(const ses_prune *p, const curve *c)
{
    ses_report *r = p->call->report;
    double percent[MAX_POINTS];
    for (int64_t i = 0; i < c->n; i++) percent[i] = 100 * c->removed[i];
    ses_figure *f = ses_report_lines(r, "Accuracy without heads", "masked heads in %", "accuracy");
    ses_figure_line(f, &(ses_figure_series){ .name = "accuracy", .n = c->n, .x = percent, .y = c->accuracy });
    ses_figure *t = ses_report_table(r, "Masked heads", ">heads|>part|>accuracy");
    for (int64_t i = 0; i < c->n; i++) {
        ses_figure_cell(t, "%zu", c->heads[i]);
        ses_figure_cell(t, "%.0f %%", percent[i]);
        ses_figure_cell(t, "%.4f", c->accuracy[i]);
    }
}

/* ---- the analysis ---- */

static bool check_args(const ses_analysis_call *call, const ses_prune_args *a, ses_err *e)
{
    if (!a->heads) return ses_fail(e, SES_EUSAGE, "nothing to prune: give --heads");
    if (strcmp(a->heads, "rank") != 0)
        return ses_fail(e, SES_EUSAGE, "--heads %s requires --output DIR; without a value it ranks the heads",
                        a->heads);
    if (a->has_fraction && !a->write) return ses_fail(e, SES_EUSAGE, "--fraction requires --write DIR");
    if (a->write && !call->overwrite && ses_path_exists(a->write))
        return ses_fail(e, SES_EUSAGE, "%s exists: --overwrite replaces its files", a->write);
    const char *why = ses_pruned_heads_unsupported(call->model->desc, &call->model->c);
    if (a->write && why)
        return ses_fail(e, SES_EUNSUPPORTED, "--write: heads of a %s model cannot be removed: %s",
                        ses_model_type(call->model), why);
    return true;
}

static bool prune(ses_prune *p, const ses_prune_args *a, ses_err *e)
{
    curve c;
    size_t n, kept = 0;
    ses_prune_columns columns = { a->text, a->pair, a->label, a->examples };
    if (!ses_prune_open(p, p->call->operands[0], &columns, e) || !ses_prune_importance(p, e)) return false;
    const ses_prune_head **order = removable(p, &n, e);
    if (!order || !measure(p, a, order, n, &c, e)) return false;
    for (int64_t i = 0; i < c.n; i++)
        if (c.accuracy[i] >= a->keep * c.accuracy[0]) kept = c.heads[i];
    for (ses_part k = SES_PART_MAIN; k <= SES_PART_CROSS; k++) put_heatmap(p, k, e);
    put_curve(p, &c);
    put_json(p, &c, order, kept);
    ses_report *r = p->call->report;
    ses_report_note(r,
                    "%zu of %zu heads can be masked with at least %.0f %% of the accuracy, on %zu examples.",
                    kept, p->n_heads, 100 * a->keep, p->n_texts);
    if (p->writes)
        ses_report_note(r,
                        "Accuracy: the part of the %lld target tokens that are the likeliest after the "
                        "tokens before them.",
                        (long long)p->n_labels);
    if (c.accuracy[0] <= 0)
        ses_report_note(r, "No label is predicted with all heads: the curve does not rank them.");
    if (p->truncated)
        ses_report_note(r, "%zu texts are longer than the model reads: they were truncated.", p->truncated);
    ses_report_note(r, "Importance: mean |output . gradient|, divided by the length of its layer's vector.");
    if (!a->write) return true;
    if (a->has_fraction) {
        kept = (size_t)(a->fraction * (double)p->n_heads + 0.5);
        if (kept > n) kept = n;
    }
    if (!ses_prune_write(p, order, kept, a->write, e)) return false;
    ses_report_note(r, "%s: the model without %zu heads. Each layer keeps its most important one.", a->write,
                    kept);
    return true;
}

static bool run(ses_analysis_call *call, ses_err *e)
{
    ses_prune p = { .call = call, .m = call->model };
    if (call->layers.given) return ses_fail(e, SES_EUSAGE, "--layers: heads of all layers are compared");
    bool ok = check_args(call, call->args, e) && ses_pass_open(&p.pass, p.m, e) && prune(&p, call->args, e);
    ses_pass_close(&p.pass);
    ses_arena_free(&p.mem);
    return ok;
}

const ses_analysis ses_analysis_prune = {
    .operands = "MODEL [DATA]",
    .description =
        "With --output, removes parts of a model from its weights and writes the smaller model: --heads X a "
        "part of the attention heads, by the mean |derivative of the loss by a factor of the head|, divided "
        "by the length of its layer's vector; --ffn X a part of the feed-forward rows, by the same measure "
        "(Taylor score); --layers N all but N layers, the top ones first (--layers-from). Importance is "
        "measured on the labeled file --data with the task of the model; a table shows parameters, size, "
        "FLOPs and score before and after. Fine-tune the result ('sesame finetune --model DIR', with "
        "--teacher to "
        "distill) to regain the score. --fill writes zeros at full size instead, for other libraries. Each "
        "layer "
        "keeps a head and a row. docs/COMPRESSION.md has the details.\n\n"
        "Without --output, ranks the attention heads of a classifier by their importance on the labeled "
        "texts "
        "DATA, or of an "
        "encoder-decoder on texts and the targets it should write, then measures "
        "the accuracy while the least important heads are masked, 10 % at a time, until it falls below 90 % "
        "of "
        "the first one. --write DIR removes heads from the weights: config.json lists them as pruned_heads, "
        "as in "
        "transformers; of encoder-decoders, which transformers cannot prune, with the members encoder, "
        "decoder "
        "and cross.\n\n"
        "ALBERT, DeBERTa, XLNet, Transformer-XL and MobileBERT are refused; of encoder-decoders, only heads "
        "can be removed, and only without --output.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(ses_prune_args),
    .min_operands = 1,
    .max_operands = 1,
    .has_model_operand = true,
    .model = SES_ANALYSIS_F32,
    .run = run,
};
