/* text-classification: a label, or a number, for a text or a pair of texts. */
#include "task.h"

typedef enum { FN_DEFAULT = -1, FN_SIGMOID, FN_SOFTMAX, FN_NONE } function;

typedef struct args {
    int64_t top_k;
    int function;
    const char *pair;
} args;

static const ses_opt opt[] = {
    { .name = "top-k",
      .letter = 'k',
      .type = SES_OPT_INT,
      .offset = offsetof(args, top_k),
      .value = "N|all",
      .def = "1",
      .zero_word = "all",
      .min = 1,
      .max = 1 << 24,
      .help = "so many labels, the likeliest first" },
    { .name = "function-to-apply",
      .type = SES_OPT_CHOICE,
      .offset = offsetof(args, function),
      .choices = "sigmoid|softmax|none",
      .help =
          "how scores are made of the model's outputs; without it as config.json says: softmax, sigmoid of "
          "a single label and of labels that exclude nothing, none for numbers" },
    { .name = "text-pair",
      .type = SES_OPT_TEXT,
      .offset = offsetof(args, pair),
      .value = "TEXT",
      .help = "the second text, of each pair" },
};

static const ses_result_schema shape = { SES_FORM_ROWS,
                                         SES_VIEW_BARS,
                                         { { "label", SES_FIELD_LABEL }, { "score", SES_FIELD_SCORE } } };

typedef struct self {
    function function;
} self;

typedef struct state {
    float *score;
    int64_t n;
} state;

static function usual(const ses_config *c)
{
    if (c->head.problem == SES_PROBLEM_REGRESSION) return FN_NONE;
    return c->head.problem == SES_PROBLEM_MULTI || c->labels == 1 ? FN_SIGMOID : FN_SOFTMAX;
}

static bool begin(ses_pipeline *p, ses_err *e)
{
    (void)e;
    const args *a = p->args;
    self *s = p->self;
    s->function = a->function < 0 ? usual(&p->model->c) : (function)a->function;
    return true;
}

static bool encode(ses_pipeline *p, ses_request *j, ses_err *e)
{
    const args *a = p->args;
    ses_input in = { .text = j->item.text, .pair = j->item.pair };
    if (!in.pair.p && a->pair) in.pair = ses_str(a->pair);
    if (!in.pair.n) in.pair.p = NULL; /* as the reference: an empty one is none */
    return ses_request_encode(p, j, &in, SES_TRUNCATE_LONGEST_FIRST, e) != NULL;
}

static bool take(ses_pipeline *p, ses_request *j, ses_seq *q, ses_err *e)
{
    state *s = j->state;
    const self *my = p->self;
    ses_output_rows r = ses_request_output_rows(p, q, p->use->output, e);
    if (!r.x || !(s->score = ses_arena_array(&j->mem, (size_t)r.cols, sizeof *s->score, e))) return false;
    s->n = r.cols;
    if (my->function == FN_SIGMOID)
        ses_sigmoid_row(s->score, r.x, r.cols);
    else if (my->function == FN_SOFTMAX)
        ses_softmax_row(s->score, r.x, r.cols);
    else
        memcpy(s->score, r.x, (size_t)r.cols * sizeof *s->score);
    return true;
}

static bool finish(ses_pipeline *p, ses_request *j, ses_result *r, ses_err *e)
{
    const args *a = p->args;
    const state *s = j->state;
    int64_t k = a->top_k && a->top_k < s->n ? a->top_k : s->n;
    int32_t *at = ses_arena_array(&j->mem, (size_t)k, sizeof *at, e);
    if (!at) return false;
    k = ses_top_k(s->score, s->n, k, at);
    for (int64_t i = 0; i < k; i++) {
        ses_result_row *row = ses_request_add_row(j, e);
        if (!row) return false;
        row->label = ses_request_label(p, j, at[i], e);
        if (!row->label.p) return false;
        row->score = (double)s->score[at[i]];
        row->index = at[i];
    }
    r->schema = &shape;
    return true;
}

static const ses_head *const heads[] = { &ses_head_classify, NULL };
static const ses_usage_example examples[] = {
    { "sesame sentiment-analysis -m DIR \"What a fine day.\"", "the likeliest label" },
    { "sesame text-classification -m DIR --top-k all --json -f reviews.txt", "all labels of each line" },
    { "sesame text-classification -m DIR --text-pair \"It rains.\" \"The street is wet.\"", "of a pair" },
    { 0 },
};

const ses_task ses_task_text_classification = {
    .description = "Says which of its labels a model that was trained to tell them apart gives each text, or "
                   "each pair of texts, and how likely it is. A JSON line is {\"text\": ...}, perhaps with "
                   "\"text_pair\".",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .self_size = sizeof(self),
    .job_size = sizeof(state),
    .head = heads,
    .item_schema = { .text = "text", .pair = "text_pair" },
    .open = begin,
    .encode = encode,
    .take = take,
    .finish = finish,
};
