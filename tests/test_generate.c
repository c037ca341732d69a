/* Generation: texts of transformers with many options; logits processors; independence of a text from the
 * batch. */
#include "check.h"

#include "generate/logits_processor.h"
#include "sesame/sesame.h"

#include <math.h>

enum { LINE = 1 << 16, MAX_PROMPTS = 256 };

typedef struct opened {
    char name[64];
    ses_model *m;
} opened;

static ses_model *get_model(opened *list, const char *name, ses_device *dev)
{
    char dir[128];
    ses_err e = { 0 };
    for (; list->m; list++)
        if (!strcmp(list->name, name)) return list->m;
    snprintf(dir, sizeof dir, "tests/golden/%s", name);
    snprintf(list->name, sizeof list->name, "%s", name);
    list->m = ses_model_open(dir, dev, NULL, &e);
    CHECK_MSG(list->m, "%s", e.msg);
    return list->m;
}

static ses_ids parse_ids(const ses_json *v)
{
    int64_t n = (int64_t)ses_json_len(v), x = 0;
    int32_t *id = calloc((size_t)n + 1, sizeof *id);
    for (int64_t i = 0; i < n; i++) id[i] = ses_json_int(ses_json_at(v, (size_t)i), &x) ? (int32_t)x : -1;
    return (ses_ids){ id, n };
}

static bool same(ses_ids a, ses_ids b)
{
    return a.n == b.n && !memcmp(a.id, b.id, (size_t)a.n * sizeof *a.id);
}

static void free_ids(ses_ids x) { free((void *)(uintptr_t)x.id); }

/* One line of cases.jsonl: all prompts at once, then each alone. */
static void test_case(const ses_json *row, const ses_model *m, int line)
{
    ses_err e = { 0 };
    const ses_json *prompts = ses_json_get(row, "prompts"), *want = ses_json_get(row, "ids");
    int64_t n = (int64_t)ses_json_len(prompts), bad = 0, each;
    ses_prompt p[MAX_PROMPTS] = { 0 };
    ses_generation_config *g = ses_generation_config_open(m, &e);
    ses_generate_options o = *ses_generation_config_options(g);
    CHECK_MSG(ses_generation_config_read(g, ses_json_get(row, "options"), &o, &e), "%s", e.msg);
    for (int64_t i = 0; i < n; i++) p[i].ids = parse_ids(ses_json_at(prompts, (size_t)i));
    ses_generated *all = ses_generate(m, p, n, &o, &e);
    if (!CHECK_MSG(all && all->n == (int64_t)ses_json_len(want), "line %d: %s", line, e.msg)) return;
    each = all->n / n;
    for (int64_t i = 0; i < all->n; i++) {
        ses_ids ids = parse_ids(ses_json_at(want, (size_t)i));
        bad += !same(all->sequence[i].ids, ids);
        free_ids(ids);
    }
    CHECK_MSG(bad == 0, "line %d: %d texts differ from transformers", line, (int)bad);
    for (int64_t i = 0; i < n; i++) {
        ses_generated *one = ses_generate(m, &p[i], 1, &o, &e);
        for (int64_t r = 0; one && r < each; r++)
            CHECK(same(one->sequence[r].ids, all->sequence[i * each + r].ids) &&
                  one->sequence[r].score == all->sequence[i * each + r].score);
        ses_generated_free(one);
        free_ids(p[i].ids);
    }
    ses_generated_free(all);
    ses_generation_config_free(g);
}

