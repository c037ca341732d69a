/* prefer: ranks two texts by their log-probability under a language model. */
#include "pipeline_impl.h"
#include "scoring_args.h"

typedef struct args {
    ses_scoring_args scoring;
    bool per_token;
} args;

static const ses_opt opt[] = {
    SES_OPT_FLAG(args, per_token, "per-token", "compare log-probabilities per token, independent of length"),
    SES_OPT_INCLUDE(args, scoring, ses_scoring_option_table),
};

static const ses_result_schema schema = {
    SES_FORM_ROWS,
    SES_VIEW_TEXT,
    { { "text", SES_FIELD_TEXT }, { "score", SES_FIELD_SCORE }, { "index", SES_FIELD_INDEX } }
};

typedef struct task_state {
    ses_scorer *scorer;
} task_state;

typedef struct item_state {
    double score[2];
} item_state;

static bool open_task(ses_pipeline *p, ses_err *e)
{
    task_state *task = p->state;
    const args *a = p->settings.args;
    p->settings.never_truncates = true;
    task->scorer = ses_scoring_args_new_scorer(&a->scoring, p->model, p->tokenizer, p->dir,
                                               (ses_scorer_options){ .prepend_bos = true }, e);
    return task->scorer != NULL;
}

static void close_task(ses_pipeline *p) { ses_scorer_free(((task_state *)p->state)->scorer); }

/* The runner needs a sequence to queue the item; the scorer encodes the texts itself. */
static bool encode(ses_pipeline *p, ses_request *r, ses_err *e)
{
    if (!r->item.pair.p) return ses_fail(e, SES_EARG, "no second text: use \"text_pair\"");
    if (!ses_request_encode(p, r, &(ses_input){ .text = r->item.text }, SES_TRUNCATE_LONGEST_FIRST, e))
        return false;
    r->truncated = 0; /* the scorer reads long texts whole, in windows */
    return true;
}

static bool run_batch(ses_pipeline *p, ses_request *const *request, ses_seq *const *seq, size_t n, ses_err *e)
{
    const task_state *task = p->state;
    (void)seq;
    for (size_t i = 0; i < 2 * n; i++) {
        const args *a = request[i / 2]->args;
        item_state *s = request[i / 2]->state;
        ses_string text = i % 2 ? request[i / 2]->item.pair : request[i / 2]->item.text;
        ses_text_score x;
        if (!ses_scorer_score_text(task->scorer, text.p, text.n, &x, e)) return false;
        if (!x.n_scored) return ses_fail(e, SES_EARG, "\"%.60s\" is too short to be scored", text.p);
        s->score[i % 2] = x.logprob / (a->per_token ? (double)x.n_scored : 1);
        request[i / 2]->has_outputs = i % 2;
    }
    return true;
}

static bool finish(ses_pipeline *p, ses_request *r, ses_result *out, ses_err *e)
{
    const item_state *s = r->state;
    int first = s->score[1] > s->score[0];
    (void)p;
    for (int i = 0; i < 2; i++) {
        ses_result_row *row = ses_request_add_row(r, e);
        if (!row) return false;
        row->index = first ^ i;
        row->text = first ^ i ? r->item.pair : r->item.text;
        row->score = s->score[first ^ i];
    }
    out->schema = &schema;
    return true;
}

static const ses_head *const heads[] = { &ses_head_causal_lm, &ses_head_masked_lm, NULL };
static const ses_usage_example examples[] = {
    { "sesame prefer -m gpt2 \"The cats are here.\" \"The cats is here.\"", "the more likely text first" },
    { 0 },
};

const ses_task ses_task_prefer = {
    .operands = "[TEXT TEXT]...",
    .description =
        "Ranks two texts by likelihood: the more likely one comes first, the score is its log-probability. A "
        "causal model predicts each token from the ones before it; a masked model predicts each token with a "
        "mask in its position (pseudo-log-likelihood). A JSON line is {\"text\": ..., \"text_pair\": ...}; "
        "in a line of text they are separated by a tab.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .state_size = sizeof(task_state),
    .item_settings = "per-token",
    .request_size = sizeof(item_state),
    .head = heads,
    .item_schema = { .text = "text", .pair = "text_pair", .requires_pair = true },
    .open = open_task,
    .close = close_task,
    .encode = encode,
    .run_batch = run_batch,
    .finish = finish,
};
