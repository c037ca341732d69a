/* explain: how much each word contributes to a prediction. */
#include "analysis/explain/explain.h"

#include "base/alloc.h"

#include <math.h>

static const struct {
    const char *name;
    const ses_explain_method *method;
} methods[] = {
#define SES_EXPLAIN_METHOD(id, name) { name, &ses_explain_##id },
#include "analysis/explain/methods.def"
#undef SES_EXPLAIN_METHOD
};

static const ses_opt opt[] = {
    SES_OPT_TEXT(ses_explain_args, pair, "pair", "TEXT",
                 "second text: of a pair, the passage of a question, or the beginning of all choices"),
    SES_OPT_TEXT(ses_explain_args, target, "target", "TEXT",
                 "text of an encoder-decoder's decoder; default: the generated one"),
    SES_OPT_TEXT(ses_explain_args, label, "label", "LABEL",
                 "label, tag, answer or choice to explain; default: the model's prediction"),
    SES_OPT_TEXT(ses_explain_args, foil, "foil", "LABEL",
                 "explain why not this label or token: the difference of two logits"),
    SES_OPT_TEXT(ses_explain_args, token, "token", "TOKEN",
                 "language models: token to explain, of the vocabulary or of the target"),
    SES_OPT_TEXT(ses_explain_args, word, "word", "WORD",
                 "word whose tag is explained, or its number; of a target text; that XLNet predicts"),
    SES_OPT_CHOICE(ses_explain_args, method, "method", "ig",
                   "ig|gradient|input-gradient|occlude|erase|value-zero|value-zero-score",
                   "how values are computed"),
    SES_OPT_INT(ses_explain_args, steps, "steps", "50", 1, 400,
                "ig: points between baseline and text; doubled up to 400 while the values are inexact",
                .value = "N", .group = "method"),
    SES_OPT_CHOICE(ses_explain_args, baseline, "baseline", "pad", "pad|mask|unk",
                   "ig: token of the baseline; special tokens stay", .group = "method"),
    SES_OPT_CHOICE(ses_explain_args, unit, "unit", "word", "piece|word|ngram",
                   "occlude, erase, value-zero-score: tokens that are removed together", .group = "method"),
    SES_OPT_INT(ses_explain_args, ngram, "ngram", "2", 1, 100, "words of --unit ngram", .value = "N",
                .group = "method"),
    SES_OPT_CHOICE(ses_explain_args, occlude, "occlude", "mask", "mask|delete",
                   "occlude: replace by the mask token, or delete", .group = "method"),
    SES_OPT_TEXT(ses_explain_args, influence, "influence", "FILE",
                 "influence of training examples in a table instead, by a logistic regression",
                 .is_path = true, .group = "influence"),
    SES_OPT_TEXT(ses_explain_args, text_column, "column", "COLUMN",
                 "column of the texts in --influence; default: found by name", .alias = "text-column",
                 .group = "influence"),
    SES_OPT_TEXT(ses_explain_args, label_column, "label-column", "COLUMN",
                 "column of the labels in --influence; default: found by name", .group = "influence"),
    SES_OPT_REAL(ses_explain_args, c, "regularization", "1", 1e-9, 1e9,
                 "--influence: inverse regularization strength", .letter = 'C', .value = "C",
                 .group = "influence"),
    SES_OPT_INT(ses_explain_args, top, "top-k", "10", 1, 100000, "rows of the table", .alias = "top",
                .value = "N", .group = "influence"),
};

static const ses_usage_example examples[] = {
    { "sesame explain \"a gorgeous, witty, seductive movie\"", "the words that make the review positive" },
    { "sesame explain \"not a good film\" --method occlude --unit ngram", "without two words at a time" },
    { "sesame explain -m sesame-ner \"Ada went to Paris\" --word Paris --foil B-PER",
      "why a location and not a person" },
    { "sesame explain -m sesame-small \"The capital of France is [MASK].\" --token paris --foil london",
      "why one token and not another" },
    { "sesame explain -m DIR \"Das Haus ist klein.\"", "every token of a translation" },
    { "sesame explain -m DIR \"He opened the door and\" \"went out.\" \"ate it.\"", "why this choice" },
    { "sesame explain \"a dull film\" --influence train.tsv", "the training examples behind a prediction" },
    { 0 },
};

int32_t ses_explain_baseline(const ses_explain *x)
{
    static const ses_token_role by_option[] = { SES_ROLE_PAD, SES_ROLE_MASK, SES_ROLE_UNK };
    return x->config.role[by_option[x->args->baseline]];
}

/* The default has substitutes for a missing token. */
static bool check_baseline(const ses_explain *x, ses_err *e)
{
    static const char *const option[] = { "pad", "mask", "unk" };
    return !x->args->baseline || ses_explain_baseline(x) >= 0 ||
           ses_fail(e, SES_EARG, "--baseline %s: the tokenizer has no such token", option[x->args->baseline]);
}

static bool prepare(ses_explain *x, ses_err *e)
{
    const ses_config *c = &x->m->c;
    if (!ses_tokenizer_config_read(&x->config, x->call->model_dir, ses_model_type(x->m),
                                   ses_model_sets_segments, x->call->tokenizer, e) ||
        !check_baseline(x, e))
        return false;
    x->sets_segments = ses_config_uses_segments(c) && x->config.sets_segments;
    x->echo = c->decoder.input_from_source;
    x->base_score = x->delta = x->probability = NAN;
    x->text = x->call->operands[0], x->pair = x->args->pair;
    x->tokens = ses_encode_ctx_new(x->call->tokenizer, e);
    return x->tokens && ses_pass_open(&x->pass, x->m, e);
}

static const ses_explain_method *method_of(const ses_explain *x) { return methods[x->args->method].method; }

