/* Question answering (task answer): the span of a passage that answers a question. A passage that is too long
 * is split into overlapping windows; the answer is the best span of all windows, as in transformers'
 * run_qa.py. */
#include "tune/multi/ensemble.h"

#include "model/model_desc.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Does the model search answers with a beam? */
static bool has_beam(const ses_finetuner *t)
{
    return t->model->class->head[0].head == &ses_head_answer_beam;
}

/* sequence_id of the tokens of the passage */
static int passage_id(const ses_finetuner *t) { return t->model->class->passage_first ? 0 : 1; }

/* The first CLS token of a window; 0: it has none. */
static int32_t find_cls(const ses_finetuner *t, const ses_encoding *k)
{
    for (size_t i = 0; i < k->n; i++)
        if (k->id[i] == t->tokenizer_config.role[SES_ROLE_CLS]) return (int32_t)i;
    return 0;
}

/* First and last token of the answer in this window; the token of no answer (the first, or CLS of a beam) if
 * the window does not contain all of it. */
static void find_span(const ses_labeled_example *r, const ses_encoding *k, int passage, ses_sequence *q)
{
    size_t first = 0, last = k->n;
    q->start = q->end = q->cls;
    while (first < k->n && k->sequence_id[first] != passage) first++;
    while (last > first && k->sequence_id[last - 1] != passage) last--;
    if (!r->n_answers || first == last) return;
    uint32_t begin = (uint32_t)r->answers[0].byte_start, end = begin + (uint32_t)r->answers[0].text.n;
    if (k->byte_offset[first].begin > begin || k->byte_offset[last - 1].end < end) return;
    size_t a = first, b = last;
    while (a + 1 < last && k->byte_offset[a + 1].begin <= begin) a++;
    while (b - 1 > first && k->byte_offset[b - 2].end >= end) b--;
    if (b - 1 < a) return;
    q->start = (int32_t)a;
    q->end = (int32_t)(b - 1);
}

static bool add_window(ses_finetuner *t, const ses_labeled_example *r, int32_t row, ses_finetune_set *s,
                       const ses_encoding *k, ses_err *e)
{
    ses_arena mem = { 0 };
    ses_sequence q = { 0 };
    ses_offset *bytes = ses_arena_array(&mem, k->n, sizeof *bytes, e);
    int32_t *allowed = has_beam(t) ? ses_arena_array(&mem, k->n, sizeof *allowed, e) : NULL;
    bool ok = bytes && (allowed || !has_beam(t));
    for (size_t i = 0; ok && i < k->n; i++)
        bytes[i] = k->sequence_id[i] == passage_id(t) ? k->byte_offset[i] : (ses_offset){ 1, 0 };
    if (ok && allowed) {
        q.cls = find_cls(t, k), q.tags = allowed;
        for (size_t i = 0; i < k->n; i++)
            allowed[i] = k->sequence_id[i] == passage_id(t) || (int32_t)i == q.cls;
    }
    find_span(r, k, passage_id(t), &q);
    ok = ok && ses_finetuner_add_sequence(t, s, row, k, &q, NULL, bytes, e);
    ses_arena_free(&mem);
    return ok;
}

static bool encode(ses_finetuner *t, const ses_labeled_example *r, int32_t row, ses_finetune_set *s,
                   ses_err *e)
{
    ses_input in = { .text = { r->text_a.p, r->text_a.n }, .pair = { r->text_b.p, r->text_b.n } };
    ses_encode_options o = { .truncation = SES_TRUNCATE_ONLY_SECOND,
                             .max_length = t->max_tokens,
                             .stride = t->settings.stride,
                             .full_overflow = true };
    while (in.text.n && strchr(" \t\n\r", in.text.p[0])) in.text.p++, in.text.n--;
    if (t->model->class->passage_first) {
        ses_string question = in.text;
        in.text = in.pair, in.pair = question;
        o.truncation = SES_TRUNCATE_ONLY_FIRST;
    }
    if (!ses_encode(t->tokens, &in, &o, e)) return false;
    if (!add_window(t, r, row, s, ses_encode_ctx_result(t->tokens), e)) return false;
    size_t more = ses_encode_ctx_overflow_count(t->tokens);
    s->n_truncated += more > 0;
    for (size_t i = 0; i < more; i++) {
        const ses_encoding *k = ses_encode_ctx_overflow(t->tokens, i, e);
        if (!k || !add_window(t, r, row, s, k, e)) return false;
    }
    return true;
}

/* Best answer of a question so far. */
typedef struct found {
    double score, none; /* none: lowest score of no answer over the windows */
    ses_offset span;    /* bytes of the passage */
    bool has_answer, has_none;
} found;

