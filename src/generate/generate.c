/* ses_generate: all prompts at once, with the same options, on a generator of its own. */
#include "base/alloc.h"
#include "generate_impl.h"

enum { MAX_SEQUENCES = 64 };

/* A call of ses_generate. */
typedef struct call {
    ses_generator *g;
    const ses_generate_options *o;
    int64_t n;
    ses_generated *out;
    bool failed;
    ses_err *e;
} call;

static bool on_token(void *ctx, const ses_token_event *t)
{
    call *c = ctx;
    if (c->o->on_token(c->o->ctx, t)) return true;
    c->out->cancelled = true;
    ses_generator_cancel_all(c->g);
    return false;
}

static void on_finish(void *ctx, int64_t prompt, ses_generated *r, const ses_err *why)
{
    call *c = ctx;
    int64_t each = c->o->num_return_sequences;
    if (!r) {
        ses_fail(c->e, why->code, "%s", why->msg);
        if (c->n > 1 && why->code != SES_ENOMEM) ses_wrap(c->e, "prompt %lld", (long long)prompt);
        if (!c->failed) ses_generator_cancel_all(c->g);
        c->failed = true;
        return;
    }
    for (int64_t i = 0; i < each; i++) {
        c->out->sequence[prompt * each + i] = r->sequence[i];
        r->sequence[i] = (ses_generated_sequence){ 0 };
    }
    c->out->tokens_generated += r->tokens_generated;
    ses_generated_free(r);
}

static bool add_prompts(call *c, const ses_prompt *prompt, ses_err *e)
{
    ses_generator_callbacks callbacks = { c->o->on_token ? on_token : NULL, on_finish, c };
    for (int64_t i = 0; i < c->n; i++)
        if (ses_generator_add(c->g, &prompt[i], c->o, &callbacks, e) < 0)
            return c->n > 1 ? ses_wrap(e, "prompt %lld", (long long)i) : false;
    return true;
}

/* As many prompts run together as sequences permit, at least one. */
static int64_t count_sequences(const ses_generate_options *o, int64_t n)
{
    int64_t each = o->num_beams > 1 ? o->num_beams : o->num_return_sequences;
    int64_t together = each < MAX_SEQUENCES ? MAX_SEQUENCES / each : 1;
    return each * (together < n ? together : n > 1 ? n : 1);
}

static bool run(call *c, const ses_prompt *prompt, ses_err *e)
{
    size_t n = 0;
    if (!ses_mul_size((size_t)c->n, (size_t)c->o->num_return_sequences, &n))
        return ses_fail(e, SES_ENOMEM, "too many sequences");
    c->out->n = (int64_t)n;
    c->out->sequence = ses_alloc_array(n, sizeof *c->out->sequence, e);
    if (!c->out->sequence) return false;
    c->g->fails_together = true; /* the call fails if one prompt does */
    ses_generator_allow_large_prompts(c->g);
    ses_generator_set_prefill_tokens(c->g, INT64_MAX);
    if (!add_prompts(c, prompt, e)) return false;
    while (ses_generator_step(c->g)) continue;
    c->out->tokens_read = ses_generator_get_stats(c->g).tokens_read;
    return !c->failed;
}

/* Checks the options before they decide the size of the generator. */
static bool check(const ses_model *m, const ses_generate_options *o, ses_err *e)
{
    ses_generator g = { .model = m, .vocab_size = ses_model_vocab_size(m) };
    ses_generate_options copy = *o;
    return ses_generate_check_model(&g, e) && ses_generate_check(&g, &copy, e);
}

ses_generated *ses_generate(const ses_model *m, const ses_prompt *prompt, int64_t n,
                            const ses_generate_options *o, ses_err *e)
{
    ses_err failed = { 0 }; /* e may be NULL */
    call c = { .o = o, .n = n > 0 ? n : 0, .e = &failed };
    c.out = ses_alloc(sizeof *c.out, &failed);
    bool ok = c.out && check(m, o, &failed);
    if (ok && c.n) {
        c.g = ses_generator_new(m, o->cache_tokens, count_sequences(o, n), &failed);
        ok = c.g && run(&c, prompt, &failed);
    }
    ses_generator_free(c.g);
    if (ok) return c.out;
    ses_fail(e, failed.code, "%s", failed.msg);
    ses_generated_free(c.out);
    return NULL;
}

void ses_generated_free(ses_generated *r)
{
    if (!r) return;
    for (int64_t i = 0; r->sequence && i < r->n; i++) {
        const ses_generated_sequence *s = &r->sequence[i];
        ses_free((void *)(uintptr_t)s->ids.id);
        ses_free((void *)(uintptr_t)s->logprob);
        ses_free((void *)(uintptr_t)s->top);
        ses_free((void *)(uintptr_t)s->prompt_logprob);
        ses_free((void *)(uintptr_t)s->prompt_top);
    }
    ses_free(r->sequence);
    ses_free(r);
}
