/* Generators: prompts that join at any time, with options of their own, get the bits they get alone; errors
 * and cancelling concern one prompt; log-probabilities of prompts and of alternatives. */
#include "check.h"

#include "sesame/sesame.h"

#include <math.h>
#include <pthread.h>

enum { MAX_PROMPTS = 40, VOCAB = 71 };

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static bool same_bytes(const void *a, const void *b, int64_t n, size_t size)
{
    return (!a && !b) || (a && b && !memcmp(a, b, (size_t)n * size));
}

static bool same_sequence(const ses_generated_sequence *a, const ses_generated_sequence *b)
{
    int64_t n = a->ids.n - a->prompt_len, tops = n * a->n_top, m = a->prompt_len;
    return a->ids.n == b->ids.n && a->prompt_len == b->prompt_len && a->n_top == b->n_top &&
           a->finish == b->finish && !memcmp(&a->score, &b->score, sizeof a->score) &&
           same_bytes(a->ids.id, b->ids.id, a->ids.n, sizeof *a->ids.id) &&
           same_bytes(a->logprob, b->logprob, n, sizeof *a->logprob) &&
           same_bytes(a->top, b->top, tops, sizeof *a->top) &&
           same_bytes(a->prompt_logprob, b->prompt_logprob, m, sizeof *a->prompt_logprob) &&
           same_bytes(a->prompt_top, b->prompt_top, m * a->n_top, sizeof *a->prompt_top);
}

static bool same_texts(const ses_generated *a, const ses_generated *b)
{
    bool same = a && b && a->n == b->n;
    for (int64_t i = 0; same && i < a->n; i++) same = same_sequence(&a->sequence[i], &b->sequence[i]);
    return same;
}

/* ---- prompts with random options ---- */

typedef struct job {
    int32_t id[16];
    ses_prompt prompt;
    ses_generate_options o;
    bool streams;
    ses_generator *g;
    int64_t number;                  /* in the generator */
    int64_t tokens, stop_at, others; /* events so far; cancel at this one; cancel this prompt with it */
    int finished;
    ses_generated *r;
    ses_err why;
} job;

static bool on_token(void *ctx, const ses_token_event *t)
{
    job *j = ctx;
    j->tokens++;
    CHECK(t->prompt == j->number && t->id[t->prompt_len] >= 0 && t->n > t->prompt_len);
    if (t->n_top) CHECK(t->top[0].logprob >= t->logprob && (j->o.do_sample || t->top[0].id >= 0));
    if (j->tokens != j->stop_at) return true;
    if (j->others) ses_generator_cancel(j->g, j->others);
    return false;
}

static void on_finish(void *ctx, int64_t prompt, ses_generated *r, const ses_err *why)
{
    job *j = ctx;
    CHECK(prompt == j->number);
    j->finished++, j->r = r;
    if (why) j->why = *why;
}

static void random_job(job *j, uint32_t *seed, const ses_generate_options *base, int64_t vocab, bool decoder)
{
    static const char *const stops[] = { "w7", "w1 ", "w33 w" };
    *j = (job){ .o = *base };
    int64_t n = 1 + next_random(seed) % 11;
    for (int64_t i = 0; i < n; i++) j->id[i] = 3 + (int32_t)(next_random(seed) % (uint32_t)(vocab - 3));
    j->prompt.ids = (ses_ids){ j->id, n };
    ses_generate_options *o = &j->o;
    o->max_length = 0, o->max_new_tokens = 1 + next_random(seed) % 12, o->seed = next_random(seed);
    o->num_beams = o->num_return_sequences = o->num_beam_groups = 1, o->do_sample = false;
    switch (next_random(seed) % 5) {
    case 0: break;
    case 1: o->do_sample = true, o->num_return_sequences = 1 + next_random(seed) % 4, o->top_k = 30; break;
    case 2: o->num_beams = 2 + next_random(seed) % 3, o->num_return_sequences = 2; break;
    case 3: o->do_sample = true, o->temperature = 1.7, o->top_p = 0.9; break;
    default: o->num_beams = 4, o->num_beam_groups = 2, o->diversity_penalty = 1.5; break;
    }
    if (next_random(seed) % 3 == 0) o->repetition_penalty = 1.3;
    if (next_random(seed) % 3 == 0) o->presence_penalty = 0.7, o->frequency_penalty = -0.4;
    if (next_random(seed) % 3 == 0) o->no_repeat_ngram_size = 2;
    if (next_random(seed) % 3 == 0) o->top_logprobs = 1 + next_random(seed) % 80;
    if (next_random(seed) % 2 && decoder) o->prompt_logprobs = true;
    if (next_random(seed) % 3 == 0) o->stop_strings = stops, o->n_stop_strings = 3;
    j->streams = o->num_beams == 1 && next_random(seed) % 2;
}

