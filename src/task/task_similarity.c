/* similarity: how alike the first text and each of others are. */
#include "base/str.h"
#include "sentence_task.h"

#include <math.h>

typedef enum { COSINE, DOT, EUCLIDEAN, MANHATTAN } measure;

typedef struct args {
    ses_sentence_args encoder;
    int measure;
} args;

static const ses_opt opt[] = {
    { .name = "similarity-fn-name",
      .type = SES_OPT_CHOICE,
      .offset = offsetof(args, measure),
      .choices = "cosine|dot|euclidean|manhattan",
      .help =
          "how two vectors are compared; distances count as less than 0. Without it as the folder says, else "
          "cosine" },
    SES_SENTENCE_OPT(args, encoder),
};

static const ses_result_schema shape = { SES_FORM_LIST, SES_VIEW_BARS, { { "score", SES_FIELD_SCORE } } };

typedef struct self {
    ses_sentence_task encoder;
    measure measure;
} self;

typedef struct state {
    float **x;
    int64_t n;
} state;

static bool begin(ses_pipeline *p, ses_err *e)
{
    const args *a = p->args;
    self *my = p->self;
    if (!ses_sentence_task_open(p, e)) return false;
    my->measure = a->measure < 0 ? COSINE : (measure)a->measure;
    const char *named = ses_sentence_similarity(my->encoder.sentence), *word;
    size_t n;
    for (int i = 0; a->measure < 0 && named && ses_list_at(opt[0].choices, (size_t)i, &word, &n); i++)
        if (strlen(named) == n && !memcmp(named, word, n)) my->measure = (measure)i;
    return true;
}

static bool encode(ses_pipeline *p, ses_request *j, ses_err *e)
{
    state *s = j->state;
    const ses_item *item = &j->item;
    if (!item->n_list) return ses_fail(e, SES_EARG, "a second text is needed to compare the first with");
    s->x = ses_arena_array(&j->mem, item->n_list + 1, sizeof *s->x, e);
    for (size_t i = 0; s->x && i <= item->n_list; i++) {
        ses_seq *q = ses_sentence_task_add(p, j, i ? item->list[i - 1] : item->text, e);
        if (!q) return false;
        q->mark = (int64_t)i;
    }
    return s->x != NULL;
}

static bool take(ses_pipeline *p, ses_request *j, ses_seq *q, ses_err *e)
{
    state *s = j->state;
    ses_output_rows r = ses_sentence_task_vector(p, q, e);
    float *x = r.x ? ses_arena_array(&j->mem, (size_t)r.cols, sizeof *x, e) : NULL;
    if (!x) return false;
    memcpy(x, r.x, (size_t)r.cols * sizeof *x);
    s->x[q->mark] = x;
    s->n = r.cols;
    return true;
}

static double compare(measure how, const float *a, const float *b, int64_t n)
{
    double dot = 0, aa = 0, bb = 0, square = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = (double)a[i], y = (double)b[i];
        dot += x * y, aa += x * x, bb += y * y;
        square += (x - y) * (x - y), sum += fabs(x - y);
    }
    switch (how) {
    case DOT: return dot;
    case EUCLIDEAN: return -sqrt(square);
    case MANHATTAN: return -sum;
    case COSINE: break;
    }
    return dot / (fmax(sqrt(aa), 1e-12) * fmax(sqrt(bb), 1e-12));
}

static bool finish(ses_pipeline *p, ses_request *j, ses_result *r, ses_err *e)
{
    const self *my = p->self;
    const state *s = j->state;
    for (size_t i = 0; i < j->item.n_list; i++) {
        ses_result_row *row = ses_request_add_row(j, e);
        if (!row) return false;
        row->index = (int64_t)i;
        row->text = j->item.list[i];
        row->score = compare(my->measure, s->x[0], s->x[i + 1], s->n);
    }
    r->schema = &shape;
    return true;
}

static const ses_usage_example examples[] = {
    { "sesame similarity -m all-MiniLM-L6-v2 \"A man eats.\" \"Someone has a meal.\" \"It rains.\"",
      "how alike the first is to each of the others" },
    { 0 },
};

const ses_task ses_task_similarity = {
    .description =
        "Compares a text with others by their vectors (see embed): the first argument with each of those "
        "that follow. A JSON line is {\"source_sentence\": ..., \"sentences\": [...]}; in a line of text "
        "they are apart by tabs. With --json: a list of numbers.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .self_size = sizeof(self),
    .job_size = sizeof(state),
    .item_schema = { .text = "source_sentence|text", .list = "sentences|texts", .requires_list = true },
    .load = ses_sentence_task_load,
    .open = begin,
    .close = ses_sentence_task_close,
    .pass = ses_sentence_task_forward,
    .encode = encode,
    .take = take,
    .finish = finish,
};
