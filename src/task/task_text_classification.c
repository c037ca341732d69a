/* text-classification: scores the labels of a classifier for a text or a pair of texts. */
#include "base/label_pairs.h"
#include "pipeline_impl.h"

typedef enum { FUNCTION_DEFAULT = -1, FUNCTION_SIGMOID, FUNCTION_SOFTMAX, FUNCTION_NONE } score_function;

typedef struct args {
    int64_t top_k; /* 0: all */
    int function;  /* a score_function */
    const char *pair, *labels;
} args;

static const ses_opt opt[] = {
    SES_OPT_TOP_K(args, top_k, "1", "number of labels, best first"),
    { .name = "function-to-apply",
      .type = SES_OPT_CHOICE,
      .offset = offsetof(args, function),
      .choices = "sigmoid|softmax|none",
      .help = "score function; default: softmax, sigmoid (one label, multi-label) or none (regression), by "
              "config.json" },
    { .name = "text-pair",
      .type = SES_OPT_TEXT,
      .offset = offsetof(args, pair),
      .value = "TEXT",
      .help = "second text, for all pairs" },
    { .name = "labels",
      .type = SES_OPT_TEXT,
      .offset = offsetof(args, labels),
      .value = "LABEL=NAME,...",
      .help = "names of labels, by name or number: 0=negative,1=positive; default: config.json" },
};

static const ses_result_schema schema = { SES_FORM_ROWS,
                                          SES_VIEW_BARS,
                                          { { "label", SES_FIELD_LABEL }, { "score", SES_FIELD_SCORE } } };

typedef struct task_state {
    ses_string *name; /* new names of labels; NULL: none */
} task_state;

typedef struct item_state {
    float *score; /* [n], one for each label */
    int64_t n;
} item_state;

static const char *label_name(const void *labels, size_t i) { return ((const ses_string *)labels)[i].p; }

static bool open(ses_pipeline *p, ses_err *e)
{
    const args *a = p->settings.args;
    task_state *s = p->state;
    size_t n = (size_t)p->model->c.labels;
    if (!a->labels) return true;
    s->name = ses_arena_array(&p->mem, n, sizeof *s->name, e);
    ses_string *now = s->name ? ses_arena_array(&p->mem, n, sizeof *now, e) : NULL;
    for (size_t i = 0; now && i < n; i++) {
        now[i] = ses_pipeline_label(p, &p->mem, (int64_t)i, e);
        if (!now[i].p) return false;
    }
    return now && ses_label_pairs_rename(a->labels, label_name, now, n, s->name, e);
}

static ses_string label_of(const ses_pipeline *p, ses_arena *mem, int64_t i, ses_err *e)
{
    const task_state *s = p->state;
    if (!s->name || !s->name[i].p) return ses_pipeline_label(p, mem, i, e);
    char *copy = ses_arena_strndup(mem, s->name[i].p, s->name[i].n, e);
    return (ses_string){ copy, s->name[i].n };
}

/* Text to tokens. An empty second text counts as none, as in transformers. */
static bool encode(ses_pipeline *p, ses_request *r, ses_err *e)
{
    const args *a = r->args;
    ses_input in = { .text = r->item.text, .pair = r->item.pair };
    if (!in.pair.p && a->pair) in.pair = ses_str(a->pair);
    if (!in.pair.n) in.pair.p = NULL;
    return ses_request_encode(p, r, &in, SES_TRUNCATE_LONGEST_FIRST, e) != NULL;
}

static score_function default_function(const ses_config *c)
{
    if (c->head.problem == SES_PROBLEM_REGRESSION) return FUNCTION_NONE;
    return c->head.problem == SES_PROBLEM_MULTI || c->labels == 1 ? FUNCTION_SIGMOID : FUNCTION_SOFTMAX;
}

/* Logits to scores. */
static bool collect(ses_pipeline *p, ses_request *r, ses_seq *q, ses_err *e)
{
    const args *a = r->args;
    item_state *s = r->state;
    ses_output_rows logits = ses_request_output_rows(p, q, p->head->output, e); /* [1, labels] */
    s->n = logits.cols;
    s->score = logits.x ? ses_arena_array(&r->mem, (size_t)s->n, sizeof *s->score, e) : NULL;
    if (!s->score) return false;
    bool given = a->function != FUNCTION_DEFAULT;
    switch (given ? (score_function)a->function : default_function(&p->model->c)) {
    case FUNCTION_SIGMOID: ses_sigmoid_row(s->score, logits.x, s->n); break;
    case FUNCTION_SOFTMAX: ses_softmax_row(s->score, logits.x, s->n); break;
    default: memcpy(s->score, logits.x, (size_t)s->n * sizeof *s->score);
    }
    return true;
}

/* Scores to the best labels. */
static bool finish(ses_pipeline *p, ses_request *r, ses_result *out, ses_err *e)
{
    const args *a = r->args;
    const item_state *s = r->state;
    int64_t k = a->top_k && a->top_k < s->n ? a->top_k : s->n;
    int32_t *best = ses_arena_array(&r->mem, (size_t)k, sizeof *best, e);
    if (!best) return false;
    k = ses_top_k(s->score, s->n, k, best);
    for (int64_t i = 0; i < k; i++) {
        ses_result_row *row = ses_request_add_row(r, e);
        if (!row) return false;
        row->label = label_of(p, &r->mem, best[i], e);
        if (!row->label.p) return false;
        row->score = (double)s->score[best[i]];
        row->index = best[i];
    }
    out->schema = &schema;
    return true;
}

static const ses_result_schema *columns(const void *options)
{
    const args *a = options;
    return a->top_k == 1 ? &schema : NULL;
}

static const ses_head *const heads[] = { &ses_head_sequence_classification, NULL };
static const ses_usage_example examples[] = {
    { "sesame sentiment-analysis -m DIR \"A fine day.\"", "the best label" },
    { "sesame text-classification -m DIR --top-k all --json -f reviews.txt", "all labels of each line" },
    { "sesame text-classification -m DIR --text-pair \"It rains.\" \"The street is wet.\"",
      "a pair of texts" },
    { 0 },
};

const ses_task ses_task_text_classification = {
    .description =
        "Classifies each text, or each pair of texts, with a model fine-tuned for it, and prints the "
        "best labels with their scores. A JSON line is {\"text\": ...}, with \"text_pair\" for a "
        "pair.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .item_settings = "top-k|function-to-apply|text-pair",
    .state_size = sizeof(task_state),
    .request_size = sizeof(item_state),
    .head = heads,
    .item_schema = { .text = "text", .pair = "text_pair" },
    .open = open,
    .encode = encode,
    .collect = collect,
    .finish = finish,
    .columns = columns,
};
