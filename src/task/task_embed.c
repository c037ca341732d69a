/* embed: one vector for each text, by the folder's modules.json, else the mean of its tokens'. */
#include "sentence_task.h"

typedef struct args {
    ses_sentence_args encoder;
    int output;
} args;

static const ses_opt opt[] = {
    SES_SENTENCE_OPT(args, encoder),
    { .name = "output",
      .letter = 'o',
      .type = SES_OPT_CHOICE,
      .offset = offsetof(args, output),
      .choices = "npy|jsonl|tsv",
      .help = "write vectors as a NumPy array [texts, numbers], as JSON, or as numbers apart by tabs, a line "
              "each" },
};

static const ses_result_schema shape[] = {
    { SES_FORM_VECTOR, SES_VIEW_ARRAY, { { 0 } } },
    { SES_FORM_VECTOR, SES_VIEW_JSON, { { 0 } } },
    { SES_FORM_VECTOR, SES_VIEW_NUMBERS, { { 0 } } },
    { SES_FORM_VECTOR, SES_VIEW_VECTORS, { { 0 } } },
};

typedef struct state {
    float *x;
    int64_t n;
} state;

static bool encode(ses_pipeline *p, ses_request *j, ses_err *e)
{
    return ses_sentence_task_add(p, j, j->item.text, e) != NULL;
}

static bool take(ses_pipeline *p, ses_request *j, ses_seq *q, ses_err *e)
{
    state *s = j->state;
    ses_output_rows r = ses_sentence_task_vector(p, q, e);
    s->x = r.x ? ses_arena_array(&j->mem, (size_t)r.cols, sizeof *s->x, e) : NULL;
    if (!s->x) return false;
    memcpy(s->x, r.x, (size_t)r.cols * sizeof *s->x);
    s->n = r.cols;
    return true;
}

static bool finish(ses_pipeline *p, ses_request *j, ses_result *r, ses_err *e)
{
    (void)e;
    const args *a = p->args;
    const state *s = j->state;
    r->vectors = s->x;
    r->n_vectors = 1;
    r->vector_size = s->n;
    r->schema = &shape[a->output < 0 ? SES_LEN(shape) - 1 : (size_t)a->output];
    return true;
}

static const ses_usage_example examples[] = {
    { "sesame embed -m all-MiniLM-L6-v2 -f texts.txt -o npy >vectors.npy", "a NumPy array, one row a line" },
    { "sesame embed -m bert-base-uncased --pooling cls --layer -2 --json \"A text.\"",
      "any model, your pooling" },
    { 0 },
};

const ses_task ses_task_embed = {
    .description =
        "Gives one vector for each text: as the folder's modules.json says (sentence-transformers), or, of "
        "any other model, the mean of its tokens' vectors. A JSON line is {\"text\": ...}.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .self_size = sizeof(ses_sentence_task),
    .job_size = sizeof(state),
    .item_schema = { .text = "text" },
    .load = ses_sentence_task_load,
    .open = ses_sentence_task_open,
    .close = ses_sentence_task_close,
    .pass = ses_sentence_task_forward,
    .encode = encode,
    .take = take,
    .finish = finish,
};
