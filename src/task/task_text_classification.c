/* text-classification: scores the labels of a classifier for a text or a pair of texts. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/label_pairs.h"
#include "io/matrix.h"
#include "pipeline_impl.h"
#include "task/gpt/gpt_inputs.h"
#include "task/prompt/cloze_prompt.h"

#include <math.h>

typedef enum { FUNCTION_DEFAULT = -1, FUNCTION_SIGMOID, FUNCTION_SOFTMAX, FUNCTION_NONE } score_function;

typedef struct args {
    int64_t top_k;  /* 0: all */
    bool has_top_k; /* else a model with several labels gives all above 0.5, others the best one */
    int function;   /* a score_function */
    const char *pair, *labels, *image_vectors, *exit;
} args;

static const ses_opt opt[] = {
    SES_OPT_INT(args, top_k, "top-k", "1", 1, 1 << 24,
                "number of labels, best first; default: 1, of a multi-label model all with a score above 0.5",
                .letter = 'k', .was_set = offsetof(args, has_top_k), .value = "N|all", .zero_word = "all"),
    SES_OPT_CHOICE(
        args, function, "function-to-apply", NULL, "sigmoid|softmax|none",
        "score function; default: softmax, sigmoid (one label, multi-label) or none (regression), by "
        "config.json"),
    SES_OPT_TEXT(args, pair, "text-pair", "TEXT", "second text, for all pairs"),
    SES_OPT_TEXT(args, labels, "labels", "LABEL=NAME,...",
                 "names of labels, by name or number: 0=negative,1=positive; default: config.json"),
    SES_OPT_TEXT(args, image_vectors, "image-vectors", "FILE",
                 "MMBT: a .npy file with a row for each text: the vectors of its image, "
                 "side by side"),
    SES_OPT_TEXT(
        args, exit, "exit", "RULE",
        "a model trained with --exits: texts leave early, at an entropy below T of 0 to 1 (entropy:T), "
        "when the label stayed the same N times (patience:N) or after N layers (layer:N)"),
};

static const ses_result_schema schema = { SES_FORM_ROWS,
                                          SES_VIEW_BARS,
                                          { { "label", SES_FIELD_LABEL }, { "score", SES_FIELD_SCORE } } };

static const ses_result_schema multi_schema = { SES_FORM_ROWS,
                                                SES_VIEW_BARS,
                                                { { "label", SES_FIELD_LABEL },
                                                  { "score", SES_FIELD_SCORE } },
                                                .none = "no label has a score above 0.5" };

static const ses_result_schema exit_schema = {
    SES_FORM_ROWS,
    SES_VIEW_BARS,
    { { "label", SES_FIELD_LABEL }, { "score", SES_FIELD_SCORE }, { "layers", SES_FIELD_LAYERS } }
};

typedef struct task_state {
    ses_exit_policy exit; /* request of all batches, if the option is given */
    ses_gpt_inputs gpt;   /* enabled: texts have the inputs of GPT-1 */
    ses_string *name;     /* new names of labels; NULL: none */
    ses_matrix images;    /* rows of image vectors, one for each text; x NULL: none */
    size_t next_image;
    ses_patterns *patterns; /* by patterns */
    ses_cloze_prompt *prompt;
} task_state;

typedef struct item_state {
    float *score; /* [n], one for each label */
    int64_t n;
    int64_t layers; /* that the text has passed, if it may leave early */
} item_state;

static const char *label_name(const void *labels, size_t i) { return ((const ses_string *)labels)[i].p; }

static bool open_images(ses_pipeline *p, ses_err *e)
{
    const args *a = p->settings.args;
    task_state *s = p->state;
    size_t width = (size_t)p->model->stack[0].c->embed.modal_width;
    if (!width && a->image_vectors)
        return ses_fail(e, SES_EUSAGE, "image-vectors: %s reads texts only", p->model->class->name);
    if (width && !a->image_vectors)
        return ses_fail(e, SES_EUSAGE, "%s reads texts with images: give their vectors with --image-vectors",
                        p->model->class->name);
    if (!width) return true;
    if (!ses_matrix_read(&s->images, a->image_vectors, &(ses_records_options){ 0 }, e)) return false;
    size_t max = (size_t)p->settings.model_max_tokens - 2;
    return (s->images.cols % width == 0 && s->images.cols / width <= max) ||
           ses_fail(e, SES_EFORMAT,
                    "%s: rows of %zu numbers, expected a multiple of %zu (\"modal_hidden_size\"): one to %zu "
                    "vectors for each text",
                    a->image_vectors, s->images.cols, width, max);
}

