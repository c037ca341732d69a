/* Hidden states of a corpus: against transformers and `sesame features`, windows of long texts, decoders,
 * random weights, and the spool that stores them. */
#include "analysis/state_spool.h"
#include "analysis/word_states.h"
#include "check.h"
#include "model/model_desc.h"
#include "sesame/sesame.h"

#include <math.h>

static ses_device *dev;

typedef struct corpus {
    ses_model *model;
    ses_tokenizer *tokenizer;
} corpus;

static corpus open_corpus(const char *dir, bool no_head)
{
    ses_err e = { 0 };
    corpus c = { ses_model_open(dir, dev, &(ses_model_options){ .no_head = no_head }, &e), NULL };
    char *path = ses_model_resolve(dir, NULL, &e);
    if (path) c.tokenizer = ses_tokenizer_open(path, &e);
    CHECK_MSG(c.model && c.tokenizer, "%s: %s", dir, e.msg);
    free(path);
    return c;
}

static void close_corpus(corpus *c)
{
    ses_tokenizer_free(c->tokenizer);
    ses_model_free(c->model);
}

enum { MAX_ROWS = 4096, MAX_LAYERS = 16 };

typedef struct table {
    ses_state_row row[MAX_ROWS];
    float *x[MAX_LAYERS]; /* [rows, width] */
    size_t rows, width, layers, texts, calls;
} table;

static bool take(void *ctx, const ses_state_batch *b, ses_err *e)
{
    table *t = ctx;
    (void)e;
    CHECK(b->first_text == t->texts && b->cu_rows[0] == 0 && b->cu_rows[b->texts] == b->rows);
    CHECK(t->rows + b->rows <= MAX_ROWS);
    for (size_t k = 0; k < t->layers; k++) {
        t->x[k] = realloc(t->x[k], (t->rows + b->rows + 1) * b->width * sizeof(float));
        memcpy(t->x[k] + t->rows * b->width, b->x[k], b->rows * b->width * sizeof(float));
    }
    memcpy(t->row + t->rows, b->row, b->rows * sizeof *b->row);
    t->rows += b->rows, t->texts += b->texts, t->width = b->width, t->calls++;
    return true;
}

static table *run(const corpus *c, const ses_input *text, size_t n, ses_word_states_options o)
{
    static const int64_t last[] = { -1 };
    int64_t layer[MAX_LAYERS];
    ses_err e = { 0 };
    table *t = calloc(1, sizeof *t);
    if (!o.layers) o.layers = last, o.n_layers = 1;
    for (size_t i = 0; i < o.n_layers; i++)
        layer[i] = o.layers[i] < 0 ? ses_word_states_depth(c->model, o.decoder) : o.layers[i];
    o.layers = layer;
    t->layers = o.n_layers;
    CHECK_MSG(ses_word_states_run(c->model, c->tokenizer, text, n, &o, take, t, &e), "%s", e.msg);
    return t;
}

static void free_table(table *t)
{
    for (size_t k = 0; k < t->layers; k++) free(t->x[k]);
    free(t);
}

static ses_string str(const char *s) { return (ses_string){ s, strlen(s) }; }

static bool near(const float *x, double a, double b, double c)
{
    bool ok = fabs(x[0] - a) < 3e-6 && fabs(x[1] - b) < 3e-6 && fabs(x[2] - c) < 3e-6;
    if (!ok) printf("    got %.8f %.8f %.8f\n", x[0], x[1], x[2]);
    return ok;
}