static void test_golden(ses_device *dev)
{
    static char text[LINE];
    opened list[32] = { 0 };
    FILE *f = fopen("tests/generate/cases.jsonl", "r");
    int line = 0;
    for (; f && fgets(text, sizeof text, f); line++) {
        ses_err e = { 0 };
        ses_json_doc *doc = ses_json_parse(text, strlen(text), &e);
        const ses_json *row = doc ? ses_json_root(doc) : NULL;
        const char *name = ses_json_string(ses_json_get(row, "model"), NULL);
        ses_model *m = CHECK_MSG(name, "line %d: %s", line, e.msg) ? get_model(list, name, dev) : NULL;
        if (m) test_case(row, m, line);
        ses_json_free(doc);
    }
    CHECK_MSG(line > 80, "%d cases", line);
    if (f) fclose(f);
    for (opened *x = list; x->m; x++) ses_model_free(x->m);
}

/* Truncation of twelve tokens: 1 for each token the transformers classes keep. */
static void test_truncation(void)
{
    static const float score[12] = { 1.5f, -0.3f, 0.2f,  2.1f, 0.9f, -1.7f,
                                     0.0f, 1.4f,  -2.5f, 0.6f, 1.1f, -0.8f };
    static const struct {
        ses_generate_options o;
        int64_t min_keep;
        const char *kept;
    } cases[] = {
        { { .top_k = 1 }, 1, "000100000000" },
        { { .top_k = 3 }, 1, "100100010000" },
        { { .top_k = 7 }, 1, "101110010110" },
        { { .top_k = 40 }, 1, "111111111111" },
        { { .top_p = .1 }, 1, "000100000000" },
        { { .top_p = .5 }, 1, "100100010000" },
        { { .top_p = .8 }, 1, "100110010010" },
        { { .top_p = .95 }, 1, "111110110110" },
        { { .top_p = .1 }, 3, "100100010000" },
        { { .min_p = .02 }, 1, "111111110111" },
        { { .min_p = .1 }, 1, "101110110110" },
        { { .min_p = .3 }, 1, "100110010010" },
        { { .min_p = .6 }, 1, "000100000000" },
        { { .min_p = .99 }, 3, "100100010000" },
        { { .typical_p = .1 }, 1, "000000010000" },
        { { .typical_p = .3 }, 1, "100000010010" },
        { { .typical_p = .6 }, 1, "100110010110" },
        { { .typical_p = .9 }, 1, "101110010110" },
        { { .typical_p = .1 }, 4, "100010010010" },
        { { .epsilon_cutoff = .01 }, 1, "111110110111" },
        { { .epsilon_cutoff = .05 }, 1, "100110010110" },
        { { .epsilon_cutoff = .1 }, 1, "100100010010" },
        { { .epsilon_cutoff = .5 }, 3, "100100010000" },
        { { .eta_cutoff = .01 }, 1, "111110110111" },
        { { .eta_cutoff = .1 }, 1, "101110010110" },
        { { .eta_cutoff = .3 }, 1, "100110010010" },
        { { .top_h = .2 }, 1, "000100000000" },
        { { .top_h = .5 }, 1, "100100010000" },
        { { .top_h = .9 }, 1, "101110110110" },
    };
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        float x[12];
        char kept[13] = "";
        ses_ranked_token rank[12];
        ses_generate_options o = cases[i].o;
        o.do_sample = true, o.temperature = o.repetition_penalty = o.encoder_repetition_penalty = 1;
        o.forced_bos = -1;
        if (!o.top_p) o.top_p = 1;
        if (!o.typical_p) o.typical_p = 1;
        memcpy(x, score, sizeof x);
        ses_logits_ctx s = {
            .o = &o, .score = x, .vocab_size = 12, .min_keep = cases[i].min_keep, .rank = rank
        };
        ses_logits_process(&s);
        for (int t = 0; t < 12; t++) kept[t] = x[t] > -INFINITY ? '1' : '0';
        if (!CHECK_STR(kept, cases[i].kept)) printf("    case %d\n", (int)i);
    }
}

