/* question-answering: the stretch of a context that answers a question. Scores are products of the softmaxes
 * of an answer's first and last token; long contexts are read in windows. */
#include "base/alloc.h"
#include "task.h"

#include <math.h>
#include <stdlib.h>

enum { USUAL_LIMIT = 384, USUAL_STRIDE = 128 };

typedef struct args {
    int64_t top_k, stride, longest;
    const char *question, *context;
    bool impossible, tokens;
} args;

static const ses_opt opt[] = {
    { .name = "question",
      .type = SES_OPT_TEXT,
      .offset = offsetof(args, question),
      .value = "TEXT",
      .help = "ask this of each text; else a text is the question, and the next its context" },
    { .name = "context",
      .type = SES_OPT_TEXT,
      .offset = offsetof(args, context),
      .value = "TEXT",
      .help = "where the answers are; then every text is a question" },
    { .name = "top-k",
      .letter = 'k',
      .type = SES_OPT_INT,
      .offset = offsetof(args, top_k),
      .def = "1",
      .min = 1,
      .max = 1 << 16,
      .help = "so many answers, the best first" },
    { .name = "doc-stride",
      .type = SES_OPT_INT,
      .offset = offsetof(args, stride),
      .def = "-1",
      .min = -1,
      .max = 1 << 24,
      .help = "tokens that windows of a long context share; -1: half a window, at most 128" },
    { .name = "max-answer-len",
      .type = SES_OPT_INT,
      .offset = offsetof(args, longest),
      .def = "15",
      .min = 1,
      .max = 1 << 20,
      .help = "most tokens of an answer" },
    { .name = "handle-impossible-answer",
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, impossible),
      .help = "that there is no answer is one too" },
    { .name = "no-align-to-words",
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, tokens),
      .help = "answers may begin and end inside words" },
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

typedef struct state {
    double none;    /* the score of no answer, the least of all windows */
    uint32_t *slot; /* a hash table of rows, from 1, by their text in lower case */
    size_t n_slots;
    ses_string *low; /* of each row */
} state;

static bool begin(ses_pipeline *p, ses_err *e)
{
    const args *a = p->args;
    if (a->question && a->context)
        return ses_fail(e, SES_EUSAGE, "--question and --context: one of them, the other is the text");
    if (p->limit > USUAL_LIMIT) p->limit = USUAL_LIMIT;
    return true;
}

static bool encode(ses_pipeline *p, ses_request *j, ses_err *e)
{
    const args *a = p->args;
    state *s = j->state;
    int64_t stride = a->stride >= 0 ? a->stride : p->limit / 2 < USUAL_STRIDE ? p->limit / 2 : USUAL_STRIDE;
    if (a->question && !j->item.pair.p) j->item.pair = j->item.text, j->item.text.p = NULL;
    if (a->question && !j->item.text.p) j->item.text = ses_str(a->question);
    if (!j->item.pair.p && a->context) j->item.pair = ses_str(a->context);
    if (!j->item.pair.p) return ses_fail(e, SES_EARG, "no context: a question and a text are needed");
    if (!j->item.text.p || !j->item.text.n) return ses_fail(e, SES_EARG, "the question is empty");
    if (!j->item.pair.n) return ses_fail(e, SES_EARG, "the context is empty");
    if (!ses_encode(p->tokens, &(ses_input){ .text = j->item.text }, NULL, e)) return false;
    int64_t question = (int64_t)ses_tokens_result(p->tokens)->n;
    if (question + 1 >= p->limit)
        return ses_fail(e, SES_EARG,
                        "a question of %lld tokens leaves no room for its context: the model reads "
                        "%lld at once",
                        (long long)question, (long long)p->limit);
    s->none = 1e6;
    ses_input in = { .text = j->item.text, .pair = j->item.pair };
    return ses_request_encode_windows(p, j, &in, SES_TRUNCATE_ONLY_SECOND, stride, e);
}

/* ---- spans of one window ---- */