static void close_task(ses_pipeline *p) { ses_matrix_free(&((task_state *)p->state)->images); }

/* As in the scripts of MMBT: CLS, the vectors, SEP, then the text without special tokens, whose positions
 * start at 0 again. */
static bool encode_with_image(ses_pipeline *p, ses_request *r, ses_err *e)
{
    const args *a = r->args;
    task_state *s = p->state;
    const int32_t *role = p->tokenizer_config.role;
    ses_encode_options o = { .no_special = true,
                             .truncation = SES_TRUNCATE_ONLY_FIRST,
                             .max_length = p->settings.max_seq_len };
    size_t width = (size_t)p->model->stack[0].c->embed.modal_width, images = s->images.cols / width,
           first = images + 2, row = s->next_image++;
    if (r->item.pair.n || a->pair) return ses_fail(e, SES_EARG, "a text with an image has no second text");
    if (row >= s->images.rows)
        return ses_fail(e, SES_EARG, "%s has %zu rows: none for text %zu", a->image_vectors, s->images.rows,
                        row + 1);
    if (!ses_encode(p->tokens, &(ses_input){ .text = r->item.text }, &o, e)) return false;
    r->truncated += (int64_t)ses_encode_ctx_overflow_count(p->tokens);
    ses_seq *q = ses_request_add_sequence(r, ses_encode_ctx_result(p->tokens), e);
    size_t n = q ? q->n + first : 0;
    int32_t *all = q ? ses_arena_array(&r->mem, 4 * n, sizeof *all, e) : NULL;
    if (!all) return false;
    int32_t *id = all, *segment = all + n, *position = all + 2 * n, *modal = all + 3 * n;
    for (size_t i = 0; i < n; i++) {
        bool text = i >= first, image = i > 0 && i + 1 < first;
        id[i] = text ? q->id[i - first] : image ? 0 : role[i ? SES_ROLE_SEP : SES_ROLE_CLS];
        segment[i] = text;
        position[i] = (int32_t)(text ? i - first : i);
        modal[i] = image ? (int32_t)i - 1 : -1;
    }
    if (id[0] < 0 || id[first - 1] < 0)
        return ses_fail(e, SES_EFORMAT, "the tokenizer has no CLS or SEP token, which enclose the image");
    r->tokens += (int64_t)first;
    q->n = n, q->id = id, q->type_id = segment, q->positions = position, q->modal_rows = modal;
    q->modal_vectors = s->images.x + row * s->images.cols, q->n_modal = (int64_t)images;
    return true;
}

/* Names by --labels. */
static bool rename_labels(ses_pipeline *p, size_t n, ses_err *e)
{
    const args *a = p->settings.args;
    task_state *s = p->state;
    if (!a->labels) return true;
    s->name = ses_arena_array(&p->mem, n, sizeof *s->name, e);
    ses_string *now = s->name ? ses_arena_array(&p->mem, n, sizeof *now, e) : NULL;
    for (size_t i = 0; now && i < n; i++) {
        now[i] = ses_pipeline_label(p, &p->mem, (int64_t)i, e);
        if (!now[i].p) return false;
    }
    return now && ses_label_pairs_rename(a->labels, label_name, now, n, s->name, e);
}

static bool open_exit(ses_pipeline *p, ses_err *e)
{
    const args *a = p->settings.args;
    task_state *s = p->state;
    if (!a->exit) {
        p->settings.outputs.exit = ses_model_exit_policy(p->model);
        return true;
    }
    if (!ses_exit_policy_parse(a->exit, &s->exit, e) || !ses_exit_policy_check(&s->exit, p->model, e))
        return ses_wrap(e, "%s", p->dir);
    if (ses_model_exit_count(p->model)) p->settings.outputs.exit = &s->exit;
    return true;
}

/* Classifiers without layers have no exits. */
static bool check_no_exit(const args *a, ses_err *e)
{
    return !a->exit ||
           ses_fail(e, SES_EUSAGE, "exit: this classifier has no layers that a text could leave at");
}

static bool open(ses_pipeline *p, ses_err *e)
{
    task_state *s = p->state;
    return open_exit(p, e) && ses_gpt_inputs_read(p->model->config, p->tokenizer, &s->gpt, e) &&
           open_images(p, e) && rename_labels(p, (size_t)p->model->c.labels, e);
}