/* Penalties by the times a token was generated. The prompt is 3 3 5, the text 2 7 2 2. */
static void test_token_counts(void)
{
    static const int32_t id[] = { 3, 3, 5, 2, 7, 2, 2 };
    static const struct {
        double presence, frequency, expected[8]; /* change of each score */
    } cases[] = {
        { 0.5, 0, { [2] = -0.5, [7] = -0.5 } },
        { 0, 0.25, { [2] = -0.75, [7] = -0.25 } },
        { 1.5, 0.5, { [2] = -3, [7] = -2 } },
        { -2, 1, { [2] = -1, [7] = 1 } },
    };
    for (size_t i = 0; i < SES_LEN(cases); i++)
        for (int64_t n = 3; n <= 7; n += 4) { /* nothing generated; four tokens */
            float x[8] = { 4, -3, 2, -1, 8, -7, 6, -5 }, old[8];
            ses_ranked_token rank[8] = { { 0, 9 }, { 0, 9 }, { 0, 9 }, { 0, 9 } };
            ses_generate_options o = { .repetition_penalty = 1, .encoder_repetition_penalty = 1 };
            o.presence_penalty = cases[i].presence, o.frequency_penalty = cases[i].frequency;
            o.forced_bos = -1;
            memcpy(old, x, sizeof x);
            ses_logits_ctx c = {
                .o = &o, .score = x, .vocab_size = 8, .id = id, .n = n, .prompt_len = 3, .rank = rank
            };
            ses_logits_process(&c);
            for (int t = 0; t < 8; t++)
                CHECK_MSG((double)(x[t] - old[t]) == (n == 7 ? cases[i].expected[t] : 0),
                          "case %zu, token %d: %g", i, t, (double)(x[t] - old[t]));
        }
}

/* Negative penalties make a text repeat itself, positive ones make it vary. */
static void test_penalties(ses_device *dev)
{
    ses_err e = { 0 };
    ses_model *m = ses_model_open("tests/golden/gpt2-lm", dev, NULL, &e);
    ses_generation_config *g = ses_generation_config_open(m, &e);
    ses_generate_options o = *ses_generation_config_options(g);
    const int32_t id[3] = { 5, 9, 17 };
    ses_prompt p = { .ids = { id, 3 } };
    int64_t repeated[2] = { 0, 0 };
    for (int i = 0; i < 2; i++) {
        o.max_new_tokens = 30, o.eos.n = 0, o.presence_penalty = i ? 2 : 0, o.frequency_penalty = i ? 2 : -2;
        ses_generated *r = ses_generate(m, &p, 1, &o, &e);
        if (!CHECK_MSG(r, "%s", e.msg)) break;
        ses_ids text = r->sequence[0].ids;
        for (int64_t t = 3; t < text.n; t++)
            for (int64_t k = 3; k < t; k++)
                if (text.id[k] == text.id[t]) {
                    repeated[i]++;
                    break;
                }
        ses_generated_free(r);
    }
    CHECK_MSG(repeated[0] > repeated[1] + 10, "%d and %d repeated tokens", (int)repeated[0],
              (int)repeated[1]);
    ses_generation_config_free(g), ses_model_free(m);
}

typedef struct token_log {
    int64_t n, stop_at;
    int32_t last;
} token_log;

static bool on_token(void *ctx, const ses_token_event *t)
{
    token_log *h = ctx;
    h->n++, h->last = t->id[t->n - 1];
    return h->n != h->stop_at;
}

/* A sample depends on its prompt only: alone, among others, with a small cache. Sequences of a prompt
 * differ. */