/* Numbers of transformers 5.17 (BertModel, output_hidden_states), as in test_features.sh. */
static void test_transformers(void)
{
    corpus c = open_corpus("tests/pipelines/bert-mask", true);
    ses_string words[] = { str("a"), str("b") };
    ses_input text[] = { { .text = str("a b") }, { .words = words, .n_words = 2 } };
    int64_t layers[] = { 0, 1 };
    table *t = run(&c, text, 2, (ses_word_states_options){ 0 });
    CHECK(t->rows == 4 && t->row[2].text == 1 && t->row[3].index == 1 && t->row[3].pieces == 1);
    CHECK(near(t->x[0], -0.37428653, 0.71507114, -0.49105814));
    CHECK(!memcmp(t->x[0], t->x[0] + 2 * t->width, 2 * t->width * sizeof(float)));
    CHECK(t->row[1].bytes.begin == 2 && t->row[1].bytes.end == 3);
    free_table(t);
    t = run(&c, text, 1, (ses_word_states_options){ .unit = SES_STATES_TEXT_FIRST });
    CHECK(t->rows == 1 && near(t->x[0], -0.07587407, -0.00390940, -0.70620364));
    free_table(t);
    t = run(&c, text, 1,
            (ses_word_states_options){ .unit = SES_STATES_TEXT_FIRST, .layers = layers, .n_layers = 2 });
    float mean[3];
    for (int i = 0; i < 3; i++) mean[i] = (t->x[0][i] + t->x[1][i]) / 2;
    CHECK(near(mean, 0.04991404, -0.58379936, -0.27215612));
    free_table(t);
    close_corpus(&c);
}

static const char *const sentences[] = {
    "The cat sat on the mat.",
    "Unbelievably, antidisestablishmentarianism was never discussed in the supermarkets of Ljubljana!",
    "Yes",
    "Why do small models learn syntax before they learn facts about the world?",
};

/* Each layer of the bundled model, in batches of all sizes, as `sesame features --pool words` has it. */
static void test_features(void)
{
    corpus c = open_corpus("models/sesame-small", true);
    ses_input text[SES_LEN(sentences)] = { 0 };
    int64_t layers[] = { 0, 5, 12 };
    for (size_t i = 0; i < SES_LEN(sentences); i++) text[i].text = str(sentences[i]);
    for (int64_t batch = 1; batch < 200; batch *= 12) {
        table *t = run(&c, text, SES_LEN(sentences),
                       (ses_word_states_options){ .layers = layers, .n_layers = 3, .batch_tokens = batch });
        CHECK(t->calls == (batch == 1 ? 4 : t->calls) && t->texts == SES_LEN(sentences));
        for (size_t k = 0; k < 3; k++) {
            char layer[8];
            snprintf(layer, sizeof layer, "%d", (int)layers[k]);
            ses_setting settings[] = { { "layer", layer }, { "pool", "words" }, { 0 } };
            ses_err e = { 0 };
            ses_pipeline *p = ses_pipeline_open("features", "models/sesame-small", dev, settings, &e);
            size_t row = 0, equal = 0;
            for (size_t i = 0; p && i < SES_LEN(sentences); i++) {
                const ses_result *r = ses_pipeline_run(p, &(ses_item){ .text = text[i].text }, &e);
                CHECK(r && row + (size_t)r->n_vectors <= t->rows);
                for (int64_t v = 0; r && v < r->n_vectors; v++, row++)
                    equal += !memcmp(r->vectors + v * r->vector_size, t->x[k] + row * t->width,
                                     t->width * sizeof(float)) &&
                             t->row[row].text == i && t->row[row].index == v;
            }
            CHECK_MSG(row == t->rows && equal == row, "layer %s: %zu of %zu rows equal, %s", layer, equal,
                      row, e.msg);
            ses_pipeline_free(p);
        }
        free_table(t);
    }
    close_corpus(&c);
}

