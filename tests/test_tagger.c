/* The tagger of words against PyTorch and pytorch-crf (fixtures/tagger.json, made by tagger.py): scores,
 * loss, gradients, five steps of SGD; batches; saving and opening; words of texts. Vectors of words by
 * language models. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/str.h"
#include "check.h"
#include "model/model_desc.h"
#include "model/recurrent/elmo_words.h"
#include "model/recurrent/tagger_encoder.h"
#include "sesame/json.h"
#include "task/words/word_stack.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TOKENS = 32, MAX_CHARS = 256 };

typedef struct data {
    int64_t seqs, tokens, vector;
    int32_t cu[8], ids[MAX_TOKENS], tags[MAX_TOKENS], row[MAX_TOKENS], chars[MAX_CHARS],
        char_cu[MAX_TOKENS + 1];
    ses_real vectors[MAX_CHARS];
} data;

static double number(const ses_json *v)
{
    double d = NAN;
    ses_json_real(v, &d);
    return d;
}

static int64_t integer(const ses_json *v)
{
    int64_t n = -1;
    ses_json_int(v, &n);
    return n;
}

static data read_data(const ses_json *f)
{
    data d = { .vector = integer(ses_json_get(f, "vector")) };
    const ses_json *all = ses_json_get(f, "sentences");
    for (d.seqs = 0; d.seqs < (int64_t)ses_json_len(all); d.seqs++) {
        const ses_json *words = ses_json_at(all, (size_t)d.seqs),
                       *ids = ses_json_at(ses_json_get(f, "ids"), (size_t)d.seqs),
                       *tags = ses_json_at(ses_json_get(f, "tags"), (size_t)d.seqs);
        for (size_t i = 0; i < ses_json_len(words); i++, d.tokens++) {
            const char *w = ses_json_string(ses_json_at(words, i), NULL);
            d.ids[d.tokens] = (int32_t)integer(ses_json_at(ids, i));
            d.tags[d.tokens] = (int32_t)integer(ses_json_at(tags, i));
            d.row[d.tokens] = (int32_t)d.tokens;
            d.char_cu[d.tokens + 1] = d.char_cu[d.tokens];
            for (; *w; w++) d.chars[d.char_cu[d.tokens + 1]++] = (unsigned char)*w;
        }
        d.cu[d.seqs + 1] = (int32_t)d.tokens;
    }
    const ses_json *v = ses_json_get(f, "vectors");
    for (size_t i = 0; i < ses_json_len(v); i++) d.vectors[i] = (ses_real)number(ses_json_at(v, i));
    return d;
}

static ses_batch batch_of(const data *d)
{
    return (ses_batch){ .seqs = d->seqs,
                        .tokens = d->tokens,
                        .cu_seqlens = d->cu,
                        .ids = d->ids,
                        .modal_rows = d->row,
                        .modal_vectors = d->vectors,
                        .n_modal = d->tokens,
                        .word_chars = d->chars,
                        .word_char_cu = d->char_cu,
                        .labels = d->tags };
}

static ses_json_doc *config_of(const ses_json *f)
{
    ses_buf b = { 0 };
    ses_buf_appendf(&b,
                    "{\"model_type\": \"tagger\", \"architectures\": [\"TaggerForTokenClassification\"], "
                    "\"vocab_size\": %d, \"vector_size\": %d, \"word_size\": %d, \"char_size\": %d, "
                    "\"char_rnn_size\": %d, \"rnn_size\": %d, \"word_dropout\": 0, \"locked_dropout\": 0, "
                    "\"sesame_crf\": \"none\", \"num_labels\": %d}",
                    (int)integer(ses_json_get(f, "vocab")), (int)integer(ses_json_get(f, "vector")),
                    (int)integer(ses_json_get(f, "word")), (int)integer(ses_json_get(f, "char")),
                    (int)integer(ses_json_get(f, "char_rnn")), (int)integer(ses_json_get(f, "rnn")),
                    (int)integer(ses_json_get(f, "labels")));
    ses_err e = { 0 };
    ses_json_doc *d = ses_json_parse(b.data, b.len, &e);
    CHECK_MSG(d, "%s", e.msg);
    ses_buf_free(&b);
    return d;
}

/* Element i of the fixture's list for a parameter; bytes that do not occur have no element. */
static int64_t at(const ses_json *f, const char *name, int64_t i)
{
    const ses_json *bytes = ses_json_get(f, "bytes");
    int64_t width = integer(ses_json_get(f, "char"));
    if (strcmp(name, "char_embeddings.weight")) return i;
    for (size_t k = 0; k < ses_json_len(bytes); k++)
        if (integer(ses_json_at(bytes, k)) == i / width) return (int64_t)k * width + i % width;
    return -1;
}

