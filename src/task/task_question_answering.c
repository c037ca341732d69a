/* question-answering: extracts the spans of a context that answer a question. The score of a span is the
 * product of the softmax probabilities of its first and last token. Long contexts are read in overlapping
 * windows. Models that search answers with a beam (XLNetForQuestionAnswering) score the pairs of the beam,
 * and no answer by a score of its own. */
#include "base/alloc.h"
#include "pipeline_impl.h"

#include <math.h>
#include <stdlib.h>

enum { DEFAULT_MAX_SEQ_LEN = 384, DEFAULT_STRIDE = 128 };

typedef struct args {
    int64_t top_k, stride, max_answer_len;
    const char *question, *context;
    bool impossible, tokens;
} args;

static const ses_opt opt[] = {
    SES_OPT_TEXT(args, question, "question", "TEXT",
                 "question for all texts, or for --context; default: each text is a question followed by its "
                 "context"),
    SES_OPT_TEXT(args, context, "context", "TEXT",
                 "context for all texts, or for --question; then every text is a question"),
    SES_OPT_INT(args, top_k, "top-k", "1", 1, 1 << 16, "number of answers, best first", .letter = 'k'),
    SES_OPT_INT(args, stride, "doc-stride", "-1", -1, 1 << 24,
                "tokens shared by adjacent windows of a long context; -1: half a window, at most 128"),
    SES_OPT_INT(args, max_answer_len, "max-answer-len", "15", 1, 1 << 20, "maximum tokens of an answer"),
    SES_OPT_FLAG(args, impossible, "handle-impossible-answer", "allow an empty answer"),
    SES_OPT_FLAG(args, tokens, "no-align-to-words", "allow answers to begin and end inside words"),
};

#define FIELDS                                                                                \
    {                                                                                         \
        { "score", SES_FIELD_SCORE }, { "start", SES_FIELD_START }, { "end", SES_FIELD_END }, \
        {                                                                                     \
            "answer", SES_FIELD_TEXT                                                          \
        }                                                                                     \
    }
static const ses_result_schema one = { SES_FORM_ONE, SES_VIEW_ANSWER, FIELDS };
static const ses_result_schema many = { SES_FORM_ROWS, SES_VIEW_ANSWER, FIELDS };

typedef struct span {
    size_t begin, end; /* tokens, both included */
    float score;
} span;

typedef struct item_state {
    double no_answer; /* score of the empty answer: the minimum over all windows */
    uint32_t *slot;   /* [n_slots]: hash table of row numbers, from 1, by lowercased text; 0: free */
    size_t n_slots;
    ses_string *lower; /* [rows]: their lowercased texts */
} item_state;

static bool open_task(ses_pipeline *p, ses_err *e)
{
    (void)e;
    if (p->settings.max_seq_len > DEFAULT_MAX_SEQ_LEN) p->settings.max_seq_len = DEFAULT_MAX_SEQ_LEN;
    return true;
}

static bool has_beam(const ses_pipeline *p) { return p->model->class->head[0].head == &ses_head_answer_beam; }

/* sequence_id of the tokens of the context */
static int context_id(const ses_pipeline *p) { return p->model->class->passage_first ? 0 : 1; }

/* Answers of a beam are in the context, or at CLS: no answer. */
static bool mask_answers(ses_pipeline *p, ses_request *r, ses_err *e)
{
    for (size_t s = 0; has_beam(p) && s < r->n_seqs; s++) {
        ses_seq *q = &r->seq[s];
        int32_t *mask = ses_arena_array(&r->mem, q->n, sizeof *mask, e);
        if (!mask) return false;
        for (size_t i = q->n; i-- > 0;)
            if (q->id[i] == p->tokenizer_config.role[SES_ROLE_CLS]) q->cls = (int32_t)i;
        for (size_t i = 0; i < q->n; i++)
            mask[i] = q->sequence_id[i] == context_id(p) || (int32_t)i == q->cls;
        q->answer_mask = mask;
    }
    return true;
}

