/* Influence of training examples on a prediction: a logistic regression on the vectors that the last linear
 * layer of the model's classifier reads is fitted to the table, then each example's effect on the loss of the
 * text is computed. A model without a classifier has the means of the last layer's states instead. */
#include "explain.h"

#include "analysis/labeled_texts.h"

#include "analysis/word_states.h"
#include "base/alloc.h"
#include "math/logistic/influence.h"
#include "sesame/examples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct influence {
    ses_explain *x;
    ses_examples *train;
    size_t n, width;
    float *vector; /* [n + 1, width]: the examples, then the text */
    int32_t *label;
    ses_logreg fit;
    double *probability, *effect; /* [classes], [n] */
    int64_t chosen;
    bool by_head; /* vectors are the inputs of the classifier */
    size_t truncated;
} influence;

static bool take(void *ctx, const ses_state_batch *b, ses_err *e)
{
    influence *f = ctx;
    (void)e;
    for (size_t i = 0; i < b->rows; i++)
        memcpy(f->vector + b->row[i].text * f->width, b->x[0] + i * b->width, f->width * sizeof *f->vector);
    ses_analysis_progress(f->x->call, "reading", (int64_t)(b->first_text + b->texts), (int64_t)f->n + 1);
    return true;
}

/* Means of the last layer. */
static bool read_means(influence *f, const ses_input *text, ses_err *e)
{
    ses_model *view = ses_model_hidden_view(f->x->m, false, e);
    int64_t last = ses_word_states_depth(f->x->m, false);
    f->width = (size_t)ses_word_states_width(f->x->m, false);
    f->vector = view ? ses_alloc_array(f->n + 1, f->width * sizeof *f->vector, e) : NULL;
    ses_word_states_options o = { .unit = SES_STATES_TEXT_MEAN, .layers = &last, .n_layers = 1 };
    bool ok = f->vector && ses_word_states_run(view, f->x->call->tokenizer, text, f->n + 1, &o, take, f, e);
    ses_model_free(view);
    return ok;
}

/* ---- what the classifier reads ---- */

/* Adds texts first .. first + *n - 1, at most BATCH_TOKENS tokens. */
static bool encode_batch(influence *f, const ses_input *text, size_t first, size_t *n, ses_err *e)
{
    enum { BATCH_TOKENS = 4096, BATCH_TEXTS = 256 };
    ses_explain *x = f->x;
    ses_batch_builder *b = &x->pass.in;
    int64_t most = ses_model_max_tokens(x->m);
    ses_encode_options o = { .truncation = SES_TRUNCATE_LONGEST_FIRST,
                             .full_overflow = true, /* to count truncated texts */
                             .max_length = most < BATCH_TOKENS ? most : BATCH_TOKENS };
    for (*n = 0; first + *n <= f->n && *n < BATCH_TEXTS && b->ids.n < BATCH_TOKENS; ++*n) {
        if (!ses_encode(x->tokens, &text[first + *n], &o, e)) return false;
        const ses_encoding *k = ses_encode_ctx_result(x->tokens);
        if (!k->n) return ses_fail(e, SES_EARG, "text %zu has no tokens", first + *n + 1);
        if (!ses_batch_builder_add_encoding(b, k, x->sets_segments, e)) return false;
        f->truncated += ses_encode_ctx_overflow_count(x->tokens) > 0;
    }
    return true;
}

static bool read_head_inputs(influence *f, const ses_input *text, ses_err *e)
{
    ses_explain *x = f->x;
    ses_output_request r = { .logits = true, .head_inputs = true };
    x->pass.record = false;
    for (size_t first = 0, n; first <= f->n; first += n) {
        ses_analysis_progress(x->call, "reading", (int64_t)first, (int64_t)f->n + 1);
        if (!encode_batch(f, text, first, &n, e) || !ses_pass_run(&x->pass, &r, e)) return false;
        const ses_real *rows = ses_pass_read(&x->pass, "head_inputs", e);
        if (!rows) return false;
        f->width = (size_t)ses_cols(ses_pass_output(&x->pass, "head_inputs", e)->tensor);
        if (!f->vector) f->vector = ses_alloc_array(f->n + 1, f->width * sizeof *f->vector, e);
        if (!f->vector) return false;
        for (size_t i = 0; i < n * f->width; i++) f->vector[first * f->width + i] = (float)rows[i];
    }
    ses_analysis_progress(x->call, "reading", (int64_t)f->n + 1, (int64_t)f->n + 1);
    return true;
}

