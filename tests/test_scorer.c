/* Log-probabilities of texts, compared with forward passes over each window. */
#include "check.h"

#include "sesame/sesame.h"

#include <math.h>

enum { WORDS = 40, TEXT = 30 };

/* A tokenizer of words w5 .. w39 with these ids, [BOS] 2 and [MASK] 4; with_special adds [CLS] 1 and
 * [SEP] 3. */
static ses_tokenizer *words(bool with_special, ses_err *e)
{
    static char text[8192];
    int n = snprintf(
        text, sizeof text,
        "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, \"added_tokens\": [], "
        "\"normalizer\": null, \"pre_tokenizer\": {\"type\": \"WhitespaceSplit\"}, "
        "\"post_processor\": %s, \"decoder\": null, \"model\": {\"type\": \"WordLevel\", "
        "\"unk_token\": \"[UNK]\", \"vocab\": {\"[UNK]\": 0, \"[CLS]\": 1, \"[BOS]\": 2, \"[SEP]\": 3, "
        "\"[MASK]\": 4",
        with_special ? "{\"type\": \"BertProcessing\", \"sep\": [\"[SEP]\", 3], \"cls\": [\"[CLS]\", 1]}"
                     : "null");
    for (int i = 5; i < WORDS; i++) n += snprintf(text + n, sizeof text - (size_t)n, ", \"w%d\": %d", i, i);
    n += snprintf(text + n, sizeof text - (size_t)n, "}}}");
    return ses_tokenizer_from_json(text, (size_t)n, e);
}

static int32_t word_at(int i) { return 5 + (i * 7 + i * i) % (WORDS - 5); }

/* The log-probability of `id` at a row of a pass over ids, with the logits divided by a temperature. */
static double expected_logprob(const ses_model *m, ses_tape *t, const int32_t *ids, int32_t n, int32_t row,
                               int32_t id, double temperature)
{
    ses_err e = { 0 };
    ses_outputs out;
    ses_batch b = { .seqs = 1, .tokens = n, .cu_seqlens = (const int32_t[]){ 0, n }, .ids = ids };
    ses_tape_reset(t, NULL);
    if (!CHECK_MSG(ses_model_forward(m, t, &b, &(ses_output_request){ .logits = true }, &out, &e), "%s",
                   e.msg))
        return 0;
    const ses_tensor *x = out.item[out.n - 1].tensor;
    const ses_real *y = x->f + row * ses_cols(x);
    double max = -INFINITY, sum = 0;
    for (int64_t v = 0; v < ses_cols(x); v++) max = fmax(max, (double)y[v]);
    for (int64_t v = 0; v < ses_cols(x); v++) sum += exp(((double)y[v] - max) / temperature);
    return ((double)y[id] - max) / temperature - log(sum);
}

static size_t make_text(char *text, size_t size, int words_n)
{
    size_t n = 0;
    for (int i = 0; i < words_n; i++) n += (size_t)snprintf(text + n, size - n, "w%d ", (int)word_at(i));
    return n;
}

static void test_causal(ses_device *dev)
{
    static const struct {
        int window, stride;
    } cases[] = { { 20, 10 }, { 12, 11 }, { 7, 3 }, { 9, 40 } };
    ses_err e = { 0 };
    char text[1024];
    const char *dir = "tests/golden/gpt2-lm";
    ses_model *m = ses_model_open(dir, dev, NULL, &e);
    ses_tokenizer *k = words(false, &e);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    size_t n = make_text(text, sizeof text, TEXT);
    int32_t id[TEXT];
    for (int i = 0; i < TEXT; i++) id[i] = word_at(i);
    for (size_t h = 0; h < SES_LEN(cases); h++) {
        int W = cases[h].window, S = cases[h].stride < W ? cases[h].stride : W - 1, done = 1;
        ses_scorer_options o = { .window = W, .stride = cases[h].stride };
        ses_scorer *s = k ? ses_scorer_new(m, k, dir, &o, &e) : NULL;
        ses_text_score x = { 0 };
        double sum = 0, worst = 0;
        if (!CHECK_MSG(s && ses_scorer_score_text(s, text, n, &x, &e), "%s", e.msg)) break;
        CHECK(x.n == TEXT && x.n_scored == TEXT - 1 && isnan(x.token_logprob[0]));
        for (int begin = 0; done < TEXT; begin += S) {
            int end = begin + W < TEXT ? begin + W : TEXT;
            for (; done < end; done++) {
                double want = expected_logprob(m, t, id + begin, end - begin, done - 1 - begin, id[done], 1);
                worst = fmax(worst, fabs(want - (double)x.token_logprob[done]));
                sum += want;
            }
        }
        CHECK_MSG(worst < 1e-5 && fabs(sum - x.logprob) < 1e-4, "window %d: off by %g", W, worst);
        ses_scorer_free(s);
    }
    ses_tape_free(t), ses_tokenizer_free(k), ses_model_free(m);
}