/* Words without tokens, first pieces, tokens, means of texts. */
static void test_units(void)
{
    corpus c = open_corpus("models/sesame-small", true);
    ses_string words[] = { str("\xe2\x80\x8d"), str("Unbelievably"), str(""), str("so"), str("") };
    ses_input text[] = { { .words = words, .n_words = 5 }, { .text = str("") } };
    table *t = run(&c, text, 2, (ses_word_states_options){ 0 }),
          *first = run(&c, text, 1, (ses_word_states_options){ .first_piece = true }),
          *tokens = run(&c, text, 1, (ses_word_states_options){ .unit = SES_STATES_OF_TOKENS }),
          *mean = run(&c, text, 2, (ses_word_states_options){ .unit = SES_STATES_TEXT_MEAN }),
          *cls = run(&c, text, 1, (ses_word_states_options){ .unit = SES_STATES_TEXT_FIRST }),
          *sep = run(&c, text, 1, (ses_word_states_options){ .unit = SES_STATES_TEXT_LAST });
    CHECK(t->rows == 5 && first->rows == 5 && mean->rows == 2);
    CHECK(t->row[2].pieces == 0 && t->row[4].pieces == 0 && t->row[4].index == 4);
    int32_t pieces = t->row[1].pieces, before = t->row[0].pieces;
    CHECK(pieces > 1 && tokens->rows == (size_t)(before + pieces + 1) && first->row[1].pieces == 1);
    double worst_word = 0, worst_mean = 0, zero = 0;
    for (size_t k = 0; k < t->width; k++) {
        double sum = 0, all = cls->x[0][k] + sep->x[0][k];
        for (size_t i = 0; i < tokens->rows; i++) {
            double v = tokens->x[0][i * t->width + k];
            all += v;
            if ((int32_t)i >= before && (int32_t)i < before + pieces) sum += v;
        }
        worst_word = fmax(worst_word, fabs(sum / pieces - t->x[0][t->width + k]));
        worst_mean = fmax(worst_mean, fabs(all / (double)(tokens->rows + 2) - mean->x[0][k]));
        zero += fabs(t->x[0][2 * t->width + k]);
    }
    CHECK(worst_word < 1e-6 && worst_mean < 1e-6 && zero == 0);
    CHECK(mean->row[0].pieces == (int32_t)tokens->rows + 2 && mean->row[1].pieces == 2);
    CHECK(
        !memcmp(first->x[0] + t->width, tokens->x[0] + (size_t)before * t->width, t->width * sizeof(float)));
    free_table(t), free_table(first), free_table(tokens), free_table(mean);
    free_table(cls), free_table(sep);
    close_corpus(&c);
}

/* A text longer than a window has a row for each word. Early words have the states of the first window, late
 * words the states of the last window. */
static void test_windows(void)
{
    corpus c = open_corpus("models/sesame-small", true);
    enum { N = 300, WINDOW = 42, BODY = WINDOW - 2 };
    static const char *const some[] = { "the", "red", "house", "was", "old" };
    ses_string words[N];
    for (size_t i = 0; i < N; i++) words[i] = str(some[i * i % 5]);
    ses_input text[] = { { .words = words, .n_words = N },
                         { .words = words, .n_words = BODY },
                         { .words = words + N - BODY, .n_words = BODY } };
    ses_word_states_options o = { .window = WINDOW };
    table *all = run(&c, text, 1, o), *begin = run(&c, text + 1, 1, o), *end = run(&c, text + 2, 1, o);
    size_t width = all->width, quarter = BODY / 4, bytes = width * sizeof(float);
    CHECK(all->rows == N && begin->rows == BODY && end->rows == BODY);
    for (size_t i = 0; i < all->rows; i++) CHECK(all->row[i].index == (int32_t)i && all->row[i].pieces == 1);
    CHECK(!memcmp(all->x[0], begin->x[0], (BODY - quarter) * bytes));
    CHECK(memcmp(all->x[0], begin->x[0], (BODY - quarter + 1) * bytes));
    CHECK(!memcmp(all->x[0] + (N - quarter) * width, end->x[0] + (BODY - quarter) * width, quarter * bytes));
    free_table(all), free_table(begin), free_table(end);
    ses_err e = { 0 };
    int64_t layer = 3, too_high = 13;
    o = (ses_word_states_options){ .window = 4, .layers = &layer, .n_layers = 1 };
    CHECK(!ses_word_states_run(c.model, c.tokenizer, text, 1, &o, take, NULL, &e));
    CHECK_MSG(strstr(e.msg, "a window of 4 tokens"), "%s", e.msg);
    e = (ses_err){ 0 };
    o = (ses_word_states_options){ .layers = &too_high, .n_layers = 1 };
    CHECK(!ses_word_states_run(c.model, c.tokenizer, text, 1, &o, take, NULL, &e));
    CHECK_STR(e.msg, "layer 13: the model has layers 0 to 12");
    e = (ses_err){ 0 };
    o = (ses_word_states_options){ .layers = &layer, .n_layers = 1, .decoder = true };
    CHECK(!ses_word_states_run(c.model, c.tokenizer, text, 1, &o, take, NULL, &e));
    CHECK_MSG(strstr(e.msg, "no decoder"), "%s", e.msg);
    close_corpus(&c);
}

