/* prefer: which of two texts a model finds likelier. */
#include "sesame/scorer.h"
#include "task.h"

typedef struct args {
    bool per_token;
} args;

static const ses_opt opt[] = {
    { .name = "per-token",
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, per_token),
      .help = "compare log-probabilities a token, not of the whole: length does not count" },
};

static const ses_result_schema shape = {
    SES_FORM_ROWS,
    SES_VIEW_TEXT,
    { { "text", SES_FIELD_TEXT }, { "score", SES_FIELD_SCORE }, { "index", SES_FIELD_INDEX } }
};

typedef struct self {
    ses_scorer *scorer;
} self;

typedef struct state {
    double score[2];
} state;

static bool begin(ses_pipeline *p, ses_err *e)
{
    self *my = p->self;
    p->uncut = true;
    my->scorer =
        ses_scorer_new(p->model, p->tokenizer, p->dir, &(ses_scorer_options){ .prepend_bos = true }, e);
    return my->scorer != NULL;
}

static void end(ses_pipeline *p) { ses_scorer_free(((self *)p->self)->scorer); }

/* One sequence stands for the item; the scorer makes its own. */
static bool encode(ses_pipeline *p, ses_request *j, ses_err *e)
{
    if (!j->item.pair.p) return ses_fail(e, SES_EARG, "a second text is needed: \"text_pair\"");
    if (!ses_request_encode(p, j, &(ses_input){ .text = j->item.text }, SES_TRUNCATE_LONGEST_FIRST, e))
        return false;
    j->cut = 0; /* long texts are judged in windows, whole */
    return true;
}

static bool run(ses_pipeline *p, ses_request *const *job, ses_seq *const *seq, size_t n, ses_err *e)
{
    const args *a = p->args;
    const self *my = p->self;
    (void)seq;
    for (size_t i = 0; i < 2 * n; i++) {
        state *s = job[i / 2]->state;
        ses_string text = i % 2 ? job[i / 2]->item.pair : job[i / 2]->item.text;
        ses_text_score x;
        if (!ses_scorer_score_text(my->scorer, text.p, text.n, &x, e)) return false;
        if (!x.n_scored) return ses_fail(e, SES_EARG, "\"%.60s\" is too short to be judged", text.p);
        s->score[i % 2] = x.logprob / (a->per_token ? (double)x.n_scored : 1);
    }
    return true;
}

static bool finish(ses_pipeline *p, ses_request *j, ses_result *r, ses_err *e)
{
    const state *s = j->state;
    int first = s->score[1] > s->score[0];
    (void)p;
    for (int i = 0; i < 2; i++) {
        ses_result_row *row = ses_request_add_row(j, e);
        if (!row) return false;
        row->index = first ^ i;
        row->text = first ^ i ? j->item.pair : j->item.text;
        row->score = s->score[first ^ i];
    }
    r->schema = &shape;
    return true;
}

static const ses_head *const heads[] = { &ses_head_causal_lm, &ses_head_masked_lm, NULL };
static const ses_usage_example examples[] = {
    { "sesame prefer -m gpt2 \"The cats are here.\" \"The cats is here.\"", "the likelier one first" },
    { 0 },
};

const ses_task ses_task_prefer = {
    .description =
        "Says which of two texts a model finds likelier: the one it prefers comes first, the score is its "
        "log-probability. A causal model reads them word by word; a masked one is asked about each token "
        "with a mask in its place (pseudo-log-likelihood). A JSON line is {\"text\": ..., \"text_pair\": "
        "...}; in a line of text they are apart by a tab.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .self_size = sizeof(self),
    .job_size = sizeof(state),
    .head = heads,
    .item_schema = { .text = "text", .pair = "text_pair", .requires_pair = true },
    .open = begin,
    .close = end,
    .encode = encode,
    .run = run,
    .finish = finish,
};
