/* features: vectors of chosen layers for texts, words or tokens, as input of another model. */
#include "base/number.h"
#include "base/opt_table.h"
#include "model/model_desc.h"
#include "pipeline_impl.h"

#include <math.h>
#include <stdio.h>

typedef enum { POOL_CLS, POOL_LAST, POOL_MEAN, POOL_MAX, POOL_WORDS, POOL_TOKENS } pool_kind;
typedef enum { COMBINE_MEAN, COMBINE_SUM, COMBINE_CONCAT } combine_kind;

typedef struct args {
    const char *layers, *mix;
    int combine, pool, pieces, format;
    bool stateful;
} args;

enum { PIECES_MEAN, PIECES_FIRST, MAX_LAYERS = 64 };

static const ses_opt opt[] = {
    SES_OPT_TEXT(
        args, layers, "layers", "N,...",
        "layers and ranges of layers, as 4,9-12: 0 is the embeddings, 1 the first layer, -1 the last",
        .def = "-1"),
    SES_OPT_TEXT(args, layers, "layer", "N,...", "the same as --layers"),
    SES_OPT_CHOICE(args, combine, "combine", "mean", "mean|sum|concat", "combination of several layers"),
    SES_OPT_TEXT(
        args, mix, "mix", "W,...[:GAIN]",
        "scalar mix (ELMo) instead of --combine: gain times the sum of the layers, weighted by the softmax "
        "of these numbers, one for each layer"),
    SES_OPT_FLAG(
        args, stateful, "stateful",
        "recurrent models: a text starts with the state after the text before it, as in ELMo's original "
        "code. Default: every text starts alone, so that its vectors do not depend on others"),
    SES_OPT_CHOICE(
        args, pool, "pool", NULL, "cls|last|mean|max|words|tokens",
        "one vector per text: first token ([CLS]), last token, mean or maximum of all tokens, with "
        "special tokens; or one per word or per token (default cls; last of models that read from left "
        "to right, mean of recurrent ones that read both ways)"),
    SES_OPT_CHOICE(args, pieces, "word-pieces", "mean", "mean|first",
                   "vector of a word: mean of its tokens, or its first token"),
    SES_OPT_CHOICE(args, format, "format", NULL, "npy|jsonl|tsv|f32|csv",
                   "output format: NumPy array [vectors, numbers], one JSON line per text, one line of "
                   "numbers per vector separated by tabs or commas, or the numbers of the array alone"),
};

typedef struct task_state {
    int64_t layer[MAX_LAYERS];
    size_t n;
    float weight[MAX_LAYERS]; /* --mix: of each layer */
    ses_real *rnn_state;      /* --stateful: the state after the last text */
} task_state;

typedef struct item_state {
    float *x; /* [rows, cols] */
    int64_t rows, cols;
} item_state;

/* ---- layers ---- */

/* "W0,W1,W2:GAIN": weights are the softmax of the numbers, times the gain. */
static bool parse_mix(const char *text, task_state *task, ses_err *e)
{
    double x[MAX_LAYERS], gain = 1, most = -INFINITY, sum = 0;
    const char *colon = strchr(text, ':');
    size_t n = 0, len = colon ? (size_t)(colon - text) : strlen(text);
    bool ok = !colon || ses_parse_number(colon + 1, strlen(colon + 1), &gain);
    for (const char *at = text, *end = text + len; ok; n++) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        ok = n < task->n && ses_parse_number(at, (size_t)((comma ? comma : end) - at), &x[n]) &&
             isfinite(x[n]);
        if (ok && x[n] > most) most = x[n];
        if (!comma) break;
        at = comma + 1;
    }
    if (!ok || n + 1 != task->n || !isfinite(gain))
        return ses_fail(e, SES_EUSAGE,
                        "--mix %s: expected %zu numbers separated by commas, one for each layer of "
                        "--layers, and optionally :GAIN",
                        text, task->n);
    for (size_t i = 0; i < task->n; i++) sum += exp(x[i] - most);
    for (size_t i = 0; i < task->n; i++) task->weight[i] = (float)(gain * exp(x[i] - most) / sum);
    return true;
}

