/* feature-extraction: the model's last hidden state, a vector for each token. */
#include "task.h"

static const ses_result_schema shape = { SES_FORM_MATRIX, SES_VIEW_VECTORS, { { 0 } } };

typedef struct state {
    float *x;
    int64_t cols;
} state;

static bool encode(ses_pipeline *p, ses_request *j, ses_err *e)
{
    return ses_request_encode(p, j, &(ses_input){ .text = j->item.text }, SES_TRUNCATE_LONGEST_FIRST, e) !=
           NULL;
}

static bool take(ses_pipeline *p, ses_request *j, ses_seq *q, ses_err *e)
{
    state *s = j->state;
    ses_output_rows r = ses_request_output_rows(p, q, "last_hidden_state", e);
    s->x = r.x ? ses_arena_array(&j->mem, (size_t)(r.n * r.cols), sizeof *s->x, e) : NULL;
    if (!s->x) return false;
    memcpy(s->x, r.x, (size_t)(r.n * r.cols) * sizeof *s->x);
    s->cols = r.cols;
    return true;
}

static bool finish(ses_pipeline *p, ses_request *j, ses_result *r, ses_err *e)
{
    const state *s = j->state;
    const ses_seq *q = &j->seq[0];
    for (size_t i = 0; i < q->n; i++) {
        ses_result_row *row = ses_request_add_row(j, e);
        size_t n = 0;
        const char *token = ses_tokenizer_id_to_token(p->tokenizer, q->id[i], &n);
        if (!row) return false;
        row->word = ses_request_copy_string(j, token, n, e);
        row->token = q->id[i];
        row->index = (int64_t)i;
        row->char_span = q->point[i];
        row->byte_span = q->byte[i];
        if (!row->word.p) return false;
    }
    r->vectors = s->x;
    r->n_vectors = (int64_t)q->n;
    r->vector_size = s->cols;
    r->schema = &shape;
    return true;
}

static const ses_usage_example examples[] = {
    { "sesame feature-extraction -m DIR --json \"A text.\"",
      "[[...], ...]: a list of numbers for each token" },
    { 0 },
};

const ses_task ses_task_feature_extraction = {
    .description =
        "Gives the vectors of the model's last layer, one for each token, special ones included. For "
        "one vector a text see embed. A JSON line is {\"text\": ...}.",
    .examples = examples,
    .job_size = sizeof(state),
    .item_schema = { .text = "text" },
    .encode = encode,
    .take = take,
    .finish = finish,
};
