/* next-sentence: predicts whether the second text follows the first. */
#include "pipeline_impl.h"

typedef struct args {
    const char *pair;
} args;

static const ses_opt opt[] = {
    SES_OPT_TEXT(args, pair, "text-pair", "TEXT",
                 "second text, for all pairs; default: arguments are read in pairs"),
};

static const ses_result_schema schema = { SES_FORM_ROWS,
                                          SES_VIEW_BARS,
                                          { { "label", SES_FIELD_LABEL }, { "score", SES_FIELD_SCORE } } };

typedef struct item_state {
    float score[2];
} item_state;

static bool encode(ses_pipeline *p, ses_request *r, ses_err *e)
{
    const args *a = r->args;
    if (!r->item.pair.p && a->pair) r->item.pair = ses_str(a->pair);
    if (!r->item.pair.p)
        return ses_fail(e, SES_EARG, "no second text: use --text-pair, or \"text_pair\" in JSON");
    ses_input in = { .text = r->item.text, .pair = r->item.pair };
    if (!in.pair.n) in.pair.p = NULL; /* an empty one counts as none, as in transformers */
    return ses_request_encode(p, r, &in, SES_TRUNCATE_LONGEST_FIRST, e) != NULL;
}

static bool collect(ses_pipeline *p, ses_request *r, ses_seq *q, ses_err *e)
{
    item_state *s = r->state;
    ses_output_rows rows = ses_request_output_rows(p, q, p->head->output, e);
    if (rows.x) ses_softmax_row(s->score, rows.x, 2);
    return rows.x != NULL;
}

static bool finish(ses_pipeline *p, ses_request *r, ses_result *out, ses_err *e)
{
    static const char *const follows[] = { "IsNext", "NotNext" }, *const order[] = { "InOrder", "Swapped" };
    const char *const *name = p->head->head == &ses_head_next_sentence ? follows : order;
    const item_state *s = r->state;
    int first = s->score[1] > s->score[0];
    for (int i = 0; i < 2; i++) {
        ses_result_row *row = ses_request_add_row(r, e);
        if (!row) return false;
        row->index = first ^ i;
        row->label = ses_str(name[first ^ i]);
        row->score = (double)s->score[first ^ i];
    }
    out->schema = &schema;
    return true;
}

static const ses_head *const heads[] = { &ses_head_next_sentence, &ses_head_sentence_order, NULL };
static const ses_usage_example examples[] = {
    { "sesame next-sentence -m DIR \"It rains.\" \"The street is wet.\"",
      "probability that one follows the other" },
    { 0 },
};

const ses_task ses_task_next_sentence = {
    .operands = "[TEXT TEXT]...",
    .description =
        "Predicts whether the second text follows the first (IsNext), with a model pretrained for it. A "
        "model pretrained on the order of sentences predicts whether they are InOrder. A JSON line is "
        "{\"text\": ..., \"text_pair\": ...}; in a line of text they are separated by a tab.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .item_settings = "text-pair",
    .request_size = sizeof(item_state),
    .head = heads,
    .item_schema = { .text = "text", .pair = "text_pair", .requires_pair = true, .pair_option = "text-pair" },
    .encode = encode,
    .collect = collect,
    .finish = finish,
};