/* Texts run one by one, and each state is the next one's start. */
static bool open_stateful(ses_pipeline *p, ses_err *e)
{
    if (p->original) /* the texts of a clone, as in a server, come from several sources */
        return ses_fail(e, SES_EUSAGE,
                        "--stateful carries state from text to text: a clone does not support it");
    task_state *task = p->state;
    int64_t size = ses_model_state_size(p->model);
    if (!size)
        return ses_fail(e, SES_EUSAGE, "--stateful: %s carries no state from text to text",
                        ses_model_class_name(p->model));
    task->rnn_state = ses_arena_array(&p->mem, (size_t)size, sizeof *task->rnn_state, e);
    p->settings.batch_tokens = 1;
    p->settings.outputs.rnn_state = true;
    return task->rnn_state != NULL;
}

/* The pooling that is asked for, or the default of the model. */
static int pool_of(const ses_pipeline *p, const args *a)
{
    static const int by_reading[] = {
        [SES_READS_ALL] = POOL_CLS, [SES_READS_LEFT_TO_RIGHT] = POOL_LAST, [SES_READS_BOTH_WAYS] = POOL_MEAN
    };
    return a->pool >= 0 ? a->pool : by_reading[ses_model_reading(p->model)];
}

static bool check_pool(const ses_pipeline *p, const args *a, ses_err *e)
{
    return a->pool != POOL_CLS || ses_model_check_first_token(p->model, "--pool cls", e);
}

/* The forward pass of a batch; with --stateful the batch is one text. */
static bool forward(ses_pipeline *p, const ses_batch *b, const ses_output_request *request, ses_outputs *out,
                    ses_err *e)
{
    task_state *task = p->state;
    ses_tape *t = p->runner.pass.tape;
    if (!task->rnn_state) return ses_model_forward(p->model, t, b, request, out, e);
    if (b->seqs != 1) /* --batch-tokens: the runner repeats a failed batch text by text */
        return ses_fail(e, SES_EUSAGE, "--stateful reads one text at a time: leave out --batch-tokens");
    ses_batch with_state = *b;
    with_state.rnn_state = task->rnn_state;
    if (!ses_model_forward(p->model, t, &with_state, request, out, e)) return false;
    const ses_output *state = ses_outputs_find(out, "rnn_state");
    if (!state)
        return ses_fail(e, SES_EUSAGE, "--stateful: the encoder of %s carries no state from text to text",
                        ses_model_class_name(p->model));
    return ses_tape_read(t, state->tensor, task->rnn_state) || ses_tape_ok(t, e);
}

static bool open_task(ses_pipeline *p, ses_err *e)
{
    const args *a = p->settings.args;
    task_state *task = p->state;
    int64_t depth = ses_model_layer_count(p->model);
    if (!ses_int_ranges_parse(a->layers, task->layer, MAX_LAYERS, &task->n, e))
        return ses_wrap(e, "--layers");
    for (size_t i = 0; i < task->n; i++) {
        int64_t n = task->layer[i];
        if (n > depth || n < -depth - 1)
            return ses_fail(e, SES_EUSAGE, "--layers: %lld: the model has layers 0 to %lld, or -1 to %lld",
                            (long long)n, (long long)depth, (long long)(-depth - 1));
        task->layer[i] = n < 0 ? depth + 1 + n : n;
        p->settings.outputs.hidden_states |= task->layer[i] < depth;
    }
    if (!check_pool(p, a, e) || (a->stateful && !open_stateful(p, e))) return false;
    return !a->mix || parse_mix(a->mix, task, e);
}

static bool encode(ses_pipeline *p, ses_request *r, ses_err *e)
{
    ses_input in = { .text = r->item.text, .pair = r->item.pair };
    if (!check_pool(p, r->args, e)) return false;
    if (r->item.n_list) in = (ses_input){ .words = r->item.list, .n_words = r->item.n_list };
    return ses_request_encode(
               p, r, &in, r->item.n_list ? SES_TRUNCATE_ONLY_FIRST : SES_TRUNCATE_LONGEST_FIRST, e) != NULL;
}

