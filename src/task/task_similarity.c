/* similarity: compares the vector of one text with the vectors of others. */
#include "sentence_task.h"

#include <math.h>

typedef enum { COSINE, DOT, EUCLIDEAN, MANHATTAN } measure;

typedef struct args {
    ses_sentence_args encoder;
    int measure;
} args;

static const ses_opt opt[] = {
    SES_OPT_CHOICE(
        args, measure, "similarity-fn-name", NULL, "cosine|dot|euclidean|manhattan",
        "similarity function; distances are negative. Default: the one the folder names, else cosine"),
    SES_OPT_INCLUDE(args, encoder, ses_sentence_options_table),
};

static const ses_result_schema schema = { SES_FORM_LIST, SES_VIEW_BARS, { { "score", SES_FIELD_SCORE } } };

typedef struct task_state {
    ses_sentence_task encoder;
    measure default_measure; /* the folder's, else cosine */
} task_state;

typedef struct item_state {
    float **x; /* [texts][n]: the source first */
    int64_t n;
} item_state;

static bool open_task(ses_pipeline *p, ses_err *e)
{
    task_state *task = p->state;
    if (!ses_sentence_task_open(p, e)) return false;
    task->default_measure = COSINE;
    const char *name = ses_sentence_similarity(p->encoder), *word;
    size_t n;
    for (int i = 0; name && ses_list_at(opt[0].choices, (size_t)i, &word, &n); i++)
        if (strlen(name) == n && !memcmp(name, word, n)) task->default_measure = (measure)i;
    return true;
}

static bool encode(ses_pipeline *p, ses_request *r, ses_err *e)
{
    item_state *s = r->state;
    const ses_item *item = &r->item;
    if (!item->n_list) return ses_fail(e, SES_EARG, "no texts to compare with: give at least two texts");
    s->x = ses_arena_array(&r->mem, item->n_list + 1, sizeof *s->x, e);
    for (size_t i = 0; s->x && i <= item->n_list; i++) {
        ses_seq *q = ses_sentence_task_encode(p, r, i ? item->list[i - 1] : item->text, e);
        if (!q) return false;
        q->tag = (int64_t)i;
    }
    return s->x != NULL;
}

static bool collect(ses_pipeline *p, ses_request *r, ses_seq *q, ses_err *e)
{
    item_state *s = r->state;
    ses_output_rows rows = ses_sentence_task_vector(p, q, e);
    float *x = rows.x ? ses_arena_array(&r->mem, (size_t)rows.cols, sizeof *x, e) : NULL;
    if (!x) return false;
    memcpy(x, rows.x, (size_t)rows.cols * sizeof *x);
    s->x[q->tag] = x;
    s->n = rows.cols;
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

static bool finish(ses_pipeline *p, ses_request *r, ses_result *out, ses_err *e)
{
    const args *a = r->args;
    const task_state *task = p->state;
    const item_state *s = r->state;
    measure how = a->measure < 0 ? task->default_measure : (measure)a->measure;
    for (size_t i = 0; i < r->item.n_list; i++) {
        ses_result_row *row = ses_request_add_row(r, e);
        if (!row) return false;
        row->index = (int64_t)i;
        row->text = r->item.list[i];
        row->score = compare(how, s->x[0], s->x[i + 1], s->n);
    }
    out->schema = &schema;
    return true;
}

static const ses_usage_example examples[] = {
    { "sesame similarity -m all-MiniLM-L6-v2 \"A man eats.\" \"Someone has a meal.\" \"It rains.\"",
      "similarity of the first text to each of the others" },
    { 0 },
};

const ses_task ses_task_similarity = {
    .operands = "[TEXT TEXT...]",
    .description = "Compares the first text with each of the following ones by their vectors (see embed). A "
                   "JSON line is {\"source_sentence\": ..., \"sentences\": [...]}; in a line of text they "
                   "are separated by tabs. --json prints a list of numbers.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .state_size = sizeof(task_state),
    .item_settings = "similarity-fn-name",
    .request_size = sizeof(item_state),
    .item_schema = { .text = "source_sentence|text", .list = "sentences|texts", .requires_list = true },
    .load_model = ses_sentence_task_load,
    .open = open_task,
    .forward = ses_sentence_task_forward,
    .encode = encode,
    .collect = collect,
    .finish = finish,
};
