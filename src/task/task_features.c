/* features: vectors of any layers for texts, words or tokens, as input of another model. */
#include "task.h"

#include <stdio.h>
#include <stdlib.h>

typedef enum { POOL_CLS, POOL_LAST, POOL_MEAN, POOL_MAX, POOL_WORDS, POOL_TOKENS } pool_kind;
typedef enum { COMBINE_MEAN, COMBINE_SUM, COMBINE_CONCAT } combine_kind;

typedef struct args {
    const char *layers;
    int combine, pool, pieces, output;
} args;

enum { PIECES_MEAN, PIECES_FIRST, MOST_LAYERS = 64 };

static const ses_opt opt[] = {
    { .name = "layer",
      .type = SES_OPT_TEXT,
      .offset = offsetof(args, layers),
      .def = "-1",
      .value = "N,...",
      .help = "0 is the embeddings, 1 the first layer, -1 the last; several with commas between" },
    { .name = "combine",
      .type = SES_OPT_CHOICE,
      .offset = offsetof(args, combine),
      .def = "mean",
      .choices = "mean|sum|concat",
      .help = "how several layers become one vector" },
    { .name = "pool",
      .type = SES_OPT_CHOICE,
      .offset = offsetof(args, pool),
      .def = "cls",
      .choices = "cls|last|mean|max|words|tokens",
      .help =
          "a vector a text: its first token's ([CLS]), its last, the mean or maximum of all tokens; one for "
          "each word, or for each token" },
    { .name = "word-pieces",
      .type = SES_OPT_CHOICE,
      .offset = offsetof(args, pieces),
      .def = "mean",
      .choices = "mean|first",
      .help = "a word's vector: the mean of its pieces', or the first one's" },
    { .name = "output",
      .letter = 'o',
      .type = SES_OPT_CHOICE,
      .offset = offsetof(args, output),
      .choices = "npy|jsonl|tsv",
      .help =
          "write a NumPy array [vectors, numbers], JSON a line each text, or numbers apart by tabs a line "
          "each vector" },
};

typedef struct self {
    int64_t layer[MOST_LAYERS];
    int64_t n;
} self;

typedef struct state {
    float *x; /* [rows, cols] */
    int64_t rows, cols;
} state;

/* ---- which layers ---- */

static bool open(ses_pipeline *p, ses_err *e)
{
    const args *a = p->args;
    self *my = p->self;
    int64_t depth = ses_model_layer_count(p->model);
    for (const char *at = a->layers; *at;) {
        char *end;
        long long n = strtoll(at, &end, 10);
        if (end == at || (*end && *end != ',') || my->n == MOST_LAYERS)
            return ses_fail(e, SES_EUSAGE, "--layer: \"%s\" is not a list of up to %d numbers",
                            ses_quoted_of(a->layers, strlen(a->layers)).s, MOST_LAYERS);
        if (n > depth || n < -depth - 1)
            return ses_fail(e, SES_EUSAGE, "--layer %lld: the model has layers 0 to %lld, or -1 to %lld", n,
                            (long long)depth, (long long)(-depth - 1));
        my->layer[my->n++] = n < 0 ? depth + 1 + n : n;
        at = *end ? end + 1 : end;
    }
    for (int64_t i = 0; i < my->n; i++) p->want.hidden_states |= my->layer[i] < depth;
    return my->n > 0 || ses_fail(e, SES_EUSAGE, "--layer: at least one is needed");
}

static bool encode(ses_pipeline *p, ses_request *j, ses_err *e)
{
    ses_input in = { .text = j->item.text, .pair = j->item.pair };
    if (j->item.n_list) in = (ses_input){ .words = j->item.list, .n_words = j->item.n_list };
    return ses_request_encode(
               p, j, &in, j->item.n_list ? SES_TRUNCATE_ONLY_FIRST : SES_TRUNCATE_LONGEST_FIRST, e) != NULL;
}