/* Sets the parameters, or returns the largest difference of their values or gradients from the fixture's. */
static double each_param(const ses_model *m, const ses_json *f, const char *key, bool set, bool grad)
{
    double worst = 0;
    for (size_t p = 0; p < ses_store_count(m->store); p++) {
        char name[128];
        const ses_param *x = ses_store_at(m->store, p);
        CHECK_MSG(ses_name_to_hf(m, x->name, name, sizeof name), "%s", x->name);
        const ses_json *list = ses_json_get(ses_json_get(f, key), name);
        CHECK_MSG(list, "%s is not in the fixture", name);
        for (int64_t i = 0; i < ses_count(x->tensor); i++) {
            int64_t k = at(f, name, i);
            double want = k < 0 ? 0 : number(ses_json_at(list, (size_t)k));
            ses_real *value = (grad ? x->tensor->grad : x->tensor->f) + i;
            if (set) *value = (ses_real)want;
            double d = fabs((double)*value - want);
            if (!(d <= worst)) worst = d;
        }
    }
    return worst;
}

static ses_tensor *forward(ses_model *m, ses_tape *t, const ses_batch *b, bool record, ses_real *loss)
{
    ses_err e = { 0 };
    ses_outputs out;
    ses_tape_reset(t, &(ses_tape_options){ .record = record });
    if (!ses_model_forward(m, t, b, &(ses_output_request){ .logits = true }, &out, &e)) {
        CHECK_MSG(false, "%s", e.msg);
        return NULL;
    }
    if (record) ses_store_zero_grad(m->store), ses_backward(t, out.loss);
    CHECK_MSG(ses_tape_ok(t, &e), "%s", e.msg);
    if (loss) *loss = out.loss->f[0];
    return ses_outputs_find(&out, "logits")->tensor;
}

static void check_training(ses_model *m, ses_tape *t, const ses_json *f, const data *d)
{
    ses_batch b = batch_of(d);
    ses_real loss = 0;
    each_param(m, f, "params", true, false);
    ses_tensor *y = forward(m, t, &b, true, &loss);
    const ses_json *scores = ses_json_get(f, "scores");
    double worst = 0;
    for (int64_t i = 0; y && i < ses_count(y); i++)
        worst = fmax(worst, fabs((double)y->f[i] - number(ses_json_at(scores, (size_t)i))));
    CHECK_MSG(worst < 1e-5, "scores: %g", worst);
    CHECK(fabs((double)loss - number(ses_json_get(f, "loss"))) < 1e-5);
    double grads = each_param(m, f, "grads", false, true);
    CHECK_MSG(grads < 1e-5, "gradients: %g", grads);
    double rate = number(ses_json_get(f, "rate"));
    for (int step = 0; step < 5; step++) {
        forward(m, t, &b, true, &loss);
        for (size_t p = 0; p < ses_store_count(m->store); p++) {
            const ses_tensor *x = ses_store_at(m->store, p)->tensor;
            for (int64_t i = 0; i < ses_count(x); i++) x->f[i] -= (ses_real)(rate * (double)x->grad[i]);
        }
    }
    double after = each_param(m, f, "after", false, false);
    CHECK_MSG(after < 1e-5, "after five steps: %g", after);
    forward(m, t, &b, false, &loss);
    CHECK(fabs((double)loss - number(ses_json_get(f, "after_loss"))) < 1e-5);
}

/* Each sentence alone has the same bits as in the batch. */
static void check_batch(ses_model *m, ses_tape *t, const data *d)
{
    ses_batch b = batch_of(d);
    int64_t L = ses_model_label_count(m);
    ses_real all[MAX_CHARS];
    ses_tensor *y = forward(m, t, &b, false, NULL);
    memcpy(all, y->f, (size_t)ses_count(y) * sizeof *all);
    for (int64_t s = 0; s < d->seqs; s++) {
        data one = { .seqs = 1, .tokens = d->cu[s + 1] - d->cu[s], .vector = d->vector };
        int32_t from = d->cu[s], first = d->char_cu[from];
        one.cu[1] = (int32_t)one.tokens;
        for (int64_t i = 0; i < one.tokens; i++) {
            one.ids[i] = d->ids[from + i], one.tags[i] = d->tags[from + i], one.row[i] = (int32_t)i;
            one.char_cu[i + 1] = d->char_cu[from + i + 1] - first;
        }
        memcpy(one.chars, d->chars + first, (size_t)one.char_cu[one.tokens] * sizeof *one.chars);
        memcpy(one.vectors, d->vectors + from * d->vector,
               (size_t)(one.tokens * d->vector) * sizeof *one.vectors);
        b = batch_of(&one);
        y = forward(m, t, &b, false, NULL);
        CHECK(y && !memcmp(y->f, all + from * L, (size_t)(one.tokens * L) * sizeof *all));
    }
}

