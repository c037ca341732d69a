/* rerank: texts in the order of how well they answer a query, by a cross-encoder. */
#include "sesame/sentence.h"
#include "task.h"

#include <math.h>

typedef struct args {
    int64_t top;
    bool raw, text;
} args;

static const ses_opt opt[] = {
    { .name = "top-k",
      .letter = 'k',
      .type = SES_OPT_INT,
      .offset = offsetof(args, top),
      .value = "N|all",
      .def = "all",
      .zero_word = "all",
      .min = 1,
      .max = 1 << 24,
      .help = "so many texts, the best first" },
    { .name = "raw-scores",
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, raw),
      .help = "the model's outputs as they are; else through what the folder says, usually a sigmoid" },
    { .name = "return-text",
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, text),
      .help = "with --json: the texts too" },
};

static const ses_result_schema plain = { SES_FORM_ROWS,
                                         SES_VIEW_BARS,
                                         { { "index", SES_FIELD_INDEX }, { "score", SES_FIELD_SCORE } } },
                               with_text = { SES_FORM_ROWS,
                                             SES_VIEW_BARS,
                                             { { "index", SES_FIELD_INDEX },
                                               { "score", SES_FIELD_SCORE },
                                               { "text", SES_FIELD_TEXT } } };

typedef struct self {
    ses_act act;
} self;

typedef struct state {
    float *score;
} state;

static bool begin(ses_pipeline *p, ses_err *e)
{
    self *my = p->self;
    int64_t n = ses_model_label_count(p->model);
    if (n != 1)
        return ses_fail(e, SES_EUNSUPPORTED, "rerank wants a model with one output, this one has %lld labels",
                        (long long)n);
    return ses_cross_encoder_activation(p->model, p->dir, &my->act, e);
}

static bool encode(ses_pipeline *p, ses_request *j, ses_err *e)
{
    state *s = j->state;
    const ses_item *item = &j->item;
    if (!item->n_list) return ses_fail(e, SES_EARG, "no texts to order: the query is followed by them");
    s->score = ses_arena_array(&j->mem, item->n_list, sizeof *s->score, e);
    for (size_t i = 0; s->score && i < item->n_list; i++) {
        ses_input in = { .text = item->text, .pair = item->list[i] };
        ses_seq *q = ses_request_encode(p, j, &in, SES_TRUNCATE_LONGEST_FIRST, e);
        if (!q) return false;
        q->mark = (int64_t)i;
    }
    return s->score != NULL;
}

static float activate(ses_act act, float x)
{
    switch (act) {
    case SES_ACT_SIGMOID: return (float)(1 / (1 + exp(-(double)x)));
    case SES_ACT_TANH: return (float)tanh((double)x);
    case SES_ACT_RELU: return x > 0 ? x : 0;
    default: return x;
    }
}

static bool take(ses_pipeline *p, ses_request *j, ses_seq *q, ses_err *e)
{
    const args *a = p->args;
    const self *my = p->self;
    state *s = j->state;
    ses_output_rows r = ses_request_output_rows(p, q, p->use->output, e);
    if (r.x) s->score[q->mark] = a->raw ? r.x[0] : activate(my->act, r.x[0]);
    return r.x != NULL;
}

static bool finish(ses_pipeline *p, ses_request *j, ses_result *r, ses_err *e)
{
    const args *a = p->args;
    const state *s = j->state;
    int64_t n = (int64_t)j->item.n_list, k = a->top && a->top < n ? a->top : n;
    int32_t *at = ses_arena_array(&j->mem, (size_t)k, sizeof *at, e);
    if (!at) return false;
    ses_top_k(s->score, n, k, at);
    for (int64_t i = 0; i < k; i++) {
        ses_result_row *row = ses_request_add_row(j, e);
        if (!row) return false;
        row->index = at[i];
        row->score = (double)s->score[at[i]];
        row->text = j->item.list[at[i]];
    }
    r->schema = a->text ? &with_text : &plain;
    return true;
}

static const ses_head *const heads[] = { &ses_head_classify, NULL };
static const ses_usage_example examples[] = {
    { "sesame rerank -m DIR \"how many people live in Berlin?\" \"Berlin has 3.5 million inhabitants.\" "
      "\"Berlin is known for its museums.\"",
      "the better answer first" },
    { 0 },
};

const ses_task ses_task_rerank = {
    .description =
        "Puts texts into the order of how well they answer a query, by a cross-encoder: a model that reads "
        "query and text together and gives one number. The first argument is the query. A JSON line is "
        "{\"query\": ..., \"texts\": [...]}; in a line of text they are apart by tabs. Texts are counted "
        "from 0.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .self_size = sizeof(self),
    .job_size = sizeof(state),
    .head = heads,
    .item_schema = { .text = "query", .list = "texts|documents", .requires_list = true },
    .open = begin,
    .encode = encode,
    .take = take,
    .finish = finish,
};
