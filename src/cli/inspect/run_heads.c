/* Views of the heads for `sesame run`: as text and as JSON. */
#include "base/alloc.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"
#include "run_model.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { INDENT = 2 };

static void put_label(ses_json_writer *w, const ses_model *m, int64_t i)
{
    ses_json_member_int(w, "id", i);
    if (ses_model_label_name(m, i)) ses_json_member_string(w, "label", ses_model_label_name(m, i));
}

/* Writes a probability with the digits of a float. */
static void put_probability(ses_json_writer *w, const char *key, double p)
{
    ses_json_put_key(w, key);
    ses_json_put_float(w, (float)p);
}

static const char *label_text(const ses_model *m, int64_t i, char buf[SES_NUMBER_TEXT])
{
    const char *name = ses_model_label_name(m, i);
    if (name) return name;
    snprintf(buf, SES_NUMBER_TEXT, "label %d", (int)i);
    return buf;
}

static void put_probability_cells(ses_text_table *t, const ses_term *term, double p, int used)
{
    char bar[SES_BAR_SIZE];
    ses_text_table_cell(t, p >= 0.001 ? "%.1f %%" : "%.2g %%", 100 * p);
    ses_text_table_cell(t, "%s", ses_bar_text(term, bar, p, ses_bar_width(term, used)));
    ses_text_table_style(t, SES_GREEN);
}

static bool print_table(ses_text_table *t, const ses_run_view *r, ses_err *e)
{
    bool ok = ses_text_table_print(t, stdout, r->term, INDENT, e);
    ses_text_table_free(t);
    return ok;
}

/* ---- masked-lm, causal-lm, conditional-generation: the most probable tokens at each requested position
 * ---- */

static bool is_requested(const ses_run_view *r, ses_token_slice at, int64_t position)
{
    if (r->a->position >= 0) return position == r->a->position;
    if (r->a->mask_id >= 0) return at.id[position] == r->a->mask_id;
    return true;
}

static void put_position(ses_run_view *r, int32_t id, int64_t position, const ses_top_score *best, int64_t k,
                         double sum)
{
    ses_json_begin_object(r->w);
    ses_json_member_int(r->w, "position", position);
    ses_json_member_int(r->w, "id", id);
    ses_json_member_token(r, "token", id);
    ses_json_member_array(r->w, "top");
    for (int64_t i = 0; i < k; i++) {
        ses_json_begin_object(r->w);
        ses_json_member_int(r->w, "id", best[i].i);
        ses_json_member_token(r, "token", best[i].i);
        put_probability(r->w, "probability", exp(best[i].score - sum));
        ses_json_end_object(r->w);
    }
    ses_json_end_array(r->w);
    ses_json_end_object(r->w);
}

static void put_position_cells(const ses_run_view *r, ses_text_table *t, int32_t id, int64_t position,
                               const ses_top_score *best, int64_t k, double sum)
{
    char text[SES_TOKEN_TEXT];
    for (int64_t i = 0; i < k; i++) {
        ses_text_table_cell(t, i ? "" : "%" PRId64, position);
        ses_text_table_cell(t, "%s", i ? "" : ses_run_token_text(r, id, text));
        ses_text_table_cell(t, "%s", ses_run_token_text(r, (int32_t)best[i].i, text));
        put_probability_cells(t, r->term, exp(best[i].score - sum), 46);
    }
}

static bool put_logits(ses_run_view *r, const ses_output *o, int64_t s, const char *name, ses_err *e)
{
    ses_token_slice at = ses_run_output_tokens(r, o, s);
    ses_json_member_array(r->w, name);
    for (int64_t position = 0; position < at.n; position++) {
        if (!is_requested(r, at, position)) continue;
        const float *x = ses_run_rows(r, o, at.first + position, 1, e);
        if (!x) return false;
        ses_json_put_floats(r->w, x, ses_run_cols(o));
    }
    ses_json_end_array(r->w);
    return true;
}

