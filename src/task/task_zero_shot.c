/* zero-shot-classification: scores arbitrary labels with a natural language inference (NLI) model. */
#include "pipeline_impl.h"
#include "task/gpt/gpt_inputs.h"

#include <math.h>

typedef struct args {
    ses_opt_list labels;
    const char *template;
    bool multi;
} args;

static const ses_opt opt[] = {
    SES_OPT_LIST(args, labels, "candidate-labels", "A,B", "candidate labels", .letter = 'c'),
    SES_OPT_TEXT(args, template, "hypothesis-template", "TEXT", "hypothesis; {} is replaced by the label",
                 .def = "This example is {}."),
    SES_OPT_FLAG(args, multi, "multi-label", "score each label independently; default: exactly one applies"),
};

static const ses_result_schema schema = {
    SES_FORM_COLUMNS,
    SES_VIEW_BARS,
    { { "sequence", SES_FIELD_ITEM }, { "labels", SES_FIELD_LABEL }, { "scores", SES_FIELD_SCORE } }
};

typedef struct task_state {
    ses_string *label;
    size_t n;
    int64_t entailment, contradiction; /* columns of the logits */
    ses_gpt_inputs gpt;                /* enabled: pairs have the inputs of GPT-1 */
} task_state;

typedef struct item_state {
    const ses_string *label;
    size_t n;
    float *score; /* [n][2]: contradiction, entailment */
} item_state;

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }

static bool begins(const char *s, const char *with)
{
    while (*with && lower(*s) == *with) s++, with++;
    return !*with;
}

/* Column of the label that begins with "entail"; -1: none. */
static int64_t find_entailment(const ses_model *m)
{
    for (int64_t i = 0; i < ses_model_label_count(m); i++) {
        const char *name = ses_model_label_name(m, i);
        if (name && begins(name, "entail")) return i;
    }
    return -1;
}

static bool suits(const ses_model *m) { return find_entailment(m) >= 0; }

/* As in transformers: entailment is the label that begins with "entail", else the last one; contradiction
 * is the first label, or the last if the first is entailment. */
static bool find_columns(ses_pipeline *p, ses_err *e)
{
    task_state *task = p->state;
    int64_t n = ses_model_label_count(p->model);
    if (n < 2)
        return ses_fail(e, SES_EUNSUPPORTED, "needs an NLI model with 2 or more labels, this one has %lld",
                        (long long)n);
    task->entailment = find_entailment(p->model);
    task->contradiction = task->entailment == 0 ? n - 1 : 0;
    if (task->entailment >= 0) return true;
    task->entailment = n - 1;
    return ses_pipeline_warn(p, e, "no label of the model begins with \"entail\": the last one is used");
}

static bool open_task(ses_pipeline *p, ses_err *e)
{
    const args *a = p->settings.args;
    task_state *task = p->state;
    const char *slot = strstr(a->template, "{}");
    if (!slot || strstr(slot + 2, "{}"))
        return ses_fail(e, SES_EUSAGE, "--hypothesis-template: \"%s\" has %s {} for the label", a->template,
                        slot ? "more than one" : "no");
    if (!ses_gpt_inputs_read(p->model->config, p->tokenizer, &task->gpt, e)) return false;
    if (task->gpt.both_orders)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "the model reads pairs in both orders: it does not tell the text "
                        "from the hypothesis");
    return find_columns(p, e) && ses_pipeline_split_list(p, &a->labels, true, &task->label, &task->n, e);
}

static ses_string hypothesis(ses_request *r, const char *template, ses_string label, ses_err *e)
{
    const char *at = strstr(template, "{}");
    size_t before = (size_t)(at - template), after = strlen(at + 2);
    char *s = ses_arena_alloc(&r->mem, before + label.n + after + 1, e);
    if (!s) return (ses_string){ 0 };
    memcpy(s, template, before);
    memcpy(s + before, label.p, label.n);
    memcpy(s + before + label.n, at + 2, after + 1);
    return (ses_string){ s, before + label.n + after };
}

static bool add_pair(ses_pipeline *p, ses_request *r, const ses_input *in, int64_t tag, ses_err *e)
{
    const task_state *task = p->state;
    if (task->gpt.enabled) return ses_gpt_inputs_add(&task->gpt, p, r, in, tag, e);
    ses_seq *q = ses_request_encode(p, r, in, SES_TRUNCATE_ONLY_FIRST, e);
    if (q) q->tag = tag;
    return q != NULL;
}