static bool begin(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o, ses_err *e)
{
    size_t n = s->n_rows;
    o->state = ses_arena_array(&o->mem, n, sizeof(found), e);
    o->text = ses_arena_array(&o->mem, n, sizeof *o->text, e);
    o->no_answer = ses_arena_array(&o->mem, n, sizeof *o->no_answer, e);
    if (t->in_ensemble && !o->prob) o->prob = ses_arena_array(&o->mem, 2 * s->tokens, sizeof *o->prob, e);
    return o->state && o->text && o->no_answer && (o->prob || !t->in_ensemble);
}

/* Indices of the k tokens with the highest score in column col, best first. */
static int64_t top_tokens(const float *x, int64_t n, int64_t col, int64_t k, int32_t *at)
{
    int64_t n_found = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t j = n_found < k ? n_found++ : n_found;
        for (; j > 0 && x[2 * i + col] > x[2 * at[j - 1] + col]; j--)
            if (j < k) at[j] = at[j - 1];
        if (j < k) at[j] = (int32_t)i;
    }
    return n_found;
}

/* Offers the answer from token a to token b. */
static void offer(const ses_finetuner *t, found *f, const ses_offset *bytes, int32_t a, int32_t b,
                  double score)
{
    ses_offset from = bytes[a], to = bytes[b];
    if (from.begin > from.end || to.begin > to.end || b < a || b - a + 1 > t->settings.max_answer ||
        (f->has_answer && score <= f->score))
        return;
    f->has_answer = true;
    f->score = score;
    f->span = (ses_offset){ from.begin, to.end };
}

static void offer_none(found *f, double score)
{
    if (!f->has_none || score < f->none) f->none = score;
    f->has_none = true;
}

/* A beam: probabilities and positions of starts and ends, the score of no answer. An answer's score is the
 * sum of both probabilities, as in transformers' scripts. */
static void collect_beam(const ses_finetuner *t, found *f, const ses_offset *bytes, const float *x)
{
    int64_t starts = t->model->c.head.start_n_top, ends = t->model->c.head.end_n_top;
    const float *start = x, *start_index = x + starts, *end = x + 2 * starts,
                *end_index = end + starts * ends;
    offer_none(f, (double)end_index[starts * ends]);
    for (int64_t i = 0; i < starts; i++)
        for (int64_t j = 0; j < ends; j++)
            offer(t, f, bytes, (int32_t)start_index[i], (int32_t)end_index[j * starts + i],
                  (double)start[i] + (double)end[j * starts + i]);
}

/* Probabilities of the tokens of a window to be the first (column 0) and the last (1) of the answer. */
static void keep_probabilities(const float *x, int64_t n, float *prob)
{
    for (int64_t col = 0; col < 2; col++) {
        double max = -INFINITY, sum = 0;
        for (int64_t i = 0; i < n; i++) max = fmax(max, (double)x[2 * i + col]);
        for (int64_t i = 0; i < n; i++) sum += exp((double)x[2 * i + col] - max);
        for (int64_t i = 0; i < n; i++) prob[2 * i + col] = (float)(exp((double)x[2 * i + col] - max) / sum);
    }
}

static bool collect(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o, int64_t sequence,
                    const float *x, int64_t n, int64_t cols, ses_err *e)
{
    enum { MAX_CANDIDATES = 64 };
    int32_t start[MAX_CANDIDATES], end[MAX_CANDIDATES];
    (void)cols, (void)e;
    found *f = (found *)o->state + s->row[sequence];
    ptrdiff_t first = ses_dataset_at(s->data, sequence).ids - ses_dataset_at(s->data, 0).ids;
    const ses_offset *bytes = s->byte_span + first;
    if (o->prob) keep_probabilities(x, n, o->prob + 2 * first);
    if (has_beam(t)) {
        collect_beam(t, f, bytes, x);
        return true;
    }
    int64_t k = t->settings.n_best < MAX_CANDIDATES ? t->settings.n_best : MAX_CANDIDATES,
            a = top_tokens(x, n, 0, k, start), b = top_tokens(x, n, 1, k, end);
    offer_none(f, (double)x[0] + (double)x[1]);
    for (int64_t i = 0; i < a; i++)
        for (int64_t j = 0; j < b; j++)
            offer(t, f, bytes, start[i], end[j], (double)x[2 * start[i]] + (double)x[2 * end[j] + 1]);
    return true;
}

static bool finish(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o, ses_err *e)
{
    const found *f = o->state;
    for (size_t r = 0; r < s->n_rows; r++) {
        o->no_answer[r] = !f[r].has_answer ? INFINITY : f[r].none - (has_beam(t) ? 0 : f[r].score);
        bool none =
            !f[r].has_answer || (t->settings.allow_no_answer && o->no_answer[r] > t->settings.null_threshold);
        const char *from = ses_examples_at(s->rows, r)->text_b.p + f[r].span.begin;
        o->text[r] = none ? "" : ses_arena_strndup(&o->mem, from, f[r].span.end - f[r].span.begin, e);
        if (!o->text[r]) return false;
    }
    return true;
}