static bool predict_into(ses_run_view *r, const ses_output *o, int64_t s, ses_top_score *best,
                         ses_text_table *t, int64_t *shown, ses_err *e)
{
    ses_token_slice at = ses_run_output_tokens(r, o, s);
    int64_t V = ses_run_cols(o);
    for (int64_t position = 0; position < at.n; position++) {
        if (!is_requested(r, at, position)) continue;
        const float *x = ses_run_rows(r, o, at.first + position, 1, e);
        if (!x) return false;
        int64_t k = ses_top_scores(best, r->a->top, x, V);
        double sum = ses_run_log_sum_exp(x, V);
        if (r->w)
            put_position(r, at.id[position], position, best, k, sum);
        else
            put_position_cells(r, t, at.id[position], position, best, k, sum);
        ++*shown;
    }
    return true;
}

static bool predict(ses_run_view *r, const ses_head_use *use, int64_t s, ses_err *e)
{
    const char *columns = r->tokenizer ? ">Position|Token|Predicted|>Probability|"
                                       : ">Position|>Token|>Predicted|>Probability|";
    const ses_output *o = ses_run_output(r, use->output);
    ses_top_score *best = ses_alloc_array((size_t)r->a->top, sizeof *best, e);
    ses_text_table *t = best && !r->w ? ses_text_table_new(columns, e) : NULL;
    int64_t shown = 0;
    if (r->w) ses_json_member_array(r->w, "predictions");
    bool ok = best && (t || r->w) && predict_into(r, o, s, best, t, &shown, e);
    if (r->w) ses_json_end_array(r->w);
    if (ok && r->w && r->a->logits) ok = put_logits(r, o, s, use->output, e);
    if (ok && !r->w && !shown) printf("  no token %" PRId64 " in this sequence\n", r->a->mask_id);
    ses_free(best);
    if (ok && !r->w && shown) return print_table(t, r, e);
    ses_text_table_free(t);
    return ok;
}

/* ---- classify: one label, several, or numbers ---- */

/* The same rule as in training. */
static ses_problem problem_of(const ses_model *m)
{
    if (m->c.head.problem != SES_PROBLEM_UNSET) return m->c.head.problem;
    return m->c.labels == 1 ? SES_PROBLEM_REGRESSION : SES_PROBLEM_SINGLE;
}

static double probability(ses_problem kind, double score, double sum)
{
    return kind == SES_PROBLEM_MULTI ? 1 / (1 + exp(-score)) : exp(score - sum);
}

static bool show_values(ses_run_view *r, const float *x, int64_t n, ses_err *e)
{
    char name[SES_NUMBER_TEXT];
    if (r->w) {
        ses_json_put_key(r->w, "values");
        ses_json_put_floats(r->w, x, n);
        return true;
    }
    ses_text_table *t = ses_text_table_new("|>", e);
    if (!t) return false;
    for (int64_t i = 0; i < n; i++) {
        ses_text_table_cell(t, "%s", label_text(r->model, i, name));
        ses_text_table_cell(t, "%.6g", (double)x[i]);
    }
    return print_table(t, r, e);
}

static void put_labels(ses_run_view *r, ses_problem kind, const ses_top_score *best, int64_t k, double sum)
{
    ses_json_member_array(r->w, "labels");
    for (int64_t i = 0; i < k; i++) {
        ses_json_begin_object(r->w);
        put_label(r->w, r->model, best[i].i);
        put_probability(r->w, "probability", probability(kind, best[i].score, sum));
        ses_json_end_object(r->w);
    }
    ses_json_end_array(r->w);
}

