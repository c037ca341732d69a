/* zero-shot-classification: labels of the user's choice, by a model that tells what a text entails. */
#include "task.h"

#include <math.h>

typedef struct args {
    ses_opt_list labels;
    const char *template;
    bool multi;
} args;

static const ses_opt opt[] = {
    { .name = "candidate-labels",
      .letter = 'c',
      .type = SES_OPT_LIST,
      .offset = offsetof(args, labels),
      .value = "A,B",
      .help = "the labels to choose from" },
    { .name = "hypothesis-template",
      .type = SES_OPT_TEXT,
      .offset = offsetof(args, template),
      .value = "TEXT",
      .def = "This example is {}.",
      .help = "what the text may entail; the label stands for {}" },
    { .name = "multi-label",
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, multi),
      .help = "each label may hold or not; else one of them does" },
};

static const ses_result_schema shape = {
    SES_FORM_COLUMNS,
    SES_VIEW_BARS,
    { { "sequence", SES_FIELD_ITEM }, { "labels", SES_FIELD_LABEL }, { "scores", SES_FIELD_SCORE } }
};

typedef struct self {
    ses_string *label;
    size_t n;
    int64_t entails, contradicts; /* columns of the model's outputs */
} self;

typedef struct state {
    const ses_string *label;
    size_t n;
    float *score;
} state;

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }

static bool begins(const char *s, const char *with)
{
    while (*with && lower(*s) == *with) s++, with++;
    return !*with;
}

/* As the reference finds them: the label that begins with "entail", else the last; against the first, or the
 * last where the first is that one. */
static bool find_columns(ses_pipeline *p, ses_err *e)
{
    self *my = p->self;
    int64_t n = ses_model_label_count(p->model);
    if (n < 2)
        return ses_fail(e, SES_EUNSUPPORTED, "a model with %lld label does not tell what a text entails",
                        (long long)n);
    my->entails = -1;
    for (int64_t i = 0; i < n && my->entails < 0; i++) {
        const char *name = ses_model_label_name(p->model, i);
        if (name && begins(name, "entail")) my->entails = i;
    }
    my->contradicts = my->entails == 0 ? n - 1 : 0;
    if (my->entails >= 0) return true;
    my->entails = n - 1;
    return ses_pipeline_warn(p, e, "no label of the model begins with \"entail\": its last one is taken");
}

static bool begin(ses_pipeline *p, ses_err *e)
{
    const args *a = p->args;
    self *my = p->self;
    const char *place = strstr(a->template, "{}");
    if (!place || strstr(place + 2, "{}"))
        return ses_fail(e, SES_EUSAGE, "--hypothesis-template: \"%s\" has %s {} where the label goes",
                        a->template, place ? "more than one" : "no");
    return find_columns(p, e) && ses_pipeline_split_list(p, &a->labels, true, &my->label, &my->n, e);
}

static ses_string hypothesis(ses_request *j, const char *template, ses_string label, ses_err *e)
{
    const char *at = strstr(template, "{}");
    size_t before = (size_t)(at - template), after = strlen(at + 2);
    char *s = ses_arena_alloc(&j->mem, before + label.n + after + 1, e);
    if (!s) return (ses_string){ 0 };
    memcpy(s, template, before);
    memcpy(s + before, label.p, label.n);
    memcpy(s + before + label.n, at + 2, after + 1);
    return (ses_string){ s, before + label.n + after };
}

static bool encode(ses_pipeline *p, ses_request *j, ses_err *e)
{
    const args *a = p->args;
    const self *my = p->self;
    state *s = j->state;
    s->label = j->item.list ? j->item.list : my->label;
    s->n = j->item.list ? j->item.n_list : my->n;
    if (!s->n)
        return ses_fail(e, SES_EARG, "no labels: --candidate-labels A,B, or \"candidate_labels\" in JSON");
    s->score = ses_arena_array(&j->mem, 2 * s->n, sizeof *s->score, e);
    int64_t cut = 0; /* of the text, which is the same each time */
    for (size_t i = 0; s->score && i < s->n; i++) {
        j->cut = 0;
        ses_input in = { .text = j->item.text, .pair = hypothesis(j, a->template, s->label[i], e) };
        ses_seq *q = in.pair.p ? ses_request_encode(p, j, &in, SES_TRUNCATE_ONLY_FIRST, e) : NULL;
        if (!q) return ses_wrap(e, "label \"%s\"", ses_quoted_of(s->label[i].p, s->label[i].n).s);
        q->mark = (int64_t)i;
        if (j->cut > cut) cut = j->cut;
    }
    j->cut = cut;
    return s->score != NULL;
}

static bool take(ses_pipeline *p, ses_request *j, ses_seq *q, ses_err *e)
{
    const self *my = p->self;
    state *s = j->state;
    ses_output_rows r = ses_request_output_rows(p, q, p->use->output, e);
    if (!r.x) return false;
    s->score[2 * q->mark] = r.x[my->contradicts];
    s->score[2 * q->mark + 1] = r.x[my->entails];
    return true;
}

static bool finish(ses_pipeline *p, ses_request *j, ses_result *r, ses_err *e)
{
    const args *a = p->args;
    const state *s = j->state;
    int64_t n = (int64_t)s->n;
    float *score = ses_arena_array(&j->mem, s->n, sizeof *score, e);
    int32_t *at = score ? ses_arena_array(&j->mem, s->n, sizeof *at, e) : NULL;
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
    for (int64_t i = 0; i < n / 2; i++) { /* backwards: of equals the reference has the last first */
        float x = score[i];
        score[i] = score[n - 1 - i], score[n - 1 - i] = x;
    }
    ses_top_k(score, n, n, at);
    for (int64_t i = 0; i < n; i++) {
        ses_result_row *row = ses_request_add_row(j, e);
        if (!row) return false;
        row->index = n - 1 - at[i];
        row->label = s->label[row->index];
        row->score = (double)score[at[i]];
    }
    r->schema = &shape;
    return true;
}

static const ses_head *const heads[] = { &ses_head_classify, NULL };
static const ses_usage_example examples[] = {
    { "sesame zero-shot-classification -m DIR -c travel,cooking \"One day I will see the world.\"",
      "which label fits better" },
    { "sesame zero-shot-classification -m DIR -c urgent,phone --multi-label -f mails.txt --json",
      "each label for itself" },
    { 0 },
};

const ses_task ses_task_zero_shot = {
    .description =
        "Says which of any labels fit a text, by a model trained to tell whether a text entails another one "
        "(its labels are entailment, contradiction and the like). A JSON line is {\"text\": ...}, perhaps "
        "with \"candidate_labels\".",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .self_size = sizeof(self),
    .job_size = sizeof(state),
    .head = heads,
    .item_schema = { .text = "text|sequence", .list = "candidate_labels" },
    .tokenizer_limit = true,
    .open = begin,
    .encode = encode,
    .take = take,
    .finish = finish,
};
