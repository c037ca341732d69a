/* sparse-embed: one weight for each vocabulary token (SPLADE, Formal et al. 2021): the maximum over the
 * text's tokens of log(1 + relu(logit)) of a masked language model. */
#include "base/alloc.h"
#include "pipeline_impl.h"

#include <math.h>

typedef struct args {
    int64_t top_k; /* 0: all */
} args;

static const ses_opt opt[] = {
    SES_OPT_TOP_K(args, top_k, "all", "number of tokens, largest weights first"),
};

static const ses_result_schema schema = {
    SES_FORM_ROWS,
    SES_VIEW_BARS,
    { { "index", SES_FIELD_TOKEN }, { "token", SES_FIELD_WORD }, { "value", SES_FIELD_SCORE } }
};

typedef struct item_state {
    float *weight; /* [vocabulary] */
    int64_t n;
} item_state;

static bool encode(ses_pipeline *p, ses_request *r, ses_err *e)
{
    ses_seq *q =
        ses_request_encode(p, r, &(ses_input){ .text = r->item.text }, SES_TRUNCATE_LONGEST_FIRST, e);
    int32_t *row = q ? ses_arena_array(&r->mem, q->n, sizeof *row, e) : NULL;
    for (size_t i = 0; row && i < q->n; i++) row[i] = (int32_t)i;
    if (row) q->rows = row, q->n_rows = q->n;
    return row != NULL;
}

static bool collect(ses_pipeline *p, ses_request *r, ses_seq *q, ses_err *e)
{
    item_state *s = r->state;
    ses_output_rows rows = ses_request_output_rows(p, q, p->head->output, e); /* [tokens, vocabulary] */
    s->weight = rows.x ? ses_arena_array(&r->mem, (size_t)rows.cols, sizeof *s->weight, e) : NULL;
    if (!s->weight) return false;
    s->n = rows.cols;
    for (int64_t i = 0; i < rows.n; i++)
        for (int64_t v = 0; v < s->n; v++) {
            float x = rows.x[i * s->n + v];
            if (x > s->weight[v]) s->weight[v] = x;
        }
    for (int64_t v = 0; v < s->n; v++) s->weight[v] = (float)log1p((double)s->weight[v]);
    return true;
}

static bool finish(ses_pipeline *p, ses_request *r, ses_result *out, ses_err *e)
{
    const args *a = r->args;
    const item_state *s = r->state;
    int64_t k = 0;
    for (int64_t v = 0; v < s->n; v++) k += s->weight[v] > 0;
    if (a->top_k && a->top_k < k) k = a->top_k;
    int32_t *best = ses_arena_array(&r->mem, (size_t)k + 1, sizeof *best, e);
    if (!best) return false;
    k = ses_top_k(s->weight, s->n, k, best);
    for (int64_t i = 0; i < k; i++) {
        ses_result_row *row = ses_request_add_row(r, e);
        size_t n = 0;
        const char *token = ses_tokenizer_id_to_token(p->tokenizer, best[i], &n);
        if (!row) return false;
        row->word = ses_request_copy_string(r, token ? token : "", n, e);
        if (!row->word.p) return false;
        row->token = best[i];
        row->score = (double)s->weight[best[i]];
    }
    out->schema = &schema;
    return true;
}

static const ses_head *const heads[] = { &ses_head_masked_lm, NULL };
static const ses_usage_example examples[] = {
    { "sesame sparse-embed -m DIR --top-k 10 \"A text.\"", "the ten tokens with the largest weights" },
    { 0 },
};

const ses_task ses_task_sparse_embed = {
    .description = "Outputs a sparse vector over the vocabulary for each text: the maximum over its tokens "
                   "of log(1 + relu(logit)) of a masked language model, as SPLADE models are trained for. "
                   "Weights of 0 are left out. A JSON line is {\"text\": ...}.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .item_settings = "top-k",
    .request_size = sizeof(item_state),
    .head = heads,
    .needs_bidirectional = true,
    .item_schema = { .text = "text" },
    .encode = encode,
    .collect = collect,
    .finish = finish,
};