static bool encode(ses_pipeline *p, ses_request *r, ses_err *e)
{
    const args *a = r->args;
    const task_state *task = p->state;
    item_state *s = r->state;
    s->label = r->item.list ? r->item.list : task->label;
    s->n = r->item.list ? r->item.n_list : task->n;
    if (!s->n)
        return ses_fail(e, SES_EARG,
                        "no labels: use --candidate-labels A,B, or \"candidate_labels\" in JSON");
    s->score = ses_arena_array(&r->mem, 2 * s->n, sizeof *s->score, e);
    int64_t truncated = 0; /* maximum over the labels: the text is the same */
    for (size_t i = 0; s->score && i < s->n; i++) {
        r->truncated = 0;
        ses_input in = { .text = r->item.text, .pair = hypothesis(r, a->template, s->label[i], e) };
        if (!in.pair.p || !add_pair(p, r, &in, (int64_t)i, e))
            return ses_wrap(e, "label \"%s\"", ses_quoted_of(s->label[i].p, s->label[i].n).s);
        if (r->truncated > truncated) truncated = r->truncated;
    }
    r->truncated = truncated;
    return s->score != NULL;
}

static bool collect(ses_pipeline *p, ses_request *r, ses_seq *q, ses_err *e)
{
    const task_state *task = p->state;
    item_state *s = r->state;
    ses_output_rows rows = ses_request_output_rows(p, q, p->head->output, e);
    if (!rows.x) return false;
    s->score[2 * q->tag] = rows.x[task->contradiction];
    s->score[2 * q->tag + 1] = rows.x[task->entailment];
    return true;
}

static bool finish(ses_pipeline *p, ses_request *r, ses_result *out, ses_err *e)
{
    const args *a = r->args;
    const item_state *s = r->state;
    (void)p;
    int64_t n = (int64_t)s->n;
    float *score = ses_arena_array(&r->mem, s->n, sizeof *score, e);
    int32_t *at = score ? ses_arena_array(&r->mem, s->n, sizeof *at, e) : NULL;
    if (!at) return false;
    if (a->multi || n == 1) {
        for (int64_t i = 0; i < n; i++) {
            ses_softmax_row(s->score + 2 * i, s->score + 2 * i, 2);
            score[i] = s->score[2 * i + 1];
        }
    } else {
        for (int64_t i = 0; i < n; i++) score[i] = s->score[2 * i + 1];
        ses_softmax_row(score, score, n);
    }
    for (int64_t i = 0; i < n / 2; i++) { /* reversed: transformers puts the last of equal scores first */
        float x = score[i];
        score[i] = score[n - 1 - i], score[n - 1 - i] = x;
    }
    ses_top_k(score, n, n, at);
    for (int64_t i = 0; i < n; i++) {
        ses_result_row *row = ses_request_add_row(r, e);
        if (!row) return false;
        row->index = n - 1 - at[i];
        row->label = s->label[row->index];
        row->score = (double)score[at[i]];
    }
    out->schema = &schema;
    return true;
}

static const ses_result_schema *columns(const void *options)
{
    (void)options;
    return &schema;
}

static const ses_head *const heads[] = { &ses_head_sequence_classification, NULL };
static const ses_usage_example examples[] = {
    { "sesame zero-shot-classification -m DIR -c travel,cooking \"One day I will see the world.\"",
      "the better label first" },
    { "sesame zero-shot-classification -m DIR -c urgent,phone --multi-label -f mails.txt --json",
      "independent labels" },
    { 0 },
};

const ses_task ses_task_zero_shot = {
    .description = "Classifies texts with arbitrary labels, using a model for natural language inference "
                   "(its labels are entailment, contradiction and neutral, or similar). A JSON line is "
                   "{\"text\": ...}, with \"candidate_labels\" to override the labels.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .state_size = sizeof(task_state),
    .item_settings = "multi-label",
    .request_size = sizeof(item_state),
    .head = heads,
    .item_schema = { .text = "text|sequence", .list = "candidate_labels" },
    .uses_tokenizer_max_length = true,
    .suits = suits,
    .open = open_task,
    .encode = encode,
    .collect = collect,
    .finish = finish,
    .columns = columns,
};
