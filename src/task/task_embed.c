/* embed: one vector for each text, by the folder's modules.json, else the mean of its token vectors. */
#include "sentence_task.h"

typedef struct args {
    ses_sentence_args encoder;
    int format;
} args;

static const ses_opt opt[] = {
    SES_OPT_INCLUDE(args, encoder, ses_sentence_options_table),
    SES_OPT_CHOICE(
        args, format, "format", NULL, "npy|jsonl|tsv|f32|csv",
        "output format: NumPy array [texts, numbers], JSON lines, lines of numbers separated by tabs or "
        "commas, or the numbers of the array alone"),
};

static const ses_result_schema schema[] = {
    { SES_FORM_VECTOR, SES_VIEW_ARRAY, { { 0 } } },   { SES_FORM_VECTOR, SES_VIEW_JSON, { { 0 } } },
    { SES_FORM_VECTOR, SES_VIEW_NUMBERS, { { 0 } } }, { SES_FORM_VECTOR, SES_VIEW_RAW, { { 0 } } },
    { SES_FORM_VECTOR, SES_VIEW_COMMAS, { { 0 } } },  { SES_FORM_VECTOR, SES_VIEW_VECTORS, { { 0 } } },
};

typedef struct item_state {
    float *x;
    int64_t n;
} item_state;

static bool encode(ses_pipeline *p, ses_request *r, ses_err *e)
{
    return ses_sentence_task_encode(p, r, r->item.text, e) != NULL;
}

static bool collect(ses_pipeline *p, ses_request *r, ses_seq *q, ses_err *e)
{
    item_state *s = r->state;
    ses_output_rows rows = ses_sentence_task_vector(p, q, e);
    s->x = rows.x ? ses_arena_array(&r->mem, (size_t)rows.cols, sizeof *s->x, e) : NULL;
    if (!s->x) return false;
    memcpy(s->x, rows.x, (size_t)rows.cols * sizeof *s->x);
    s->n = rows.cols;
    return true;
}

static bool finish(ses_pipeline *p, ses_request *r, ses_result *out, ses_err *e)
{
    (void)p, (void)e;
    const args *a = r->args;
    const item_state *s = r->state;
    out->vectors = s->x;
    out->n_vectors = 1;
    out->vector_size = s->n;
    out->schema = &schema[a->format < 0 ? SES_LEN(schema) - 1 : (size_t)a->format];
    return true;
}

static const ses_usage_example examples[] = {
    { "sesame embed -m all-MiniLM-L6-v2 -f texts.txt -o vectors.npy",
      "a NumPy array, one row for each line" },
    { "sesame embed -m bert-base-uncased --pooling cls --layer -2 --json \"A text.\"",
      "any model, pooling of your choice" },
    { 0 },
};

const ses_task ses_task_embed = {
    .description =
        "Outputs one vector for each text: as modules.json of the folder defines it (sentence-transformers), "
        "or, for any other model, the mean of all its token vectors, with special tokens. A JSON line is "
        "{\"text\": ...}.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .state_size = sizeof(ses_sentence_task),
    .request_size = sizeof(item_state),
    .item_schema = { .text = "text" },
    .load_model = ses_sentence_task_load,
    .open = ses_sentence_task_open,
    .forward = ses_sentence_task_forward,
    .encode = encode,
    .collect = collect,
    .finish = finish,
};