static void add(ses_generator *g, job *j)
{
    ses_err e = { 0 };
    ses_generator_callbacks c = { j->streams ? on_token : NULL, on_finish, j };
    j->g = g;
    j->number = ses_generator_add(g, &j->prompt, &j->o, &c, &e);
    CHECK_MSG(j->number >= 0, "%s", e.msg);
}

/* A tokenizer with the words w0 ... w70. */
static ses_tokenizer *word_tokenizer(void)
{
    char text[4096];
    ses_err e = { 0 };
    size_t n = (size_t)snprintf(text, sizeof text,
                                "{\"model\": {\"type\": \"WordLevel\", \"unk_token\": \"w0\", "
                                "\"vocab\": {");
    for (int i = 0; i < VOCAB; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s\"w%d\": %d", i ? ", " : "", i, i);
    n += (size_t)snprintf(text + n, sizeof text - n, "}}}");
    ses_tokenizer *t = ses_tokenizer_from_json(text, n, &e);
    CHECK_MSG(t, "%s", e.msg);
    return t;
}

/* ---- joining at any time ---- */

static void run_jobs(ses_generator *g, job *j, int n, uint32_t *seed)
{
    int added = 0;
    bool busy = true;
    while (busy || added < n) {
        for (uint32_t k = next_random(seed) % 4; k > 0 && added < n; k--) add(g, &j[added++]);
        busy = ses_generator_step(g);
        ses_generator_stats s = ses_generator_get_stats(g);
        CHECK(s.active_sequences <= s.max_sequences && s.cache_used <= s.cache_tokens);
    }
    CHECK(!ses_generator_active(g) && !ses_generator_waiting(g));
}

static void test_join(const char *dir, ses_device *dev, uint32_t seed)
{
    ses_err e = { 0 };
    ses_model *m = ses_model_open(dir, dev, NULL, &e);
    ses_tokenizer *t = word_tokenizer();
    ses_generation_config *c = m ? ses_generation_config_open(m, &e) : NULL;
    if (!CHECK_MSG(c, "%s: %s", dir, e.msg)) return;
    ses_generate_options base = *ses_generation_config_options(c);
    base.tokenizer = t;
    bool decoder = strstr(dir, "gpt2") || strstr(dir, "opt");
    for (int round = 0; round < 6; round++) {
        static job j[MAX_PROMPTS];
        int64_t generated = 0;
        ses_generator *g =
            ses_generator_new(m, 100 + next_random(&seed) % 200, 4 + next_random(&seed) % 9, &e);
        if (!CHECK_MSG(g, "%s", e.msg)) break;
        ses_generator_set_prefill_tokens(g, round % 2 ? 3 : 1 + next_random(&seed) % 30);
        for (int i = 0; i < MAX_PROMPTS; i++)
            random_job(&j[i], &seed, &base, ses_model_vocab_size(m), decoder);
        run_jobs(g, j, MAX_PROMPTS, &seed);
        for (int i = 0; i < MAX_PROMPTS; i++) {
            ses_generated *alone = ses_generate(m, &j[i].prompt, 1, &j[i].o, &e);
            CHECK_MSG(j[i].finished == 1 && same_texts(j[i].r, alone), "%s: prompt %d of round %d: %s %s",
                      dir, i, round, e.msg, j[i].why.msg);
            generated += alone ? alone->tokens_generated : 0;
            if (j[i].streams && alone) CHECK(j[i].tokens == alone->tokens_generated);
            ses_generated_free(alone), ses_generated_free(j[i].r);
        }
        ses_generator_stats s = ses_generator_get_stats(g);
        CHECK(s.finished == MAX_PROMPTS && !s.failed && !s.cancelled && s.tokens_generated == generated &&
              s.cache_used == 0 && s.active_sequences == 0 && s.steps > 0);
        ses_generator_free(g);
    }
    ses_generation_config_free(c), ses_tokenizer_free(t), ses_model_free(m);
}

/* ---- cancelling ---- */