static bool read_vectors(influence *f, ses_err *e)
{
    const ses_analysis_call *c = f->x->call;
    ses_input *text = ses_alloc_array(f->n + 1, sizeof *text, e);
    if (!text) return false;
    for (size_t i = 0; i < f->n; i++) text[i].text = ses_examples_at(f->train, i)->text_a;
    text[f->n].text = (ses_string){ c->operands[0], strlen(c->operands[0]) };
    f->by_head = f->x->m->class->head[0].head == &ses_head_sequence_classification;
    bool ok = f->by_head ? read_head_inputs(f, text, e) : read_means(f, text, e);
    ses_free(text);
    for (size_t i = 0; ok && i < (f->n + 1) * f->width; i++)
        if (!isfinite(f->vector[i]))
            ok = ses_fail(e, SES_EFORMAT,
                          "the vector of text %zu is not finite: the weights of the model may be damaged",
                          i / f->width + 1);
    return ok;
}

static bool open_examples(influence *f, ses_err *e)
{
    const ses_explain_args *a = f->x->args;
    f->train = ses_labeled_texts_open(a->influence, a->text_column, NULL, a->label_column, e);
    if (!f->train) return false;
    if (!ses_examples_check_learnable(f->train, e)) return ses_wrap(e, "%s", a->influence);
    f->n = ses_examples_count(f->train);
    f->label = ses_alloc_array(f->n, sizeof *f->label, e);
    for (size_t i = 0; f->label && i < f->n; i++) f->label[i] = ses_examples_at(f->train, i)->label;
    return f->label != NULL;
}

static bool find_label(influence *f, ses_err *e)
{
    const char *wanted = f->x->args->label;
    size_t classes = ses_examples_label_count(f->train);
    for (size_t i = 1; i < classes && !wanted; i++)
        if (f->probability[i] > f->probability[f->chosen]) f->chosen = (int64_t)i;
    if (!wanted) return true;
    ses_buf list = { 0 };
    for (size_t i = 0; i < classes; i++) {
        const char *name = ses_examples_label_name(f->train, i);
        ses_buf_appendf(&list, "%s%s", i ? ", " : "", name);
        if (strcmp(name, wanted) != 0) continue;
        f->chosen = (int64_t)i;
        ses_buf_free(&list);
        return true;
    }
    ses_fail(e, SES_EUSAGE, "--label %s: the examples have no such label; labels: %s", wanted,
             list.data ? list.data : "");
    ses_buf_free(&list);
    return false;
}

static bool compute(influence *f, ses_err *e)
{
    size_t classes = ses_examples_label_count(f->train);
    ses_logreg_options o = { .c = f->x->args->c, .tolerance = 1e-10, .iterations = 10000 };
    f->probability = ses_alloc_array(classes, sizeof *f->probability, e);
    f->effect = ses_alloc_array(f->n, sizeof *f->effect, e);
    if (!f->probability || !f->effect ||
        !ses_logreg_fit(&f->fit, f->vector, f->label, NULL, f->n, f->width, classes, &o, e))
        return false;
    const float *test = f->vector + f->n * f->width;
    ses_logreg_predict(&f->fit, test, f->probability);
    ses_influence_data d = { f->vector, f->label, f->n, f->width, classes, f->x->args->c };
    return find_label(f, e) && ses_influence(&f->fit, &d, test, (int32_t)f->chosen, f->effect, e);
}

/* ---- report ---- */

typedef struct ranked {
    size_t example;
    double effect;
} ranked;

static int by_effect(const void *a, const void *b)
{
    double x = ((const ranked *)a)->effect, y = ((const ranked *)b)->effect;
    return x < y ? 1 : x > y ? -1 : 0;
}