/* The chosen layers of every token, combined: [n, cols]. */
static float *combine_layers(ses_pipeline *p, ses_request *r, ses_seq *q, int64_t *cols, ses_err *e)
{
    const args *a = r->args;
    const task_state *task = p->state;
    bool concat = !a->mix && a->combine == COMBINE_CONCAT;
    float *all = NULL;
    int64_t width = 0;
    for (int64_t k = 0; k < (int64_t)task->n; k++) {
        char name[32] = "last_hidden_state";
        if (task->layer[k] < ses_model_layer_count(p->model))
            snprintf(name, sizeof name, "hidden_states.%lld", (long long)task->layer[k]);
        ses_output_rows rows = ses_request_output_rows(p, q, name, e);
        if (!rows.x) return NULL;
        if (all && rows.cols != width) {
            ses_fail(e, SES_EUSAGE, "layer %lld has %lld columns, layer %lld has %lld: combine equal ones",
                     (long long)task->layer[0], (long long)width, (long long)task->layer[k],
                     (long long)rows.cols);
            return NULL;
        }
        width = rows.cols;
        *cols = concat ? (int64_t)task->n * rows.cols : rows.cols;
        if (!all && !(all = ses_arena_array(&r->mem, (size_t)(rows.n * *cols), sizeof *all, e))) return NULL;
        float weight = a->mix ? task->weight[k] : a->combine == COMBINE_MEAN ? 1 / (float)task->n : 1;
        for (int64_t t = 0; t < rows.n; t++)
            for (int64_t i = 0; i < rows.cols; i++)
                all[t * *cols + (concat ? k * rows.cols : 0) + i] += weight * rows.x[t * rows.cols + i];
    }
    return all;
}

/* ---- rows ---- */

typedef struct token_span { /* the tokens of one row */
    size_t begin, end;
} token_span;

/* Mean or maximum of the tokens; sums in double. */
static void pool(float *to, const float *x, token_span span, int64_t cols, bool max)
{
    for (int64_t i = 0; i < cols; i++) {
        double sum = 0, max_value = (double)x[(int64_t)span.begin * cols + i];
        for (size_t t = span.begin; t < span.end; t++) {
            double v = (double)x[(int64_t)t * cols + i];
            sum += v;
            if (v > max_value) max_value = v;
        }
        to[i] = (float)(max ? max_value : sum / (double)(span.end - span.begin));
    }
}

static bool add_span(ses_request *r, const ses_seq *q, token_span span, ses_err *e)
{
    ses_result_row *row = ses_request_add_row(r, e);
    if (!row) return false;
    row->index = (int64_t)span.begin;
    row->token = q->id[span.begin];
    row->char_span = (ses_offset){ q->char_offset[span.begin].begin, q->char_offset[span.end - 1].end };
    row->byte_span = (ses_offset){ q->byte_offset[span.begin].begin, q->byte_offset[span.end - 1].end };
    return true;
}

/* The tokens of the next word from `at` on; begin is q->n if there is none. */
static token_span next_word(const ses_seq *q, size_t at)
{
    while (at < q->n && (q->special_mask[at] || q->word_id[at] < 0)) at++;
    token_span span = { at, at };
    while (span.end < q->n && !q->special_mask[span.end] && q->word_id[span.end] == q->word_id[at] &&
           q->sequence_id[span.end] == q->sequence_id[at])
        span.end++;
    return span;
}

static bool collect_words(const args *a, ses_request *r, const ses_seq *q, item_state *s, const float *x,
                          ses_err *e)
{
    s->x = ses_arena_array(&r->mem, q->n * (size_t)s->cols, sizeof *s->x, e);
    for (token_span word = next_word(q, 0); s->x && word.begin < q->n; word = next_word(q, word.end)) {
        token_span pooled = a->pieces == PIECES_FIRST ? (token_span){ word.begin, word.begin + 1 } : word;
        pool(s->x + s->rows++ * s->cols, x, pooled, s->cols, false);
        if (!add_span(r, q, word, e)) return false;
    }
    return s->x != NULL;
}

static bool collect(ses_pipeline *p, ses_request *r, ses_seq *q, ses_err *e)
{
    const args *a = r->args;
    item_state *s = r->state;
    int kind = pool_of(p, a);
    float *x = combine_layers(p, r, q, &s->cols, e);
    token_span all = { 0, q->n }, first = { 0, 1 }, last = { q->n - 1, q->n };
    if (!x) return false;
    if (a->pool == POOL_WORDS) return collect_words(a, r, q, s, x, e);
    if (a->pool == POOL_TOKENS) {
        s->x = x;
        s->rows = (int64_t)q->n;
        for (size_t i = 0; i < q->n; i++)
            if (!add_span(r, q, (token_span){ i, i + 1 }, e)) return false;
        return true;
    }
    s->rows = 1;
    s->x = ses_arena_array(&r->mem, (size_t)s->cols, sizeof *s->x, e);
    if (s->x)
        pool(s->x, x, kind == POOL_CLS ? first : kind == POOL_LAST ? last : all, s->cols, kind == POOL_MAX);
    return s->x != NULL;
}

