/* Replaced token detection (ELECTRA, Clark et al. 2020): a small, jointly trained generator fills the
 * masks; the model detects the replaced tokens. Variants of the paper's ablation: loss on masked positions
 * only (rtd15), or predicting the original tokens, of masked positions (replace) or of all (alltok; its copy
 * mechanism is head_copy_lm.c). As in the paper's program, 15 % of the chosen tokens stay unmasked in the
 * generator's input.
 *   loss = generator loss + weight * model loss; a frozen generator has no loss */
#include "objective_mix.h"

#include "base/alloc.h"
#include "base/json/json_helpers.h"
#include "nn/nn.h"
#include "op/op.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <string.h>

static bool build(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                  ses_err *e)
{
    return ses_build_masked(ctx, o, p, e) && ses_build_framed(ctx, p, ctx->text.p, ctx->chosen.p, d, e);
}

/* Samples one token per row of x [n, V] from softmax(x / temperature), on the device. */
static bool sample_tokens(ses_tape *t, const ses_tensor *x, double temperature, int64_t n, int32_t *out,
                          ses_err *e)
{
    ses_device *d = ses_tape_device(t);
    const ses_kernels *k = x->dtype == SES_REAL ? &d->k_f32 : &d->k;
    ses_rng_key key = ses_tape_rng_key(t);
    ses_tensor *sample = ses_tape_ints(t, out, n);
    if (!sample) return ses_tape_ok(t, e);
    k->sample(&d->exec, sample->i, x->f, n, ses_cols(x), temperature, key);
    d->mem->download(d, out, sample->data, (size_t)n * sizeof *out);
    return ses_tape_ok(t, e);
}

/* The generator's outputs on a batch, and the batch with its samples filled in. */
typedef struct replaced_batch {
    ses_outputs generator;
    int64_t n; /* masked tokens; length of the arrays below */
    int32_t *row, *original, *sampled;
    ses_batch batch;
} replaced_batch;

static int32_t *copy(ses_tape *t, const int32_t *from, int64_t n)
{
    int32_t *x = ses_tape_host_alloc(t, (size_t)n, sizeof *x);
    if (x) memcpy(x, from, (size_t)n * sizeof *x);
    return x;
}

static bool run_generator(ses_objective_mix *mix, const ses_objective *o, ses_tape *t, const ses_batch *b,
                          replaced_batch *g, ses_err *e)
{
    g->n = ses_label_rows(t, b, "masked-lm", &g->row, &g->original);
    ses_output_request want = { .logits = g->n > 0, .rows = g->row, .n_rows = g->n };
    if (!ses_tape_ok(t, e) || !ses_model_forward(mix->generator, t, b, &want, &g->generator, e)) return false;
    int32_t *ids = copy(t, b->ids, b->tokens), *labels = copy(t, b->ids, b->tokens);
    g->sampled = ses_tape_host_alloc(t, (size_t)g->n, sizeof *g->sampled);
    if (!ids || !labels || !g->sampled) return ses_tape_ok(t, e);
    const ses_output *x = g->n ? ses_outputs_find(&g->generator, g->generator.head[0].output) : NULL;
    if (x && !sample_tokens(t, x->tensor, mix->build.o.sampling_temperature, g->n, g->sampled, e))
        return false;
    bool every = !(o->rtd_targets & SES_RTD_MASKED_ONLY), tokens = o->rtd_targets & SES_RTD_PREDICT_TOKENS;
    for (int64_t i = 0; i < b->tokens; i++) {
        bool special = tokens && mix->build.special_tokens->special[b->ids[i]];
        labels[i] = !every || special ? SES_IGNORE_INDEX : tokens ? b->ids[i] : 0;
    }
    for (int64_t i = 0; i < g->n; i++) {
        ids[g->row[i]] = g->sampled[i];
        labels[g->row[i]] = tokens ? g->original[i] : g->sampled[i] != g->original[i];
    }
    g->batch = *b;
    g->batch.ids = ids;
    g->batch.labels = labels;
    return true;
}

/* Weight of the model's loss. */
static double model_weight(const ses_objective_mix *mix, const ses_objective *o)
{
    return o->rtd_targets & SES_RTD_PREDICT_TOKENS ? 1 : mix->build.o.replaced_weight;
}

static double total(const ses_objective_mix *mix, const ses_objective *o, const ses_metric_sums *sums)
{
    double of_generator = mix->build.o.freeze_generator ? 0 : ses_metric_sums_mean(sums, "generator", "loss");
    return of_generator + model_weight(mix, o) * ses_metric_sums_mean(sums, o->name, "loss");
}