static bool show_labels(ses_run_view *r, ses_problem kind, const ses_top_score *best, int64_t k, double sum,
                        ses_err *e)
{
    char name[SES_NUMBER_TEXT];
    ses_text_table *t = ses_text_table_new("|>|", e);
    if (!t) return false;
    for (int64_t i = 0; i < k; i++) {
        double p = probability(kind, best[i].score, sum);
        ses_text_table_cell(t, "%s", label_text(r->model, best[i].i, name));
        bool applies = kind == SES_PROBLEM_MULTI ? p >= 0.5 : i == 0;
        ses_text_table_style(t, applies ? SES_BOLD : SES_PLAIN);
        put_probability_cells(t, r->term, p, 40);
    }
    if (!print_table(t, r, e)) return false;
    int64_t more = ses_model_label_count(r->model) - k;
    if (more > 0) printf("  and %" PRId64 " more (--top)\n", more);
    return true;
}

static bool classify(ses_run_view *r, const ses_head_use *use, int64_t s, ses_err *e)
{
    const ses_output *o = ses_run_output(r, use->output);
    int64_t n = ses_run_cols(o);
    const float *x = ses_run_rows(r, o, s, 1, e);
    if (!x) return false;
    ses_problem kind = problem_of(r->model);
    if (r->w) {
        ses_json_put_key(r->w, use->output);
        ses_json_put_floats(r->w, x, n);
    }
    if (kind == SES_PROBLEM_REGRESSION) return show_values(r, x, n, e);
    ses_top_score *best = ses_alloc_array((size_t)r->a->top, sizeof *best, e);
    if (!best) return false;
    int64_t k = ses_top_scores(best, r->a->top, x, n);
    double sum = ses_run_log_sum_exp(x, n);
    bool ok = true;
    if (r->w)
        put_labels(r, kind, best, k, sum);
    else
        ok = show_labels(r, kind, best, k, sum, e);
    ses_free(best);
    return ok;
}

/* ---- tag: a label per token ---- */

static void put_tag(ses_run_view *r, int64_t position, int32_t id, int64_t label, double p)
{
    ses_json_begin_object(r->w);
    ses_json_member_int(r->w, "position", position);
    ses_json_member_int(r->w, "token_id", id);
    ses_json_member_token(r, "token", id);
    put_label(r->w, r->model, label);
    put_probability(r->w, "probability", p);
    ses_json_end_object(r->w);
}

static bool tag(ses_run_view *r, const ses_head_use *use, int64_t s, ses_err *e)
{
    const ses_output *o = ses_run_output(r, use->output);
    char name[SES_NUMBER_TEXT], text[SES_TOKEN_TEXT];
    ses_token_slice at = ses_run_output_tokens(r, o, s);
    int64_t n = ses_run_cols(o);
    const float *x = ses_run_rows(r, o, at.first, at.n, e);
    ses_text_table *t = x && !r->w ? ses_text_table_new(">Position|>Token|Label|>Probability|", e) : NULL;
    if (!x || (!t && !r->w)) return false;
    if (r->w) ses_json_member_array(r->w, "tags");
    for (int64_t i = 0; i < at.n; i++, x += n) {
        ses_top_score best = { 0 };
        ses_top_scores(&best, 1, x, n);
        double p = exp(best.score - ses_run_log_sum_exp(x, n));
        if (r->w) {
            put_tag(r, i, at.id[i], best.i, p);
            continue;
        }
        ses_text_table_cell(t, "%" PRId64, i);
        ses_text_table_cell(t, "%s", ses_run_token_text(r, at.id[i], text));
        ses_text_table_cell(t, "%s", label_text(r->model, best.i, name));
        put_probability_cells(t, r->term, p, 50);
    }
    if (!r->w) return print_table(t, r, e);
    ses_json_end_array(r->w);
    return put_logits(r, o, s, use->output, e);
}

/* ---- span: the most probable answers ---- */

/* Range of tokens for answers: the last segment. */
static void answer_range(const ses_run_view *r, int64_t s, int64_t *from, int64_t *to)
{
    const int32_t *segment = r->batch.in.segments.p + r->batch.in.cu_seqlens.p[s];
    *to = ses_run_input_tokens(r, s).n;
    *from = *to - 1;
    while (*from > 0 && segment[*from - 1] == segment[*to - 1]) --*from;
}