static bool encode(ses_pipeline *p, ses_request *r, ses_err *e)
{
    const args *a = r->args;
    item_state *s = r->state;
    int64_t stride = a->stride >= 0                                 ? a->stride
                     : p->settings.max_seq_len / 2 < DEFAULT_STRIDE ? p->settings.max_seq_len / 2
                                                                    : DEFAULT_STRIDE;
    if (a->question && a->context && (r->item.text.p || r->item.pair.p))
        return ses_fail(e, SES_EARG, "question and context are both given as options: expected no text");
    if (a->question && !r->item.pair.p) r->item.pair = r->item.text, r->item.text.p = NULL;
    if (a->question && !r->item.text.p) r->item.text = ses_str(a->question);
    if (!r->item.pair.p && a->context) r->item.pair = ses_str(a->context);
    if (!r->item.pair.p) return ses_fail(e, SES_EARG, "no context: give a question and a text");
    if (!r->item.text.p || !r->item.text.n) return ses_fail(e, SES_EARG, "the question is empty");
    if (!r->item.pair.n) return ses_fail(e, SES_EARG, "the context is empty");
    if (!ses_encode(p->tokens, &(ses_input){ .text = r->item.text }, NULL, e)) return false;
    int64_t question = (int64_t)ses_encode_ctx_result(p->tokens)->n;
    if (question + 1 >= p->settings.max_seq_len)
        return ses_fail(
            e, SES_EARG,
            "the question has %lld tokens and leaves no room for its context: the maximum length is %lld",
            (long long)question, (long long)p->settings.max_seq_len);
    s->no_answer = 1e6;
    bool context_first = p->model->class->passage_first;
    ses_input in = { .text = context_first ? r->item.pair : r->item.text,
                     .pair = context_first ? r->item.text : r->item.pair };
    return ses_request_encode_windows(
               p, r, &in, context_first ? SES_TRUNCATE_ONLY_FIRST : SES_TRUNCATE_ONLY_SECOND, stride, e) &&
           mask_answers(p, r, e);
}

/* ---- spans of one window ---- */

/* Softmax over the tokens of the context and the CLS token, which represents the empty answer. */
static void context_softmax(float *y, const float *x, const ses_seq *q, int32_t cls)
{
    float max = -1e4f;
    double sum = 0;
    for (size_t i = 0; i < q->n; i++) {
        bool allowed = q->sequence_id[i] == 1 || q->id[i] == cls;
        y[i] = allowed ? x[i] : -1e4f;
        if (y[i] > max) max = y[i];
    }
    for (size_t i = 0; i < q->n; i++) sum += exp((double)y[i] - (double)max);
    for (size_t i = 0; i < q->n; i++) y[i] = (float)(exp((double)y[i] - (double)max) / sum);
}

static int best_first(const void *a, const void *b)
{
    const span *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* The best spans of the context, at most `capacity`, best first. */
static size_t best_spans(const ses_seq *q, const float *start, const float *end, int64_t max_len, span *out,
                         size_t capacity)
{
    size_t n = 0;
    for (size_t b = 0; b < q->n; b++)
        for (size_t f = b; q->sequence_id[b] == 1 && f < q->n && f - b < (size_t)max_len; f++) {
            span x = { b, f, start[b] * end[f] };
            if (q->sequence_id[f] != 1 || !(x.score > 0)) continue;
            if (n == capacity && best_first(&x, &out[n - 1]) > 0) continue;
            size_t at = n < capacity ? n++ : n - 1;
            for (; at > 0 && best_first(&x, &out[at - 1]) < 0; at--) out[at] = out[at - 1];
            out[at] = x;
        }
    return n;
}

/* ---- answers ---- */

/* Position of the span in the context, extended to whole words if `words` and the tokenizer has word ids. */
static void locate(const ses_seq *q, const span *x, int context, bool words, ses_offset *chars,
                   ses_offset *bytes)
{
    size_t first = x->begin, last = x->end;
    if (words && q->word_id[first] >= 0 && q->word_id[last] >= 0) {
        while (first > 0 && q->sequence_id[first - 1] == context &&
               q->word_id[first - 1] == q->word_id[first])
            first--;
        while (last + 1 < q->n && q->sequence_id[last + 1] == context &&
               q->word_id[last + 1] == q->word_id[last])
            last++;
    }
    *chars = (ses_offset){ q->char_offset[first].begin, q->char_offset[last].end };
    *bytes = (ses_offset){ q->byte_offset[first].begin, q->byte_offset[last].end };
}

/* ---- equal answers ---- */

static uint32_t hash_of(ses_string s)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < s.n; i++) h = (h ^ (unsigned char)s.p[i]) * 16777619u;
    return h;
}

