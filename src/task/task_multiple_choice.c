/* multiple-choice: which of several continuations or answers fits a text. */
#include "task.h"

static const ses_result_schema shape = {
    SES_FORM_ROWS,
    SES_VIEW_BARS,
    { { "index", SES_FIELD_INDEX }, { "score", SES_FIELD_SCORE }, { "choice", SES_FIELD_TEXT } }
};

typedef struct state {
    float *logit;
} state;

/* The second text: the choice, behind what all have in common. */
static ses_string second(ses_request *j, ses_string common, ses_string choice, ses_err *e)
{
    if (!common.p) return choice;
    char *s = ses_arena_alloc(&j->mem, common.n + choice.n + 2, e);
    if (!s) return (ses_string){ 0 };
    memcpy(s, common.p, common.n);
    s[common.n] = ' ';
    memcpy(s + common.n + 1, choice.p, choice.n);
    s[common.n + 1 + choice.n] = 0;
    return (ses_string){ s, common.n + 1 + choice.n };
}

static bool encode(ses_pipeline *p, ses_request *j, ses_err *e)
{
    state *s = j->state;
    const ses_item *item = &j->item;
    if (item->n_list < 2)
        return ses_fail(e, SES_EARG, "at least two choices are needed, not %zu", item->n_list);
    s->logit = ses_arena_array(&j->mem, item->n_list, sizeof *s->logit, e);
    for (size_t i = 0; s->logit && i < item->n_list; i++) {
        ses_input in = { .text = item->text, .pair = second(j, item->pair, item->list[i], e) };
        ses_seq *q = in.pair.p ? ses_request_encode(p, j, &in, SES_TRUNCATE_LONGEST_FIRST, e) : NULL;
        if (!q) return false;
        q->mark = (int64_t)i;
    }
    return s->logit != NULL;
}

static bool take(ses_pipeline *p, ses_request *j, ses_seq *q, ses_err *e)
{
    state *s = j->state;
    ses_output_rows r = ses_request_output_rows(p, q, p->use->output, e);
    if (r.x) s->logit[q->mark] = r.x[0];
    return r.x != NULL;
}

static bool finish(ses_pipeline *p, ses_request *j, ses_result *r, ses_err *e)
{
    (void)p;
    const state *s = j->state;
    int64_t n = (int64_t)j->item.n_list;
    int32_t *at = ses_arena_array(&j->mem, (size_t)n, sizeof *at, e);
    if (!at) return false;
    ses_softmax_row(s->logit, s->logit, n);
    ses_top_k(s->logit, n, n, at);
    for (int64_t i = 0; i < n; i++) {
        ses_result_row *row = ses_request_add_row(j, e);
        if (!row) return false;
        row->index = at[i];
        row->score = (double)s->logit[at[i]];
        row->text = j->item.list[at[i]];
    }
    r->schema = &shape;
    return true;
}

static const ses_head *const heads[] = { &ses_head_choice, NULL };
static const ses_usage_example examples[] = {
    { "sesame multiple-choice -m DIR \"He opened the door and\" \"went out.\" \"ate it.\"",
      "which fits better" },
    { 0 },
};

const ses_task ses_task_multiple_choice = {
    .description =
        "Says which of several choices fits a text best: the first argument is the text, the others are "
        "the choices. A JSON line is {\"text\": ..., \"choices\": [...]}, perhaps with \"text_pair\", "
        "what all choices begin with; in a line of text they are apart by tabs. Choices are counted from "
        "0, the likeliest comes first.",
    .examples = examples,
    .job_size = sizeof(state),
    .head = heads,
    .item_schema = { .text = "text|prompt|question|sent1",
                     .pair = "text_pair|sent2",
                     .list = "choices|endings|answers",
                     .requires_list = true },
    .encode = encode,
    .take = take,
    .finish = finish,
};