static void test_samples(ses_device *dev)
{
    ses_err e = { 0 };
    ses_model *m = ses_model_open("tests/golden/gpt2-lm", dev, NULL, &e);
    ses_generation_config *g = ses_generation_config_open(m, &e);
    ses_generate_options o = *ses_generation_config_options(g);
    int32_t ids[12][6];
    ses_prompt p[12] = { 0 };
    int differ = 0;
    for (int i = 0; i < 12; i++) {
        for (int t = 0; t < 6; t++) ids[i][t] = 3 + (i * 7 + t * 5) % 60;
        p[i].ids = (ses_ids){ ids[i], 1 + i % 6 };
    }
    o.do_sample = true, o.max_new_tokens = 10, o.seed = 42, o.num_return_sequences = 3, o.top_k = 0;
    for (int beams = 1; beams < 5; beams += 3) {
        o.num_beams = beams;
        ses_generated *all = ses_generate(m, p, 12, &o, &e);
        o.cache_tokens = 1;
        ses_generated *few = ses_generate(m, p, 12, &o, &e);
        o.cache_tokens = 0;
        CHECK_MSG(all && few && all->n == 36, "%s", e.msg);
        for (int i = 0; all && few && i < 12; i++) {
            ses_generated *one = ses_generate(m, &p[i], 1, &o, &e);
            for (int r = 0; one && r < 3; r++) {
                const ses_generated_sequence *x = &all->sequence[i * 3 + r];
                CHECK(same(one->sequence[r].ids, x->ids) && same(few->sequence[i * 3 + r].ids, x->ids) &&
                      x->prompt == i);
                differ += !same(x->ids, all->sequence[i * 3].ids);
                double sum = 0;
                for (int64_t t = 0; t < x->ids.n - x->prompt_len; t++) sum += (double)x->logprob[t];
                CHECK(sum < 0 && (beams > 1 || x->score == sum));
            }
            ses_generated_free(one);
        }
        ses_generated_free(all), ses_generated_free(few);
    }
    CHECK_MSG(differ > 20, "only %d of 48 samples differ from the first", differ);
    token_log h = { .stop_at = 7 };
    o.num_beams = 1, o.num_return_sequences = 1, o.on_token = on_token, o.ctx = &h;
    ses_generated *r = ses_generate(m, p, 12, &o, &e);
    CHECK(r && r->cancelled && h.n == 7 && r->tokens_generated == 7);
    ses_generated_free(r), ses_generation_config_free(g), ses_model_free(m);
}

/* Beam groups begin differently if equal tokens are penalized. */
static void test_groups(ses_device *dev)
{
    ses_err e = { 0 };
    ses_model *m = ses_model_open("tests/golden/gpt2-lm", dev, NULL, &e);
    ses_generation_config *g = ses_generation_config_open(m, &e);
    ses_generate_options o = *ses_generation_config_options(g);
    const int32_t id[3] = { 5, 9, 17 };
    ses_prompt p = { .ids = { id, 3 } };
    o.max_new_tokens = 8, o.num_beams = 2, o.eos.n = 0;
    ses_generated *two = ses_generate(m, &p, 1, &o, &e);
    o.num_beams = 6, o.num_beam_groups = 3, o.num_return_sequences = 6;
    ses_generated *same_as = ses_generate(m, &p, 1, &o, &e);
    o.diversity_penalty = 100;
    ses_generated *diverse = ses_generate(m, &p, 1, &o, &e);
    if (CHECK_MSG(two && same_as && diverse, "%s", e.msg)) {
        CHECK(same(same_as->sequence[0].ids, two->sequence[0].ids) &&
              same(same_as->sequence[2].ids, two->sequence[0].ids));
        bool found = false;
        int32_t first[6], kinds = 0;
        for (int i = 0; i < 6; i++) {
            found |= same(diverse->sequence[i].ids, two->sequence[0].ids);
            first[i] = diverse->sequence[i].ids.id[3];
            bool seen = false;
            for (int j = 0; j < i; j++) seen |= first[j] == first[i];
            kinds += !seen;
        }
        CHECK_MSG(found && kinds >= 3, "%d beginnings", (int)kinds);
    }
    ses_generated_free(two), ses_generated_free(same_as), ses_generated_free(diverse);
    ses_generation_config_free(g), ses_model_free(m);
}

static void expect_error(const ses_model *m, ses_prompt p, const ses_generate_options *o, const char *why)
{
    ses_err e = { 0 };
    ses_generated *r = ses_generate(m, &p, 1, o, &e);
    CHECK_MSG(!r && strstr(e.msg, why), "\"%s\", expected \"%s\"", e.msg, why);
    ses_generated_free(r);
}