static void put_answers(ses_run_view *r, const ses_top_score *best, int64_t k)
{
    ses_json_member_array(r->w, "answers");
    for (int64_t i = 0; i < k; i++) {
        ses_json_begin_object(r->w);
        ses_json_member_int(r->w, "start", best[i].i);
        ses_json_member_int(r->w, "end", best[i].j);
        put_probability(r->w, "probability", exp(best[i].score));
        ses_json_end_object(r->w);
    }
    ses_json_end_array(r->w);
}

/* Appends the text or id of a token after the separator; returns the length. */
static size_t answer_token(const ses_run_view *r, int32_t id, const char *separator, char *to, size_t cap)
{
    char text[SES_TOKEN_TEXT];
    const char *word = strchr(ses_run_token_text(r, id, text), ' ');
    int n = snprintf(to, cap, "%s%s", separator, word ? word + 1 : text);
    return n < 0 ? 0 : (size_t)n < cap ? (size_t)n : cap - 1;
}

static bool show_answers(ses_run_view *r, int64_t s, const ses_top_score *best, int64_t k, ses_err *e)
{
    const int32_t *ids = ses_run_input_tokens(r, s).id;
    ses_text_table *t = ses_text_table_new(">From|>To|>Probability||Tokens", e);
    if (!t) return false;
    for (int64_t i = 0; i < k; i++) {
        char text[2 * SES_TOKEN_TEXT] = "", bar[SES_BAR_SIZE];
        size_t at = 0;
        int64_t j = best[i].i;
        for (; j <= best[i].j && at < 40; j++)
            at += answer_token(r, ids[j], at ? " " : "", text + at, sizeof text - at);
        ses_text_table_cell(t, "%" PRId64, best[i].i);
        ses_text_table_cell(t, "%" PRId64, best[i].j);
        ses_text_table_cell(t, "%.1f %%", 100 * exp(best[i].score));
        ses_text_table_cell(t, "%s", ses_bar_text(r->term, bar, exp(best[i].score), 20));
        ses_text_table_style(t, SES_GREEN);
        ses_text_table_cell(t, "%s%s", text, j <= best[i].j ? " ..." : "");
    }
    return print_table(t, r, e);
}

static bool span(ses_run_view *r, const ses_head_use *use, int64_t s, ses_err *e)
{
    (void)use; /* the head has two outputs */
    int64_t first = ses_run_input_tokens(r, s).first, T = ses_run_input_tokens(r, s).n, from, to, k = 0;
    ses_top_score *best = ses_alloc_array((size_t)r->a->top, sizeof *best, e);
    float *start = ses_alloc_array(2 * (size_t)T, sizeof *start, e), *end = start ? start + T : NULL;
    bool ok = best && start;
    const float *x = ok ? ses_run_rows(r, ses_run_output(r, "start_logits"), first, T, e) : NULL;
    if (x) memcpy(start, x, (size_t)T * sizeof *x);
    x = x ? ses_run_rows(r, ses_run_output(r, "end_logits"), first, T, e) : NULL;
    if (x) memcpy(end, x, (size_t)T * sizeof *x);
    ok = x != NULL;
    answer_range(r, s, &from, &to);
    double sum =
        ok ? ses_run_log_sum_exp(start + from, to - from) + ses_run_log_sum_exp(end + from, to - from) : 0;
    for (int64_t i = from; ok && i < to; i++)
        for (int64_t j = i; j < to && j < i + r->a->max_answer; j++)
            ses_top_scores_offer(best, &k, r->a->top,
                                 (ses_top_score){ i, j, (double)start[i] + (double)end[j] - sum });
    if (ok && r->w) {
        put_answers(r, best, k);
        ses_json_put_key(r->w, "start_logits");
        ses_json_put_floats(r->w, start, T);
        ses_json_put_key(r->w, "end_logits");
        ses_json_put_floats(r->w, end, T);
    } else if (ok) {
        ok = show_answers(r, s, best, k, e);
    }
    ses_free(start);
    ses_free(best);
    return ok;
}