/* Do two models read the same tokens? */
static bool same_tokens(const ses_finetune_set *a, const ses_finetune_set *b)
{
    if (a->n != b->n || a->tokens != b->tokens) return false;
    return !memcmp(ses_dataset_at(a->data, 0).ids, ses_dataset_at(b->data, 0).ids,
                   a->tokens * sizeof *ses_dataset_at(a->data, 0).ids);
}

/* The best span by the mean probabilities of first and last tokens. */
static bool combine(const ses_ensemble_member *m, size_t n, ses_err *e)
{
    const ses_finetune_set *s = m->s;
    float *mean = ses_arena_array(&m->o->mem, 2 * s->tokens, sizeof *mean, e);
    if (!mean) return false;
    for (size_t i = 0; i < n; i++) {
        if (has_beam(m[i].t))
            return ses_fail(e, SES_EUNSUPPORTED,
                            "ensemble: %s finds answers with a beam: it has no "
                            "probabilities of all tokens",
                            m[i].name);
        if (!same_tokens(s, m[i].s))
            return ses_fail(e, SES_EARG,
                            "ensemble: %s and %s split the texts into different tokens; models "
                            "that answer questions need the same tokenizer",
                            m[0].name, m[i].name);
        for (size_t k = 0; k < 2 * s->tokens; k++) mean[k] += m[i].o->prob[k] / (float)n;
    }
    for (size_t k = 0; k < 2 * s->tokens; k++) mean[k] = logf(fmaxf(mean[k], FLT_MIN));
    m->o->prob = mean; /* collect must not write to the members' */
    if (!begin(m->t, s, m->o, e)) return false;
    m->o->prob = NULL;
    for (size_t k = 0; k < s->n; k++) {
        ses_sequence q = ses_dataset_at(s->data, (int64_t)k);
        const float *x = mean + 2 * (q.ids - ses_dataset_at(s->data, 0).ids);
        if (!collect(m->t, s, m->o, (int64_t)k, x, q.n, 2, e)) return false;
    }
    m->o->loss = NAN;
    return finish(m->t, s, m->o, e);
}

static bool fill_evaluation(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                            ses_evaluation *v, ses_arena *mem, ses_err *e)
{
    size_t all = 0;
    (void)t;
    for (size_t r = 0; r < v->n; r++) all += ses_examples_at(s->rows, r)->n_answers;
    size_t *cu = ses_arena_array(mem, v->n + 1, sizeof *cu, e);
    const char **ref_texts = ses_arena_array(mem, all + 1, sizeof *ref_texts, e);
    all = 0;
    for (size_t r = 0; cu && ref_texts && r < v->n; r++) {
        const ses_labeled_example *x = ses_examples_at(s->rows, r);
        for (size_t i = 0; i < x->n_answers; i++) ref_texts[all++] = x->answers[i].text.p;
        cu[r + 1] = all;
    }
    v->pred_texts = o->text;
    v->ref_texts = ref_texts;
    v->ref_cu = cu;
    v->no_answer = o->no_answer;
    return cu && ref_texts;
}

static bool fill_prediction(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                            size_t row, ses_prediction *p, ses_arena *mem, ses_err *e)
{
    (void)t, (void)s, (void)mem, (void)e;
    p->text = o->text[row];
    return true;
}

static void put_prediction(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                           size_t row, ses_json_writer *w)
{
    const ses_labeled_example *r = ses_examples_at(s->rows, row);
    if (r->id.n) ses_json_put_key(w, "id"), ses_json_put_stringn(w, r->id.p, r->id.n);
    ses_json_member_string(w, "answer", o->text[row]);
    if (t->settings.allow_no_answer)
        ses_json_put_key(w, "no_answer"), ses_json_put_real(w, o->no_answer[row]);
}

/* A beam of answers has layers of its own. */
static bool open_answer(ses_finetuner *t, ses_err *e)
{
    return t->model->class->head[0].head != &ses_head_answer_beam || !t->model->c.custom_head.kind ||
           ses_fail(e, SES_EUNSUPPORTED, "head: %s searches answers with its own layers; leave out --head",
                    t->model->class->name);
}

const ses_finetune_task ses_finetune_task_question_answering = {
    .name = "answer",
    .aliases = "question-answering",
    .summary = "the span of a passage that answers a question",
    .head = &ses_head_question_answering,
    .other_head = &ses_head_answer_beam,
    .data = SES_DATA_SPAN,
    .format = SES_DATA_SQUAD,
    .target = SES_TARGET_SPAN,
    .default_max_length = 384,
    .metrics = "squad",
    .best_metric = "f1",
    .in_percent = true,
    .open = open_answer,
    .encode = encode,
    .begin = begin,
    .collect = collect,
    .finish = finish,
    .combine = combine,
    .fill_evaluation = fill_evaluation,
    .fill_prediction = fill_prediction,
    .put_prediction = put_prediction,
};
