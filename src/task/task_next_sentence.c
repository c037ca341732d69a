/* next-sentence: does the second text follow the first? */
#include "task.h"

typedef struct args {
    const char *pair;
} args;

static const ses_opt opt[] = {
    { .name = "text-pair",
      .type = SES_OPT_TEXT,
      .offset = offsetof(args, pair),
      .value = "TEXT",
      .help = "the second text, of each pair; without it arguments are taken two by two" },
};

static const ses_result_schema shape = { SES_FORM_ROWS,
                                         SES_VIEW_BARS,
                                         { { "label", SES_FIELD_LABEL }, { "score", SES_FIELD_SCORE } } };

typedef struct state {
    float score[2];
} state;

static bool encode(ses_pipeline *p, ses_request *j, ses_err *e)
{
    const args *a = p->args;
    if (!j->item.pair.p && a->pair) j->item.pair = ses_str(a->pair);
    if (!j->item.pair.p)
        return ses_fail(e, SES_EARG, "a second text is needed: --text-pair, or \"text_pair\"");
    ses_input in = { .text = j->item.text, .pair = j->item.pair };
    if (!in.pair.n) in.pair.p = NULL; /* as the reference: an empty one is none */
    return ses_request_encode(p, j, &in, SES_TRUNCATE_LONGEST_FIRST, e) != NULL;
}

static bool take(ses_pipeline *p, ses_request *j, ses_seq *q, ses_err *e)
{
    state *s = j->state;
    ses_output_rows r = ses_request_output_rows(p, q, p->use->output, e);
    if (r.x) ses_softmax_row(s->score, r.x, 2);
    return r.x != NULL;
}

static bool finish(ses_pipeline *p, ses_request *j, ses_result *r, ses_err *e)
{
    static const char *const follows[] = { "IsNext", "NotNext" }, *const order[] = { "InOrder", "Swapped" };
    const char *const *name = p->use->head == &ses_head_next_sentence ? follows : order;
    const state *s = j->state;
    int first = s->score[1] > s->score[0];
    for (int i = 0; i < 2; i++) {
        ses_result_row *row = ses_request_add_row(j, e);
        if (!row) return false;
        row->index = first ^ i;
        row->label = ses_str(name[first ^ i]);
        row->score = (double)s->score[first ^ i];
    }
    r->schema = &shape;
    return true;
}

static const ses_head *const heads[] = { &ses_head_next_sentence, &ses_head_sentence_order, NULL };
static const ses_usage_example examples[] = {
    { "sesame next-sentence -m DIR \"It rains.\" \"The street is wet.\"",
      "how likely one follows the other" },
    { 0 },
};

const ses_task ses_task_next_sentence = {
    .description =
        "Says how likely the second text followed the first (IsNext), by a model trained to tell; of a "
        "model trained on the order of sentences, whether they are InOrder. A JSON line is {\"text\": "
        "..., \"text_pair\": ...}; in a line of text they are apart by a tab.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .job_size = sizeof(state),
    .head = heads,
    .item_schema = { .text = "text", .pair = "text_pair", .requires_pair = true, .pair_option = "text-pair" },
    .encode = encode,
    .take = take,
    .finish = finish,
};
