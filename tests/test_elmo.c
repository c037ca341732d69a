/* ELMo: bilm-tf's files against an independent implementation (tests/fixtures/elmo.py); batches, caches, long
 * words and texts. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "elmo_fixture.h"
#include "model/model_desc.h"
#include "model/recurrent/elmo_words.h"
#include "nn/chars/char_word_cache.h"

#include <unistd.h>

static ses_device *dev;

static const ses_output_request states = { .hidden_states = true, .rnn_state = true };

static void check_states(ses_tape *t, const ses_outputs *out, elmo_numbers *want, size_t tokens,
                         const char *what)
{
    ses_real x[64 * ELMO_WIDTH];
    for (int l = 0; l < ELMO_LAYERS; l++) {
        char name[32];
        snprintf(name, sizeof name, "hidden_states.%d", l);
        if (!elmo_read(t, out, name, x)) return;
        double d = elmo_differ(want, x, tokens * ELMO_WIDTH);
        CHECK_MSG(d < 2e-6, "%s: layer %d differs by %g", what, l, d);
    }
}

/* Every sentence alone; then with the state of the sentence before it. */
static void test_exact(const char *dir)
{
    ses_err e = { 0 };
    elmo_numbers want;
    elmo_batch b;
    ses_outputs out;
    ses_real state[ELMO_STATE];
    ses_model *m = ses_model_open(dir, dev, NULL, &e);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    if (!CHECK_MSG(m && t, "%s", e.msg) || !elmo_numbers_open(&want)) return;
    CHECK(ses_model_state_size(m) == ELMO_STATE);
    CHECK_STR(ses_model_unexpected_keys(m), "");
    for (int stateful = 0; stateful < 2; stateful++) {
        memset(state, 0, sizeof state);
        for (int s = 0; s < ELMO_SENTENCES; s++) {
            elmo_fill(&b, &s, 1);
            if (stateful) b.b.rnn_state = state;
            ses_tape_reset(t, NULL);
            if (!CHECK_MSG(ses_model_forward(m, t, &b.b, &states, &out, &e), "%s", e.msg)) break;
            check_states(t, &out, &want, elmo_tokens(s), stateful ? "stateful" : "stateless");
            if (!stateful) continue;
            if (!elmo_read(t, &out, "rnn_state", state)) break;
            double d = elmo_differ(&want, state, ELMO_STATE);
            CHECK_MSG(d < 2e-6, "state after sentence %d differs by %g", s, d);
        }
    }
    ses_free(want.all);
    ses_tape_free(t);
    ses_model_free(m);
}

/* Loss and gradients of the bidirectional language model. */
static void test_gradients(void)
{
    static const char *const names[] = { "chars.table",
                                         "chars.conv.2.weight",
                                         "chars.conv.0.bias",
                                         "chars.highway.0.carry.weight",
                                         "chars.highway.1.transform.bias",
                                         "chars.project.weight",
                                         "forward.weight_ih_l0",
                                         "backward.weight_hh_l1",
                                         "backward.bias_ih_l1",
                                         "forward.weight_hr_l0",
                                         "predict.weight" };
    static const char *const heads[] = { "predict.weight", "predict.bias" };
    ses_err e = { 0 };
    elmo_numbers want;
    elmo_batch b;
    ses_outputs out;
    ses_model_options o = { .class_name = "ElmoForPreTraining", .train = true, .new_heads = true };
    ses_model *m = ses_model_open(ELMO, dev, &o, &e);
    ses_tape *t = ses_tape_new(dev, &(ses_tape_options){ .record = true, .train = true }, &e);
    if (!CHECK_MSG(m && t, "%s", e.msg) || !elmo_numbers_open(&want)) return;
    size_t states_of_all = 0, rest = 0;
    for (int s = 0; s < ELMO_SENTENCES; s++) states_of_all += elmo_tokens(s) * ELMO_LAYERS * ELMO_WIDTH;
    elmo_take(&want, 2 * states_of_all + ELMO_SENTENCES * ELMO_STATE);
    ses_store *s = ses_model_store(m);
    for (size_t i = 0; i < SES_LEN(heads); i++) {
        const ses_tensor *x = ses_store_find(s, heads[i])->tensor;
        const float *v = elmo_take(&want, (size_t)ses_count(x));
        for (int64_t k = 0; k < ses_count(x); k++) x->f[k] = v[k];
    }
    elmo_fill(&b, (const int[]){ 0, 1, 3, 4 }, 4);
    b.b.labels = b.labels;
    if (!CHECK_MSG(ses_model_forward(m, t, &b.b, NULL, &out, &e), "%s", e.msg)) return;
    ses_real loss = 0;
    CHECK(ses_tape_read(t, out.loss, &loss));
    double d = elmo_differ(&want, &loss, 1);
    CHECK_MSG(d < 1e-6, "loss %g differs by %g", (double)loss, d);
    ses_backward(t, out.loss);
    CHECK_MSG(ses_tape_ok(t, &e), "%s", e.msg);
    for (size_t i = 0; i < SES_LEN(names); i++) {
        const ses_param *p = ses_store_find(s, names[i]);
        if (!CHECK_MSG(p, "%s", names[i])) continue;
        d = elmo_differ(&want, p->tensor->grad, (size_t)ses_count(p->tensor));
        CHECK_MSG(d < 2e-6, "gradient of %s differs by %g", names[i], d);
    }
    rest = want.n - want.at;
    CHECK_MSG(!rest, "%zu numbers are left", rest);
    ses_free(want.all);
    ses_tape_free(t);
    ses_model_free(m);
}