/* The pairs of a beam. */
static bool answer_beam(ses_run_view *r, const ses_head_use *use, int64_t s, ses_err *e)
{
    (void)use;
    const ses_output *o = ses_run_output(r, "start_top_index"), *ends = ses_run_output(r, "end_top_index");
    int64_t n = ses_cols(o->tensor), pairs = ses_cols(ends->tensor), k = 0;
    ses_top_score *pair = ses_alloc_array((size_t)pairs, sizeof *pair, e),
                  *best = pair ? ses_alloc_array((size_t)r->a->top, sizeof *best, e) : NULL;
    const float *x = best ? ses_run_rows(r, o, s, 1, e) : NULL;
    for (int64_t i = 0; x && i < pairs; i++) pair[i].i = (int64_t)x[i % n];
    x = x ? ses_run_rows(r, ends, s, 1, e) : NULL;
    for (int64_t i = 0; x && i < pairs; i++) pair[i].j = (int64_t)x[i];
    x = x ? ses_run_rows(r, ses_run_output(r, "start_top_log_probs"), s, 1, e) : NULL;
    for (int64_t i = 0; x && i < pairs; i++) pair[i].score = log((double)x[i % n]);
    x = x ? ses_run_rows(r, ses_run_output(r, "end_top_log_probs"), s, 1, e) : NULL;
    for (int64_t i = 0; x && i < pairs; i++) pair[i].score += log((double)x[i]);
    for (int64_t i = 0; x && i < pairs; i++)
        if (pair[i].j >= pair[i].i && isfinite(pair[i].score))
            ses_top_scores_offer(best, &k, r->a->top, pair[i]);
    bool ok = x != NULL;
    if (ok && r->w)
        put_answers(r, best, k);
    else if (ok)
        ok = show_answers(r, s, best, k, e);
    ses_free(best);
    ses_free(pair);
    return ok;
}

/* ---- replaced-tokens: a probability per token ---- */

static bool replaced(ses_run_view *r, const ses_head_use *use, int64_t s, ses_err *e)
{
    const ses_output *o = ses_run_output(r, use->output);
    ses_token_slice at = ses_run_output_tokens(r, o, s);
    char text[SES_TOKEN_TEXT];
    const float *x = ses_run_rows(r, o, at.first, at.n, e);
    ses_text_table *t = x && !r->w ? ses_text_table_new(">Position|>Token|>Replaced|", e) : NULL;
    if (!x || (!t && !r->w)) return false;
    if (r->w) ses_json_member_array(r->w, "replaced");
    for (int64_t i = 0; i < at.n; i++) {
        double p = 1 / (1 + exp(-(double)x[i]));
        if (r->w) {
            ses_json_put_float(r->w, (float)p);
            continue;
        }
        ses_text_table_cell(t, "%" PRId64, i);
        ses_text_table_cell(t, "%s", ses_run_token_text(r, at.id[i], text));
        put_probability_cells(t, r->term, p, 40);
    }
    if (!r->w) return print_table(t, r, e);
    ses_json_end_array(r->w);
    ses_json_put_key(r->w, use->output);
    ses_json_put_floats(r->w, x, at.n);
    return true;
}

/* ---- next-sentence, sentence-order, choice ---- */

static bool show_probabilities(ses_run_view *r, const char *const *name, const float *x, int64_t n,
                               ses_err *e)
{
    double sum = ses_run_log_sum_exp(x, n);
    ses_text_table *t = ses_text_table_new("|>|", e);
    if (!t) return false;
    for (int64_t i = 0; i < n; i++) {
        if (name)
            ses_text_table_cell(t, "%s", name[i]);
        else
            ses_text_table_cell(t, "choice %" PRId64, i);
        bool is_max = true;
        for (int64_t j = 0; j < n; j++) is_max &= x[j] <= x[i];
        ses_text_table_style(t, is_max ? SES_BOLD : SES_PLAIN);
        put_probability_cells(t, r->term, exp((double)x[i] - sum), 40);
    }
    return print_table(t, r, e);
}

