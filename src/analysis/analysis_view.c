/* view: the attention of one text. */
#include "analysis.h"
#include "analysis/view/attention_view.h"
#include "analysis/view/view_figures.h"
#include "base/alloc.h"
#include "base/str.h"

#include <inttypes.h>
#include <string.h>

typedef struct view_args {
    const char *pair, *target, *heads;
    bool generate, words, hide_special, neurons;
    int mode;
    int64_t max_seq_len, max_new_tokens, query;
} view_args;

static const char *const modes[] = { "heads", "model", "matrix", "neuron", "rollout", "flow" };
enum { HEADS, MODEL, MATRIX, NEURON, ROLLOUT, FLOW };

/* Flow is computed without being asked for if it takes less. */
static const double quick_flow = 0.5;
enum { MAX_FLOW_UNITS = 128, TABLE_ROWS = 24 };

static const ses_opt opt[] = {
    SES_OPT_TEXT(view_args, pair, "pair", "TEXT", "second text"),
    SES_OPT_TEXT(view_args, target, "target", "TEXT", "text of the decoder, of an encoder-decoder"),
    SES_OPT_FLAG(view_args, generate, "generate",
                 "generate text first, then show the attention of all of it"),
    SES_OPT_INT(view_args, max_new_tokens, "max-new-tokens", NULL, 0, 100000,
                "with --generate: most tokens to generate; 0: the model's setting", .value = "N"),
    SES_OPT_CHOICE(view_args, mode, "mode", NULL, "heads|model|matrix|neuron|rollout|flow",
                   "what to draw; default: every head, or the matrix if one head is chosen"),
    SES_OPT_TEXT(view_args, heads, "heads", "LIST", "heads, such as 1-4,7; they count from 1"),
    SES_OPT_INT(view_args, query, "query", NULL, 0, 1000000,
                "with --mode neuron: number of the token that attends, from 1", .value = "N"),
    SES_OPT_FLAG(view_args, words, "words",
                 "by word: sum over the tokens of a key, mean over the tokens of a query"),
    SES_OPT_FLAG(view_args, hide_special, "hide-special",
                 "without special tokens; the weights that remain are divided by their sum"),
    SES_OPT_FLAG(view_args, neurons, "neurons",
                 "write queries and keys to the page even if it becomes large"),
    SES_OPT_INT(view_args, max_seq_len, "max-seq-len", NULL, 0, 1000000,
                "truncate texts to this many tokens; 0: the model's limit", .value = "N"),
};

static const ses_usage_example examples[] = {
    { "sesame view \"The cat sat on the mat because it was tired.\"", "every head of every layer" },
    { "sesame view \"The cat sat.\" --layers 3 --heads 5", "the weights of one head" },
    { "sesame view \"The cat sat.\" --html cat.html", "an interactive page" },
    { "sesame view -m DIR \"translate: a house\" --generate --words", "a text and what the model writes" },
    { 0 },
};

/* ---- choices ---- */

static int64_t most_heads(const ses_attention_view *v)
{
    int64_t most = 0;
    for (int k = 0; k < v->n_families; k++)
        for (int64_t i = 0; i < v->family[k].n_layers; i++)
            if (v->family[k].layer[i].heads > most) most = v->family[k].layer[i].heads;
    return most;
}

static bool parse_heads(const view_args *a, int64_t most, ses_layer_set *heads, ses_err *e)
{
    ses_err why = { 0 };
    if (ses_layer_set_parse(heads, a->heads, most, &why) &&
        !(a->heads && ses_layer_set_has(heads, 0) && strcmp(a->heads, "all") != 0))
        return true;
    return ses_fail(e, SES_EUSAGE,
                    "--heads %s: expected numbers and ranges between 1 and %" PRId64 ", such as 1-%" PRId64,
                    a->heads, most, most);
}

static int64_t last_chosen(const ses_attention_view *v)
{
    const ses_view_family *f = &v->family[0];
    int64_t last = 0;
    for (int64_t i = 0; i < f->n_layers; i++)
        if (f->layer[i].chosen) last = f->layer[i].number;
    return last;
}