static void put_row(const influence *f, ses_figure *t, ses_json_writer *w, const ranked *r)
{
    enum { SHOWN = 64 };
    const ses_labeled_example *x = ses_examples_at(f->train, r->example);
    const char *label = ses_examples_label_name(f->train, (size_t)x->label);
    size_t n = x->text_a.n;
    if (n > SHOWN)
        for (n = SHOWN; n && ((unsigned char)x->text_a.p[n] & 0xC0) == 0x80;) n--;
    ses_figure_cell(t, "%+.5f", r->effect);
    ses_figure_cell(t, "%s", label);
    ses_figure_cell(t, "%.*s%s", (int)n, x->text_a.p, n < x->text_a.n ? "..." : "");
    ses_json_begin_object(w);
    ses_json_member_uint(w, "line", x->line);
    ses_json_member_stringn(w, "text", x->text_a.p, x->text_a.n);
    ses_json_member_string(w, "label", label);
    ses_json_member_real(w, "influence", r->effect);
    ses_json_end_object(w);
}

static bool put_report(const influence *f, ses_err *e)
{
    ses_report *r = f->x->call->report;
    ses_json_writer *w = ses_report_json(r);
    const char *label = ses_examples_label_name(f->train, (size_t)f->chosen);
    ranked *order = ses_arena_array(&f->x->mem, f->n, sizeof *order, e);
    if (!order) return false;
    for (size_t i = 0; i < f->n; i++) order[i] = (ranked){ i, f->effect[i] };
    qsort(order, f->n, sizeof *order, by_effect);
    ses_report_set_title(r, "Training examples behind \"%s\"", label);
    ses_json_begin_object(w);
    ses_json_member_string(w, "method", "influence");
    ses_json_member_string(w, "label", label);
    ses_json_member_real(w, "probability", f->probability[f->chosen]);
    ses_json_member_uint(w, "examples", f->n);
    ses_json_member_string(w, "vectors", f->by_head ? "inputs of the classifier" : "means of the last layer");
    static const char *const titles[] = { "Supporting examples", "Opposing examples" };
    static const char *const keys[] = { "supporting", "opposing" };
    for (int k = 0; k < 2; k++) {
        ses_figure *t = ses_report_table(r, titles[k], ">influence|label|text");
        ses_json_member_array(w, keys[k]);
        for (size_t i = 0; i < f->n && (int64_t)i < f->x->args->top; i++) {
            const ranked *at = &order[k ? f->n - 1 - i : i];
            if (k ? at->effect < 0 : at->effect > 0) put_row(f, t, w, at);
        }
        ses_json_end_array(w);
    }
    ses_json_end_object(w);
    ses_report_note(
        r, "The prediction is \"%s\" with probability %.4f, by a logistic regression on %zu examples.", label,
        f->probability[f->chosen], f->n);
    ses_report_note(r, "The regression reads the %s.",
                    f->by_head ? "vectors that the last linear layer of the model's classifier reads"
                               : "means of the last layer: the model has no classifier of texts");
    if (f->truncated)
        ses_report_note(r, "%zu texts are longer than the model reads: they were truncated.", f->truncated);
    ses_report_note(r, "Influence is the estimated rise of the loss of this prediction without the example.");
    if (!f->fit.converged)
        ses_report_note(r, "The regression did not converge: use a smaller C for reliable values.");
    return true;
}

bool ses_explain_influence(ses_explain *x, ses_err *e)
{
    influence f = { .x = x };
    if (x->args->foil || x->args->pair || x->args->word || x->args->token)
        return ses_fail(e, SES_EUSAGE,
                        "--influence explains the label of one text: leave out --foil, --pair, "
                        "--word and --token");
    bool ok = open_examples(&f, e) && read_vectors(&f, e) && compute(&f, e) && put_report(&f, e);
    ses_examples_free(f.train);
    ses_logreg_free(&f.fit);
    ses_free(f.vector), ses_free(f.label), ses_free(f.probability), ses_free(f.effect);
    return ok;
}