/* Softmax over the tokens an answer may have, and the first, which may stand for none. */
static void shares(float *y, const float *x, const ses_seq *q, int32_t cls)
{
    float most = -1e4f;
    double sum = 0;
    for (size_t i = 0; i < q->n; i++) {
        bool open = q->sequence[i] == 1 || q->id[i] == cls;
        y[i] = open ? x[i] : -1e4f;
        if (y[i] > most) most = y[i];
    }
    for (size_t i = 0; i < q->n; i++) sum += exp((double)y[i] - (double)most);
    for (size_t i = 0; i < q->n; i++) y[i] = (float)(exp((double)y[i] - (double)most) / sum);
}

static int best_first(const void *a, const void *b)
{
    const span *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* The best `room` spans of the context, best first. */
static size_t best_spans(const ses_seq *q, const float *start, const float *end, int64_t longest, span *out,
                         size_t room)
{
    size_t n = 0;
    for (size_t b = 0; b < q->n; b++)
        for (size_t f = b; q->sequence[b] == 1 && f < q->n && f - b < (size_t)longest; f++) {
            span x = { b, f, start[b] * end[f] };
            if (q->sequence[f] != 1 || !(x.score > 0)) continue;
            if (n == room && best_first(&x, &out[n - 1]) > 0) continue;
            size_t at = n < room ? n++ : n - 1;
            for (; at > 0 && best_first(&x, &out[at - 1]) < 0; at--) out[at] = out[at - 1];
            out[at] = x;
        }
    return n;
}

/* ---- answers ---- */

/* Where the span stands in the context: its words, or its tokens where those know no words. */
static void place(const ses_seq *q, const span *x, bool words, ses_offset *point, ses_offset *byte)
{
    size_t first = x->begin, last = x->end;
    if (words && q->word[first] >= 0 && q->word[last] >= 0) {
        while (first > 0 && q->sequence[first - 1] == 1 && q->word[first - 1] == q->word[first]) first--;
        while (last + 1 < q->n && q->sequence[last + 1] == 1 && q->word[last + 1] == q->word[last]) last++;
    }
    *point = (ses_offset){ q->point[first].begin, q->point[last].end };
    *byte = (ses_offset){ q->byte[first].begin, q->byte[last].end };
}

/* ---- answers that say the same ---- */

static uint32_t hash_of(ses_string s)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < s.n; i++) h = (h ^ (unsigned char)s.p[i]) * 16777619u;
    return h;
}

/* The slot where an answer of this text, in lower case, is or goes. */
static size_t slot_of(const state *s, ses_string low)
{
    size_t i = hash_of(low) & (s->n_slots - 1);
    for (; s->slot[i]; i = (i + 1) & (s->n_slots - 1)) {
        ses_string x = s->low[s->slot[i] - 1];
        if (x.n == low.n && !memcmp(x.p, low.p, low.n)) break;
    }
    return i;
}

/* Room for one more: slots at most half full. */
static bool reserve(ses_request *j, state *s, ses_err *e)
{
    if (2 * (j->n_rows + 1) <= s->n_slots) return true;
    size_t n = s->n_slots ? 2 * s->n_slots : 64;
    ses_string *low = ses_arena_array(&j->mem, n / 2, sizeof *low, e);
    s->slot = ses_arena_array(&j->mem, n, sizeof *s->slot, e);
    if (!low || !s->slot) return false;
    if (j->n_rows) memcpy(low, s->low, j->n_rows * sizeof *low);
    s->low = low;
    s->n_slots = n;
    for (size_t i = 0; i < j->n_rows; i++) s->slot[slot_of(s, low[i])] = (uint32_t)i + 1;
    return true;
}

/* Answers that say the same are one, with the sum of their scores, as in the reference: it may be above 1. */
static bool add_answer(ses_request *j, ses_offset point, ses_offset byte, double score, ses_err *e)
{
    state *s = j->state;
    ses_string text = { j->item.pair.p + byte.begin, byte.end > byte.begin ? byte.end - byte.begin : 0 };
    ses_string low = ses_request_lowercase(j, text, e);
    if (!low.p || !reserve(j, s, e)) return false;
    uint32_t *slot = &s->slot[slot_of(s, low)];
    if (*slot) {
        j->row[*slot - 1].score += score;
        return true;
    }
    ses_result_row *row = ses_request_add_row(j, e);
    if (!row) return false;
    s->low[j->n_rows - 1] = low;
    *slot = (uint32_t)j->n_rows;
    *row = (ses_result_row){ .text = ses_request_copy_string(j, text.p, text.n, e),
                             .score = score,
                             .char_span = point,
                             .byte_span = byte };
    return row->text.p != NULL;
}