static int64_t count_chosen(const ses_layer_set *heads, int64_t most)
{
    int64_t n = 0;
    for (int64_t k = 1; k <= most; k++) n += ses_layer_set_has(heads, k);
    return n;
}

/* ---- drawing ---- */

/* Calls draw for each chosen layer if the user chose some, else for the last. */
static void each_layer(const ses_analysis_call *call, const ses_attention_view *v, const ses_layer_set *heads,
                       void (*draw)(const ses_attention_view *v, ses_report *r, const ses_layer_set *heads,
                                    int64_t layer))
{
    const ses_view_family *f = &v->family[0];
    for (int64_t i = 0; i < f->n_layers; i++)
        if (f->layer[i].chosen && (call->layers.given || f->layer[i].number == last_chosen(v)))
            draw(v, call->report, heads, f->layer[i].number);
}

static void draw_rollout(const ses_attention_view *v, ses_report *r, const ses_layer_set *heads,
                         int64_t layer)
{
    (void)heads;
    ses_view_draw_rollout(v, r, layer);
}

static bool draw_neurons(const ses_analysis_call *call, const ses_attention_view *v,
                         const ses_layer_set *heads, ses_err *e)
{
    const view_args *a = call->args;
    const ses_view_family *f = &v->family[v->n_families - 1];
    int64_t row = a->query ? a->query - 1 : 0, head = 0;
    if (row >= f->rows)
        return ses_fail(e, SES_EUSAGE, "--query %" PRId64 ": the text has %" PRId64 " tokens", a->query,
                        f->rows);
    while (!a->query && row + 1 < f->rows && f->from->unit_special[row]) row++;
    while (!ses_layer_set_has(heads, head + 1)) head++;
    const ses_view_layer *l = &f->layer[last_chosen(v) <= f->n_layers ? last_chosen(v) - 1 : f->n_layers - 1];
    if (!l->q)
        return ses_fail(e, SES_EUNSUPPORTED, "layer %" PRId64 " has no queries and keys for each token",
                        l->number);
    ses_view_draw_neurons(f, call->report, l->number, head < l->heads ? head : 0, row);
    return true;
}

static bool draw(const ses_analysis_call *call, const ses_attention_view *v, const ses_layer_set *heads,
                 ses_err *e)
{
    const view_args *a = call->args;
    bool one = v->family[0].n_chosen == 1 && count_chosen(heads, most_heads(v)) == 1;
    switch (a->mode) {
    case HEADS: each_layer(call, v, heads, ses_view_draw_strongest); break;
    case MATRIX: each_layer(call, v, heads, ses_view_draw_matrix); break;
    case NEURON: return draw_neurons(call, v, heads, e);
    case ROLLOUT: each_layer(call, v, heads, draw_rollout); break;
    case FLOW: ses_view_draw_flow(v, call->report); break;
    default:
        if (one && a->mode != MODEL)
            each_layer(call, v, heads, ses_view_draw_matrix);
        else
            ses_view_draw_overview(v, call->report, heads);
    }
    bool table = a->mode != HEADS && (call->html || (a->mode < 0 && v->family[0].rows <= TABLE_ROWS));
    if (table) ses_view_draw_strongest(v, call->report, heads, last_chosen(v));
    return true;
}

/* ---- the analysis ---- */

static bool check_args(const view_args *a, ses_err *e)
{
    if (a->mode == NEURON && (a->words || a->hide_special))
        return ses_fail(e, SES_EUSAGE, "--mode neuron shows tokens: leave out --words and --hide-special");
    if (a->neurons && (a->words || a->hide_special))
        return ses_fail(e, SES_EUSAGE,
                        "--neurons: queries and keys belong to tokens; leave out --words and "
                        "--hide-special");
    if (a->query && a->mode != NEURON) return ses_fail(e, SES_EUSAGE, "--query requires --mode neuron");
    if (a->max_new_tokens && !a->generate)
        return ses_fail(e, SES_EUSAGE, "--max-new-tokens requires --generate");
    return true;
}

