/* Generation with each allocation failing in turn: greedy, beams, sampling; with an encoder, with mems. */
#include "oom.h"
#include "sesame/sesame.h"

typedef struct setup {
    const ses_model *m;
    int64_t beams;
    bool sample;
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
    ses_generated *r = ses_generate(s->m, p, 2, &o, e);
    ses_generated_free(r);
    ses_generation_config_free(g);
    return r != NULL;
}

int main(void)
{
    static const char *const dirs[] = { "tests/golden/gpt2-lm", "tests/golden/t5-v1.0",
                                        "tests/golden/transfo-xl-lm", "tests/golden/xlnet-permutation-lm" };
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1, .isa = SES_ISA_COUNT }, &e);
    for (size_t i = 0; i < SES_LEN(dirs); i++) { /* train: weights are not packed, which may fail silently */
        ses_model *m = ses_model_open(dirs[i], dev, &(ses_model_options){ .train = true }, &e);
        CHECK_MSG(m, "%s", e.msg);
        const setup setups[] = { { m, 1, false }, { m, 2, false }, { m, 1, true } };
        for (size_t k = 0; m && k < SES_LEN(setups); k++)
            oom_sweep("generate", generate_some, (void *)(uintptr_t)&setups[k]);
        ses_model_free(m);
    }
    ses_device_free(dev);
    return check_report();
}