/* Width of the token vectors and probability of the label; makes room for the values. */
static bool measure(ses_explain *x, ses_err *e)
{
    double likelihood;
    const ses_explain_target *g = &x->target;
    for (int s = 0; s < SES_EXPLAIN_SIDES; s++) {
        const ses_stack *k = &x->m->stack[x->m->stack[1].layer ? s : 0];
        x->width[s] = k->token ? ses_cols(k->token) : k->c->hidden;
    }
    for (int s = 0; s < SES_EXPLAIN_SIDES; s++) {
        x->value[s] = ses_arena_array(&x->mem, (size_t)x->side[s].n + 1, sizeof(double), e);
        if (!x->value[s]) return false;
        for (int64_t i = 0; i < x->side[s].n; i++) x->value[s][i] = NAN;
    }
    if (g->classes == 1 && !g->independent && !g->n_rivals) { /* a regression */
        if (method_of(x) != &ses_explain_erase) return true;
        return ses_fail(e, SES_EUNSUPPORTED, "--method erase compares likelihoods, a regression has none");
    }
    if (!ses_explain_run(x, &(ses_explain_pass){ .n = 1, .log_likelihood = &likelihood }, e)) return false;
    x->probability = exp(likelihood);
    return true;
}

/* Every chosen token of a target text. */
static bool explain_columns(ses_explain *x, ses_err *e)
{
    for (int64_t i = 0; i < x->n_columns; i++) {
        ses_explain_column *c = &x->column[i];
        for (int k = 0; k < SES_EXPLAIN_SIDES; k++) {
            int64_t n = k ? x->written.n : x->side[k].n;
            if (!(c->value[k] = ses_arena_array(&x->mem, (size_t)n, sizeof(double), e))) return false;
            for (int64_t t = 0; t < n; t++) c->value[k][t] = NAN;
        }
        ses_mark mark = ses_arena_mark(&x->mem);
        ses_analysis_progress(x->call, "explaining tokens", i, x->n_columns);
        if (!ses_explain_set_column(x, i, e) || !measure(x, e) || !method_of(x)->run(x, e)) return false;
        for (int k = 0; k < SES_EXPLAIN_SIDES; k++)
            for (int64_t t = 0; t < x->side[k].n; t++) c->value[k][t] = x->value[k][t];
        c->score = x->score, c->probability = x->probability;
        c->base_score = x->base_score, c->delta = x->delta, c->steps = x->steps;
        x->repeated = true;
        ses_arena_rewind(&x->mem, mark);
    }
    ses_analysis_progress(x->call, "explaining tokens", x->n_columns, x->n_columns);
    x->side[SES_EXPLAIN_TARGET] = x->written;
    return true;
}

static bool explain(ses_explain *x, ses_err *e)
{
    const ses_explain_method *m = method_of(x);
    if (x->args->influence) {
        if (!x->call->layers.given) return ses_explain_influence(x, e);
        return ses_fail(e, SES_EUSAGE, "--layers: --influence reads the last layer");
    }
    if (x->call->layers.given && m != &ses_explain_value_zero && m != &ses_explain_value_zero_score)
        return ses_fail(e, SES_EUSAGE,
                        "--layers: only value-zero and value-zero-score zero values in layers");
    bool choice = x->m->class->head[0].head == &ses_head_multiple_choice; /* encodes its pairs */
    if ((!choice && !ses_explain_encode(x, e)) || !ses_explain_choose_target(x, e)) return false;
    if (x->n_columns > 1) {
        if (!explain_columns(x, e)) return false;
        ses_explain_put_matrix(x, methods[x->args->method].name, m->description);
        return true;
    }
    if (!measure(x, e) || !m->run(x, e)) return false;
    ses_explain_put_report(x, methods[x->args->method].name, m->description);
    return true;
}

static bool run(ses_analysis_call *call, ses_err *e)
{
    ses_explain x = { .call = call, .args = call->args, .m = call->model };
    bool ok = prepare(&x, e) && explain(&x, e);
    ses_pass_close(&x.pass);
    ses_encode_ctx_free(x.tokens);
    ses_arena_free(&x.mem);
    return ok;
}

const ses_analysis ses_analysis_explain = {
    .operands = "TEXT|- [CHOICE...]",
    .description =
        "Shows how much each word contributes to a prediction: of a classifier, a tagger (--word), question "
        "answering (--pair), multiple choice (the choices follow the text), a masked language model (at the "
        "mask), XLNet (at the mask or at --word, which no token attends to), a decoder (the next token) or "
        "an "
        "encoder-decoder: every token of the generated text or of --target by the source and the tokens "
        "before it; --token or --word chooses one. Values are in units of the logit of the predicted label, "
        "of --label, or of the difference to --foil. Positive values support it. Of a text that is longer "
        "than the model reads, the part with the prediction is explained, and a note gives it.\n\n"
        "Methods: integrated gradients (ig, the default), gradient, input-gradient; occlude replaces words "
        "by "
        "the mask token, erase sets their vectors to zero. value-zero is the definition of Mohebbi et al.: "
        "the cosine distance between a token's hidden states with and without the values of another token, "
        "in "
        "one layer, divided by their sum, and multiplied over the layers; it explains the state that the "
        "head "
        "reads. value-zero-score is the fall of the score if a word's values are zero in all layers. "
        "--layers chooses the layers of both.\n\n"
        "--influence FILE ranks the examples of a table by their effect on the prediction of a logistic "
        "regression, fitted to the vectors that the last linear layer of the model's classifier reads; of a "
        "model without a classifier, to the means of the last layer.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(ses_explain_args),
    .min_operands = 1,
    .max_operands = -1,
    .default_model_of = "text-classification",
    .text_operand = true,
    .takes_text = true,
    .model = SES_ANALYSIS_F32,
    .run = run,
};