static ses_tensor *loss(ses_objective_mix *mix, const ses_objective *o, ses_tape *t, const ses_batch *b,
                        ses_err *e)
{
    replaced_batch g = { 0 };
    ses_outputs out;
    if (!run_generator(mix, o, t, b, &g, e) ||
        !ses_model_forward(mix->model, t, &g.batch, &(ses_output_request){ 0 }, &out, e))
        return NULL;
    ses_tensor *of_model = ses_scale(t, out.loss, model_weight(mix, o));
    return mix->build.o.freeze_generator ? of_model : ses_add(t, g.generator.loss, of_model);
}

/* Adds accuracy, recall of replaced tokens ("found") and their rate from the logits x. */
static bool count_detected(ses_tape *t, const replaced_batch *g, const ses_tensor *x, const char *name,
                           ses_metric_sums *sums, ses_err *e)
{
    int64_t n = ses_count(x), labeled = 0, correct = 0, replaced = 0, found = 0;
    ses_real *y = ses_alloc_array((size_t)n, sizeof *y, e);
    if (!y) return false;
    bool ok = ses_tape_read(t, x, y);
    for (int64_t i = 0; ok && i < n; i++) {
        int32_t label = g->batch.labels[i];
        if (label == SES_IGNORE_INDEX) continue;
        labeled++;
        correct += (y[i] > 0) == (label == 1);
        replaced += label == 1;
        found += label == 1 && y[i] > 0;
    }
    ses_free(y);
    ses_metric_sums_add(sums, name, "accuracy", (double)correct, (double)labeled);
    ses_metric_sums_add(sums, name, "found", (double)found, (double)replaced);
    ses_metric_sums_add(sums, name, "replaced", (double)replaced, (double)labeled);
    return ok || (ses_tape_ok(t, e), false);
}

/* The token with the largest D (v == token) + (1 - D) softmax(y)[v]; if D >= 1/2, the input token. */
static int32_t best_or_copy(const ses_real *y, int64_t V, double copy_logit, int32_t token)
{
    int64_t best = 0;
    double sum = 0;
    if (copy_logit >= 0) return token;
    for (int64_t v = 1; v < V; v++)
        if (y[v] > y[best]) best = v;
    for (int64_t v = 0; v < V && best != token; v++) sum += exp((double)y[v] - (double)y[best]);
    double of_token = exp(copy_logit) * sum + exp((double)y[token] - (double)y[best]); /* times p(best) */
    return best == token || of_token >= 1 ? token : (int32_t)best;
}

/* Adds accuracy, the fraction of replaced tokens that are restored, and the mean probability of copying.
 * row, label [n]: rows of the logits. */
static bool count_restored(ses_tape *t, const replaced_batch *g, const ses_outputs *out, const int32_t *row,
                           const int32_t *label, int64_t n, const char *name, ses_metric_sums *sums,
                           ses_err *e)
{
    const ses_output *x = ses_outputs_find(out, out->head[0].output),
                     *copy = ses_outputs_find(out, SES_COPY_OUTPUT);
    int64_t V = x ? ses_cols(x->tensor) : 0, correct = 0, replaced = 0, restored = 0;
    double copies = 0;
    ses_real *y = ses_alloc_array((size_t)(n * V), sizeof *y, e),
             *a = ses_alloc_array((size_t)n, sizeof *a, e);
    bool ok = y && a && x && copy && ses_tape_read(t, x->tensor, y) && ses_tape_read(t, copy->tensor, a);
    for (int64_t i = 0; ok && i < n; i++) {
        int32_t token = g->batch.ids[row[i]];
        bool is_right = best_or_copy(y + i * V, V, (double)a[i], token) == label[i];
        correct += is_right;
        replaced += token != label[i];
        restored += token != label[i] && is_right;
        copies += 1 / (1 + exp(-(double)a[i]));
    }
    ses_free(y);
    ses_free(a);
    ses_metric_sums_add(sums, name, "accuracy", (double)correct, (double)n);
    ses_metric_sums_add(sums, name, "restored", (double)restored, (double)replaced);
    ses_metric_sums_add(sums, name, "copied", copies, (double)n);
    return ok || (ses_tape_ok(t, e), false);
}