/* All layers asked for of every token: [n, cols]. */
static float *layers_of(ses_pipeline *p, ses_request *j, ses_seq *q, int64_t *cols, ses_err *e)
{
    const args *a = p->args;
    const self *my = p->self;
    bool apart = a->combine == COMBINE_CONCAT;
    float *all = NULL;
    for (int64_t k = 0; k < my->n; k++) {
        char name[32] = "last_hidden_state";
        if (my->layer[k] < ses_model_layer_count(p->model))
            snprintf(name, sizeof name, "hidden_states.%lld", (long long)my->layer[k]);
        ses_output_rows r = ses_request_output_rows(p, q, name, e);
        if (!r.x) return NULL;
        *cols = apart ? my->n * r.cols : r.cols;
        if (!all && !(all = ses_arena_array(&j->mem, (size_t)(r.n * *cols), sizeof *all, e))) return NULL;
        float share = a->combine == COMBINE_MEAN ? 1 / (float)my->n : 1;
        for (int64_t t = 0; t < r.n; t++)
            for (int64_t i = 0; i < r.cols; i++)
                all[t * *cols + (apart ? k * r.cols : 0) + i] += share * r.x[t * r.cols + i];
    }
    return all;
}

/* ---- rows ---- */

typedef struct reach { /* tokens of a row */
    size_t begin, end;
} reach;

/* The mean or, of max, the greatest of a row's tokens; sums in double. */
static void pool(float *to, const float *x, reach r, int64_t cols, bool max)
{
    for (int64_t i = 0; i < cols; i++) {
        double sum = 0, most = (double)x[(int64_t)r.begin * cols + i];
        for (size_t t = r.begin; t < r.end; t++) {
            double v = (double)x[(int64_t)t * cols + i];
            sum += v;
            if (v > most) most = v;
        }
        to[i] = (float)(max ? most : sum / (double)(r.end - r.begin));
    }
}

static bool note(ses_request *j, const ses_seq *q, reach r, ses_err *e)
{
    ses_result_row *row = ses_request_add_row(j, e);
    if (!row) return false;
    row->index = (int64_t)r.begin;
    row->token = q->id[r.begin];
    row->char_span = (ses_offset){ q->point[r.begin].begin, q->point[r.end - 1].end };
    row->byte_span = (ses_offset){ q->byte[r.begin].begin, q->byte[r.end - 1].end };
    return true;
}

/* The next tokens that are one word of the text, from `at` on; begin is q->n where there are none. */
static reach next_word(const ses_seq *q, size_t at)
{
    while (at < q->n && (q->special[at] || q->word[at] < 0)) at++;
    reach r = { at, at };
    while (r.end < q->n && !q->special[r.end] && q->word[r.end] == q->word[at] &&
           q->sequence[r.end] == q->sequence[at])
        r.end++;
    return r;
}

static bool take_words(const args *a, ses_request *j, const ses_seq *q, state *s, const float *x, ses_err *e)
{
    s->x = ses_arena_array(&j->mem, q->n * (size_t)s->cols, sizeof *s->x, e);
    for (reach r = next_word(q, 0); s->x && r.begin < q->n; r = next_word(q, r.end)) {
        reach of = a->pieces == PIECES_FIRST ? (reach){ r.begin, r.begin + 1 } : r;
        pool(s->x + s->rows++ * s->cols, x, of, s->cols, false);
        if (!note(j, q, r, e)) return false;
    }
    return s->x != NULL;
}