static ses_string label_of(const ses_pipeline *p, ses_arena *mem, int64_t i, ses_err *e)
{
    const task_state *s = p->state;
    if (!s->name || !s->name[i].p) return ses_pipeline_label(p, mem, i, e);
    char *copy = ses_arena_strndup(mem, s->name[i].p, s->name[i].n, e);
    return (ses_string){ copy, s->name[i].n };
}

/* Text to tokens. An empty second text counts as none, as in transformers. */
static bool encode(ses_pipeline *p, ses_request *r, ses_err *e)
{
    const args *a = r->args;
    ses_input in = { .text = r->item.text, .pair = r->item.pair };
    if (((const task_state *)p->state)->images.x) return encode_with_image(p, r, e);
    if (!in.pair.p && a->pair) in.pair = ses_str(a->pair);
    if (!in.pair.n) in.pair.p = NULL;
    const ses_gpt_inputs *g = &((const task_state *)p->state)->gpt;
    if (g->enabled) return ses_gpt_inputs_add(g, p, r, &in, 0, e);
    return ses_request_encode(p, r, &in, SES_TRUNCATE_LONGEST_FIRST, e) != NULL;
}

static score_function default_function(const ses_config *c)
{
    if (c->head.problem == SES_PROBLEM_REGRESSION) return FUNCTION_NONE;
    return c->head.problem == SES_PROBLEM_MULTI || c->labels == 1 ? FUNCTION_SIGMOID : FUNCTION_SOFTMAX;
}

/* Logits to scores; the logits of several sequences (both orders of a pair) are added. */
static bool collect(ses_pipeline *p, ses_request *r, ses_seq *q, ses_err *e)
{
    const args *a = r->args;
    item_state *s = r->state;
    ses_output_rows logits = ses_request_output_rows(p, q, p->head->output, e); /* [1, labels] */
    s->n = logits.cols;
    if (logits.x && !s->score) s->score = ses_arena_array(&r->mem, (size_t)s->n, sizeof *s->score, e);
    if (!logits.x || !s->score) return false;
    for (int64_t i = 0; i < s->n; i++) s->score[i] += logits.x[i];
    if (p->settings.outputs.exit) {
        ses_output_rows layers = ses_request_output_rows(p, q, "exit_layers", e); /* [1, 1] */
        if (!layers.x) return false;
        s->layers = (int64_t)layers.x[0];
    }
    if (q != &r->seq[r->n_seqs - 1]) return true;
    bool given = a->function != FUNCTION_DEFAULT;
    switch (given ? (score_function)a->function : default_function(&p->model->c)) {
    case FUNCTION_SIGMOID: ses_sigmoid_row(s->score, s->score, s->n); break;
    case FUNCTION_SOFTMAX: ses_softmax_row(s->score, s->score, s->n); break;
    default: break;
    }
    return true;
}

/* Whether the result is all labels above 0.5. */
static bool gives_all_above(const ses_pipeline *p, const args *a)
{
    bool probabilities = a->function == FUNCTION_DEFAULT || a->function == FUNCTION_SIGMOID;
    return !a->has_top_k && probabilities && p->model && p->model->c.head.problem == SES_PROBLEM_MULTI;
}

static int64_t count_above(const item_state *s)
{
    int64_t n = 0;
    for (int64_t i = 0; i < s->n; i++) n += s->score[i] > 0.5f;
    return n;
}

/* Scores to the best labels. */
static bool finish(ses_pipeline *p, ses_request *r, ses_result *out, ses_err *e)
{
    const args *a = r->args;
    const item_state *s = r->state;
    bool above = gives_all_above(p, a);
    int64_t k = above ? count_above(s) : a->top_k && a->top_k < s->n ? a->top_k : s->n;
    int32_t *best = ses_arena_array(&r->mem, (size_t)k, sizeof *best, e);
    if (!best) return false;
    k = ses_top_k(s->score, s->n, k, best);
    for (int64_t i = 0; i < k; i++) {
        ses_result_row *row = ses_request_add_row(r, e);
        if (!row) return false;
        row->label = label_of(p, &r->mem, best[i], e);
        if (!row->label.p) return false;
        row->score = (double)s->score[best[i]];
        row->index = best[i];
        row->layers = s->layers;
    }
    out->schema = p->settings.outputs.exit ? &exit_schema : above ? &multi_schema : &schema;
    return true;
}

/* ---- classifiers that read texts ---- */

static bool check_function(const args *a, ses_err *e)
{
    return a->function == FUNCTION_DEFAULT || a->function == FUNCTION_SOFTMAX ||
           ses_fail(e, SES_EUSAGE, "function-to-apply: a classifier of texts has probabilities only");
}