static void check_folder(ses_model *m, ses_tape *t, ses_device *dev, const data *d)
{
    ses_err e = { 0 };
    char dir[] = "/tmp/sesame-tagger-XXXXXX", command[64];
    ses_batch b = batch_of(d);
    ses_real all[MAX_CHARS];
    if (!mkdtemp(dir)) return;
    ses_tensor *y = forward(m, t, &b, false, NULL);
    size_t n = (size_t)ses_count(y);
    memcpy(all, y->f, n * sizeof *all);
    CHECK_MSG(ses_model_save(m, dir, &(ses_save_options){ .dtype = SES_F32 }, &e), "%s", e.msg);
    ses_model *again = ses_model_open(dir, dev, NULL, &e);
    CHECK_MSG(again && !*ses_model_unexpected_keys(again), "%s", e.msg);
    if (again) y = forward(again, t, &b, false, NULL);
    CHECK(again && y && !memcmp(y->f, all, n * sizeof *all));
    ses_batch tokens = b;
    ses_outputs out;
    tokens.modal_rows = NULL, tokens.word_char_cu = NULL;
    ses_tape_reset(t, &(ses_tape_options){ 0 });
    CHECK(again && !ses_model_forward(again, t, &tokens, &(ses_output_request){ 0 }, &out, &e) &&
          strstr(e.msg, "reads words"));
    ses_model_free(again);
    snprintf(command, sizeof command, "rm -r %s", dir);
    CHECK(system(command) == 0);
}

static ses_string text(const char *s) { return (ses_string){ s, strlen(s) }; }

static void check_words(ses_device *dev)
{
    static const char *const want[] = { "In",         "the",   "U.S", ".", ",", "3.5",
                                        "twenty-one", "don't", "\"",  "x", "\"" };
    ses_err e = { 0 };
    ses_arena mem = { 0 };
    ses_string *word, long_word = { "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeff", 52 };
    uint32_t *byte;
    size_t n;
    CHECK(ses_split_words(text("In the U.S.,  3.5 twenty-one don't \"x\"\n"), &mem, &word, &byte, &n, &e));
    CHECK(n == SES_LEN(want));
    for (size_t i = 0; i < n && i < SES_LEN(want); i++)
        CHECK_MSG(ses_equal(word[i].p, word[i].n, want[i]), "%.*s, expected %s", (int)word[i].n, word[i].p,
                  want[i]);
    CHECK(byte[1] == 3 && ses_split_words(text(" \t"), &mem, &word, &byte, &n, &e) && !n);
    ses_word_stack *s = ses_word_stack_parse("char,word", dev, &e);
    ses_word_features f;
    ses_sentences one = { &long_word, (const size_t[]){ 0, 1 }, 1 };
    CHECK(s && !ses_word_stack_width(s) && ses_word_stack_embed(s, &one, &mem, &f, &e));
    CHECK(s && f.char_cu[1] == SES_MAX_WORD_BYTES && f.chars[0] == 'a' && !f.vectors);
    CHECK(ses_word_stack_max_bytes(s) == SES_MAX_WORD_BYTES && f.n_shortened == 1);
    ses_word_stack_free(s);
    static const char *const bad[] = { "",
                                       "char,char",
                                       "static",
                                       "char:x",
                                       "nothing",
                                       "static:/no/file",
                                       "elmo",
                                       "flair:/no/dir",
                                       "lm:tests/fixtures/elmo",
                                       "elmo:tests/fixtures/flair/forward",
                                       "flair:tests/fixtures/elmo",
                                       "lm:tests/fixtures/flair/backward" };
    for (size_t i = 0; i < SES_LEN(bad); i++) {
        e = (ses_err){ 0 };
        CHECK_MSG(!ses_word_stack_parse(bad[i], dev, &e) && e.code && *e.msg, "\"%s\"", bad[i]);
    }
    ses_arena_free(&mem);
}