static bool pair(ses_run_view *r, const ses_head_use *use, const char *const name[2], const char *key,
                 int64_t s, ses_err *e)
{
    const float *x = ses_run_rows(r, ses_run_output(r, use->output), s, 1, e);
    if (!x) return false;
    if (!r->w) return show_probabilities(r, name, x, 2, e);
    put_probability(r->w, key, exp((double)x[0] - ses_run_log_sum_exp(x, 2)));
    ses_json_put_key(r->w, use->output);
    ses_json_put_floats(r->w, x, 2);
    return true;
}

static bool next_sentence(ses_run_view *r, const ses_head_use *use, int64_t s, ses_err *e)
{
    static const char *const name[] = { "follows", "does not follow" };
    return pair(r, use, name, "follows", s, e);
}

static bool sentence_order(ses_run_view *r, const ses_head_use *use, int64_t s, ses_err *e)
{
    static const char *const name[] = { "in order", "swapped" };
    return pair(r, use, name, "in_order", s, e);
}

static bool choice(ses_run_view *r, const ses_head_use *use, int64_t s, ses_err *e)
{
    int64_t n = r->a->choices;
    const float *x = ses_run_rows(r, ses_run_output(r, use->output), s / n, 1, e);
    if (!x) return false;
    if (!r->w) return show_probabilities(r, NULL, x, n, e);
    ses_top_score best = { 0 };
    ses_top_scores(&best, 1, x, n);
    double sum = ses_run_log_sum_exp(x, n);
    ses_json_member_int(r->w, "best", best.i);
    ses_json_member_array(r->w, "probabilities");
    for (int64_t i = 0; i < n; i++) ses_json_put_float(r->w, (float)exp((double)x[i] - sum));
    ses_json_end_array(r->w);
    ses_json_put_key(r->w, use->output);
    ses_json_put_floats(r->w, x, n);
    return true;
}

/* The span boundary head applies only to masked spans, the bidirectional LM head only to labels. */
static bool show_nothing(ses_run_view *r, const ses_head_use *use, int64_t s, ses_err *e)
{
    (void)r, (void)use, (void)s, (void)e;
    return true;
}

/* The vector of a sentence: a vector of states, as models without a head show them. */
static bool sentence_vector(ses_run_view *r, const ses_head_use *use, int64_t s, ses_err *e)
{
    const ses_output *out = ses_run_output(r, use->output);
    const float *x = ses_run_rows(r, out, s, 1, e);
    double squares = 0;
    int64_t n = x ? ses_cols(out->tensor) : 0;
    if (!x) return false;
    for (int64_t i = 0; i < n; i++) squares += (double)x[i] * (double)x[i];
    if (!r->w) return printf("sentence vector: %lld numbers, norm %.4g\n", (long long)n, sqrt(squares)) >= 0;
    ses_json_put_key(r->w, use->output);
    ses_json_put_floats(r->w, x, n);
    return true;
}

ses_view_fn *ses_view_for_head(const ses_head *h)
{
    static const ses_view view[] = {
        { &ses_head_masked_lm, predict },
        { &ses_head_copy_lm, predict },
        { &ses_head_causal_lm, predict },
        { &ses_head_seq2seq_lm, predict },
        { &ses_head_span_boundary, show_nothing },
        { &ses_head_next_sentence, next_sentence },
        { &ses_head_sentence_order, sentence_order },
        { &ses_head_replaced_tokens, replaced },
        { &ses_head_sequence_classification, classify },
        { &ses_head_multiple_choice, choice },
        { &ses_head_token_classification, tag },
        { &ses_head_question_answering, span },
        { &ses_head_answer_beam, answer_beam },
        { &ses_head_neighbor_sentences, sentence_vector },
        { &ses_head_bidirectional_lm, show_nothing },
    };
    for (size_t i = 0; i < SES_LEN(view); i++)
        if (view[i].head == h) return view[i].show;
    return NULL;
}