/* A sentence has the same bits alone, among others, in any order, and with a cache of words. */
static void test_batches(void)
{
    static const int order[] = { 4, 1, 3, 0, 2, 0 };
    ses_err e = { 0 };
    elmo_batch b;
    ses_outputs out;
    ses_real one[64 * ELMO_WIDTH], all[64 * ELMO_WIDTH];
    ses_model *m = ses_model_open(ELMO, dev, NULL, &e);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    ses_word_cache *cache = ses_word_cache_new(1 << 20, &e),
                   *small = ses_word_cache_new(7 * ELMO_PROJ * 4, &e), *none = ses_word_cache_new(1, &e),
                   *caches[] = { NULL, cache, cache, small, small, none };
    if (!CHECK_MSG(m && t && cache && small && none, "%s", e.msg)) return;
    for (size_t c = 0; c < SES_LEN(caches); c++) {
        elmo_fill(&b, order, 6);
        b.b.word_cache = caches[c];
        ses_tape_reset(t, NULL);
        if (!CHECK_MSG(ses_model_forward(m, t, &b.b, &states, &out, &e), "%s", e.msg)) break;
        elmo_read(t, &out, "hidden_states.2", all);
        int32_t cu[7];
        memcpy(cu, b.cu, sizeof cu);
        for (int s = 0; s < 6; s++) {
            elmo_fill(&b, &order[s], 1);
            ses_tape_reset(t, NULL);
            if (!CHECK(ses_model_forward(m, t, &b.b, &states, &out, &e))) break;
            elmo_read(t, &out, "hidden_states.2", one);
            CHECK_MSG(
                !memcmp(one, all + cu[s] * ELMO_WIDTH, elmo_tokens(order[s]) * ELMO_WIDTH * sizeof *one),
                "sentence %d, cache %zu", s, c);
        }
    }
    CHECK(ses_word_cache_count(cache) == 13); /* 11 words, <S> and </S> */
    CHECK(ses_word_cache_count(small) <= 7 && !ses_word_cache_count(none));
    ses_word_cache_free(cache), ses_word_cache_free(small), ses_word_cache_free(none);
    ses_tape_free(t);
    ses_model_free(m);
}

/* The function for other models: the same numbers, without <S> and </S>. */
static void test_words(void)
{
    ses_err e = { 0 };
    elmo_numbers want;
    ses_string words[15];
    float x[ELMO_LAYERS][15 * ELMO_WIDTH];
    for (int i = 0; i < 15; i++) words[i] = (ses_string){ elmo_words[i], strlen(elmo_words[i]) };
    ses_elmo_words *k = ses_elmo_words_open(ELMO, dev, &e);
    if (!CHECK_MSG(k, "%s", e.msg) || !elmo_numbers_open(&want)) return;
    CHECK(ses_elmo_words_layers(k) == ELMO_LAYERS && ses_elmo_words_width(k) == ELMO_WIDTH);
    CHECK_MSG(ses_elmo_words_run(k, words, elmo_first, ELMO_SENTENCES, (float *[]){ x[0], x[1], x[2] }, &e),
              "%s", e.msg);
    for (int s = 0; s < ELMO_SENTENCES; s++)
        for (int l = 0; l < ELMO_LAYERS; l++) {
            const float *v = elmo_take(&want, elmo_tokens(s) * ELMO_WIDTH) + ELMO_WIDTH;
            for (size_t i = elmo_first[s] * ELMO_WIDTH; i < elmo_first[s + 1] * ELMO_WIDTH; i++, v++)
                if (!(fabsf(x[l][i] - *v) < 2e-6f)) CHECK_MSG(false, "sentence %d layer %d", s, l);
        }
    float second[15 * ELMO_WIDTH]; /* only one layer, from the cache */
    CHECK(ses_elmo_words_run(k, words, elmo_first, ELMO_SENTENCES, (float *[]){ NULL, second, NULL }, &e));
    CHECK(!memcmp(second, x[1], sizeof second));
    ses_free(want.all);
    ses_elmo_words_free(k);
    k = ses_elmo_words_open("tests/golden/bert", dev, &e);
    CHECK(!k);
    ses_elmo_words_free(k);
}

