/* Training of translators (tuned lens): KL of each layer's prediction to the model's, SGD with momentum and a
 * rate that falls to 0. */
#include "base/alloc.h"
#include "base/rng.h"
#include "lens.h"
#include "op/op.h"
#include "sesame/unstable/optim.h"

#include <math.h>
#include <stdio.h>

enum { MASK_SITE = 11, MASK_PERCENT = 15, MAX_ROWS = 512 };

typedef struct tuning {
    ses_lens *l;
    const ses_input *text;
    size_t n_texts, next;
    const ses_tuned_options *o;
    ses_store *store;
    ses_optim *optim;
    ses_tensor **a, **b; /* [layers] */
    ses_tape *tape;
    ses_real **state, *logits; /* [layers + 1] of [MAX_ROWS, width]; [MAX_ROWS, vocab] */
} tuning;

static void tuning_free(tuning *t)
{
    for (int64_t i = 0; t->state && i <= t->l->layers; i++) ses_free(t->state[i]);
    ses_free(t->state), ses_free(t->logits), ses_free(t->a), ses_free(t->b);
    ses_optim_free(t->optim);
    ses_tape_free(t->tape);
    ses_store_free(t->store);
}

static bool allocate(tuning *t, ses_err *e)
{
    const ses_lens *l = t->l;
    char name[48];
    ses_optim_options oo;
    t->state = ses_alloc_array((size_t)l->layers + 1, sizeof *t->state, e);
    t->a = ses_alloc_array((size_t)l->layers, sizeof(ses_tensor *), e);
    t->b = ses_alloc_array((size_t)l->layers, sizeof(ses_tensor *), e);
    t->logits = ses_alloc_array((size_t)(MAX_ROWS * l->vocab), sizeof *t->logits, e);
    t->store = ses_store_new(l->m->dev, e);
    t->tape = t->store ? ses_tape_new(l->m->dev, &(ses_tape_options){ .record = true }, e) : NULL;
    if (!t->state || !t->a || !t->b || !t->logits || !t->tape) return false;
    for (int64_t i = 0; i <= l->layers; i++)
        if (!(t->state[i] = ses_alloc_array((size_t)(MAX_ROWS * l->width), sizeof **t->state, e)))
            return false;
    for (int64_t i = 0; i < l->layers; i++) {
        snprintf(name, sizeof name, "translator.%lld.weight", (long long)i);
        t->a[i] = ses_store_add(t->store, name, SES_DIM(l->width, l->width), SES_INIT_ZERO);
        snprintf(name, sizeof name, "translator.%lld.bias", (long long)i);
        t->b[i] = ses_store_add(t->store, name, SES_DIM(l->width), SES_INIT_ZERO);
    }
    if (!ses_store_ok(t->store, e) || !ses_store_alloc_trainable(t->store, e)) return false;
    if (!ses_optim_defaults("sgd", &oo, e)) return false;
    oo.momentum = t->o->momentum;
    oo.group[0].weight_decay = 0;
    t->optim = ses_optim_new(t->store, &oo, e);
    return t->optim != NULL;
}

/* Adds a text: the rows that predict something. False in *took: it does not fit. */
static bool add_text(tuning *t, size_t number, bool *took, ses_err *e)
{
    ses_lens *l = t->l;
    int64_t limit = ses_model_max_tokens(l->m);
    if (limit > t->o->batch_tokens) limit = t->o->batch_tokens;
    ses_encode_options eo = { .truncation = SES_TRUNCATE_ONLY_FIRST, .max_length = limit };
    if (!ses_encode(l->tokens, &t->text[number], &eo, e)) return false;
    const ses_encoding *x = ses_encode_ctx_result(l->tokens);
    ses_batch_builder *b = &l->pass.in;
    int32_t at = (int32_t)b->ids.n;
    *took = !at || at + (int64_t)x->n <= t->o->batch_tokens;
    if (!*took || !x->n) return true;
    if (!ses_batch_builder_add_encoding(b, x, l->segments, e) ||
        (l->decoder && !ses_batch_builder_shift(b, l->m, x->id, (int64_t)x->n, e)))
        return false;
    ses_rng_key key = { t->o->seed, (uint32_t)ses_optim_steps(t->optim), MASK_SITE };
    for (size_t i = 0; i < x->n; i++) {
        int32_t token = at + (int32_t)i;
        bool draws = ses_rand32(key, (uint64_t)token) % 100 < MASK_PERCENT;
        bool reads = l->masked ? draws && !x->special_mask[i] : l->decoder || i + 1 < x->n;
        if (l->masked && reads) b->ids.p[token] = l->config.role[SES_ROLE_MASK];
        if (reads && b->rows.n < MAX_ROWS && !ses_ints_push(&b->rows, token, e)) return false;
    }
    return true;
}