/* The vectors of a sentence by a stack. */
static float *embedded(ses_word_stack *s, const ses_string *word, size_t n, ses_arena *mem)
{
    ses_err e = { 0 };
    ses_word_features f = { 0 };
    ses_sentences one = { word, (const size_t[]){ 0, n }, 1 };
    CHECK_MSG(s && ses_word_stack_embed(s, &one, mem, &f, &e), "%s", e.msg);
    return f.vectors;
}

static size_t words_of(const ses_json *list, ses_string *word, size_t max)
{
    size_t n = 0;
    for (; n < ses_json_len(list) && n < max; n++)
        word[n] = text(ses_json_string(ses_json_at(list, n), NULL));
    return n;
}

/* Several sentences at once, one of them empty, give the bits of each alone. */
static void check_many_sentences(ses_device *dev)
{
    ses_err e = { 0 };
    ses_arena mem = { 0 };
    ses_string word[7];
    static const char *const words[] = { "a", "bc", "d", "ba", "c", "abcd", "e" };
    static const size_t first[] = { 0, 2, 2, 6, 7 };
    for (size_t i = 0; i < SES_LEN(words); i++) word[i] = text(words[i]);
    ses_word_stack *s =
        ses_word_stack_parse("flair:tests/fixtures/flair/forward,flair:tests/fixtures/flair/backward,"
                             "lm:tests/fixtures/flair/forward,elmo:tests/fixtures/elmo,char",
                             dev, &e);
    ses_word_features all = { 0 };
    CHECK_MSG(s && ses_word_stack_embed(s, &(ses_sentences){ word, first, 4 }, &mem, &all, &e), "%s", e.msg);
    for (size_t k = 0; s && all.vectors && k < 4; k++) {
        size_t n = first[k + 1] - first[k], width = (size_t)ses_word_stack_width(s);
        float *one = embedded(s, word + first[k], n, &mem);
        CHECK(!memcmp(one, all.vectors + first[k] * width, n * width * sizeof *one));
    }
    CHECK(all.char_cu && all.char_cu[7] == 12);
    ses_word_stack_free(s);
    ses_arena_free(&mem);
}

/* Forward and backward character models and the states of an LM against PyTorch (fixtures/flair.py). */
static void check_language_models(ses_device *dev)
{
    static const char *const kinds[] = { "forward", "backward", "lm" };
    ses_err e = { 0 };
    ses_arena mem = { 0 };
    ses_json_doc *doc = ses_json_load("tests/fixtures/flair/vectors.json", 1 << 20, &e);
    ses_word_stack *s = ses_word_stack_parse("flair:tests/fixtures/flair/forward,flair:tests/fixtures/flair/"
                                             "backward,lm:tests/fixtures/flair/forward",
                                             dev, &e);
    CHECK_MSG(doc && s, "%s", e.msg);
    if (!doc || !s) return;
    const ses_json *f = ses_json_root(doc), *sentences = ses_json_get(f, "sentences");
    int64_t width = integer(ses_json_get(f, "width"));
    CHECK(ses_word_stack_width(s) == 3 * width && ses_json_len(sentences) == 3);
    for (size_t k = 0; k < ses_json_len(sentences); k++) {
        ses_string word[MAX_TOKENS];
        size_t n = words_of(ses_json_at(sentences, k), word, MAX_TOKENS);
        const float *x = embedded(s, word, n, &mem);
        for (int64_t c = 0; x && c < 3 * (int64_t)n * width; c++) {
            int64_t kind = c / width % 3, at = c / (3 * width) * width + c % width;
            const ses_json *want = ses_json_at(ses_json_get(f, kinds[kind]), k);
            double d = fabs((double)x[c] - number(ses_json_at(want, (size_t)at)));
            CHECK_MSG(d < 1e-6, "%s: word %d: %g", kinds[kind], (int)(c / (3 * width)), d);
        }
    }
    ses_string odd[] = { text(""), text("a b"), text(""), { "\xff", 1 } };
    CHECK(embedded(s, odd, 4, &mem) && embedded(s, odd, 1, &mem) && embedded(s, odd, 0, &mem));
    ses_word_stack_free(s);
    ses_json_free(doc);
    ses_arena_free(&mem);
}