static void test_cancel(ses_device *dev)
{
    ses_err e = { 0 };
    ses_model *m = ses_model_open("tests/golden/gpt2-lm", dev, NULL, &e);
    ses_generation_config *c = ses_generation_config_open(m, &e);
    ses_generate_options o = *ses_generation_config_options(c);
    ses_generator *g = ses_generator_new(m, 100, 5, &e);
    static job j[8];
    uint32_t seed = 5;
    for (int i = 0; i < 8; i++) {
        random_job(&j[i], &seed, &o, VOCAB, true);
        j[i].prompt.ids.n = 4, j[i].o = o, j[i].o.max_new_tokens = 12, j[i].o.eos.n = 0, j[i].streams = true;
        add(g, &j[i]);
    }
    j[1].stop_at = 3, j[1].others = 2;                               /* prompt 1 stops itself and prompt 2 */
    CHECK(ses_generator_cancel(g, 7) && ses_generator_cancel(g, 7)); /* waiting */
    for (int i = 0; i < 4; i++) ses_generator_step(g);
    CHECK(ses_generator_cancel(g, 0)); /* in progress */
    CHECK(!ses_generator_cancel(g, 1) && !ses_generator_cancel(g, 99) && j[1].finished == 1);
    while (ses_generator_step(g)) continue;
    static const int64_t generated[8] = { 4, 3, 2, 12, 12, 12, 12, 0 };
    for (int i = 0; i < 8; i++) {
        j[i].o.max_new_tokens = generated[i] ? generated[i] : 1;
        ses_generated *alone = ses_generate(m, &j[i].prompt, 1, &j[i].o, &e), *r = j[i].r;
        if (!CHECK(j[i].finished == 1 && r && alone)) continue;
        CHECK(r->cancelled == (generated[i] < 12) && r->tokens_generated == generated[i]);
        CHECK(r->sequence->finish == (generated[i] < 12 ? SES_FINISH_CANCELLED : SES_FINISH_LENGTH));
        CHECK(i == 7 ? !r->sequence->ids.n
                     : same_bytes(r->sequence->ids.id, alone->sequence->ids.id, alone->sequence->ids.n, 4));
        ses_generated_free(alone), ses_generated_free(r);
    }
    CHECK(ses_generator_get_stats(g).cancelled == 4);
    for (int i = 0; i < 8; i++) j[i] = (job){ .o = o, .prompt = j[i].prompt }, add(g, &j[i]);
    ses_generator_step(g);
    ses_generator_free(g); /* all receive on_finish */
    for (int i = 0; i < 8; i++) {
        CHECK(j[i].finished == 1 && j[i].r && j[i].r->cancelled);
        ses_generated_free(j[i].r);
    }
    ses_generation_config_free(c), ses_model_free(m);
}

/* A long prompt is read in parts, while another text gets a token in each step. */
static void test_long_prompt(ses_device *dev)
{
    ses_err e = { 0 };
    ses_model *m = ses_model_open("tests/golden/gpt2-lm", dev, NULL, &e);
    ses_generation_config *c = ses_generation_config_open(m, &e);
    ses_generator *g = ses_generator_new(m, 0, 0, &e);
    static job j[2];
    for (int i = 0; i < 2; i++) {
        j[i] = (job){ .id = { 9, 8, 7, 6, 5, 4, 3, 9, 8, 7, 6 }, .streams = true };
        j[i].o = *ses_generation_config_options(c), j[i].o.max_new_tokens = 10, j[i].o.eos.n = 0;
        j[i].prompt.ids = (ses_ids){ j[i].id, i ? 11 : 2 };
    }
    ses_generator_set_prefill_tokens(g, 3);
    add(g, &j[0]);
    ses_generator_step(g), ses_generator_step(g);
    add(g, &j[1]);
    for (int step = 1; step < 7; step++) {
        ses_generator_step(g);
        CHECK_MSG(j[0].tokens == 2 + step && j[1].tokens == (step < 4 ? 0 : step - 3), "step %d: %d and %d",
                  step, (int)j[0].tokens, (int)j[1].tokens);
    }
    while (ses_generator_step(g)) continue;
    ses_generator_stats s = ses_generator_get_stats(g);
    CHECK_MSG(s.steps == 15 && s.sequences == 20 && s.tokens_read == 2 + 11 + 18, "%d steps, %d, %d",
              (int)s.steps, (int)s.sequences, (int)s.tokens_read);
    ses_generated_free(j[0].r), ses_generated_free(j[1].r);
    ses_generator_free(g), ses_generation_config_free(c), ses_model_free(m);
}

