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
    { .name = "pair",
      .type = SES_OPT_TEXT,
      .offset = offsetof(ses_explain_args, pair),
      .value = "TEXT",
      .help = "second text: of a pair, or the passage of a question" },
    { .name = "target",
      .type = SES_OPT_TEXT,
      .offset = offsetof(ses_explain_args, target),
      .value = "TEXT",
      .help = "text of an encoder-decoder's decoder; default: the generated one" },
    { .name = "label",
      .type = SES_OPT_TEXT,
      .offset = offsetof(ses_explain_args, label),
      .value = "LABEL",
      .help = "label, tag or answer to explain; default: the model's prediction" },
    { .name = "foil",
      .type = SES_OPT_TEXT,
      .offset = offsetof(ses_explain_args, foil),
      .value = "LABEL",
      .help = "explain why not this label or token: the difference of two logits" },
    { .name = "token",
      .type = SES_OPT_TEXT,
      .offset = offsetof(ses_explain_args, token),
      .value = "TOKEN",
      .help = "language models: token to explain, of the vocabulary or of the target" },
    { .name = "word",
      .type = SES_OPT_TEXT,
      .offset = offsetof(ses_explain_args, word),
      .value = "WORD",
      .help = "taggers: word whose tag is explained, or its number; default: the first that is not O" },
    { .name = "method",
      .type = SES_OPT_CHOICE,
      .offset = offsetof(ses_explain_args, method),
      .def = "ig",
      .choices = "ig|gradient|input-gradient|occlude|erase|value-zero",
      .help = "how values are computed" },
    { .name = "steps",
      .type = SES_OPT_INT,
      .offset = offsetof(ses_explain_args, steps),
      .value = "N",
      .def = "50",
      .min = 1,
      .max = 400,
      .help = "ig: points between baseline and text; doubled up to 400 while the values are inexact" },
    { .name = "baseline",
      .type = SES_OPT_CHOICE,
      .offset = offsetof(ses_explain_args, baseline),
      .def = "pad",
      .choices = "pad|mask|unk",
      .help = "ig: token of the baseline; special tokens stay" },
    { .name = "unit",
      .type = SES_OPT_CHOICE,
      .offset = offsetof(ses_explain_args, unit),
      .def = "word",
      .choices = "piece|word|ngram",
      .help = "occlude, erase, value-zero: tokens that are removed together" },
    { .name = "ngram",
      .type = SES_OPT_INT,
      .offset = offsetof(ses_explain_args, ngram),
      .value = "N",
      .def = "2",
      .min = 1,
      .max = 100,
      .help = "words of --unit ngram" },
    { .name = "occlude",
      .type = SES_OPT_CHOICE,
      .offset = offsetof(ses_explain_args, occlude),
      .def = "mask",
      .choices = "mask|delete",
      .help = "occlude: replace by the mask token, or delete" },
    { .name = "influence",
      .type = SES_OPT_TEXT,
      .offset = offsetof(ses_explain_args, influence),
      .value = "FILE",
      .help = "influence of training examples in a table instead, by a logistic regression on the model" },
    { .name = "text-column",
      .type = SES_OPT_TEXT,
      .offset = offsetof(ses_explain_args, text_column),
      .value = "COLUMN",
      .help = "column of the texts in --influence; default: found by name" },
    { .name = "label-column",
      .type = SES_OPT_TEXT,
      .offset = offsetof(ses_explain_args, label_column),
      .value = "COLUMN",
      .help = "column of the labels in --influence; default: found by name" },
    { .name = "regularization",
      .letter = 'C',
      .type = SES_OPT_REAL,
      .offset = offsetof(ses_explain_args, c),
      .value = "C",
      .def = "1",
      .min = 1e-9,
      .max = 1e9,
      .help = "--influence: inverse regularization strength" },
    { .name = "top",
      .type = SES_OPT_INT,
      .offset = offsetof(ses_explain_args, top),
      .value = "N",
      .def = "10",
      .min = 1,
      .max = 100000,
      .help = "rows of the table" },
};