static bool measure(ses_objective_mix *mix, const ses_objective *o, ses_tape *t, const ses_batch *b,
                    ses_metric_sums *sums, ses_err *e)
{
    replaced_batch g = { 0 };
    ses_outputs out;
    ses_real of_generator = 0, of_model = 0;
    int32_t *row, *label;
    if (!run_generator(mix, o, t, b, &g, e)) return false;
    bool tokens = o->rtd_targets & SES_RTD_PREDICT_TOKENS;
    int64_t n = ses_label_rows(t, &g.batch, "masked-lm", &row, &label);
    ses_output_request want = { .logits = true, .rows = tokens ? row : NULL, .n_rows = tokens ? n : 0 };
    if (!ses_tape_ok(t, e) || !ses_model_forward(mix->model, t, &g.batch, &want, &out, e)) return false;
    if (!ses_tape_read(t, g.generator.loss, &of_generator) || !ses_tape_read(t, out.loss, &of_model))
        return ses_tape_ok(t, e);
    ses_metric_sums_add(sums, "generator", "loss", (double)of_generator * (double)g.n, (double)g.n);
    ses_metric_sums_add(sums, o->name, "loss", (double)of_model * (double)n, (double)n);
    const ses_output *x = ses_outputs_find(&out, out.head[0].output);
    if (!x) return true;
    if (!tokens) return count_detected(t, &g, x->tensor, o->name, sums, e);
    if (ses_outputs_find(&out, SES_COPY_OUTPUT))
        return count_restored(t, &g, &out, row, label, n, o->name, sums, e);
    int64_t correct = ses_count_correct(t, x->tensor, label, n, e);
    if (correct >= 0) ses_metric_sums_add(sums, o->name, "accuracy", (double)correct, (double)n);
    return correct >= 0;
}

/* A value of the config times fraction, rounded to a positive multiple of `multiple`. */
static int64_t scaled(const ses_json *v, double fraction, int64_t multiple)
{
    double x = 0;
    ses_json_real(v, &x);
    int64_t n = (int64_t)lround(x * fraction / (double)multiple);
    return (n < 1 ? 1 : n) * multiple;
}

ses_json_doc *ses_generator_config(const ses_json *config, double fraction, ses_err *e)
{
    static const char *const scaled_key[] = { "hidden_size", "intermediate_size", "num_attention_heads" };
    ses_json_writer *w = ses_json_writer_new(0, e);
    int64_t heads = scaled(ses_json_get(config, "num_attention_heads"), fraction, 1);
    ses_json_begin_object(w);
    for (size_t i = 0; i < ses_json_len(config); i++) {
        const char *key = ses_json_key(config, i, NULL);
        const ses_json *v = ses_json_at(config, i);
        bool is_scaled = false;
        for (size_t j = 0; j < SES_LEN(scaled_key); j++) is_scaled |= !strcmp(key, scaled_key[j]);
        if (!strcmp(key, "architectures")) continue;
        ses_json_put_key(w, key);
        if (is_scaled)
            ses_json_put_int(w, !strcmp(key, "num_attention_heads") ? heads : scaled(v, fraction, heads));
        else
            ses_json_put_value(w, v);
    }
    ses_json_end_object(w);
    return ses_json_writer_parse(w, e);
}

#define REPLACED(id, name_, description_, head_, targets_)                                    \
    const ses_objective ses_objective_##id = { .name = name_,                                 \
                                               .description = description_,                   \
                                               .needs = SES_NEEDS_MASK | SES_NEEDS_GENERATOR, \
                                               .head = head_,                                 \
                                               .rtd_targets = targets_,                       \
                                               .mask_rate = 0.15,                             \
                                               .keep_rate = 0.15,                             \
                                               .mask_unit = SES_MASK_TOKENS,                  \
                                               .span_length = 5,                              \
                                               .max_span = 10,                                \
                                               .build = build,                                \
                                               .loss = loss,                                  \
                                               .measure = measure,                            \
                                               .total_loss = total }

REPLACED(rtd, "rtd", "replaced token detection (ELECTRA)", "replaced-tokens", 0);
REPLACED(rtd15, "rtd15", "replaced token detection on masked positions only", "replaced-tokens",
         SES_RTD_MASKED_ONLY);
REPLACED(replace, "replace", "original tokens of positions a generator replaced", "masked-lm",
         SES_RTD_MASKED_ONLY | SES_RTD_PREDICT_TOKENS);
REPLACED(alltok, "alltok", "original tokens of all positions, with a copy mechanism", "copy-lm",
         SES_RTD_PREDICT_TOKENS);
REPLACED(alltok_nocopy, "alltok-nocopy", "original tokens of all positions", "masked-lm",
         SES_RTD_PREDICT_TOKENS);