/* ---- errors ---- */

static void expect_refused(ses_generator *g, const job *j, const char *why)
{
    ses_err e = { 0 };
    ses_generator_callbacks c = { j->streams ? on_token : NULL, on_finish, NULL };
    CHECK(ses_generator_add(g, &j->prompt, &j->o, &c, &e) == -1);
    CHECK_MSG(strstr(e.msg, why), "\"%s\", expected \"%s\"", e.msg, why);
}

static void test_refused(ses_device *dev)
{
    ses_err e = { 0 };
    ses_model *m = ses_model_open("tests/golden/gpt2-lm", dev, NULL, &e);
    ses_generation_config *c = ses_generation_config_open(m, &e);
    ses_generator *g = ses_generator_new(m, 40, 3, &e);
    const job ok = { .id = { 5, 6, 7 }, .o = *ses_generation_config_options(c) };
    job j;
#define REFUSED(change, why) \
    (j = ok, j.prompt.ids = (ses_ids){ j.id, 3 }, j.o.max_new_tokens = 10, change, expect_refused(g, &j, why))
    REFUSED(j.prompt.ids.n = 0, "empty");
    REFUSED(j.id[1] = VOCAB, "prompt: token id 71, expected 0 to 70");
    REFUSED(j.o.num_beams = 4, "4 sequences");
    REFUSED((j.o.num_beams = 3, j.o.max_new_tokens = 12), "42 tokens of KV cache, expected at most 40");
    REFUSED(j.o.top_logprobs = 1001, "top_logprobs is 1001");
    REFUSED(j.o.top_logprobs = -1, "top_logprobs is -1");
    REFUSED((j.o.num_beams = 2, j.streams = true), "on_token");
    REFUSED((j.o.max_new_tokens = 0, j.o.max_length = 2), "nothing left to generate");
    CHECK(!ses_generator_step(g) && ses_generator_get_stats(g).steps == 0);
    ses_generator_free(g);
    CHECK(!ses_generator_new(m, -1, 1, &e) && strstr(e.msg, "-1 cache tokens"));
    ses_model *t5 = ses_model_open("tests/golden/t5-v1.0", dev, NULL, &e);
    g = ses_generator_new(t5, 0, 0, &e);
    REFUSED(j.o.prompt_logprobs = true, "prompt_logprobs is not supported with T5");
    ses_generator_free(g), ses_model_free(t5), ses_generation_config_free(c), ses_model_free(m);
}

/* NaN in the embedding of one token: prompts with this token fail, the others do not notice. */
static void test_isolation(ses_device *dev)
{
    ses_err e = { 0 };
    ses_model *m = ses_model_open("tests/golden/bart-untied", dev, &(ses_model_options){ .train = true }, &e);
    ses_generation_config *c = ses_generation_config_open(m, &e);
    ses_generate_options o = *ses_generation_config_options(c);
    static job j[6];
    ses_generated *alone[6];
    enum { BROKEN = 9 };
    o.max_new_tokens = 6, o.eos.n = 0, o.suppress = (ses_ids){ (const int32_t[]){ BROKEN }, 1 };
    for (int i = 0; i < 6; i++) {
        j[i] = (job){ .id = { 5 + i, i % 3 == 1 ? BROKEN : 20, 8 }, .o = o };
        j[i].prompt.ids = (ses_ids){ j[i].id, 3 }, j[i].o.num_beams = 1 + i % 2;
        alone[i] = ses_generate(m, &j[i].prompt, 1, &j[i].o, &e);
    }
    const ses_param *x = ses_store_find(ses_model_store(m), "embed.token"); /* the encoder's */
    if (CHECK(x)) x->tensor->f[BROKEN * x->tensor->dim[1]] = (ses_real)NAN;
    ses_generator *g = ses_generator_new(m, 0, 0, &e);
    for (int i = 0; i < 6; i++) add(g, &j[i]);
    while (ses_generator_step(g)) continue;
    for (int i = 0; i < 6; i++) {
        if (i % 3 == 1)
            CHECK_MSG(!j[i].r && strstr(j[i].why.msg, "NaN"), "\"%s\"", j[i].why.msg);
        else
            CHECK_MSG(same_texts(j[i].r, alone[i]), "%d: %s", i, j[i].why.msg);
        ses_generated_free(j[i].r), ses_generated_free(alone[i]);
    }
    CHECK(ses_generator_get_stats(g).failed == 2 && ses_generator_get_stats(g).finished == 4);
    ses_generator_free(g), ses_generation_config_free(c), ses_model_free(m);
}