static bool take(ses_pipeline *p, ses_request *j, ses_seq *q, ses_err *e)
{
    const args *a = p->args;
    state *s = j->state;
    float *x = layers_of(p, j, q, &s->cols, e);
    reach all = { 0, q->n }, first = { 0, 1 }, last = { q->n - 1, q->n };
    if (!x) return false;
    if (a->pool == POOL_WORDS) return take_words(a, j, q, s, x, e);
    if (a->pool == POOL_TOKENS) {
        s->x = x;
        s->rows = (int64_t)q->n;
        for (size_t i = 0; i < q->n; i++)
            if (!note(j, q, (reach){ i, i + 1 }, e)) return false;
        return true;
    }
    s->rows = 1;
    s->x = ses_arena_array(&j->mem, (size_t)s->cols, sizeof *s->x, e);
    if (s->x)
        pool(s->x, x,
             a->pool == POOL_CLS    ? first
             : a->pool == POOL_LAST ? last
                                    : all,
             s->cols, a->pool == POOL_MAX);
    return s->x != NULL;
}

/* The text of a word, or the token itself. */
static bool name_rows(ses_pipeline *p, ses_request *j, ses_err *e)
{
    const args *a = p->args;
    for (size_t i = 0; i < j->n_rows; i++) {
        ses_result_row *row = &j->row[i];
        size_t n = 0;
        const char *word = ses_tokenizer_id_to_token(p->tokenizer, row->token, &n);
        int32_t at = j->item.n_list ? j->seq[0].word[row->index] : -1;
        if (a->pool == POOL_WORDS && at >= 0)
            word = j->item.list[at].p, n = j->item.list[at].n;
        else if (a->pool == POOL_WORDS)
            word = j->item.text.p + row->byte_span.begin,
            n = (size_t)(row->byte_span.end - row->byte_span.begin);
        row->word = ses_request_copy_string(j, word, n, e);
        if (!row->word.p) return false;
    }
    return true;
}

static const ses_result_schema one[] = {
    { SES_FORM_VECTOR, SES_VIEW_ARRAY, { { 0 } } },
    { SES_FORM_VECTOR, SES_VIEW_JSON, { { 0 } } },
    { SES_FORM_VECTOR, SES_VIEW_NUMBERS, { { 0 } } },
    { SES_FORM_VECTOR, SES_VIEW_VECTORS, { { 0 } } },
};
static const ses_result_schema several[] = {
    { SES_FORM_MATRIX, SES_VIEW_ARRAY, { { 0 } } },
    { SES_FORM_MATRIX, SES_VIEW_JSON, { { 0 } } },
    { SES_FORM_MATRIX, SES_VIEW_NUMBERS, { { 0 } } },
    { SES_FORM_MATRIX, SES_VIEW_VECTORS, { { 0 } } },
};

static bool finish(ses_pipeline *p, ses_request *j, ses_result *r, ses_err *e)
{
    const args *a = p->args;
    const state *s = j->state;
    if (!name_rows(p, j, e)) return false;
    r->vectors = s->x;
    r->n_vectors = s->rows;
    r->vector_size = s->cols;
    r->schema =
        &(a->pool >= POOL_WORDS ? several : one)[a->output < 0 ? SES_LEN(one) - 1 : (size_t)a->output];
    return true;
}

static const ses_usage_example examples[] = {
    { "sesame features -m distilbert-base-uncased -f train.tsv --column sentence -o npy --to train.npy",
      "[CLS] vectors of a column, for sesame logreg" },
    { "sesame features -m bert-base-uncased --layer -4,-3,-2,-1 --pool words -o tsv \"New York\"",
      "the mean of the last four layers for each word" },
    { 0 },
};

const ses_task ses_task_features = {
    .description = "Gives vectors of any of the model's layers: one a text ([CLS], the last token, the mean "
                   "or maximum of all tokens), one a word, or one a token. They are what sesame logreg "
                   "learns from.\n\n"
                   "With --output tsv a vector of a word or token stands behind the number of its text and "
                   "the word. A JSON line is {\"text\": ...}, or {\"words\": [...]} for words already apart.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .self_size = sizeof(self),
    .job_size = sizeof(state),
    .item_schema = { .text = "text|sentence",
                     .pair = "pair|text_pair",
                     .list = "words|tokens",
                     .list_replaces_text = true },
    .encoder_alone = true,
    .open = open,
    .encode = encode,
    .take = take,
    .finish = finish,
};
