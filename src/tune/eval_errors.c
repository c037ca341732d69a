/* The worst errors of an evaluation as JSON, for eval_errors.json and the report of a run. */
#include "finetune_impl.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/unicode/utf8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_ERRORS = 20, MAX_TEXT = 1000, MAX_WORDS = 12 };

typedef struct ranked {
    size_t row;
    double severity; /* higher is worse */
    double score;    /* see kind.score */
} ranked;

typedef struct errors {
    ses_finetuner *t;
    const ses_finetune_set *s;
    const ses_finetune_outputs *o;
    ses_evaluation v;
    const char *score_name; /* the score that orders texts */
    ranked worst[MAX_ERRORS];
    size_t n, count; /* worst errors kept, all errors */
} errors;

/* A kind of error, chosen by the arrays of the evaluation. */
typedef struct kind {
    const char *name, *score; /* score NULL: errors.score_name */
    /* False: the row is correct. */
    bool (*evaluate)(errors *x, size_t row, ranked *out);
    /* Writes the members that describe the row. */
    void (*put)(const errors *x, const ranked *r, ses_json_writer *w);
} kind;

/* ---- texts ---- */

/* At most MAX_TEXT bytes; invalid bytes become U+FFFD. */
static void put_text(ses_json_writer *w, const char *key, const char *s, size_t n)
{
    char text[MAX_TEXT + 8];
    size_t used = 0, i = 0;
    while (i < n && used < MAX_TEXT - 4) {
        uint32_t cp;
        size_t k = ses_utf8_decode(s + i, n - i, &cp);
        used += (size_t)ses_utf8_encode(k ? cp : 0xFFFD, text + used);
        i += k ? k : 1;
    }
    if (i < n) used += (size_t)ses_utf8_encode(0x2026, text + used); /* an ellipsis */
    ses_json_put_key(w, key);
    ses_json_put_stringn(w, text, used);
}

static void put_string(ses_json_writer *w, const char *key, const char *s)
{
    put_text(w, key, s ? s : "", s ? strlen(s) : 0);
}

static void put_inputs(const errors *x, const ranked *r, ses_json_writer *w)
{
    const ses_labeled_example *row = ses_examples_at(x->s->rows, r->row);
    put_text(w, "text", row->text_a.p, row->text_a.n);
    if (row->text_b.n && x->t->task->target != SES_TARGET_TEXT)
        put_text(w, "pair", row->text_b.p, row->text_b.n);
}

/* ---- one label ---- */

static bool score_label(errors *x, size_t row, ranked *out)
{
    ses_prediction p = { 0 };
    int32_t is = x->v.true_labels[row];
    if (is == SES_IGNORE_INDEX || is == x->v.pred_labels[row]) return false;
    if (!x->t->task->fill_prediction(x->t, x->s, x->o, row, &p, NULL, NULL)) return false;
    *out = (ranked){ row, p.score, p.score };
    return true;
}

/* The name of a label; of a choice its text. */
static void put_label(const errors *x, size_t row, const char *key, int32_t label, ses_json_writer *w)
{
    const ses_labeled_example *r = ses_examples_at(x->s->rows, row);
    if (x->v.labels)
        put_string(w, key, x->v.labels[label]);
    else if ((size_t)label < r->n_parts)
        put_text(w, key, r->parts[label].p, r->parts[label].n);
}

static void put_labeled(const errors *x, const ranked *r, ses_json_writer *w)
{
    put_inputs(x, r, w);
    put_label(x, r->row, "true", x->v.true_labels[r->row], w);
    put_label(x, r->row, "predicted", x->v.pred_labels[r->row], w);
}

/* ---- tags ---- */

static bool is_wrong_word(const ses_evaluation *v, size_t at)
{
    return v->true_labels[at] != SES_IGNORE_INDEX && v->true_labels[at] != v->pred_labels[at];
}

static bool score_tags(errors *x, size_t row, ranked *out)
{
    double wrong = 0;
    for (size_t i = x->v.cu[row]; i < x->v.cu[row + 1]; i++) wrong += is_wrong_word(&x->v, i);
    *out = (ranked){ row, wrong, wrong };
    return wrong > 0;
}