/* ---- log-probabilities ---- */

/* Log-softmax of one row of logits, as an independent sum. */
static double row_logprob(const ses_real *x, int64_t n, int32_t id)
{
    double max = (double)x[0], sum = 0;
    for (int64_t i = 1; i < n; i++) max = fmax(max, (double)x[i]);
    for (int64_t i = 0; i < n; i++) sum += exp((double)x[i] - max);
    return (double)x[id] - max - log(sum);
}

static void check_top(const ses_top_token *top, int64_t n, const ses_real *row, int64_t vocab)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t better = 0;
        for (int64_t i = 0; i < vocab; i++)
            better += row[i] > row[top[k].id] || (row[i] == row[top[k].id] && i < top[k].id);
        CHECK(better == k && fabs((double)top[k].logprob - row_logprob(row, vocab, top[k].id)) < 1e-5);
    }
}

/* A prompt that is scored in several passes, against the logits of one pass. */
static void test_prompt_logprobs(ses_device *dev)
{
    enum { N = 333, V = 97, TOP = 4 };
    static const char config[] =
        "{\"model_type\": \"gpt2\", \"architectures\": [\"GPT2LMHeadModel\"], \"vocab_size\": 97, "
        "\"n_embd\": 16, "
        "\"n_layer\": 2, \"n_head\": 2, \"n_positions\": 512, \"initializer_range\": 0.3}";
    ses_err e = { 0 };
    ses_json_doc *doc = ses_json_parse(config, strlen(config), &e);
    ses_model *m = ses_model_new(ses_json_root(doc), dev, &(ses_model_options){ .seed = 1 }, &e);
    ses_generation_config *c = ses_generation_config_open(m, &e);
    ses_generate_options o = *ses_generation_config_options(c);
    static int32_t id[N];
    static ses_real logits[N * V];
    const int32_t cu[2] = { 0, N };
    for (int i = 0; i < N; i++) id[i] = (i * i + 7 * i) % V;
    o.max_new_tokens = 1, o.prompt_logprobs = true, o.top_logprobs = TOP;
    ses_generated *r = ses_generate(m, &(ses_prompt){ .ids = { id, N } }, 1, &o, &e);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    ses_outputs out;
    ses_batch b = { .seqs = 1, .tokens = N, .cu_seqlens = cu, .ids = id };
    bool ok = ses_model_forward(m, t, &b, &(ses_output_request){ .logits = true }, &out, &e);
    const ses_output *y = ok ? ses_outputs_find(&out, "logits") : NULL;
    if (CHECK_MSG(r && y && ses_tape_read(t, y->tensor, logits), "%s", e.msg)) {
        const ses_generated_sequence *s = r->sequence;
        CHECK(isnan(s->prompt_logprob[0]) && s->prompt_top[0].id == -1 && s->n_top == TOP);
        for (int i = 1; i < N; i++) {
            const ses_real *row = logits + (i - 1) * V;
            CHECK(fabs((double)s->prompt_logprob[i] - row_logprob(row, V, id[i])) < 1e-5);
            check_top(s->prompt_top + i * TOP, TOP, row, V);
        }
        check_top(s->top, TOP, logits + (N - 1) * V, V);
        CHECK(s->top[0].id == s->ids.id[N] && s->top[0].logprob == s->logprob[0]);
    }
    ses_tape_free(t), ses_generated_free(r), ses_generation_config_free(c), ses_model_free(m),
        ses_json_free(doc);
}