static bool take(ses_pipeline *p, ses_request *j, ses_seq *q, ses_err *e)
{
    const args *a = p->args;
    state *s = j->state;
    size_t room = a->tokens ? (size_t)a->top_k : 2 * (size_t)a->top_k + 10;
    float *start = ses_alloc_array(2 * q->n, sizeof *start, e), *end = start + q->n;
    span *best = start ? ses_alloc_array(room, sizeof *best, e) : NULL;
    bool ok = best != NULL;
    ses_output_rows r = { 0 };
    if (ok && (r = ses_request_output_rows(p, q, "start_logits", e)).x)
        shares(start, r.x, q, p->facts.role[SES_ROLE_CLS]);
    if (r.x && (r = ses_request_output_rows(p, q, "end_logits", e)).x)
        shares(end, r.x, q, p->facts.role[SES_ROLE_CLS]);
    ok = ok && r.x;
    if (ok) {
        double none = (double)start[0] * (double)end[0];
        if (none < s->none) s->none = none;
        start[0] = end[0] = 0;
        size_t n = best_spans(q, start, end, a->longest, best, room);
        for (size_t i = 0; ok && i < n; i++) {
            ses_offset point, byte;
            place(q, &best[i], !a->tokens, &point, &byte);
            ok = add_answer(j, point, byte, (double)best[i].score, e);
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
    return (x->group > y->group) - (x->group < y->group); /* found earlier */
}

static bool finish(ses_pipeline *p, ses_request *j, ses_result *r, ses_err *e)
{
    const args *a = p->args;
    const state *s = j->state;
    if (a->impossible) {
        ses_result_row *row = ses_request_add_row(j, e);
        if (!row) return false;
        *row = (ses_result_row){ .text = ses_request_copy_string(j, "", 0, e), .score = s->none };
        if (!row->text.p) return false;
    }
    for (size_t i = 0; i < j->n_rows; i++) j->row[i].group = i;
    if (j->n_rows) qsort(j->row, j->n_rows, sizeof *j->row, by_score);
    if (j->n_rows > (size_t)a->top_k) j->n_rows = (size_t)a->top_k;
    for (size_t i = 0; i < j->n_rows; i++) j->row[i].group = 0;
    r->schema = j->n_rows == 1 ? &one : &many;
    return true;
}

static const ses_head *const heads[] = { &ses_head_span, NULL };
static const ses_usage_example examples[] = {
    { "sesame question-answering -m DIR \"Where do I live?\" \"My name is Sarah and I live in London.\"",
      "the answer, in its context" },
    { "sesame question-answering -m DIR --question \"Who wrote it?\" -f books.txt -k 3",
      "the same, of each line" },
    { "sesame question-answering -m DIR --jsonl --json <questions.jsonl",
      "{\"question\": ..., \"context\": ...} a line" },
    { 0 },
};

const ses_task ses_task_question_answering = {
    .description =
        "Finds the stretch of a text that answers a question, by a model trained for it. Arguments are "
        "taken two by two, a question and its context; a JSON line is {\"question\": ..., \"context\": "
        "...}, in a line of text they are apart by a tab. Contexts of any length are read in windows. "
        "Scores are products of the probabilities of an answer's first and last token; those of answers "
        "that say the same add up, so that of a text that repeats itself a score may be above 1. Start and "
        "end count code points of the context.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .job_size = sizeof(state),
    .head = heads,
    .item_schema = { .text = "question",
                     .pair = "context",
                     .requires_pair = true,
                     .pair_option = "context|question" },
    .tokenizer_limit = true,
    .open = begin,
    .encode = encode,
    .take = take,
    .finish = finish,
};