static bool open_by_classifier(ses_pipeline *p, ses_err *e)
{
    const args *a = p->settings.args;
    if (a->image_vectors) return ses_fail(e, SES_EUSAGE, "image-vectors: a classifier reads texts only");
    if (!check_function(a, e) || !check_no_exit(a, e)) return false;
    return rename_labels(p, p->classifier->n_labels, e);
}

/* Text to scores; there is nothing to run in batches. */
static bool classify(ses_pipeline *p, ses_request *r, ses_err *e)
{
    const args *a = r->args;
    item_state *s = r->state;
    ses_string text = r->item.text, pair = r->item.pair;
    if (!check_function(a, e)) return false;
    s->n = (int64_t)p->classifier->n_labels;
    s->score = ses_arena_array(&r->mem, (size_t)s->n, sizeof *s->score, e);
    double *log_p = ses_arena_array(&r->mem, (size_t)s->n, sizeof *log_p, e);
    if (!s->score || !log_p) return false;
    if (!pair.p && a->pair) pair = ses_str(a->pair);
    if (pair.n) { /* joined as in training */
        char *both = ses_arena_array(&r->mem, text.n + 1 + pair.n, 1, e);
        if (!both) return false;
        memcpy(both, text.p, text.n);
        both[text.n] = ' ';
        memcpy(both + text.n + 1, pair.p, pair.n);
        text = (ses_string){ both, text.n + 1 + pair.n };
    }
    if (!ses_classifier_run(p->classifier, &text, 1, NULL, log_p, e)) return false;
    for (int64_t i = 0; i < s->n; i++) s->score[i] = (float)exp(log_p[i]);
    return true;
}

/* ---- masked LMs with patterns ---- */

static bool open_prompt(ses_pipeline *p, ses_err *e)
{
    task_state *s = p->state;
    size_t n = (size_t)ses_model_label_count(p->model);
    char *path = ses_path_join(p->dir, SES_PATTERN_FILE, e);
    const char **label = ses_arena_array(&p->mem, n + 1, sizeof *label, e);
    s->patterns = path && label ? ses_patterns_open(path, e) : NULL;
    for (size_t i = 0; s->patterns && i < n; i++) {
        label[i] = ses_pipeline_label(p, &p->mem, (int64_t)i, e).p;
        if (!label[i]) return ses_free(path), false;
    }
    ses_cloze_prompt_options o = { .patterns = s->patterns,
                                   .label = label,
                                   .n_labels = n,
                                   .tokenizer = p->tokenizer,
                                   .tokens = p->tokens,
                                   .config = &p->tokenizer_config };
    s->prompt = s->patterns ? ses_cloze_prompt_new(&o, e) : NULL;
    if (s->patterns && !s->prompt) ses_wrap(e, "%s", path);
    ses_free(path);
    return s->prompt != NULL;
}

static bool open_by_patterns(ses_pipeline *p, ses_err *e)
{
    const args *a = p->settings.args;
    if (a->image_vectors)
        return ses_fail(e, SES_EUSAGE, "image-vectors: %s reads texts only", p->model->class->name);
    return check_no_exit(a, e) && open_prompt(p, e) &&
           rename_labels(p, (size_t)ses_model_label_count(p->model), e);
}

static void close_by_patterns(ses_pipeline *p)
{
    task_state *s = p->state;
    ses_cloze_prompt_free(s->prompt);
    ses_patterns_free(s->patterns);
}

/* The sequence of a question; only the mask's logits are computed. */
static bool add_question(ses_request *r, const ses_cloze_prompt *c, ses_err *e)
{
    size_t n = c->ids.n;
    uint8_t *bytes = ses_arena_array(&r->mem, 2 * n, 1, e);
    ses_offset *none = ses_arena_array(&r->mem, n, sizeof *none, e);
    int32_t *word = ses_arena_array(&r->mem, n, sizeof *word, e),
            *row = ses_arena_array(&r->mem, 1, sizeof *row, e);
    if (!bytes || !none || !word || !row) return false;
    for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)c->segments.p[i];
    ses_encoding k = { .n = n,
                       .id = c->ids.p,
                       .byte_offset = none,
                       .char_offset = none,
                       .word_id = word,
                       .sequence_id = (const int8_t *)(bytes + n),
                       .type_id = bytes,
                       .special_mask = bytes + n };
    ses_seq *q = ses_request_add_sequence(r, &k, e);
    if (!q) return false;
    *row = c->mask_at;
    q->rows = row;
    q->n_rows = 1;
    r->truncated += c->n_removed;
    return true;
}

