/* Generation with each allocation failing in turn: greedy, beams, sampling; with an encoder, with mems;
 * prompts of a generator, which fail alone. */
#include "oom.h"
#include "sesame/sesame.h"

typedef struct setup {
    const ses_model *m;
    int64_t beams;
    bool sample;
    int64_t top; /* top_logprobs; prompt_logprobs too */
} setup;

static bool generate_some(void *ctx, ses_err *e)
{
    static const int32_t id[4] = { 5, 6, 7, 8 };
    const setup *s = ctx;
    const ses_prompt p[2] = { { .ids = { id, 4 } }, { .ids = { id + 1, 2 } } };
    ses_generation_config *g = ses_generation_config_open(s->m, e);
    if (!g) return false;
    ses_generate_options o = *ses_generation_config_options(g);
    o.max_new_tokens = 3, o.num_beams = s->beams, o.do_sample = s->sample, o.cache_tokens = 1;
    o.top_logprobs = s->top, o.prompt_logprobs = s->top > 0;
    ses_generated *r = ses_generate(s->m, p, 2, &o, e);
    ses_generated_free(r);
    ses_generation_config_free(g);
    return r != NULL;
}

typedef struct counts {
    int finished, failed;
    const ses_generated *expected;
} counts;

static void on_finish(void *ctx, int64_t prompt, ses_generated *r, const ses_err *why)
{
    counts *c = ctx;
    const ses_generated_sequence *x = &c->expected->sequence[prompt];
    c->finished += r != NULL, c->failed += !r;
    if (r)
        CHECK(r->sequence->ids.n == x->ids.n &&
              !memcmp(r->sequence->ids.id, x->ids.id, (size_t)x->ids.n * sizeof *x->ids.id));
    else
        CHECK_MSG(why->code == SES_ENOMEM, "%s", why->msg);
    ses_generated_free(r);
}

/* Prompts that do not fail have the same texts; each gets one on_finish. */
static void generate_apart(const setup *s, const ses_generate_options *o, long fail_at, bool *done)
{
    static const int32_t id[4] = { 5, 6, 7, 8 };
    const ses_prompt p[3] = { { .ids = { id, 4 } }, { .ids = { id + 1, 2 } }, { .ids = { id + 2, 2 } } };
    counts c = { .expected = ses_generate(s->m, p, 3, o, NULL) };
    ses_generator_callbacks callbacks = { NULL, on_finish, &c };
    long live = oom.live;
    int added = 0;
    oom.calls = oom.failed = 0;
    oom.fail_from = oom.fail_to = fail_at;
    ses_generator *g = ses_generator_new(s->m, 0, 5, NULL);
    for (int i = 0; g && i < 3 && i == added; i++)
        added += ses_generator_add(g, &p[i], o, &callbacks, NULL) >= 0;
    while (g && ses_generator_step(g)) continue;
    ses_generator_free(g);
    oom.fail_from = 0;
    CHECK_MSG(c.finished + c.failed == added && oom.live == live, "allocation %ld: %d of %d, %ld blocks left",
              fail_at, c.finished + c.failed, added, oom.live - live);
    *done = !oom.failed;
    ses_generated_free((ses_generated *)(uintptr_t)c.expected);
}

static void test_apart(const setup *s)
{
    ses_generation_config *c = ses_generation_config_open(s->m, NULL);
    ses_generate_options o = *ses_generation_config_options(c);
    bool done = false;
    o.max_new_tokens = 3, o.num_beams = s->beams;
    for (long n = 1; !done && n < 10000; n++) generate_apart(s, &o, n, &done);
    CHECK(done);
    ses_generation_config_free(c);
}

int main(void)
{
    static const char *const dirs[] = { "tests/golden/gpt2-lm", "tests/golden/t5-v1.0",
                                        "tests/golden/transfo-xl-lm", "tests/golden/xlnet-permutation-lm" };
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    for (size_t i = 0; i < SES_LEN(dirs); i++) { /* train: weights are not packed, which may fail silently */
        ses_model *m = ses_model_open(dirs[i], dev, &(ses_model_options){ .train = true }, &e);
        CHECK_MSG(m, "%s", e.msg);
        const setup setups[] = {
            { m, 1, false, 0 }, { m, 2, false, 0 }, { m, 1, true, 0 }, { m, 1, false, 2 }, { m, 3, false, 2 }
        };
        for (size_t k = 0; m && k < SES_LEN(setups); k++) {
            if (!i || !setups[k].top) oom_sweep("generate", generate_some, (void *)(uintptr_t)&setups[k]);
            if (!setups[k].top) test_apart(&setups[k]);
        }
        ses_model_free(m);
    }
    ses_device_free(dev);
    return check_report();
}