static bool add_flow(const ses_analysis_call *call, ses_attention_view *v, ses_err *e)
{
    const view_args *a = call->args;
    int64_t most = 0;
    for (int k = 0; k < v->n_families; k++)
        if (v->family[k].rows > most) most = v->family[k].rows;
    if (a->mode != FLOW)
        return !call->html || ses_view_flow_seconds(v) > quick_flow || ses_view_flow(v, call, e);
    if (most > MAX_FLOW_UNITS)
        return ses_fail(e, SES_EARG,
                        "flow between %" PRId64 " %s would take about %.0f minutes, expected at "
                        "most %d: use --words, --hide-special or a shorter text",
                        most, v->words ? "words" : "tokens", ses_view_flow_seconds(v) / 60, MAX_FLOW_UNITS);
    return ses_view_flow(v, call, e);
}

static void add_notes(const ses_analysis_call *call, const ses_attention_view *v)
{
    const view_args *a = call->args;
    if (v->truncated)
        ses_report_note(call->report, "The text was truncated: %" PRId64 " tokens were left out.",
                        v->truncated);
    if (v->generated && !v->target.tokens)
        ses_report_note(call->report, "Generated tokens follow the prompt; the page underlines them.");
    if (a->mode < 0 && v->family[0].n_chosen > 1 && !call->html)
        ses_report_note(call->report,
                        "--layers N --heads N shows one head with its tokens, --html FILE writes "
                        "an interactive page.");
}

static bool show(const ses_analysis_call *call, ses_attention_view *v, ses_err *e)
{
    const view_args *a = call->args;
    ses_layer_set heads;
    const char *mode = a->mode >= 0 ? modes[a->mode] : NULL;
    if (!parse_heads(a, most_heads(v), &heads, e)) return false;
    bool rollout = call->html || a->mode == ROLLOUT;
    if ((rollout && !ses_view_rollout(v, call->dev, e)) || !add_flow(call, v, e)) return false;
    if (!draw(call, v, &heads, e)) return false;
    if (call->json) ses_view_put_json(v, call->report, mode ? mode : "model", &heads);
    add_notes(call, v);
    return !call->html || ses_view_put_page(v, call->report, mode, a->neurons || a->mode == NEURON, e);
}

static bool run(ses_analysis_call *call, ses_err *e)
{
    const view_args *a = call->args;
    ses_attention_view v = { 0 };
    if (!check_args(a, e)) return false;
    ses_view_request q = { .text = call->operands[0],
                           .pair = a->pair,
                           .target = a->target,
                           .generate = a->generate,
                           .words = a->words,
                           .hide_special = a->hide_special,
                           .neurons = a->neurons || a->mode == NEURON ||
                                      (call->html && !a->words && !a->hide_special),
                           .max_tokens = a->max_seq_len,
                           .max_new_tokens = a->max_new_tokens };
    bool ok = ses_attention_view_make(&v, call, &q, e) && show(call, &v, e);
    ses_attention_view_free(&v);
    return ok;
}

const ses_analysis ses_analysis_view = {
    .operands = "TEXT|-",
    .description =
        "Shows which tokens each token attends to: the attention weights of every layer and head, of an "
        "encoder, "
        "a "
        "decoder, and the cross attention between them. Layers and heads count from 1.\n\nAn encoder-decoder "
        "shows its encoder, or with --target or --generate all three. --mode rollout multiplies the layers, "
        "residual connections included; --mode flow computes the maximum flow through them; --mode neuron "
        "shows "
        "the products of a query and the keys that make the weights of one head.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(view_args),
    .min_operands = 1,
    .max_operands = 1,
    .default_model_of = "fill-mask",
    .text_operand = true,
    .model = SES_ANALYSIS_CLASS,
    .run = run,
};