static void test_long(void)
{
    enum { N = 100000 };
    ses_err e = { 0 };
    ses_string *words = malloc(N * sizeof *words);
    float *x = malloc((size_t)N * ELMO_WIDTH * sizeof *x);
    char *text = malloc(N * 8);
    for (int i = 0; i < N; i++) {
        int n = snprintf(text + 8 * i, 8, "w%d", i % 7919);
        words[i] = (ses_string){ text + 8 * i, (size_t)n };
    }
    ses_elmo_words *k = ses_elmo_words_open(ELMO, dev, &e);
    if (CHECK_MSG(k, "%s", e.msg)) {
        CHECK_MSG(ses_elmo_words_run(k, words, (size_t[]){ 0, N }, 1, (float *[]){ NULL, NULL, x }, &e), "%s",
                  e.msg);
        int finite = 1;
        for (size_t i = 0; i < (size_t)N * ELMO_WIDTH; i++) finite &= isfinite(x[i]) != 0;
        CHECK(finite);
    }
    ses_elmo_words_free(k);
    free(words), free(x), free(text);
}

static void test_errors(void)
{
    ses_err e = { 0 };
    elmo_batch b;
    ses_outputs out;
    ses_model *m = ses_model_open(ELMO, dev, NULL, &e);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    if (!CHECK_MSG(m && t, "%s", e.msg)) return;
    elmo_fill(&b, (const int[]){ 0 }, 1);
    b.id[2] = 2; /* <UNK> without characters */
    CHECK(!ses_model_forward(m, t, &b.b, NULL, &out, &e));
    CHECK_MSG(strstr(e.msg, "needs the characters of every word"), "%s", e.msg);
    ses_tape_reset(t, NULL);
    e = (ses_err){ 0 };
    elmo_fill(&b, (const int[]){ 0 }, 1);
    b.chars[3] = 261;
    CHECK(!ses_model_forward(m, t, &b.b, NULL, &out, &e));
    CHECK_STR(e.msg, "extra word 0: character 261, expected 0 to 260");
    e = (ses_err){ 0 };
    b.chars[3] = 0, b.id[1] = 10;
    CHECK(!ses_model_forward(m, t, &b.b, NULL, &out, &e));
    CHECK_STR(e.msg, "token id 10 at index 1, expected 0 to 9");
    ses_tape_free(t);
    ses_model_free(m);
}

/* Sesame's own folder in every dtype that keeps characters exact. */
static void test_saved(void)
{
    char dir[] = "/tmp/test_elmo.XXXXXX", path[64];
    ses_err e = { 0 };
    ses_model *m = ses_model_open(ELMO, dev, &(ses_model_options){ .no_packing = true }, &e);
    if (!CHECK_MSG(m && mkdtemp(dir), "%s", e.msg)) return;
    CHECK_MSG(ses_model_save(m, dir, NULL, &e), "%s", e.msg);
    test_exact(dir);
    CHECK_MSG(ses_model_save(m, dir, &(ses_save_options){ .dtype = SES_BF16, .overwrite = true }, &e), "%s",
              e.msg);
    ses_model *half = ses_model_open(dir, dev, NULL, &e);
    if (CHECK_MSG(half, "%s", e.msg)) {
        const ses_tensor *a = ses_store_find(ses_model_store(m), "chars.words")->tensor,
                         *b = ses_store_find(ses_model_store(half), "chars.words")->tensor;
        CHECK(!memcmp(a->f, b->f, (size_t)ses_count(a) * sizeof *a->f));
    }
    ses_model_free(half);
    ses_model_free(m);
    static const char *const files[] = { "config.json", "model.safetensors" };
    for (size_t i = 0; i < SES_LEN(files); i++) {
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        unlink(path);
    }
    rmdir(dir);
}

static void test_characters(void)
{
    int16_t c[50], back;
    ses_word_chars(c, 50, "ab", 2);
    CHECK(c[0] == 258 && c[1] == 'a' && c[2] == 'b' && c[3] == 259 && c[4] == 260 && c[49] == 260);
    ses_word_chars(c, 50, elmo_words[7], 60);
    CHECK(c[48] == 'a' && c[49] == 259);
    ses_word_chars(c, 50, elmo_words[8], 48);
    CHECK(c[48] == 'a' && c[49] == 259);
    ses_word_chars(c, 50, "", 0);
    CHECK(c[0] == 258 && c[1] == 259 && c[2] == 260);
    ses_word_one_char(c, 50, SES_CHAR_EOS);
    CHECK(c[0] == 258 && c[1] == 257 && c[2] == 259 && c[3] == 260);
    for (int16_t i = 0; i < SES_CHARS; i++)
        CHECK(ses_char_from_number(ses_char_to_number(i), &back) && back == i);
    CHECK(ses_char_from_number(0, &back) && back == -1);
    CHECK(!ses_char_from_number(257, &back) && !ses_char_from_number(-6, &back) &&
          !ses_char_from_number(1.5, &back) && !ses_char_from_number((double)NAN, &back));
}

int main(void)
{
    ses_err e = { 0 };
    dev = ses_device_open("cpu", NULL, &e);
    if (!CHECK_MSG(dev, "%s", e.msg)) return check_report();
    test_characters();
    test_exact(ELMO);
    test_gradients();
    test_batches();
    test_words();
    test_errors();
    test_saved();
    test_long();
    ses_device_free(dev);
    return check_report();
}
