/* multiple-choice: ranks several continuations of a text or answers to a question. */
#include "pipeline_impl.h"
#include "task/gpt/gpt_inputs.h"

static const ses_result_schema schema = {
    SES_FORM_ROWS,
    SES_VIEW_BARS,
    { { "index", SES_FIELD_INDEX }, { "score", SES_FIELD_SCORE }, { "choice", SES_FIELD_TEXT } }
};

typedef struct item_state {
    float *logit;
} item_state;

/* The second text: the choice, after the beginning all choices share. */
static ses_string second_text(ses_request *r, ses_string common, ses_string choice, ses_err *e)
{
    if (!common.p) return choice;
    char *s = ses_arena_alloc(&r->mem, common.n + choice.n + 2, e);
    if (!s) return (ses_string){ 0 };
    memcpy(s, common.p, common.n);
    s[common.n] = ' ';
    memcpy(s + common.n + 1, choice.p, choice.n);
    s[common.n + 1 + choice.n] = 0;
    return (ses_string){ s, common.n + 1 + choice.n };
}

typedef struct task_state {
    ses_gpt_inputs gpt; /* enabled: texts have the inputs of GPT-1 */
} task_state;

/* A class of two heads would also compute the logits of its LM. */
static bool open_task(ses_pipeline *p, ses_err *e)
{
    task_state *s = p->state;
    p->settings.outputs.logits = false;
    return ses_gpt_inputs_read(p->model->config, p->tokenizer, &s->gpt, e);
}

static bool encode(ses_pipeline *p, ses_request *r, ses_err *e)
{
    item_state *s = r->state;
    const ses_item *item = &r->item;
    if (item->n_list < 2)
        return ses_fail(e, SES_EARG, "at least two choices are required, not %zu", item->n_list);
    s->logit = ses_arena_array(&r->mem, item->n_list, sizeof *s->logit, e);
    for (size_t i = 0; s->logit && i < item->n_list; i++) {
        ses_input in = { .text = item->text, .pair = second_text(r, item->pair, item->list[i], e) };
        const ses_gpt_inputs *g = &((const task_state *)p->state)->gpt;
        if (in.pair.p && g->enabled) {
            if (!ses_gpt_inputs_add(g, p, r, &in, (int64_t)i, e)) return false;
            continue;
        }
        ses_seq *q = in.pair.p ? ses_request_encode(p, r, &in, SES_TRUNCATE_LONGEST_FIRST, e) : NULL;
        if (!q) return false;
        q->tag = (int64_t)i;
    }
    return s->logit != NULL;
}

static bool collect(ses_pipeline *p, ses_request *r, ses_seq *q, ses_err *e)
{
    item_state *s = r->state;
    ses_output_rows rows = ses_request_output_rows(p, q, p->head->output, e);
    if (rows.x) s->logit[q->tag] = rows.x[0];
    return rows.x != NULL;
}

static bool finish(ses_pipeline *p, ses_request *r, ses_result *out, ses_err *e)
{
    (void)p;
    const item_state *s = r->state;
    int64_t n = (int64_t)r->item.n_list;
    int32_t *at = ses_arena_array(&r->mem, (size_t)n, sizeof *at, e);
    if (!at) return false;
    ses_softmax_row(s->logit, s->logit, n);
    ses_top_k(s->logit, n, n, at);
    for (int64_t i = 0; i < n; i++) {
        ses_result_row *row = ses_request_add_row(r, e);
        if (!row) return false;
        row->index = at[i];
        row->score = (double)s->logit[at[i]];
        row->text = r->item.list[at[i]];
    }
    out->schema = &schema;
    return true;
}

static const ses_head *const heads[] = { &ses_head_multiple_choice, NULL };
static const ses_usage_example examples[] = {
    { "sesame multiple-choice -m DIR \"He opened the door and\" \"went out.\" \"ate it.\"",
      "the better choice first" },
    { 0 },
};

const ses_task ses_task_multiple_choice = {
    .operands = "[TEXT CHOICE...]",
    .description = "Ranks several choices for a text: the first argument is the text, the others are the "
                   "choices. A JSON line is {\"text\": ..., \"choices\": [...]}, with \"text_pair\" for a "
                   "beginning all choices share; in a line of text they are separated by tabs. Choices are "
                   "numbered from 0, the best comes first.",
    .examples = examples,
    .state_size = sizeof(task_state),
    .request_size = sizeof(item_state),
    .open = open_task,
    .head = heads,
    .item_schema = { .text = "text|prompt|question|sent1",
                     .pair = "text_pair|sent2",
                     .list = "choices|endings|answers",
                     .requires_list = true },
    .encode = encode,
    .collect = collect,
    .finish = finish,
};