static void test_errors(ses_device *dev)
{
    ses_err e = { 0 };
    ses_model *m = ses_model_open("tests/golden/gpt2-lm", dev, NULL, &e);
    ses_model *bert = ses_model_open("tests/golden/bert-masked-lm", dev, NULL, &e);
    ses_generation_config *g = ses_generation_config_open(m, &e);
    const ses_generate_options ok = *ses_generation_config_options(g);
    int32_t id[100] = { 1, 2, 3 };
    const int32_t bad[1] = { 5000 };
    ses_prompt p = { .ids = { id, 3 } };
    const char *stop[1] = { "x" };
    ses_generate_options o = ok;
#define TRY(change, why) o = ok, change, expect_error(m, p, &o, why)
    TRY(o.num_beams = 0, "num_beams is 0");
    TRY(o.num_return_sequences = 2, "greedy decoding gives one text");
    TRY((o.num_beams = 2, o.num_return_sequences = 3), "at most num_beams");
    TRY((o.num_beams = 4, o.num_beam_groups = 3), "groups");
    TRY((o.do_sample = true, o.num_return_sequences = 1000000000), "1000000000, expected 1 to 4096");
    TRY((o.decay_start = INT64_MAX, o.decay_factor = 2), "exponential_decay_length_penalty");
    TRY((o.decay_start = INT64_MIN, o.decay_factor = 2), "exponential_decay_length_penalty");
    TRY(o.temperature = 0, "temperature is 0");
    TRY(o.top_p = 1.5, "top_p is 1.5");
    TRY(o.repetition_penalty = 0, "repetition_penalty");
    TRY(o.presence_penalty = 2.5, "presence_penalty is 2.5, expected -2 to 2");
    TRY(o.frequency_penalty = NAN, "frequency_penalty");
    TRY(o.max_length = 3, "nothing left to generate");
    TRY((o.forced_eos = (ses_ids){ id, 2 }, o.suppress = (ses_ids){ id, 3 }), "1 is forced and suppressed");
    TRY((o.forced_bos = 2, o.suppress = (ses_ids){ id, 3 }), "every token of forced_bos_token_id");
    TRY((o.n_stop_strings = 1, o.stop_strings = stop), "tokenizer");
    TRY((o.num_beams = 2, o.on_token = on_token), "on_token");
    TRY(p.ids.n = 0, "empty");
    TRY((p.ids = (ses_ids){ bad, 1 }), "5000");
    TRY((p.ids = (ses_ids){ id, 100 }), "at most");
    expect_error(bert, (ses_prompt){ .ids = { id, 3 } }, &ok, "BertForMaskedLM");
    ses_model *xl = ses_model_open("tests/golden/transfo-xl-pre-norm", dev, NULL, &e);
    expect_error(xl, (ses_prompt){ .ids = { id, 3 } }, &ok, "\"mem_len\": 0");
    ses_model_free(xl);
    ses_model *t5 = ses_model_open("tests/golden/t5-v1.0", dev, NULL, &e);
    o = ok, o.decoder_start = 5000;
    expect_error(t5, (ses_prompt){ .ids = { id, 3 } }, &o, "decoder_start_token_id is 5000, expected 0 to ");
    o.decoder_start = o.bos = -1;
    expect_error(t5, (ses_prompt){ .ids = { id, 3 } }, &o, "decoder_start_token_id is missing");
    ses_model_free(t5);
    ses_generation_config_free(g), ses_model_free(m), ses_model_free(bert);
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 2 }, &e);
    test_golden(dev);
    test_truncation();
    test_token_counts();
    test_penalties(dev);
    test_samples(dev);
    test_groups(dev);
    test_errors(dev);
    ses_device_free(dev);
    return check_report();
}