static const ses_usage_example examples[] = {
    { "sesame explain \"a gorgeous, witty, seductive movie\"", "the words that make the review positive" },
    { "sesame explain \"not a good film\" --method occlude --unit ngram", "without two words at a time" },
    { "sesame explain -m sesame-ner \"Ada went to Paris\" --word Paris --foil B-PER",
      "why a location and not a person" },
    { "sesame explain -m sesame-small \"The capital of France is [MASK].\" --token paris --foil london",
      "why one token and not another" },
    { "sesame explain \"a dull film\" --influence train.tsv", "the training examples behind a prediction" },
    { 0 },
};

static bool prepare(ses_explain *x, ses_err *e)
{
    const ses_config *c = &x->m->c;
    if (!ses_tokenizer_config_read(&x->config, x->call->model_dir, ses_model_type(x->m),
                                   ses_model_sets_segments, x->call->tokenizer, e))
        return false;
    x->sets_segments = (c->embed.segments > 1 || c->xl.relative_segments) && x->config.sets_segments;
    x->echo = c->decoder.input_from_source;
    x->base_score = x->delta = x->probability = NAN;
    x->tokens = ses_encode_ctx_new(x->call->tokenizer, e);
    x->tape = ses_tape_new(x->call->dev, NULL, e);
    return x->tokens && x->tape;
}

/* Width of the token vectors and probability of the label; makes room for the values. */
static bool measure(ses_explain *x, ses_err *e)
{
    double likelihood;
    const ses_stack *k = &x->m->stack[0];
    x->width = k->token ? ses_cols(k->token) : x->m->c.hidden;
    for (int s = 0; s < SES_EXPLAIN_SIDES; s++) {
        x->value[s] = ses_arena_array(&x->mem, (size_t)x->side[s].n + 1, sizeof(double), e);
        if (!x->value[s]) return false;
        for (int64_t i = 0; i < x->side[s].n; i++) x->value[s][i] = NAN;
    }
    if (x->target.classes == 1) return true; /* a regression */
    if (!ses_explain_run(x, &(ses_explain_pass){ .n = 1, .log_likelihood = &likelihood }, e)) return false;
    x->probability = exp(likelihood);
    return true;
}

static bool explain(ses_explain *x, ses_err *e)
{
    const ses_explain_method *m = methods[x->args->method].method;
    if (x->args->influence) return ses_explain_influence(x, e);
    if (!ses_explain_encode(x, e) || !ses_explain_choose_target(x, e) || !measure(x, e)) return false;
    if (x->target.classes == 1 && m == &ses_explain_erase)
        return ses_fail(e, SES_EUNSUPPORTED, "--method erase compares likelihoods, a regression has none");
    if (!m->run(x, e)) return false;
    ses_explain_put_report(x, methods[x->args->method].name, m->description);
    return true;
}

static bool run(ses_analysis_call *call, ses_err *e)
{
    ses_explain x = { .call = call, .args = call->args, .m = call->model };
    bool ok = prepare(&x, e) && explain(&x, e);
    ses_tape_free(x.tape);
    ses_encode_ctx_free(x.tokens);
    ses_arena_free(&x.mem);
    return ok;
}

const ses_analysis ses_analysis_explain = {
    .operands = "TEXT",
    .description =
        "Shows how much each word contributes to a prediction: of a classifier, a tagger (--word), question "
        "answering (--pair), a masked language model (at the mask), a decoder (the next token) or an "
        "encoder-decoder (a token of the generated text or of --target). Values are in units of the logit of "
        "the predicted label, of --label, or of the difference to --foil. Positive values support it.\n\n"
        "Methods: integrated gradients (ig, the default), gradient, input-gradient; occlude replaces words "
        "by "
        "the mask token, erase sets their vectors to zero, value-zero hides their values from attention in "
        "the layers of --layers. --influence FILE ranks the training examples of a logistic regression on "
        "the "
        "model's text vectors by their effect on the prediction.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(ses_explain_args),
    .min_operands = 1,
    .max_operands = 1,
    .default_model_of = "text-classification",
    .takes_text = true,
    .model = SES_ANALYSIS_F32,
    .run = run,
};
