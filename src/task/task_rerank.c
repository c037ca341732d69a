/* rerank: ranks texts by their relevance to a query, with a cross-encoder. */
#include "pipeline_impl.h"
#include "sesame/sentence.h"

#include <math.h>

typedef struct args {
    int64_t top_k; /* 0: all */
    bool raw, text;
} args;

static const ses_opt opt[] = {
    SES_OPT_TOP_K(args, top_k, "all", "number of texts, best first"),
    SES_OPT_FLAG(args, raw, "raw-scores",
                 "output logits; default: apply the activation named in the model folder, otherwise a "
                 "sigmoid"),
    SES_OPT_FLAG(args, text, "return-text", "with --json: include the texts"),
};

static const ses_result_schema plain = { SES_FORM_ROWS,
                                         SES_VIEW_BARS,
                                         { { "index", SES_FIELD_INDEX }, { "score", SES_FIELD_SCORE } } },
                               with_text = { SES_FORM_ROWS,
                                             SES_VIEW_BARS,
                                             { { "index", SES_FIELD_INDEX },
                                               { "score", SES_FIELD_SCORE },
                                               { "text", SES_FIELD_TEXT } } };

typedef struct task_state {
    ses_act act;
} task_state;

typedef struct item_state {
    float *score;
} item_state;

static bool suits(const ses_model *m) { return ses_model_label_count(m) == 1; }

static bool open_task(ses_pipeline *p, ses_err *e)
{
    task_state *task = p->state;
    int64_t n = ses_model_label_count(p->model);
    if (n != 1)
        return ses_fail(e, SES_EUNSUPPORTED, "rerank needs a model with one output, this one has %lld labels",
                        (long long)n);
    return ses_cross_encoder_activation(p->model, p->dir, &task->act, e);
}

static bool encode(ses_pipeline *p, ses_request *r, ses_err *e)
{
    item_state *s = r->state;
    const ses_item *item = &r->item;
    if (!item->n_list) return ses_fail(e, SES_EARG, "no texts to rank: give them after the query");
    s->score = ses_arena_array(&r->mem, item->n_list, sizeof *s->score, e);
    for (size_t i = 0; s->score && i < item->n_list; i++) {
        ses_input in = { .text = item->text, .pair = item->list[i] };
        ses_seq *q = ses_request_encode(p, r, &in, SES_TRUNCATE_LONGEST_FIRST, e);
        if (!q) return false;
        q->tag = (int64_t)i;
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

static bool collect(ses_pipeline *p, ses_request *r, ses_seq *q, ses_err *e)
{
    const args *a = r->args;
    const task_state *task = p->state;
    item_state *s = r->state;
    ses_output_rows rows = ses_request_output_rows(p, q, p->head->output, e);
    if (rows.x) s->score[q->tag] = a->raw ? rows.x[0] : activate(task->act, rows.x[0]);
    return rows.x != NULL;
}

static bool finish(ses_pipeline *p, ses_request *r, ses_result *out, ses_err *e)
{
    const args *a = r->args;
    const item_state *s = r->state;
    (void)p;
    int64_t n = (int64_t)r->item.n_list, k = a->top_k && a->top_k < n ? a->top_k : n;
    int32_t *at = ses_arena_array(&r->mem, (size_t)k, sizeof *at, e);
    if (!at) return false;
    ses_top_k(s->score, n, k, at);
    for (int64_t i = 0; i < k; i++) {
        ses_result_row *row = ses_request_add_row(r, e);
        if (!row) return false;
        row->index = at[i];
        row->score = (double)s->score[at[i]];
        row->text = r->item.list[at[i]];
    }
    out->schema = a->text ? &with_text : &plain;
    return true;
}

static const ses_head *const heads[] = { &ses_head_sequence_classification, NULL };
static const ses_usage_example examples[] = {
    { "sesame rerank -m DIR \"how many people live in Berlin?\" \"Berlin has 3.5 million inhabitants.\" "
      "\"Berlin is known for its museums.\"",
      "the more relevant text first" },
    { 0 },
};

const ses_task ses_task_rerank = {
    .operands = "[QUERY TEXT...]",
    .description =
        "Ranks texts by their relevance to a query with a cross-encoder, a model that reads query and text "
        "together and outputs one number. The first argument is the query, the others are the texts. A "
        "line of input is a query and its texts, separated by tabs; with --jsonl it is {\"query\": ..., "
        "\"texts\": [...]}. With --json a result is [{\"index\": 0, \"score\": ...}, ...], best first; texts "
        "are "
        "numbered from 0.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .state_size = sizeof(task_state),
    .item_settings = "top-k|raw-scores|return-text",
    .request_size = sizeof(item_state),
    .head = heads,
    .item_schema = { .text = "query", .list = "texts|documents", .requires_list = true },
    .suits = suits,
    .open = open_task,
    .encode = encode,
    .collect = collect,
    .finish = finish,
};