static bool ask(ses_pipeline *p, ses_request *r, ses_err *e)
{
    const args *a = r->args;
    ses_cloze_prompt *c = ((task_state *)p->state)->prompt;
    item_state *s = r->state;
    ses_string pair = r->item.pair.p || !a->pair ? r->item.pair : ses_str(a->pair);
    bool ok = true;
    s->n = (int64_t)c->o.n_labels;
    s->score = ses_arena_array(&r->mem, (size_t)s->n, sizeof *s->score, e);
    for (int64_t i = 0; s->score && ok && i < ses_cloze_prompt_sets(c); i++)
        ok = ses_cloze_prompt_ask(c, r->item.text, pair, i, p->settings.max_seq_len, e) &&
             add_question(r, c, e);
    return s->score && ok;
}

/* Logits of the vocabulary to scores of labels: their mean over the questions of a text. */
static bool collect_answer(ses_pipeline *p, ses_request *r, ses_seq *q, ses_err *e)
{
    const ses_cloze_prompt *c = ((task_state *)p->state)->prompt;
    item_state *s = r->state;
    ses_output_rows logits = ses_request_output_rows(p, q, p->head->output, e); /* [1, vocabulary] */
    float *one = logits.x ? ses_arena_array(&r->mem, (size_t)s->n, sizeof *one, e) : NULL;
    if (!one) return false;
    ses_cloze_prompt_scores(c, logits.x, one);
    for (int64_t i = 0; i < s->n; i++) s->score[i] += one[i] / (float)ses_cloze_prompt_sets(c);
    return true;
}

static bool finish_answer(ses_pipeline *p, ses_request *r, ses_result *out, ses_err *e)
{
    const args *a = r->args;
    item_state *s = r->state;
    float *score = ses_arena_array(&r->mem, (size_t)s->n, sizeof *score, e);
    if (!score) return false;
    if (a->function == FUNCTION_NONE)
        memcpy(score, s->score, (size_t)s->n * sizeof *score);
    else if (a->function == FUNCTION_SIGMOID)
        ses_sigmoid_row(score, s->score, s->n);
    else
        ses_softmax_row(score, s->score, s->n);
    s->score = score;
    return finish(p, r, out, e);
}

static const ses_result_schema *columns(const void *options)
{
    const args *a = options;
    return a->top_k != 1 ? NULL : a->exit ? &exit_schema : &schema;
}

static const ses_head *const heads[] = { &ses_head_sequence_classification, NULL };
static const ses_usage_example examples[] = {
    { "sesame sentiment-analysis -m DIR \"A fine day.\"", "the best label" },
    { "sesame text-classification -m DIR --top-k all --json -f reviews.txt", "all labels of each line" },
    { "sesame text-classification -m DIR --text-pair \"It rains.\" \"The street is wet.\"",
      "a pair of texts" },
    { 0 },
};

static const ses_task by_classifier = {
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .item_settings = "top-k|function-to-apply|text-pair",
    .state_size = sizeof(task_state),
    .request_size = sizeof(item_state),
    .item_schema = { .text = "text", .pair = "text_pair" },
    .open = open_by_classifier,
    .encode = classify,
    .finish = finish,
    .columns = columns,
};

static const ses_head *const lm_heads[] = { &ses_head_masked_lm, NULL };
static const ses_task by_patterns = {
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .item_settings = "top-k|function-to-apply|text-pair",
    .state_size = sizeof(task_state),
    .request_size = sizeof(item_state),
    .head = lm_heads,
    .item_schema = { .text = "text", .pair = "text_pair" },
    .open = open_by_patterns,
    .close = close_by_patterns,
    .encode = ask,
    .collect = collect_answer,
    .finish = finish_answer,
    .columns = columns,
};

const ses_task ses_task_text_classification = {
    .description =
        "Classifies each text, or each pair of texts, with a model fine-tuned for it, and prints the "
        "best labels with their scores. A JSON line is {\"text\": ...}, with \"text_pair\" for a "
        "pair.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .item_settings = "top-k|function-to-apply|text-pair",
    .state_size = sizeof(task_state),
    .request_size = sizeof(item_state),
    .head = heads,
    .item_schema = { .text = "text", .pair = "text_pair" },
    .ways = { [SES_WAY_CLASSIFIER] = &by_classifier, [SES_WAY_PATTERNS] = &by_patterns },
    .open = open,
    .close = close_task,
    .encode = encode,
    .collect = collect,
    .finish = finish,
    .columns = columns,
};