static void test_masked(ses_device *dev)
{
    ses_err e = { 0 };
    char text[1024];
    const char *dir = "tests/golden/bert-masked-lm";
    ses_model *m = ses_model_open(dir, dev, NULL, &e);
    ses_tokenizer *k = words(true, &e);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    for (int window = 0; window < 10; window += 9) {
        int n = 12, room = window ? window - 2 : n;
        ses_scorer_options o = { .window = window };
        ses_scorer *s = m && k ? ses_scorer_new(m, k, dir, &o, &e) : NULL;
        ses_text_score x = { 0 };
        double worst = 0;
        if (!CHECK_MSG(s && ses_scorer_score_text(s, text, make_text(text, sizeof text, n), &x, &e), "%s",
                       e.msg))
            break;
        CHECK(x.n == n + 2 && x.n_scored == n && isnan(x.token_logprob[0]) && isnan(x.token_logprob[n + 1]));
        for (int i = 0; i < n; i++) {
            int begin = i - room / 2 < 0 ? 0 : i - room / 2, end = begin + room < n ? begin + room : n;
            if (end - begin < room && end - room >= 0) begin = end - room;
            int32_t id[64] = { 1 };
            for (int j = begin; j < end; j++) id[1 + j - begin] = j == i ? 4 : word_at(j);
            id[1 + end - begin] = 3;
            double want = expected_logprob(m, t, id, end - begin + 2, 1 + i - begin, word_at(i), 1);
            worst = fmax(worst, fabs(want - (double)x.token_logprob[1 + i]));
        }
        CHECK_MSG(worst < 1e-5, "window %d: off by %g", window, worst);
        ses_scorer_free(s);
    }
    ses_tape_free(t), ses_tokenizer_free(k), ses_model_free(m);
}

/* 200 texts of 1 to 17 words, more than one pass holds: the same scores together and alone. */
static void test_together(ses_device *dev, const char *dir, bool with_special)
{
    enum { TEXTS = 200 };
    ses_err e = { 0 };
    char text[TEXTS][256];
    ses_string all[TEXTS];
    ses_text_score x[TEXTS], alone;
    double worst = 0;
    int64_t other = 0;
    ses_model *m = ses_model_open(dir, dev, NULL, &e);
    ses_tokenizer *k = words(with_special, &e);
    ses_scorer *s =
        m && k ? ses_scorer_new(m, k, dir, &(ses_scorer_options){ .prepend_bos = true }, &e) : NULL;
    ses_scorer *one = s ? ses_scorer_new(m, k, dir, &(ses_scorer_options){ .prepend_bos = true }, &e) : NULL;
    for (int i = 0; i < TEXTS; i++)
        all[i] = (ses_string){ text[i], make_text(text[i], sizeof text[i], 1 + i % 17) };
    bool ok = one && ses_scorer_score(s, all, TEXTS, x, &e);
    for (int i = 0; ok && i < TEXTS; i++) {
        ok = ses_scorer_score_text(one, all[i].p, all[i].n, &alone, &e);
        worst = fmax(worst, fabs(alone.logprob - x[i].logprob));
        other += alone.n != x[i].n || alone.n_scored != x[i].n_scored;
    }
    CHECK_MSG(ok && worst == 0 && !other, "%s: off by %g, %lld other lengths; %s", dir, worst,
              (long long)other, e.msg);
    ses_scorer_free(s), ses_scorer_free(one), ses_tokenizer_free(k), ses_model_free(m);
}