/* Random weights differ from trained ones and by seed, but not from run to run. */
static void test_random(void)
{
    ses_err e = { 0 };
    corpus c = open_corpus("models/sesame-small", true), twin[3] = { 0 };
    ses_input text = { .text = str(sentences[0]) };
    table *t[4] = { run(&c, &text, 1, (ses_word_states_options){ 0 }) };
    for (int i = 0; i < 3; i++) {
        twin[i] = (corpus){ ses_model_random_twin(c.model, i < 2 ? 1 : 2, &e), c.tokenizer };
        CHECK_MSG(twin[i].model, "%s", e.msg);
        t[i + 1] = run(&twin[i], &text, 1, (ses_word_states_options){ 0 });
    }
    size_t bytes = t[0]->rows * t[0]->width * sizeof(float);
    CHECK(t[1]->rows == t[0]->rows && memcmp(t[0]->x[0], t[1]->x[0], bytes));
    CHECK(!memcmp(t[1]->x[0], t[2]->x[0], bytes) && memcmp(t[1]->x[0], t[3]->x[0], bytes));
    for (int i = 0; i < 4; i++) free_table(t[i]);
    for (int i = 0; i < 3; i++) ses_model_free(twin[i].model);
    close_corpus(&c);
}

/* ---- architectures ---- */

static const char letters[] =
    "{\"version\": \"1.0\", \"added_tokens\": [], \"normalizer\": null, \"pre_tokenizer\": {\"type\": "
    "\"Whitespace\"}, \"post_processor\": null, \"decoder\": null, \"model\": {\"type\": \"WordLevel\", "
    "\"vocab\": {\"?\": 4, \"a\": 5, \"b\": 6, \"c\": 7, \"d\": 8}, \"unk_token\": \"?\"}}";

/* Start tokens of test_architecture: no decoder; the last token of each text (mBART). */
enum { NONE = -1, LAST_TOKEN = -2 };