/* The slot of the answer with this lowercased text, or the free slot for it. */
static size_t slot_of(const item_state *s, ses_string lower)
{
    size_t i = hash_of(lower) & (s->n_slots - 1);
    for (; s->slot[i]; i = (i + 1) & (s->n_slots - 1)) {
        ses_string x = s->lower[s->slot[i] - 1];
        if (x.n == lower.n && !memcmp(x.p, lower.p, lower.n)) break;
    }
    return i;
}

/* Makes room for one more answer; the table is at most half full. */
static bool reserve(ses_request *r, item_state *s, ses_err *e)
{
    if (2 * (r->n_rows + 1) <= s->n_slots) return true;
    size_t n = s->n_slots ? 2 * s->n_slots : 64;
    ses_string *lower = ses_arena_array(&r->mem, n / 2, sizeof *lower, e);
    s->slot = ses_arena_array(&r->mem, n, sizeof *s->slot, e);
    if (!lower || !s->slot) return false;
    if (r->n_rows) memcpy(lower, s->lower, r->n_rows * sizeof *lower);
    s->lower = lower;
    s->n_slots = n;
    for (size_t i = 0; i < r->n_rows; i++) s->slot[slot_of(s, lower[i])] = (uint32_t)i + 1;
    return true;
}

/* Adds an answer. Equal answers are merged and their scores summed, as in transformers: a sum may exceed
 * 1. */
static bool add_answer(ses_request *r, ses_offset chars, ses_offset bytes, double score, ses_err *e)
{
    item_state *s = r->state;
    ses_string text = { r->item.pair.p + bytes.begin, bytes.end > bytes.begin ? bytes.end - bytes.begin : 0 };
    ses_string lower = ses_request_lowercase(r, text, e);
    if (!lower.p || !reserve(r, s, e)) return false;
    uint32_t *slot = &s->slot[slot_of(s, lower)];
    if (*slot) {
        r->row[*slot - 1].score += score;
        return true;
    }
    ses_result_row *row = ses_request_add_row(r, e);
    if (!row) return false;
    s->lower[r->n_rows - 1] = lower;
    *slot = (uint32_t)r->n_rows;
    *row = (ses_result_row){ .text = ses_request_copy_string(r, text.p, text.n, e),
                             .score = score,
                             .char_span = chars,
                             .byte_span = bytes };
    return row->text.p != NULL;
}

/* Copies an output of the sequence; *n: its numbers. */
static float *copy_output(ses_pipeline *p, ses_request *r, const ses_seq *q, const char *name, int64_t *n,
                          ses_err *e)
{
    ses_output_rows rows = ses_request_output_rows(p, q, name, e);
    float *y = rows.x ? ses_arena_array(&r->mem, (size_t)rows.cols, sizeof *y, e) : NULL;
    for (int64_t i = 0; y && i < rows.cols; i++) y[i] = rows.x[i];
    *n = rows.cols;
    return y;
}

/* The pairs of a beam; ends are in the order of transformers: rank of the end before rank of the start. */
static bool collect_beam(ses_pipeline *p, ses_request *r, const ses_seq *q, ses_err *e)
{
    const args *a = r->args;
    item_state *s = r->state;
    int64_t starts, n, one_score;
    const float *start = copy_output(p, r, q, "start_top_log_probs", &starts, e),
                *first = start ? copy_output(p, r, q, "start_top_index", &starts, e) : NULL,
                *end = first ? copy_output(p, r, q, "end_top_log_probs", &n, e) : NULL,
                *last = end ? copy_output(p, r, q, "end_top_index", &n, e) : NULL,
                *none = last ? copy_output(p, r, q, "cls_logits", &one_score, e) : NULL;
    if (!none) return false;
    s->no_answer = fmin(s->no_answer, 1 / (1 + exp(-(double)*none)));
    for (int64_t k = 0; k < n; k++) {
        span x = { (size_t)first[k % starts], (size_t)last[k], start[k % starts] * end[k] };
        ses_offset chars, bytes;
        if (q->sequence_id[x.begin] != context_id(p) || q->sequence_id[x.end] != context_id(p) ||
            x.end < x.begin || x.end - x.begin >= (size_t)a->max_answer_len || !(x.score > 0))
            continue;
        locate(q, &x, context_id(p), !a->tokens, &chars, &bytes);
        if (!add_answer(r, chars, bytes, (double)x.score, e)) return false;
    }
    return true;
}