static void put_tagged(const errors *x, const ranked *r, ses_json_writer *w)
{
    const ses_labeled_example *row = ses_examples_at(x->s->rows, r->row);
    size_t from = x->v.cu[r->row], shown = 0;
    ses_buf text = { 0 };
    for (size_t i = 0; i < row->n_parts && text.len <= MAX_TEXT; i++) {
        if (i) ses_buf_put(&text, ' ');
        ses_buf_append(&text, row->parts[i].p, row->parts[i].n);
    }
    put_text(w, "text", text.data, text.len);
    ses_buf_free(&text);
    ses_json_member_array(w, "words");
    for (size_t i = 0; i < row->n_parts && shown < MAX_WORDS; i++) {
        if (!is_wrong_word(&x->v, from + i)) continue;
        shown++;
        ses_json_begin_object(w);
        put_text(w, "word", row->parts[i].p, row->parts[i].n);
        put_string(w, "true", x->v.labels[x->v.true_labels[from + i]]);
        put_string(w, "predicted", x->v.labels[x->v.pred_labels[from + i]]);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
}

/* ---- several labels ---- */

static bool score_set(errors *x, size_t row, ranked *out)
{
    size_t n = x->v.n_labels;
    double wrong = 0;
    for (size_t k = 0; k < n; k++) wrong += x->v.true_sets[row * n + k] != x->v.pred_sets[row * n + k];
    *out = (ranked){ row, wrong, wrong };
    return wrong > 0;
}

static void put_set(const errors *x, const char *key, const uint8_t *set, ses_json_writer *w)
{
    ses_buf list = { 0 };
    for (size_t k = 0; k < x->v.n_labels; k++)
        if (set[k]) ses_buf_appendf(&list, "%s%s", list.len ? ", " : "", x->v.labels[k]);
    put_text(w, key, list.data, list.len);
    ses_buf_free(&list);
}

static void put_sets(const errors *x, const ranked *r, ses_json_writer *w)
{
    put_inputs(x, r, w);
    put_set(x, "true", x->v.true_sets + r->row * x->v.n_labels, w);
    put_set(x, "predicted", x->v.pred_sets + r->row * x->v.n_labels, w);
}

/* ---- numbers ---- */

static bool score_value(errors *x, size_t row, ranked *out)
{
    double off = fabs(x->v.true_reals[row] - x->v.pred_reals[row]);
    *out = (ranked){ row, off, off };
    return off > 0;
}

static void put_values(const errors *x, const ranked *r, ses_json_writer *w)
{
    put_inputs(x, r, w);
    ses_json_member_real(w, "true", x->v.true_reals[r->row]);
    ses_json_member_real(w, "predicted", x->v.pred_reals[r->row]);
}

/* ---- answers and generated texts ---- */

/* The evaluation of one row. */
static ses_evaluation row_of(const ses_evaluation *v, size_t row, size_t cu[2])
{
    size_t from = v->ref_cu ? v->ref_cu[row] : row, to = v->ref_cu ? v->ref_cu[row + 1] : row + 1;
    cu[0] = 0, cu[1] = to - from;
    return (ses_evaluation){ .n = 1,
                             .pred_texts = v->pred_texts + row,
                             .ref_texts = v->ref_texts + from,
                             .ref_cu = cu,
                             .no_answer = v->no_answer ? v->no_answer + row : NULL };
}

static bool score_answer(errors *x, size_t row, ranked *out)
{
    size_t cu[2];
    ses_scores s = { 0 };
    double score = NAN;
    ses_evaluation one = row_of(&x->v, row, cu);
    for (size_t i = 0; i < cu[1]; i++)
        if (!strcmp(one.ref_texts[i], one.pred_texts[0])) return false;
    if (!cu[1] && !*one.pred_texts[0]) return false;
    if (ses_finetuner_score(x->t, &one, NULL, &s, NULL)) ses_scores_find(&s, x->score_name, &score);
    ses_scores_free(&s);
    *out = (ranked){ row, isnan(score) ? 0 : -score, score };
    return true;
}

static void put_answer(const errors *x, const ranked *r, ses_json_writer *w)
{
    size_t cu[2];
    ses_evaluation one = row_of(&x->v, r->row, cu);
    put_inputs(x, r, w);
    put_string(w, "true", cu[1] ? one.ref_texts[0] : "");
    put_string(w, "predicted", one.pred_texts[0]);
}

/* ---- all kinds ---- */

static const kind *kind_of(const errors *x)
{
    static const kind tags = { "tags", "wrong words", score_tags, put_tagged },
                      labels = { "labels", "probability", score_label, put_labeled },
                      sets = { "sets", "wrong labels", score_set, put_sets },
                      values = { "values", "absolute difference", score_value, put_values },
                      texts = { "texts", NULL, score_answer, put_answer };
    const ses_evaluation *v = &x->v;
    if (!x->t->task->head) return NULL; /* cosines: their order counts, not their values */
    if (v->true_labels) return v->cu ? &tags : &labels;
    if (v->true_sets) return &sets;
    if (v->true_reals) return &values;
    return v->ref_texts ? &texts : NULL;
}

/* Keeps the worst, in order; of equal ones the first. */
static void keep(errors *x, const ranked *r)
{
    size_t at = x->n;
    x->count++;
    while (at && x->worst[at - 1].severity < r->severity) at--;
    if (at == MAX_ERRORS) return;
    size_t moved = (x->n < MAX_ERRORS ? x->n : MAX_ERRORS - 1) - at;
    memmove(x->worst + at + 1, x->worst + at, moved * sizeof *r);
    x->worst[at] = *r;
    if (x->n < MAX_ERRORS) x->n++;
}

static void put_errors(const errors *x, const kind *k, ses_json_writer *w)
{
    ses_json_begin_object(w);
    ses_json_member_string(w, "kind", k->name);
    ses_json_member_string(w, "score", k->score ? k->score : x->score_name);
    ses_json_member_int(w, "examples", (int64_t)x->v.n);
    ses_json_member_int(w, "errors", (int64_t)x->count);
    ses_json_member_array(w, "worst");
    for (size_t i = 0; i < x->n; i++) {
        ses_json_begin_object(w);
        ses_json_member_int(w, "line", (int64_t)ses_examples_at(x->s->rows, x->worst[i].row)->line);
        k->put(x, &x->worst[i], w);
        ses_json_member_real(w, "score", x->worst[i].score);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
}

bool ses_eval_errors_json(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                          const char *score, char **json, ses_err *e)
{
    ses_arena mem = { 0 };
    errors x = { .t = t, .s = s, .o = o, .score_name = score };
    *json = NULL;
    bool ok = ses_finetuner_fill_evaluation(t, s, o, &x.v, &mem, e);
    const kind *k = ok ? kind_of(&x) : NULL;
    for (size_t row = 0; k && row < x.v.n; row++) {
        ranked r;
        if (k->evaluate(&x, row, &r)) keep(&x, &r);
    }
    ses_json_writer *w = k ? ses_json_writer_new(2, e) : NULL;
    if (w) {
        put_errors(&x, k, w);
        const char *text = ses_json_writer_text(w, NULL, e);
        *json = text ? ses_strdup(text, e) : NULL;
    }
    ses_json_writer_free(w);
    ses_arena_free(&mem);
    return ok && (!k || *json);
}