/* Names each row: the text of its word, or its token. */
static bool name_rows(ses_pipeline *p, ses_request *r, ses_err *e)
{
    const args *a = r->args;
    for (size_t i = 0; i < r->n_rows; i++) {
        ses_result_row *row = &r->row[i];
        size_t n = 0;
        const char *word = ses_tokenizer_id_to_token(p->tokenizer, row->token, &n);
        int32_t at = r->item.n_list ? r->seq[0].word_id[row->index] : -1;
        if (a->pool == POOL_WORDS && at >= 0)
            word = r->item.list[at].p, n = r->item.list[at].n;
        else if (a->pool == POOL_WORDS)
            word = r->item.text.p + row->byte_span.begin,
            n = (size_t)(row->byte_span.end - row->byte_span.begin);
        row->word = ses_request_copy_string(r, word, n, e);
        if (!row->word.p) return false;
    }
    return true;
}

static const ses_result_schema one[] = {
    { SES_FORM_VECTOR, SES_VIEW_ARRAY, { { 0 } } },   { SES_FORM_VECTOR, SES_VIEW_JSON, { { 0 } } },
    { SES_FORM_VECTOR, SES_VIEW_NUMBERS, { { 0 } } }, { SES_FORM_VECTOR, SES_VIEW_RAW, { { 0 } } },
    { SES_FORM_VECTOR, SES_VIEW_COMMAS, { { 0 } } },  { SES_FORM_VECTOR, SES_VIEW_VECTORS, { { 0 } } },
};
static const ses_result_schema many[] = {
    { SES_FORM_MATRIX, SES_VIEW_ARRAY, { { 0 } } },   { SES_FORM_MATRIX, SES_VIEW_JSON, { { 0 } } },
    { SES_FORM_MATRIX, SES_VIEW_NUMBERS, { { 0 } } }, { SES_FORM_MATRIX, SES_VIEW_RAW, { { 0 } } },
    { SES_FORM_MATRIX, SES_VIEW_COMMAS, { { 0 } } },  { SES_FORM_MATRIX, SES_VIEW_VECTORS, { { 0 } } },
};

static bool finish(ses_pipeline *p, ses_request *r, ses_result *out, ses_err *e)
{
    const args *a = r->args;
    const item_state *s = r->state;
    if (!name_rows(p, r, e)) return false;
    out->vectors = s->x;
    out->n_vectors = s->rows;
    out->vector_size = s->cols;
    out->schema = &(a->pool >= POOL_WORDS ? many : one)[a->format < 0 ? SES_LEN(one) - 1 : (size_t)a->format];
    return true;
}

static const ses_usage_example examples[] = {
    { "sesame features -m distilbert-base-uncased -f train.tsv --column sentence -o npy --to train.npy",
      "[CLS] vectors of a column, for sesame logreg" },
    { "sesame features -m bert-base-uncased --layers 9-12 --pool words -o tsv \"New York\"",
      "the mean of the last four layers for each word" },
    { "sesame features -m elmo --layers 0-2 --mix 0,1,1:1.5 --pool words -o tsv \"A river bank\"",
      "ELMo's scalar mix of all layers" },
    { 0 },
};

const ses_task ses_task_features = {
    .description =
        "Outputs vectors of chosen layers: one per text ([CLS], the last token, the mean or maximum of all "
        "tokens), one per word, or one per token. sesame logreg trains on them.\n\nWith --output tsv the "
        "number of the text and the word precede the vector of a word or token. A JSON line is {\"text\": "
        "...}, or {\"words\": [...]} for text split into words.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .state_size = sizeof(task_state),
    .request_size = sizeof(item_state),
    .item_schema = { .text = "text|sentence",
                     .pair = "pair|text_pair",
                     .list = "words|tokens",
                     .list_replaces_text = true },
    .item_settings = "combine|pool|word-pieces",
    .uses_encoder_only = true,
    .open = open_task,
    .forward = forward,
    .encode = encode,
    .collect = collect,
    .finish = finish,
};