/* The rows equal the states of a forward pass. The decoder reads a start token before the text. */
static void test_architecture(const char *dir, bool no_head, bool decoder, const char *output, int32_t start)
{
    ses_err e = { 0 };
    corpus c = { ses_model_open(dir, dev, &(ses_model_options){ .no_head = no_head }, &e),
                 ses_tokenizer_from_json(letters, strlen(letters), &e) };
    CHECK_MSG(c.model && c.tokenizer, "%s: %s", dir, e.msg);
    if (!c.model || !c.tokenizer) {
        close_corpus(&c);
        return;
    }
    int64_t depth = ses_word_states_depth(c.model, decoder), layers[] = { depth, depth - 1, 0 };
    ses_input text[] = { { .text = str("a b c a") }, { .text = str("d") }, { .text = str("c d d") } };
    table *t =
        run(&c, text, 3, (ses_word_states_options){ .layers = layers, .n_layers = 3, .decoder = decoder });
    int32_t ids[] = { 5, 6, 7, 5, 8, 7, 8, 8 }, cu[] = { 0, 4, 5, 8 }, target_cu[] = { 0, 5, 7, 11 },
            target[] = { start, 5, 6, 7, 5, start, 8, start, 7, 8, 8 };
    for (int i = 0; start == LAST_TOKEN && i < 3; i++) target[target_cu[i]] = ids[cu[i + 1] - 1];
    ses_batch b = { .seqs = 3, .tokens = 8, .cu_seqlens = cu, .ids = ids };
    if (start != NONE) b.target_cu_seqlens = target_cu, b.target_ids = target;
    ses_tape *tape = ses_tape_new(dev, NULL, &e);
    ses_outputs out;
    CHECK_MSG(ses_model_forward(c.model, tape, &b, &(ses_output_request){ .hidden_states = true }, &out, &e),
              "%s: %s", dir, e.msg);
    CHECK(t->rows == 8);
    for (int k = 0; k < 3; k++) {
        char name[32];
        snprintf(name, sizeof name, "%s.%d", output, (int)layers[k]);
        const ses_output *o = ses_outputs_find(&out, name);
        CHECK_MSG(o, "%s: %s", dir, name);
        float *x = calloc(1, (size_t)(o ? ses_count(o->tensor) : 1) * sizeof *x);
        if (o) ses_tape_read(tape, o->tensor, x);
        for (size_t s = 0, row = 0; o && s < 3; s++)
            for (int i = cu[s]; i < cu[s + 1]; i++, row++)
                CHECK_MSG(!memcmp(t->x[k] + row * t->width,
                                  x + ((size_t)i + (decoder ? s + 1 : 0)) * t->width, t->width * sizeof *x),
                          "%s: %s, row %zu", dir, name, row);
        free(x);
        /* layers above the last one that is wanted do not run */
        ses_word_states_options one = { .layers = &layers[k], .n_layers = 1, .decoder = decoder };
        table *alone = run(&c, text, 3, one);
        CHECK_MSG(alone->rows == 8 && !memcmp(alone->x[0], t->x[k], 8 * t->width * sizeof(float)),
                  "%s: %s alone", dir, name);
        free_table(alone);
    }
    free_table(t);
    ses_tape_free(tape);
    close_corpus(&c);
}

static void test_architectures(void)
{
    test_architecture("tests/golden/gpt2-lm", true, false, "hidden_states", NONE);
    test_architecture("tests/golden/xlnet-model", true, false, "hidden_states", NONE);
    test_architecture("tests/golden/transfo-xl-lm", true, false, "hidden_states", NONE);
    test_architecture("tests/golden/t5-v1.1", true, false, "hidden_states", NONE);
    test_architecture("tests/golden/bart-lm", true, false, "hidden_states", NONE);
    test_architecture("tests/golden/mbart-lm", true, false, "hidden_states", NONE);
    test_architecture("tests/golden/albert-groups", true, false, "hidden_states", NONE);
    test_architecture("tests/golden/deberta-v2-conv", true, false, "hidden_states", NONE);
    test_architecture("tests/golden/bart-lm", false, false, "encoder_hidden_states", 2);
    test_architecture("tests/golden/bart-lm", false, true, "decoder_hidden_states", 2);
    test_architecture("tests/golden/t5-v1.1", false, true, "decoder_hidden_states", 0);
    test_architecture("tests/golden/mbart-lm", false, true, "decoder_hidden_states", LAST_TOKEN);
    ses_err e = { 0 };
    corpus c = { ses_model_open("tests/golden/opt-350m-classify", dev,
                                &(ses_model_options){ .no_head = true }, &e),
                 ses_tokenizer_from_json(letters, strlen(letters), &e) };
    int64_t last = c.model ? ses_word_states_depth(c.model, false) : 0;
    ses_input text = { .text = str("a b") };
    ses_word_states_options o = { .layers = &last, .n_layers = 1 };
    CHECK(c.model && !ses_word_states_run(c.model, c.tokenizer, &text, 1, &o, take, NULL, &e));
    CHECK_MSG(strstr(e.msg, "columns, expected"), "%s", e.msg); /* its last layer is projected */
    close_corpus(&c);
}