static bool collect(ses_pipeline *p, ses_request *r, ses_seq *q, ses_err *e)
{
    if (has_beam(p)) return collect_beam(p, r, q, e);
    const args *a = r->args;
    item_state *s = r->state;
    size_t capacity = a->tokens ? (size_t)a->top_k : 2 * (size_t)a->top_k + 10;
    float *start = ses_alloc_array(2 * q->n, sizeof *start, e), *end = start + q->n;
    span *best = start ? ses_alloc_array(capacity, sizeof *best, e) : NULL;
    bool ok = best != NULL;
    ses_output_rows rows = { 0 };
    if (ok && (rows = ses_request_output_rows(p, q, "start_logits", e)).x)
        context_softmax(start, rows.x, q, p->tokenizer_config.role[SES_ROLE_CLS]);
    if (rows.x && (rows = ses_request_output_rows(p, q, "end_logits", e)).x)
        context_softmax(end, rows.x, q, p->tokenizer_config.role[SES_ROLE_CLS]);
    ok = ok && rows.x;
    if (ok) {
        double no_answer = (double)start[0] * (double)end[0];
        if (no_answer < s->no_answer) s->no_answer = no_answer;
        start[0] = end[0] = 0;
        size_t n = best_spans(q, start, end, a->max_answer_len, best, capacity);
        for (size_t i = 0; ok && i < n; i++) {
            ses_offset chars, bytes;
            locate(q, &best[i], 1, !a->tokens, &chars, &bytes);
            ok = add_answer(r, chars, bytes, (double)best[i].score, e);
        }
    }
    ses_free(best);
    ses_free(start);
    return ok;
}

static int by_score(const void *a, const void *b)
{
    const ses_result_row *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return (x->group > y->group) - (x->group < y->group); /* the earlier one first */
}

static bool finish(ses_pipeline *p, ses_request *r, ses_result *out, ses_err *e)
{
    const args *a = r->args;
    const item_state *s = r->state;
    (void)p;
    if (a->impossible) {
        ses_result_row *row = ses_request_add_row(r, e);
        if (!row) return false;
        *row = (ses_result_row){ .text = ses_request_copy_string(r, "", 0, e), .score = s->no_answer };
        if (!row->text.p) return false;
    }
    for (size_t i = 0; i < r->n_rows; i++) r->row[i].group = i;
    if (r->n_rows) qsort(r->row, r->n_rows, sizeof *r->row, by_score);
    if (r->n_rows > (size_t)a->top_k) r->n_rows = (size_t)a->top_k;
    for (size_t i = 0; i < r->n_rows; i++) r->row[i].group = 0;
    out->schema = r->n_rows == 1 ? &one : &many;
    return true;
}

static const ses_result_schema *columns(const void *options)
{
    const args *a = options;
    return a->top_k == 1 ? &one : NULL;
}

static const ses_head *const heads[] = { &ses_head_question_answering, &ses_head_answer_beam, NULL };
static const ses_usage_example examples[] = {
    { "sesame question-answering -m DIR \"Who lives in London?\" \"My name is Sarah and I live in London.\"",
      "the answer in its context" },
    { "sesame question-answering \"Who wrote it?\" - <book.txt", "the answer in a file, read as one text" },
    { "sesame question-answering -m DIR --question \"Who wrote it?\" -f books.txt -k 3",
      "one question for each line" },
    { "sesame question-answering -m DIR --jsonl --json <questions.jsonl",
      "one {\"question\": ..., \"context\": ...} per line" },
    { 0 },
};

const ses_task ses_task_question_answering = {
    .operands = "[QUESTION CONTEXT]...",
    .description =
        "Extracts the answer to a question from a context with a model fine-tuned for it. Arguments are read "
        "in pairs, a question and its context; a JSON line is {\"question\": ..., \"context\": ...}, in a "
        "line of text they are separated by a tab. Contexts of any length are read in overlapping windows. A "
        "score is the product of the probabilities of the first and last token; scores of equal answers are "
        "summed, so a score may exceed 1. Start and end count code points of the context.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .item_settings = "top-k|doc-stride|max-answer-len|handle-impossible-answer|no-align-to-words",
    .request_size = sizeof(item_state),
    .head = heads,
    .item_schema = { .text = "question",
                     .pair = "context",
                     .requires_pair = true,
                     .pair_option = "context|question" },
    .uses_tokenizer_max_length = true,
    .open = open_task,
    .encode = encode,
    .collect = collect,
    .finish = finish,
    .columns = columns,
};