/* The vectors of elmo are the mean of the layers, which test_elmo.c compares. */
static void check_elmo(ses_device *dev)
{
    enum { WORDS = 3, LAYERS = 3, WIDTH = 10 };
    ses_err e = { 0 };
    ses_arena mem = { 0 };
    ses_string word[WORDS] = { text("The"), text("cat"), text("na\xc3\xafve") };
    float layer[LAYERS][WORDS * WIDTH], *out[LAYERS] = { layer[0], layer[1], layer[2] };
    size_t first[2] = { 0, WORDS };
    ses_elmo_words *k = ses_elmo_words_open("tests/fixtures/elmo", dev, &e);
    ses_word_stack *s = ses_word_stack_parse("elmo:tests/fixtures/elmo", dev, &e);
    CHECK_MSG(k && s, "%s", e.msg);
    if (!k || !s) return;
    CHECK(ses_elmo_words_layers(k) == LAYERS && ses_elmo_words_width(k) == WIDTH &&
          ses_word_stack_width(s) == WIDTH);
    CHECK_MSG(ses_elmo_words_run(k, word, first, 1, out, &e), "%s", e.msg);
    const float *x = embedded(s, word, WORDS, &mem);
    for (size_t i = 0; x && i < (size_t)WORDS * WIDTH; i++)
        CHECK(fabs((double)x[i] - ((double)layer[0][i] + (double)layer[1][i] + (double)layer[2][i]) / 3) <
              1e-6);
    CHECK(embedded(s, word, 0, &mem));
    ses_word_stack_free(s);
    ses_elmo_words_free(k);
    ses_arena_free(&mem);
}

/* The encoders of tests/golden_words: sentences alone and in a batch, saved and opened. */
static void check_encoders(ses_device *dev, ses_tape *t, const data *d)
{
    static const char *const dir[] = { "tests/golden_words/tagger-window",
                                       "tests/golden_words/tagger-sentence" };
    for (size_t i = 0; i < SES_LEN(dir); i++) {
        ses_err e = { 0 };
        ses_model *m = ses_model_open(dir[i], dev, NULL, &e);
        if (!CHECK_MSG(m, "%s", e.msg)) continue;
        check_batch(m, t, d);
        check_folder(m, t, dev, d);
        ses_model_free(m);
    }
}

/* Large and infinite inputs, too, and gradients: 1 inside, 0 outside. */
static void check_hard_tanh(ses_device *dev)
{
    const ses_real
        x[] = { (ses_real)-INFINITY, -1e9f, -1.5f, -0.5f, 0, 0.25f, 1.5f, 2e7f, (ses_real)INFINITY },
        want[] = { -1, -1, -1, -0.5f, 0, 0.25f, 1, 1, 1 }, ones[SES_LEN(x)] = { 0 };
    ses_err e = { 0 };
    ses_tape *t = ses_tape_new(dev, &(ses_tape_options){ .record = true }, &e);
    ses_tensor *in = ses_tape_input(t, x, SES_DIM(1, SES_LEN(x)));
    in->requires_grad = true;
    ses_tensor *y = ses_tagger_hard_tanh(t, in);
    for (size_t i = 0; y && i < SES_LEN(x); i++)
        CHECK_MSG(y->f[i] == want[i], "hard tanh of %g: %g", (double)x[i], (double)y->f[i]);
    ses_tensor *sum = ses_target_loss(t, y, ses_tape_input(t, ones, SES_DIM(1, SES_LEN(x))), SES_LOSS_MSE);
    ses_backward(t, sum);
    CHECK_MSG(ses_tape_ok(t, &e), "%s", e.msg);
    for (size_t i = 0; i < SES_LEN(x); i++) {
        bool inside = x[i] > -1 && x[i] < 1;
        double d = inside ? 2 * (double)x[i] / (double)SES_LEN(x) : 0;
        CHECK_MSG(fabs((double)in->grad[i] - d) < 1e-7, "its gradient at %g: %g", (double)x[i],
                  (double)in->grad[i]);
    }
    ses_tape_free(t);
}

int main(void)
{
    ses_err e = { 0 };
    ses_json_doc *doc = ses_json_load("tests/fixtures/tagger.json", 1 << 20, &e);
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    if (!doc || !dev) return fprintf(stderr, "%s\n", e.msg), 1;
    const ses_json *f = ses_json_root(doc);
    ses_json_doc *config = config_of(f);
    ses_model *m = ses_model_new(ses_json_root(config), dev, &(ses_model_options){ .train = true }, &e);
    CHECK_MSG(m, "%s", e.msg);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    data d = read_data(f);
    if (m) {
        check_training(m, t, f, &d);
        check_batch(m, t, &d);
        check_folder(m, t, dev, &d);
    }
    check_words(dev);
    check_encoders(dev, t, &d);
    check_hard_tanh(dev);
    check_many_sentences(dev);
    check_language_models(dev);
    check_elmo(dev);
    ses_tape_free(t);
    ses_model_free(m);
    ses_json_free(config);
    ses_json_free(doc);
    ses_device_free(dev);
    return check_report();
}