/* Scoring a generated text as a prompt gives the numbers of its generation: beams and samples, too. */
static void test_rescore(ses_device *dev)
{
    ses_err e = { 0 };
    ses_model *m = ses_model_open("tests/golden/gpt2-lm", dev, NULL, &e);
    ses_generation_config *c = ses_generation_config_open(m, &e);
    const int32_t id[3] = { 5, 9, 17 };
    for (int i = 0; i < 4; i++) {
        ses_generate_options o = *ses_generation_config_options(c);
        o.max_new_tokens = 9, o.top_logprobs = 5, o.eos.n = 0;
        if (i == 1) o.do_sample = true, o.num_return_sequences = 3, o.top_k = 0;
        if (i == 2) o.num_beams = 4, o.num_return_sequences = 3;
        if (i == 3)
            o.num_beams = 4, o.num_beam_groups = 2, o.diversity_penalty = 2, o.num_return_sequences = 3;
        ses_generated *r = ses_generate(m, &(ses_prompt){ .ids = { id, 3 } }, 1, &o, &e);
        CHECK_MSG(r, "%s", e.msg);
        for (int64_t k = 0; r && k < r->n; k++) {
            const ses_generated_sequence *s = &r->sequence[k];
            int64_t n = s->ids.n - 3;
            ses_generate_options again = *ses_generation_config_options(c);
            again.max_new_tokens = 1, again.top_logprobs = 5, again.prompt_logprobs = true;
            ses_generated *x = ses_generate(m, &(ses_prompt){ .ids = s->ids }, 1, &again, &e);
            if (!CHECK_MSG(x && n == 9, "%s", e.msg)) continue;
            CHECK(same_bytes(x->sequence->prompt_logprob + 3, s->logprob, n, sizeof(float)));
            CHECK(same_bytes(x->sequence->prompt_top + 15, s->top, 5 * n, sizeof(ses_top_token)));
            ses_generated_free(x);
        }
        ses_generated_free(r);
    }
    ses_generation_config_free(c), ses_model_free(m);
}

/* ---- threads and callbacks ---- */

/* Each finished prompt adds the next one. */
typedef struct chain {
    ses_generator *g;
    ses_prompt prompt;
    ses_generate_options o;
    int left, finished, refused;
    const ses_generated *expected;
} chain;

static void on_link(void *ctx, int64_t prompt, ses_generated *r, const ses_err *why)
{
    chain *x = ctx;
    (void)prompt, (void)why;
    x->finished += same_texts(r, x->expected);
    ses_generated_free(r);
    ses_generator_callbacks c = { NULL, on_link, x };
    if (x->left-- > 0) x->refused += ses_generator_add(x->g, &x->prompt, &x->o, &c, NULL) < 0;
}

typedef struct worker {
    const ses_model *m;
    chain x;
} worker;

static void *run_worker(void *ctx)
{
    worker *w = ctx;
    w->x.g = ses_generator_new(w->m, 0, 0, NULL);
    for (int i = 0; w->x.g && i < 3; i++) on_link(&w->x, 0, NULL, NULL);
    while (w->x.g && ses_generator_step(w->x.g)) continue;
    ses_generator_free(w->x.g);
    return NULL;
}

static void test_threads(ses_device *dev)
{
    ses_err e = { 0 };
    ses_model *m = ses_model_open("tests/golden/gpt2-lm", dev, NULL, &e);
    ses_generation_config *c = ses_generation_config_open(m, &e);
    static const int32_t id[4] = { 4, 40, 14, 24 };
    worker w[2];
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) {
        w[i] = (worker){ .m = m, .x = { .left = 30, .o = *ses_generation_config_options(c) } };
        w[i].x.prompt.ids = (ses_ids){ id, 2 + i }, w[i].x.o.max_new_tokens = 7;
        w[i].x.expected = ses_generate(m, &w[i].x.prompt, 1, &w[i].x.o, &e);
        CHECK(!pthread_create(&thread[i], NULL, run_worker, &w[i]));
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        CHECK_MSG(w[i].x.finished == 30 && !w[i].x.refused, "%d of 30", w[i].x.finished);
        ses_generated_free((ses_generated *)(uintptr_t)w[i].x.expected);
    }
    ses_generation_config_free(c), ses_model_free(m);
}

int main(void)
{
    static const char *const dirs[] = { "tests/golden/gpt2-lm",       "tests/golden/opt-lm",
                                        "tests/golden/t5-v1.0",       "tests/golden/bart-lm",
                                        "tests/golden/transfo-xl-lm", "tests/golden/xlnet-permutation-lm" };
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 2 }, &e);
    for (size_t i = 0; i < SES_LEN(dirs); i++) test_join(dirs[i], dev, (uint32_t)i + 1);
    test_cancel(dev);
    test_long_prompt(dev);
    test_refused(dev);
    test_isolation(dev);
    test_prompt_logprobs(dev);
    test_rescore(dev);
    test_threads(dev);
    ses_device_free(dev);
    return check_report();
}