/* Fills a batch with the next texts; begins again after the last. */
static bool fill(tuning *t, ses_err *e)
{
    const ses_batch_builder *b = &t->l->pass.in;
    bool took = true;
    for (size_t tried = 0; took && tried <= 2 * t->n_texts && b->rows.n < MAX_ROWS; tried++) {
        if (!add_text(t, t->next, &took, e)) return false;
        if (took) t->next = (t->next + 1) % t->n_texts;
        if (b->cu_seqlens.n > 4096) break;
    }
    return b->rows.n || ses_fail(e, SES_EFORMAT, "no token of the texts can be predicted");
}

/* KL of one layer; adds its gradients. */
static bool step_layer(tuning *t, int64_t i, double *loss, ses_err *e)
{
    const ses_lens *l = t->l;
    ses_real value;
    int64_t n = l->pass.request.n_rows;
    ses_tape_reset(t->tape, NULL);
    ses_tensor *h = ses_tape_input(t->tape, t->state[i], SES_DIM(n, l->width));
    ses_tensor *x = ses_add(t->tape, h, ses_linear(t->tape, h, t->a[i], t->b[i], SES_ACT_NONE, SES_OUT_IN));
    ses_tensor *y = ses_tape_input(t->tape, t->logits, SES_DIM(n, l->vocab));
    ses_tensor *kl = ses_teacher_loss(t->tape, ses_model_lens(l->m, t->tape, x, false), y, SES_TEACHER_KL, 1);
    if (!kl || !ses_tape_read(t->tape, kl, &value)) return ses_tape_ok(t->tape, e) && false;
    *loss = (double)value;
    if (!isfinite(*loss))
        return ses_fail(e, SES_EFORMAT, "the KL of layer %lld is not finite: a lower --rate may help",
                        (long long)i);
    ses_backward(t->tape, kl);
    return ses_tape_ok(t->tape, e);
}

/* One update. loss: [layers]. */
static bool step(tuning *t, double rate, double *loss, ses_err *e)
{
    if (!fill(t, e) || !ses_lens_states(t->l, t->state, t->logits, e)) return false;
    ses_store_zero_grad(t->store);
    for (int64_t i = 0; i < t->l->layers; i++)
        if (!step_layer(t, i, &loss[i], e)) return false;
    /* the sum of past steps with momentum is up to 1 / (1 - momentum) times one: undone here */
    double norm = ses_store_grad_norm(t->store), clip = sqrt((double)t->l->layers);
    ses_optim_step(t->optim, rate * (1 - t->o->momentum), norm > clip ? clip / norm : 1);
    return true;
}

static bool copy_out(tuning *t, ses_translators *out, ses_err *e)
{
    int64_t w = t->l->width;
    if (!ses_translators_alloc(out, t->l->layers, w, e)) return false;
    ses_tape_reset(t->tape, NULL);
    for (int64_t i = 0; i < t->l->layers; i++)
        if (!ses_tape_read(t->tape, t->a[i], out->a + i * w * w) ||
            !ses_tape_read(t->tape, t->b[i], out->b + i * w))
            return ses_tape_ok(t->tape, e) && false;
    return true;
}

bool ses_tuned_train(ses_lens *l, const ses_input *text, size_t n, const ses_tuned_options *o,
                     const ses_analysis_call *call, ses_translators *out, double *loss, ses_err *e)
{
    tuning t = { .l = l, .text = text, .n_texts = n, .o = o };
    ses_store *weights = ses_model_store(l->m);
    for (size_t i = 0; i < ses_store_count(weights); i++) /* only the translators are trained */
        ses_store_at(weights, i)->tensor->requires_grad = false;
    if (l->masked && l->config.role[SES_ROLE_MASK] < 0)
        return ses_fail(e, SES_EUNSUPPORTED, "the tokenizer has no mask token");
    bool ok = allocate(&t, e);
    for (int64_t i = 0; ok && i < o->steps; i++) {
        double rate = o->rate * (1 - (double)i / (double)o->steps);
        ok = step(&t, rate, loss + (i ? l->layers : 0), e);
        ses_analysis_progress(call, "steps", i + 1, o->steps);
    }
    ok = ok && copy_out(&t, out, e);
    tuning_free(&t);
    return ok;
}
