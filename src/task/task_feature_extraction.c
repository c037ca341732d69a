/* feature-extraction: the last hidden state of the model, one vector for each token. */
#include "pipeline_impl.h"

static const ses_result_schema schema = { SES_FORM_MATRIX, SES_VIEW_VECTORS, { { 0 } } };

typedef struct item_state {
    float *x; /* [tokens, cols] */
    int64_t cols;
} item_state;

static bool encode(ses_pipeline *p, ses_request *r, ses_err *e)
{
    return ses_request_encode(p, r, &(ses_input){ .text = r->item.text }, SES_TRUNCATE_LONGEST_FIRST, e) !=
           NULL;
}

static bool collect(ses_pipeline *p, ses_request *r, ses_seq *q, ses_err *e)
{
    item_state *s = r->state;
    ses_output_rows rows = ses_request_output_rows(p, q, "last_hidden_state", e);
    s->x = rows.x ? ses_arena_array(&r->mem, (size_t)(rows.n * rows.cols), sizeof *s->x, e) : NULL;
    if (!s->x) return false;
    memcpy(s->x, rows.x, (size_t)(rows.n * rows.cols) * sizeof *s->x);
    s->cols = rows.cols;
    return true;
}

static bool finish(ses_pipeline *p, ses_request *r, ses_result *out, ses_err *e)
{
    const item_state *s = r->state;
    const ses_seq *q = &r->seq[0];
    for (size_t i = 0; i < q->n; i++) {
        ses_result_row *row = ses_request_add_row(r, e);
        size_t n = 0;
        const char *token = ses_tokenizer_id_to_token(p->tokenizer, q->id[i], &n);
        if (!row) return false;
        row->word = ses_request_copy_string(r, token, n, e);
        row->token = q->id[i];
        row->index = (int64_t)i;
        row->char_span = q->char_offset[i];
        row->byte_span = q->byte_offset[i];
        if (!row->word.p) return false;
    }
    out->vectors = s->x;
    out->n_vectors = (int64_t)q->n;
    out->vector_size = s->cols;
    out->schema = &schema;
    return true;
}

static const ses_usage_example examples[] = {
    { "sesame feature-extraction -m DIR --json \"A text.\"", "one list of numbers for each token" },
    { 0 },
};

const ses_task ses_task_feature_extraction = {
    .description = "Outputs the vectors of the last layer, one for each token, special tokens included. "
                   "embed gives one vector for each text. A JSON line is {\"text\": ...}.",
    .examples = examples,
    .request_size = sizeof(item_state),
    .item_schema = { .text = "text" },
    .encode = encode,
    .collect = collect,
    .finish = finish,
};