/* Words of several tokens: the later ones are masked, too. A temperature of 2. */
static void test_word_rest(ses_device *dev)
{
    enum { N = 7 };
    static const char pieces[] =
        "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, \"added_tokens\": [], "
        "\"normalizer\": null, \"pre_tokenizer\": {\"type\": \"WhitespaceSplit\"}, \"post_processor\": "
        "{\"type\": \"BertProcessing\", \"sep\": [\"[SEP]\", 3], \"cls\": [\"[CLS]\", 1]}, \"decoder\": "
        "null, "
        "\"model\": {\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\", \"continuing_subword_prefix\": "
        "\"##\", "
        "\"max_input_chars_per_word\": 100, \"vocab\": {\"[UNK]\": 0, \"[CLS]\": 1, \"[BOS]\": 2, "
        "\"[SEP]\": 3, \"[MASK]\": 4, \"a\": 5, \"##b\": 6, \"##c\": 7, \"d\": 8}}}";
    static const int32_t id[N] = { 5, 6, 7, 8, 5, 6, 8 }; /* abc d ab d */
    static const int word[N] = { 0, 0, 0, 1, 2, 2, 3 };
    static const char text[] = "abc d ab d";
    const char *dir = "tests/golden/bert-masked-lm";
    ses_err e = { 0 };
    ses_model *m = ses_model_open(dir, dev, NULL, &e);
    ses_tokenizer *k = ses_tokenizer_from_json(pieces, strlen(pieces), &e);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    for (int way = 0; way < 4; way++) {
        bool rest = way & 1;
        double temperature = way & 2 ? 2 : 1, worst = 0;
        ses_scorer_options o = { .mask_word_rest = rest, .temperature = way & 2 ? 2 : 0 };
        ses_scorer *s = m && k ? ses_scorer_new(m, k, dir, &o, &e) : NULL;
        ses_text_score x = { 0 };
        if (!CHECK_MSG(s && ses_scorer_score_text(s, text, strlen(text), &x, &e), "%s", e.msg)) break;
        CHECK(x.n == N + 2 && x.n_scored == N);
        for (int i = 0; i < N; i++) {
            int32_t in[N + 2] = { 1 };
            for (int j = 0; j < N; j++)
                in[1 + j] = j == i || (rest && j > i && word[j] == word[i]) ? 4 : id[j];
            in[N + 1] = 3;
            double want = expected_logprob(m, t, in, N + 2, 1 + i, id[i], temperature);
            worst = fmax(worst, fabs(want - (double)x.token_logprob[1 + i]));
        }
        CHECK_MSG(worst < 1e-5, "way %d: off by %g", way, worst);
        ses_scorer_free(s);
    }
    ses_tape_free(t), ses_tokenizer_free(k), ses_model_free(m);
}

static void test_options(ses_device *dev)
{
    ses_err e = { 0 };
    const char *dir = "tests/golden/gpt2-lm";
    ses_model *m = ses_model_open(dir, dev, NULL, &e);
    ses_tokenizer *k = words(false, &e);
    static const double wrong[] = { -1, NAN, INFINITY };
    for (size_t i = 0; i < SES_LEN(wrong); i++)
        CHECK(m && k && !ses_scorer_new(m, k, dir, &(ses_scorer_options){ .temperature = wrong[i] }, &e) &&
              strstr(e.msg, "expected a finite number above 0"));
    e = (ses_err){ 0 };
    CHECK(m && k && !ses_scorer_new(m, k, dir, &(ses_scorer_options){ .mask_word_rest = true }, &e) &&
          strstr(e.msg, "is a causal model, expected a masked one"));
    ses_tokenizer_free(k), ses_model_free(m);
}

static void test_refusals(ses_device *dev)
{
    ses_err e = { 0 };
    ses_model *m = ses_model_open("tests/golden/bert-classify", dev, NULL, &e);
    ses_tokenizer *k = words(true, &e);
    CHECK(m && k && !ses_scorer_new(m, k, "tests/golden/bert-classify", NULL, &e) &&
          strstr(e.msg, "BertFor"));
    ses_tokenizer_free(k), ses_model_free(m);
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 2 }, &e);
    test_causal(dev);
    test_masked(dev);
    test_together(dev, "tests/golden/gpt2-lm", false);
    test_together(dev, "tests/golden/bert-masked-lm", true);
    test_word_rest(dev);
    test_options(dev);
    test_refusals(dev);
    ses_device_free(dev);
    return check_report();
}