/* The direction of a model agrees with what its first state depends on. */
static void test_reading(void)
{
    static const char *const name[] = {
        "gpt2-lm",
        "bert-model",
        "bert-causal-lm",
        "xlnet-model",
        "transfo-xl-lm",
        "lstm-lm",
        "nnlm",
        "rnn-encoder-left-mean",
        "rnn-encoder-gru-ends",
        "rnn-seq2seq-dot-gru",
        "bloom-lm",
        "t5-v1.1",
        "ctrl-lm",
        "bart-lm",
        "bert2bert",
        "mbart-lm",
        "gpt-neo-lm",
        "rnn-seq2seq-additive",
        "xglm-lm",
        "deberta-masked-lm",
    };
    for (size_t i = 0; i < SES_LEN(name); i++) {
        ses_err e = { 0 };
        char dir[64];
        snprintf(dir, sizeof dir, "tests/golden/%s", name[i]);
        corpus c = { ses_model_open(dir, dev, &(ses_model_options){ .no_head = true }, &e),
                     ses_tokenizer_from_json(letters, strlen(letters), &e) };
        if (!CHECK_MSG(c.model && c.tokenizer, "%s: %s", dir, e.msg)) {
            close_corpus(&c);
            continue;
        }
        ses_input text[] = { { .text = str("a b c") }, { .text = str("a d d") } };
        table *t = run(&c, text, 2, (ses_word_states_options){ .unit = SES_STATES_TEXT_FIRST });
        bool blind = !memcmp(t->x[0], t->x[0] + t->width, t->width * sizeof(float));
        CHECK_MSG(blind == (ses_model_reading(c.model) == SES_READS_LEFT_TO_RIGHT), "%s", name[i]);
        CHECK(ses_model_check_first_token(c.model, "x", &e) == !blind);
        free_table(t);
        close_corpus(&c);
    }
}

static void test_spool(void)
{
    enum { WIDTH = 7, LAYERS = 3, BLOCKS = 5 };
    for (size_t memory = 0; memory <= 4096; memory = memory ? 8 * memory : 64) {
        ses_err e = { 0 };
        ses_state_spool *s = ses_state_spool_new(LAYERS, WIDTH, memory, NULL, &e);
        float block[LAYERS][BLOCKS * WIDTH], got[100 * WIDTH];
        size_t rows = 0, wrong = 0;
        for (size_t b = 0; s && b < BLOCKS; b++) {
            const float *x[LAYERS];
            for (size_t k = 0; k < LAYERS; k++) {
                for (size_t i = 0; i < b * WIDTH; i++) block[k][i] = (float)(1000 * k + rows * WIDTH + i);
                x[k] = block[k];
            }
            CHECK_MSG(ses_state_spool_add(s, x, b, &e), "%s", e.msg);
            rows += b;
        }
        CHECK(s && ses_state_spool_rows(s) == rows && rows == 10);
        for (size_t k = 0; s && k < LAYERS; k++)
            for (size_t first = 0; first <= rows; first++)
                for (size_t n = 0; first + n <= rows; n++) {
                    CHECK_MSG(ses_state_spool_read(s, k, first, n, got, &e), "%s", e.msg);
                    for (size_t i = 0; i < n * WIDTH; i++)
                        wrong += got[i] != (float)(1000 * k + first * WIDTH + i);
                }
        CHECK(wrong == 0);
        CHECK(s && !ses_state_spool_read(s, 0, 5, 6, got, &e) &&
              !ses_state_spool_read(s, 3, 0, 1, got, NULL));
        ses_state_spool_free(s);
    }
    ses_err e = { 0 };
    ses_state_spool *s = ses_state_spool_new(1, 1, 0, "/nonexistent", &e);
    float one = 1;
    const float *x = &one;
    CHECK(s && !ses_state_spool_add(s, &x, 1, &e) && strstr(e.msg, "/nonexistent"));
    ses_state_spool_free(s);
}

int main(void)
{
    ses_err e = { 0 };
    dev = ses_device_open("cpu", NULL, &e);
    CHECK_MSG(dev, "%s", e.msg);
    test_transformers();
    test_features();
    test_units();
    test_windows();
    test_random();
    test_architectures();
    test_reading();
    test_spool();
    ses_device_free(dev);
    return check_report();
}
